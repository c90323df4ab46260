//! Lists of an account, which rules use as `$name`.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Client, Error, Paging, Request};

/// A list, without its items.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct List {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The name, by which rules refer to it.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// What it holds: `ip`, `redirect`, `hostname` or `asn`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub kind: String,
    /// What it is for. Cloudflare leaves it out for none.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub description: String,
    /// How many items it has.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub num_items: u64,
    /// How many rules use it; while there are any it cannot be deleted.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub num_referencing_filters: u64,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_on: Option<Timestamp>,
    /// When it or its items last changed, in whole seconds.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub modified_on: Option<Timestamp>,
}

/// An item of a list of addresses. Of what belongs to other kinds of lists Cloudflare may send empty objects, which are left
/// out here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Item {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The address or network, in the form that Cloudflare keeps. Empty in items of other kinds of lists.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub ip: String,
    /// The comment. Cloudflare sends null, nothing or an empty text for none.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub comment: String,
}

/// An item to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewItem {
    /// The address or network.
    pub ip: String,
    /// The comment, of at most 500 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
}

/// An operation on items, which goes on after the call that asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Operation {
    /// The id.
    pub id: String,
    /// How far it is.
    pub status: OperationStatus,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationStatus {
    /// It waits for its turn.
    Pending,
    /// Everything is done.
    Completed,
    /// It ended with an error.
    Failed,
    /// It is under way. States that Cloudflare may add count as this.
    #[serde(other)]
    Running,
}

#[derive(Deserialize)]
struct Accepted {
    operation_id: String,
}

#[derive(Serialize)]
struct ItemIds<'a> {
    items: Vec<ItemId<'a>>,
}

#[derive(Serialize)]
struct ItemId<'a> {
    id: &'a str,
}

const LISTS: &str = "/accounts/{account_id}/rules/lists";
const LIST: &str = "/accounts/{account_id}/rules/lists/{list_id}";
const ITEMS: &str = "/accounts/{account_id}/rules/lists/{list_id}/items";
const OPERATION: &str = "/accounts/{account_id}/rules/lists/bulk_operations/{operation_id}";

/// Rows of a page of items: the most that Cloudflare gives.
const PER_PAGE: u32 = 500;

/// Every list of an account, of all kinds, without items. One call.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<List>, Error> {
    client
        .list_pages(Request::get(LISTS, &[account_id]), Paging::Single)
        .await
}

/// One list. A missing one is 404 with code 10001.
pub async fn get(client: &Client, account_id: &str, list_id: &str) -> Result<List, Error> {
    client.call(Request::get(LIST, &[account_id, list_id])).await
}

/// Makes an empty list. A name that is taken is refused with code 10021.
pub async fn create(client: &Client, account_id: &str, body: &Value) -> Result<List, Error> {
    client.call(Request::post(LISTS, &[account_id]).json(body)).await
}

/// Sets the description of a list: all that can be changed of it.
pub async fn describe(client: &Client, account_id: &str, list_id: &str, description: &str) -> Result<List, Error> {
    let body = serde_json::json!({ "description": description });
    client
        .call(Request::put(LIST, &[account_id, list_id]).json(&body))
        .await
}

/// Deletes a list with its items. One that rules use is refused with code 10031.
pub async fn delete(client: &Client, account_id: &str, list_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(LIST, &[account_id, list_id]))
        .await
        .map(drop)
}

/// Every item of a list, each turned into what is wanted of it. One call for 500 items. See [`Client::list_pages_into`].
pub async fn items_into<T>(
    client: &Client,
    account_id: &str,
    list_id: &str,
    into: impl FnMut(Item) -> T + Send,
) -> Result<Vec<T>, Error> {
    let request = Request::get(ITEMS, &[account_id, list_id]);
    client
        .list_pages_into(request, Paging::Cursor { per_page: PER_PAGE }, into)
        .await
}

/// Asks for items to be added; those that are there get the comment. Gives the id of the operation.
///
/// While another operation of the account is under way, the three writes of items are refused with 429, which says nothing
/// about the credential: see [`Request::busy_is_429`].
pub async fn add_items(client: &Client, account_id: &str, list_id: &str, items: &[NewItem]) -> Result<String, Error> {
    write(client, Request::post(ITEMS, &[account_id, list_id]).json(items)).await
}

/// Asks for these items to take the place of all there are. Gives the id of the operation. See [`add_items`].
pub async fn replace_items(
    client: &Client,
    account_id: &str,
    list_id: &str,
    items: &[NewItem],
) -> Result<String, Error> {
    write(client, Request::put(ITEMS, &[account_id, list_id]).json(items)).await
}

/// Asks for items to be removed, by id; at least one. Gives the id of the operation. See [`add_items`].
pub async fn remove_items(client: &Client, account_id: &str, list_id: &str, ids: &[String]) -> Result<String, Error> {
    let items = ids.iter().map(|id| ItemId { id }).collect();
    let request = Request::delete(ITEMS, &[account_id, list_id]).json(&ItemIds { items });
    write(client, request).await
}

async fn write(client: &Client, request: Request) -> Result<String, Error> {
    let accepted: Accepted = client.call(request.busy_is_429()).await?;
    Ok(accepted.operation_id)
}

/// How far an operation is. A missing one is 404 with code 10001.
pub async fn operation(client: &Client, account_id: &str, operation_id: &str) -> Result<Operation, Error> {
    client.call(Request::get(OPERATION, &[account_id, operation_id])).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Field case 102.
    #[test]
    fn what_belongs_to_other_kinds_of_lists_is_left_out() {
        let padded = json!({"id": "i1", "ip": "192.0.2.1", "hostname": {}, "redirect": {}, "comment": ""});
        let plain = json!({"id": "i1", "ip": "192.0.2.1"});
        let read = |value| serde_json::from_value::<Item>(value).unwrap();
        assert_eq!(read(padded), read(plain));
    }

    #[test]
    fn a_new_item_has_a_comment_only_if_there_is_one() {
        let item = |comment: &str| NewItem {
            ip: "192.0.2.1".to_owned(),
            comment: comment.to_owned(),
        };
        assert_eq!(serde_json::to_value(item("")).unwrap(), json!({"ip": "192.0.2.1"}));
        assert_eq!(
            serde_json::to_value(item("home")).unwrap(),
            json!({"ip": "192.0.2.1", "comment": "home"})
        );
    }

    #[test]
    fn a_state_of_an_operation_that_is_not_known_is_not_an_end() {
        let status = |text: &str| serde_json::from_value::<OperationStatus>(json!(text)).unwrap();
        assert_eq!(status("pending"), OperationStatus::Pending);
        assert_eq!(status("failed"), OperationStatus::Failed);
        assert_eq!(status("queued"), OperationStatus::Running);
    }
}
