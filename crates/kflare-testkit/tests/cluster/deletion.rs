//! Deletion policies: what stays at Cloudflare and what goes, and that the finalizer waits for Cloudflare's word.

use kflare_api::names;
use kflare_sim::{Area, Grant, Permission};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;

use crate::harness::tenant::{ZONE, everything};
use crate::harness::{Kind, Ready, Tenant, scenario};

fn is_there(tenant: &Tenant<'_>, name: &str) -> bool {
    !tenant.remote(name).is_empty()
}

/// Deletes a record and tells whether it stayed at Cloudflare.
async fn stays(tenant: &Tenant<'_>, name: &str) -> bool {
    tenant.delete(Kind::Record, name).await;
    tenant.until_gone(Kind::Record, name).await;
    is_there(tenant, name)
}

#[tokio::test]
async fn what_was_created_goes_and_what_was_adopted_stays_unless_the_annotation_says_otherwise() {
    scenario("policies", async |tenant| {
        tenant.open().await;
        let adopt = (names::ADOPTION_POLICY, "adopt");
        for name in ["adopted", "adopted-delete"] {
            tenant.foreign_create(&json!({ "type": "A", "name": name, "content": "192.0.2.1" }));
        }
        tenant.create_a("created", &[]).await;
        tenant
            .create_a("created-retain", &[(names::DELETION_POLICY, "retain")])
            .await;
        tenant.create_a("adopted", &[adopt]).await;
        tenant
            .create_a("adopted-delete", &[adopt, (names::DELETION_POLICY, "delete")])
            .await;
        for (name, wanted) in [
            ("created", false),
            ("created-retain", true),
            ("adopted", true),
            ("adopted-delete", false),
        ] {
            tenant.until_ready(Kind::Record, name).await;
            assert_eq!(stays(tenant, name).await, wanted, "{name}");
            let reason = if wanted { "Kept" } else { "Deleted" };
            tenant.until_event(Kind::Record, name, reason).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_account_sets_the_policy_of_its_resources_and_each_may_differ() {
    scenario("retain", async |tenant| {
        tenant.create_secret().await;
        let mut spec = tenant.account_spec();
        spec["defaultDeletionPolicy"] = json!("retain");
        tenant.create(Kind::Account, &tenant.account, &[], spec).await;
        tenant.create_zone(&[]).await;
        tenant.create_a("kept", &[]).await;
        tenant.create_a("gone", &[(names::DELETION_POLICY, "delete")]).await;
        for (name, wanted) in [("kept", true), ("gone", false)] {
            tenant.until_ready(Kind::Record, name).await;
            assert_eq!(stays(tenant, name).await, wanted, "{name}");
        }
        tenant.delete(Kind::Zone, ZONE).await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        assert!(tenant.remote_zone().is_some());
    })
    .await;
}

#[tokio::test]
async fn deletion_goes_by_the_recorded_id_and_what_is_gone_already_is_success() {
    scenario("by-id", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let id = tenant.remote("www")[0]["id"].as_str().unwrap().to_owned();
        // Somebody deletes it and makes one that looks the same.
        tenant.foreign_delete(&id);
        let foreign = tenant.foreign_create(&json!({ "type": "A", "name": "www", "content": "192.0.2.1" }));
        assert!(stays(tenant, "www").await, "the other one is not ours");
        assert_eq!(tenant.remote("www")[0]["id"], *foreign);
    })
    .await;
}

#[tokio::test]
async fn a_refused_deletion_keeps_the_finalizer_says_why_and_ends_with_the_right_to_delete() {
    scenario("refusal", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let areas = [Area::Account, Area::Zone, Area::Dns];
        let to_look = areas.map(|area| Grant::everywhere(Permission::read(area)));
        tenant.issue_token("first", to_look.to_vec());
        tenant.delete(Kind::Record, "www").await;
        let refused = |object: &DynamicObject| {
            let ready = Ready::of(object);
            ready.is_some_and(|it| it.status == "False" && it.reason == "TerminalError")
        };
        let object = tenant.until_object(Kind::Record, "www", "refused", refused).await;
        assert_eq!(object.finalizers(), [names::FINALIZER]);
        let ready = Ready::of(&object).unwrap();
        assert!(ready.message.contains("403"), "{ready:?}");
        assert!(is_there(tenant, "www"));

        tenant.issue_token("first", everything());
        tenant
            .annotate(Kind::Record, "www", names::RECONCILE_AT, Some("now"))
            .await;
        tenant.until_gone(Kind::Record, "www").await;
        assert!(!is_there(tenant, "www"));
    })
    .await;
}

#[tokio::test]
async fn deleting_a_zone_warns_of_the_records_that_go_with_it() {
    scenario("warns", async |tenant| {
        tenant.open().await;
        for name in ["one", "two"] {
            tenant.foreign_create(&json!({ "type": "A", "name": name, "content": "192.0.2.1" }));
        }
        tenant.delete(Kind::Zone, ZONE).await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        assert_eq!(tenant.remote_zone(), None);
        let warning = tenant.until_event(Kind::Zone, ZONE, "DeletingMore").await;
        assert!(warning.contains('2'), "{warning}");
    })
    .await;
}
