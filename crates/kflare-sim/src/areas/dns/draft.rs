//! From a request body to the normalised fields of a record.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value};

use super::data;
use super::error::Invalid;
use super::kind::RecordType;
use super::name;
use super::record::{Fields, RecordValue, Settings};
use super::txt::Txt;
use crate::state::Zone;

const MAX_TTL: u32 = 86_400;

/// The fields that `body` describes, as they would be held. What is absent or null takes its default.
pub(super) fn fields(body: &Map<String, Value>, zone: &Zone) -> Result<Fields, Invalid> {
    let body = Body(body);
    let kind = body.text("type").and_then(RecordType::find).ok_or_else(Invalid::kind)?;
    let name = body
        .text("name")
        .and_then(|sent| name::absolute(sent, &zone.name))
        .ok_or_else(Invalid::name)?;
    let priority = priority(&body, kind)?;
    let value = value(&body, kind, &name, priority)?;
    let proxied = body.flag("proxied")?;
    if proxied && !kind.proxiable() {
        return Err(Invalid::not_proxiable());
    }
    Ok(Fields {
        kind,
        name,
        value,
        ttl: if proxied { 1 } else { ttl(&body, zone)? },
        proxied,
        priority,
        comment: comment(&body, zone)?,
        tags: tags(&body, zone)?,
        settings: settings(&body, kind, zone)?,
        private_routing: match body.get("private_routing") {
            Some(Value::Bool(on)) if kind.is_address() => Some(*on),
            _ => None,
        },
    })
}

/// A request body in which null means absent.
struct Body<'a>(&'a Map<String, Value>);

impl<'a> Body<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    fn flag(&self, key: &str) -> Result<bool, Invalid> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err(Invalid::content(format!("{key} must be a boolean."))),
        }
    }
}

fn value(body: &Body, kind: RecordType, name: &str, priority: Option<u16>) -> Result<RecordValue, Invalid> {
    if kind.has_data() {
        let Some(Value::Object(sent)) = body.get("data") else {
            return Err(Invalid::missing("data"));
        };
        return data::normalise(kind, sent).map(RecordValue::Data);
    }
    let sent = body.text("content").unwrap_or_default();
    let invalid = || Invalid::content(format!("Content for {kind} record is invalid."));
    let content = match kind {
        RecordType::A => sent
            .trim()
            .parse::<Ipv4Addr>()
            .map_err(|_| Invalid::not_ipv4())?
            .to_string(),
        RecordType::Aaaa => sent
            .trim()
            .parse::<Ipv6Addr>()
            .map_err(|_| Invalid::not_ipv6())?
            .to_string(),
        RecordType::Cname => name::host(sent)
            .filter(|target| target != name)
            .ok_or_else(Invalid::cname)?,
        RecordType::Mx if sent == "." => {
            if priority != Some(0) {
                return Err(Invalid::mx());
            }
            sent.to_owned()
        }
        RecordType::Mx => name::host(sent).ok_or_else(Invalid::mx)?,
        RecordType::Ns | RecordType::Ptr => name::host(sent).ok_or_else(invalid)?,
        RecordType::Txt => Txt::parse(sent)
            .map(|txt| txt.render(crate::config::TxtForm::AsSent))
            .ok_or_else(invalid)?,
        _ => {
            let key: String = sent.split_whitespace().collect();
            let is_base64 = key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
            if key.is_empty() || !is_base64 {
                return Err(invalid());
            }
            key
        }
    };
    Ok(RecordValue::Content(content))
}

/// The priority of MX and URI records. Other types may send one; it is ignored.
fn priority(body: &Body, kind: RecordType) -> Result<Option<u16>, Invalid> {
    if !kind.has_priority() {
        return Ok(None);
    }
    let sent = body.get("priority").ok_or_else(|| Invalid::missing("priority"))?;
    whole(sent)
        .and_then(|number| u16::try_from(number).ok())
        .map(Some)
        .ok_or_else(|| Invalid::content("priority must be between 0 and 65535."))
}

fn ttl(body: &Body, zone: &Zone) -> Result<u32, Invalid> {
    let min = zone.plan.min_ttl();
    let Some(sent) = body.get("ttl") else { return Ok(1) };
    match whole(sent).and_then(|number| u32::try_from(number).ok()) {
        Some(1) => Ok(1),
        Some(ttl) if (min..=MAX_TTL).contains(&ttl) => Ok(ttl),
        _ => Err(Invalid::ttl(min)),
    }
}

fn comment(body: &Body, zone: &Zone) -> Result<String, Invalid> {
    let comment = match body.get("comment") {
        None => "",
        Some(Value::String(text)) => text,
        Some(_) => return Err(Invalid::content("comment must be a string.")),
    };
    let (length, limit) = (comment.chars().count(), zone.plan.comment_limit());
    if length > limit {
        return Err(Invalid::comment(length, limit));
    }
    if comment.chars().any(char::is_control) {
        return Err(Invalid::content("comment must be a single line."));
    }
    Ok(comment.to_owned())
}

fn tags(body: &Body, zone: &Zone) -> Result<Vec<String>, Invalid> {
    let sent = match body.get("tags") {
        None => return Ok(Vec::new()),
        Some(Value::Array(tags)) => tags,
        Some(_) => return Err(Invalid::content("tags must be a list.")),
    };
    let quota = zone.plan.tag_limit();
    if sent.len() > quota {
        return Err(Invalid::tags(sent.len(), quota));
    }
    let mut tags: Vec<String> = Vec::new();
    for tag in sent {
        let tag = tag.as_str().filter(|tag| is_tag(tag));
        let tag = tag.ok_or_else(|| Invalid::content("tags must have the form name:value."))?;
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}

/// `name:value`, the value may be left out: name up to 32 of letters, digits, `_` and `-`, value up to 100 characters.
fn is_tag(tag: &str) -> bool {
    let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
    let name_fits = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    name_fits && value.chars().count() <= 100 && !value.chars().any(char::is_control)
}

fn settings(body: &Body, kind: RecordType, zone: &Zone) -> Result<Settings, Invalid> {
    let sent = match body.get("settings") {
        None => return Ok(Settings::default()),
        Some(Value::Object(sent)) => Body(sent),
        Some(_) => return Err(Invalid::content("settings must be an object.")),
    };
    let settings = Settings {
        ipv4_only: sent.flag("ipv4_only")?,
        ipv6_only: sent.flag("ipv6_only")?,
        flatten_cname: sent.flag("flatten_cname")?,
    };
    if settings.ipv4_only && settings.ipv6_only {
        return Err(Invalid::content("ipv4_only and ipv6_only exclude each other."));
    }
    if settings.flatten_cname && (kind != RecordType::Cname || !zone.plan.may_flatten()) {
        return Err(Invalid::content("flatten_cname is not available for this record."));
    }
    Ok(settings)
}

/// A whole number, also one written with a fraction of zero, as some clients do.
#[allow(clippy::cast_possible_truncation)] // the range is checked before
fn whole(value: &Value) -> Option<i64> {
    let number = data::number(value)?;
    (number.fract() == 0.0 && number.abs() < 1e12).then_some(number as i64)
}
