//! `IPList`: a custom list of addresses in an account, with all its items.
//!
//! Items are written by operations, which go on after the call that asked for them: see [`kflare_engine::operations`]. The list
//! of lists tells no items, so that they are read again only when the list says that something has changed.

mod items;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kflare_api::{ip_list::IPListSpec, names};
use kflare_cloudflare::{
    Client, Error,
    endpoints::lists::{self, Item, List, OperationStatus},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reference, Remote, Site,
    SpecError, Stored,
    errors::Class,
    kind::{ClaimNames, KindReasons},
    operations::{OperationWriter, Progress, Started, UnderWay},
    plan::FieldRules,
};
use serde_json::{Map, Value, json};

use crate::reasons;
use items::{Items, Step};

/// A list of that name exists.
const EXISTS: i64 = 10_021;
/// Rules use the list.
const IN_USE: i64 = 10_031;

/// The kind of lists that hold addresses.
const IP: &str = "ip";

/// The adapter.
pub struct IPListAdapter {
    descriptor: KindDescriptor,
}

impl IPListAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "listID".into(),
                    label: names::LIST_ID.into(),
                }),
                fields: FieldRules {
                    after_create: &["items"],
                    unlisted: &["items"],
                    ..FieldRules::default()
                },
                reasons: KindReasons {
                    in_use: reasons::LIST_IN_USE,
                    ..KindReasons::default()
                },
                ..KindDescriptor::new("IPList", "iplists", "IPList", "lists")
            },
        }
    }
}

/// Expressions tell lists apart by name, and names by case.
fn key(name: &str) -> NaturalKey {
    NaturalKey {
        group: name.to_owned(),
        member: String::new(),
    }
}

/// A list in canonical form, as it was read after `asked`. `content` stands for its items, where they were read too.
fn remote(list: List, content: Option<Value>, asked: Timestamp) -> Remote {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(list.name));
    body.insert("kind".to_owned(), json!(list.kind));
    body.insert("description".to_owned(), json!(list.description));
    if let Some(content) = content {
        body.insert("items".to_owned(), content);
    }
    // The time of the last change has whole seconds: while such a second lasts, another change may follow that does not show.
    let settled = |modified: &Timestamp| {
        modified
            .checked_add(SignedDuration::from_secs(1))
            .is_ok_and(|over| asked >= over)
    };
    let revision = list
        .modified_on
        .filter(settled)
        .map(|modified| format!("{modified}, {} items", list.num_items));
    let locked = (list.kind != IP).then(|| format!("a list of the kind {}", list.kind));
    let metadata = Map::from_iter([
        ("listID".to_owned(), json!(list.id)),
        ("itemCount".to_owned(), json!(list.num_items)),
    ]);
    Remote {
        id: list.id,
        key: key(&list.name),
        body,
        created: list.created_on,
        revision,
        locked,
        metadata,
        ..Remote::default()
    }
}

/// The items of a list, as what stands for them.
async fn read_content(client: &Client, account_id: &str, list_id: &str) -> Result<Value, Error> {
    let entry = |item: Item| (items::canonical(&item.ip), item.comment);
    let read = lists::items_into(client, account_id, list_id, entry).await?;
    Ok(items::content(&read.into_iter().collect()))
}

/// A description as it is compared: absent and empty are one.
fn text<'a>(desired: &'a Desired, field: &str) -> &'a str {
    desired.body.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Sends the first of `steps`; the others are what is left.
async fn send(client: &Client, account_id: &str, list_id: &str, steps: &[Step]) -> Result<UnderWay, Error> {
    let Some((first, rest)) = steps.split_first() else {
        return Err(Error::Refused("no items are left to write".to_owned()));
    };
    let operation = match first {
        Step::Add(added) => lists::add_items(client, account_id, list_id, &items::new_items(added)).await?,
        Step::Remove(ids) => lists::remove_items(client, account_id, list_id, ids).await?,
    };
    Ok(UnderWay {
        operation,
        rest: (!rest.is_empty()).then(|| json!(rest)),
    })
}

