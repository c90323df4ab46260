//! The `data` object of record types that have one, and the `content` that the server writes from it.

use serde_json::{Map, Number, Value, json};

use super::error::Invalid;
use super::kind::RecordType;
use super::name;

/// One field of `data`.
#[derive(Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    /// Whether leaving it out means zero.
    optional: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A whole number from zero up to this.
    Whole(u32),
    /// A number in this range.
    Decimal(f64, f64),
    /// One of two letters.
    Letter(&'static str),
    /// Text that must not be empty.
    Text,
    /// Text that may be empty.
    FreeText,
    /// A host name, without its final dot.
    Host,
    /// A host name that keeps its final dot; a lone dot stands for the record's own name.
    Target,
}

const fn whole(name: &'static str, max: u32) -> Field {
    Field {
        name,
        kind: Kind::Whole(max),
        optional: false,
    }
}

const fn text(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Text,
        optional: false,
    }
}

const fn free(name: &'static str) -> Field {
    Field {
        name,
        kind: Kind::FreeText,
        optional: false,
    }
}

const fn zero_up_to(name: &'static str, max: f64) -> Field {
    Field {
        name,
        kind: Kind::Decimal(0.0, max),
        optional: true,
    }
}

const BYTE: u32 = 255;
const WORD: u32 = 65_535;
const METRES: f64 = 90_000_000.0;

static CAA: [Field; 3] = [whole("flags", BYTE), text("tag"), free("value")];
static CERT: [Field; 4] = [
    whole("type", WORD),
    whole("key_tag", WORD),
    whole("algorithm", BYTE),
    text("certificate"),
];
static DNSKEY: [Field; 4] = [
    whole("flags", WORD),
    whole("protocol", BYTE),
    whole("algorithm", BYTE),
    text("public_key"),
];
static DS: [Field; 4] = [
    whole("key_tag", WORD),
    whole("algorithm", BYTE),
    whole("digest_type", BYTE),
    text("digest"),
];
static SVCB: [Field; 3] = [
    whole("priority", WORD),
    Field {
        name: "target",
        kind: Kind::Target,
        optional: false,
    },
    free("value"),
];
static LOC: [Field; 12] = [
    Field {
        name: "lat_degrees",
        kind: Kind::Whole(90),
        optional: false,
    },
    Field {
        name: "lat_minutes",
        kind: Kind::Whole(59),
        optional: true,
    },
    zero_up_to("lat_seconds", 59.999),
    Field {
        name: "lat_direction",
        kind: Kind::Letter("NS"),
        optional: false,
    },
    Field {
        name: "long_degrees",
        kind: Kind::Whole(180),
        optional: false,
    },
    Field {
        name: "long_minutes",
        kind: Kind::Whole(59),
        optional: true,
    },
    zero_up_to("long_seconds", 59.999),
    Field {
        name: "long_direction",
        kind: Kind::Letter("EW"),
        optional: false,
    },
    Field {
        name: "altitude",
        kind: Kind::Decimal(-100_000.0, 42_849_672.95),
        optional: true,
    },
    zero_up_to("size", METRES),
    zero_up_to("precision_horz", METRES),
    zero_up_to("precision_vert", METRES),
];
static NAPTR: [Field; 6] = [
    whole("order", WORD),
    whole("preference", WORD),
    free("flags"),
    free("service"),
    free("regex"),
    text("replacement"),
];
static TLSA: [Field; 4] = [
    whole("usage", BYTE),
    whole("selector", BYTE),
    whole("matching_type", BYTE),
    text("certificate"),
];
static SRV: [Field; 4] = [
    whole("priority", WORD),
    whole("weight", WORD),
    whole("port", WORD),
    Field {
        name: "target",
        kind: Kind::Host,
        optional: false,
    },
];
static SSHFP: [Field; 3] = [whole("algorithm", BYTE), whole("type", BYTE), text("fingerprint")];
static URI: [Field; 2] = [whole("weight", WORD), text("target")];

/// The fields of a type's `data`; none for types whose value is `content`.
pub(super) fn fields(kind: RecordType) -> &'static [Field] {
    match kind {
        RecordType::Caa => &CAA,
        RecordType::Cert => &CERT,
        RecordType::Dnskey => &DNSKEY,
        RecordType::Ds => &DS,
        RecordType::Https | RecordType::Svcb => &SVCB,
        RecordType::Loc => &LOC,
        RecordType::Naptr => &NAPTR,
        RecordType::Smimea | RecordType::Tlsa => &TLSA,
        RecordType::Srv => &SRV,
        RecordType::Sshfp => &SSHFP,
        RecordType::Uri => &URI,
        _ => &[],
    }
}

