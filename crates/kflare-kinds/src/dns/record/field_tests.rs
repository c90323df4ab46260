//! One field at a time: what changes, what is sent, and what is left alone.

use std::collections::BTreeMap;

use super::{
    echo::{Echo, echo},
    tests::{ZONE, body, created, differences, remote, sent, with_content, with_data},
    *,
};
use crate::dns::fields::{self, FieldKind};

// Field case 14.
#[test]
fn each_field_changed_alone_is_sent() {
    let mx = DNSRecordSpec {
        priority: Some(10),
        ..with_content(RecordType::Mx, "@", "mail.example.net")
    };
    let cname = with_content(RecordType::Cname, "www", "target.example.net");
    let uri = DNSRecordSpec {
        priority: Some(1),
        ..with_data(
            RecordType::Uri,
            "_http._tcp",
            &json!({"weight": 1, "target": "https://example.net/"}),
        )
    };
    let settings = |flatten_cname, ipv4_only, ipv6_only| {
        Some(RecordSettings {
            flatten_cname,
            ipv4_only,
            ipv6_only,
        })
    };
    let changes: Vec<(&DNSRecordSpec, DNSRecordSpec, &str)> = vec![
        (
            &mx,
            DNSRecordSpec {
                priority: Some(20),
                ..mx.clone()
            },
            "priority",
        ),
        (
            &mx,
            DNSRecordSpec {
                content: Some("mail2.example.net".into()),
                ..mx.clone()
            },
            "content",
        ),
        (
            &mx,
            DNSRecordSpec {
                ttl: Some(300),
                ..mx.clone()
            },
            "ttl",
        ),
        (
            &mx,
            DNSRecordSpec {
                comment: Some("a note".into()),
                ..mx.clone()
            },
            "comment",
        ),
        (
            &mx,
            DNSRecordSpec {
                tags: vec!["team:web".into()],
                ..mx.clone()
            },
            "tags",
        ),
        (
            &cname,
            DNSRecordSpec {
                proxied: Some(true),
                ..cname.clone()
            },
            "proxied",
        ),
        (
            &cname,
            DNSRecordSpec {
                settings: settings(Some(true), None, None),
                ..cname.clone()
            },
            "settings",
        ),
        (
            &cname,
            DNSRecordSpec {
                settings: settings(None, Some(true), None),
                ..cname.clone()
            },
            "settings",
        ),
        (
            &cname,
            DNSRecordSpec {
                settings: settings(None, None, Some(true)),
                ..cname.clone()
            },
            "settings",
        ),
        (
            &uri,
            DNSRecordSpec {
                priority: Some(2),
                ..uri.clone()
            },
            "priority",
        ),
    ];
    for (from, to, field) in changes {
        let there = echo(&body(from), Echo::default());
        assert_eq!(differences(&to, &there), [field]);
        assert_eq!(sent(&to, &there).get(field), body(&to).get(field), "{field}");
        // And back: what is no longer set is cleared, but for priority and settings, which are left alone.
        let back = differences(from, &echo(&body(&to), Echo::default()));
        if field == "settings" {
            assert!(back.is_empty());
        } else {
            assert_eq!(back, [field]);
        }
    }
}

// Field case 14.
#[test]
fn each_field_of_data_changed_alone_is_a_difference() {
    for record_type in RecordType::ALL.iter().filter(|it| it.is_data()) {
        let sample = |pick: usize| -> BTreeMap<&str, Value> {
            fields::of(*record_type)
                .iter()
                .map(|field| {
                    let value = match field.kind {
                        FieldKind::Whole(_) => json!(pick + 1),
                        FieldKind::Decimal(..) => json!(0.5 + [0.0, 1.0][pick]),
                        FieldKind::Text => json!(["One", "Two"][pick]),
                        FieldKind::Word => json!(["issue", "iodef"][pick]),
                        FieldKind::Letter(letters) => json!(letters[pick]),
                        FieldKind::Host => json!(["a.example.net", "b.example.net"][pick]),
                        FieldKind::Hex => json!(["aa", "bb"][pick]),
                        FieldKind::Base64 => json!(["AAAA", "BBBB"][pick]),
                        FieldKind::Params => json!(["alpn=\"h2\"", "alpn=\"h3\""][pick]),
                    };
                    (field.name, value)
                })
                .collect()
        };
        let there = echo(&body(&with_data(*record_type, "x", &json!(sample(0)))), Echo::default());
        for field in fields::of(*record_type) {
            let mut changed = sample(0);
            changed.insert(field.name, sample(1)[field.name].clone());
            let wanted = with_data(*record_type, "x", &json!(changed));
            assert_eq!(differences(&wanted, &there), ["data"], "{record_type} {}", field.name);
            assert_ne!(
                member(&body(&wanted)),
                member(&canonical_remote(&there)),
                "{record_type} {}",
                field.name
            );
        }
    }
}

