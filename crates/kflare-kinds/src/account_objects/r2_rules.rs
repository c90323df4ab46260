//! The rules of a bucket: from the spec to Cloudflare's form, and both into one that can be compared.

use std::collections::BTreeSet;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kflare_api::{
    r2_bucket::R2BucketSpec,
    r2_rules::{CorsRule, LifecycleRule},
};
use kflare_cloudflare::{
    Error,
    endpoints::r2::{self as endpoint, Allowed, Buckets},
};
use kflare_engine::{Change, Desired, SpecError};
use serde_json::{Map, Value, json};

/// CORS rules, in their order.
pub(super) const CORS: &str = "cors";
/// Lifecycle rules by id, but for the one that Cloudflare gives to new buckets.
pub(super) const LIFECYCLE: &str = "lifecycle";
/// The rule of the id that Cloudflare gives to new buckets, if there is one: a list of at most one. Of ours only if the spec
/// has a rule of that id.
pub(super) const DEFAULT_LIFECYCLE: &str = "defaultLifecycleRule";

const DEFAULT_ID: &str = "Default Multipart Abort Rule";

/// The rules that the spec asks for.
pub(super) fn desired(spec: &R2BucketSpec) -> Result<Map<String, Value>, SpecError> {
    let mut fields = Map::new();
    if let Some(rules) = &spec.cors {
        let rules: Vec<Value> = rules.iter().map(|rule| canonical_cors(wire_cors(rule))).collect();
        fields.insert(CORS.to_owned(), rules.into());
    }
    if let Some(rules) = &spec.lifecycle {
        let rules: Result<Vec<Value>, SpecError> = rules
            .iter()
            .enumerate()
            .map(|(at, rule)| wire_lifecycle(rule, at))
            .collect();
        let mut split = split(&rules?);
        if split[DEFAULT_LIFECYCLE].as_array().is_some_and(Vec::is_empty) {
            split.remove(DEFAULT_LIFECYCLE);
        }
        fields.extend(split);
    }
    Ok(fields)
}

/// The rules of a bucket that was just made, as far as they are compared: none were set, and the one that it came with is
/// Cloudflare's.
pub(super) fn of_new_bucket() -> Map<String, Value> {
    present_rules(Vec::new(), &[])
}

/// The rules of a bucket: two reads.
pub(super) async fn read(buckets: Buckets<'_>, name: &str) -> Result<Map<String, Value>, Error> {
    let cors = buckets.cors(name).await?;
    let lifecycle = buckets.lifecycle(name).await?;
    Ok(present_rules(cors, &lifecycle))
}

fn present_rules(cors: Vec<endpoint::CorsRule>, lifecycle: &[Value]) -> Map<String, Value> {
    let mut fields = split(lifecycle);
    fields.insert(CORS.to_owned(), cors.into_iter().map(canonical_cors).collect());
    fields
}

/// Writes the rules that differ: each list as a whole, because Cloudflare takes no parts.
pub(super) async fn write(
    buckets: Buckets<'_>,
    name: &str,
    desired: &Desired,
    changes: &[Change],
) -> Result<(), Error> {
    let differs = |field: &str| changes.iter().any(|change| change.path == field);
    let rules = |field: &str| desired.body.get(field).and_then(Value::as_array).cloned();
    if differs(CORS) {
        let rules = rules(CORS).unwrap_or_default();
        if rules.is_empty() {
            buckets.delete_cors(name).await?;
        } else {
            buckets.put_cors(name, &rules).await?;
        }
    }
    if differs(LIFECYCLE) || differs(DEFAULT_LIFECYCLE) {
        let mut all = rules(LIFECYCLE).unwrap_or_default();
        match rules(DEFAULT_LIFECYCLE) {
            Some(ours) => all.extend(ours),
            // Not ours: it stays as it is, whatever it says by now.
            None => all.extend(buckets.lifecycle(name).await?.into_iter().filter(is_default)),
        }
        buckets.put_lifecycle(name, &all).await?;
    }
    Ok(())
}

/// A rule of the spec in Cloudflare's form.
fn wire_cors(rule: &CorsRule) -> endpoint::CorsRule {
    let method = |method| match serde_json::to_value(method) {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    };
    endpoint::CorsRule {
        allowed: Allowed {
            origins: rule.allowed_origins.clone(),
            methods: rule.allowed_methods.iter().filter_map(method).collect(),
            headers: rule.allowed_headers.clone(),
        },
        expose_headers: rule.expose_headers.clone(),
        max_age_seconds: rule.max_age_seconds.map(i64::from),
    }
}

