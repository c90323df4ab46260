//! Answers as Cloudflare gives them, in every form that it is known for.

use serde_json::{Map, Value, json};

use super::{SETTINGS, txt};
use crate::dns::{
    RecordType,
    fields::{self, FieldKind},
};

/// How Cloudflare may say one and the same thing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    /// Selects the form of TXT, 0 quoted.
    pub(super) txt: usize,
    /// Selects the form of settings that are off, 0 all of them false.
    pub(super) settings: usize,
    /// Selects the form of no comment and no tags, 0 empty.
    pub(super) nothing: usize,
    /// Selects the JSON type of numbers in data, 0 integer.
    pub(super) numbers: usize,
    /// Selects the spelling of hosts, digests and parameters in data, 0 as sent.
    pub(super) spelling: usize,
}

/// A record as Cloudflare answers it for a request body, with the normalisations that it is known for.
pub(super) fn echo(body: &Map<String, Value>, how: Echo) -> Value {
    let mut record = body.clone();
    let record_type: RecordType = serde_json::from_value(body["type"].clone()).unwrap();
    let proxied = body["proxied"] == true;
    if proxied {
        record.insert("ttl".into(), json!(1));
    }
    if let (RecordType::Txt, 1, Some(content)) = (record_type, how.txt, body.get("content").and_then(Value::as_str)) {
        let bytes = txt::parse(content).unwrap();
        // Records of some age come back bare. Such text has no quotes: Cloudflare refuses it bare.
        if let Some(bare) = String::from_utf8(bytes)
            .ok()
            .filter(|it| !it.contains('"') && !it.ends_with(['\n', '\r']))
        {
            record.insert("content".into(), json!(bare));
        }
    }
    if let Some(Value::Object(data)) = record.get_mut("data") {
        for field in fields::of(record_type) {
            if let Some(value) = data.get_mut(field.name) {
                *value = respell(value, field.kind, how);
            }
        }
        record.insert("content".into(), json!("rendered by the server"));
    }
    let on = |name: &str| body.get("settings").and_then(|it| it.get(name)) == Some(&json!(true));
    let any = SETTINGS.iter().any(|it| on(it));
    let settings = match how.settings {
        1 if !any => Some(json!(null)),
        2 if !any => None,
        3 => Some(
            SETTINGS
                .iter()
                .filter(|it| on(it))
                .map(|it| ((*it).to_owned(), json!(true)))
                .collect(),
        ),
        _ => Some(SETTINGS.iter().map(|it| ((*it).to_owned(), json!(on(it)))).collect()),
    };
    record.remove("settings");
    if let Some(settings) = settings {
        record.insert("settings".into(), settings);
    }
    for (field, empty) in [("comment", json!("")), ("tags", json!([]))] {
        match how.nothing {
            1 if record[field] == empty => drop(record.insert(field.into(), json!(null))),
            2 if record[field] == empty => drop(record.remove(field)),
            _ => {}
        }
    }
    if !record_type.has_priority() {
        record.insert("priority".into(), json!(null));
    }
    record.insert("id".into(), json!("372e67954025e0ba6aaa6d586b9e0b59"));
    record.insert("proxiable".into(), json!(record_type.is_proxiable()));
    record.insert("meta".into(), json!({}));
    record.insert("created_on".into(), json!("2026-01-01T00:00:00.123456Z"));
    Value::Object(record)
}

fn respell(value: &Value, kind: FieldKind, how: Echo) -> Value {
    match (value, kind) {
        (Value::Number(number), _) => match how.numbers {
            1 => json!(number.as_f64().unwrap()),
            2 => json!(number.to_string()),
            _ => value.clone(),
        },
        (Value::String(text), FieldKind::Host) if how.spelling == 1 && text != "." => json!(format!("{text}.")),
        (Value::String(text), FieldKind::Hex) if how.spelling == 1 => json!(text.to_uppercase()),
        (Value::String(text), FieldKind::Params) if how.spelling == 1 => {
            json!(text.split(' ').rev().collect::<Vec<_>>().join("  "))
        }
        _ => value.clone(),
    }
}
