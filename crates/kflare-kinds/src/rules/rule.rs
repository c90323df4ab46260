//! A rule in canonical form, and the mark by which kflare knows its own.

use kflare_cloudflare::endpoints::rulesets::{self, Rule, Ruleset};
use kflare_engine::{
    Desired, Listing, NaturalKey, Remote,
    kind::Position,
    object::ObjectKey,
    plan::{FieldRules, POSITION},
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Action, canonical};

/// What the marks of kflare begin with.
const MARK: &str = "kflare_";

/// How rules are compared.
pub const FIELDS: FieldRules = FieldRules {
    // A parameter that is off is not the same as one that is not there: the next rule, or the zone, may turn it on.
    exact: &["action_parameters"],
    ..FieldRules::PLAIN
};

/// The `ref` of the rule that a resource manages: made from its kind, namespace and name, so that the rule is found again
/// whatever becomes of its id. 39 characters; no longer than that, whatever the names.
pub fn mark(resource: &ObjectKey) -> String {
    let namespace = resource.namespace.as_deref().unwrap_or_default();
    // Names of Kubernetes have no slash, so no two resources have one text.
    let text = format!("{}/{namespace}/{}", resource.kind, resource.name);
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let half = u128::from_be_bytes(hash.first_chunk().copied().unwrap_or_default());
    format!("{MARK}{half:032x}")
}

/// What a spec asks for, in canonical form.
pub fn body(
    mark: &str,
    expression: &str,
    description: Option<&str>,
    enabled: bool,
    action: &Action,
) -> Map<String, Value> {
    let name = action.name.as_str().unwrap_or_default();
    let mut body = fields(
        mark,
        expression,
        description.unwrap_or_default(),
        enabled,
        name,
        &action.parameters,
    );
    if let Some(logging) = action.logging {
        body.insert("logging".to_owned(), json!({ "enabled": logging }));
    }
    if let Some(ratelimit) = &action.ratelimit {
        body.insert("ratelimit".to_owned(), canonical::ratelimit(ratelimit));
    }
    body
}

fn fields(
    mark: &str,
    expression: &str,
    description: &str,
    enabled: bool,
    action: &str,
    parameters: &Value,
) -> Map<String, Value> {
    [
        ("ref", json!(mark)),
        ("action", json!(action)),
        ("action_parameters", canonical::parameters(action, parameters)),
        // Line breaks at the ends come with block texts of YAML.
        ("expression", json!(expression.trim())),
        ("description", json!(description)),
        ("enabled", json!(enabled)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

/// Identity: the mark. Of rules that put a managed ruleset in force a zone has one a ruleset, whoever made it.
pub fn key(body: &Map<String, Value>) -> NaturalKey {
    let mark = body.get("ref").and_then(Value::as_str).unwrap_or_default().to_owned();
    let executed = executed(body);
    match executed {
        Some(ruleset) => NaturalKey {
            group: format!("execute {ruleset}"),
            member: mark,
        },
        None => NaturalKey {
            group: mark,
            member: String::new(),
        },
    }
}

/// The ruleset that a rule puts in force.
pub fn executed(body: &Map<String, Value>) -> Option<&str> {
    let executes = body.get("action").and_then(Value::as_str) == Some("execute");
    body.get("action_parameters")
        .filter(|_| executes)
        .and_then(|parameters| parameters.get("id")?.as_str())
}

/// A rule in canonical form.
pub fn remote(ruleset: &Ruleset, rule: &Rule) -> Remote {
    let mut body = fields(
        &rule.reference,
        &rule.expression,
        &rule.description,
        rule.enabled,
        &rule.action,
        &rule.action_parameters,
    );
    body.insert("logging".to_owned(), rule.logging.clone());
    body.insert("ratelimit".to_owned(), canonical::ratelimit(&rule.ratelimit));
    let metadata = json!({
        "rulesetID": ruleset.id,
        "ruleID": rule.id,
        "ref": rule.reference,
        "version": rule.version,
    });
    // Two deployments of one ruleset exclude each other, so that rules of others come into question too.
    let foreign = executed(&body).is_some() && !rule.reference.starts_with(MARK);
    Remote {
        id: rule.id.clone(),
        key: key(&body),
        body,
        locked: foreign.then(|| "a rule made outside kflare, which puts the same ruleset in force,".to_owned()),
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        ..Remote::default()
    }
}

/// A whole entry point.
pub fn listing(ruleset: &Ruleset) -> Listing {
    let rules: Listing = ruleset.rules.iter().map(|rule| remote(ruleset, rule)).collect();
    Listing {
        handle: Some(ruleset.id.clone()),
        ..rules
    }
}

/// The whole rule as Cloudflare takes it, with its place.
pub fn request(desired: &Desired) -> Value {
    let action = desired.body.get("action").and_then(Value::as_str).unwrap_or_default();
    let parameters = desired.body.get("action_parameters").unwrap_or(&Value::Null);
    let mut body = desired.body.clone();
    body.insert(
        "action_parameters".to_owned(),
        canonical::request(action, parameters).unwrap_or_default(),
    );
    let mut body = match canonical::without_nulls(Value::Object(body)) {
        Some(Value::Object(body)) => body,
        _ => Map::new(),
    };
    body.extend(desired.position.as_ref().map(place));
    Value::Object(body)
}

/// The member of a body that says where a rule is to stand.
pub fn place(position: &Position) -> (String, Value) {
    let position = match position {
        Position::Before(id) => rulesets::Position::Before(id.clone()),
        Position::After(id) => rulesets::Position::After(id.clone()),
    };
    (POSITION.to_owned(), json!(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_short_and_nobody_elses() {
        let of = |kind: &str, namespace: &str, name: &str| mark(&ObjectKey::new(kind, Some(namespace), name));
        let marks = [
            of("WAFCustomRule", "web", "a"),
            of("RateLimitRule", "web", "a"),
            of("WAFCustomRule", "shop", "a"),
            of("WAFCustomRule", "web", "b"),
            of("WAFCustomRule", "we", "b-a"),
            of("WAFCustomRule", &"n".repeat(63), &"a".repeat(253)),
        ];
        let distinct: std::collections::BTreeSet<&String> = marks.iter().collect();
        assert_eq!(distinct.len(), marks.len());
        for mark in &marks {
            assert_eq!(mark.len(), 39);
            assert!(
                mark.bytes()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
            );
        }
        // It is written at Cloudflare and must never change.
        assert_eq!(marks[0], "kflare_bd9e1d6d6f2b42b2168b780a6829b552");
    }
}
