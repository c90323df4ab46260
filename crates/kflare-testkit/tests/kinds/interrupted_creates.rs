//! Creates whose outcome was never recorded, of every kind: what they made goes with the resource.

use std::collections::BTreeSet;

use kflare_api::names;
use kflare_sim::{Delivery, Dropped, Fault, FaultMatch, Plan};
use kflare_testkit::{
    memory_api::{Fault as ApiFault, FaultRule, ObjectId, RequestInfo},
    simulation::NAMESPACE,
    story::Holdings,
};
use serde_json::{Value, json};

use crate::{
    rules_stage::samples,
    stage::{MINUTE, RECORDS, Stage, ZONE, play_in_zone, record, status},
    worker_stage::CODE,
};

fn manifest(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": "x", "namespace": NAMESPACE },
        "spec": spec,
    })
}

fn a_record() -> Value {
    record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }))
}

/// One of every kind that makes something, with fields that lists leave out where there are such.
fn manifests() -> Vec<Value> {
    let in_account = |fields: Value| {
        let mut spec = json!({ "accountRef": { "name": "main" } });
        json_patch::merge(&mut spec, &fields);
        spec
    };
    let in_zone = |fields: &Value| {
        let mut spec = json!({ "zoneRef": { "name": ZONE } });
        json_patch::merge(&mut spec, fields);
        spec
    };
    let mut all = vec![
        manifest("Zone", &in_account(json!({ "name": "example.org", "type": "full" }))),
        manifest("KVNamespace", &in_account(json!({ "title": "sessions" }))),
        manifest(
            "R2Bucket",
            &in_account(json!({
                "name": "assets", "storageClass": "InfrequentAccess",
                "cors": [{ "allowedOrigins": ["https://example.com"], "allowedMethods": ["GET"] }],
            })),
        ),
        manifest(
            "D1Database",
            &in_account(json!({ "name": "orders", "readReplication": { "mode": "auto" } })),
        ),
        manifest(
            "Queue",
            &in_account(json!({ "name": "events", "messageRetentionSeconds": 61, "deliveryPaused": true })),
        ),
        manifest(
            "Tunnel",
            &in_account(json!({ "name": "edge", "credentialsSecretRef": { "name": "edge-token" } })),
        ),
        manifest(
            "IPList",
            &in_account(json!({ "name": "office", "kind": "ip", "items": [{ "ip": "192.0.2.1" }] })),
        ),
        manifest(
            "WorkerScript",
            &in_account(json!({
                "name": "web", "script": CODE, "compatibilityDate": "2026-01-31",
                "observability": { "enabled": true }, "schedules": ["0 3 * * *"],
            })),
        ),
        manifest("WorkerRoute", &in_zone(&json!({ "pattern": "example.com/static/*" }))),
        manifest(
            "DNSRecord",
            &in_zone(&json!({ "name": "x", "type": "A", "content": "192.0.2.1", "comment": "ours" })),
        ),
    ];
    all.extend(
        samples()
            .iter()
            .map(|sample| manifest(sample.kind, &in_zone(&sample.spec))),
    );
    all
}

/// The ids of everything but managed transforms, which come with their zone.
fn held(stage: &Stage) -> BTreeSet<String> {
    let mut holdings = Holdings::of(&stage.cloudflare);
    holdings.transforms.clear();
    holdings.iter().map(|(id, _)| id.clone()).collect()
}

/// The API server takes no status of the resource: its id is never recorded, and the intent is all that there is.
#[test]
fn what_was_made_and_never_recorded_goes_with_its_resource() {
    for manifest in manifests() {
        play_in_zone(Plan::Enterprise, |stage| async move {
            let kind = manifest["kind"].as_str().unwrap().to_owned();
            let before = held(&stage);
            let statuses = |request: &RequestInfo| {
                request.name.as_deref() == Some("x") && request.subresource.as_deref() == Some("status")
            };
            let refused = ApiFault::status(500, "InternalError", "simulated");
            stage.world.api.inject(FaultRule::new(refused, statuses));
            let id: ObjectId = stage.create(manifest);
            stage.rest(MINUTE).await;
            let made: Vec<String> = held(&stage).difference(&before).cloned().collect();
            assert_eq!(made.len(), 1, "{kind}: one is made, and found again: {made:?}");
            assert_eq!(stage.status(&id), Value::Null, "{kind}: the case is met");
            stage.user.delete(&id);
            stage.gone(std::slice::from_ref(&id)).await;
            assert_eq!(held(&stage), before, "{kind}: {:#?}", stage.user.events(&id));
        });
    }
}

