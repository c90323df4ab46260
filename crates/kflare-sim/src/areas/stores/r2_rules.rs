//! CORS and lifecycle rules of buckets: what is taken, and how it is shown.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::r2::not_well_formed;
use crate::config::LifecycleForm;
use crate::envelope::Refusal;

/// The rule that a new bucket has. Its conditions lack the prefix that the API description demands (reported by users).
pub(super) fn default_rule() -> Value {
    json!({
        "id": "Default Multipart Abort Rule",
        "enabled": true,
        "conditions": {},
        "abortMultipartUploadsTransition": { "condition": { "type": "Age", "maxAge": 604_800 } },
    })
}

/// What a CORS rule may hold; the names of S3 are refused (reported by users).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "read to be checked")]
struct CorsRule {
    id: Option<String>,
    allowed: Allowed,
    expose_headers: Option<Vec<String>>,
    max_age_seconds: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to be checked")]
struct Allowed {
    methods: Vec<Method>,
    origins: Vec<String>,
    headers: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    Get,
    Put,
    Post,
    Delete,
    Head,
}

/// The rules in a body, if they are what CORS rules may be.
pub(super) fn cors(body: &Map<String, Value>) -> Result<Vec<Value>, Refusal> {
    let rules = rules(body)?;
    for rule in &rules {
        let read: CorsRule = read(rule)?;
        if read.allowed.methods.is_empty() || read.allowed.origins.is_empty() {
            return Err(not_well_formed("allowed"));
        }
        // Cloudflare documents the limit; that it is enforced is unproven.
        if read.max_age_seconds.is_some_and(|seconds| seconds > 86_400) {
            return Err(not_well_formed("maxAgeSeconds"));
        }
    }
    Ok(rules)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "read to be checked")]
struct LifecycleRule {
    id: String,
    enabled: bool,
    conditions: Conditions,
    delete_objects_transition: Option<Transition>,
    abort_multipart_uploads_transition: Option<Transition>,
    #[serde(default)]
    storage_class_transitions: Vec<StorageClassTransition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to be checked")]
struct Conditions {
    prefix: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transition {
    condition: Option<Condition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "read to be checked")]
struct StorageClassTransition {
    condition: Condition,
    storage_class: InfrequentAccess,
}

#[derive(Deserialize)]
enum InfrequentAccess {
    InfrequentAccess,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
#[expect(dead_code, reason = "read to be checked")]
enum Condition {
    #[serde(rename_all = "camelCase")]
    Age {
        max_age: u64,
    },
    Date {
        date: Timestamp,
    },
}

/// Rules of a bucket (Cloudflare documents 1,000 as the most).
const LIFECYCLE_LIMIT: usize = 1000;

/// The rules in a body, if they are what lifecycle rules may be.
pub(super) fn lifecycle(body: &Map<String, Value>) -> Result<Vec<Value>, Refusal> {
    let rules = rules(body)?;
    let mut ids = BTreeSet::new();
    for rule in &rules {
        let read: LifecycleRule = read(rule)?;
        // Unproven.
        let aborts_on_a_date = read
            .abort_multipart_uploads_transition
            .and_then(|transition| transition.condition)
            .is_some_and(|condition| matches!(condition, Condition::Date { .. }));
        if aborts_on_a_date || read.id.is_empty() || !ids.insert(read.id) {
            return Err(not_well_formed("rules"));
        }
    }
    if rules.len() > LIFECYCLE_LIMIT {
        return Err(not_well_formed("too many rules"));
    }
    Ok(rules)
}

fn rules(body: &Map<String, Value>) -> Result<Vec<Value>, Refusal> {
    match body.get("rules") {
        Some(Value::Array(rules)) => Ok(rules.clone()),
        _ => Err(not_well_formed("rules")),
    }
}

fn read<T: for<'de> Deserialize<'de>>(rule: &Value) -> Result<T, Refusal> {
    T::deserialize(rule).map_err(|error| not_well_formed(&error.to_string()))
}

/// Lifecycle rules as the API shows them.
pub(super) fn shown(mut rules: Vec<Value>, form: LifecycleForm) -> Vec<Value> {
    if form == LifecycleForm::Padded {
        for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
            for transition in ["deleteObjectsTransition", "abortMultipartUploadsTransition"] {
                rule.entry(transition).or_insert_with(|| json!({}));
            }
            rule.entry("storageClassTransitions").or_insert_with(|| json!([]));
        }
    }
    rules
}
