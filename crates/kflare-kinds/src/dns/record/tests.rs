use kflare_api::common::ResourceRef;
use kflare_engine::{Desired, NaturalKey, plan::diff};

use super::*;
use crate::dns_record::{FIELDS, patch_body};

pub(super) const ZONE: &str = "example.com";

pub(super) fn spec(record_type: RecordType, name: &str) -> DNSRecordSpec {
    DNSRecordSpec {
        zone_ref: ResourceRef::from("example-com"),
        name: name.to_owned(),
        record_type,
        content: None,
        data: None,
        tunnel_ref: None,
        ttl: None,
        proxied: None,
        priority: None,
        comment: None,
        tags: Vec::new(),
        settings: None,
    }
}

pub(super) fn with_content(record_type: RecordType, name: &str, content: &str) -> DNSRecordSpec {
    DNSRecordSpec {
        content: Some(content.to_owned()),
        ..spec(record_type, name)
    }
}

pub(super) fn with_data(record_type: RecordType, name: &str, data: &Value) -> DNSRecordSpec {
    DNSRecordSpec {
        data: Some(data.as_object().unwrap().clone().into_iter().collect()),
        ..spec(record_type, name)
    }
}

pub(super) fn body(spec: &DNSRecordSpec) -> Map<String, Value> {
    Wanted::from_spec(spec, ZONE, None).unwrap().body()
}

/// The managed fields in which what Cloudflare has differs from what the spec wants.
pub(super) fn differences(spec: &DNSRecordSpec, remote: &Value) -> Vec<String> {
    let changes = diff(&body(spec), &canonical_remote(remote), FIELDS);
    let mut fields: Vec<String> = changes
        .iter()
        .filter_map(|change| change.path.split('.').next().map(str::to_owned))
        .collect();
    fields.dedup();
    fields
}

/// What is sent to make `remote` what the spec wants.
pub(super) fn sent(spec: &DNSRecordSpec, remote: &Value) -> Map<String, Value> {
    let body = body(spec);
    let changes = diff(&body, &canonical_remote(remote), FIELDS);
    let desired = Desired {
        key: NaturalKey {
            group: String::new(),
            member: member(&body),
        },
        body,
        ..Desired::default()
    };
    patch_body(&desired, &changes)
}

/// What is sent to create it.
pub(super) fn created(spec: &DNSRecordSpec) -> Map<String, Value> {
    let body = body(spec);
    request_body(body.clone(), &body, |_| false)
}

pub(super) fn remote(record_type: &str, name: &str, content: &str) -> Value {
    json!({
        "id": "r1", "type": record_type, "name": name, "content": content, "ttl": 1, "proxied": false,
        "proxiable": true, "comment": null, "tags": [], "settings": {}, "meta": {},
        "created_on": "2026-01-01T00:00:00Z", "modified_on": "2026-01-01T00:00:00Z",
    })
}

// Field case 1: TXT quotes added or not added by the API.
#[test]
fn txt_answered_with_or_without_quotes_is_no_difference() {
    let wanted = with_content(RecordType::Txt, "_check", "token=abc 123");
    for answer in ["\"token=abc 123\"", "token=abc 123", "\"token=\" \"abc 123\""] {
        assert!(
            differences(&wanted, &remote("TXT", "_check.example.com", answer)).is_empty(),
            "{answer}"
        );
    }
    assert_eq!(body(&wanted)["content"], "\"token=abc 123\"");
    assert_eq!(
        differences(&wanted, &remote("TXT", "_check.example.com", "token=abc 124")),
        ["content"]
    );
}

