//! Drift: seen when it is to be seen, put right, and named. Field cases 135, 156, 166.

use kflare_api::names;
use kflare_engine::policy::DriftCheck;
use kflare_sim::{FaultMatch, Plan};
use kflare_testkit::{memory_api::ObjectId, simulation::ControllerOptions};
use serde_json::json;

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, annotated, play, play_in_zone, record, status, zone_id};

fn records(stage: &Stage, count: usize) -> Vec<ObjectId> {
    let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1", "comment": "ours" });
    (0..count).map(|n| stage.record(&format!("r{n}"), spec(n))).collect()
}

// Field case 166.
#[test]
fn drift_is_put_right_and_the_event_names_the_fields_with_both_values() {
    // Few records are asked for one by one, more are listed.
    for count in [1, 5] {
        play_in_zone(Plan::Pro, |stage| async move {
            let ids = records(&stage, count);
            stage.ready(&ids).await;
            let remote = stage.recorded(&ids[0]).unwrap();
            stage.foreign_patch(
                &remote,
                &json!({ "ttl": 300, "comment": "theirs", "content": "198.51.100.7" }),
            );
            let mark = stage.mark();
            stage
                .until("put right", |stage| stage.remote(&remote)["ttl"] == 1)
                .await;
            stage.rest(MINUTE).await;
            let since = stage.since(&mark);
            let writes = since.cloudflare_writes();
            assert_eq!(writes.len(), 1, "{writes:#?}");
            assert_eq!(
                writes[0].body,
                Some(json!({ "ttl": 1, "comment": "ours", "content": "192.0.2.1" }))
            );
            let words = [
                "ttl: 300 -> 1",
                "comment: \"theirs\" -> \"ours\"",
                "content: \"198.51.100.7\" -> \"192.0.2.1\"",
            ];
            assert!(
                stage.told(&ids[0], "DriftCorrected", &words),
                "{:?}",
                stage.user.events(&ids[0])
            );
            assert!(
                since.kubernetes_writes.is_empty(),
                "the condition was and is true: {:#?}",
                since.kubernetes_writes
            );
            for other in &ids[1..] {
                assert_eq!(stage.times_told(other, "DriftCorrected"), 0);
            }
        });
    }
}

/// Fields that the spec does not set are not ours.
#[test]
fn what_the_spec_leaves_alone_is_left_alone() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record(
            "mx",
            json!({ "name": "x", "type": "A", "content": "192.0.2.1", "proxied": true }),
        );
        stage.ready(std::slice::from_ref(&id)).await;
        stage.foreign_patch(
            &stage.recorded(&id).unwrap(),
            &json!({ "settings": { "ipv4_only": true } }),
        );
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();
        stage.user.edit_spec(&id, &json!({ "comment": "new" }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.records()[0]["settings"]["ipv4_only"], true);
    });
}

/// Field cases 119, 156: confirmed gone, made again once, and said.
#[test]
fn a_record_deleted_by_hand_is_made_again_once() {
    for count in [1, 5] {
        play_in_zone(Plan::Pro, |stage| async move {
            let ids = records(&stage, count);
            stage.ready(&ids).await;
            let old = stage.recorded(&ids[0]).unwrap();
            stage.cloudflare.foreign_delete(DOMAIN, &old).unwrap();
            let mark = stage.mark();
            stage
                .until("made again", |stage| {
                    stage.records().len() == count && stage.user.is_ready(&ids[0])
                })
                .await;
            stage.rest(2 * HOUR).await;
            let since = stage.since(&mark);
            assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.cloudflare_writes());
            let new = stage.recorded(&ids[0]).unwrap();
            assert_ne!(new, old);
            assert_eq!(stage.metadata(&ids[0])["labels"][names::RECORD_ID], json!(new));
            assert!(
                stage.told(&ids[0], "RemoteObjectGone", &[&old]),
                "{:?}",
                stage.user.events(&ids[0])
            );
            assert_eq!(stage.times_told(&ids[0], "RemoteObjectGone"), 1);
            assert!(stage.told(&ids[0], "Created", &[&new]));
        });
    }
}

#[test]
fn the_own_interval_counts_more_than_the_default() {
    play(2, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        stage.start_with(
            "controller",
            ControllerOptions {
                drift_check: DriftCheck::Off,
                ..ControllerOptions::default()
            },
        );
        stage.ready(&[zone_id()]).await;
        let spec = |name: &str| json!({ "name": name, "type": "A", "content": "192.0.2.1" });
        let checked = stage.create(annotated(
            record("checked", spec("checked")),
            names::DRIFT_CHECK_INTERVAL,
            "2m",
        ));
        let off = stage.record("off", spec("off"));
        stage.ready(&[checked.clone(), off.clone()]).await;
        stage.rest(5 * MINUTE).await;
        let mark = stage.mark();
        for id in [&checked, &off] {
            stage.foreign_patch(&stage.recorded(id).unwrap(), &json!({ "ttl": 300 }));
        }
        stage.rest(5 * MINUTE).await;
        assert_eq!(stage.remote(&stage.recorded(&checked).unwrap())["ttl"], 1);
        assert_eq!(
            stage.remote(&stage.recorded(&off).unwrap())["ttl"],
            300,
            "drift checks are off"
        );
        let calls = stage.since(&mark).calls;
        assert!((2..=5).contains(&calls.len()), "{calls:#?}");
        // Asked for, it is seen all the same.
        stage.reconcile(std::slice::from_ref(&off), "1").await;
        assert_eq!(stage.remote(&stage.recorded(&off).unwrap())["ttl"], 1);
        // Switched off by annotation, nothing is checked any more.
        stage.user.annotate(&checked, names::DRIFT_CHECK_INTERVAL, Some("0s"));
        stage.rest(10 * MINUTE).await;
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        assert!(stage.since(&mark).calls.is_empty(), "{:#?}", stage.since(&mark).calls);
    });
}

