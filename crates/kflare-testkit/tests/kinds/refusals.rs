//! What Cloudflare refuses: shown as it is, final, and nobody else's problem. Field cases 15, 17, 129, 139.

use kflare_sim::{DnsErrorForm, Plan, Quirks};
use serde_json::{Value, json};

use crate::stage::{HOUR, play_in_zone};

// Field cases 15, 17.
#[test]
fn a_refused_spec_shows_the_deepest_cause_and_is_not_tried_again() {
    let table: Vec<(Value, &str)> = vec![
        (
            json!({ "name": "ttl", "type": "A", "content": "192.0.2.1", "ttl": 30 }),
            "9021",
        ),
        (
            json!({ "name": "long", "type": "A", "content": "192.0.2.1", "comment": "c".repeat(150) }),
            "9313",
        ),
        (
            json!({ "name": "tags", "type": "A", "content": "192.0.2.1", "tags": ["team:blue"] }),
            "9300",
        ),
        (
            json!({ "name": "flat", "type": "CNAME", "content": "a.example.net", "settings": { "flattenCNAME": true } }),
            "flatten",
        ),
        (
            json!({ "name": "mx", "type": "MX", "content": "a.example.net" }),
            "priority",
        ),
    ];
    for dns_errors in [DnsErrorForm::Chained, DnsErrorForm::Direct] {
        let table = table.clone();
        play_in_zone(Plan::Free, |stage| async move {
            stage.cloudflare.set_quirks(Quirks {
                dns_errors,
                ..Quirks::default()
            });
            for (spec, cause) in table {
                let mark = stage.mark();
                let id = stage.record(spec["name"].as_str().unwrap(), spec.clone());
                stage.says(&id, "False", "InvalidSpec").await;
                let message = stage.user.message(&id);
                assert!(message.contains(cause), "{message}");
                stage.rest(5 * HOUR).await;
                let since = stage.since(&mark);
                assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.cloudflare_writes());
                // Corrected, it goes through at once.
                let good = json!({ "ttl": null, "comment": null, "tags": null, "settings": null, "priority": 1 });
                stage.user.edit_spec(&id, &good);
                stage.ready(std::slice::from_ref(&id)).await;
                stage.user.delete(&id);
                stage.gone(&[id]).await;
            }
        });
    }
}

/// What kflare can judge by itself costs no call.
// Field case 9.
#[test]
fn a_spec_that_makes_no_sense_is_named_without_a_call() {
    play_in_zone(Plan::Pro, |stage| async move {
        let table = [
            (
                json!({ "name": "a..b", "type": "A", "content": "192.0.2.1" }),
                "spec.name",
            ),
            (json!({ "name": "x", "type": "A", "content": "2001:db8::1" }), "IPv4"),
            (json!({ "name": "x", "type": "AAAA", "content": "192.0.2.1" }), "IPv6"),
            (
                json!({ "name": "x", "type": "CAA", "data": { "flags": 0, "tag": "issue" } }),
                "value",
            ),
            (
                json!({ "name": "x", "type": "CAA", "content": "0 issue ca" }),
                "spec.data",
            ),
            (
                json!({ "name": "x", "type": "A", "data": { "address": "192.0.2.1" } }),
                "spec.content",
            ),
            (json!({ "name": "x", "type": "SPF", "content": "v=spf1" }), "SPF"),
            (json!({ "name": "x", "type": "A", "content": 5 }), "spec"),
        ];
        let mark = stage.mark();
        for (row, (spec, word)) in table.into_iter().enumerate() {
            let id = stage.record(&format!("x{row}"), spec);
            stage.says(&id, "False", "InvalidSpec").await;
            assert!(
                stage.user.message(&id).contains(word),
                "{word}: {}",
                stage.user.message(&id)
            );
        }
        stage
            .since(&mark)
            .calls
            .iter()
            .for_each(|call| assert!(!call.path.contains("dns_records"), "{call:#?}"));
    });
}

/// Field case 129: a record of another type stands in the way.
#[test]
fn a_record_that_cannot_stand_beside_another_says_so() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage.foreign(&json!({ "name": "x", "type": "CNAME", "content": "old.example.net" }));
        let before = stage.remote(&existing);
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.says(&id, "False", "RecordConflict").await;
        let message = stage.user.message(&id);
        let named = format!("in the way: CNAME old.example.net ({existing})");
        assert!(message.contains(&named), "{message}");
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        let tries = stage.since(&mark).cloudflare_writes().len();
        assert!(tries <= 60, "{tries} tries in a day");
        let written = stage.since(&mark).kubernetes_writes;
        assert!(
            written.iter().all(|it| !it.request.body.contains("conditions")),
            "the condition stands: {written:#?}"
        );
        assert_eq!(stage.remote(&existing), before);
        stage
            .cloudflare
            .foreign_delete(crate::stage::DOMAIN, &existing)
            .unwrap();
        stage
            .until_within("made in the end", HOUR, |stage| stage.user.is_ready(&id))
            .await;
    });
}

