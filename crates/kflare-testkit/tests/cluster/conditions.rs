//! Conditions and names: the `Ready` condition of every kind, remote ids in status, finalizers and labels.

use jiff::Timestamp;
use kflare_api::names;
use kube::ResourceExt;
use serde_json::json;

use crate::harness::tenant::{SECRET, ZONE, id_of};
use crate::harness::{Kind, Ready, scenario};

#[tokio::test]
async fn every_kind_becomes_ready_and_status_holds_the_remote_ids() {
    scenario("ready", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        let record = tenant.until_ready(Kind::Record, "www").await;
        let zone = tenant.get(Kind::Zone, ZONE).await;
        let account = tenant.get(Kind::Account, &tenant.account).await;

        for (object, reason) in [(&account, "Validated"), (&zone, "Synced"), (&record, "Synced")] {
            let ready = Ready::of(object).unwrap();
            assert_eq!((&*ready.status, &*ready.reason), ("True", reason), "{ready:?}");
            assert_eq!(Some(ready.observed_generation), object.metadata.generation);
            let since: Timestamp = ready.since.parse().unwrap();
            assert!(object.creation_timestamp().unwrap().0 <= since, "{ready:?}");
        }
        let (remote_zone, remote) = (tenant.remote_zone().unwrap(), &tenant.remote("www")[0]);
        let status = &zone.data["status"]["cloudflareMetadata"];
        assert_eq!(status["zoneID"], remote_zone["id"]);
        assert_eq!(status["nameServers"], remote_zone["name_servers"]);
        assert_eq!(status["status"], remote_zone["status"]);
        let status = &record.data["status"]["cloudflareMetadata"];
        assert_eq!(status["recordID"], remote["id"]);
        assert_eq!(status["zoneID"], remote_zone["id"]);
        assert_eq!(status["name"], remote["name"]);
        assert_eq!(account.data["status"]["accountName"], *tenant.account);
        assert_eq!(account.data["status"]["token"]["id"], *tenant.token.id);
    })
    .await;
}

#[tokio::test]
async fn a_condition_follows_the_generation_and_its_time_moves_only_with_its_status() {
    scenario("flips", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        let first = Ready::of(&tenant.until_ready(Kind::Record, "www").await).unwrap();
        // Times have whole seconds: from now on an unwanted new one shows.
        let began: Timestamp = first.since.parse().unwrap();
        let over = || (Timestamp::now().as_second() > began.as_second()).then_some(());
        tenant.until("the next second", async || Ok::<_, String>(over())).await;

        tenant
            .change(Kind::Record, "www", json!({ "spec": { "ttl": 300 } }))
            .await;
        let changed = Ready::of(&tenant.until_ready(Kind::Record, "www").await).unwrap();
        assert_eq!(
            changed,
            Ready {
                observed_generation: 2,
                ..first.clone()
            }
        );
        assert_eq!(tenant.remote("www")[0]["ttl"], 300);

        tenant
            .annotate(Kind::Record, "www", names::ADOPTION_POLICY, Some("perhaps"))
            .await;
        let broken = tenant.until_reason(Kind::Record, "www", "InvalidSpec").await;
        assert_eq!(broken.status, "False");
        assert!(
            broken.since > first.since,
            "the status flipped: {broken:?} after {first:?}"
        );
        assert!(
            broken.message.contains(names::ADOPTION_POLICY) && broken.message.contains("perhaps"),
            "{broken:?}"
        );

        tenant.annotate(Kind::Record, "www", names::ADOPTION_POLICY, None).await;
        let mended = Ready::of(&tenant.until_ready(Kind::Record, "www").await).unwrap();
        assert!(
            mended.since >= broken.since && mended.reason == "Synced",
            "{mended:?} after {broken:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_refusal_by_cloudflare_is_final_and_says_what_it_is_about() {
    scenario("refused", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        // No CNAME beside another record: Cloudflare knows, the schema cannot.
        let spec = json!({ "zoneRef": { "name": ZONE }, "name": "www", "type": "CNAME", "content": "example.net" });
        tenant.create(Kind::Record, "beside", &[], spec).await;
        let refused = tenant.until_reason(Kind::Record, "beside", "RecordConflict").await;
        assert_eq!(refused.status, "False");
        assert_eq!(tenant.remote("www").len(), 1, "the record that was there is untouched");
        let message = tenant.until_event(Kind::Record, "beside", "RecordConflict").await;
        assert_eq!(message, refused.message);
    })
    .await;
}

#[tokio::test]
async fn finalizers_and_claim_labels_have_the_promised_names() {
    scenario("names", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let claimed = |kind, name, label: &'static str| {
            tenant.until_object(kind, name, label, move |object| object.labels().contains_key(label))
        };
        let zone = claimed(Kind::Zone, ZONE, "kflare.dev/zone-id").await;
        let record = claimed(Kind::Record, "www", "kflare.dev/record-id").await;
        assert_eq!(zone.labels()["kflare.dev/zone-id"], id_of(&zone));
        assert_eq!(record.labels()["kflare.dev/record-id"], id_of(&record));
        let account = tenant.get(Kind::Account, &tenant.account).await;
        for object in [&account, &zone, &record] {
            assert_eq!(object.finalizers(), ["kflare.dev/finalizer"]);
            assert!(
                object.annotations().is_empty(),
                "nothing is left behind: {:?}",
                object.annotations()
            );
        }
        let secret = tenant.secrets().get(SECRET).await.unwrap();
        assert_eq!(secret.finalizers(), ["kflare.dev/token-protection"]);
    })
    .await;
}
