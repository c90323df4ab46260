//! What goes with a resource, and when it may go. Field cases 124, 159.

use std::time::Duration;

use kflare_api::names;
use kflare_engine::policy::DefaultDeletion;
use kflare_sim::{Fault, FaultMatch, Plan};
use kflare_testkit::simulation::{ControllerOptions, User};
use serde_json::{Value, json};

use crate::stage::{
    DOMAIN, HOUR, MINUTE, RECORD, RECORDS, Stage, ZONE, adopting, annotated, play, play_in_zone, record, status, zone,
    zone_id,
};

fn a(name: &str) -> Value {
    json!({ "name": name, "type": "A", "content": "192.0.2.1" })
}

/// Every combination of how a record came, what its annotation, its account and the operator say.
#[test]
fn the_nearest_word_decides_what_happens_to_the_record() {
    for adopted in [false, true] {
        for annotation in [None, Some("delete"), Some("retain")] {
            for account in [None, Some("delete"), Some("retain")] {
                for operator in [DefaultDeletion::Delete, DefaultDeletion::Retain] {
                    let goes = match (annotation, account, operator) {
                        (Some(word), _, _) => word == "delete",
                        (None, Some(word), _) => word == "delete" && !adopted,
                        (None, None, operator) => operator == DefaultDeletion::Delete && !adopted,
                    };
                    play(3, |stage| async move {
                        stage.user.open_account(vec![]);
                        stage.user.connect();
                        if let Some(word) = account {
                            stage
                                .user
                                .edit_spec(&User::account_id(), &json!({ "defaultDeletionPolicy": word }));
                        }
                        stage.user.zone(ZONE, DOMAIN);
                        stage.start_with(
                            "controller",
                            ControllerOptions {
                                deletion: operator,
                                ..ControllerOptions::default()
                            },
                        );
                        stage.ready(&[zone_id()]).await;
                        if adopted {
                            stage.foreign(&a("x"));
                        }
                        let mut manifest = adopting(record("x", a("x")), "adopt-or-create");
                        if let Some(word) = annotation {
                            manifest = annotated(manifest, names::DELETION_POLICY, word);
                        }
                        let id = stage.create(manifest);
                        stage.ready(std::slice::from_ref(&id)).await;
                        let remote = stage.recorded(&id).unwrap();
                        let mark = stage.mark();
                        stage.user.delete(&id);
                        stage.gone(std::slice::from_ref(&id)).await;
                        let left = !stage.records().is_empty();
                        assert_eq!(
                            left, !goes,
                            "adopted {adopted}, {annotation:?}, {account:?}, {operator:?}"
                        );
                        let since = stage.since(&mark);
                        if goes {
                            assert_eq!(
                                since.calls.len(),
                                1,
                                "by the recorded id, without a search: {:#?}",
                                since.calls
                            );
                            assert!(since.calls[0].method == "DELETE" && since.calls[0].path.ends_with(&remote));
                            assert!(stage.told(&id, "Deleted", &[&remote]), "{:?}", stage.user.events(&id));
                        } else {
                            assert!(since.calls.is_empty(), "{:#?}", since.calls);
                            assert!(stage.told(&id, "Kept", &[]), "{:?}", stage.user.events(&id));
                        }
                    });
                }
            }
        }
    }
}

#[test]
fn a_record_that_is_gone_already_is_a_success() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", a("x"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage
            .cloudflare
            .foreign_delete(DOMAIN, &stage.recorded(&id).unwrap())
            .unwrap();
        stage.user.delete(&id);
        stage.gone(&[id]).await;
    });
}

