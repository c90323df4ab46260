//! Ownership: one object at Cloudflare, one resource.

use kflare_api::names;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;

use crate::harness::tenant::{ZONE, id_of};
use crate::harness::{Kind, scenario};

const ADOPT: [(&str, &str); 1] = [(names::ADOPTION_POLICY, "adopt")];

#[tokio::test]
async fn a_zone_is_managed_by_one_resource_across_namespaces() {
    scenario("claim", async |tenant| {
        tenant.open().await;
        let rival = tenant.elsewhere("rival").await;
        rival.create_zone(&ADOPT).await;
        let refused = rival.until_reason(Kind::Zone, ZONE, "AlreadyClaimed").await;
        assert_eq!(refused.status, "False");
        assert!(
            refused.message.contains(&format!("{}/{ZONE}", tenant.home())),
            "{refused:?}"
        );
        rival.create_a("www", &[]).await;
        rival.until_reason(Kind::Record, "www", "ZoneNotReady").await;

        // The rival's end leaves the zone alone, although deletion is asked for.
        rival
            .annotate(Kind::Zone, ZONE, names::DELETION_POLICY, Some("delete"))
            .await;
        rival.delete(Kind::Record, "www").await;
        rival.delete(Kind::Zone, ZONE).await;
        rival.until_gone(Kind::Zone, ZONE).await;
        assert!(tenant.remote_zone().is_some());

        // The next rival takes over as soon as the holder lets the zone go.
        rival.create_zone(&ADOPT).await;
        rival.until_reason(Kind::Zone, ZONE, "AlreadyClaimed").await;
        let id = tenant.remote_zone().unwrap()["id"].clone();
        tenant
            .annotate(Kind::Zone, ZONE, names::DELETION_POLICY, Some("retain"))
            .await;
        tenant.delete(Kind::Zone, ZONE).await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        let taken = rival.until_ready(Kind::Zone, ZONE).await;
        assert_eq!(id, *id_of(&taken));
    })
    .await;
}

#[tokio::test]
async fn two_resources_for_one_record_do_not_share_it() {
    scenario("twins", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let before = tenant.remote("www");
        let spec =
            json!({ "zoneRef": { "name": ZONE }, "name": "www", "type": "A", "content": "192.0.2.1", "ttl": 300 });
        tenant.create(Kind::Record, "twin", &ADOPT, spec).await;
        let refused = tenant.until_reason(Kind::Record, "twin", "AlreadyClaimed").await;
        assert!(refused.message.contains("/www"), "{refused:?}");
        tenant.delete(Kind::Record, "twin").await;
        tenant.until_gone(Kind::Record, "twin").await;
        tenant.fence("fence").await;
        assert_eq!(tenant.remote("www"), before);
    })
    .await;
}

#[tokio::test]
async fn a_copied_label_claims_nothing() {
    scenario("copied", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let id = tenant.remote("www")[0]["id"].as_str().unwrap().to_owned();
        // As from `kubectl get -o yaml | sed | kubectl apply`.
        tenant.create_a("copy", &[(names::PAUSED, "true")]).await;
        let patch = json!({ "metadata": {
            "labels": { names::RECORD_ID: id },
            "annotations": { names::PAUSED: null },
        } });
        tenant.change(Kind::Record, "copy", patch).await;
        let copy = tenant.until_ready(Kind::Record, "copy").await;
        let own = tenant.remote("copy")[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(id_of(&copy), own);
        let relabelled = |object: &DynamicObject| object.labels()[names::RECORD_ID] == own;
        tenant
            .until_object(Kind::Record, "copy", "its own label", relabelled)
            .await;

        tenant
            .annotate(Kind::Record, "www", names::RECONCILE_AT, Some("now"))
            .await;
        let served = |object: &DynamicObject| object.data["status"]["lastReconcileAt"] == "now";
        let original = tenant.until_object(Kind::Record, "www", "looked at", served).await;
        assert_eq!(id_of(&original), id);
        assert_eq!(tenant.remote("www").len(), 1);
    })
    .await;
}