#[test]
fn the_priority_of_mx_is_no_identity_and_is_left_alone_when_unset() {
    let mx = |priority| DNSRecordSpec {
        priority,
        ..with_content(RecordType::Mx, "@", "mail.example.net")
    };
    assert_eq!(member(&body(&mx(Some(10)))), member(&body(&mx(Some(20)))));
    let mut there = remote("MX", "example.com", "mail.example.net");
    there["priority"] = json!(10);
    assert!(differences(&mx(None), &there).is_empty());
    assert_eq!(differences(&mx(Some(0)), &there), ["priority"]);
    // SRV has its priority in data; Cloudflare may echo one beside it.
    let srv = json!({"priority": 1, "weight": 1, "port": 1, "target": "a.example.net"});
    let srv = DNSRecordSpec {
        priority: Some(7),
        ..with_data(RecordType::Srv, "_sip._tcp", &srv)
    };
    assert_eq!(body(&srv).get("priority"), None);
}

// Field case 15.
#[test]
fn a_proxied_record_wants_automatic_ttl_whatever_the_spec_says() {
    let a = |proxied, ttl| DNSRecordSpec {
        proxied,
        ttl,
        ..with_content(RecordType::A, "p", "192.0.2.1")
    };
    let mut there = remote("A", "p.example.com", "192.0.2.1");
    there["proxied"] = json!(true);
    assert!(differences(&a(Some(true), Some(300)), &there).is_empty());
    let wanted = |spec: &DNSRecordSpec| Wanted::from_spec(spec, ZONE, None).unwrap();
    assert_eq!(wanted(&a(Some(true), Some(300))).ignored_ttl(), Some(300));
    assert_eq!(wanted(&a(Some(true), Some(1))).ignored_ttl(), None);
    assert_eq!(wanted(&a(None, Some(300))).ignored_ttl(), None);
    assert_eq!(wanted(&a(None, None)).ttl(), 1);
    assert_eq!(body(&a(None, Some(30)))["ttl"], 30);
    there["proxied"] = json!(false);
    there["ttl"] = json!(300.0);
    assert!(differences(&a(None, Some(300)), &there).is_empty());
}

// Field case 17.
#[test]
fn no_comment_and_no_tags_in_any_form_are_no_difference() {
    let wanted = with_content(RecordType::A, "c", "192.0.2.1");
    for (comment, tags) in [(json!(null), json!(null)), (json!(""), json!([]))] {
        let mut there = remote("A", "c.example.com", "192.0.2.1");
        there["comment"] = comment;
        there["tags"] = tags;
        assert!(differences(&wanted, &there).is_empty());
    }
    let mut there = remote("A", "c.example.com", "192.0.2.1");
    there
        .as_object_mut()
        .unwrap()
        .retain(|field, _| field != "comment" && field != "tags");
    assert!(differences(&wanted, &there).is_empty());
    there["comment"] = json!("by hand");
    there["tags"] = json!(["Team:Blue"]);
    assert_eq!(differences(&wanted, &there), ["comment", "tags"]);
    let tagged = DNSRecordSpec {
        tags: vec!["b:2".into(), "TEAM:Blue".into(), "b:2".into()],
        ..wanted
    };
    there["tags"] = json!(["team:Blue", "B:2"]);
    assert_eq!(differences(&tagged, &there), ["comment"]);
}

// Field case 19.
#[test]
fn settings_that_are_off_are_no_difference_and_are_not_sent() {
    let settings = |on| {
        Some(RecordSettings {
            flatten_cname: Some(on),
            ..RecordSettings::default()
        })
    };
    let cname = with_content(RecordType::Cname, "s", "t.example.net");
    let off = DNSRecordSpec {
        settings: settings(false),
        ..cname.clone()
    };
    let answers = [
        json!({}),
        json!(null),
        json!({"flatten_cname": false}),
        json!({"flatten_cname": null}),
    ];
    for answer in answers {
        let mut there = remote("CNAME", "s.example.com", "t.example.net");
        there["settings"] = answer;
        assert!(differences(&off, &there).is_empty());
        assert_eq!(sent(&off, &there).get("settings"), None);
        there.as_object_mut().unwrap().remove("settings");
        assert!(differences(&off, &there).is_empty());
    }
    assert_eq!(created(&off).get("settings"), None);
    let mut on_there = remote("CNAME", "s.example.com", "t.example.net");
    on_there["settings"] = json!({"flatten_cname": true, "ipv4_only": true});
    assert_eq!(differences(&off, &on_there), ["settings"]);
    assert_eq!(sent(&off, &on_there)["settings"], json!({"flatten_cname": false}));
    // A setting that the spec does not mention is left alone.
    let on = DNSRecordSpec {
        settings: settings(true),
        ..cname.clone()
    };
    assert!(differences(&on, &on_there).is_empty());
    assert!(differences(&cname, &on_there).is_empty());
    assert_eq!(created(&on)["settings"], json!({"flatten_cname": true}));
}
