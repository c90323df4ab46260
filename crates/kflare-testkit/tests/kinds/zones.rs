//! Zones: pending, paid plans, pauses, types. Field cases 28, 31.

use std::time::Duration;

use kflare_engine::policy::DriftCheck;
use kflare_sim::{Dropped, Fault, FaultMatch, Plan};
use kflare_testkit::simulation::{ControllerOptions, User};
use serde_json::{Value, json};

use crate::stage::{HOUR, MINUTE, Stage, play, play_in_zone, zone, zone_id};

fn metadata(stage: &Stage) -> Value {
    stage.status(&zone_id())["cloudflareMetadata"].clone()
}

/// Field case 28.
#[test]
fn a_pending_zone_is_ready_and_takes_records() {
    play_in_zone(Plan::Free, |stage| async move {
        assert!(stage.user.is_ready(&zone_id()));
        assert_eq!(metadata(&stage)["status"], "pending");
        assert_eq!(metadata(&stage)["nameServers"].as_array().map(Vec::len), Some(2));
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(&[id]).await;
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        let looks = stage
            .since(&mark)
            .calls
            .iter()
            .filter(|call| call.route.as_deref() == Some("/zones/{zone_id}"))
            .count();
        assert!(looks <= 160, "{looks} looks at the zone in a day of drift checks");
        // The registrar has caught up: the status follows with the next look.
        stage.cloudflare.activate_zone(crate::stage::DOMAIN).unwrap();
        stage
            .until("shown", |stage| metadata(stage)["status"] == "active")
            .await;
        assert!(stage.user.is_ready(&zone_id()));
    });
}

/// Field case 28. Looks at a pending zone are those of the drift check and no others: waiting costs nothing of its own, and no
/// activation check is asked for.
#[test]
fn waiting_for_the_registrar_costs_no_calls_of_its_own() {
    play(13, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(crate::stage::ZONE, crate::stage::DOMAIN);
        let off = ControllerOptions {
            drift_check: DriftCheck::Off,
            ..ControllerOptions::default()
        };
        stage.start_with("controller", off);
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(&[zone_id(), id]).await;
        assert_eq!(metadata(&stage)["status"], "pending");
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        let calls = stage.since(&mark).calls;
        assert!(calls.len() < 30, "{} calls in a day", calls.len());
        assert!(calls.iter().all(|call| call.method == "GET"), "{calls:#?}");
    });
}

/// Field case 31. A call that never ends has a deadline, the condition says what is missing, and nobody else waits.
#[test]
fn a_plan_change_that_hangs_holds_up_nobody_else() {
    play_in_zone(Plan::Free, |stage| async move {
        let hang = Fault::DropBefore {
            dropped: Some(Dropped::Hang),
        };
        stage.fault(FaultMatch::route("PATCH", "/zones/{zone_id}"), hang);
        let mark = stage.mark();
        stage.user.edit_spec(&zone_id(), &json!({ "plan": "pro" }));
        stage.rest(Duration::from_secs(5)).await;
        let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
        let began = stage.seconds();
        let ids: Vec<_> = (0..100).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.ready(&ids).await;
        assert!(stage.seconds() - began < 30, "{} s", stage.seconds() - began);
        stage.rest(30 * MINUTE).await;
        assert_eq!(stage.user.ready(&zone_id()).1, "APIError");
        let tries = stage
            .since(&mark)
            .calls
            .into_iter()
            .filter(|call| call.method == "PATCH")
            .count();
        // Each is given up after two minutes, and the next comes a minute later.
        assert!((5..=16).contains(&tries), "{tries} tries in half an hour");
        stage.cloudflare.clear_faults();
        stage.ready(&[zone_id()]).await;
        assert_eq!(metadata(&stage)["plan"], "pro");
    });
}