/// Field case 159: the finalizer stays until Cloudflare has agreed, and the condition says why.
#[test]
fn a_refused_delete_keeps_the_finalizer_and_says_why() {
    for (code, told) in [(500, "500"), (502, "502"), (403, "403"), (401, "401"), (400, "400")] {
        play_in_zone(Plan::Pro, |stage| async move {
            let id = stage.record("x", a("x"));
            stage.ready(std::slice::from_ref(&id)).await;
            stage.fault(FaultMatch::route("DELETE", RECORD), status(code, 10_000));
            stage.user.delete(&id);
            stage
                .until("it says so", |stage| {
                    stage.user.ready(&id).0 == "False" && stage.user.message(&id).contains(told)
                })
                .await;
            assert!(
                stage.told(&id, &stage.user.ready(&id).1, &[told]),
                "{:?}",
                stage.user.events(&id)
            );
            let mark = stage.mark();
            stage.rest(2 * HOUR).await;
            assert_eq!(stage.metadata(&id)["finalizers"], json!([names::FINALIZER]));
            assert_eq!(stage.records().len(), 1);
            let tries = stage.since(&mark).cloudflare_writes().len();
            assert!((1..=150).contains(&tries), "{tries} tries in two hours for {code}");
            assert!(
                stage.since(&mark).kubernetes_writes.len() <= 2,
                "a standing failure is written once"
            );
            // A touch tries again at once.
            stage.cloudflare.clear_faults();
            stage.user.annotate(&id, names::RECONCILE_AT, Some("now"));
            stage.gone(&[id]).await;
            assert!(stage.records().is_empty());
        });
    }
}

#[test]
fn a_resource_that_never_came_to_anything_goes_without_a_call() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.foreign(&a("exists"));
        let ids = [
            stage.record("exists", a("exists")),
            stage.create(adopting(record("nothing", a("nothing")), "adopt")),
            stage.record(
                "invalid",
                json!({ "name": "a..b", "type": "A", "content": "192.0.2.1" }),
            ),
            stage.create({
                let mut orphan = record("orphan", a("orphan"));
                orphan["spec"]["zoneRef"]["name"] = json!("no-such-zone");
                orphan
            }),
        ];
        for (id, reason) in ids
            .iter()
            .zip(["AlreadyExists", "NothingToAdopt", "InvalidSpec", "ZoneNotFound"])
        {
            stage.says(id, "False", reason).await;
        }
        let mark = stage.mark();
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        assert!(stage.since(&mark).calls.is_empty(), "{:#?}", stage.since(&mark).calls);
    });
}

/// The create had its effect, its answer never came, and the user has changed their mind.
#[test]
fn a_create_whose_answer_was_lost_is_undone() {
    for route in [RECORDS, "/zones"] {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault_times(FaultMatch::route("POST", route), Fault::DropAfter { dropped: None }, 1);
            let id = if route == RECORDS {
                stage.record("x", a("x"))
            } else {
                stage.create(zone("second", json!({ "name": "example.org" })))
            };
            let there = |stage: &Stage| stage.cloudflare.zones().len() + stage.records().len() == 2;
            stage.until("made", there).await;
            assert_eq!(stage.recorded(&id), None);
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert_eq!(stage.cloudflare.zones().len() + stage.records().len(), 1);
        });
    }
}

/// Equal to what a lost create would have made, but older than it: somebody else's.
#[test]
fn what_was_there_before_a_create_is_not_taken_for_its_result() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.rest(MINUTE).await;
        stage.fault(
            FaultMatch::route("GET", RECORDS),
            Fault::EmptyList {
                totals: kflare_sim::Totals::Zero,
            },
        );
        stage.fault_times(
            FaultMatch::route("POST", RECORDS),
            Fault::DropAfter { dropped: None },
            1,
        );
        let id = stage.record("x", a("x"));
        stage
            .until("tried", |stage| {
                stage
                    .cloudflare
                    .call_counts()
                    .contains_key("POST /zones/{zone_id}/dns_records")
            })
            .await;
        stage.cloudflare.clear_faults();
        stage.says(&id, "False", "AlreadyExists").await;
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(stage.records().len(), 1);
    });
}

