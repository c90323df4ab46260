//! The API server restarts, watches are cut, etcd hangs: kflare waits, does nothing wrong, and goes on.

use std::time::Duration;

use kflare_api::names;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::json;
use tokio::time::timeout;

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Replica, ReplicaOptions, Site, Tenant, play};

async fn settle(tenant: &Tenant<'_>) -> Vec<serde_json::Value> {
    tenant.open().await;
    for name in ["a", "b", "c"] {
        tenant.create_a(name, &[]).await;
    }
    for name in ["a", "b", "c"] {
        tenant.until_ready(Kind::Record, name).await;
    }
    tenant.remote_records()
}

#[tokio::test]
async fn a_restart_of_the_api_server_cuts_the_watches_and_nothing_else() {
    let (mut control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "restart", async |tenant| {
        let replica = Replica::start(&site, ReplicaOptions::named("steady")).await;
        let before = settle(tenant).await;
        let mark = tenant.now();
        control_plane.stop_api_server();
        let refused = tenant.api(Kind::Zone).get(ZONE).await;
        refused.unwrap_err();
        control_plane.start_api_server().await.unwrap();
        assert!(replica.is_running());

        // Everything that changes afterwards is seen again: new, changed, deleted.
        tenant.create_a("d", &[]).await;
        tenant
            .change(Kind::Record, "a", json!({ "spec": { "ttl": 300 } }))
            .await;
        tenant.delete(Kind::Record, "b").await;
        tenant.until_ready(Kind::Record, "d").await;
        tenant.until_ready(Kind::Record, "a").await;
        tenant.until_gone(Kind::Record, "b").await;
        let sent: usize = tenant
            .writes(mark)
            .iter()
            .map(|call| {
                let body = call.body.clone().unwrap_or_default();
                let lists = ["posts", "patches", "puts", "deletes"];
                let batched: usize = lists
                    .iter()
                    .filter_map(|list| body[list].as_array())
                    .map(Vec::len)
                    .sum();
                batched.max(1)
            })
            .sum();
        assert_eq!(sent, 3, "one write for each change: {:?}", tenant.writes(mark));
        let after = tenant.remote_records();
        assert!(
            after.contains(
                before
                    .iter()
                    .find(|it| it["name"] == *format!("c.{}", tenant.domain))
                    .unwrap()
            )
        );
        assert!(replica.is_running());
        replica.stopped().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_was_deleted_while_nobody_watched_is_noticed() {
    let (mut control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "unseen", async |tenant| {
        let replica = Replica::start(&site, ReplicaOptions::named("first")).await;
        settle(tenant).await;
        replica.kill().await;
        // Nobody runs: a finalizer is taken off by force, and what it protected stays at Cloudflare.
        let release = json!({ "metadata": { "finalizers": null } });
        tenant.change(Kind::Record, "a", release).await;
        tenant.delete(Kind::Record, "a").await;
        tenant.until_gone(Kind::Record, "a").await;
        tenant.delete(Kind::Record, "b").await;
        control_plane.restart_api_server().await.unwrap();
        let replica = Replica::start(&site, ReplicaOptions::named("second")).await;
        tenant.until_gone(Kind::Record, "b").await;
        assert!(tenant.remote("b").is_empty());
        // The same record again is not taken for a new one, and not adopted without consent.
        tenant.create_a("a", &[]).await;
        tenant.until_reason(Kind::Record, "a", "AlreadyExists").await;
        replica.stopped().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_hanging_etcd_delays_and_breaks_nothing() {
    let (control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "hang", async |tenant| {
        let replica = Replica::start(&site, ReplicaOptions::named("patient")).await;
        let before = settle(tenant).await;
        // Work is under way when etcd stops answering.
        for number in 0..10 {
            tenant.create_a(&format!("busy-{number}"), &[]).await;
        }
        control_plane.pause_etcd().unwrap();
        let object = DynamicObject::new("late", &Kind::Record.resource()).data(json!({ "spec": {
            "zoneRef": { "name": ZONE }, "name": "late", "type": "A", "content": "192.0.2.1",
        } }));
        let api = tenant.api(Kind::Record);
        timeout(Duration::from_secs(4), api.create(&PostParams::default(), &object))
            .await
            .expect_err("etcd hangs");
        control_plane.resume_etcd().unwrap();
        // Whether the create that was given up arrived is open; now it is there.
        let created = async || match api.create(&PostParams::default(), &object).await {
            Ok(_) => Ok(Some(())),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some(())),
            Err(error) => Err(error),
        };
        tenant.until("the record created", created).await;
        tenant.until_ready(Kind::Record, "late").await;
        for number in 0..10 {
            let name = format!("busy-{number}");
            tenant.until_ready(Kind::Record, &name).await;
            assert_eq!(tenant.remote(&name).len(), 1, "{name}");
            let settled = |object: &DynamicObject| {
                object
                    .metadata
                    .annotations
                    .as_ref()
                    .is_none_or(|it| !it.contains_key(names::CREATE_INTENT))
            };
            tenant.until_object(Kind::Record, &name, "settled", settled).await;
        }
        let after = tenant.remote_records();
        assert!(
            before.iter().all(|record| after.contains(record)),
            "nothing else was touched"
        );
        assert!(replica.is_running());
        for name in ["late", "busy-0"] {
            api.delete(name, &DeleteParams::default()).await.unwrap();
            tenant.until_gone(Kind::Record, name).await;
        }
        replica.stopped().await.unwrap();
    })
    .await;
}
