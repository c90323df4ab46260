//! Paused: nothing is done, nothing is lost.

use kflare_api::names;
use kflare_sim::Plan;
use serde_json::json;

use crate::stage::{HOUR, annotated, play_in_zone, record, zone_id};

#[test]
fn a_paused_resource_makes_no_call_and_keeps_its_status() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since_when = stage.status(&id)["conditions"][0]["lastTransitionTime"].clone();
        stage.user.annotate(&id, names::PAUSED, Some("true"));
        stage.says(&id, "True", "Paused").await;
        assert_eq!(stage.status(&id)["conditions"][0]["lastTransitionTime"], since_when);
        assert_eq!(stage.times_told(&id, "Paused"), 1);
        // Changed on both sides, asked to reconcile, checked for drift: nothing.
        stage.foreign_patch(&stage.recorded(&id).unwrap(), &json!({ "ttl": 600 }));
        stage.user.edit_spec(&id, &json!({ "ttl": 300 }));
        stage.user.annotate(&id, names::RECONCILE_AT, Some("1"));
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        let calls = stage.since(&mark).calls;
        assert!(
            calls.iter().all(|call| !call.path.contains("dns_records")),
            "{calls:#?}"
        );
        stage.user.annotate(&id, names::PAUSED, None);
        stage.says(&id, "True", "Synced").await;
        assert_eq!(stage.records()[0]["ttl"], 300);
    });
}

#[test]
fn a_resource_that_is_born_paused_waits() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mark = stage.mark();
        let spec = json!({ "name": "x", "type": "A", "content": "192.0.2.1" });
        let id = stage.create(annotated(record("x", spec), names::PAUSED, "true"));
        stage.says(&id, "Unknown", "Paused").await;
        stage.rest(HOUR).await;
        assert!(
            stage
                .since(&mark)
                .calls
                .iter()
                .all(|call| !call.path.contains("dns_records"))
        );
        assert!(stage.metadata(&id)["finalizers"].is_null(), "and is not held");
        stage.user.annotate(&id, names::PAUSED, Some("false"));
        stage.ready(&[id]).await;
    });
}

#[test]
fn deletion_waits_for_the_end_of_the_pause() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.annotate(&id, names::PAUSED, Some("true"));
        stage.says(&id, "True", "Paused").await;
        let mark = stage.mark();
        stage.user.delete(&id);
        stage.rest(3 * HOUR).await;
        let calls = stage.since(&mark).calls;
        assert!(
            calls.iter().all(|call| !call.path.contains("dns_records")),
            "{calls:#?}"
        );
        assert_eq!(stage.records().len(), 1);
        stage.user.annotate(&id, names::PAUSED, None);
        stage.gone(&[id]).await;
        assert!(stage.records().is_empty());
    });
}

#[test]
fn a_paused_parent_does_not_stop_its_children() {
    play_in_zone(Plan::Pro, |stage| async move {
        for parent in [zone_id(), kflare_testkit::simulation::User::account_id()] {
            stage.user.annotate(&parent, names::PAUSED, Some("true"));
            stage.says(&parent, "True", "Paused").await;
        }
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.edit_spec(&id, &json!({ "ttl": 300 }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.delete(&id);
        stage.gone(&[id]).await;
    });
}
