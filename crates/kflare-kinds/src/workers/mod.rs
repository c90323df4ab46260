//! Workers and the routes that lead to them.

mod bindings;
mod content;
pub mod route;
pub mod script;
mod settings;

use serde_json::{Map, Value};

/// The fields that are not null.
fn present(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}
