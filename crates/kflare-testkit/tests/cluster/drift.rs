//! Drift and contests: changes made outside are put right, told, and not fought over.

use kflare_api::names;
use kube::api::DynamicObject;
use serde_json::json;

use crate::harness::{Kind, Ready, scenario};

/// The shortest interval there is.
const CHECKED: (&str, &str) = (names::DRIFT_CHECK_INTERVAL, "10s");

#[tokio::test]
async fn a_scheduled_check_puts_a_change_right_and_names_the_field_in_an_event() {
    scenario("drift", async |tenant| {
        tenant.open().await;
        tenant.create_a("checked", &[CHECKED]).await;
        tenant.create_a("deleted", &[CHECKED]).await;
        tenant.create_a("unchecked", &[]).await;
        for name in ["checked", "deleted", "unchecked"] {
            tenant.until_ready(Kind::Record, name).await;
        }
        let id = |name: &str| tenant.remote(name)[0]["id"].as_str().unwrap().to_owned();
        tenant.foreign_patch(&id("checked"), &json!({ "ttl": 300, "comment": "by hand" }));
        tenant.foreign_patch(&id("unchecked"), &json!({ "ttl": 300 }));
        let lost = id("deleted");
        tenant.foreign_delete(&lost);

        let right = || tenant.remote("checked")[0]["ttl"] == 1 && !tenant.remote("deleted").is_empty();
        tenant.until_remote("what was changed put right", right).await;
        let told = tenant.until_event(Kind::Record, "checked", "DriftCorrected").await;
        assert!(told.contains("ttl") && told.contains("comment"), "{told}");
        assert_ne!(id("deleted"), lost);
        let told = tenant.until_event(Kind::Record, "deleted", "RemoteObjectGone").await;
        assert!(told.contains(&lost), "{told}");
        tenant.until_ready(Kind::Record, "deleted").await;
        assert_eq!(tenant.remote("unchecked")[0]["ttl"], 300, "nobody asked for it");
    })
    .await;
}

/// How the pauses grow takes hours: the tests on the virtual clock show it.
#[tokio::test]
async fn a_field_that_others_keep_changing_is_named_and_left_alone_after_three_corrections() {
    scenario("contest", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let id = tenant.remote("www")[0]["id"].as_str().unwrap().to_owned();
        for round in ["1", "2", "3", "4"] {
            tenant.foreign_patch(&id, &json!({ "ttl": 300 }));
            tenant
                .annotate(Kind::Record, "www", names::RECONCILE_AT, Some(round))
                .await;
            if round == "4" {
                break;
            }
            let served = |object: &DynamicObject| object.data["status"]["lastReconcileAt"] == round;
            tenant.until_object(Kind::Record, "www", "corrected", served).await;
            assert_eq!(tenant.remote("www")[0]["ttl"], 1, "round {round}");
        }
        let contested = tenant.until_reason(Kind::Record, "www", "Contested").await;
        assert!(
            contested.status == "False" && contested.message.contains("ttl"),
            "{contested:?}"
        );
        let object = tenant.get(Kind::Record, "www").await;
        assert_eq!(object.data["status"]["contested"]["fields"], json!(["ttl"]));
        let next = &object.data["status"]["contested"]["nextCorrection"];
        let next: jiff::Timestamp = next.as_str().unwrap().parse().unwrap();
        assert!(next > jiff::Timestamp::now(), "{next}");
        assert_eq!(tenant.remote("www")[0]["ttl"], 300);

        // The user decides: a change of the spec ends the contest.
        tenant
            .change(Kind::Record, "www", json!({ "spec": { "ttl": 600 } }))
            .await;
        let object = tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(Ready::of(&object).unwrap().reason, "Synced");
        assert_eq!(object.data["status"]["contested"], json!(null));
        assert_eq!(tenant.remote("www")[0]["ttl"], 600);
    })
    .await;
}
