//! `.../settings`: what a version of a Worker is configured with.

use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

use super::binding::{self, Bound};
use super::upload::Inherit;
use super::{invalid, multipart, named, new_version, script};
use crate::config::BindingOrder;
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::Script;

pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    Ok(Reply::object(shown(&script, call.quirks.worker_bindings)))
}

/// Changes what the part `settings` names, and nothing else; bindings are replaced as a whole.
pub(super) fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let parts = multipart::parse(content_type.unwrap_or_default(), call.body);
    let parts = parts.ok_or_else(|| Refusal::new(400, 10_001, "Content-Type must be multipart/form-data"))?;
    let settings: Map<String, Value> = parts
        .iter()
        .find(|part| part.name == "settings")
        .and_then(|part| serde_json::from_slice(&part.body).ok())
        .ok_or_else(|| invalid("Invalid or missing settings"))?;
    let bindings = match settings.get("bindings") {
        None => None,
        sent => {
            let bound = Bound {
                world: call.world,
                account: &script.account_id,
                name: &script.name,
                classes: &script.classes,
                modules: &script.modules,
            };
            Some(binding::read(&bound, sent, Some(&script), Inherit::Lenient)?)
        }
    };
    let order = call.quirks.worker_bindings;
    let script = new_version(call, |script| {
        if let Some(bindings) = bindings {
            script.bindings = bindings;
        }
        apply(script, &settings);
    })?;
    Ok(Reply::object(shown(&script, order)))
}

fn apply(script: &mut Script, settings: &Map<String, Value>) {
    let optional = |value: &Value| Some(value.clone()).filter(|value| !value.is_null() && *value != json!({}));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for (key, value) in settings {
        match key.as_str() {
            "compatibility_date" => value
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut script.compatibility_date),
            "compatibility_flags" => script.compatibility_flags = list(value),
            "limits" => script.limits = optional(value),
            "placement" => script.placement = optional(value),
            "observability" => script.observability = optional(value),
            "logpush" => script.logpush = *value == Value::Bool(true),
            "tail_consumers" => script.tail_consumers = list(value),
            "tags" => script.tags = list(value),
            _ => {}
        }
    }
}

fn shown(script: &Script, order: BindingOrder) -> Value {
    let mut shown = Map::new();
    let mut put = |key: &str, value: Value| drop(shown.insert(key.to_owned(), value));
    put("bindings", binding::shown(&script.bindings, order).into());
    put("compatibility_date", json!(script.compatibility_date));
    put("compatibility_flags", json!(script.compatibility_flags));
    put("usage_model", json!("standard"));
    put("tags", json!(script.tags));
    put("tail_consumers", json!(script.tail_consumers));
    put("logpush", json!(script.logpush));
    put("placement", script.placement.clone().unwrap_or_else(|| json!({})));
    put("annotations", json!({ "workers/triggered_by": "upload" }));
    if let Some(limits) = &script.limits {
        put("limits", limits.clone());
    }
    if let Some(observability) = &script.observability {
        put("observability", script::observed(observability));
    }
    Value::Object(shown)
}