/// The first create is answered by nobody, and carried out a minute and a half later.
fn late() -> Fault {
    Fault::Late {
        ms: 90_000,
        dropped: Some(Dropped::Reset),
    }
}

/// The next create ends as `fault` says.
fn lose_the_create(stage: &Stage, fault: &Fault) {
    for method in ["POST", "PUT"] {
        stage.fault_times(FaultMatch::path(method, "."), fault.clone(), 1);
    }
}

fn is_lost(stage: &Stage) -> bool {
    let calls = stage.cloudflare.calls();
    calls.iter().any(|call| call.delivery == Delivery::DroppedBefore)
}

/// Applies a manifest, loses its create as `fault` says, and deletes it before another is tried.
async fn deleted_after_losing_its_create(stage: &Stage, manifest: Value, fault: &Fault) -> ObjectId {
    lose_the_create(stage, fault);
    let id = stage.create(manifest);
    stage.until("the create is lost", is_lost).await;
    stage.user.delete(&id);
    id
}

/// Cloudflare carries the create out when its resource has long been deleted.
#[test]
fn what_is_made_after_its_resource_was_deleted_goes_with_it() {
    for manifest in manifests() {
        play_in_zone(Plan::Enterprise, |stage| async move {
            let kind = manifest["kind"].as_str().unwrap().to_owned();
            let before = held(&stage);
            let id = deleted_after_losing_its_create(&stage, manifest, &late()).await;
            stage.says(&id, "False", "AwaitingCreate").await;
            assert_eq!(held(&stage), before, "{kind}: it is still on its way");
            stage.gone(std::slice::from_ref(&id)).await;
            assert!(stage.told(&id, "Deleted", &[]), "{kind}: the case is met");
            stage.rest(10 * MINUTE).await;
            assert_eq!(held(&stage), before, "{kind}: {:#?}", stage.user.events(&id));
        });
    }
}

/// One write of status, a look every half minute, and then it goes.
#[test]
fn what_is_never_made_holds_its_resource_five_minutes() {
    play_in_zone(Plan::Pro, |stage| async move {
        let lost = Fault::DropBefore {
            dropped: Some(Dropped::Reset),
        };
        let id = deleted_after_losing_its_create(&stage, a_record(), &lost).await;
        stage.says(&id, "False", "AwaitingCreate").await;
        let mark = stage.mark();
        stage.rest(4 * MINUTE).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        assert!((6..=10).contains(&since.calls.len()), "{:#?}", since.calls);
        stage
            .until_within("let go", 2 * MINUTE, |stage| stage.world.api.get(&id).is_none())
            .await;
        assert!(stage.told(&id, "Kept", &["nothing was created"]));
    });
}

#[test]
fn who_keeps_what_may_be_made_need_not_wait() {
    play_in_zone(Plan::Pro, |stage| async move {
        let lost = Fault::DropBefore {
            dropped: Some(Dropped::Reset),
        };
        let id = deleted_after_losing_its_create(&stage, a_record(), &lost).await;
        stage.says(&id, "False", "AwaitingCreate").await;
        stage.user.annotate(&id, names::DELETION_POLICY, Some("retain"));
        stage
            .until_within("let go", MINUTE, |stage| stage.world.api.get(&id).is_none())
            .await;
    });
}

/// A create that surely failed, or that never was, is nothing to wait for.
#[test]
fn what_surely_was_not_made_holds_nobody() {
    for fault in [Fault::RateLimited { retry_after: Some(60) }, status(400, 9005)] {
        play_in_zone(Plan::Pro, |stage| async move {
            stage.fault(FaultMatch::route("POST", RECORDS), fault.clone());
            let id = stage.create(a_record());
            let tried = |stage: &Stage| stage.cloudflare.calls().iter().any(|call| call.method == "POST");
            stage.until("tried", tried).await;
            stage.user.delete(&id);
            let gone = |stage: &Stage| stage.world.api.get(&id).is_none();
            stage.until_within(&format!("{fault:?}"), 2 * MINUTE, gone).await;
        });
    }
}