#[test]
fn plan_and_pause_are_left_alone_unless_set() {
    play_in_zone(Plan::Free, |stage| async move {
        let mark = stage.mark();
        stage
            .cloudflare
            .set_zone_plan(crate::stage::DOMAIN, Plan::Business)
            .unwrap();
        stage.reconcile(&[zone_id()], "1").await;
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(metadata(&stage)["plan"], "business");
        stage.user.edit_spec(&zone_id(), &json!({ "paused": true }));
        stage.ready(&[zone_id()]).await;
        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 1);
        assert_eq!(since.cloudflare_writes()[0].body, Some(json!({ "paused": true })));
        // Taken out of the spec it is nobody's business any more.
        stage.user.edit_spec(&zone_id(), &json!({ "paused": null }));
        stage.ready(&[zone_id()]).await;
        stage.rest(HOUR).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
        assert_eq!(stage.cloudflare.zones()[0]["paused"], true);
    });
}

/// What Cloudflare does not take at creation follows, one property a call.
#[test]
fn a_new_zone_gets_its_plan_and_pause_after_its_creation() {
    play_in_zone(Plan::Free, |stage| async move {
        let mark = stage.mark();
        let id = stage.create(zone(
            "second",
            json!({ "name": "example.org", "plan": "pro", "paused": true }),
        ));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let bodies: Vec<_> = since
            .cloudflare_writes()
            .iter()
            .map(|call| call.body.clone().unwrap())
            .collect();
        assert_eq!(bodies.len(), 3, "{bodies:#?}");
        assert_eq!(bodies[0]["name"], "example.org");
        assert!(
            bodies[1..].iter().all(|body| body.as_object().unwrap().len() == 1),
            "{bodies:#?}"
        );
        assert_eq!(stage.status(&id)["cloudflareMetadata"]["plan"], "pro");
    });
}

/// Field case 31: a scheduled downgrade is done, as far as we are concerned.
#[test]
fn a_downgrade_that_is_scheduled_counts_as_done() {
    play_in_zone(Plan::Business, |stage| async move {
        stage.user.edit_spec(&zone_id(), &json!({ "plan": "pro" }));
        stage.ready(&[zone_id()]).await;
        assert_eq!(
            (&metadata(&stage)["plan"], &metadata(&stage)["pendingPlan"]),
            (&json!("business"), &json!("pro"))
        );
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
        assert!(stage.user.is_ready(&zone_id()));
    });
}

#[test]
fn a_plan_changed_in_the_dashboard_is_put_right_when_the_spec_sets_it() {
    play_in_zone(Plan::Free, |stage| async move {
        stage.user.edit_spec(&zone_id(), &json!({ "plan": "pro" }));
        stage.ready(&[zone_id()]).await;
        stage
            .cloudflare
            .set_zone_plan(crate::stage::DOMAIN, Plan::Free)
            .unwrap();
        stage
            .until("put right", |stage| {
                stage.cloudflare.zones()[0]["plan"]["legacy_id"] == "pro"
            })
            .await;
        stage.rest(Duration::from_secs(5)).await;
        assert!(
            stage.told(&zone_id(), "DriftCorrected", &["plan", "free", "pro"]),
            "{:?}",
            stage.user.events(&zone_id())
        );
    });
}

/// A type that the plan does not offer is refused by Cloudflare, and shown.
#[test]
fn a_type_that_is_not_on_offer_is_said_and_the_zone_stays() {
    play_in_zone(Plan::Free, |stage| async move {
        stage.user.edit_spec(&zone_id(), &json!({ "type": "partial" }));
        stage
            .until("refused", |stage| stage.user.ready(&zone_id()).0 == "False")
            .await;
        assert!(
            stage.user.message(&zone_id()).contains("1016"),
            "{}",
            stage.user.message(&zone_id())
        );
        let mark = stage.mark();
        stage.rest(6 * HOUR).await;
        let tries = stage.since(&mark).cloudflare_writes().len();
        assert!(tries <= 16, "{tries} tries in six hours");
        assert_eq!(stage.cloudflare.zones().len(), 1);
        stage.user.edit_spec(&zone_id(), &json!({ "type": "full" }));
        stage.ready(&[zone_id()]).await;
    });
}

#[test]
fn spellings_of_a_domain_are_one_zone() {
    play(12, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.start();
        let id = stage.create(zone("b", json!({ "name": "Bücher.Example." })));
        stage.ready(&[id, User::account_id()]).await;
        assert_eq!(stage.cloudflare.zones()[0]["name"], "xn--bcher-kva.example");
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}