// Field case 124.
#[test]
fn parents_wait_for_their_children_and_name_them() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..7)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        let mark = stage.mark();
        stage.user.delete(&User::secret_id());
        stage.user.delete(&User::account_id());
        stage.user.delete(&zone_id());
        stage.says(&zone_id(), "False", "InUse").await;
        let message = stage.user.message(&zone_id());
        assert!(message.contains("team/r0") && message.contains("2 more"), "{message}");
        stage.says(&User::account_id(), "False", "InUse").await;
        assert!(stage.user.message(&User::account_id()).contains("team/example"));
        assert_eq!(
            stage.metadata(&User::secret_id())["finalizers"],
            json!([names::TOKEN_PROTECTION])
        );
        stage.rest(2 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!((stage.records().len(), stage.cloudflare.zones().len()), (7, 1));
        // The children still work meanwhile: the secret and the account are held for them.
        stage.user.edit_spec(&ids[0], &json!({ "ttl": 300 }));
        stage.ready(&ids[..1]).await;
        let began = stage.seconds();
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        stage.gone(&[zone_id(), User::account_id(), User::secret_id()]).await;
        assert!(stage.seconds() - began < 30, "each is woken by the one it waits for");
        assert!(stage.cloudflare.zones().is_empty());
    });
}

#[test]
fn the_token_secret_is_released_when_the_reference_moves() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mut other = stage.world.api.get(&User::secret_id()).unwrap();
        other["metadata"] = json!({ "name": "other", "namespace": "kflare-system" });
        let other = stage.create(other);
        assert_eq!(
            stage.metadata(&User::secret_id())["finalizers"],
            json!([names::TOKEN_PROTECTION])
        );
        stage
            .user
            .edit_spec(&User::account_id(), &json!({ "tokenSecretRef": { "name": "other" } }));
        stage.ready(&[User::account_id()]).await;
        let released = |stage: &Stage| {
            stage.metadata(&User::secret_id())["finalizers"]
                .as_array()
                .is_none_or(Vec::is_empty)
        };
        stage.until("released", released).await;
        assert_eq!(stage.metadata(&other)["finalizers"], json!([names::TOKEN_PROTECTION]));
        assert_eq!(
            stage.status(&User::account_id())["protectedTokenSecret"]["name"],
            "other"
        );
    });
}

#[test]
fn deleting_a_zone_says_how_many_unmanaged_records_go() {
    play_in_zone(Plan::Pro, |stage| async move {
        for n in 0..3 {
            stage.foreign(&a(&format!("f{n}")));
        }
        stage.user.delete(&zone_id());
        stage.gone(&[zone_id()]).await;
        assert!(stage.cloudflare.zones().is_empty());
        let events = stage.user.events(&zone_id());
        assert!(
            events
                .iter()
                .any(|it| it.severity == "Warning" && it.note.contains(" 3 ")),
            "{events:?}"
        );
    });
}

/// Somebody else's finalizer is not ours to take off, and ours goes all the same.
#[test]
fn the_finalizers_of_others_stay() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mut manifest = record("x", a("x"));
        manifest["metadata"]["finalizers"] = json!(["example.org/hold"]);
        let id = stage.create(manifest);
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.delete(&id);
        let ours_gone = |stage: &Stage| stage.metadata(&id)["finalizers"] == json!(["example.org/hold"]);
        stage.until("ours goes", ours_gone).await;
        assert!(stage.records().is_empty());
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();
        stage
            .user
            .edit(&id, |object| object["metadata"]["finalizers"] = json!([]));
        stage.rest(Duration::from_secs(5)).await;
        assert!(stage.world.api.get(&id).is_none());
    });
}

/// Deleting is not held up by a spec or by annotations that make no sense any more.
#[test]
fn an_invalid_spec_does_not_keep_a_resource() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", a("x"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.edit_spec(&id, &json!({ "content": "not an address" }));
        stage.says(&id, "False", "InvalidSpec").await;
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert!(stage.records().is_empty());
    });
}
