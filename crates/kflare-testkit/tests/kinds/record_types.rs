//! All 21 record types in many spellings: what was written once is never written again, whichever of its forms Cloudflare
//! answers in. Field cases 1, 4, 5, 7, 9, 10, 13, 15, 19, 21, 22, 135.

use kflare_api::RecordType;
use kflare_sim::{DnsErrorForm, FlagsForm, ParamsForm, Plan, Quirks, SettingsForm, TxtForm};
use kflare_testkit::memory_api::ObjectId;
use serde_json::{Value, json};

use crate::stage::{MINUTE, Stage, play_in_zone};

/// Valid specs; every type, and of each the spellings that users write.
pub fn spellings() -> Vec<Value> {
    let long = "x".repeat(600);
    vec![
        json!({ "name": "a1", "type": "A", "content": "192.0.2.1" }),
        json!({ "name": "A2.Example.COM.", "type": "A", "content": "192.0.2.2", "ttl": 300 }),
        json!({ "name": "@", "type": "A", "content": "192.0.2.3", "proxied": true, "ttl": 300 }),
        json!({ "name": "*.wild", "type": "A", "content": "192.0.2.4", "comment": "by kflare" }),
        json!({ "name": "bücher", "type": "A", "content": "192.0.2.5", "tags": ["Team:Blue", "b:2", "a:1"] }),
        json!({ "name": "a6", "type": "A", "content": "192.0.2.6", "proxied": true, "settings": { "ipv4Only": true, "ipv6Only": false } }),
        json!({ "name": "aaaa1", "type": "AAAA", "content": "2001:DB8:0:0:8000:0:0:0" }),
        json!({ "name": "aaaa2", "type": "AAAA", "content": "::ffff:192.0.2.1" }),
        json!({ "name": "caa1", "type": "CAA", "data": { "flags": 0, "tag": "issue", "value": "ca.example.net" } }),
        json!({ "name": "caa2", "type": "CAA", "data": { "flags": "128", "tag": "IODEF", "value": "mailto:Sec@example.com" } }),
        json!({ "name": "cert", "type": "CERT", "data": { "type": 9, "keyTag": 0, "algorithm": 0, "certificate": "dGVz dA==" } }),
        json!({ "name": "cname1", "type": "CNAME", "content": "Target.Example.NET." }),
        json!({ "name": "cname2", "type": "CNAME", "content": "bücher.example.net", "settings": { "flattenCNAME": true } }),
        json!({ "name": "cname3", "type": "CNAME", "content": "t.example.net", "settings": { "flattenCNAME": false } }),
        json!({ "name": "cname4", "type": "CNAME", "content": "t.example.net", "proxied": true }),
        json!({ "name": "dnskey", "type": "DNSKEY", "data": { "flags": 257, "protocol": 3, "algorithm": 13, "publicKey": "dGVzdA==" } }),
        json!({ "name": "ds", "type": "DS", "data": { "key_tag": 2371, "algorithm": 13, "digest_type": 2, "digest": "AB CD EF 01" } }),
        json!({ "name": "https1", "type": "HTTPS", "data": { "priority": 1, "target": ".", "value": "ipv4hint=192.0.2.1 alpn=h2,h3" } }),
        json!({ "name": "https2", "type": "HTTPS", "data": { "priority": 0, "target": "Svc.Example.NET." } }),
        json!({ "name": "loc", "type": "LOC", "data": { "latDegrees": 52, "latMinutes": 22, "latSeconds": 23.5, "latDirection": "n",
            "longDegrees": 4, "longMinutes": 53, "longSeconds": "32", "longDirection": "E", "altitude": -2.0, "size": 100, "precisionHorz": 10 } }),
        json!({ "name": "loc2", "type": "LOC", "data": { "lat_degrees": 1, "lat_direction": "S", "long_degrees": 2, "long_direction": "W" } }),
        json!({ "name": "mx1", "type": "MX", "content": "Mail.example.net.", "priority": 10 }),
        json!({ "name": "mx2", "type": "MX", "content": ".", "priority": 0 }),
        json!({ "name": "naptr", "type": "NAPTR", "data": { "order": 100, "preference": 10, "flags": "S", "service": "SIP+D2U", "regex": "!^.*$!sip:info@example.com!", "replacement": "_sip._udp.example.com." } }),
        json!({ "name": "naptr2", "type": "NAPTR", "data": { "order": 100, "preference": 20, "replacement": "." } }),
        json!({ "name": "ns", "type": "NS", "content": "NS1.Example.net." }),
        json!({ "name": "openpgpkey", "type": "OPENPGPKEY", "content": "dGVz\ndA==" }),
        json!({ "name": "ptr", "type": "PTR", "content": "Host.example.net." }),
        json!({ "name": "smimea", "type": "SMIMEA", "data": { "usage": 3, "selector": 1, "matchingType": 1, "certificate": "ABCDEF01" } }),
        json!({ "name": "_sip._tcp", "type": "SRV", "data": { "priority": 10, "weight": "5", "port": 5060, "target": "SIP.example.com." } }),
        json!({ "name": "_gone._tcp", "type": "SRV", "data": { "priority": 0, "weight": 0, "port": 0, "target": "." } }),
        json!({ "name": "sshfp", "type": "SSHFP", "data": { "algorithm": 4, "type": 2, "fingerprint": "ab:cd:ef".replace(':', "") } }),
        json!({ "name": "svcb", "type": "SVCB", "data": { "priority": 16, "target": "svc.example.net", "value": "port=\"8443\" alpn=\"h2\"" } }),
        json!({ "name": "_443._tcp", "type": "TLSA", "data": { "usage": 3, "selector": 1, "matching_type": 1, "certificate": "abcdef01" } }),
        json!({ "name": "txt1", "type": "TXT", "content": "token=abc 123" }),
        json!({ "name": "txt2", "type": "TXT", "content": "\"token=abc 123\"" }),
        json!({ "name": "txt3", "type": "TXT", "content": "MiXeD; case" }),
        json!({ "name": "txt4", "type": "TXT", "content": "\"two \" \"strings\"" }),
        json!({ "name": "txt5", "type": "TXT", "content": long }),
        json!({ "name": "txt6", "type": "TXT", "content": "say \"hello\" \\ there" }),
        json!({ "name": "txt7", "type": "TXT", "content": "grüße" }),
        json!({ "name": "_uri._tcp", "type": "URI", "priority": 10, "data": { "weight": 1, "target": "https://Example.com/Path" } }),
    ]
}