// Field case 1. DNS-SD and others read each string by itself, so a cut that the spec makes is kept.
#[test]
fn the_strings_of_a_text_are_kept_as_the_spec_cuts_them() {
    let there = |content: &str| remote("TXT", "_http._tcp.example.com", content);
    let cut = with_content(RecordType::Txt, "_http._tcp", r#""txtvers=1" "path=/a b""#);
    let whole = with_content(RecordType::Txt, "_http._tcp", "txtvers=1path=/a b");
    assert_eq!(created(&cut)["content"], r#""txtvers=1" "path=/a b""#);
    assert_eq!(created(&cut).get(STRINGS), None);
    for answer in [r#""txtvers=1" "path=/a b""#, r#""txtvers=1"  "path=/a\032b""#] {
        assert!(differences(&cut, &there(answer)).is_empty(), "{answer}");
    }
    // Joined or cut otherwise it is another value to whom it is for; bare text does not say how it is cut.
    for answer in [r#""txtvers=1path=/a b""#, r#""txtvers=1p" "ath=/a b""#] {
        assert_eq!(differences(&cut, &there(answer)), [STRINGS], "{answer}");
        let patch = sent(&cut, &there(answer));
        assert_eq!(Value::Object(patch), json!({ "content": r#""txtvers=1" "path=/a b""# }));
    }
    assert!(differences(&cut, &there("txtvers=1path=/a b")).is_empty());
    // One string says nothing of cuts, and which record it is does not depend on them.
    assert!(differences(&whole, &there(r#""txtvers=1" "path=/a b""#)).is_empty());
    assert_eq!(member(&body(&cut)), member(&body(&whole)));
    // Another text goes out cut as well.
    let patch = sent(&cut, &there("something else"));
    assert_eq!(Value::Object(patch), json!({ "content": r#""txtvers=1" "path=/a b""# }));
}

// Field case 4: trailing dot on a target.
#[test]
fn a_final_dot_on_a_target_is_no_difference() {
    let wanted = with_content(RecordType::Cname, "_acme", "_x1.validations.example.net.");
    assert!(
        differences(
            &wanted,
            &remote("CNAME", "_acme.example.com", "_x1.validations.example.net")
        )
        .is_empty()
    );
    let null = with_content(RecordType::Mx, "@", ".");
    assert!(differences(&null, &remote("MX", "example.com", ".")).is_empty());
    assert_eq!(body(&null)["content"], ".");
}

// Field case 5: record name relative, full, with dot, or @.
#[test]
fn the_spelling_of_a_name_is_no_difference() {
    for (name, full) in [
        ("www", "www.example.com"),
        ("www.example.com", "www.example.com"),
        ("www.example.com.", "www.example.com"),
        ("@", "example.com"),
        ("example.com", "example.com"),
    ] {
        assert!(
            differences(
                &with_content(RecordType::A, name, "192.0.2.1"),
                &remote("A", full, "192.0.2.1")
            )
            .is_empty()
        );
    }
}

// Field case 7: upper and lower case.
#[test]
fn the_case_of_names_and_targets_is_no_difference_and_that_of_text_is() {
    let cname = with_content(RecordType::Cname, "WWW", "Target.Example.NET");
    assert!(differences(&cname, &remote("CNAME", "www.example.com", "target.example.net")).is_empty());
    let txt = with_content(RecordType::Txt, "t", "MiXeD");
    assert_eq!(body(&txt)["content"], "\"MiXeD\"");
    assert_eq!(
        differences(&txt, &remote("TXT", "t.example.com", "\"mixed\"")),
        ["content"]
    );
}

// Field case 9: IPv6 in a different spelling.
#[test]
fn addresses_compare_as_addresses_of_their_family() {
    let aaaa = with_content(RecordType::Aaaa, "v6", "2001:DB8:0:0:8000:0:0:0");
    assert!(differences(&aaaa, &remote("AAAA", "v6.example.com", "2001:db8:0:0:8000::")).is_empty());
    let wrong = Wanted::from_spec(&with_content(RecordType::Aaaa, "v6", "203.0.113.7"), ZONE, None).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "spec.content of this AAAA record must be an IPv6 address"
    );
    assert!(Wanted::from_spec(&with_content(RecordType::A, "v4", "2001:db8::1"), ZONE, None).is_err());
}

// Field case 10: CAA text form, data form, number or string.
#[test]
fn the_content_that_cloudflare_renders_from_data_is_not_looked_at() {
    let caa = with_data(
        RecordType::Caa,
        "@",
        &json!({"flags": 0, "tag": "issue", "value": "ca.example.net"}),
    );
    let mut answer = remote("CAA", "example.com", "0 issue \"ca.example.net\"");
    answer["data"] = json!({"flags": "0", "tag": "issue", "value": "ca.example.net"});
    assert!(differences(&caa, &answer).is_empty());
    assert_eq!(body(&caa).get("content"), None);
    assert_eq!(member(&body(&caa)), member(&canonical_remote(&answer)));
}

// Field case 21: a CNAME at the apex is normal.
#[test]
fn a_tunnel_gives_a_cname_also_at_the_apex() {
    let app = DNSRecordSpec {
        tunnel_ref: Some("web".into()),
        ..spec(RecordType::Cname, "@")
    };
    let id = "F70FF985-A4EF-4643-BBBC-4A0ED4FC8415";
    let wanted = Wanted::from_spec(&app, ZONE, Some(id)).unwrap().body();
    assert_eq!(wanted["name"], "example.com");
    assert_eq!(
        wanted["content"],
        "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415.cfargotunnel.com"
    );
    assert!(Wanted::from_spec(&app, ZONE, None).is_err());
    let planned = Wanted::from_spec(&app, ZONE, Some("")).unwrap().body();
    assert_eq!(planned["content"], "<tunnel id>.cfargotunnel.com");
}

// Field case 22: wildcard names.
#[test]
fn a_star_inside_a_name_is_refused_with_the_field() {
    assert_eq!(
        body(&with_content(RecordType::A, "*", "192.0.2.1"))["name"],
        "*.example.com"
    );
    let error = Wanted::from_spec(&with_content(RecordType::A, "a.*", "192.0.2.1"), ZONE, None).unwrap_err();
    assert!(error.to_string().starts_with("spec.name: "), "{error}");
}

// Field case 24: several equal or similar records.
#[test]
fn members_of_a_set_are_told_apart_by_their_value() {
    let there = ["192.0.2.1", "192.0.2.2"].map(|it| canonical_remote(&remote("A", "multi.example.com", it)));
    let wanted = body(&with_content(RecordType::A, "multi", "192.0.2.2"));
    assert_ne!(member(&there[0]), member(&wanted));
    assert_eq!(member(&there[1]), member(&wanted));
    let txt = ["\"v=spf1 -all\"", "v=spf1 -all"].map(|it| member(&canonical_remote(&remote("TXT", "example.com", it))));
    assert_eq!(txt[0], txt[1]);
}

#[test]
fn a_value_in_the_wrong_place_is_refused() {
    let message = |spec: &DNSRecordSpec| Wanted::from_spec(spec, ZONE, Some("id")).unwrap_err().to_string();
    assert_eq!(
        message(&with_content(RecordType::Caa, "@", "0 issue x")),
        "the value of a CAA record must be given in spec.data, and nowhere else"
    );
    assert_eq!(
        message(&spec(RecordType::Txt, "@")),
        "the value of a TXT record must be given in spec.content, and nowhere else"
    );
    let tunnel = DNSRecordSpec {
        tunnel_ref: Some("web".into()),
        ..spec(RecordType::A, "@")
    };
    assert!(message(&tunnel).contains("spec.content"));
    let both = DNSRecordSpec {
        tunnel_ref: Some("web".into()),
        ..with_content(RecordType::Cname, "@", "a.example.net")
    };
    assert!(message(&both).contains("nowhere else"));
    assert_eq!(
        message(&with_content(RecordType::Mx, "@", "10 mail.example.net")),
        "spec.content of this MX record must be a host name: \"10 mail.example.net\" contains ' ', which a name cannot have"
    );
}

#[test]
fn people_read_values_as_in_a_zone_file() {
    let text = |spec: &DNSRecordSpec| content_text(&body(spec));
    assert_eq!(text(&with_content(RecordType::Txt, "@", "v=spf1 -all")), "v=spf1 -all");
    let mx = DNSRecordSpec {
        priority: Some(10),
        ..with_content(RecordType::Mx, "@", "mail.example.net")
    };
    assert_eq!(text(&mx), "10 mail.example.net");
    let caa = json!({"flags": 0, "tag": "issue", "value": "ca.example.net"});
    assert_eq!(
        text(&with_data(RecordType::Caa, "@", &caa)),
        "0 issue \"ca.example.net\""
    );
    let srv = json!({"priority": 1, "weight": 2, "port": 5060, "target": "sip.example.net"});
    assert_eq!(text(&with_data(RecordType::Srv, "@", &srv)), "1 2 5060 sip.example.net");
    let https = json!({"priority": 1, "target": ".", "value": "alpn=h2"});
    assert_eq!(text(&with_data(RecordType::Https, "@", &https)), "1 . alpn=\"h2\"");
}

#[test]
fn an_answer_out_of_the_ordinary_never_panics() {
    for answer in [
        json!(null),
        json!([]),
        json!({}),
        json!({"type": "SPF", "name": 7, "ttl": "x", "tags": [1]}),
    ] {
        let canonical = canonical_remote(&answer);
        assert!(diff(&canonical, &canonical, FIELDS).is_empty());
        assert_eq!(member(&canonical), "");
    }
}
