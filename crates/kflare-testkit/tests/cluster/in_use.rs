//! In use: parents wait for their children, the token Secret for its accounts.

use kflare_api::names;
use kube::ResourceExt;
use kube::api::DynamicObject;

use crate::harness::tenant::{SECRET, ZONE};
use crate::harness::{Kind, Ready, Tenant, scenario};

/// Waits until a resource that is being deleted says that it is in use, and returns what it says.
async fn until_in_use(tenant: &Tenant<'_>, kind: Kind, name: &str) -> String {
    let waits = |object: &DynamicObject| {
        object.metadata.deletion_timestamp.is_some() && Ready::of(object).is_some_and(|it| it.reason == "InUse")
    };
    let object = tenant.until_object(kind, name, "InUse", waits).await;
    let ready = Ready::of(&object).unwrap();
    assert_eq!(ready.status, "False");
    assert_eq!(object.finalizers(), [names::FINALIZER]);
    ready.message
}

#[tokio::test]
async fn zone_account_and_secret_wait_for_what_needs_them_and_go_right_after_it() {
    scenario("in-use", async |tenant| {
        tenant.open().await;
        tenant.create_a("one", &[]).await;
        tenant.create_a("two", &[]).await;
        tenant.until_ready(Kind::Record, "one").await;
        tenant.until_ready(Kind::Record, "two").await;

        tenant.delete_secret().await;
        tenant.delete(Kind::Account, &tenant.account).await;
        tenant.delete(Kind::Zone, ZONE).await;
        let message = until_in_use(tenant, Kind::Zone, ZONE).await;
        assert!(message.contains("/one") && message.contains("/two"), "{message}");
        let message = until_in_use(tenant, Kind::Account, &tenant.account).await;
        assert!(message.contains(&format!("{}/{ZONE}", tenant.home())), "{message}");
        let secret = tenant.secrets().get(SECRET).await.unwrap();
        assert!(secret.metadata.deletion_timestamp.is_some());
        assert_eq!(secret.finalizers(), [names::TOKEN_PROTECTION]);

        // What still exists goes on working meanwhile.
        tenant
            .change(Kind::Record, "one", serde_json::json!({ "spec": { "ttl": 300 } }))
            .await;
        tenant.until_ready(Kind::Record, "one").await;
        assert_eq!(tenant.remote("one")[0]["ttl"], 300);

        tenant.delete(Kind::Record, "one").await;
        tenant.until_gone(Kind::Record, "one").await;
        let only_two = |object: &DynamicObject| {
            Ready::of(object).is_some_and(|it| !it.message.contains("/one") && it.message.contains("/two"))
        };
        tenant
            .until_object(Kind::Zone, ZONE, "waiting for the last", only_two)
            .await;
        assert!(tenant.remote_zone().is_some());
        tenant.delete(Kind::Record, "two").await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        tenant.until_gone(Kind::Account, &tenant.account).await;
        tenant.until_secret_gone().await;
        assert_eq!(tenant.remote_zone(), None);
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_going_takes_no_new_children() {
    scenario("going", async |tenant| {
        tenant.open().await;
        tenant.create_a("old", &[]).await;
        tenant.until_ready(Kind::Record, "old").await;
        tenant.delete(Kind::Zone, ZONE).await;
        until_in_use(tenant, Kind::Zone, ZONE).await;
        tenant.create_a("new", &[]).await;
        tenant.until_reason(Kind::Record, "new", "ZoneNotReady").await;
        assert!(tenant.remote("new").is_empty());
        tenant.delete(Kind::Record, "new").await;
        tenant.delete(Kind::Record, "old").await;
        tenant.until_gone(Kind::Zone, ZONE).await;
    })
    .await;
}
