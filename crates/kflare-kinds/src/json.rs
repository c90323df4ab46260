//! What adapters do with JSON, whatever their kind.

use serde_json::{Map, Value};

/// The fields that are not null: Cloudflare and the specs leave out what is absent, and Cloudflare refuses null for it.
pub(crate) fn present(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}
