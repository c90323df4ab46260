//! The status of a resource as a value: built in one place, written only when it differs.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{clock::whole_seconds, object::Object, reason::Reason};

/// The longest message of a condition, in characters.
const MESSAGE_LIMIT: usize = 1024;

/// The `Ready` condition to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its status. None keeps the one it has (a pause does not turn it).
    pub status: Option<bool>,
    /// Its reason.
    pub reason: Reason,
    /// Its message.
    pub message: String,
}

impl Ready {
    /// `True`.
    pub fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: Some(true),
            reason,
            message: message.into(),
        }
    }

    /// `False`.
    pub fn no(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: Some(false),
            reason,
            message: message.into(),
        }
    }

    /// A new reason, the status it had.
    pub fn kept(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: None,
            reason,
            message: message.into(),
        }
    }
}

/// Sets the `Ready` condition in `status`. `lastTransitionTime` moves only when its status does.
pub fn set_ready(status: &mut Map<String, Value>, object: &Object, ready: &Ready, now: Timestamp) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let mut others: Vec<Value> = conditions.as_array().cloned().unwrap_or_default();
    let old = others
        .iter()
        .position(|it| it.get("type").and_then(Value::as_str) == Some("Ready"))
        .map(|at| others.remove(at));
    let text = |field: &str| {
        old.as_ref()
            .and_then(|it| it.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let value = match ready.status {
        Some(true) => "True",
        Some(false) => "False",
        None => match text("status") {
            "" => "Unknown",
            kept => kept,
        },
    };
    let since = if text("status") == value && !text("lastTransitionTime").is_empty() {
        text("lastTransitionTime").to_owned()
    } else {
        whole_seconds(now).to_string()
    };
    others.push(json!({
        "type": "Ready",
        "status": value,
        "reason": ready.reason.as_str(),
        "message": clip(&ready.message),
        "observedGeneration": object.generation,
        "lastTransitionTime": since,
    }));
    others.sort_by(|a, b| a["type"].as_str().cmp(&b["type"].as_str()));
    *conditions = Value::Array(others);
}

fn clip(message: &str) -> String {
    let flat = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= MESSAGE_LIMIT {
        return flat;
    }
    format!("{}…", flat.chars().take(MESSAGE_LIMIT - 1).collect::<String>())
}

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; none when they are equal.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (field, value) in new {
        match old.get(field) {
            None => {
                patch.insert(field.clone(), value.clone());
            }
            Some(before) => {
                if let Some(change) = merge_patch(before, value) {
                    patch.insert(field.clone(), change);
                }
            }
        }
    }
    for field in old.keys().filter(|field| !new.contains_key(*field)) {
        patch.insert(field.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Json, TextMap},
        object::ObjectKey,
    };

    fn object(status: Value) -> Object {
        Object {
            key: ObjectKey::new("Thing", None, "a"),
            uid: "u".into(),
            resource_version: "1".into(),
            generation: 7,
            created: None,
            deleting: false,
            finalizers: vec![],
            labels: TextMap::default(),
            annotations: TextMap::default(),
            spec: Json::default(),
            status: status.into(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn write(object: &Object, ready: &Ready, now: Timestamp) -> Value {
        let mut status = object.status.fields();
        set_ready(&mut status, object, ready, now);
        Value::Object(status)
    }

    #[test]
    fn the_same_condition_later_is_no_change() {
        let first = write(&object(json!({})), &Ready::yes(Reason::SYNCED, "ok"), at(100));
        let again = write(&object(first.clone()), &Ready::yes(Reason::SYNCED, "ok"), at(200));
        assert_eq!(merge_patch(&first, &again), None);
    }

    #[test]
    fn transition_time_moves_with_the_status_only() {
        let first = write(&object(json!({})), &Ready::no(Reason::API_ERROR, "a"), at(100));
        let other_reason = write(&object(first.clone()), &Ready::no(Reason::RATE_LIMITED, "b"), at(200));
        assert_eq!(
            other_reason["conditions"][0]["lastTransitionTime"],
            first["conditions"][0]["lastTransitionTime"]
        );
        let flipped = write(&object(first), &Ready::yes(Reason::SYNCED, ""), at(300));
        assert_eq!(flipped["conditions"][0]["lastTransitionTime"], at(300).to_string());
        assert_eq!(flipped["conditions"][0]["observedGeneration"], 7);
    }

    #[test]
    fn a_pause_keeps_the_status() {
        let first = write(&object(json!({})), &Ready::yes(Reason::SYNCED, ""), at(100));
        let paused = write(&object(first), &Ready::kept(Reason::PAUSED, "p"), at(200));
        assert_eq!(paused["conditions"][0]["status"], "True");
        assert_eq!(paused["conditions"][0]["reason"], "Paused");
        let fresh = write(&object(json!({})), &Ready::kept(Reason::PAUSED, "p"), at(200));
        assert_eq!(fresh["conditions"][0]["status"], "Unknown");
    }

    #[test]
    fn a_foreign_condition_is_kept() {
        let with = object(json!({"conditions": [{"type": "Other", "status": "True"}]}));
        let status = write(&with, &Ready::yes(Reason::SYNCED, ""), at(1));
        assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn merge_patch_removes_what_is_gone() {
        let patch = merge_patch(&json!({"a": 1, "b": {"c": 2, "d": 3}}), &json!({"b": {"c": 2}}));
        assert_eq!(patch, Some(json!({"a": null, "b": {"d": null}})));
    }
}
