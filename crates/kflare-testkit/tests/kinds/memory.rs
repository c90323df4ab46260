//! What is kept in memory does not grow with what has come and gone.

use std::collections::BTreeMap;

use kflare_testkit::{memory_api::ObjectId, simulation::ControllerOptions};
use prometheus::Registry;
use serde_json::json;

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, in_namespace, play, record, zone, zone_id};

/// How much the controller keeps, by what keeps it.
pub fn entries(registry: &Registry) -> BTreeMap<String, i64> {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == "kflare_entries");
    let metrics = family
        .map(prometheus::proto::MetricFamily::get_metric)
        .unwrap_or_default();
    #[allow(clippy::cast_possible_truncation, reason = "whole numbers of entries")]
    let entry = |metric: &prometheus::proto::Metric| {
        (
            metric.get_label()[0].value().to_owned(),
            metric.get_gauge().get_value() as i64,
        )
    };
    metrics.iter().map(entry).collect()
}

/// Zones, records, Secrets and namespaces come; some of the records fail, some are fought over, some are never made.
async fn come(stage: &Stage, round: usize) -> Vec<ObjectId> {
    let namespace = format!("tenant-{round}");
    let named = |object: serde_json::Value| in_namespace(object, &namespace);
    let mut ids = vec![
        stage.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } })),
        stage.create(named(
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "theirs" }, "data": {} }),
        )),
        stage.create(named(zone(ZONE, json!({ "name": format!("{namespace}.example") })))),
    ];
    let mut made = Vec::new();
    for n in 0..20 {
        let spec = json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
        made.push(stage.create(named(record(&format!("r{n}"), spec))));
    }
    let bad = [
        json!({ "name": "a..b", "type": "A", "content": "192.0.2.1" }),
        json!({ "name": "ttl", "type": "A", "content": "192.0.2.1", "ttl": 30 }),
        json!({ "name": "lost", "type": "A", "content": "192.0.2.1", "zoneRef": { "name": "nowhere" } }),
    ];
    for (n, spec) in bad.into_iter().enumerate() {
        ids.push(stage.create(named(record(&format!("bad{n}"), spec))));
    }
    ids.push(stage.create(named(adopting(
        record(
            "nothing",
            json!({ "name": "none", "type": "A", "content": "192.0.2.9" }),
        ),
        "adopt",
    ))));
    stage.ready(&made).await;
    let domain = format!("{namespace}.example");
    let fought = stage.recorded(&made[0]).unwrap();
    for _ in 0..5 {
        let ttl = serde_json::Map::from_iter([("ttl".to_owned(), json!(300))]);
        stage.cloudflare.foreign_patch(&domain, &fought, &ttl).unwrap();
        stage.user.annotate(
            &made[0],
            kflare_api::names::RECONCILE_AT,
            Some(&stage.seconds().to_string()),
        );
        stage.rest(MINUTE).await;
    }
    ids.extend(made);
    ids
}

async fn go(stage: &Stage, ids: &[ObjectId]) {
    for id in ids.iter().rev() {
        stage.user.delete(id);
    }
    stage.gone(ids).await;
}

/// Waits until as much is kept as `before`. Figures are brought up to date every few seconds, and a check that is under way
/// keeps something for a moment.
pub async fn as_before(stage: &Stage, registry: &Registry, before: &BTreeMap<String, i64>) {
    stage.rest(10 * MINUTE).await;
    for _ in 0..40 {
        if entries(registry) == *before {
            return;
        }
        stage.rest(MINUTE / 4).await;
    }
    assert_eq!(entries(registry), *before);
}

// Field case 142.
#[test]
fn nothing_is_kept_of_what_has_come_and_gone() {
    let registry = Registry::new();
    let options = ControllerOptions {
        registry: Some(registry.clone()),
        ..ControllerOptions::default()
    };
    play(61, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        stage.start_with("controller", options);
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(&[zone_id(), id.clone()]).await;
        stage.rest(2 * HOUR).await;
        let before = entries(&registry);
        assert_eq!(before["resources"], 3, "{before:?}");
        for round in 0..8 {
            let ids = come(&stage, round).await;
            stage.rest(MINUTE).await;
            let during = entries(&registry);
            assert!(during["resources"] > 20 && during["contests"] > 0, "{during:?}");
            go(&stage, &ids).await;
        }
        as_before(&stage, &registry, &before).await;
        assert_eq!(stage.cloudflare.zones().len(), 1);
    });
}
