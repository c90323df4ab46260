//! Pause, observe, reconcile-at: when kflare holds back, and when it looks again.

use kflare_api::names;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Ready, scenario};

const PAUSED: (&str, &str) = (names::PAUSED, "true");
const OBSERVE: (&str, &str) = (names::MODE, "observe");

#[tokio::test]
async fn a_paused_resource_makes_no_call_keeps_its_status_and_waits_with_its_deletion() {
    scenario("paused", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let mark = tenant.now();
        tenant.annotate(Kind::Record, "www", names::PAUSED, Some("true")).await;
        let paused = tenant.until_reason(Kind::Record, "www", "Paused").await;
        assert_eq!(paused.status, "True", "as it was");
        tenant.until_event(Kind::Record, "www", "Paused").await;
        tenant
            .change(Kind::Record, "www", json!({ "spec": { "ttl": 300 } }))
            .await;
        tenant.until_reason(Kind::Record, "www", "Paused").await;
        // The account and the zone may be looked at: they are not paused.
        let mut calls = tenant.calls(mark);
        calls.retain(|call| call.path.contains("dns_records"));
        assert!(calls.is_empty(), "{calls:?}");

        tenant.delete(Kind::Record, "www").await;
        tenant.fence("fence").await;
        let waiting = tenant.get(Kind::Record, "www").await;
        assert!(waiting.metadata.deletion_timestamp.is_some());
        assert_eq!(waiting.finalizers(), [names::FINALIZER]);
        assert_eq!(tenant.remote("www")[0]["ttl"], 1, "neither changed nor deleted");

        tenant.annotate(Kind::Record, "www", names::PAUSED, None).await;
        tenant.until_gone(Kind::Record, "www").await;
        assert!(tenant.remote("www").is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_change_made_during_a_pause_is_carried_out_after_it() {
    scenario("resumed", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        tenant.annotate(Kind::Record, "www", names::PAUSED, Some("true")).await;
        tenant.until_reason(Kind::Record, "www", "Paused").await;
        tenant
            .change(Kind::Record, "www", json!({ "spec": { "ttl": 300 } }))
            .await;
        tenant.until_reason(Kind::Record, "www", "Paused").await;
        tenant.annotate(Kind::Record, "www", names::PAUSED, None).await;
        tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(tenant.remote("www")[0]["ttl"], 300);
    })
    .await;
}

#[tokio::test]
async fn what_is_paused_from_the_start_is_unknown_and_a_paused_parent_does_not_stop_its_children() {
    scenario("parents", async |tenant| {
        tenant.open().await;
        tenant.create_a("never", &[PAUSED]).await;
        let paused = tenant.until_reason(Kind::Record, "never", "Paused").await;
        assert_eq!(paused.status, "Unknown");
        assert!(tenant.get(Kind::Record, "never").await.finalizers().is_empty());

        for (kind, name) in [(Kind::Zone, ZONE), (Kind::Account, &*tenant.account)] {
            tenant.annotate(kind, name, names::PAUSED, Some("true")).await;
            assert_eq!(tenant.until_reason(kind, name, "Paused").await.status, "True");
        }
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(tenant.remote("www").len(), 1);
        assert!(tenant.remote("never").is_empty());

        // A paused zone stays, whoever asks.
        tenant.delete(Kind::Record, "www").await;
        tenant.until_gone(Kind::Record, "www").await;
        tenant.delete(Kind::Record, "never").await;
        tenant.until_gone(Kind::Record, "never").await;
        tenant.delete(Kind::Zone, ZONE).await;
        tenant
            .annotate(Kind::Account, &tenant.account, names::PAUSED, None)
            .await;
        tenant.until_ready(Kind::Account, &tenant.account).await;
        assert!(tenant.remote_zone().is_some());
        tenant.annotate(Kind::Zone, ZONE, names::PAUSED, None).await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        assert_eq!(tenant.remote_zone(), None);
    })
    .await;
}

#[tokio::test]
async fn observe_mode_reports_the_plan_and_writes_nothing() {
    scenario("observe", async |tenant| {
        tenant.open().await;
        tenant.create_a("drifts", &[]).await;
        tenant.until_ready(Kind::Record, "drifts").await;
        let id = tenant.remote("drifts")[0]["id"].as_str().unwrap().to_owned();
        tenant
            .annotate(Kind::Record, "drifts", OBSERVE.0, Some(OBSERVE.1))
            .await;
        tenant.foreign_patch(&id, &json!({ "ttl": 300 }));
        let mark = tenant.now();

        tenant.create_a("missing", &[OBSERVE]).await;
        let observing = tenant.until_reason(Kind::Record, "missing", "Observing").await;
        assert_eq!(observing.status, "False");
        let object = tenant.get(Kind::Record, "missing").await;
        let plan = object.data["status"]["plan"].to_string();
        assert!(
            plan.contains("create") && plan.contains("content") && plan.contains("192.0.2.1"),
            "{plan}"
        );

        tenant
            .annotate(Kind::Record, "drifts", names::RECONCILE_AT, Some("now"))
            .await;
        tenant.until_reason(Kind::Record, "drifts", "Observing").await;
        let object = tenant.get(Kind::Record, "drifts").await;
        let plan = object.data["status"]["plan"].to_string();
        assert!(plan.contains("ttl: 300 -> 1"), "{plan}");
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));

        // What is only observed is not deleted either.
        tenant.delete(Kind::Record, "drifts").await;
        tenant.until_gone(Kind::Record, "drifts").await;
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
        assert_eq!(tenant.remote("drifts")[0]["ttl"], 300);

        // The user agrees.
        tenant.annotate(Kind::Record, "missing", names::MODE, None).await;
        let object = tenant.until_ready(Kind::Record, "missing").await;
        assert_eq!(object.data["status"]["plan"], json!(null));
        assert_eq!(tenant.remote("missing").len(), 1);
    })
    .await;
}

#[tokio::test]
async fn reconcile_at_asks_for_one_look_for_each_new_value() {
    scenario("ask", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let id = tenant.remote("www")[0]["id"].as_str().unwrap().to_owned();
        for value in ["2030-01-01T00:00:00Z", "anything"] {
            tenant.foreign_patch(&id, &json!({ "ttl": 300 }));
            tenant
                .annotate(Kind::Record, "www", names::RECONCILE_AT, Some(value))
                .await;
            let served = |object: &DynamicObject| object.data["status"]["lastReconcileAt"] == *value;
            let object = tenant.until_object(Kind::Record, "www", value, served).await;
            assert_eq!(Ready::of(&object).unwrap().status, "True");
            assert_eq!(
                tenant.remote("www")[0]["ttl"],
                1,
                "looked at Cloudflare itself, not at a list of before"
            );
        }
        // Without a new value nobody looks.
        tenant.foreign_patch(&id, &json!({ "ttl": 600 }));
        tenant
            .annotate(Kind::Record, "www", "example.com/note", Some("not ours"))
            .await;
        tenant.fence("fence").await;
        assert_eq!(tenant.remote("www")[0]["ttl"], 600);
    })
    .await;
}