/// Several records in the way are named, those beside it are not, and the value of none makes the message too long.
#[test]
fn what_stands_in_the_way_is_named_by_type_value_and_id() {
    play_in_zone(Plan::Pro, |stage| async move {
        let there: Vec<String> = (1..=5)
            .map(|n| stage.foreign(&json!({ "name": "x", "type": "A", "content": format!("192.0.2.{n}") })))
            .collect();
        stage.foreign(&json!({ "name": "x", "type": "TXT", "content": format!("\"{}\"", "t".repeat(200)) }));
        // Alone, and in a batch with others.
        for beside in [0, 3] {
            let others: Vec<_> = (0..beside)
                .map(|n| {
                    stage.record(
                        &format!("o{n}"),
                        json!({ "name": format!("o{n}"), "type": "A", "content": "192.0.2.1" }),
                    )
                })
                .collect();
            let id = stage.record(
                "x",
                json!({ "name": "x", "type": "CNAME", "content": "new.example.net" }),
            );
            stage.says(&id, "False", "RecordConflict").await;
            stage.ready(&others).await;
            let message = stage.user.message(&id);
            let named = there.iter().filter(|it| message.contains(it.as_str())).count();
            assert_eq!(named, 3, "{message}");
            assert!(
                message.contains("A 192.0.2.") && message.contains("and 2 more"),
                "{message}"
            );
            assert!(!message.contains("TXT"), "{message}");
            stage.user.delete(&id);
            stage.gone(&[id]).await;
        }
        // A delegation, from both sides.
        stage.foreign(&json!({ "name": "sub", "type": "NS", "content": "ns1.example.net" }));
        let below = stage.record("below", json!({ "name": "sub", "type": "A", "content": "192.0.2.1" }));
        let over = stage.record(
            "over",
            json!({ "name": "x", "type": "NS", "content": "ns1.example.net" }),
        );
        for (id, words) in [(below, "in the way: NS ns1.example.net ("), (over, "in the way: ")] {
            stage.says(&id, "False", "RecordConflict").await;
            assert!(stage.user.message(&id).contains(words), "{}", stage.user.message(&id));
        }
    });
}

/// Field case 139. What is wrong with two of them is said on the two.
#[test]
fn a_nonsensical_record_and_one_without_a_zone_stop_none_of_the_others() {
    play_in_zone(Plan::Pro, |stage| async move {
        let spec = |n: usize| match n {
            7 => json!({ "name": "bad_host..example.com", "type": "A", "content": "192.0.2.1" }),
            13 => json!({ "name": "r13", "type": "A", "content": "192.0.2.1", "zoneRef": { "name": "nowhere" } }),
            _ => json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" }),
        };
        let mut ids: Vec<_> = (0..20).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        let (lost, bad) = (ids.remove(13), ids.remove(7));
        stage.ready(&ids).await;
        stage.says(&bad, "False", "InvalidSpec").await;
        stage.says(&lost, "False", "ZoneNotFound").await;
        assert_eq!(stage.records().len(), 18);
        assert!(
            stage.told(&bad, "InvalidSpec", &["spec.name"]),
            "{:?}",
            stage.user.events(&bad)
        );
        assert!(
            stage.told(&lost, "ZoneNotFound", &["nowhere"]),
            "{:?}",
            stage.user.events(&lost)
        );
    });
}

/// Field case 105: a quota is not temporary.
#[test]
fn a_full_zone_refuses_the_surplus_and_serves_the_rest() {
    play_in_zone(Plan::Free, |stage| async move {
        for n in 0..195 {
            stage.foreign(&json!({ "name": format!("f{n}"), "type": "A", "content": "192.0.2.1" }));
        }
        let mark = stage.mark();
        let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
        let ids: Vec<_> = (0..10).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.rest(HOUR).await;
        let ready = ids.iter().filter(|id| stage.user.is_ready(id)).count();
        assert_eq!((ready, stage.records().len()), (5, 200));
        let refused = ids.iter().find(|id| !stage.user.is_ready(id)).unwrap();
        assert!(
            stage.user.message(refused).contains("81045"),
            "{}",
            stage.user.message(refused)
        );
        let calls = stage.since(&mark).calls.len();
        assert!(calls < 80, "{calls} calls");
    });
}
