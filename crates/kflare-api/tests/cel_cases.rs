//! The cases in `cel-cases` cover every rule. They run against a real API server in the cluster tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, wherever it does"
)]

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kind: String,
    object: Option<Value>,
    change: Option<Change>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    from: Value,
    to: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Expect {
    Accepted,
    Refused(String),
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cel-cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            serde_saphyr::from_str::<Vec<Case>>(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

fn messages(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for rule in fields
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                found.push(rule["message"].as_str().unwrap().to_owned());
            }
            fields.values().for_each(|it| messages(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| messages(it, found)),
        _ => {}
    }
}

#[test]
fn every_rule_has_a_case_that_it_refuses() {
    let cases = cases();
    for crd in kflare_api::crds() {
        let kind = &crd.spec.names.kind;
        let mut rules = Vec::new();
        messages(&serde_json::to_value(&crd).unwrap(), &mut rules);
        assert!(!rules.is_empty(), "{kind} has no rule");
        for message in rules {
            let covered = cases.iter().any(|case| {
                case.kind == *kind && matches!(&case.expect, Expect::Refused(part) if message.contains(part))
            });
            assert!(covered, "{kind}: no case is refused with {message:?}");
        }
    }
}

#[test]
fn every_kind_has_accepted_objects_and_accepted_changes() {
    for crd in kflare_api::crds() {
        let kind = &crd.spec.names.kind;
        for (what, change) in [("object", false), ("change", true)] {
            let found = cases().iter().any(|case| {
                case.kind == *kind && case.change.is_some() == change && matches!(case.expect, Expect::Accepted)
            });
            assert!(found, "{kind}: no {what} is accepted");
        }
    }
}

#[test]
fn a_case_has_one_input_and_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for case in cases() {
        assert!(case.object.is_some() != case.change.is_some(), "{}", case.name);
        if let Some(change) = &case.change {
            assert_ne!(change.from, change.to, "{}", case.name);
        }
        assert!(
            names.insert((case.kind, case.name.clone())),
            "{} is there twice",
            case.name
        );
    }
}

/// What is accepted must also be read by the controller.
#[test]
fn accepted_objects_read_as_their_type() {
    for case in cases()
        .into_iter()
        .filter(|case| matches!(case.expect, Expect::Accepted))
    {
        for spec in case.object.into_iter().chain(case.change.map(|it| it.to)) {
            let object = serde_json::json!({"metadata": {"name": "it"}, "spec": without_nulls(spec)});
            let read = match case.kind.as_str() {
                "CloudflareAccount" => serde_json::from_value::<kflare_api::CloudflareAccount>(object).map(drop),
                "Zone" => serde_json::from_value::<kflare_api::Zone>(object).map(drop),
                "DNSRecord" => serde_json::from_value::<kflare_api::DNSRecord>(object).map(drop),
                "KVNamespace" => serde_json::from_value::<kflare_api::KVNamespace>(object).map(drop),
                "R2Bucket" => serde_json::from_value::<kflare_api::R2Bucket>(object).map(drop),
                "D1Database" => serde_json::from_value::<kflare_api::D1Database>(object).map(drop),
                "WAFCustomRule" => serde_json::from_value::<kflare_api::WAFCustomRule>(object).map(drop),
                "RateLimitRule" => serde_json::from_value::<kflare_api::RateLimitRule>(object).map(drop),
                "ManagedRuleset" => serde_json::from_value::<kflare_api::ManagedRuleset>(object).map(drop),
                "TransformRule" => serde_json::from_value::<kflare_api::TransformRule>(object).map(drop),
                "RedirectRule" => serde_json::from_value::<kflare_api::RedirectRule>(object).map(drop),
                "CacheRule" => serde_json::from_value::<kflare_api::CacheRule>(object).map(drop),
                "ConfigurationRule" => serde_json::from_value::<kflare_api::ConfigurationRule>(object).map(drop),
                "OriginRule" => serde_json::from_value::<kflare_api::OriginRule>(object).map(drop),
                "ManagedTransform" => serde_json::from_value::<kflare_api::ManagedTransform>(object).map(drop),
                "IPList" => serde_json::from_value::<kflare_api::IPList>(object).map(drop),
                "WorkerScript" => serde_json::from_value::<kflare_api::WorkerScript>(object).map(drop),
                "WorkerRoute" => serde_json::from_value::<kflare_api::WorkerRoute>(object).map(drop),
                "Tunnel" => serde_json::from_value::<kflare_api::Tunnel>(object).map(drop),
                "TunnelConfiguration" => serde_json::from_value::<kflare_api::TunnelConfiguration>(object).map(drop),
                kind => panic!("{kind} is no kind"),
            };
            assert!(read.is_ok(), "{}: {read:?}", case.name);
        }
    }
}

/// The API server drops nulls on entry.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        other => other,
    }
}
