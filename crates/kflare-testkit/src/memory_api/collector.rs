//! The garbage collector, as far as Secrets go: one whose owners are all gone is deleted, at once.

use serde_json::Value;

use super::store::{Key, Store};

/// The Secrets that nobody owns any more, now that the object with this UID is gone. Those with finalizers stay: nobody here
/// takes them off.
pub(super) fn orphans(store: &Store, gone: &str) -> Vec<(Key, Value)> {
    let was_the_last = |object: &Value| {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.is_some_and(|owners| {
            owners.iter().any(|owner| owner["uid"] == gone)
                && owners
                    .iter()
                    .all(|owner| !owner["uid"].as_str().is_some_and(|uid| store.has(uid)))
        })
    };
    store
        .collection("secrets", None)
        .filter(|(_, object)| was_the_last(object) && object.pointer("/metadata/finalizers").is_none())
        .map(|(key, object)| (key.clone(), Value::clone(object)))
        .collect()
}
