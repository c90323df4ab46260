//! The values that stories are told with: record specs of all 21 types, in the spellings of users, and the request bodies
//! that mean the same. Written against Cloudflare's documentation, not with the code under test.

use kflare_api::RecordType;
use rand::{Rng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

/// The domains.
pub const DOMAINS: [&str; 2] = ["alpha.example", "beta.example"];

/// Few names, so that look-alikes meet.
const NAMES: [&str; 8] = ["www", "WWW", "@", "*", "*.wild", "bücher", "_sip._tcp", "a.b"];

/// Record types that may stand beside each other, and CNAME.
pub fn record_type(rng: &mut impl Rng) -> RecordType {
    // Half of all records are of the types that most records are of.
    const USUAL: [RecordType; 4] = [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt];
    let all: &[RecordType] = if rng.random_bool(0.5) { &USUAL } else { RecordType::ALL };
    all.choose(rng).copied().unwrap_or(RecordType::A)
}

/// A spec without its zone.
pub fn spec(rng: &mut impl Rng) -> Map<String, Value> {
    let kind = record_type(rng);
    let name = *NAMES.choose(rng).unwrap_or(&"www");
    let mut spec = value(kind, rng.random_range(0..3));
    spec.insert("type".to_owned(), json!(kind));
    spec.insert("name".to_owned(), json!(name));
    if rng.random_bool(0.3) {
        spec.insert("ttl".to_owned(), json!(ttl(rng)));
    }
    if rng.random_bool(0.2) && kind.is_proxiable() {
        spec.insert("proxied".to_owned(), json!(true));
    }
    if rng.random_bool(0.3) {
        spec.insert("comment".to_owned(), json!(comment(rng)));
    }
    if rng.random_bool(0.1) {
        spec.insert("tags".to_owned(), json!(tags(rng)));
    }
    if rng.random_bool(0.1) && kind == RecordType::Cname {
        spec.insert("settings".to_owned(), json!({ "flattenCNAME": rng.random_bool(0.5) }));
    }
    spec
}

/// A merge patch for a spec of that type: one field, or its whole value.
pub fn edit(rng: &mut impl Rng, kind: RecordType) -> Value {
    match rng.random_range(0..7) {
        0 => json!({ "ttl": ttl(rng) }),
        1 => json!({ "comment": comment(rng) }),
        2 if kind.is_proxiable() => json!({ "proxied": rng.random_bool(0.5) }),
        3 => json!({ "tags": tags(rng) }),
        // One of the two at most, and only where a record is proxied: otherwise Cloudflare refuses it.
        4 if kind.is_proxiable() => {
            let setting = *["ipv4Only", "ipv6Only"].choose(rng).unwrap_or(&"ipv4Only");
            json!({ "settings": { setting: rng.random_bool(0.5) } })
        }
        5 if kind == RecordType::Cname => json!({ "settings": { "flattenCNAME": rng.random_bool(0.5) } }),
        _ => Value::Object(value(kind, rng.random_range(0..3))),
    }
}

/// A change that somebody else makes to a record.
pub fn foreign_change(rng: &mut impl Rng) -> Value {
    match rng.random_range(0..4) {
        0 => json!({ "ttl": ttl(rng) }),
        1 => json!({ "comment": comment(rng) }),
        2 => json!({ "proxied": rng.random_bool(0.5) }),
        _ => json!({ "content": format!("192.0.2.{}", rng.random_range(100..120)) }),
    }
}

fn ttl(rng: &mut impl Rng) -> u64 {
    // 30 is refused outside Enterprise zones.
    *[1, 60, 300, 3600, 86_400, 30].choose(rng).unwrap_or(&1)
}

fn comment(rng: &mut impl Rng) -> String {
    match rng.random_range(0..12) {
        // Too long for the Free plan.
        0 => "c".repeat(150),
        number => format!("comment {}", number % 3),
    }
}

fn tags(rng: &mut impl Rng) -> Vec<&'static str> {
    [vec!["team:blue"], vec!["b:2", "a:1"], vec![]]
        .choose(rng)
        .cloned()
        .unwrap_or_default()
}

