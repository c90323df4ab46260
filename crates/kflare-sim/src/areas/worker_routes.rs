//! `/zones/{zone_id}/workers/routes`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::route::{Answers, Call, Handler, Route};
use crate::state::{Area, Permission, WorkerRoute, World, Zone};

const READ: Access = Access::Zone(Permission::read(Area::WorkersRoutes));
const WRITE: Access = Access::Zone(Permission::write(Area::WorkersRoutes));

pub(crate) static ROUTES: [Route; 5] = [
    route("GET", "/zones/{zone_id}/workers/routes", READ, Answers::List, list),
    route("POST", "/zones/{zone_id}/workers/routes", WRITE, Answers::Other, create),
    route("GET", ROUTE, READ, Answers::Other, get),
    route("PUT", ROUTE, WRITE, Answers::Other, put),
    route("DELETE", ROUTE, WRITE, Answers::Other, delete),
];

const ROUTE: &str = "/zones/{zone_id}/workers/routes/{route_id}";

const fn route(
    method: &'static str,
    template: &'static str,
    access: Access,
    answers: Answers,
    handler: Handler,
) -> Route {
    Route {
        method,
        template,
        access,
        answers,
        policy: Policy::DEFAULT,
        handler,
    }
}

#[allow(clippy::unnecessary_wraps)] // a handler
/// All of them, on one page without `result_info`.
fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let routes = call.world.worker_routes(call.param("zone_id"), call.view);
    Ok(Reply::object(routes.iter().map(|route| shown(route)).collect()))
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    let (pattern, script) = wanted(call, &zone, None)?;
    let id = call.world.new_id();
    Ok(store(call, &zone, WorkerRoute { id, pattern, script }))
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::object(shown(&*named(call)?)))
}

fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    let id = named(call)?.id.clone();
    let (pattern, script) = wanted(call, &zone, Some(&id))?;
    Ok(store(call, &zone, WorkerRoute { id, pattern, script }))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    let route = named(call)?;
    call.world.remove_worker_route(&zone.id, &route.id, call.now);
    Ok(Reply::object(json!({ "id": route.id })))
}

fn store(call: &mut Call<'_>, zone: &Zone, route: WorkerRoute) -> Reply {
    let answer = shown(&route);
    call.world.put_worker_route(&zone.id, route, call.now);
    Reply::object(answer)
}

fn named(call: &Call<'_>) -> Result<Arc<WorkerRoute>, Refusal> {
    call.world
        .worker_routes(call.param("zone_id"), None)
        .into_iter()
        .find(|route| route.id == call.param("route_id"))
        .ok_or_else(|| Refusal::new(404, 10_009, "Route not found."))
}

/// Pattern and script of a body, checked. `own` is the route that is changed.
fn wanted(call: &Call<'_>, zone: &Zone, own: Option<&str>) -> Result<(String, Option<String>), Refusal> {
    let body = call.json()?;
    let pattern = body.get("pattern").and_then(Value::as_str).unwrap_or_default();
    let script = body
        .get("script")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty());
    check(call.world, zone, pattern, script, own)?;
    Ok((pattern.to_owned(), script.map(str::to_owned)))
}

/// Checks a route before it is stored. `own` is the route that is changed.
pub(crate) fn check(
    world: &World,
    zone: &Zone,
    pattern: &str,
    script: Option<&str>,
    own: Option<&str>,
) -> Result<(), Refusal> {
    if !fits(pattern, &zone.name) {
        let text = format!("Invalid route pattern: it must contain the zone name {}.", zone.name);
        return Err(Refusal::new(400, 10_022, text));
    }
    if let Some(name) = script
        && world.script(&zone.account_id, name).is_none()
    {
        return Err(Refusal::new(400, 10_019, format!("The Worker {name} does not exist.")));
    }
    let routes = world.worker_routes(&zone.id, None);
    let is_taken = |route: &Arc<WorkerRoute>| route.pattern == pattern && Some(route.id.as_str()) != own;
    if let Some(other) = routes.iter().find(|route| is_taken(route)) {
        let text = format!("A route with the same pattern already exists ({}).", other.id);
        return Err(Refusal::new(409, 10_020, text));
    }
    Ok(())
}

/// `[scheme://]host[/path]`. The host is in the zone and may begin with `*`; the path may end with it.
fn fits(pattern: &str, zone: &str) -> bool {
    let rest = pattern
        .strip_prefix("https://")
        .or_else(|| pattern.strip_prefix("http://"))
        .unwrap_or(pattern);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.strip_prefix('*').unwrap_or(host).to_ascii_lowercase();
    let in_zone = host
        .strip_suffix(zone)
        .is_some_and(|below| below.is_empty() || below.ends_with('.'));
    let stars_at_the_end = path.find('*').is_none_or(|at| at + 1 == path.len());
    in_zone && !host.contains('*') && stars_at_the_end && !path.contains(['?', '#'])
}

fn shown(route: &WorkerRoute) -> Value {
    let mut shown = Map::new();
    shown.insert("id".into(), json!(route.id));
    shown.insert("pattern".into(), json!(route.pattern));
    if let Some(script) = &route.script {
        shown.insert("script".into(), json!(script));
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_have_to_be_in_the_zone() {
        for good in [
            "example.com/*",
            "*.example.com/*",
            "*example.com/*",
            "https://api.example.com/v1/*",
            "API.example.com",
            "example.com/a*",
        ] {
            assert!(fits(good, "example.com"), "{good}");
        }
        for bad in [
            "",
            "*",
            "/*",
            "example.org/*",
            "notexample.com/*",
            "a*.example.com/*",
            "example.com/*/x",
            "example.com/a?b",
            "ftp://example.com/*",
        ] {
            assert!(!fits(bad, "example.com"), "{bad}");
        }
    }
}