fn forms() -> Vec<Quirks> {
    let usual = Quirks::default();
    vec![
        usual,
        Quirks {
            txt: TxtForm::Bare,
            ..usual
        },
        Quirks {
            txt: TxtForm::AsSent,
            ..usual
        },
        Quirks {
            settings: SettingsForm::False,
            ..usual
        },
        Quirks {
            settings: SettingsForm::Null,
            ..usual
        },
        Quirks {
            settings: SettingsForm::Absent,
            ..usual
        },
        Quirks {
            caa_flags: FlagsForm::Float,
            ..usual
        },
        Quirks {
            caa_flags: FlagsForm::String,
            ..usual
        },
        Quirks {
            svcb_params: ParamsForm::SortedQuoted,
            ..usual
        },
        Quirks {
            dns_errors: DnsErrorForm::Direct,
            ..usual
        },
    ]
}

async fn create_all(stage: &Stage) -> Vec<ObjectId> {
    let specs = spellings().into_iter().enumerate();
    let ids: Vec<_> = specs
        .map(|(number, spec)| stage.record(&format!("r{number}"), spec))
        .collect();
    stage.ready(&ids).await;
    stage.rest(MINUTE).await;
    ids
}

#[test]
fn the_table_has_all_21_types() {
    let mut types: Vec<String> = spellings()
        .iter()
        .map(|it| it["type"].as_str().unwrap().to_owned())
        .collect();
    types.sort();
    types.dedup();
    let mut all: Vec<String> = RecordType::ALL.iter().map(ToString::to_string).collect();
    all.sort();
    assert_eq!(types, all);
}

// Field cases 1, 4, 5, 7, 9, 10, 13, 15, 19, 22.
#[test]
fn no_form_of_an_answer_counts_as_drift() {
    for quirks in forms() {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.cloudflare.set_quirks(quirks);
            let ids = create_all(&stage).await;
            assert_eq!(stage.records().len(), ids.len(), "each exactly once");

            let mark = stage.mark();
            for round in 1..=5 {
                stage.reconcile(&ids, &format!("round {round}")).await;
                // Older than a snapshot may be, so that each round looks anew.
                stage.rest(MINUTE).await;
            }
            let since = stage.since(&mark);
            since.assert_no_cloudflare_write();
            let writes = &since.kubernetes_writes;
            assert_eq!(writes.len(), 5 * ids.len(), "only the echo of reconcile-at, {quirks:?}");
            assert!(
                writes
                    .iter()
                    .all(|it| it.request.body.contains("lastReconcileAt") && !it.request.body.contains("conditions")),
                "{:#?}",
                writes[0]
            );

            let mark = stage.mark();
            stage.rest(25 * MINUTE).await;
            let since = stage.since(&mark);
            since.assert_no_write();
            let lists = since
                .calls
                .iter()
                .filter(|call| call.path.contains("dns_records"))
                .count();
            assert!((2..=3).contains(&lists), "two drift checks, {:#?}", since.calls);
        });
    }
}

/// Forms that change from one answer to the next (a rollout at Cloudflare) are no drift either.
// Field cases 1, 10, 13, 19.
#[test]
fn a_form_that_changes_under_us_is_no_drift() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = create_all(&stage).await;
        let mark = stage.mark();
        for quirks in forms() {
            stage.cloudflare.set_quirks(quirks);
            stage.rest(12 * MINUTE).await;
        }
        stage.since(&mark).assert_no_write();
        assert!(ids.iter().all(|id| stage.user.is_ready(id)));
    });
}

/// Field case 164: the generation counts as observed only with a condition that is true of it.
#[test]
fn every_record_says_which_generation_it_is_ready_for() {
    play_in_zone(Plan::Pro, |stage| async move {
        for id in create_all(&stage).await {
            assert_eq!(
                stage.status(&id)["conditions"][0]["observedGeneration"],
                stage.metadata(&id)["generation"]
            );
            assert_eq!(
                stage.metadata(&id)["labels"]["kflare.dev/record-id"],
                json!(stage.recorded(&id))
            );
            assert_eq!(stage.status(&id)["ownership"]["origin"], "Created", "{id}");
        }
    });
}
