//! A change of one field of a spec is one write that holds that field and no other. Field case 14.

use kflare_sim::Plan;
use serde_json::{Value, json};

use crate::{
    record_types::spellings,
    stage::{Stage, play_in_zone},
};

/// Changes the spec of a record and expects one PATCH with this body.
async fn expect(stage: &Stage, name: &str, spec: Value, change: Value, body: Value) {
    let id = stage.record(name, spec);
    stage.ready(std::slice::from_ref(&id)).await;
    let remote = stage.recorded(&id).unwrap();
    let mark = stage.mark();
    stage.user.edit_spec(&id, &change);
    stage.ready(std::slice::from_ref(&id)).await;
    let since = stage.since(&mark);
    let writes = since.cloudflare_writes();
    assert_eq!(writes.len(), 1, "{name} {change}: {writes:#?}");
    assert_eq!(
        (writes[0].method.as_str(), writes[0].body.as_ref()),
        ("PATCH", Some(&body)),
        "{name} {change}"
    );
    assert!(writes[0].path.ends_with(&remote), "{name}: {}", writes[0].path);
    assert!(stage.told(&id, "Updated", &[]), "{:?}", stage.user.events(&id));
    stage.user.delete(&id);
    stage.gone(&[id]).await;
}

// Field case 14.
#[test]
fn a_common_field_goes_alone() {
    play_in_zone(Plan::Enterprise, |stage| async move {
        let a = json!({ "name": "x", "type": "A", "content": "192.0.2.1" });
        let with = |field: &str, value: Value| {
            let mut spec = a.clone();
            spec[field] = value;
            spec
        };
        let proxied = with("proxied", json!(true));
        let v4 = json!({ "settings": { "ipv4Only": true } });
        let mut v4_on = proxied.clone();
        v4_on["settings"] = v4["settings"].clone();
        let alias = json!({ "name": "x", "type": "CNAME", "content": "a.example.net" });
        let mx = json!({ "name": "x", "type": "MX", "content": "mail.example.net", "priority": 10 });
        let table = [
            (
                a.clone(),
                json!({ "content": "192.0.2.9" }),
                json!({ "content": "192.0.2.9" }),
            ),
            (a.clone(), json!({ "ttl": 300 }), json!({ "ttl": 300 })),
            (a.clone(), json!({ "ttl": 30 }), json!({ "ttl": 30 })),
            (with("ttl", json!(300)), json!({ "ttl": 600 }), json!({ "ttl": 600 })),
            (with("ttl", json!(300)), json!({ "ttl": null }), json!({ "ttl": 1 })),
            (a.clone(), json!({ "proxied": true }), json!({ "proxied": true })),
            (proxied.clone(), json!({ "proxied": null }), json!({ "proxied": false })),
            (
                with("ttl", json!(300)),
                json!({ "proxied": true }),
                json!({ "proxied": true, "ttl": 1 }),
            ),
            (a.clone(), json!({ "comment": "new" }), json!({ "comment": "new" })),
            (
                with("comment", json!("old")),
                json!({ "comment": "new" }),
                json!({ "comment": "new" }),
            ),
            (
                with("comment", json!("old")),
                json!({ "comment": null }),
                json!({ "comment": "" }),
            ),
            (
                a.clone(),
                json!({ "tags": ["b:2", "a:1"] }),
                json!({ "tags": ["a:1", "b:2"] }),
            ),
            (
                with("tags", json!(["a:1"])),
                json!({ "tags": ["a:1", "b:2"] }),
                json!({ "tags": ["a:1", "b:2"] }),
            ),
            (
                with("tags", json!(["a:1"])),
                json!({ "tags": null }),
                json!({ "tags": [] }),
            ),
            (proxied.clone(), v4, json!({ "settings": { "ipv4_only": true } })),
            (
                v4_on,
                json!({ "settings": { "ipv4Only": false } }),
                json!({ "settings": { "ipv4_only": false } }),
            ),
            (
                alias.clone(),
                json!({ "content": "b.example.net" }),
                json!({ "content": "b.example.net" }),
            ),
            (
                alias,
                json!({ "settings": { "flattenCNAME": true } }),
                json!({ "settings": { "flatten_cname": true } }),
            ),
            (mx.clone(), json!({ "priority": 20 }), json!({ "priority": 20 })),
            (mx.clone(), json!({ "priority": 0 }), json!({ "priority": 0 })),
            (
                mx,
                json!({ "content": "other.example.net" }),
                json!({ "content": "other.example.net" }),
            ),
        ];
        for (number, (spec, change, body)) in table.into_iter().enumerate() {
            expect(&stage, &format!("row-{number}"), spec, change, body).await;
        }
    });
}

