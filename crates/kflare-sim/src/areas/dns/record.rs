//! A record as it is held, and as the API shows it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::data;
use super::kind::RecordType;
use super::txt::Txt;
use crate::config::{FlagsForm, ParamsForm, Quirks, SettingsForm};
use crate::time::micros;

/// A record as it is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) zone_id: String,
    pub(crate) fields: Fields,
    /// What the server says about the record.
    pub(crate) meta: Map<String, Value>,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
    pub(crate) comment_modified_on: Option<Timestamp>,
    pub(crate) tags_modified_on: Option<Timestamp>,
}

/// What a client sets of a record, normalised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fields {
    #[serde(rename = "type")]
    pub(crate) kind: RecordType,
    pub(crate) name: String,
    pub(crate) value: RecordValue,
    pub(crate) ttl: u32,
    pub(crate) proxied: bool,
    pub(crate) priority: Option<u16>,
    pub(crate) comment: String,
    pub(crate) tags: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) private_routing: Option<bool>,
}

/// The value of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordValue {
    /// As text; TXT as it was sent, everything else normalised.
    Content(String),
    /// As an object.
    Data(Map<String, Value>),
}

/// Per-record settings; all off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) ipv4_only: bool,
    pub(crate) ipv6_only: bool,
    pub(crate) flatten_cname: bool,
}

impl Fields {
    /// Two records of one type, name and identity are the same record to Cloudflare. The priority of MX and URI does not
    /// count (unproven).
    pub(super) fn identity(&self) -> Vec<u8> {
        match &self.value {
            RecordValue::Content(content) if self.kind == RecordType::Txt => {
                Txt::parse(content).map_or_else(|| content.clone().into_bytes(), |txt| txt.text())
            }
            RecordValue::Content(content) => content.clone().into_bytes(),
            RecordValue::Data(data) => Value::Object(data.clone()).to_string().into_bytes(),
        }
    }

    /// `content` as it is answered.
    pub(super) fn content(&self, quirks: Quirks) -> String {
        match &self.value {
            RecordValue::Content(content) if self.kind == RecordType::Txt => {
                Txt::parse(content).map_or_else(|| content.clone(), |txt| txt.render(quirks.txt))
            }
            RecordValue::Content(content) => content.clone(),
            RecordValue::Data(_) => data::content(self.kind, &self.answered_data(quirks).unwrap_or_default()),
        }
    }

    fn answered_data(&self, quirks: Quirks) -> Option<Map<String, Value>> {
        let RecordValue::Data(data) = &self.value else {
            return None;
        };
        let mut data = data.clone();
        let is_svcb = matches!(self.kind, RecordType::Svcb | RecordType::Https);
        if is_svcb && quirks.svcb_params == ParamsForm::SortedQuoted {
            let params = data["value"].as_str().map(data::sorted_params).unwrap_or_default();
            data.insert("value".into(), Value::String(params));
        }
        Some(data)
    }

    /// The fields as a request body that would make them: what PATCH merges into.
    pub(super) fn as_body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("type".into(), json!(self.kind));
        body.insert("name".into(), json!(self.name));
        match &self.value {
            RecordValue::Content(content) => body.insert("content".into(), json!(content)),
            RecordValue::Data(data) => body.insert("data".into(), json!(data)),
        };
        body.insert("ttl".into(), json!(self.ttl));
        body.insert("proxied".into(), json!(self.proxied));
        body.insert("priority".into(), json!(self.priority));
        body.insert("comment".into(), json!(self.comment));
        body.insert("tags".into(), json!(self.tags));
        body.insert("settings".into(), json!(self.settings));
        body.insert("private_routing".into(), json!(self.private_routing));
        body
    }
}

impl Record {
    /// Whether another product of Cloudflare manages the record, so that DNS calls cannot change it.
    pub(super) fn is_read_only(&self) -> bool {
        let says_so = |key: &str| self.meta.get(key).is_some_and(|value| value == &json!(true));
        says_so("read_only") || says_so("email_routing") || self.meta.contains_key("origin_worker_id")
    }

    /// The record as the API shows it. `zone_id`, `zone_name` and `locked` are no longer answered.
    pub(crate) fn render(&self, quirks: Quirks) -> Value {
        let fields = &self.fields;
        let mut shown = json!({
            "id": self.id,
            "name": fields.name,
            "type": fields.kind,
            "content": fields.content(quirks),
            "proxiable": fields.kind.proxiable(),
            "proxied": fields.proxied,
            "ttl": fields.ttl,
            "meta": self.meta,
            "comment": if fields.comment.is_empty() { Value::Null } else { json!(fields.comment) },
            "tags": fields.tags,
            "created_on": micros(self.created_on),
            "modified_on": micros(self.modified_on),
        });
        let Value::Object(map) = &mut shown else { return shown };
        if let Some(mut data) = fields.answered_data(quirks) {
            if fields.kind == RecordType::Caa {
                let flags = data["flags"].as_f64().unwrap_or_default();
                match quirks.caa_flags {
                    FlagsForm::Integer => {}
                    FlagsForm::Float => drop(data.insert("flags".into(), json!(flags))),
                    FlagsForm::String => drop(data.insert("flags".into(), json!(flags.to_string()))),
                }
            }
            map.insert("data".into(), Value::Object(data));
        }
        if let Some(priority) = fields.priority {
            map.insert("priority".into(), json!(priority));
        }
        if let Some(private) = fields.private_routing {
            map.insert("private_routing".into(), json!(private));
        }
        if let Some(settings) = self.answered_settings(quirks) {
            map.insert("settings".into(), settings);
        }
        if !fields.comment.is_empty()
            && let Some(at) = self.comment_modified_on
        {
            map.insert("comment_modified_on".into(), json!(micros(at)));
        }
        if !fields.tags.is_empty()
            && let Some(at) = self.tags_modified_on
        {
            map.insert("tags_modified_on".into(), json!(micros(at)));
        }
        shown
    }

    /// `settings`, if they are answered. Cloudflare leaves them out altogether for an unproxied CNAME; one whose
    /// flattening was switched on shows that, or nobody could see it.
    fn answered_settings(&self, quirks: Quirks) -> Option<Value> {
        let Fields {
            kind,
            proxied,
            settings,
            ..
        } = &self.fields;
        if *settings != Settings::default() {
            let on = [
                ("ipv4_only", settings.ipv4_only),
                ("ipv6_only", settings.ipv6_only),
                ("flatten_cname", settings.flatten_cname),
            ];
            let shown = on
                .into_iter()
                .filter(|(_, on)| *on)
                .map(|(name, on)| (name.to_owned(), json!(on)));
            return Some(Value::Object(shown.collect()));
        }
        if *kind == RecordType::Cname && !proxied {
            return None;
        }
        match quirks.settings {
            SettingsForm::Empty => Some(json!({})),
            SettingsForm::Null => Some(Value::Null),
            SettingsForm::Absent => None,
            SettingsForm::False if *kind == RecordType::Cname => {
                Some(json!({ "ipv4_only": false, "ipv6_only": false, "flatten_cname": false }))
            }
            SettingsForm::False => Some(json!({ "ipv4_only": false, "ipv6_only": false })),
        }
    }
}
