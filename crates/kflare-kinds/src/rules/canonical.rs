//! Parameters of actions in canonical form: two spellings of one thing become one value.
//!
//! - Sets are sorted, and what is keyed by a name of the user's is a list sorted by that name, so that a name which only
//!   Cloudflare has is a difference.
//! - Numbers are whole; empty lists and objects are absent.
//! - What Cloudflare adds of itself (`version` of a managed ruleset, `preserve_query_string`) is left out or filled in.
//!
//! `null` in what the spec asks for stays: it is compared, and makes a value that only Cloudflare has a difference.

use serde_json::{Map, Value, json};

/// The canonical form of parameters, those of the spec and those of an answer alike.
pub fn parameters(action: &str, given: &Value) -> Value {
    let mut value = normal(given);
    let Value::Object(fields) = &mut value else {
        return value;
    };
    match action {
        "skip" => {
            for field in ["phases", "products"] {
                sort(fields.get_mut(field));
            }
        }
        "execute" => execute(fields),
        "rewrite" => named(fields.get_mut("headers")),
        "redirect" => {
            if let Some(Value::Object(target)) = fields.get_mut("from_value") {
                target.entry("preserve_query_string").or_insert(Value::Bool(false));
            }
        }
        "set_cache_settings" => cache(fields),
        _ => {}
    }
    value
}

/// The canonical form of what is counted.
pub fn ratelimit(given: &Value) -> Value {
    let mut value = normal(given);
    sort(value.get_mut("characteristics"));
    value
}

/// Canonical parameters as Cloudflare takes them. None: there are none.
pub fn request(action: &str, canonical: &Value) -> Option<Value> {
    let mut value = canonical.clone();
    match action {
        "rewrite" => by_name(value.get_mut("headers")),
        "set_cache_settings" => by_name(value.get_mut("vary").and_then(|vary| vary.get_mut("headers"))),
        _ => {}
    }
    without_nulls(value)
}

/// `value` without `null`, at any depth, and without objects that have nothing left.
pub fn without_nulls(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_nulls(value)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_nulls).collect()),
        other => Some(other),
    }
}

/// Whole numbers, no empty lists and objects, and no `null` within lists.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => items.iter().filter_map(|item| without_nulls(normal(item))).collect(),
        Value::Object(fields) if fields.is_empty() => Value::Null,
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), normal(value)))
            .collect(),
        other => other.clone(),
    }
}

/// A number without a fraction, whatever it is written as.
#[allow(
    clippy::cast_possible_truncation,
    reason = "only numbers that are whole and small are taken"
)]
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < EXACT);
    number.as_i64().or_else(|| float.map(|it| it as i64))
}

#[allow(clippy::needless_pass_by_value, reason = "as look-ups give it")]
fn sort(list: Option<&mut Value>) {
    if let Some(Value::Array(items)) = list {
        items.sort_by_key(ToString::to_string);
        items.dedup();
    }
}

/// Members of an object as a list, each with its name, in the order of the names.
fn named(object: Option<&mut Value>) {
    let Some(value) = object else { return };
    if let Value::Object(members) = value {
        *value = members
            .iter()
            .filter_map(|(name, member)| {
                let mut member = without_nulls(member.clone())?;
                member.as_object_mut()?.insert("name".to_owned(), json!(name));
                Some(member)
            })
            .collect();
    }
}

/// The way back from [`named`].
fn by_name(list: Option<&mut Value>) {
    let Some(value) = list else { return };
    if let Value::Array(members) = value {
        *value = members
            .iter()
            .filter_map(|member| {
                let mut member = member.as_object()?.clone();
                let name = member.remove("name")?;
                Some((name.as_str()?.to_owned(), Value::Object(member)))
            })
            .collect::<Map<_, _>>()
            .into();
    }
}

fn only(fields: &mut Map<String, Value>, names: &[&str]) {
    fields.retain(|name, _| names.contains(&name.as_str()));
}

fn execute(fields: &mut Map<String, Value>) {
    // Cloudflare tells its version too.
    only(fields, &["id", "overrides"]);
    let Some(Value::Object(overrides)) = fields.get_mut("overrides") else {
        return;
    };
    let parts: [(&str, &[&str]); 2] = [
        ("categories", &["category", "action", "enabled", "sensitivity_level"]),
        (
            "rules",
            &["id", "action", "enabled", "score_threshold", "sensitivity_level"],
        ),
    ];
    for (part, names) in parts {
        let items = overrides.get_mut(part).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            if let Value::Object(item) = item {
                only(item, names);
            }
        }
    }
    // A rule is overridden once; of categories the order may tell which of two is meant.
    let rules = overrides.get_mut("rules").and_then(Value::as_array_mut);
    if let Some(rules) = rules {
        rules.sort_by_key(|rule| rule["id"].to_string());
    }
}

fn cache(fields: &mut Map<String, Value>) {
    sort(fields.get_mut("additional_cacheable_ports"));
    if let Some(Value::Object(vary)) = fields.get_mut("vary") {
        named(vary.get_mut("headers"));
    }
    let Some(key) = fields.get_mut("cache_key").and_then(|key| key.get_mut("custom_key")) else {
        return;
    };
    for (part, list) in [
        ("header", "include"),
        ("header", "check_presence"),
        ("cookie", "include"),
        ("cookie", "check_presence"),
    ] {
        sort(key.get_mut(part).and_then(|part| part.get_mut(list)));
    }
    for part in ["include", "exclude"] {
        if let Some(parameters) = key.get_mut("query_string").and_then(|query| query.get_mut(part)) {
            query_parameters(parameters);
        }
    }
}

/// Parameters of a query are answered as `{"list": […]}`, as `{"all": true}`, or as a bare list in which `*` means all.
fn query_parameters(parameters: &mut Value) {
    let list = match &mut *parameters {
        Value::Array(items) => Value::Array(std::mem::take(items)),
        Value::Object(fields) if fields.get("all") == Some(&Value::Bool(true)) => json!(["*"]),
        Value::Object(fields) => fields.remove("list").unwrap_or_default(),
        _ => return,
    };
    *parameters = if list == json!(["*"]) {
        json!({ "all": true, "list": null })
    } else {
        let mut list = list;
        sort(Some(&mut list));
        json!({ "all": null, "list": list })
    };
}
