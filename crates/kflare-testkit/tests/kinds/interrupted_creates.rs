//! Creates whose outcome was never recorded, of every kind: what they made goes with the resource.

use std::collections::BTreeSet;

use kflare_api::names;
use kflare_sim::Plan;
use kflare_testkit::{
    memory_api::{Fault, FaultRule, ObjectId, RequestInfo},
    simulation::NAMESPACE,
    story::Holdings,
};
use serde_json::{Value, json};

use crate::{
    rules_stage::samples,
    stage::{MINUTE, Stage, ZONE, play_in_zone},
    worker_stage::CODE,
};

fn manifest(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": "x", "namespace": NAMESPACE },
        "spec": spec,
    })
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
            let refused = Fault::status(500, "InternalError", "simulated");
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