/// One of three values of each type.
fn value(kind: RecordType, variant: u32) -> Map<String, Value> {
    let n = variant + 1;
    let hex = format!("abcdef0{n}");
    let data = |data: Value| json!({ "data": data });
    let content = |content: String| json!({ "content": content });
    let value = match kind {
        RecordType::A => content(format!("192.0.2.{n}")),
        RecordType::Aaaa => content(format!("2001:DB8:0:0:8000:0:0:{n}")),
        RecordType::Caa => data(json!({ "flags": 0, "tag": "issue", "value": format!("ca{n}.example.net") })),
        RecordType::Cert => data(json!({ "type": 9, "keyTag": n, "algorithm": 0, "certificate": "dGVzdA==" })),
        RecordType::Cname => content(format!("Target{n}.Example.NET.")),
        RecordType::Dnskey => {
            data(json!({ "flags": 257, "protocol": 3, "algorithm": 12 + n, "publicKey": "dGVzdA==" }))
        }
        RecordType::Ds => data(json!({ "keyTag": 2370 + n, "algorithm": 13, "digestType": 2, "digest": hex })),
        RecordType::Https => data(json!({ "priority": n, "target": ".", "value": "alpn=\"h2,h3\"" })),
        RecordType::Loc => data(
            json!({ "latDegrees": 50 + n, "latMinutes": 22, "latSeconds": 23.5, "latDirection": "N",
            "longDegrees": 4, "longMinutes": 53, "longSeconds": 32, "longDirection": "E", "altitude": -2,
            "size": 100, "precisionHorz": 10, "precisionVert": 10 }),
        ),
        RecordType::Mx => json!({ "content": format!("Mail{n}.example.net."), "priority": 10 * n }),
        RecordType::Naptr => data(
            json!({ "order": 100, "preference": n, "flags": "S", "service": "SIP+D2U",
            "regex": "!^.*$!sip:info@example.com!", "replacement": "_sip._udp.example.com" }),
        ),
        RecordType::Ns => content(format!("NS{n}.Example.net.")),
        RecordType::Openpgpkey => content(format!("dGVzd{n}==")),
        RecordType::Ptr => content(format!("Host{n}.example.net.")),
        RecordType::Smimea | RecordType::Tlsa => {
            data(json!({ "usage": 3, "selector": 1, "matchingType": 1, "certificate": hex }))
        }
        RecordType::Srv => data(json!({ "priority": 10, "weight": n, "port": 5060, "target": "SIP.example.com." })),
        RecordType::Sshfp => data(json!({ "algorithm": 4, "type": 2, "fingerprint": hex })),
        RecordType::Svcb => {
            data(json!({ "priority": n, "target": "svc.example.net", "value": "alpn=\"h2\" port=\"8443\"" }))
        }
        RecordType::Txt => content(format!("token=MiXeD {n}; \"quoted\" and grüße")),
        RecordType::Uri => json!({ "priority": 10, "data": { "weight": n, "target": "https://Example.com/Path" } }),
    };
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The request body that creates what a spec asks for.
pub fn body(spec: &Value) -> Map<String, Value> {
    let mut body = Map::new();
    for field in ["type", "name", "ttl", "proxied", "priority", "comment", "tags"] {
        if !spec[field].is_null() {
            body.insert(field.to_owned(), spec[field].clone());
        }
    }
    if let Some(content) = spec["content"].as_str() {
        let content = if spec["type"] == "TXT" {
            format!("\"{}\"", content.replace('\\', "\\\\").replace('"', "\\\""))
        } else {
            content.to_owned()
        };
        body.insert("content".to_owned(), json!(content));
    }
    for field in ["data", "settings"] {
        if let Some(members) = spec[field].as_object() {
            let members: Map<String, Value> = members
                .iter()
                .map(|(name, value)| (snake_case(name), value.clone()))
                .collect();
            body.insert(field.to_owned(), Value::Object(members));
        }
    }
    body
}

/// The API's spelling of a field of a spec.
pub fn snake_case(name: &str) -> String {
    if name == "flattenCNAME" {
        return "flatten_cname".to_owned();
    }
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The full name of a record, as Cloudflare shows it.
pub fn full_name(name: &str, domain: &str) -> String {
    let name = name
        .trim_end_matches('.')
        .to_lowercase()
        .replace("bücher", "xn--bcher-kva");
    if name == "@" || name == domain {
        domain.to_owned()
    } else if name.ends_with(&format!(".{domain}")) {
        name
    } else {
        format!("{name}.{domain}")
    }
}