/// A CORS rule as it is compared, and sent: its lists are sets, and the case of headers means nothing.
fn canonical_cors(rule: endpoint::CorsRule) -> Value {
    let set = |values: Vec<String>| {
        values
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let folded = |values: Vec<String>| set(values.iter().map(|value| value.to_ascii_lowercase()).collect());
    let rule = endpoint::CorsRule {
        allowed: Allowed {
            origins: set(rule.allowed.origins),
            methods: set(rule.allowed.methods),
            headers: folded(rule.allowed.headers),
        },
        expose_headers: folded(rule.expose_headers),
        max_age_seconds: rule.max_age_seconds,
    };
    json!(rule)
}

/// A rule of the spec in Cloudflare's form: ages in seconds, days as their first moment.
fn wire_lifecycle(rule: &LifecycleRule, at: usize) -> Result<Value, SpecError> {
    let wrong = |field: &str, why: String| SpecError::new(format!("spec.lifecycle[{at}].{field}"), why);
    let age = |field: &str, text: &Option<String>| {
        let seconds = text.as_deref().map(|text| {
            seconds(text).ok_or_else(|| {
                wrong(
                    field,
                    format!("{text:?} is no age: write a number and s, m, h or d, such as 30d"),
                )
            })
        });
        seconds
            .transpose()
            .map(|age| age.map(|seconds| json!({ "type": "Age", "maxAge": seconds })))
    };
    let day = |field: &str, text: &Option<String>| {
        let day = text.as_deref().map(|text| {
            midnight(text).ok_or_else(|| wrong(field, format!("{text:?} is no day: write one such as 2027-01-31")))
        });
        day.transpose()
            .map(|day| day.map(|at| json!({ "type": "Date", "date": at.to_string() })))
    };
    let delete = age("deleteAfter", &rule.delete_after)?.or(day("deleteOn", &rule.delete_on)?);
    let abort = age("abortMultipartUploadsAfter", &rule.abort_multipart_uploads_after)?;
    let cool = age("infrequentAccessAfter", &rule.infrequent_access_after)?
        .or(day("infrequentAccessOn", &rule.infrequent_access_on)?);
    let cool = cool.map(|condition| json!([{ "condition": condition, "storageClass": "InfrequentAccess" }]));
    let transition = |condition: Option<Value>| condition.map(|condition| json!({ "condition": condition }));
    Ok(json!({
        "id": rule.id,
        "enabled": rule.enabled.unwrap_or(true),
        "conditions": { "prefix": rule.prefix.as_deref().unwrap_or_default() },
        "deleteObjectsTransition": transition(delete),
        "abortMultipartUploadsTransition": transition(abort),
        "storageClassTransitions": cool,
    }))
}

/// An age such as `30d` in seconds.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn midnight(text: &str) -> Option<Timestamp> {
    let day: Date = text.parse().ok()?;
    day.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Lifecycle rules as they are compared, and sent: by id, and Cloudflare's own apart.
fn split(rules: &[Value]) -> Map<String, Value> {
    let mut rules: Vec<Value> = rules.iter().map(canonical_lifecycle).collect();
    rules.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
    let (default, rules): (Vec<Value>, Vec<Value>) = rules.into_iter().partition(is_default);
    Map::from_iter([
        (LIFECYCLE.to_owned(), rules.into()),
        (DEFAULT_LIFECYCLE.to_owned(), default.into()),
    ])
}

fn is_default(rule: &Value) -> bool {
    rule["id"] == DEFAULT_ID
}

/// One rule: what Cloudflare fills in and leaves empty is dropped, times are written in one way.
fn canonical_lifecycle(rule: &Value) -> Value {
    let mut canonical = json!({
        "id": rule["id"],
        "enabled": rule["enabled"].as_bool().unwrap_or(true),
        "conditions": { "prefix": rule["conditions"]["prefix"].as_str().unwrap_or_default() },
    });
    for transition in ["deleteObjectsTransition", "abortMultipartUploadsTransition"] {
        if let Some(condition) = canonical_condition(&rule[transition]["condition"]) {
            canonical[transition] = json!({ "condition": condition });
        }
    }
    let classes = rule["storageClassTransitions"].as_array().into_iter().flatten();
    let mut classes: Vec<Value> = classes
        .filter_map(|transition| {
            let condition = canonical_condition(&transition["condition"])?;
            Some(json!({ "condition": condition, "storageClass": transition["storageClass"] }))
        })
        .collect();
    classes.sort_by_key(Value::to_string);
    if !classes.is_empty() {
        canonical["storageClassTransitions"] = classes.into();
    }
    canonical
}

fn canonical_condition(condition: &Value) -> Option<Value> {
    match condition["type"].as_str()? {
        "Date" => {
            let at = condition["date"].as_str()?;
            // Without a time it is the first moment of the day.
            let at = at
                .parse()
                .ok()
                .or_else(|| midnight(at))
                .map_or_else(|| at.to_owned(), |at: Timestamp| at.to_string());
            Some(json!({ "type": "Date", "date": at }))
        }
        kind => {
            let age = &condition["maxAge"];
            // Numbers come with and without a point.
            #[allow(clippy::cast_possible_truncation, reason = "ages are whole seconds")]
            let whole = age.as_i64().or_else(|| age.as_f64().map(|age| age as i64));
            Some(json!({ "type": kind, "maxAge": whole }))
        }
    }
}

#[cfg(test)]
mod tests;
