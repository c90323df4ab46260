//! Somebody who changes a field back again and again is noticed, named, and not fought. Field case 130.

use kflare_api::names;
use kflare_sim::{FaultMatch, Plan};
use kflare_testkit::simulation::{ACCOUNT_ID, NAMESPACE};
use serde_json::json;

use crate::stage::{HOUR, MINUTE, Stage, play_in_zone, status};

/// Changes the TTL back a minute after each correction, for so long; when the corrections came, in minutes.
// Field case 130.
#[test]
fn a_contested_field_is_named_and_corrected_ever_more_rarely() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        let began = stage.seconds();
        let mark = stage.mark();
        while stage.seconds() - began < 24 * 3600 {
            if stage.remote(&remote)["ttl"] == 1 {
                stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            }
            stage.rest(MINUTE).await;
        }
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert!(
            (5..=12).contains(&writes.len()),
            "{} corrections in a day",
            writes.len()
        );
        let gaps: Vec<_> = writes
            .windows(2)
            .map(|pair| pair[1].at.duration_since(pair[0].at))
            .collect();
        assert!(gaps[gaps.len() - 1] > gaps[3] * 3 && gaps[3] > gaps[0], "{gaps:?}");
        assert_eq!(stage.user.ready(&id), ("False".to_owned(), "Contested".to_owned()));
        assert!(stage.user.message(&id).contains("ttl"), "{}", stage.user.message(&id));
        assert_eq!(stage.status(&id)["contested"]["fields"], json!(["ttl"]));
        assert!(
            since.kubernetes_writes.len() <= 4 * writes.len(),
            "{}",
            since.kubernetes_writes.len()
        );

        // The other side rests: corrected once more, and Ready again for good.
        stage
            .until_within("Ready again", 30 * HOUR, |stage| stage.user.is_ready(&id))
            .await;
        assert_eq!(stage.remote(&remote)["ttl"], 1);
        assert!(stage.status(&id)["contested"].is_null(), "{}", stage.status(&id));
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

/// When the other side gives in by itself, nothing is left to correct and it says so.
#[test]
fn a_contest_that_the_other_side_ends_is_over() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        while stage.user.ready(&id).1 != "Contested" {
            stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            stage.rest(MINUTE).await;
        }
        stage.foreign_patch(&remote, &json!({ "ttl": 1 }));
        let mark = stage.mark();
        stage
            .until_within("Ready again", HOUR, |stage| stage.user.is_ready(&id))
            .await;
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

#[test]
fn a_contest_ends_when_the_user_gives_in() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        while stage.user.ready(&id).1 != "Contested" {
            stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            stage.rest(MINUTE).await;
        }
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "ttl": 300, "comment": "as they like it" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.cloudflare_writes());
        assert!(stage.status(&id)["contested"].is_null());
    });
}

/// A correction that takes several calls and fails half-way counts for what it has put right.
#[test]
fn what_was_put_right_before_a_correction_failed_is_fought_over_too() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.create(json!({
            "apiVersion": names::API_VERSION, "kind": "IPList",
            "metadata": { "name": "office", "namespace": NAMESPACE },
            "spec": {
                "accountRef": { "name": "main" }, "name": "office", "description": "ours",
                "items": [{ "ip": "192.0.2.1" }, { "ip": "192.0.2.2" }],
            },
        }));
        stage.ready(std::slice::from_ref(&id)).await;
        // The description is written before the items, which are never taken.
        let items = "/accounts/{account_id}/rules/lists/{list_id}/items";
        stage.fault(FaultMatch::route("POST", items), status(500, 10_000));
        let cloudflare = &stage.cloudflare;
        cloudflare
            .foreign_remove_list_item(ACCOUNT_ID, "office", "192.0.2.1")
            .unwrap();
        let describe = || {
            cloudflare
                .foreign_describe_list(ACCOUNT_ID, "office", "theirs")
                .unwrap();
        };
        let mark = stage.mark();
        let described = || {
            let since = stage.since(&mark);
            let writes = since.cloudflare_writes().into_iter();
            writes.filter(|call| call.method == "PUT").count()
        };
        // Now and then: in between it is tried again, and the description is found right.
        for _ in 0..10 {
            if stage.user.ready(&id).1 != "Contested" {
                describe();
                stage.rest(12 * MINUTE).await;
            }
        }
        assert_eq!(stage.user.ready(&id).1, "Contested", "{}", stage.explain(&id));
        assert_eq!(described(), 3);
        let fields = &stage.status(&id)["contested"]["fields"];
        assert!(fields.as_array().unwrap().contains(&json!("description")), "{fields}");
        // The first pause is 20 minutes, 12 of which may be over.
        describe();
        stage.rest(5 * MINUTE).await;
        assert_eq!(described(), 3, "{}", stage.explain(&id));
    });
}

/// What users change while kflare holds still is no drift when it goes on, however often they do it.
#[test]
fn edits_during_a_pause_or_observation_are_no_fight() {
    for (annotation, value) in [(names::PAUSED, "true"), (names::MODE, "observe")] {
        play_in_zone(Plan::Pro, |stage| async move {
            let id = stage.record(
                "x",
                json!({ "name": "x", "type": "A", "content": "192.0.2.1", "ttl": 300 }),
            );
            stage.ready(std::slice::from_ref(&id)).await;
            for round in 1..6 {
                stage.user.annotate(&id, annotation, Some(value));
                stage.rest(MINUTE).await;
                stage.user.edit_spec(&id, &json!({ "ttl": 300 + 60 * round }));
                stage.rest(MINUTE).await;
                assert_ne!(stage.records()[0]["ttl"], 300 + 60 * round, "it holds still");
                stage.user.annotate(&id, annotation, None);
                let carried_out = |stage: &Stage| stage.records()[0]["ttl"] == 300 + 60 * round;
                stage.until_within("carried out", MINUTE, carried_out).await;
            }
            assert_eq!(
                stage.times_told(&id, "DriftCorrected"),
                0,
                "{:?}",
                stage.user.events(&id)
            );
        });
    }
}

/// Whoever asks for a look is told that there was one.
#[test]
fn a_look_at_what_is_contested_is_echoed() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        for round in 0..4 {
            stage.foreign_patch(&remote, &json!({ "ttl": 600 }));
            stage.reconcile_no_wait(&id, &format!("round {round}"));
            stage.rest(MINUTE).await;
        }
        stage.says(&id, "False", "Contested").await;
        assert_eq!(stage.status(&id)["lastReconcileAt"], "round 3");
        assert_eq!(stage.records()[0]["ttl"], 600, "it is held");
    });
}
