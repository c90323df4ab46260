//! `/zones/{zone_id}/managed_headers`: the managed transforms of a zone.

use std::collections::BTreeSet;

use axum::extract::{Path, State};
use axum::routing::get as get_route;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::zones;
use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::plan::Plan;
use crate::route::{Answers, Call, Handler, Route};
use crate::simulator::Simulator;
use crate::state::{Area, Permission, World, Zone};

const READ: Access = Access::Zone(Permission::read(Area::ManagedHeaders));
const WRITE: Access = Access::Zone(Permission::write(Area::ManagedHeaders));

const TRANSFORMS: &str = "/zones/{zone_id}/managed_headers";

pub(crate) static ROUTES: [Route; 3] = [
    route("GET", READ, get),
    route("PATCH", WRITE, patch),
    route("DELETE", WRITE, delete),
];

const fn route(method: &'static str, access: Access, handler: Handler) -> Route {
    Route {
        method,
        template: TRANSFORMS,
        access,
        answers: Answers::Other,
        policy: Policy::DEFAULT,
        handler,
    }
}

/// The member of the answer that holds the transforms of requests, and of responses.
const REQUEST: &str = "managed_request_headers";
const RESPONSE: &str = "managed_response_headers";

struct Transform {
    id: &'static str,
    list: &'static str,
    /// The cheapest plan that has it. That Free zones have six is reported; which ones is unproven.
    plan: Plan,
    /// The transforms that it cannot be on together with.
    conflicts_with: &'static [&'static str],
}

const fn transform(id: &'static str, list: &'static str) -> Transform {
    Transform {
        id,
        list,
        plan: Plan::Free,
        conflicts_with: &[],
    }
}

/// The transforms, in the order in which they are listed. Ids are known from the tests of Cloudflare's Terraform provider;
/// those about client certificates, bots and leaked credentials, and `remove_x-powered-by_header`, are unproven.
static CATALOGUE: [Transform; 8] = [
    transform("add_client_certificate_headers", REQUEST),
    transform("add_visitor_location_headers", REQUEST),
    Transform {
        conflicts_with: &["add_true_client_ip_headers"],
        ..transform("remove_visitor_ip_headers", REQUEST)
    },
    transform("add_waf_credential_check_status_header", REQUEST),
    Transform {
        plan: Plan::Enterprise,
        conflicts_with: &["remove_visitor_ip_headers"],
        ..transform("add_true_client_ip_headers", REQUEST)
    },
    Transform {
        plan: Plan::Enterprise,
        ..transform("add_bot_protection_headers", REQUEST)
    },
    transform("remove_x-powered-by_header", RESPONSE),
    transform("add_security_headers", RESPONSE),
];

/// The transforms that a zone has.
fn available(zone: &Zone) -> impl Iterator<Item = &'static Transform> {
    let plan = zone.plan;
    CATALOGUE.iter().filter(move |transform| plan >= transform.plan)
}

/// The managed transforms of a zone as the API shows them.
pub(crate) fn render(zone: &Zone, world: &World) -> Value {
    let on = world.managed_transforms(&zone.id);
    let mut lists = Map::from_iter([REQUEST, RESPONSE].map(|list| (list.to_owned(), json!([]))));
    for transform in available(zone) {
        let conflicts: Vec<&str> = transform
            .conflicts_with
            .iter()
            .copied()
            .filter(|id| on.contains(*id))
            .collect();
        let mut shown = json!({
            "id": transform.id,
            "enabled": on.contains(transform.id),
            "has_conflict": !conflicts.is_empty(),
        });
        if !conflicts.is_empty() {
            shown["conflicts_with"] = json!(conflicts);
        }
        if let Some(Value::Array(list)) = lists.get_mut(transform.list) {
            list.push(shown);
        }
    }
    Value::Object(lists)
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    Ok(Reply::object(render(&zone, call.world)))
}

/// Merges: what is not named stays as it is. All of it or nothing (unproven).
fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let zone = call.zone()?;
    let on = merged(&zone, call.world.managed_transforms(&zone.id), &body)?;
    call.world.set_managed_transforms(&zone.id, on, call.now);
    Ok(Reply::object(render(&zone, call.world)))
}