/// Another valid value of a member of `data`.
fn other(member: &str, value: &Value) -> Value {
    match (member, value) {
        ("latDirection" | "lat_direction", Value::String(text)) if text == "S" => json!("N"),
        ("longDirection" | "long_direction", Value::String(text)) if text == "W" => json!("E"),
        (_, Value::String(text)) if text.parse::<u32>().is_ok() => json!(text.parse::<u32>().unwrap() + 1),
        ("latDirection", _) => json!("S"),
        ("longDirection", _) => json!("W"),
        ("tag", _) => json!("issuewild"),
        ("target" | "replacement", _) => json!("other.example.net"),
        ("value", Value::String(text)) if text.contains('=') => json!("port=\"53\""),
        ("value" | "regex" | "service" | "flags", Value::String(_)) => json!("other"),
        ("certificate" | "publicKey", Value::String(text)) if text.contains('=') => json!("b3RoZXI="),
        ("digest" | "fingerprint" | "certificate", _) => json!("01020304"),
        (_, Value::Number(number)) => json!(number.as_f64().unwrap() + 1.0),
        _ => panic!("{member} {value}"),
    }
}

fn snake_case(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            if c.is_ascii_uppercase() {
                vec!['_', c.to_ascii_lowercase()]
            } else {
                vec![c]
            }
        })
        .collect()
}

/// `data` is replaced as a whole at Cloudflare, so a change of a member sends all of them and nothing beside them.
// Field case 14.
#[test]
fn a_member_of_data_goes_with_the_others() {
    play_in_zone(Plan::Enterprise, |stage| async move {
        let mut rows = 0;
        for spec in spellings().into_iter().filter(|it| it["data"].is_object()) {
            for (member, value) in spec["data"].as_object().unwrap() {
                rows += 1;
                let id = stage.record(&format!("row-{rows}"), spec.clone());
                stage.ready(std::slice::from_ref(&id)).await;
                let before = stage.remote(&stage.recorded(&id).unwrap())["data"].clone();
                let mark = stage.mark();
                let wanted = other(member, value);
                stage
                    .user
                    .edit_spec(&id, &json!({ "data": { (member.as_str()): wanted } }));
                stage.ready(std::slice::from_ref(&id)).await;
                let since = stage.since(&mark);
                let writes = since.cloudflare_writes();
                assert_eq!(writes.len(), 1, "{spec} {member}: {writes:#?}");
                let body = writes[0].body.as_ref().unwrap().as_object().unwrap();
                assert_eq!(body.keys().collect::<Vec<_>>(), ["data"], "{spec} {member}");
                let name = snake_case(member);
                assert_ne!(body["data"][&name], before[&name], "{spec} {member}");
                let after = stage.remote(&stage.recorded(&id).unwrap())["data"].clone();
                for (field, value) in after.as_object().unwrap() {
                    let same = *value == before[field];
                    assert_eq!(same, *field != name, "{spec} {member}: {field} {before} -> {after}");
                }
                stage.user.delete(&id);
                stage.gone(&[id]).await;
            }
        }
        assert!(rows > 50, "{rows} rows");
    });
}
