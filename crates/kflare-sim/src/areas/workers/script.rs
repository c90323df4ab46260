//! Workers as a whole: listing, deleting, and how one is shown.

use serde_json::{Map, Value, json};

use super::code;
use super::{binding, named};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::{Script, Syntax};
use crate::time::micros;

#[allow(clippy::unnecessary_wraps)] // a handler
/// Every Worker of the account, without bindings, on one page without `result_info` (seen live).
pub(super) fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let scripts = call.world.scripts(call.param("account_id"), call.view);
    Ok(Reply::object(scripts.iter().map(|script| shown(script)).collect()))
}

/// Without `force` refused while another Worker calls it. Routes that lead to it go with it. The answer is the tag (seen live).
pub(super) fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    let callers: Vec<String> = call
        .world
        .scripts(&script.account_id, None)
        .iter()
        .filter(|other| other.name != script.name && binding::binds_service(other, &script.name))
        .map(|other| other.name.clone())
        .collect();
    if !callers.is_empty() && call.query.get("force") != Some("true") {
        let text = format!(
            "Cannot delete this Worker: it is referenced by service bindings of {}.",
            callers.join(", ")
        );
        return Err(Refusal::new(400, 10_142, text));
    }
    call.world.remove_script(&script.account_id, &script.name, call.now);
    Ok(Reply::object(json!({ "id": script.tag })))
}

/// An entry of the list. The empty deployment, the nulls and what is missing here but not elsewhere were seen live.
pub(crate) fn shown(script: &Script) -> Value {
    let mut shown = common(script);
    shown.insert("deployment_id".into(), json!(""));
    shown.insert("routes".into(), Value::Null);
    if let Some(observability) = &script.observability {
        shown.insert("observability".into(), observed(observability));
    }
    if let Some(placement) = &script.placement {
        shown.insert("placement".into(), placement.clone());
    }
    Value::Object(shown)
}

/// The answer to an upload.
pub(super) fn uploaded(script: &Script) -> Value {
    let mut shown = common(script);
    let (Syntax::Modules(entry) | Syntax::ServiceWorker(entry)) = &script.syntax;
    shown.insert("entry_point".into(), json!(entry));
    shown.insert("deployment_id".into(), json!(script.version));
    // A measurement; Cloudflare answers 1 or 2 for small Workers.
    shown.insert("startup_time_ms".into(), json!(1));
    if let Some(Value::Object(sent)) = &script.observability {
        shown.insert("observability".into(), with_nulls(sent));
    }
    Value::Object(shown)
}

fn common(script: &Script) -> Map<String, Value> {
    let common = json!({
        "id": script.name,
        "tag": script.tag,
        "etag": script.etag,
        "created_on": micros(script.created_on),
        "modified_on": micros(script.modified_on),
        "tags": non_empty(&script.tags),
        "tail_consumers": non_empty(&script.tail_consumers),
        "logpush": script.logpush,
        "has_assets": false,
        "has_modules": matches!(script.syntax, Syntax::Modules(_)),
        "handlers": code::handlers(&script.syntax, &script.modules),
        "last_deployed_from": "api",
        "compatibility_date": script.compatibility_date,
        "usage_model": "standard",
    });
    let mut common = match common {
        Value::Object(common) => common,
        _ => Map::new(),
    };
    // The description has it here, and not among the settings.
    if let Some(tag) = &script.migration_tag {
        common.insert("migration_tag".into(), json!(tag));
    }
    common
}

/// Null for nothing, as uploads and the list have it.
fn non_empty(list: &[Value]) -> Option<&[Value]> {
    Some(list).filter(|list| !list.is_empty())
}

/// What an upload answers: unset fields of logs as null (seen live).
fn with_nulls(sent: &Map<String, Value>) -> Value {
    let mut shown = sent.clone();
    for part in ["logs"] {
        if let Some(Value::Object(fields)) = shown.get_mut(part) {
            for field in ["head_sampling_rate", "persist"] {
                fields.entry(field).or_insert(Value::Null);
            }
        }
    }
    Value::Object(shown)
}

/// Observability with the defaults that lists show (seen live).
pub(super) fn observed(sent: &Value) -> Value {
    let mut shown = sent.clone();
    if let Value::Object(fields) = &mut shown {
        fields.entry("redact_query_string").or_insert(json!(false));
        if let Some(Value::Object(logs)) = fields.get_mut("logs") {
            default(logs, "head_sampling_rate", json!(1));
            default(logs, "persist", json!(true));
        }
        fields
            .entry("traces")
            .or_insert(json!({ "enabled": false, "persist": true, "head_sampling_rate": 1 }));
    }
    shown
}

fn default(fields: &mut Map<String, Value>, key: &str, value: Value) {
    let field = fields.entry(key).or_insert(Value::Null);
    if field.is_null() {
        *field = value;
    }
}

/// Everything that is held of a Worker, secret texts and code included: for tests that run it.
pub(crate) fn revealed(script: &Script) -> Value {
    json!({
        "name": script.name,
        "syntax": script.syntax,
        "modules": script.modules,
        "bindings": script.bindings,
        "compatibility_date": script.compatibility_date,
        "compatibility_flags": script.compatibility_flags,
    })
}
