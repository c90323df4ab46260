//! Cloudflare fails: what works stays Ready for a while, what does not says so once, and all mends by itself.

use kflare_sim::{Fault, FaultMatch, Plan};
use serde_json::json;

use crate::stage::{HOUR, MINUTE, RECORD, Stage, play_in_zone, status};

fn html(code: u16) -> Fault {
    let body = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>".to_owned();
    Fault::Html { status: code, body }
}

async fn one_record(stage: &Stage) -> kflare_testkit::memory_api::ObjectId {
    let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
    stage.ready(std::slice::from_ref(&id)).await;
    id
}

/// The client tries a GET three times, so two failed passes are six failed calls.
#[test]
fn a_short_outage_turns_no_condition() {
    for fault in [
        status(500, 10_000),
        status(503, 10_000),
        html(502),
        Fault::Truncate { bytes: 40 },
        Fault::DropBefore {
            dropped: Some(kflare_sim::Dropped::Reset),
        },
    ] {
        play_in_zone(Plan::Pro, |stage| async move {
            let id = one_record(&stage).await;
            let mark = stage.mark();
            stage.fault_times(FaultMatch::route("GET", RECORD), fault, 6);
            stage.user.annotate(&id, kflare_api::names::RECONCILE_AT, Some("1"));
            stage
                .until("served in the end", |stage| stage.status(&id)["lastReconcileAt"] == "1")
                .await;
            let since = stage.since(&mark);
            assert_eq!(
                since
                    .calls
                    .iter()
                    .filter(|call| call.path.contains("dns_records"))
                    .count(),
                7
            );
            assert_eq!(since.kubernetes_writes.len(), 1, "{:#?}", since.kubernetes_writes);
            assert!(stage.user.is_ready(&id));
        });
    }
}

#[test]
fn a_long_outage_is_said_once_and_mends_by_itself() {
    for (fault, told) in [(status(500, 10_000), "500"), (html(502), "502")] {
        play_in_zone(Plan::Pro, |stage| async move {
            let id = one_record(&stage).await;
            let all = FaultMatch {
                path: Some("dns_records".to_owned()),
                ..FaultMatch::any()
            };
            stage.fault(all, fault);
            let mark = stage.mark();
            stage.user.edit_spec(&id, &json!({ "ttl": 300 }));
            stage.says(&id, "False", "APIError").await;
            assert!(stage.user.message(&id).contains(told), "{}", stage.user.message(&id));
            stage.rest(2 * HOUR).await;
            let since = stage.since(&mark);
            assert!(since.kubernetes_writes.len() <= 3, "{:#?}", since.kubernetes_writes);
            // A try a minute at most, three calls a try.
            assert!(since.calls.len() < 3 * 150, "{} calls", since.calls.len());
            assert_eq!(stage.times_told(&id, "APIError"), 1);
            stage.cloudflare.clear_faults();
            stage.rest(2 * MINUTE).await;
            assert!(stage.user.is_ready(&id));
            assert_eq!(stage.records()[0]["ttl"], 300);
        });
    }
}

#[test]
fn without_a_connection_everything_waits_and_goes_on() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = one_record(&stage).await;
        stage.world.way.sever();
        let other = stage.record("y", json!({ "name": "y", "type": "A", "content": "192.0.2.1" }));
        stage.rest(HOUR).await;
        assert_eq!(stage.user.ready(&other).1, "APIError");
        stage.world.way.restore();
        stage.rest(2 * MINUTE).await;
        assert!(stage.user.is_ready(&id) && stage.user.is_ready(&other));
        assert_eq!(stage.records().len(), 2);
    });
}

/// Slow writes stall nobody else: a pass that waits for its batch holds no worker.
#[test]
fn a_zone_of_slow_writes_does_not_stall_another() {
    one_slow_zone(|slow| FaultMatch::path("POST", slow));
}

/// Nor does a zone in which every call is slow, lists that take longer than they stay fresh included.
#[test]
fn a_zone_of_slow_calls_does_not_stall_another() {
    one_slow_zone(|slow| FaultMatch {
        path: Some(slow.to_owned()),
        ..FaultMatch::any()
    });
}

fn one_slow_zone(matches: fn(&str) -> FaultMatch) {
    play_in_zone(Plan::Pro, move |stage| async move {
        stage.user.zone("fast", "example.org");
        stage.ready(&[kflare_testkit::simulation::User::zone_id("fast")]).await;
        let slow = stage.recorded(&crate::stage::zone_id()).unwrap();
        stage.fault(matches(&slow), Fault::Delay { ms: 50_000 });
        let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
        let held: Vec<_> = (0..40).map(|n| stage.record(&format!("slow{n}"), spec(n))).collect();
        stage.rest(std::time::Duration::from_secs(1)).await;
        let fast: Vec<_> = (0..40)
            .map(|n| {
                let mut manifest = crate::stage::record(&format!("fast{n}"), spec(n));
                manifest["spec"]["zoneRef"]["name"] = json!("fast");
                stage.create(manifest)
            })
            .collect();
        let began = stage.seconds();
        stage.ready(&fast).await;
        assert!(stage.seconds() - began < 60, "{} s", stage.seconds() - began);
        stage.ready(&held).await;
    });
}
