//! What tenants and strangers put into the cluster, and waiting until kflare has dealt with it.

use std::ops::Range;
use std::time::Duration;

use base64::Engine as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kflare_api::{DNSRecord, Zone, names};
use kflare_sim::{Plan, ZoneSeed};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::ProcessError;
use super::controller::Controller;
use super::site::{STRANGERS, Site, TENANT, create};
use crate::simulation::ACCOUNT_ID;

/// Requests under way at a time.
pub(super) const AT_A_TIME: usize = 16;
const READY_WITHIN: Duration = Duration::from_mins(4);
const POLL: Duration = Duration::from_millis(200);

/// 105 Secrets of 1,000 KiB: a little over 100 MiB. A Secret may hold 1 MiB.
const SECRETS: usize = 105;
const SECRET_SIZE: usize = 1_000 * 1024;

/// The zone that the records are in.
const DOMAIN: &str = "example.com";

/// The zone as it is in the account.
pub(super) fn zone_seed() -> ZoneSeed {
    ZoneSeed {
        // What an enterprise zone may hold is agreed on by contract.
        record_quota: Some(20_000),
        ..ZoneSeed::named(DOMAIN, ACCOUNT_ID).on(Plan::Enterprise)
    }
}

/// Applies the zone.
pub(super) async fn apply_zone(site: &Site) -> Result<(), ProcessError> {
    let zone = json!({
        "apiVersion": names::API_VERSION, "kind": "Zone",
        "metadata": { "name": "example", "annotations": { names::ADOPTION_POLICY: "adopt" } },
        "spec": { "name": DOMAIN, "accountRef": { "name": "main" }, "type": "full" },
    });
    create(&Api::<Zone>::namespaced(site.client.clone(), TENANT), zone).await
}

/// The records' API, untyped: what kflare has read may be written differently.
pub(super) fn records(site: &Site) -> Api<DynamicObject> {
    let resource = kube::api::ApiResource::erase::<DNSRecord>(&());
    Api::namespaced_with(site.client.clone(), TENANT, &resource)
}

/// Creates records by number.
pub(super) async fn apply_records(site: &Site, numbers: Range<usize>) -> Result<(), ProcessError> {
    let api = records(site);
    let manifests = numbers.map(|n| {
        json!({
            "apiVersion": names::API_VERSION, "kind": "DNSRecord",
            "metadata": { "name": format!("r{n:04}"), "namespace": TENANT },
            "spec": { "zoneRef": { "name": "example" }, "name": format!("r{n:04}"), "type": "A", "content": "192.0.2.1" },
        })
    });
    stream::iter(manifests)
        .map(|manifest| create(&api, manifest))
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await
}

/// Waits until so many records are Ready for their specs.
pub(super) async fn all_ready(site: &Site, controller: &Controller, count: usize) -> Result<(), ProcessError> {
    let (api, deadline) = (records(site), Instant::now() + READY_WITHIN);
    loop {
        let there = site.cloudflare.records(DOMAIN).map_or(0, |all| all.len());
        let mut ready = 0;
        if there >= count {
            let listed = api
                .list(&ListParams::default())
                .await
                .map_err(ProcessError::cluster("listing the records"))?;
            ready = listed.items.iter().filter(|object| is_ready(object)).count();
        }
        if ready >= count {
            return Ok(());
        }
        if Instant::now() > deadline {
            let what = format!("{count} records; {there} were made and {ready} are Ready");
            return Err(controller.not_in_time(what, READY_WITHIN));
        }
        sleep(POLL).await;
    }
}

/// Whether a record is Ready for its spec as it stands.
pub(super) fn is_ready(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| {
        it["type"] == "Ready"
            && it["status"] == "True"
            && it["observedGeneration"].as_i64() == object.metadata.generation
    })
}

/// Creates other people's Secrets.
pub(super) async fn apply_secrets(site: &Site) -> Result<(), ProcessError> {
    let api: Api<Secret> = Api::namespaced(site.client.clone(), STRANGERS);
    let data = base64::engine::general_purpose::STANDARD.encode(vec![b'x'; SECRET_SIZE]);
    let manifests = (0..SECRETS).map(|n| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": format!("big-{n}"), "namespace": STRANGERS },
            "data": { "blob": data },
        })
    });
    stream::iter(manifests)
        .map(|manifest| create(&api, manifest))
        .buffer_unordered(4)
        .try_collect()
        .await
}

/// Deletes them in one go.
pub(super) async fn delete_secrets(site: &Site) -> Result<(), ProcessError> {
    let api: Api<Secret> = Api::namespaced(site.client.clone(), STRANGERS);
    let deleted = api
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    deleted
        .map(drop)
        .map_err(ProcessError::cluster("deleting the big Secrets"))
}
