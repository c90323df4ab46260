//! A whole record: as the spec wants it, and as Cloudflare reports it, both in Cloudflare's fields and one spelling.

use std::net::{Ipv4Addr, Ipv6Addr};

use kflare_api::{
    RecordType,
    dns_record::{DNSRecordSpec, RecordSettings},
};
use serde_json::{Map, Value, json};

use super::{
    data::{self, DataError},
    names::{NameError, full_name, host_target},
    txt::{self, TxtError},
    value,
};

/// Host that a tunnel has in DNS, behind its id.
const TUNNEL_HOST: &str = "cfargotunnel.com";
/// The TTL that means automatic.
const AUTOMATIC: i32 = 1;
/// Field of a canonical body that Cloudflare does not have: the strings of a TXT record, where somebody says how the text is
/// cut. They are sent as `content`.
pub const STRINGS: &str = "strings";
/// Settings of a record at Cloudflare. Absent, null and false are one and the same for each.
const SETTINGS: [&str; 3] = ["flatten_cname", "ipv4_only", "ipv6_only"];

/// Why a spec describes no record. The message names the field.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// `spec.name`.
    #[error("spec.name: {0}")]
    Name(NameError),
    /// `spec.content` of a type that points to a host.
    #[error("spec.content of this {0} record must be a host name: {1}")]
    Target(RecordType, NameError),
    /// `spec.content` of A or AAAA.
    #[error("spec.content of this {0} record must be an {1} address")]
    Address(RecordType, &'static str),
    /// `spec.content` of TXT.
    #[error("spec.content: {0}")]
    Text(TxtError),
    /// `spec.content` of OPENPGPKEY.
    #[error("spec.content of an OPENPGPKEY record must be the key in Base64")]
    Key,
    /// `spec.data`.
    #[error(transparent)]
    Data(#[from] DataError),
    /// No value, two of them, or one that the type does not take.
    #[error("the value of a {0} record must be given in {1}, and nowhere else")]
    Value(RecordType, &'static str),
}

/// The value of a record, in canonical form.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordValue {
    /// Text.
    Content(String),
    /// Typed fields.
    Data(Map<String, Value>),
}

/// A record as the spec wants it, in canonical form.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Full name.
    pub name: String,
    /// Type.
    pub record_type: RecordType,
    /// Value.
    pub value: RecordValue,
    /// The strings of a TXT record, if the spec cuts its text in a way of its own.
    pub strings: Option<Vec<String>>,
    /// `spec.ttl` in seconds; see [`Wanted::ttl`] for what is sent.
    pub spec_ttl: Option<i32>,
    /// Whether it is proxied.
    pub proxied: bool,
    /// Preference of MX and URI records. None leaves it alone.
    pub priority: Option<u16>,
    /// Comment; empty for none.
    pub comment: String,
    /// Tags, sorted, with names in lower case.
    pub tags: Vec<String>,
    /// Settings; those that are none are left alone.
    pub settings: RecordSettings,
}

impl Wanted {
    /// What a spec wants in the zone called `zone`. `tunnel_id` is the id of the tunnel that `spec.tunnelRef` refers to; it
    /// is not looked at without one.
    pub fn from_spec(spec: &DNSRecordSpec, zone: &str, tunnel_id: Option<&str>) -> Result<Self, RecordError> {
        Ok(Self {
            name: full_name(&spec.name, zone).map_err(RecordError::Name)?,
            record_type: spec.record_type,
            value: wanted_value(spec, tunnel_id)?,
            strings: wanted_strings(spec)?,
            spec_ttl: spec.ttl,
            proxied: spec.proxied.unwrap_or(false),
            priority: spec.priority.filter(|_| spec.record_type.has_priority()),
            comment: spec.comment.clone().unwrap_or_default(),
            tags: canonical_tags(spec.tags.iter().map(String::as_str)),
            settings: spec.settings.unwrap_or_default(),
        })
    }

    /// The TTL that is sent, in seconds; 1 is automatic. Cloudflare keeps proxied records at automatic.
    pub fn ttl(&self) -> i32 {
        if self.proxied {
            AUTOMATIC
        } else {
            self.spec_ttl.unwrap_or(AUTOMATIC)
        }
    }

    /// The TTL of the spec where it has no effect because the record is proxied.
    pub fn ignored_ttl(&self) -> Option<i32> {
        self.spec_ttl.filter(|ttl| *ttl != self.ttl())
    }

