//! One record, many ways to write it and to answer it: what is meant, what is kept apart, and what is said about it.

use kflare_sim::{Fault, FaultMatch, Plan, Quirks, TxtForm, ZoneSeed};
use kflare_testkit::simulation::{ACCOUNT_ID, ControllerOptions};
use serde_json::json;

use crate::stage::{DOMAIN, HOUR, MINUTE, RECORDS, Stage, ZONE, adopting, play, play_in_zone, record, zone, zone_id};

// Field case 1.
#[test]
fn a_text_answered_bare_or_quoted_is_written_once_and_found_again_for_its_deletion() {
    for txt in [TxtForm::Quoted, TxtForm::Bare, TxtForm::AsSent] {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.cloudflare.set_quirks(Quirks {
                txt,
                ..Quirks::default()
            });
            let mark = stage.mark();
            let spec = json!({ "name": "_check", "type": "TXT", "content": "token=abc 123" });
            let id = stage.record("check", spec);
            stage.ready(std::slice::from_ref(&id)).await;
            for round in 1..=5 {
                stage.rest(MINUTE).await;
                stage.reconcile(std::slice::from_ref(&id), &format!("{round}")).await;
            }
            let since = stage.since(&mark);
            let writes = since.cloudflare_writes();
            assert_eq!(writes.len(), 1, "{txt:?}: {writes:#?}");
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert!(stage.records().is_empty(), "{txt:?}");
        });
    }
}

// Field case 1. Whoever reads each string by itself (DNS-SD) does not get them joined.
#[test]
fn the_strings_of_a_text_go_out_as_the_spec_cuts_them_and_a_new_cut_is_a_change() {
    play_in_zone(Plan::Pro, |stage| async move {
        let content = |stage: &Stage| stage.records()[0]["content"].clone();
        let cut = r#""txtvers=1" "path=/a b""#;
        // Its answer is lost, so it is found again as well.
        stage.fault_times(
            FaultMatch::route("POST", RECORDS),
            Fault::DropAfter { dropped: None },
            1,
        );
        let id = stage.record("sd", json!({ "name": "_http._tcp", "type": "TXT", "content": cut }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(content(&stage), cut);
        assert_eq!(
            (stage.records().len(), &stage.status(&id)["ownership"]["origin"]),
            (1, &json!("Created"))
        );

        let mark = stage.mark();
        let other = r#""txtvers=1p" "ath=/a b""#;
        stage.user.edit_spec(&id, &json!({ "content": other }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(content(&stage), other);
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "content": other })));

        // Somebody joins them: drift, and named.
        let remote = stage.recorded(&id).unwrap();
        stage.foreign_patch(&remote, &json!({ "content": "\"txtvers=1path=/a b\"" }));
        stage.until("put right", |stage| content(stage) == other).await;
        stage.rest(MINUTE).await;
        assert!(
            stage.told(&id, "DriftCorrected", &["strings"]),
            "{:?}",
            stage.user.events(&id)
        );
        // Where Cloudflare answers in bare text, no cut is seen and none is missed.
        stage.cloudflare.set_quirks(Quirks {
            txt: TxtForm::Bare,
            ..Quirks::default()
        });
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();
        assert!(stage.user.is_ready(&id));
    });
}