/// A create that is carried out after it was tried again with success: Cloudflare takes no second object of that identity, whatever
/// the kind, so there is one.
#[test]
fn what_arrives_after_it_was_made_again_is_no_second_object() {
    for manifest in manifests() {
        play_in_zone(Plan::Enterprise, |stage| async move {
            let kind = manifest["kind"].as_str().unwrap().to_owned();
            let before = held(&stage);
            lose_the_create(&stage, &late());
            let id = stage.create(manifest);
            stage.ready(std::slice::from_ref(&id)).await;
            stage.rest(10 * MINUTE).await;
            assert!(is_lost(&stage), "{kind}: the case is met");
            let made: Vec<String> = held(&stage).difference(&before).cloned().collect();
            assert_eq!(made.len(), 1, "{kind}: {made:?}");
            assert!(stage.user.is_ready(&id), "{kind}: {:?}", stage.user.ready(&id));
            stage.user.delete(&id);
            stage.gone(std::slice::from_ref(&id)).await;
            assert_eq!(held(&stage), before, "{kind}: {:#?}", stage.user.events(&id));
        });
    }
}

/// The create took effect and nobody heard of it, and then the user gave the object another name: it is found by what was announced.
#[test]
fn what_was_made_under_another_name_is_found_and_renamed() {
    for (manifest, change) in [
        ("KVNamespace", json!({ "title": "renamed" })),
        ("WorkerRoute", json!({ "pattern": "example.com/renamed/*" })),
    ]
    .map(|(kind, change)| {
        let manifest = manifests().into_iter().find(|it| it["kind"] == kind);
        (manifest.unwrap(), change)
    }) {
        play_in_zone(Plan::Enterprise, |stage| async move {
            let kind = manifest["kind"].as_str().unwrap().to_owned();
            let before = held(&stage);
            let lost = Fault::DropAfter {
                dropped: Some(Dropped::Reset),
            };
            stage.fault_times(FaultMatch::path("POST", "."), lost, 1);
            let id = stage.create(manifest);
            let made = |stage: &Stage| held(stage).len() > before.len();
            stage.until("made", made).await;
            let looks = stage.fault(FaultMatch::path("GET", "namespaces|routes"), status(503, 1000));
            stage.user.edit_spec(&id, &change);
            stage.rest(MINUTE / 6).await;
            stage.cloudflare.remove_fault(looks);
            stage.ready(std::slice::from_ref(&id)).await;
            let made: Vec<String> = held(&stage).difference(&before).cloned().collect();
            assert_eq!(made.len(), 1, "{kind}: {:#?}", stage.user.events(&id));
            assert!(
                stage.told(&id, "Recovered", &[]),
                "{kind}: {:#?}",
                stage.user.events(&id)
            );
            stage.user.delete(&id);
            stage.gone(std::slice::from_ref(&id)).await;
            assert_eq!(held(&stage), before, "{kind}");
        });
    }
}

/// Of what has no creation time nobody can say after five minutes who made it. It stays, and the Event names it.
#[test]
fn what_may_be_somebody_elses_by_now_stays_and_is_named() {
    play_in_zone(Plan::Pro, |stage| async move {
        let lost = Fault::DropAfter {
            dropped: Some(Dropped::Reset),
        };
        stage.fault_times(FaultMatch::path("POST", "."), lost, 1);
        let manifest = manifests().into_iter().find(|it| it["kind"] == "KVNamespace");
        let before = held(&stage);
        let id = stage.create(manifest.unwrap());
        stage.until("made", |stage| held(stage).len() > before.len()).await;
        let outage = stage.fault(FaultMatch::any(), status(503, 1000));
        stage.user.delete(&id);
        stage.rest(7 * MINUTE).await;
        stage.cloudflare.remove_fault(outage);
        stage.gone(std::slice::from_ref(&id)).await;
        let made: Vec<String> = held(&stage).difference(&before).cloned().collect();
        assert_eq!(made.len(), 1, "it is left alone");
        assert!(stage.told(&id, "Kept", &[&made[0]]), "{:#?}", stage.user.events(&id));
    });
}