    /// The record in canonical form, with exactly the fields that the spec manages. Compare it with [`canonical_remote`];
    /// send what [`request_body`] makes of it.
    pub fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        let mut set = |field: &str, value: Value| body.insert(field.to_owned(), value);
        set("name", json!(self.name));
        set("type", json!(self.record_type));
        match &self.value {
            RecordValue::Content(content) => set("content", json!(content)),
            RecordValue::Data(data) => set("data", Value::Object(data.clone())),
        };
        if let Some(strings) = &self.strings {
            set(STRINGS, json!(strings));
        }
        set("ttl", json!(self.ttl()));
        set("proxied", json!(self.proxied));
        set("comment", json!(self.comment));
        set("tags", json!(self.tags));
        if let Some(priority) = self.priority {
            set("priority", json!(priority));
        }
        let wanted = [
            self.settings.flatten_cname,
            self.settings.ipv4_only,
            self.settings.ipv6_only,
        ];
        let settings: Map<String, Value> = SETTINGS
            .iter()
            .zip(wanted)
            .filter_map(|(name, wanted)| Some(((*name).to_owned(), Value::Bool(wanted?))))
            .collect();
        if !settings.is_empty() {
            set("settings", Value::Object(settings));
        }
        body
    }
}

fn wanted_value(spec: &DNSRecordSpec, tunnel_id: Option<&str>) -> Result<RecordValue, RecordError> {
    let record_type = spec.record_type;
    let field = if record_type.is_data() {
        "spec.data"
    } else {
        "spec.content"
    };
    match (&spec.content, &spec.data, &spec.tunnel_ref, tunnel_id) {
        (None, Some(data), None, _) if record_type.is_data() => {
            Ok(RecordValue::Data(data::canonical(record_type, data)?))
        }
        (Some(content), None, None, _) if !record_type.is_data() => {
            Ok(RecordValue::Content(canonical_content(record_type, content)?))
        }
        // In a plan the tunnel may not exist yet.
        (None, None, Some(_), Some("")) if record_type == RecordType::Cname => {
            Ok(RecordValue::Content(format!("<tunnel id>.{TUNNEL_HOST}")))
        }
        (None, None, Some(_), Some(id)) if record_type == RecordType::Cname => Ok(RecordValue::Content(format!(
            "{}.{TUNNEL_HOST}",
            id.to_ascii_lowercase()
        ))),
        _ => Err(RecordError::Value(record_type, field)),
    }
}

/// The strings of a TXT record whose text comes in several, unless they are those that [`txt::write`] makes anyway. A single
/// string says nothing about cuts: it may be longer than one of them.
fn wanted_strings(spec: &DNSRecordSpec) -> Result<Option<Vec<String>>, RecordError> {
    let (RecordType::Txt, Some(content)) = (spec.record_type, &spec.content) else {
        return Ok(None);
    };
    let strings = txt::strings(content).map_err(RecordError::Text)?;
    let usual = canonical_content(spec.record_type, content)?;
    Ok(strings.filter(|it| it.len() > 1 && txt::write_strings(it.iter().map(String::as_str)) != usual))
}

fn canonical_content(record_type: RecordType, content: &str) -> Result<String, RecordError> {
    match record_type {
        RecordType::A => content
            .parse::<Ipv4Addr>()
            .map(|it| it.to_string())
            .map_err(|_| RecordError::Address(record_type, "IPv4")),
        RecordType::Aaaa => content
            .parse::<Ipv6Addr>()
            .map(|it| it.to_string())
            .map_err(|_| RecordError::Address(record_type, "IPv6")),
        RecordType::Txt => txt::parse(content).map(|it| txt::write(&it)).map_err(RecordError::Text),
        RecordType::Openpgpkey => value::base64(content).ok_or(RecordError::Key),
        _ => host_target(content).map_err(|error| RecordError::Target(record_type, error)),
    }
}

/// Tags sorted and each once. Cloudflare documents that names have no case; values keep theirs.
fn canonical_tags<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut tags: Vec<String> = tags
        .map(|tag| match tag.split_once(':') {
            Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
            None => tag.to_ascii_lowercase(),
        })
        .collect();
    tags.sort();
    tags.dedup();
    tags
}

