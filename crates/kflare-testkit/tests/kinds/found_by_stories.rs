//! Faults that seeded stories found, each as a test by itself.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{Dropped, Fault, FaultMatch, Plan};
use kflare_testkit::simulation::{ControllerOptions, NAMESPACE, token};
use serde_json::json;

use crate::stage::{
    DOMAIN, HOUR, MINUTE, RECORDS, Stage, ZONE, adopting, annotated, play, play_in_zone, record, zone, zone_id,
};

fn a(name: &str) -> serde_json::Value {
    json!({ "name": name, "type": "A", "content": "192.0.2.1" })
}

/// Refused once, a create was tried every half hour, with two Kubernetes writes each time.
#[test]
fn a_refused_create_is_not_repeated_before_something_changes() {
    play_in_zone(Plan::Pro, |stage| async move {
        let there = stage.foreign(&json!({ "name": "x", "type": "CNAME", "content": "old.example.net" }));
        let id = stage.record("x", a("x"));
        stage.says(&id, "False", "RecordConflict").await;
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        stage.rest(20 * HOUR).await;
        stage.since(&mark).assert_no_write();

        // Nor by a new process.
        let second = stage.start_with("second", ControllerOptions::default());
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
        second.kill();

        // It is made soon after the other has gone, and at once if kflare itself has taken it away.
        stage.cloudflare.foreign_delete(DOMAIN, &there).unwrap();
        stage
            .until_within("made", 12 * MINUTE, |stage| stage.user.is_ready(&id))
            .await;
        let beside = stage.record(
            "beside",
            json!({ "name": "x", "type": "CNAME", "content": "new.example.net" }),
        );
        stage.says(&beside, "False", "RecordConflict").await;
        stage.user.delete(&id);
        stage
            .until_within("takes its place", MINUTE, |stage| stage.user.is_ready(&beside))
            .await;
    });
}

/// Records went on using the id of a zone that no longer existed.
#[test]
fn what_is_gone_and_cannot_be_made_again_lends_its_id_to_nobody() {
    play(5, |stage| async move {
        stage.user.open_account(vec![kflare_sim::ZoneSeed::named(
            DOMAIN,
            kflare_testkit::simulation::ACCOUNT_ID,
        )]);
        stage.user.connect();
        stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
        stage.start();
        let ids: Vec<_> = ["a", "b", "c"].map(|name| stage.record(name, a(name))).to_vec();
        stage.ready(&ids).await;
        stage.cloudflare.foreign_delete_zone(DOMAIN).unwrap();
        stage.says(&zone_id(), "False", "NothingToAdopt").await;
        assert_eq!(stage.recorded(&zone_id()), None);
        for id in &ids {
            stage.says(id, "False", "ZoneNotReady").await;
        }
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        stage.rest(2 * HOUR).await;
        let calls = stage.since(&mark).calls;
        assert!(
            calls.iter().all(|call| !call.path.contains("dns_records")),
            "{calls:#?}"
        );
    });
}

/// A collection that only had members without drift checks was looked at once a day for ever after.
#[test]
fn drift_is_looked_for_as_soon_as_one_member_asks_for_it() {
    play_in_zone(Plan::Pro, |stage| async move {
        let off = annotated(record("off", a("off")), names::DRIFT_CHECK_INTERVAL, "0s");
        let off = stage.create(off);
        stage.ready(&[off]).await;
        // Long enough for the collection to have been looked at without anybody asking for it.
        let first = stage.record("first", a("first"));
        stage.ready(std::slice::from_ref(&first)).await;
        stage.user.delete(&first);
        stage.gone(&[first]).await;
        stage.rest(HOUR).await;
        let id = stage.record("on", a("on"));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
        let right = |stage: &Stage| stage.remote(&remote)["ttl"] == 1;
        stage.until_within("put right", 12 * MINUTE, right).await;
    });
}

/// An outage made the past of a fight forgotten.
#[test]
fn a_fight_is_remembered_over_an_outage() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", a("x"));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        let mut corrected = 0;
        for round in 0..6 {
            stage.foreign_patch(&remote, &json!({ "ttl": 300 + round }));
            if round == 2 {
                stage.fault(FaultMatch::any(), crate::stage::status(500, 10_000));
                stage.reconcile_no_wait(&id, &format!("during the outage {round}"));
                stage.says(&id, "False", "APIError").await;
                stage.cloudflare.clear_faults();
            }
            stage.reconcile_no_wait(&id, &format!("round {round}"));
            stage.rest(2 * MINUTE).await;
            corrected += u32::from(stage.remote(&remote)["ttl"] == 1);
        }
        assert_eq!(corrected, 3, "{:?}", stage.user.events(&id));
        assert_eq!(stage.user.ready(&id).1, "Contested");
    });
}

