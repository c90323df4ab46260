//! Which namespaces may use an account. Field case 122.

use std::time::Duration;

use kflare_sim::Plan;
use kflare_testkit::{memory_api::ObjectId, simulation::User};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, Stage, ZONE, in_namespace, play_in_zone, record, zone, zone_id};

fn namespace(stage: &Stage, name: &str, labels: &Value) -> ObjectId {
    stage.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } }))
}

/// A zone and a record in a namespace of their own.
fn tenant(stage: &Stage, name: &str) -> [ObjectId; 2] {
    let spec = json!({ "name": "x", "type": "A", "content": "192.0.2.1" });
    [
        stage.create(in_namespace(
            zone(ZONE, json!({ "name": format!("{name}.example") })),
            name,
        )),
        stage.create(in_namespace(record("x", spec), name)),
    ]
}

// Field case 122.
#[test]
fn a_namespace_that_is_not_allowed_makes_no_call_until_its_label_comes() {
    play_in_zone(Plan::Pro, |stage| async move {
        namespace(&stage, "team", &json!({ "dns": "yes" }));
        let tenant_b = namespace(&stage, "tenant-b", &json!({ "dns": "no" }));
        stage.user.edit_spec(
            &User::account_id(),
            &json!({ "allowedNamespaces": { "matchLabels": { "dns": "yes" } } }),
        );
        stage.ready(&[User::account_id()]).await;
        let mark = stage.mark();
        let [zone, record] = tenant(&stage, "tenant-b");
        stage.says(&zone, "False", "NamespaceNotAllowed").await;
        stage.says(&record, "False", "ZoneNotReady").await;
        assert!(
            stage.user.message(&zone).contains("tenant-b"),
            "{}",
            stage.user.message(&zone)
        );
        stage.rest(5 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_cloudflare_write();
        assert!(
            since.calls.iter().all(|call| !call.path.contains("tenant-b")),
            "{:#?}",
            since.calls
        );
        assert!(stage.user.is_ready(&zone_id()), "{}", stage.explain(&zone_id()));
        stage
            .user
            .edit(&tenant_b, |object| object["metadata"]["labels"]["dns"] = json!("yes"));
        stage.rest(Duration::from_secs(10)).await;
        assert!(
            stage.user.is_ready(&zone) && stage.user.is_ready(&record),
            "{}",
            stage.explain(&record)
        );
    });
}

/// A namespace that loses its permission keeps what it has, changes nothing, and can still clean up.
#[test]
fn a_namespace_that_is_no_longer_allowed_changes_nothing_and_may_still_delete() {
    play_in_zone(Plan::Pro, |stage| async move {
        let team = namespace(&stage, "team", &json!({ "dns": "yes" }));
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.edit_spec(
            &User::account_id(),
            &json!({ "allowedNamespaces": { "matchLabels": { "dns": "yes" } } }),
        );
        stage.ready(&[User::account_id()]).await;
        stage
            .user
            .edit(&team, |object| object["metadata"]["labels"] = json!({}));
        stage.says(&zone_id(), "False", "NamespaceNotAllowed").await;
        stage.user.edit_spec(&id, &json!({ "ttl": 300 }));
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(stage.user.ready(&id).0, "False");
        assert_eq!(stage.records()[0]["ttl"], 1);
        stage.user.delete(&id);
        stage.user.delete(&zone_id());
        stage.gone(&[id, zone_id()]).await;
        assert!(stage.cloudflare.zones().is_empty());
    });
}

#[test]
fn without_a_selector_every_namespace_may_use_the_account() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = tenant(&stage, "nobody-knows-me");
        stage.ready(&ids).await;
        assert_eq!(stage.cloudflare.zones().len(), 2);
        assert!(stage.cloudflare.records(DOMAIN).unwrap().is_empty());
    });
}
