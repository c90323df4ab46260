//! `data` of the data types in its one canonical form.
//!
//! Numbers may come as numbers, floats or text. Host names lose their case and final dot, hexadecimal digests their case,
//! keys their spaces; everything else is kept byte for byte. A spec may write the fields as Cloudflare does
//! (`key_tag`) or in camelCase (`keyTag`); a null is as good as nothing.

use std::collections::BTreeMap;

use kflare_api::RecordType;
use serde_json::{Map, Value};

use super::{
    fields::{self, Absent, Field, FieldKind},
    names::{NameError, host_target},
    svcb::{Params, ParamsError},
    value,
};

/// Why `spec.data` does not describe a record. The message names the field and what it takes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A field that the type does not have.
    #[error("spec.data.{key} is no field of a {record_type} record, which has {fields}")]
    UnknownField {
        /// As written.
        key: String,
        /// The type.
        record_type: RecordType,
        /// All fields of the type.
        fields: String,
    },
    /// A field that must be there.
    #[error("spec.data.{key} is missing: a {record_type} record has {fields}")]
    MissingField {
        /// Cloudflare's name.
        key: &'static str,
        /// The type.
        record_type: RecordType,
        /// All fields of the type.
        fields: String,
    },
    /// Both spellings of one field.
    #[error("spec.data.{key} is given twice, in snake_case and in camelCase")]
    Twice {
        /// Cloudflare's name.
        key: &'static str,
    },
    /// A value that does not fit the field.
    #[error("spec.data.{key} must be {expected}")]
    Value {
        /// Cloudflare's name.
        key: &'static str,
        /// What the field takes.
        expected: String,
    },
    /// A host name that is none.
    #[error("spec.data.{key}: {reason}")]
    Host {
        /// Cloudflare's name.
        key: &'static str,
        /// What is wrong with it.
        reason: NameError,
    },
    /// Parameters that do not read as such.
    #[error("spec.data.{key}: {reason}")]
    Params {
        /// Cloudflare's name.
        key: &'static str,
        /// What is wrong with them.
        reason: ParamsError,
    },
}

/// The canonical form of what a user wrote, with every field of the type.
pub fn canonical(record_type: RecordType, data: &BTreeMap<String, Value>) -> Result<Map<String, Value>, DataError> {
    let known = fields::of(record_type);
    let mut given: BTreeMap<&str, &Value> = BTreeMap::new();
    for (key, value) in data {
        let field = known
            .iter()
            .find(|it| it.name == key || camel_case(it.name) == *key)
            .ok_or_else(|| DataError::UnknownField {
                key: key.clone(),
                record_type,
                fields: field_names(known),
            })?;
        if !value.is_null() && given.insert(field.name, value).is_some() {
            return Err(DataError::Twice { key: field.name });
        }
    }
    let mut canonical = Map::new();
    for field in known {
        let value = match given.get(field.name) {
            Some(value) => canonical_value(field, value)?,
            None => default(field).ok_or_else(|| DataError::MissingField {
                key: field.name,
                record_type,
                fields: field_names(known),
            })?,
        };
        canonical.insert(field.name.to_owned(), value);
    }
    Ok(canonical)
}

/// The canonical form of what Cloudflare answered. A value that does not fit its field stays as it is, so that it shows as
/// a difference; fields beside those of the type, such as the old `service`, `proto` and `name` of SRV, are left out.
pub fn canonical_remote(record_type: RecordType, data: &Map<String, Value>) -> Map<String, Value> {
    let mut canonical = Map::new();
    for field in fields::of(record_type) {
        let value = match data.get(field.name).filter(|it| !it.is_null()) {
            Some(value) => Some(canonical_value(field, value).unwrap_or_else(|_| value.clone())),
            None => default(field),
        };
        if let Some(value) = value {
            canonical.insert(field.name.to_owned(), value);
        }
    }
    canonical
}

/// Canonical `data` as one line, in the order of the zone file.
pub fn text(record_type: RecordType, data: &Map<String, Value>) -> String {
    let words = fields::of(record_type).iter().filter_map(|field| {
        Some(match (data.get(field.name)?, field.kind) {
            (Value::String(text), FieldKind::Text) => format!("{text:?}"),
            (Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        })
    });
    words.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

fn canonical_value(field: &Field, value: &Value) -> Result<Value, DataError> {
    let key = field.name;
    let wrong = |expected: &str| DataError::Value {
        key,
        expected: expected.to_owned(),
    };
    match field.kind {
        FieldKind::Whole(max) => {
            return value::whole(value, max).ok_or_else(|| wrong(&format!("a whole number from 0 to {max}")));
        }
        FieldKind::Decimal(min, max) => {
            return value::decimal(value, min, max).ok_or_else(|| wrong(&format!("a number from {min} to {max}")));
        }
        _ => {}
    }
    let text = value.as_str().ok_or_else(|| wrong("text: put it in quotes"))?;
    let canonical = match field.kind {
        FieldKind::Word => Some(text.trim_ascii().to_ascii_lowercase())
            .filter(|it| !it.is_empty())
            .ok_or_else(|| wrong("a word"))?,
        FieldKind::Letter(letters) => letters
            .iter()
            .find(|it| it.eq_ignore_ascii_case(text.trim_ascii()))
            .map(|it| (*it).to_owned())
            .ok_or_else(|| wrong(&letters.join(" or ")))?,
        FieldKind::Host => host_target(text).map_err(|reason| DataError::Host { key, reason })?,
        FieldKind::Hex => value::hex(text).ok_or_else(|| wrong("hexadecimal digits, two for each byte"))?,
        FieldKind::Base64 => value::base64(text).ok_or_else(|| wrong("Base64"))?,
        FieldKind::Params => Params::parse(text)
            .map_err(|reason| DataError::Params { key, reason })?
            .to_string(),
        FieldKind::Text | FieldKind::Whole(_) | FieldKind::Decimal(..) => text.to_owned(),
    };
    Ok(Value::String(canonical))
}

fn default(field: &Field) -> Option<Value> {
    match field.absent {
        Absent::Refused => None,
        Absent::Zero => Some(Value::from(0)),
        Absent::Empty => Some(Value::from("")),
    }
}

fn field_names(fields: &[Field]) -> String {
    if fields.is_empty() {
        return "no data, but content".to_owned();
    }
    fields.iter().map(|it| it.name).collect::<Vec<_>>().join(", ")
}

fn camel_case(snake_case: &str) -> String {
    let mut words = snake_case.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(1.min(word.len()));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}

#[cfg(test)]
mod tests;