#[async_trait]
impl Adapter for IPListAdapter {
    type Spec = IPListSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &IPListSpec) -> Vec<Reference> {
        vec![Reference::new(
            "accountRef",
            "CloudflareAccount",
            &spec.account_ref.name,
        )]
    }

    fn scope(&self, _spec: &IPListSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    /// Rules name a list in their expressions.
    fn alias(&self, spec: &IPListSpec) -> Option<String> {
        Some(spec.name.clone())
    }

    fn desired(&self, spec: &IPListSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        let wanted = items::of_spec(&spec.items)?;
        let body = Map::from_iter([
            ("name".to_owned(), json!(spec.name)),
            ("kind".to_owned(), json!(IP)),
            (
                "description".to_owned(),
                json!(spec.description.as_deref().unwrap_or_default()),
            ),
            ("items".to_owned(), items::content(&wanted)),
        ]);
        Ok(Desired {
            key: key(&spec.name),
            exclusive: true,
            body,
            payload: json!(wanted),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        let asked = client.server_time();
        let lists = lists::list(client, account_id).await?.into_iter();
        Ok(lists.map(|list| remote(list, None, asked)).collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let asked = client.server_time();
        let lists = lists::list(client, account_id).await?.into_iter();
        let named = lists.filter(|list| list.name == key.group);
        Ok(named.map(|list| remote(list, None, asked)).collect())
    }

    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        let asked = client.server_time();
        let list = match lists::get(client, account_id, id).await {
            Ok(list) => list,
            Err(error) if error.status() == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        // What changes while the items are read changes the mark that was read before.
        let content = match list.kind.as_str() {
            IP => read_content(client, account_id, id).await?,
            _ => Value::Null,
        };
        Ok(Some(remote(list, Some(content), asked)))
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let body = json!({
            "name": text(desired, "name"),
            "kind": IP,
            "description": text(desired, "description"),
        });
        let asked = client.server_time();
        let made = lists::create(client, site.scope, &body).await?;
        Ok(remote(made, Some(items::content(&Items::new())), asked).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        lists::delete(client, site.scope, id).await?;
        Ok(Deleted::default())
    }

    fn operations(&self) -> Option<&dyn OperationWriter> {
        Some(self)
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        let Error::Api(api) = error else { return None };
        match api.status {
            _ if api.has_code(EXISTS) => Some(Class::Exists),
            _ if api.has_code(IN_USE) => Some(Class::Blocked(reasons::LIST_IN_USE)),
            // Another operation of the account is under way; see the endpoint.
            429 => Some(Class::Busy),
            _ => None,
        }
    }
}

#[async_trait]
impl OperationWriter for IPListAdapter {
    async fn start(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Started, Error> {
        let account_id = site.scope;
        let asked = client.server_time();
        let described = if changes.iter().any(|change| change.path == "description") {
            Some(lists::describe(client, account_id, id, text(desired, "description")).await?)
        } else {
            None
        };
        let steps = match changes.iter().find(|change| change.path == "items") {
            Some(change) => {
                let wanted: Items = desired
                    .payload
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(ip, comment)| (ip.clone(), comment.as_str().unwrap_or_default().to_owned()))
                    .collect();
                // A list that was found empty need not be read.
                let have = if change.from.as_array().is_some_and(Vec::is_empty) {
                    Vec::new()
                } else {
                    lists::items_into(client, account_id, id, |item| item).await?
                };
                items::steps(&wanted, &have)
            }
            None => Vec::new(),
        };
        if !steps.is_empty() {
            return Ok(Started::UnderWay(send(client, account_id, id, &steps).await?));
        }
        let list = match described {
            Some(list) => list,
            None => lists::get(client, account_id, id).await?,
        };
        // Nothing has to be written: the items are as they should be.
        let content = desired.body.get("items").cloned();
        Ok(Started::Stored(Box::new(remote(list, content, asked).into())))
    }

    async fn resume(&self, client: &Client, site: Site<'_>, id: &str, rest: &Value) -> Result<UnderWay, Error> {
        let steps: Vec<Step> = serde::Deserialize::deserialize(rest)
            .map_err(|error| Error::Refused(format!("what is left to write cannot be read: {error}")))?;
        send(client, site.scope, id, &steps).await
    }

    async fn progress(&self, client: &Client, account_id: &str, operation: &str) -> Result<Progress, Error> {
        let operation = lists::operation(client, account_id, operation).await?;
        Ok(match operation.status {
            OperationStatus::Pending | OperationStatus::Running => Progress::Running,
            OperationStatus::Completed => Progress::Done,
            OperationStatus::Failed => Progress::Failed(
                operation
                    .error
                    .unwrap_or_else(|| "Cloudflare gives no reason".to_owned()),
            ),
        })
    }
}
