//! Writes whose answers never came: exactly one object, and its id in status. Field cases 133, 155.

use kflare_sim::{Dropped, Fault, FaultMatch, Plan};
use kflare_testkit::simulation::User;
use serde_json::{Value, json};

use crate::stage::{BATCH, DOMAIN, MINUTE, RECORD, RECORDS, play_in_zone, zone};

fn losses() -> Vec<Fault> {
    vec![
        Fault::DropAfter {
            dropped: Some(Dropped::Hang),
        },
        Fault::DropAfter {
            dropped: Some(Dropped::Reset),
        },
        Fault::Truncate { bytes: 0 },
        Fault::Truncate { bytes: 100 },
    ]
}

fn spec(n: usize) -> Value {
    json!({ "name": format!("r{n}"), "type": "TXT", "content": format!("v={n}") })
}

// Field cases 133, 155.
#[test]
fn a_created_record_is_found_again() {
    for fault in losses() {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault_times(FaultMatch::route("POST", RECORDS), fault.clone(), 1);
            let id = stage.record("x", spec(1));
            stage.ready(std::slice::from_ref(&id)).await;
            assert_eq!(stage.records().len(), 1, "{fault:?}");
            assert_eq!(stage.recorded(&id).as_deref(), stage.records()[0]["id"].as_str());
            assert_eq!(stage.status(&id)["ownership"]["origin"], "Created", "{fault:?}");
            assert!(stage.metadata(&id)["annotations"][kflare_api::names::CREATE_INTENT].is_null());
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert!(stage.records().is_empty(), "ours, so it goes");
        });
    }
}

// Field case 155.
#[test]
fn a_created_batch_is_found_again() {
    for fault in losses() {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault_times(FaultMatch::route("POST", BATCH), fault.clone(), 1);
            let ids: Vec<_> = (0..50).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
            stage.ready(&ids).await;
            assert_eq!(stage.records().len(), 50, "{fault:?}");
            for id in &ids {
                assert_eq!(stage.status(id)["ownership"]["origin"], "Created", "{fault:?} {id}");
            }
        });
    }
}

#[test]
fn a_created_zone_is_found_again() {
    for fault in losses() {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault_times(FaultMatch::route("POST", "/zones"), fault.clone(), 1);
            let id = stage.create(zone("second", json!({ "name": "example.org" })));
            stage.ready(std::slice::from_ref(&id)).await;
            assert_eq!(stage.cloudflare.zones().len(), 2, "{fault:?}");
            assert_eq!(stage.status(&id)["ownership"]["origin"], "Created", "{fault:?}");
        });
    }
}

#[test]
fn a_lost_update_is_not_sent_twice() {
    for fault in losses() {
        play_in_zone(Plan::Pro, |stage| async move {
            let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
            stage.ready(std::slice::from_ref(&id)).await;
            stage.fault_times(FaultMatch::route("PATCH", RECORD), fault.clone(), 1);
            let mark = stage.mark();
            stage.user.edit_spec(&id, &json!({ "ttl": 300 }));
            stage.ready(std::slice::from_ref(&id)).await;
            let since = stage.since(&mark);
            assert_eq!(
                since.cloudflare_writes().len(),
                1,
                "{fault:?}: {:#?}",
                since.cloudflare_writes()
            );
        });
    }
}

#[test]
fn a_lost_delete_is_a_success_in_the_end() {
    for fault in losses() {
        play_in_zone(Plan::Pro, |stage| async move {
            let ids: Vec<_> = (0..5).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
            stage.ready(&ids).await;
            stage.fault_times(FaultMatch::route("DELETE", RECORD), fault.clone(), 1);
            stage.fault_times(FaultMatch::route("POST", BATCH), fault.clone(), 1);
            for id in &ids[1..] {
                stage.user.delete(id);
            }
            stage.gone(&ids[1..]).await;
            stage.user.delete(&ids[0]);
            stage.gone(&ids[..1]).await;
            assert!(stage.records().is_empty(), "{fault:?}");
            stage.fault_times(FaultMatch::route("DELETE", "/zones/{zone_id}"), fault, 1);
            stage.user.delete_all();
            stage
                .gone(&[crate::stage::zone_id(), User::account_id(), User::secret_id()])
                .await;
            assert!(stage.cloudflare.zones().is_empty());
        });
    }
}