/// What a lost create had made was nobody's once the token was another.
#[test]
fn a_lost_create_is_found_again_with_a_new_token() {
    play(6, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        let first = stage.start();
        stage.ready(&[zone_id()]).await;
        let lost = Fault::DropAfter {
            dropped: Some(Dropped::Hang),
        };
        stage.fault_times(FaultMatch::route("POST", RECORDS), lost, 1);
        let id = stage.record("x", a("x"));
        stage.until("made", |stage| stage.records().len() == 1).await;
        // Everything that was known in memory goes with the process.
        first.kill();
        let second = kflare_sim::TokenSeed::of_user(&token(2), kflare_testkit::simulation::everything());
        let seed = kflare_sim::Seed {
            tokens: vec![second],
            ..kflare_sim::Seed::default()
        };
        stage.cloudflare.seed(&seed).unwrap();
        stage.user.rotate_token(&token(2));
        assert!(stage.cloudflare.disable_token(&token(1)));
        stage.rest(Duration::from_secs(20)).await;
        stage.start_with("second", ControllerOptions::default());
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.records().len(), 1);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
    });
}

/// Of two aliases of one name, made in one batch, one is refused. What was remembered of the refusal was the place as it had been
/// before both, so that it seemed to be refused still when the other had gone.
#[test]
fn what_was_refused_beside_its_rival_is_made_when_the_rival_has_gone() {
    play_in_zone(Plan::Pro, |stage| async move {
        let alias = |target: &str| json!({ "name": "x", "type": "CNAME", "content": target });
        let ids = ["one", "two"].map(|name| stage.record(name, alias(&format!("{name}.example.net"))));
        let refused = |stage: &Stage| ids.iter().position(|id| stage.user.ready(id).1 == "RecordConflict");
        let decided = |stage: &Stage| refused(stage).is_some_and(|lost| stage.user.is_ready(&ids[1 - lost]));
        stage.until_within("one is made, one is refused", MINUTE, decided).await;
        let lost = refused(&stage).unwrap();
        stage.user.delete(&ids[1 - lost]);
        stage
            .until_within("takes its place", MINUTE, |stage| stage.user.is_ready(&ids[lost]))
            .await;
    });
}

/// A record that others had deleted, and that could not be made again, kept the id of what was gone: every look asked for it and
/// told of it.
#[test]
fn what_is_gone_and_refused_is_asked_for_and_told_of_once() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", a("x"));
        stage.ready(std::slice::from_ref(&id)).await;
        let gone = stage.recorded(&id).unwrap();
        stage.cloudflare.foreign_delete(DOMAIN, &gone).unwrap();
        let theirs = stage.foreign(&json!({ "name": "x", "type": "CNAME", "content": "theirs.example.net" }));
        stage.says(&id, "False", "RecordConflict").await;
        let status = stage.status(&id);
        assert_eq!(stage.recorded(&id), None, "{status}");
        assert!(status["ownership"].is_null(), "{status}");
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        assert!(!since.calls.is_empty());
        assert!(
            since.calls.iter().all(|call| !call.path.contains(&gone)),
            "{:#?}",
            since.calls
        );
        assert_eq!(stage.times_told(&id, "RemoteObjectGone"), 1);
        stage.cloudflare.foreign_delete(DOMAIN, &theirs).unwrap();
        stage
            .until_within("made again", 12 * MINUTE, |stage| stage.user.is_ready(&id))
            .await;
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
    });
}

/// While a record is only observed nothing is done about a loss, and each look told of it anew.
#[test]
fn what_is_gone_while_it_is_only_observed_is_told_of_once() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.create(annotated(record("x", a("x")), names::DRIFT_CHECK_INTERVAL, "90s"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.annotate(&id, names::MODE, Some("observe"));
        stage
            .until("observed", |stage| !stage.status(&id)["plan"].is_null())
            .await;
        stage
            .cloudflare
            .foreign_delete(DOMAIN, &stage.recorded(&id).unwrap())
            .unwrap();
        stage.says(&id, "False", "Observing").await;
        let told = stage.user.events(&id).len();
        stage.rest(2 * HOUR).await;
        assert_eq!(stage.user.events(&id).len(), told, "{:#?}", stage.user.events(&id));
        assert!(stage.told(&id, "Observing", &["create"]));
    });
}

/// A refused rule was edited, while no kflare ran, in what Cloudflare is not asked for (its priority). The next kflare found that just
/// this had been refused before, and the condition went on speaking of the old spec.
#[test]
fn a_refusal_speaks_of_the_spec_as_it_is() {
    play(7, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        let first = stage.start();
        stage.ready(&[zone_id()]).await;
        let id = stage.create(json!({
            "apiVersion": names::API_VERSION, "kind": "TransformRule",
            "metadata": { "name": "x", "namespace": NAMESPACE },
            "spec": {
                "zoneRef": { "name": ZONE }, "type": "requestHeaders", "expression": "ip.src eq",
                "headers": { "X-A": { "operation": "set", "value": "a" } },
            },
        }));
        stage.says(&id, "False", "InvalidSpec").await;
        stage.rest(MINUTE).await;
        first.kill();
        stage.user.edit_spec(&id, &json!({ "priority": 1 }));
        stage.start_with("second", ControllerOptions::default());
        let observed = |stage: &Stage| stage.status(&id)["conditions"][0]["observedGeneration"] == 2;
        stage.until("spoken of", observed).await;
        assert_eq!(stage.user.ready(&id).1, "InvalidSpec");
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}
