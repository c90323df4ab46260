//! `Queue`: a queue. Its name is what Workers are bound by, so the spec's cannot be changed; one that others changed is put back.

use async_trait::async_trait;
use kflare_api::{names, queue::QueueSpec};
use kflare_cloudflare::{
    Client, Error,
    endpoints::queues::{self, Queue},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored,
    errors::Class,
    kind::{ClaimNames, changed_fields},
    plan::FieldRules,
};
use serde_json::{Map, Value, json};

use super::{deleted, found, key, present, references};

/// There is no such queue.
const MISSING: i64 = 11_000;
/// The name is taken.
const EXISTS: i64 = 11_009;
/// A bucket sends its events to the queue.
const IN_USE: i64 = 11_017;
/// The name is none, or a setting is out of range: for the plan, too.
const INVALID: [i64; 2] = [11_003, 100_128];

const NAME: &str = "queue_name";
const JURISDICTION: &str = "jurisdiction";
const PAUSED: &str = "delivery_paused";
/// The settings, which stand beside the name here and in an object of their own at Cloudflare.
const SETTINGS: [&str; 3] = ["delivery_delay", "message_retention_period", PAUSED];

/// The adapter.
pub struct QueueAdapter {
    descriptor: KindDescriptor,
}

impl QueueAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "queueID".into(),
                    label: names::QUEUE_ID.into(),
                }),
                fields: FieldRules {
                    after_create: &[PAUSED],
                    untold: &[JURISDICTION],
                    // Nobody has seen what lists tell beside names, times and counts.
                    unlisted: &[SETTINGS[0], SETTINGS[1], SETTINGS[2], JURISDICTION],
                    ..FieldRules::default()
                },
                ..KindDescriptor::new("Queue", "queues", "Queue", "queues")
            },
        }
    }
}

fn remote(mut queue: Queue) -> Remote {
    let mut body = present(json!({ NAME: queue.queue_name, JURISDICTION: queue.jurisdiction }));
    let settings = SETTINGS
        .into_iter()
        .filter_map(|field| queue.settings.remove_entry(field));
    body.extend(settings);
    Remote {
        key: key(&queue.queue_name),
        body,
        created: queue.created_on,
        revision: queue.modified_on,
        metadata: present(json!({ "queueID": queue.queue_id })),
        id: queue.queue_id,
        ..Remote::default()
    }
}

/// The settings among these fields.
fn settings(fields: &Map<String, Value>) -> Map<String, Value> {
    let known = fields.iter().filter(|(field, _)| SETTINGS.contains(&field.as_str()));
    known.map(|(field, value)| (field.clone(), value.clone())).collect()
}

#[async_trait]
impl Adapter for QueueAdapter {
    type Spec = QueueSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &QueueSpec) -> Vec<Reference> {
        references(&spec.account_ref)
    }

    fn scope(&self, _spec: &QueueSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, spec: &QueueSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        let body = json!({
            NAME: spec.name,
            JURISDICTION: spec.jurisdiction,
            "delivery_delay": spec.delivery_delay_seconds,
            "message_retention_period": spec.message_retention_seconds,
            PAUSED: spec.delivery_paused,
        });
        Ok(Desired {
            key: key(&spec.name),
            exclusive: true,
            body: present(body),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        Ok(queues::list(client, account_id)
            .await?
            .into_iter()
            .map(remote)
            .collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let found = queues::find_by_name(client, account_id, &key.group).await?;
        Ok(found.into_iter().map(remote).collect())
    }

    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        Ok(found(queues::get(client, account_id, id).await, MISSING)?.map(remote))
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let mut settings = settings(&desired.body);
        settings.remove(PAUSED);
        let body = json!({
            NAME: desired.body.get(NAME),
            JURISDICTION: desired.body.get(JURISDICTION),
            "settings": (!settings.is_empty()).then_some(settings),
        });
        let queue = queues::create(client, site.scope, &Value::Object(present(body))).await?;
        Ok(remote(queue).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        let fields = changed_fields(desired, changes);
        let current = queues::get(client, site.scope, id).await?;
        let mut body = present(json!({ NAME: fields.get(NAME) }));
        let sent = settings(&fields);
        if !sent.is_empty() {
            // That a part of the settings leaves the others alone is not proven: they all go along.
            let mut all = current.settings.clone();
            all.extend(sent);
            body.insert("settings".to_owned(), Value::Object(all));
        }
        // The rest is as it was made; what is left of the difference is then shown as what Cloudflare did not take.
        let queue = if body.is_empty() {
            current
        } else {
            queues::patch(client, site.scope, id, &Value::Object(body)).await?
        };
        Ok(remote(queue).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        deleted(queues::delete(client, site.scope, id).await, MISSING)
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        let is_any = |codes: &[i64]| codes.iter().any(|code| error.has_code(*code));
        match error {
            _ if is_any(&[EXISTS]) => Some(Class::Exists),
            _ if is_any(&[IN_USE]) => Some(Class::Blocked(Reason::IN_USE)),
            _ if is_any(&INVALID) => Some(Class::Invalid(Reason::INVALID_SPEC)),
            _ => None,
        }
    }

    async fn deletion_warning(&self, _client: &Client, _account_id: &str, _id: &str) -> Option<String> {
        Some("every message that waits in the queue goes with it".to_owned())
    }
}