/// A record as Cloudflare reports it, in canonical form: every field that a spec can manage, and nothing else. Values that
/// do not read as they should stay as they are, so that they show as differences.
pub fn canonical_remote(record: &Value) -> Map<String, Value> {
    let given = |field: &str| record.get(field).filter(|it| !it.is_null());
    let text = |field: &str| given(field).and_then(Value::as_str);
    let mut canonical = Map::new();
    let mut set = |field: &str, value: Value| canonical.insert(field.to_owned(), value);

    let name = text("name").unwrap_or_default();
    set("name", json!(host_target(name).unwrap_or_else(|_| name.to_owned())));
    let record_type = text("type").and_then(|it| it.parse::<RecordType>().ok());
    set("type", record_type.map_or_else(|| json!(text("type")), |it| json!(it)));
    let data = given("data").and_then(Value::as_object);
    match (record_type.filter(|it| it.is_data()), data, text("content")) {
        (Some(record_type), Some(data), _) => {
            set("data", Value::Object(data::canonical_remote(record_type, data)));
        }
        (_, _, Some(content)) => {
            set("content", json!(canonical_remote_content(record_type, content)));
            if let (Some(RecordType::Txt), Ok(Some(strings))) = (record_type, txt::strings(content)) {
                set(STRINGS, json!(strings));
            }
        }
        _ => {}
    }
    let number = |field: &str, max| given(field).map(|it| value::whole(it, max).unwrap_or_else(|| it.clone()));
    set("ttl", number("ttl", u32::MAX).unwrap_or_else(|| json!(AUTOMATIC)));
    set("proxied", given("proxied").cloned().unwrap_or(Value::Bool(false)));
    set("comment", json!(text("comment").unwrap_or_default()));
    let tags = given("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    set("tags", json!(canonical_tags(tags)));
    if record_type.is_some_and(RecordType::has_priority)
        && let Some(priority) = number("priority", u32::from(u16::MAX))
    {
        set("priority", priority);
    }
    let setting = |name: &str| {
        given("settings")
            .and_then(|it| it.get(name))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    };
    set(
        "settings",
        SETTINGS
            .iter()
            .map(|it| ((*it).to_owned(), Value::Bool(setting(it))))
            .collect(),
    );
    canonical
}

fn canonical_remote_content(record_type: Option<RecordType>, content: &str) -> String {
    match record_type {
        // Bare text that begins with a quote is not well-formed: it is its own bytes.
        Some(RecordType::Txt) => txt::write(&txt::parse(content).unwrap_or_else(|_| content.as_bytes().to_vec())),
        Some(record_type) if !record_type.is_data() => {
            canonical_content(record_type, content).unwrap_or_else(|_| content.to_owned())
        }
        _ => content.to_owned(),
    }
}

/// What to send for these fields of the canonical body `wanted`. Of the settings only those that are on, and those that are
/// to be `switched`: Cloudflare refuses settings that the plan does not offer, even off. TXT goes out cut as the spec says.
pub fn request_body(
    mut fields: Map<String, Value>,
    wanted: &Map<String, Value>,
    switched: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    if let Some(Value::Object(settings)) = fields.get_mut("settings") {
        settings.retain(|name, wanted| *wanted == Value::Bool(true) || switched(name));
        if settings.is_empty() {
            fields.remove("settings");
        }
    }
    let text = fields.remove(STRINGS).is_some() || fields.contains_key("content");
    if let (true, Some(Value::Array(strings))) = (text, wanted.get(STRINGS)) {
        let content = txt::write_strings(strings.iter().filter_map(Value::as_str));
        fields.insert("content".to_owned(), Value::String(content));
    }
    fields
}

/// What tells a canonical record from others of its name and type: its value as one text. The priority of MX and URI is not
/// part of it and can change.
pub fn member(record: &Map<String, Value>) -> String {
    match (record.get("data"), record.get("content")) {
        (Some(Value::Object(data)), _) => {
            let mut fields: Vec<String> = data.iter().map(|(name, value)| format!("{name}={value}")).collect();
            fields.sort();
            fields.join(" ")
        }
        (_, Some(Value::String(content))) => content.clone(),
        _ => String::new(),
    }
}

/// The value of a canonical record as a person reads it: as in a zone file, but TXT as plain text.
pub fn content_text(record: &Map<String, Value>) -> String {
    let record_type = record
        .get("type")
        .and_then(Value::as_str)
        .and_then(|it| it.parse::<RecordType>().ok());
    let value = match (record_type, record.get("data"), record.get("content")) {
        (Some(record_type), Some(Value::Object(data)), _) => data::text(record_type, data),
        (Some(RecordType::Txt), _, Some(Value::String(content))) => txt::parse(content).map_or_else(
            |_| content.clone(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        ),
        (_, _, Some(Value::String(content))) => content.clone(),
        _ => String::new(),
    };
    match record.get("priority") {
        Some(priority) => format!("{priority} {value}"),
        None => value,
    }
}

#[cfg(test)]
mod echo;
#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod law;
#[cfg(test)]
mod tests;