/// Checks and normalises `data`: numbers may come as text, hosts lose their case and final dot, unknown fields are dropped.
pub(super) fn normalise(kind: RecordType, sent: &Map<String, Value>) -> Result<Map<String, Value>, Invalid> {
    let mut data = Map::new();
    for field in fields(kind) {
        let value = match sent.get(field.name) {
            None | Some(Value::Null) if field.optional => json!(0),
            // A parameter list, a CAA value or a NAPTR text may be left out where it may be empty.
            None | Some(Value::Null) if matches!(field.kind, Kind::FreeText) => json!(""),
            None | Some(Value::Null) => return Err(Invalid::missing(field.name)),
            Some(value) => field
                .normalise(value)
                .ok_or_else(|| Invalid::content(format!("Content for {kind} record is invalid: {}.", field.name)))?,
        };
        data.insert(field.name.to_owned(), value);
    }
    if kind == RecordType::Caa {
        let tag = data["tag"].as_str().unwrap_or_default().to_ascii_lowercase();
        if !tag.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(Invalid::content("Content for CAA record is invalid: tag."));
        }
        data.insert("tag".into(), Value::String(tag));
    }
    Ok(data)
}

impl Field {
    fn normalise(&self, value: &Value) -> Option<Value> {
        match self.kind {
            Kind::Whole(max) => {
                let number = number(value)?;
                let fits = number.fract() == 0.0 && (0.0..=f64::from(max)).contains(&number);
                fits.then(|| whole_number(number)).flatten()
            }
            Kind::Decimal(min, max) => {
                let number = number(value)?;
                if !(min..=max).contains(&number) {
                    return None;
                }
                if number.fract() == 0.0 {
                    whole_number(number)
                } else {
                    Number::from_f64(number).map(Value::Number)
                }
            }
            Kind::Letter(letters) => {
                let letter = value.as_str()?.to_ascii_uppercase();
                (letter.len() == 1 && letters.contains(&letter)).then_some(Value::String(letter))
            }
            Kind::Text => value
                .as_str()
                .filter(|text| !text.is_empty() && is_line(text))
                .map(|text| json!(text)),
            Kind::FreeText => value.as_str().filter(|text| is_line(text)).map(|text| json!(text)),
            Kind::Host => match value.as_str()? {
                "." => Some(json!(".")),
                host => name::host(host).map(Value::String),
            },
            Kind::Target => match value.as_str()? {
                "." => Some(json!(".")),
                target => {
                    let dot = if target.ends_with('.') { "." } else { "" };
                    name::host(target).map(|host| Value::String(format!("{host}{dot}")))
                }
            },
        }
    }
}

fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// A number, or text that is one.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[allow(clippy::cast_possible_truncation)] // callers have checked a range far inside i64
fn whole_number(number: f64) -> Option<Value> {
    (number.abs() < 1e15).then(|| json!(number as i64))
}

/// `content` as the server writes it. The forms of SRV (without the priority), LOC, SVCB and HTTPS stand in Cloudflare's
/// own tests; the others follow the presentation form of the type.
pub(super) fn content(kind: RecordType, data: &Map<String, Value>) -> String {
    let plain = |field: &str| match &data[field] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let decimal = |field: &str, places: usize| format!("{:.places$}", data[field].as_f64().unwrap_or_default());
    let joined = |names: &[&str]| names.iter().map(|name| plain(name)).collect::<Vec<_>>().join(" ");
    match kind {
        RecordType::Caa => format!("{} {} \"{}\"", plain("flags"), plain("tag"), plain("value")),
        RecordType::Cert => joined(&["type", "key_tag", "algorithm", "certificate"]),
        RecordType::Dnskey => joined(&["flags", "protocol", "algorithm", "public_key"]),
        RecordType::Ds => joined(&["key_tag", "algorithm", "digest_type", "digest"]),
        RecordType::Https | RecordType::Svcb => joined(&["priority", "target", "value"]).trim_end().to_owned(),
        RecordType::Loc => [
            joined(&["lat_degrees", "lat_minutes"]),
            decimal("lat_seconds", 3),
            plain("lat_direction"),
            joined(&["long_degrees", "long_minutes"]),
            decimal("long_seconds", 3),
            plain("long_direction"),
            decimal("altitude", 2),
            decimal("size", 2),
            decimal("precision_horz", 2),
            decimal("precision_vert", 2),
        ]
        .join(" "),
        RecordType::Naptr => format!(
            "{} \"{}\" \"{}\" \"{}\" {}",
            joined(&["order", "preference"]),
            plain("flags"),
            plain("service"),
            plain("regex"),
            plain("replacement")
        ),
        RecordType::Smimea | RecordType::Tlsa => joined(&["usage", "selector", "matching_type", "certificate"]),
        RecordType::Srv => joined(&["weight", "port", "target"]),
        RecordType::Sshfp => joined(&["algorithm", "type", "fingerprint"]),
        RecordType::Uri => format!("{} \"{}\"", plain("weight"), plain("target")),
        _ => String::new(),
    }
}

/// SVCB parameters sorted by key, every value in quotes.
pub(super) fn sorted_params(value: &str) -> String {
    let mut params = Vec::new();
    let mut rest = value.trim_start();
    while !rest.is_empty() {
        let end = param_end(rest);
        params.push(match rest[..end].split_once('=') {
            Some((key, value)) => format!("{key}=\"{}\"", value.trim_matches('"')),
            None => rest[..end].to_owned(),
        });
        rest = rest[end..].trim_start();
    }
    params.sort();
    params.join(" ")
}

/// Where the first parameter of `text` ends: at a blank outside quotes.
fn param_end(text: &str) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => return at,
            _ => {}
        }
    }
    text.len()
}