// Field case 15. The TTL of a proxied record is always automatic.
#[test]
fn a_ttl_that_a_proxy_overrides_is_said_in_the_condition_and_never_written_again() {
    play_in_zone(Plan::Pro, |stage| async move {
        let spec = json!({ "name": "p", "type": "A", "content": "192.0.2.1", "proxied": true, "ttl": 300 });
        let id = stage.record("p", spec);
        stage.ready(std::slice::from_ref(&id)).await;
        let message = stage.user.message(&id);
        assert!(message.contains("spec.ttl 300 has no effect"), "{message}");
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        stage.since(&mark).assert_no_write();
        stage.user.edit_spec(&id, &json!({ "ttl": null }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(!stage.user.message(&id).contains("ttl"), "{}", stage.user.message(&id));
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

// Field case 21. A CNAME at the apex is flattened by Cloudflare, and nothing of ours is put beside it.
#[test]
fn an_alias_at_the_apex_stands_beside_mail_and_text_and_leaves_no_companion() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mail = json!({ "name": DOMAIN, "type": "MX", "content": "mail.example.net", "priority": 10 });
        let text = json!({ "name": DOMAIN, "type": "TXT", "content": "\"v=spf1 -all\"" });
        let theirs = [mail, text].map(|body| stage.foreign(&body));
        let before = theirs.clone().map(|id| stage.remote(&id));
        let id = stage.record(
            "apex",
            json!({ "name": "@", "type": "CNAME", "content": "app.example.net", "proxied": true }),
        );
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.records().len(), 3);
        let ours = stage.remote(&stage.recorded(&id).unwrap());
        assert_eq!((&ours["name"], &ours["type"]), (&json!(DOMAIN), &json!("CNAME")));
        assert_eq!(theirs.clone().map(|id| stage.remote(&id)), before);
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(theirs.map(|id| stage.remote(&id)), before);
        assert_eq!(stage.records().len(), 2);
    });
}

// Field case 22.
#[test]
fn a_wildcard_and_a_host_of_that_name_are_two_records() {
    play_in_zone(Plan::Pro, |stage| async move {
        let a = |name: &str| json!({ "name": name, "type": "A", "content": "192.0.2.1" });
        let ids = [
            stage.record("star", a("*")),
            stage.record("word", a("wildcard")),
            stage.record("mark", a("_wildcard")),
        ];
        stage.ready(&ids).await;
        let mut names: Vec<_> = stage.records().iter().map(|it| it["name"].clone()).collect();
        names.sort_by_key(ToString::to_string);
        assert_eq!(
            names,
            ["*.example.com", "_wildcard.example.com", "wildcard.example.com"]
        );
        stage.user.delete(&ids[0]);
        stage.gone(&ids[..1]).await;
        stage.rest(HOUR).await;
        assert_eq!(stage.records().len(), 2);
        assert!(ids[1..].iter().all(|id| stage.user.is_ready(id)));
    });
}

// Field case 26. Zones are compared label by label, and a host of no zone is that record's error only.
#[test]
fn a_host_belongs_to_its_zone_by_whole_labels_and_one_outside_stops_no_other() {
    play(21, |stage| async move {
        let domains = [DOMAIN, "myexample.com", "dev.example.com"];
        stage
            .user
            .open_account(domains.map(|domain| ZoneSeed::named(domain, ACCOUNT_ID)).to_vec());
        stage.user.connect();
        for (name, domain) in [ZONE, "my", "dev"].into_iter().zip(domains) {
            stage.create(adopting(zone(name, json!({ "name": domain })), "adopt"));
        }
        stage.start();
        let in_zone = |resource: &str, zone: &str, name: &str| {
            let spec = json!({ "name": name, "type": "A", "content": "192.0.2.1" });
            let mut manifest = record(resource, spec);
            manifest["spec"]["zoneRef"]["name"] = json!(zone);
            stage.create(manifest)
        };
        let good = [
            in_zone("one", "my", "test.myexample.com"),
            in_zone("two", "dev", "api.dev.example.com."),
            in_zone("three", ZONE, DOMAIN),
        ];
        let bad = [
            in_zone("four", ZONE, "test.myexample.com."),
            in_zone("five", ZONE, "www.example.comm."),
        ];
        stage.ready(&good).await;
        for id in &bad {
            stage.says(id, "False", "InvalidSpec").await;
            assert!(
                stage.user.message(id).contains("not in the zone example.com"),
                "{}",
                stage.user.message(id)
            );
        }
        let names = |domain: &str| {
            let records = stage.cloudflare.records(domain).unwrap();
            records
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("myexample.com"), ["test.myexample.com"]);
        assert_eq!(names("dev.example.com"), ["api.dev.example.com"]);
        assert_eq!(names(DOMAIN), [DOMAIN]);
    });
}

// Field case 27. The API server refuses another name; a store without that rule (an old CRD) must leave nothing behind either.
#[test]
fn a_renamed_record_leaves_none_of_the_old_name_behind_also_over_a_restart() {
    for restart in [false, true] {
        play(22, |stage| async move {
            stage.user.open_account(vec![]);
            stage.user.connect();
            stage.user.zone(ZONE, DOMAIN);
            let life = stage.start();
            let id = stage.record("x", json!({ "name": "a", "type": "A", "content": "192.0.2.1" }));
            stage.ready(&[zone_id(), id.clone()]).await;
            let names = |stage: &Stage| {
                let records = stage.records();
                records.iter().map(|it| it["name"].clone()).collect::<Vec<_>>()
            };
            if restart {
                life.kill();
            }
            stage.user.edit_spec(&id, &json!({ "name": "b" }));
            if restart {
                stage.start_with("second", ControllerOptions::default());
            }
            stage.ready(std::slice::from_ref(&id)).await;
            assert_eq!(names(&stage), ["b.example.com"]);
            assert_eq!(stage.status(&id)["cloudflareMetadata"]["name"], "b.example.com");
            // The way that is left to users: another resource instead of it, in either order.
            let next = stage.record("y", json!({ "name": "c", "type": "A", "content": "192.0.2.1" }));
            stage.user.delete(&id);
            stage.ready(std::slice::from_ref(&next)).await;
            stage.gone(&[id]).await;
            assert_eq!(names(&stage), ["c.example.com"]);
        });
    }
}