#[test]
fn a_nonsense_interval_is_named_and_the_record_left_as_it_is() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        for wrong in ["soon", "1s", "-5m"] {
            stage.user.annotate(&id, names::DRIFT_CHECK_INTERVAL, Some(wrong));
            stage
                .until("it says so", |stage| stage.user.message(&id).contains(wrong))
                .await;
            assert_eq!(stage.user.ready(&id).1, "InvalidSpec");
        }
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.annotate(&id, names::DRIFT_CHECK_INTERVAL, None);
        stage.ready(&[id]).await;
    });
}

/// A new value asks once, the same value does not ask again, also after a restart.
#[test]
fn reconcile_at_looks_once_for_each_value() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 4);
        stage.ready(&ids).await;
        stage.rest(MINUTE).await;
        let remote = stage.recorded(&ids[0]).unwrap();
        for round in ["one", "two"] {
            stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            let began = stage.seconds();
            stage.reconcile(&ids[..1], round).await;
            assert_eq!(stage.remote(&remote)["ttl"], 1, "{round}");
            assert!(stage.seconds() - began <= 5, "at once");
        }
        let mark = stage.mark();
        stage.user.annotate(&ids[0], names::RECONCILE_AT, Some("two"));
        stage.start_with(
            "another",
            ControllerOptions {
                drift_check: DriftCheck::Off,
                ..ControllerOptions::default()
            },
        );
        stage.rest(5 * MINUTE).await;
        stage.since(&mark).assert_no_write();
    });
}

/// Field case 113. A list that fails is a side job's trouble: zone and records stay Ready, other zones notice nothing, and
/// what is changed meanwhile is done in the end.
#[test]
fn a_failing_list_stops_no_other_zone_and_turns_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 5);
        stage.user.zone("other", "example.org");
        stage.ready(&ids).await;
        let zone = stage.recorded(&zone_id()).unwrap();
        let list = FaultMatch::path("GET", &format!("{zone}/dns_records\\?"));
        stage.fault(list, status(522, 0));
        let mark = stage.mark();
        for n in 0..5 {
            let spec =
                json!({ "name": format!("o{n}"), "type": "A", "content": "192.0.2.1", "zoneRef": { "name": "other" } });
            let id = stage.record(&format!("o{n}"), spec);
            stage.ready(&[id]).await;
        }
        stage.rest(40 * MINUTE).await;
        let failed = stage
            .since(&mark)
            .calls
            .iter()
            .filter(|call| call.status == Some(522))
            .count();
        assert!(failed > 0, "the list is asked for");
        assert!(stage.user.is_ready(&zone_id()) && ids.iter().all(|id| stage.user.is_ready(id)));
        assert_eq!(stage.times_told(&zone_id(), "APIError"), 0);
        stage.user.edit_spec(&ids[0], &json!({ "ttl": 300 }));
        stage.rest(5 * MINUTE).await;
        assert!(stage.user.is_ready(&zone_id()) && ids[1..].iter().all(|id| stage.user.is_ready(id)));
        stage.cloudflare.clear_faults();
        stage.ready(&ids).await;
        assert_eq!(stage.remote(&stage.recorded(&ids[0]).unwrap())["ttl"], 300);
    });
}

/// A check that fails says nothing about the records.
#[test]
fn a_drift_check_that_fails_turns_no_condition() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 5);
        stage.ready(&ids).await;
        stage.fault(FaultMatch::path("GET", "dns_records"), status(500, 10_000));
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
        assert!(ids.iter().all(|id| stage.user.is_ready(id)));
    });
}

/// Field case 135: at rest nothing is written, also when every kind of drift check runs every few minutes.
#[test]
fn a_day_at_rest_writes_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 10);
        stage.ready(&ids).await;
        stage.rest(2 * MINUTE).await;
        let (mark, revision) = (stage.mark(), stage.world.api.revision());
        stage.rest(24 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        assert_eq!(stage.world.api.revision(), revision, "no Event either");
        // A list of records, a zone, and three calls for the account every ten minutes.
        assert!(since.calls.len() <= 24 * 7 * 4, "{} calls", since.calls.len());
        assert!(since.calls.len() >= 24 * 5 * 3, "{} calls", since.calls.len());
    });
}

/// A zone that somebody deleted comes back with everything in it.
// Field case 119.
#[test]
fn a_zone_deleted_by_hand_is_made_again_with_its_records() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 4);
        stage.ready(&ids).await;
        let old = stage.recorded(&zone_id()).unwrap();
        stage.cloudflare.foreign_delete_zone(&old).unwrap();
        stage
            .until("made again", |stage| {
                stage.recorded(&zone_id()).is_some_and(|id| id != old) && ids.iter().all(|id| stage.user.is_ready(id))
            })
            .await;
        stage.rest(3 * HOUR).await;
        assert_eq!(stage.cloudflare.zones().len(), 1);
        assert_eq!(stage.records().len(), 4);
        let zone = stage.recorded(&zone_id()).unwrap();
        for id in &ids {
            assert!(stage.user.is_ready(id));
            assert_eq!(stage.status(id)["cloudflareMetadata"]["zoneID"], json!(zone));
        }
    });
}
