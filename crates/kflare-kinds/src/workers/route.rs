//! `WorkerRoute`: which URLs of a zone a Worker answers. Cloudflare has one route of a pattern in a zone, and deletes the routes of
//! a Worker with it.

use async_trait::async_trait;
use kflare_api::{names, worker_route::WorkerRouteSpec};
use kflare_cloudflare::{
    Client, Error,
    endpoints::worker_routes::{self, Route, WantedRoute},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored, errors::Class, kind::ClaimNames,
};
use serde_json::{Map, Value, json};

use super::present;
use crate::reasons;

/// There is no such route.
const MISSING: i64 = 10_009;
/// Another route has the pattern.
const TAKEN: i64 = 10_020;
/// The Worker does not exist.
const NO_SCRIPT: [i64; 2] = [10_019, 10_007];
/// The pattern is not one of the zone.
const INVALID_PATTERN: i64 = 10_022;

/// The adapter.
pub struct RouteAdapter {
    descriptor: KindDescriptor,
}

impl RouteAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "routeID".into(),
                    label: names::ROUTE_ID.into(),
                }),
                ..KindDescriptor::new("WorkerRoute", "workerroutes", "WorkerRoute", "worker_routes")
            },
        }
    }
}

fn key(pattern: &str) -> NaturalKey {
    NaturalKey {
        group: pattern.to_owned(),
        member: String::new(),
    }
}

fn remote(zone_id: &str, route: Route) -> Remote {
    // Cloudflare has an empty name for none in places.
    let script = route.script.filter(|name| !name.is_empty());
    let body = json!({ "pattern": route.pattern, "script": script.clone().unwrap_or_default() });
    let metadata = json!({ "routeID": route.id, "zoneID": zone_id, "script": script });
    Remote {
        key: key(&route.pattern),
        id: route.id,
        body: present(body),
        metadata: present(metadata),
        ..Remote::default()
    }
}

fn wanted(body: &Map<String, Value>) -> WantedRoute {
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    WantedRoute {
        pattern: text("pattern"),
        script: Some(text("script")).filter(|name| !name.is_empty()),
    }
}

#[async_trait]
impl Adapter for RouteAdapter {
    type Spec = WorkerRouteSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &WorkerRouteSpec) -> Vec<Reference> {
        let zone = Reference::new("zoneRef", "Zone", &spec.zone_ref.name);
        let worker = spec.worker_script_ref.as_ref();
        let worker = worker.map(|worker| Reference::new("workerScriptRef", "WorkerScript", &worker.name));
        std::iter::once(zone).chain(worker).collect()
    }

    fn scope(&self, _spec: &WorkerRouteSpec, parents: &Parents) -> String {
        parents.get("zoneRef").map(|zone| zone.id.clone()).unwrap_or_default()
    }

    fn desired(&self, spec: &WorkerRouteSpec, parents: &Parents) -> Result<Desired, SpecError> {
        let worker = parents.get("workerScriptRef").map(|worker| worker.spec.value());
        let script = worker.as_ref().and_then(|spec| spec.get("name")?.as_str());
        Ok(Desired {
            key: key(&spec.pattern),
            exclusive: true,
            // No Worker is an empty name: a route that leads to one by other hands differs from that.
            body: present(json!({ "pattern": spec.pattern, "script": script.unwrap_or_default() })),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, zone_id: &str) -> Result<Listing, Error> {
        let routes = worker_routes::list(client, zone_id).await?;
        Ok(routes.into_iter().map(|route| remote(zone_id, route)).collect())
    }

    async fn find(&self, client: &Client, zone_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let routes = worker_routes::list(client, zone_id).await?;
        let same = routes.into_iter().filter(|route| route.pattern == key.group);
        Ok(same.map(|route| remote(zone_id, route)).collect())
    }

    async fn get(&self, client: &Client, zone_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        match worker_routes::get(client, zone_id, id).await {
            Ok(route) => Ok(Some(remote(zone_id, route))),
            Err(error) if error.has_code(MISSING) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let route = worker_routes::create(client, site.scope, &wanted(&desired.body)).await?;
        Ok(remote(site.scope, route).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        _changes: &[Change],
    ) -> Result<Stored, Error> {
        let route = worker_routes::update(client, site.scope, id, &wanted(&desired.body)).await?;
        Ok(remote(site.scope, route).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        match worker_routes::delete(client, site.scope, id).await {
            Err(error) if !error.has_code(MISSING) => Err(error),
            _ => Ok(Deleted::default()),
        }
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        if error.has_code(TAKEN) {
            return Some(Class::InTheWay(reasons::PATTERN_CONFLICT));
        }
        if NO_SCRIPT.iter().any(|code| error.has_code(*code)) {
            return Some(Class::Blocked(Reason::parent_not_found("WorkerScript")));
        }
        error
            .has_code(INVALID_PATTERN)
            .then_some(Class::Invalid(Reason::INVALID_SPEC))
    }

    async fn obstacle(&self, client: &Client, zone_id: &str, desired: &Desired) -> Option<String> {
        let routes = worker_routes::list(client, zone_id).await.ok()?;
        let other = routes.into_iter().find(|route| route.pattern == desired.key.group)?;
        let leads = other
            .script
            .map_or("no Worker".to_owned(), |script| format!("the Worker {script}"));
        Some(format!("route {} to {leads}", other.id))
    }
}
