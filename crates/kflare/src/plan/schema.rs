//! What the schemas of the CRDs say of a manifest, as far as a schema can tell. Rules between fields (CEL) are only in the API server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The schemas of the specs, by kind.
pub struct Schemas(BTreeMap<String, Validator>);

impl Schemas {
    /// Those of this program.
    pub fn new() -> Result<Self> {
        let mut all = BTreeMap::new();
        for crd in kflare_api::crds() {
            let kind = crd.spec.names.kind.clone();
            let whole = serde_json::to_value(&crd.spec.versions).context("a schema of ours")?;
            let mut spec = whole[0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
            close(&mut spec);
            let validator = jsonschema::validator_for(&spec).with_context(|| format!("the schema of {kind}"))?;
            all.insert(kind, validator);
        }
        Ok(Self(all))
    }

    /// What is wrong with the spec of a manifest, each fault with its field.
    pub fn faults(&self, object: &DynamicObject) -> Vec<String> {
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        let Some(validator) = kind.and_then(|kind| self.0.get(kind)) else {
            return Vec::new();
        };
        let mut spec = object.data.get("spec").cloned().unwrap_or_else(|| json!({}));
        without_nulls(&mut spec);
        validator.iter_errors(&spec).map(|error| sentence(&error)).collect()
    }
}

/// Makes fields that the schema does not name a fault. The API server takes them out without a word, or refuses them, as it is asked to.
fn close(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return;
    }
    if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    for inner in ["properties", "items", "additionalProperties"] {
        match (inner, fields.get_mut(inner)) {
            ("properties", Some(Value::Object(properties))) => properties.values_mut().for_each(close),
            (_, Some(inner)) => close(inner),
            _ => {}
        }
    }
}

/// The API server takes a null for a field that is not there.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn sentence(error: &ValidationError<'_>) -> String {
    let mut field = "spec".to_owned();
    for step in error.instance_path().as_str().split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        // Writing to a String cannot fail.
        let _ = match step.parse::<usize>() {
            Ok(at) => write!(field, "[{at}]"),
            Err(_) => write!(field, ".{step}"),
        };
    }
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let named: Vec<String> = unexpected.iter().map(|name| format!("{field}.{name}")).collect();
            format!("{}: there is no such field", named.join(", "))
        }
        _ => format!("{field}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(kind: &str, spec: &Value) -> Vec<String> {
        let manifest = json!({
            "apiVersion": kflare_api::names::API_VERSION, "kind": kind, "metadata": { "name": "x" }, "spec": spec,
        });
        Schemas::new()
            .unwrap()
            .faults(&serde_json::from_value(manifest).unwrap())
    }

    #[test]
    fn what_the_schema_does_not_allow_is_named_by_its_field() {
        let record = |more: Value| {
            let mut spec = json!({ "zoneRef": { "name": "z" }, "name": "www", "type": "A", "content": "192.0.2.1" });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            faults("DNSRecord", &spec)
        };
        assert_eq!(record(json!({ "ttl": 300, "comment": null })), Vec::<String>::new());
        assert_eq!(
            record(json!({ "proxid": true })),
            ["spec.proxid: there is no such field"]
        );
        assert_eq!(
            record(json!({ "zoneRef": { "name": "z", "namespace": "n" } })),
            ["spec.zoneRef.namespace: there is no such field"]
        );
        let wrong = |fault: Value, field: &str| {
            let found = record(fault);
            assert!(found.len() == 1 && found[0].starts_with(field), "{found:?}");
        };
        wrong(json!({ "ttl": "5m" }), "spec.ttl: ");
        wrong(json!({ "type": "AB" }), "spec.type: ");
        wrong(json!({ "tags": ["a:b", 7] }), "spec.tags[1]: ");
        let missing = faults("R2Bucket", &json!({ "name": "My_Bucket" }));
        assert_eq!(missing.len(), 2, "{missing:?}");
    }

    /// What kflare itself shows as an example is not refused, whatever fields it has.
    #[test]
    fn samples_are_without_fault() {
        let schemas = Schemas::new().unwrap();
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
        let found = crate::plan::manifests::read(&[samples.into()]).unwrap();
        assert!(found.len() >= 20);
        for document in found {
            assert_eq!(
                schemas.faults(&document.object),
                Vec::<String>::new(),
                "{}",
                document.origin
            );
        }
    }
}