/// A create that was sent late, and whose effect comes only after we have looked: still one record, still ours.
#[test]
fn a_create_that_never_arrives_is_tried_again() {
    for fault in [
        Fault::DropBefore {
            dropped: Some(Dropped::Hang),
        },
        Fault::DropBefore {
            dropped: Some(Dropped::Reset),
        },
    ] {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault_times(FaultMatch::route("POST", RECORDS), fault, 2);
            let id = stage.record("x", spec(1));
            stage.ready(std::slice::from_ref(&id)).await;
            stage.rest(MINUTE).await;
            assert_eq!(stage.records().len(), 1);
        });
    }
}

/// A create that Cloudflare failed is no claim on what somebody else makes afterwards, be it equal.
#[test]
fn what_others_make_after_a_failed_create_is_left_alone() {
    for (fault, ttl) in [
        (crate::stage::status(503, 1000), 1),
        (crate::stage::status(503, 1000), 900),
        (
            Fault::DropBefore {
                dropped: Some(Dropped::Reset),
            },
            900,
        ),
    ] {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault(FaultMatch::path("POST", "dns_records"), fault.clone());
            let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
            stage
                .until("tried", |stage| {
                    stage
                        .cloudflare
                        .calls()
                        .iter()
                        .any(|it| it.method == "POST" && it.path.contains("dns_records"))
                })
                .await;
            stage.rest(10 * std::time::Duration::from_secs(1)).await;
            stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1", "ttl": ttl }));
            let before = stage.records();
            stage.cloudflare.clear_faults();
            stage.says(&id, "False", "AlreadyExists").await;
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert_eq!(stage.records(), before, "{fault:?} {ttl}");
        });
    }
}

/// Whoever may create resources may write annotations. An intent that kflare did not write has no effect.
#[test]
fn a_forged_or_copied_intent_claims_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        // A genuine one, of a create whose answer was lost, to copy from.
        stage.fault_times(
            FaultMatch::path("POST", "dns_records"),
            Fault::DropAfter {
                dropped: Some(Dropped::Hang),
            },
            1,
        );
        let first = stage.record("first", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        let intent = kflare_api::names::CREATE_INTENT;
        stage
            .until("announced", |stage| {
                !stage.metadata(&first)["annotations"][intent].is_null()
            })
            .await;
        let genuine = stage.metadata(&first)["annotations"][intent]
            .as_str()
            .unwrap()
            .to_owned();
        stage.ready(std::slice::from_ref(&first)).await;
        stage.foreign(&json!({ "name": "y", "type": "A", "content": "192.0.2.2", "ttl": 1 }));
        let forged = genuine.replace("A x.", "A y.").replace("192.0.2.1", "192.0.2.2");
        let before = stage.records();
        for (name, record, annotation) in [("copy", "x", genuine), ("forged", "y", forged)] {
            let content = if record == "x" { "192.0.2.1" } else { "192.0.2.2" };
            let mut manifest = crate::stage::record(name, json!({ "name": record, "type": "A", "content": content }));
            manifest["metadata"]["annotations"][intent] = json!(annotation);
            let id = stage.create(manifest);
            stage.until("refused", |stage| stage.user.ready(&id).0 == "False").await;
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert_eq!(stage.records(), before, "{name}");
        }
    });
}

/// The record is gone, its successor was made and not heard of, and then its resource is deleted: it has an id that is of no
/// use, and an intent that is.
#[test]
fn the_successor_of_a_lost_object_goes_with_its_resource() {
    for fault in losses() {
        play_in_zone(Plan::Pro, |stage| async move {
            let id = stage.record("x", spec(1));
            stage.ready(std::slice::from_ref(&id)).await;
            let old = stage.recorded(&id);
            stage
                .cloudflare
                .foreign_delete(DOMAIN, old.as_deref().unwrap())
                .unwrap();
            stage.fault_times(FaultMatch::route("POST", RECORDS), fault.clone(), 1);
            stage.reconcile_no_wait(&id, "now");
            stage.until("made again", |stage| stage.records().len() == 1).await;
            assert_eq!(stage.recorded(&id), old, "the case was met: {fault:?}");
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert!(stage.records().is_empty(), "{fault:?}: {:#?}", stage.records());
        });
    }
}
