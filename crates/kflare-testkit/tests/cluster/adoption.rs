//! Adoption: what exists at Cloudflare is taken only as the user says.

use kflare_api::names;
use kube::ResourceExt;
use serde_json::json;

use crate::harness::tenant::{ZONE, id_of};
use crate::harness::{Kind, Tenant, scenario};

/// A record that is not ours, in a zone that is. It differs from what [`Tenant::create_a`] asks for in its TTL.
fn stranger(tenant: &Tenant<'_>, name: &str, ttl: u32) -> String {
    tenant.foreign_create(&json!({ "type": "A", "name": name, "content": "192.0.2.1", "ttl": ttl }))
}

fn policy(value: &'static str) -> [(&'static str, &'static str); 1] {
    [(names::ADOPTION_POLICY, value)]
}

#[tokio::test]
async fn without_consent_what_exists_is_left_alone() {
    scenario("never", async |tenant| {
        tenant.open().await;
        stranger(tenant, "www", 300);
        let before = tenant.remote("www");
        let mark = tenant.now();
        tenant.create_a("www", &[]).await;
        let blocked = tenant.until_reason(Kind::Record, "www", "AlreadyExists").await;
        assert_eq!(blocked.status, "False");
        assert!(
            blocked.message.contains("ttl"),
            "it says what adopting would change: {blocked:?}"
        );
        assert_eq!(tenant.remote("www"), before);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));

        // A resource that has nothing at Cloudflare goes without touching what is there.
        tenant.delete(Kind::Record, "www").await;
        tenant.until_gone(Kind::Record, "www").await;
        assert_eq!(tenant.remote("www"), before);
    })
    .await;
}

#[tokio::test]
async fn adopt_takes_what_exists_and_never_creates() {
    scenario("adopt", async |tenant| {
        tenant.open().await;
        let id = stranger(tenant, "there", 300);
        tenant.create_a("there", &policy("adopt")).await;
        let adopted = tenant.until_ready(Kind::Record, "there").await;
        assert_eq!(id_of(&adopted), id);
        assert_eq!(adopted.annotations()[names::ADOPTED], "true");
        assert_eq!(adopted.data["status"]["ownership"]["origin"], "Adopted");
        assert_eq!(tenant.remote("there")[0]["ttl"], 1, "as the spec asks for");
        let told = tenant.until_event(Kind::Record, "there", "Adopted").await;
        assert!(told.contains("ttl"), "{told}");

        let mark = tenant.now();
        tenant.create_a("missing", &policy("adopt")).await;
        tenant.until_reason(Kind::Record, "missing", "NothingToAdopt").await;
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
        // It comes later, and the user says so.
        let id = stranger(tenant, "missing", 1);
        tenant
            .annotate(Kind::Record, "missing", names::RECONCILE_AT, Some("now"))
            .await;
        let adopted = tenant.until_ready(Kind::Record, "missing").await;
        assert_eq!(id_of(&adopted), id);
    })
    .await;
}

#[tokio::test]
async fn adopt_or_create_does_either() {
    scenario("either", async |tenant| {
        tenant.open().await;
        let id = stranger(tenant, "there", 300);
        tenant.create_a("there", &policy("adopt-or-create")).await;
        tenant.create_a("missing", &policy("adopt-or-create")).await;
        let adopted = tenant.until_ready(Kind::Record, "there").await;
        assert_eq!(
            (id_of(&adopted), &adopted.data["status"]["ownership"]["origin"]),
            (id, &json!("Adopted"))
        );
        let created = tenant.until_ready(Kind::Record, "missing").await;
        assert_eq!(created.data["status"]["ownership"]["origin"], "Created");
        assert!(!created.annotations().contains_key(names::ADOPTED));
        assert_eq!((tenant.remote("there").len(), tenant.remote("missing").len()), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn adopt_if_matching_takes_only_what_is_equal() {
    scenario("matching", async |tenant| {
        tenant.open().await;
        let id = stranger(tenant, "equal", 1);
        let other = stranger(tenant, "other", 300);
        let (before, mark) = (tenant.remote("other"), tenant.now());
        tenant.create_a("equal", &policy("adopt-if-matching")).await;
        tenant.create_a("other", &policy("adopt-if-matching")).await;
        let adopted = tenant.until_ready(Kind::Record, "equal").await;
        assert_eq!(id_of(&adopted), id);
        let blocked = tenant.until_reason(Kind::Record, "other", "AdoptionBlocked").await;
        assert!(
            blocked.message.contains("ttl") && blocked.message.contains(&other),
            "{blocked:?}"
        );
        assert_eq!(tenant.remote("other"), before);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));

        // The user makes the spec match.
        tenant
            .change(Kind::Record, "other", json!({ "spec": { "ttl": 300 } }))
            .await;
        let adopted = tenant.until_ready(Kind::Record, "other").await;
        assert_eq!(id_of(&adopted), other);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
    })
    .await;
}

#[tokio::test]
async fn a_zone_is_adopted_by_consent_only_and_its_records_follow() {
    scenario("zone", async |tenant| {
        let seed = kflare_sim::Seed {
            zones: vec![kflare_sim::ZoneSeed::named(&tenant.domain, &tenant.account_id)],
            ..Default::default()
        };
        let id = tenant.site.cloudflare.seed(&seed).unwrap().zones[0].clone();
        let mark = tenant.now();
        tenant.connect().await;
        tenant.create_zone(&[]).await;
        tenant.create_a("www", &[]).await;
        tenant.until_reason(Kind::Zone, ZONE, "AlreadyExists").await;
        tenant.until_reason(Kind::Record, "www", "ZoneNotReady").await;
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));

        tenant
            .annotate(Kind::Zone, ZONE, names::ADOPTION_POLICY, Some("adopt"))
            .await;
        let adopted = tenant.until_ready(Kind::Zone, ZONE).await;
        assert_eq!(id_of(&adopted), id);
        assert_eq!(adopted.annotations()[names::ADOPTED], "true");
        tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(tenant.remote("www").len(), 1);
    })
    .await;
}
