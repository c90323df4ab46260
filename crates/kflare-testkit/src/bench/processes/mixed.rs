//! Ten thousand resources over all kinds.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::controller::Controller;
use super::load::{AT_A_TIME, is_ready};
use super::site::{Site, TENANT, create};
use super::{ProcessError, SETTLE};
use crate::bench::figure::{self, Figure};
use crate::bench::mixed::{Team, zone_seeds};

const RESOURCES: usize = 10_000;
/// About 800 calls, of which 360 go at once and then two a second.
const READY_WITHIN: Duration = Duration::from_mins(12);
const POLL: Duration = Duration::from_secs(2);

/// Takes the figures.
pub(super) async fn measure(program: &Path, tell: &mut dyn FnMut(Figure)) -> Result<(), ProcessError> {
    let site = Site::prepare(zone_seeds()).await?;
    let controller = Controller::start(&site, program, "10m").await?;
    site.connect().await?;
    let team = Team {
        namespace: TENANT,
        account: "main",
    };
    create(&Api::<Secret>::namespaced(site.client.clone(), TENANT), team.secret()).await?;
    let apis = apis(&site);
    let manifests = team.manifests(RESOURCES);
    let creating = manifests.into_iter().filter_map(|manifest| {
        let api = apis.get(manifest["kind"].as_str()?)?;
        Some(create(api, manifest))
    });
    let created: Vec<()> = stream::iter(creating).buffer_unordered(AT_A_TIME).try_collect().await?;
    all_ready(&apis, &controller, created.len()).await?;
    sleep(SETTLE).await;
    tell(figure::RSS_MIXED.measured(controller.resident_mib()?));
    controller.stop().await
}

/// The API of each kind but the account, by the kind's name.
fn apis(site: &Site) -> BTreeMap<String, Api<DynamicObject>> {
    let namespaced = kflare_api::crds()
        .into_iter()
        .filter(|crd| crd.spec.scope == "Namespaced");
    namespaced
        .map(|crd| {
            let api = Api::namespaced_with(site.client.clone(), TENANT, &resource(&crd));
            (crd.spec.names.kind, api)
        })
        .collect()
}

fn resource(crd: &CustomResourceDefinition) -> ApiResource {
    let version = crd.spec.versions.first().map_or("", |version| &version.name);
    let kind = GroupVersionKind::gvk(&crd.spec.group, version, &crd.spec.names.kind);
    ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural)
}

/// Waits until so many resources are Ready for their specs.
async fn all_ready(
    apis: &BTreeMap<String, Api<DynamicObject>>,
    controller: &Controller,
    count: usize,
) -> Result<(), ProcessError> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        let mut ready = 0;
        let mut waiting = String::new();
        for (kind, api) in apis {
            let listed = api
                .list(&ListParams::default())
                .await
                .map_err(ProcessError::cluster("listing resources"))?;
            ready += listed.items.iter().filter(|object| is_ready(object)).count();
            if let Some(object) = listed.items.iter().find(|object| !is_ready(object)) {
                let conditions = object.data.pointer("/status/conditions").map(Value::to_string);
                waiting = format!("{kind} {:?}: {conditions:?}", object.metadata.name);
            }
        }
        if ready >= count {
            return Ok(());
        }
        if Instant::now() > deadline {
            let what = format!("{count} resources; {ready} are Ready, and not {waiting}");
            return Err(controller.not_in_time(what, READY_WITHIN));
        }
        sleep(POLL).await;
    }
}
