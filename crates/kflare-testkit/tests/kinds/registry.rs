//! What holds for every kind of the registry, whatever it does: types, adapters and the cases of `cel-cases` fit together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kflare_engine::{Kind, Kinds, Parents, kind::Parent, object::ObjectKey};
use serde::Deserialize;
use serde_json::{Value, json};

/// A case, as far as it matters here.
#[derive(Deserialize)]
struct Case {
    name: String,
    kind: String,
    object: Option<Value>,
    change: Option<Change>,
    expect: Value,
}

#[derive(Deserialize)]
struct Change {
    to: Value,
}

/// Kind, name of the case, and spec, of all specs that the schemas accept.
pub(crate) fn accepted() -> Vec<(String, String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kflare-api/cel-cases");
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in serde_saphyr::from_str::<Vec<Case>>(&text).unwrap() {
            if case.expect == "accepted" {
                let spec = case.object.or(case.change.map(|change| change.to)).unwrap();
                all.push((case.kind, case.name, without_nulls(spec)));
            }
        }
    }
    all
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

/// The schema of a part of a custom resource, by kind.
fn schemas(pointer: &str) -> BTreeMap<String, Value> {
    let schema = |crd: Value| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    kflare_api::crds()
        .iter()
        .map(|crd| {
            let whole = schema(serde_json::to_value(crd).unwrap());
            let part = whole.pointer(pointer).cloned().unwrap_or_default();
            (crd.spec.names.kind.clone(), part)
        })
        .collect()
}

#[test]
fn every_type_has_an_adapter_of_the_same_names_and_every_adapter_a_type() {
    let kinds = kflare_kinds::kinds();
    let adapters: BTreeSet<(String, String, String)> = kinds
        .iter()
        .map(Kind::descriptor)
        .map(|it| {
            (
                it.kind.to_string(),
                it.plural.to_string(),
                format!("{:?}", it.resource_scope),
            )
        })
        .collect();
    let types: BTreeSet<(String, String, String)> = kflare_api::crds()
        .into_iter()
        .map(|crd| (crd.spec.names.kind, crd.spec.names.plural, crd.spec.scope))
        .collect();
    assert_eq!(
        adapters, types,
        "adapters (kflare-kinds/src/lib.rs) and types (kflare_api::crds)"
    );
    let metadata = schemas("/properties/status/properties/cloudflareMetadata/properties");
    for descriptor in kinds.iter().map(Kind::descriptor) {
        if let Some(field) = descriptor.id_field() {
            let known = &metadata[&*descriptor.kind];
            assert!(known.get(field).is_some(), "{}: no {field} in {known}", descriptor.kind);
        }
    }
}

#[test]
fn what_the_schemas_accept_is_read_by_the_adapters_and_refers_to_kinds_that_there_are() {
    let kinds = kflare_kinds::kinds();
    for (kind, case, spec) in accepted() {
        let adapter = kinds.get(&kind).unwrap_or_else(|| panic!("{kind} is no kind"));
        let references = adapter.references(&spec);
        for reference in references.unwrap_or_else(|error| panic!("{kind}, {case}: {error}")) {
            assert!(kinds.get(reference.kind).is_some(), "{kind}, {case}: {reference:?}");
        }
    }
}

/// Everything that a spec refers to, there and named alike.
fn parents(kinds: &Kinds, kind: &dyn Kind, spec: &Value) -> Parents {
    let of = ObjectKey::new(&kind.descriptor().kind, Some("team"), "it");
    let references = kind.references(spec).unwrap();
    let parent = |referent: &str| Parent {
        key: kinds.referent(referent, Some("team"), "parent"),
        id: "0123456789abcdef0123456789abcdef".to_owned(),
        spec: (&json!({ "name": "example.com" })).into(),
        metadata: (&json!({})).into(),
    };
    let by_field = references.into_iter().map(|it| (it.field, parent(it.kind)));
    Parents {
        of,
        account_id: "0123456789abcdef0123456789abcdef".to_owned(),
        by_field: by_field.collect(),
    }
}

/// A rule for a field that nothing is called would never apply, and nothing else would say so.
#[test]
fn rules_are_about_fields_that_some_spec_sets_or_status_shows() {
    let kinds = kflare_kinds::kinds();
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    for (kind, _, spec) in accepted() {
        let adapter = kinds.get(&kind).unwrap();
        if let Ok(desired) = adapter.desired(&spec, &parents(&kinds, adapter, &spec)) {
            known.extend(desired.body.into_iter().map(|(field, _)| (kind.clone(), field)));
        }
    }
    for (kind, metadata) in schemas("/properties/status/properties/cloudflareMetadata/properties") {
        let fields = metadata.as_object().into_iter().flatten();
        known.extend(fields.map(|(field, _)| (kind.clone(), field.clone())));
    }
    let mut unknown = Vec::new();
    for descriptor in kinds.iter().map(Kind::descriptor) {
        let rules = descriptor.fields;
        let all = [
            rules.immutable,
            rules.secret,
            rules.after_create,
            rules.untold,
            rules.unlisted,
            rules.write_only,
            rules.exact,
            rules.unmarked,
        ];
        for path in all.into_iter().flatten() {
            let top = path.split('.').next().unwrap().to_owned();
            if !known.contains(&(descriptor.kind.to_string(), top)) {
                unknown.push(format!("{}: {path}", descriptor.kind));
            }
        }
    }
    assert_eq!(
        unknown,
        Vec::<String>::new(),
        "no accepted case of cel-cases leads to these fields"
    );
}

/// The chart takes the name of every kind, and no other.
#[test]
fn the_chart_knows_the_kinds() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../helm/kflare/values.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let named = schema["properties"]["kinds"]["items"]["enum"].as_array().unwrap();
    let named: std::collections::BTreeSet<&str> = named.iter().filter_map(|it| it.as_str()).collect();
    let kinds = kflare_kinds::kinds();
    let kinds = kinds.iter().map(|kind| &*kind.descriptor().kind).collect();
    assert_eq!(named, kinds);
}