/// The transforms that are on after a patch.
fn merged(zone: &Zone, mut on: BTreeSet<String>, body: &Map<String, Value>) -> Result<BTreeSet<String>, Refusal> {
    for list in [REQUEST, RESPONSE] {
        let entries = match body.get(list) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(malformed(list)),
        };
        for entry in entries {
            let id = entry.get("id").and_then(Value::as_str);
            let enabled = entry.get("enabled").and_then(Value::as_bool);
            let (Some(id), Some(enabled)) = (id, enabled) else {
                return Err(malformed(list));
            };
            let known = available(zone).any(|transform| transform.id == id && transform.list == list);
            if !known {
                // The status is known from Terraform's tests, the code is unproven.
                return Err(Refusal::new(404, 10_001, format!("managed transform {id} not found")));
            }
            if enabled {
                on.insert(id.to_owned());
            } else {
                on.remove(id);
            }
        }
    }
    let conflict = CATALOGUE.iter().find_map(|transform| {
        let other = transform.conflicts_with.iter().find(|other| on.contains(**other))?;
        on.contains(transform.id).then_some((transform.id, *other))
    });
    match conflict {
        None => Ok(on),
        // That it is refused is known from Terraform's tests; status and code are unproven.
        Some((one, other)) => Err(Refusal::new(
            400,
            10_004,
            format!("managed transform {one} conflicts with {other}"),
        )),
    }
}

fn malformed(list: &str) -> Refusal {
    Refusal::new(400, 10_004, format!("{list}: a list of objects with id and enabled"))
}

/// Turns all of them off.
fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    call.world.set_managed_transforms(&zone.id, BTreeSet::new(), call.now);
    Ok(Reply::no_content())
}

impl Simulator {
    /// The managed transforms of a zone (by id or name), as the API shows them. `None`: there is no such zone.
    pub fn managed_transforms(&self, zone: &str) -> Option<Value> {
        self.with(|core| {
            let zone = core.world.find_zone(zone)?;
            Some(render(zone, &core.world))
        })
    }

    /// Patches the managed transforms of a zone (by id or name) as somebody else would.
    pub fn foreign_patch_managed_transforms(&self, zone: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        self.with(|core| {
            let now = core.config.clock.now();
            let zone = Zone::clone(core.world.find_zone(zone).ok_or_else(zones::unknown)?);
            let on = merged(&zone, core.world.managed_transforms(&zone.id), body)?;
            core.world.set_managed_transforms(&zone.id, on, now);
            Ok(())
        })
    }
}

/// Checks ids of a seed: those that a zone has, without conflicts.
pub(crate) fn seeded(zone: &Zone, ids: &[String]) -> Result<BTreeSet<String>, Refusal> {
    let entries = |list: &str| -> Value {
        let of_list = |id: &&String| CATALOGUE.iter().all(|it| it.id != **id || it.list == list);
        ids.iter()
            .filter(of_list)
            .map(|id| json!({ "id": id, "enabled": true }))
            .collect()
    };
    let body = Map::from_iter([REQUEST, RESPONSE].map(|list| (list.to_owned(), entries(list))));
    merged(zone, BTreeSet::new(), &body)
}

/// The part of the control API that is about managed transforms.
pub(crate) fn control() -> Router<Simulator> {
    Router::new().route("/zones/{zone}/managed_headers", get_route(show).patch(change))
}

async fn show(State(sim): State<Simulator>, Path(zone): Path<String>) -> Result<Json<Value>, Refusal> {
    sim.managed_transforms(&zone).map(Json).ok_or_else(zones::unknown)
}

async fn change(
    State(sim): State<Simulator>,
    Path(zone): Path<String>,
    Json(body): Json<Map<String, Value>>,
) -> Result<StatusCode, Refusal> {
    sim.foreign_patch_managed_transforms(&zone, &body)
        .map(|()| StatusCode::NO_CONTENT)
}
