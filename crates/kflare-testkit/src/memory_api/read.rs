//! Reading lists, page by page.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::core::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::refusal;
use super::resource::ResourceType;
use super::route::Query;
use super::selector::Selectors;
use super::store::{Key, Store};

/// Where the next page starts, and at which revision all pages are read.
#[derive(Serialize, Deserialize)]
struct Continue {
    rv: u64,
    namespace: String,
    name: String,
}

/// One page.
pub(super) struct Page {
    pub(super) items: Vec<Arc<Value>>,
    pub(super) revision: u64,
    more: Option<(String, usize)>,
}

impl Page {
    /// `metadata` of the list.
    pub(super) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some((token, remaining)) = &self.more {
            metadata["continue"] = json!(token);
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// Lists a collection. All pages show the state at the revision of the first, as with a real server; without
/// `resourceVersionMatch=Exact` the first page shows the newest state.
pub(super) fn list(
    store: &Store,
    resource: &ResourceType,
    namespace: Option<&str>,
    query: &Query,
) -> Result<Page, Box<Status>> {
    let selectors = Selectors::parse(query.get("labelSelector"), query.get("fieldSelector"))?;
    let asked = query.number("resourceVersion")?.filter(|&revision| revision != 0);
    let start = query.get("continue").map(decode).transpose()?;
    let revision = match (&start, asked) {
        (Some(start), _) => start.rv,
        (None, Some(exact)) if query.get("resourceVersionMatch") == Some("Exact") => exact,
        (None, Some(at_least)) if at_least > store.revision() => {
            return Err(refusal::too_new(at_least, store.revision()));
        }
        _ => store.revision(),
    };
    let collection = store
        .collection_at(&resource.qualified(), namespace, revision)
        .map_err(|status| {
            if start.is_some() && status.code == 410 {
                refusal::continue_expired()
            } else {
                status
            }
        })?;
    let after = start.map(|start| (start.namespace, start.name));
    let mut left = collection
        .into_iter()
        .filter(|(key, object)| {
            let unread = after
                .as_ref()
                .is_none_or(|(namespace, name)| (&key.namespace, &key.name) > (namespace, name));
            unread && selectors.match_object(object)
        })
        .peekable();
    let limit = query
        .number("limit")?
        .filter(|&limit| limit != 0)
        .and_then(|limit| usize::try_from(limit).ok());
    let mut items = Vec::new();
    let mut last: Option<Key> = None;
    while let Some((key, object)) = left.next_if(|_| limit.is_none_or(|limit| items.len() < limit)) {
        items.push(object);
        last = Some(key);
    }
    let remaining = left.count();
    let more = last
        .filter(|_| remaining > 0)
        .map(|key| (encode(revision, key), remaining));
    Ok(Page { items, revision, more })
}

fn encode(rv: u64, last: Key) -> String {
    let token = Continue {
        rv,
        namespace: last.namespace,
        name: last.name,
    };
    // A struct of strings and a number always serializes.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn decode(token: &str) -> Result<Continue, Box<Status>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| refusal::bad_request("continue key is not valid"))
}
