//! Pieces of schema and CEL rules that several kinds use.

use kube::core::{Reason, Rule};
use schemars::{Schema, transform::transform_subschemas};
use serde_json::Value;

/// Makes a schema fit for the API server and for `kubectl explain`. Takes `null` out of optional fields: the API server
/// then drops a null that a template left behind, as if the field were absent, so that `has(self.field)` in a rule means
/// what it says. Joins the lines of descriptions.
pub(crate) fn tidy(schema: &mut Schema) {
    transform_subschemas(&mut tidy, schema);
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::String(description)) = object.get_mut("description") {
        let paragraphs: Vec<String> = description.split("\n\n").map(|it| it.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|it| it != "null");
        if types.len() == 1 {
            let only = types.remove(0);
            object.insert("type".into(), only);
        }
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else {
        return;
    };
    choices.retain(|it| it.get("type").is_none_or(|it| it != "null"));
    if choices.len() == 1
        && let Value::Object(only) = choices.remove(0)
    {
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// The rule of a field that cannot change once set. `path` is the field as a user writes it, such as `spec.name`.
pub(crate) fn immutable(path: &str) -> Rule {
    Rule::new("self == oldSelf")
        .message(format!("{path} cannot be changed: create a new resource and delete this one instead").as_str())
}

/// As [`immutable`], for an optional field of a spec: neither can it be set later, nor taken away. Stands at the spec.
pub(crate) fn immutable_optional(field: &str) -> Rule {
    Rule::new(
        format!("has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})")
            .as_str(),
    )
    .message(
        format!(
            "spec.{field} cannot be changed, set later or taken away: create a new resource and delete this one instead"
        )
        .as_str(),
    )
    .field_path(format!(".{field}"))
}

/// A rule that forbids a combination of fields. `field` is relative to the schema it stands in, such as `.proxied`.
pub(crate) fn forbids(rule: String, field: &str, message: &str) -> Rule {
    Rule::new(rule)
        .message(message)
        .field_path(field)
        .reason(Reason::FieldValueForbidden)
}

/// A rule on the form of a value.
pub(crate) fn requires(rule: String, field: &str, message: &str) -> Rule {
    Rule::new(rule)
        .message(message)
        .field_path(field)
        .reason(Reason::FieldValueInvalid)
}
