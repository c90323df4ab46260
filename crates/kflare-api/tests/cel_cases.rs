//! The cases in `cel-cases` cover every rule. They run against a real API server in the cluster tests; that the adapters read what is
//! accepted is among the tests of kinds (`registry.rs`).

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
