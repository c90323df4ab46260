//! `/zones`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::dns::name;
use crate::auth::{Access, unauthorized};
use crate::budget::Policy;
use crate::config::{Activation, CheckOutcome};
use crate::envelope::{Refusal, Reply};
use crate::ids::is_hex32;
use crate::paging::{Page, PageSizes, Query};
use crate::plan::Plan;
use crate::route::{Answers, Call, Route};
use crate::state::{AccountType, Area, PendingPlan, Permission, World, Zone, ZoneStatus, ZoneType};

const READ: Permission = Permission::read(Area::Zone);
const WRITE: Permission = Permission::write(Area::Zone);

pub(crate) static ROUTES: [Route; 6] = [
    Route {
        method: "GET",
        template: "/zones",
        access: Access::Anyone,
        answers: Answers::List,
        policy: Policy::LIST_ZONES,
        handler: list,
    },
    route("POST", "/zones", Access::Anyone, create),
    route("GET", "/zones/{zone_id}", Access::AnyOnZone, get),
    route("PATCH", "/zones/{zone_id}", Access::Zone(WRITE), patch),
    route("DELETE", "/zones/{zone_id}", Access::Zone(WRITE), delete),
    route("PUT", "/zones/{zone_id}/activation_check", Access::Zone(WRITE), check),
];

const fn route(method: &'static str, template: &'static str, access: Access, handler: crate::route::Handler) -> Route {
    Route {
        method,
        template,
        access,
        answers: Answers::Other,
        policy: Policy::DEFAULT,
        handler,
    }
}

const SIZES: PageSizes = PageSizes {
    default: 20,
    min: 5,
    max: 50,
};

/// A zone id that is well-formed and names nothing. The status is unproven.
pub(crate) fn unknown() -> Refusal {
    Refusal::new(400, 9109, "Invalid zone identifier")
}

fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    if !call.caller.may_somewhere(READ) {
        return Err(unauthorized());
    }
    // A token for single zones can look them up by name, but not list (reported by users).
    if call.query.get("name").is_none() && !call.caller.may_beyond_single_zones(READ) {
        return Err(unauthorized());
    }
    let page = Page::from_query(call.query, SIZES)?;
    let mut zones: Vec<Arc<Zone>> = call.world.zones(call.view);
    zones.retain(|zone| call.caller.may_on_zone(READ, zone) && fits(zone, call.query, call.world));
    zones.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    match call.query.get("order") {
        Some("status") => zones.sort_by_key(|zone| zone.status.name()),
        Some("account.id") => zones.sort_by(|a, b| a.account_id.cmp(&b.account_id)),
        _ => {}
    }
    if call.query.get("direction") == Some("desc") {
        zones.reverse();
    }
    let items = page.cut(&zones).iter().map(|zone| render(zone, call.world)).collect();
    Ok(Reply::page(&page, zones.len(), items))
}

fn fits(zone: &Zone, query: &Query, world: &World) -> bool {
    let mut results = Vec::new();
    results.extend(query.get("name").map(|text| fits_name(&zone.name, text)));
    results.extend(query.get("account.id").map(|id| zone.account_id == id));
    results.extend(query.get("account.name").map(|name| {
        let account = world.held().accounts.get(&zone.account_id);
        account.is_some_and(|account| fits_name(&account.name.to_lowercase(), name))
    }));
    results.extend(query.get("status").map(|status| zone.status.name() == status));
    if query.get("type").is_some() {
        results.push(query.all("type").any(|kind| zone.kind.name() == kind));
    }
    match query.get("match") {
        Some("any") if !results.is_empty() => results.contains(&true),
        _ => !results.contains(&false),
    }
}

/// A name, or `operator:name`.
fn fits_name(name: &str, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    match filter.split_once(':') {
        Some(("equal", text)) => name == text,
        Some(("not_equal", text)) => name != text,
        Some(("starts_with", text)) => name.starts_with(text),
        Some(("ends_with", text)) => name.ends_with(text),
        Some(("contains", text)) => name.contains(text),
        _ => name == filter,
    }
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let sent = body.get("name").and_then(Value::as_str).unwrap_or_default();
    let name = name::zone(sent).ok_or_else(|| Refusal::new(400, 1002, "Invalid domain name"))?;
    let account_id = body
        .get("account")
        .and_then(|account| account.get("id"))
        .and_then(Value::as_str);
    let account_id = account_id.filter(|id| is_hex32(id)).map(str::to_owned);
    let account_id = account_id.ok_or_else(|| Refusal::new(400, 1003, "Invalid or missing account id"))?;
    if !call.caller.may_on_account(WRITE, &account_id) {
        return Err(unauthorized());
    }
    let account = call.world.held().accounts.get(&account_id).ok_or_else(unauthorized)?;
    let is_enterprise = account.kind == AccountType::Enterprise;
    let kind = match body.get("type") {
        None | Some(Value::Null) => ZoneType::Full,
        Some(kind) => parse_type(kind)?,
    };
    if kind != ZoneType::Full && !is_enterprise {
        return Err(type_not_available());
    }
    if call.world.find_zone(&name).is_some() {
        return Err(Refusal::new(400, 1061, format!("{name} already exists")));
    }
    let parent_exists = name
        .match_indices('.')
        .any(|(at, _)| call.world.find_zone(&name[at + 1..]).is_some());
    if parent_exists && !is_enterprise {
        return Err(Refusal::new(
            400,
            1116,
            format!("{name} is a subdomain; subdomain zones need an Enterprise plan"),
        ));
    }
    let id = call.world.new_id();
    let zone = Zone {
        name_servers: if kind == ZoneType::Partial {
            Vec::new()
        } else {
            Zone::assigned_name_servers(&account_id)
        },
        verification_key: (kind == ZoneType::Partial).then(|| verification_key(&id)),
        id,
        account_id,
        name,
        kind,
        status: ZoneStatus::Pending,
        paused: false,
        plan: Plan::Free,
        plan_pending: None,
        vanity_name_servers: Vec::new(),
        created_on: call.now,
        modified_on: call.now,
        activated_on: None,
        last_check: None,
        record_quota: None,
    };
    let shown = render(&zone, call.world);
    call.world.put_zone(zone, call.now);
    Ok(Reply::object(shown))
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    Ok(Reply::object(render(&zone, call.world)))
}

/// One property a call (Cloudflare documents). The code for more is unproven.
fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let mut zone = call.zone()?;
    let known = ["paused", "type", "plan", "vanity_name_servers"];
    let sent: Vec<&str> = known.into_iter().filter(|key| body.contains_key(*key)).collect();
    let [property] = sent[..] else {
        return Err(Refusal::new(
            400,
            1016,
            "Exactly one zone property can be changed at a time",
        ));
    };
    let value = &body[property];
    let invalid = || Refusal::new(400, 1016, format!("Invalid value for {property}"));
    match property {
        "paused" => zone.paused = value.as_bool().ok_or_else(invalid)?,
        "type" => change_type(&mut zone, parse_type(value)?)?,
        "plan" => {
            let plan = value
                .get("id")
                .and_then(Value::as_str)
                .and_then(Plan::find)
                .ok_or_else(invalid)?;
            let period = SignedDuration::try_from(call.billing_period).unwrap_or(SignedDuration::MAX);
            change_plan(
                &mut zone,
                plan,
                call.now.saturating_add(period).unwrap_or(Timestamp::MAX),
            );
        }
        _ => {
            let names = value.as_array().ok_or_else(invalid)?;
            let names: Option<Vec<String>> = names.iter().map(|entry| entry.as_str().and_then(name::host)).collect();
            zone.vanity_name_servers = names.ok_or_else(invalid)?;
            if !zone.plan.may_be_partial() && !zone.vanity_name_servers.is_empty() {
                return Err(Refusal::new(
                    403,
                    1016,
                    "Vanity name servers are not available on the zone's plan",
                ));
            }
        }
    }
    if call.world.zone(&zone.id).is_some_and(|before| !same(before, &zone)) {
        zone.modified_on = call.now;
        call.world.put_zone(zone.clone(), call.now);
    }
    Ok(Reply::object(render(&zone, call.world)))
}

fn same(a: &Zone, b: &Zone) -> bool {
    (a.paused, a.kind, a.plan, a.plan_pending, &a.vanity_name_servers)
        == (b.paused, b.kind, b.plan, b.plan_pending, &b.vanity_name_servers)
}

/// An upgrade takes effect at once, a downgrade at `end` of the paid period; naming the present plan calls it off.
fn change_plan(zone: &mut Zone, plan: Plan, end: Timestamp) {
    if plan >= zone.plan {
        zone.plan = plan;
        zone.plan_pending = None;
    } else if zone.plan_pending.is_none_or(|pending| pending.plan != plan) {
        zone.plan_pending = Some(PendingPlan { plan, from: end });
    }
}

fn change_type(zone: &mut Zone, kind: ZoneType) -> Result<(), Refusal> {
    let allowed = match kind {
        ZoneType::Full => true,
        ZoneType::Partial => zone.plan.may_be_partial(),
        ZoneType::Secondary | ZoneType::Internal => zone.plan == Plan::Enterprise,
    };
    if !allowed {
        return Err(type_not_available());
    }
    zone.kind = kind;
    zone.verification_key = (kind == ZoneType::Partial).then(|| verification_key(&zone.id));
    zone.name_servers = if kind == ZoneType::Partial {
        Vec::new()
    } else {
        Zone::assigned_name_servers(&zone.account_id)
    };
    Ok(())
}

/// The code is unproven.
fn type_not_available() -> Refusal {
    Refusal::new(403, 1016, "This zone type is not available on the zone's plan")
}

fn parse_type(value: &Value) -> Result<ZoneType, Refusal> {
    serde_json::from_value(value.clone()).map_err(|_| Refusal::new(400, 1016, "Invalid zone type"))
}

fn verification_key(zone_id: &str) -> String {
    let digest = crate::ids::stable(zone_id);
    let number = |at: usize| u32::from_be_bytes([0, digest[at], digest[at + 1], digest[at + 2]]);
    format!("{}-{}", number(0), number(3))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    call.world.remove_zone(&zone.id, call.now);
    Ok(Reply::object(json!({ "id": zone.id })))
}

fn check(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let mut zone = call.zone()?;
    let interval = SignedDuration::try_from(zone.plan.check_interval()).unwrap_or(SignedDuration::MAX);
    if zone
        .last_check
        .is_some_and(|last| call.now.duration_since(last) < interval)
    {
        // The code is unproven.
        return Err(Refusal::new(
            400,
            1224,
            "The activation check was asked for too recently",
        ));
    }
    zone.last_check = Some(call.now);
    if call.activation.on_check == CheckOutcome::Activates {
        activate(&mut zone, call.now);
    }
    let id = zone.id.clone();
    call.world.put_zone(zone, call.now);
    Ok(Reply::object(json!({ "id": id })))
}

/// Makes a pending zone active.
pub(crate) fn activate(zone: &mut Zone, now: Timestamp) {
    if matches!(zone.status, ZoneStatus::Pending | ZoneStatus::Initializing) {
        zone.status = ZoneStatus::Active;
        zone.activated_on = Some(now);
        zone.modified_on = now;
    }
}

/// Lets happen what is due: activations and the ends of paid periods.
pub(crate) fn settle(world: &mut World, activation: Activation, now: Timestamp) {
    let after = activation
        .after
        .map(|after| SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX));
    let is_due = |zone: &Zone| {
        let activates = after.is_some_and(|after| now.duration_since(zone.created_on) >= after);
        (zone.status == ZoneStatus::Pending && activates) || zone.plan_pending.is_some_and(|plan| plan.from <= now)
    };
    let due: Vec<Zone> = world
        .held()
        .zones
        .values()
        .filter(|zone| is_due(zone))
        .map(|zone| Zone::clone(zone))
        .collect();
    for mut zone in due {
        if zone.status == ZoneStatus::Pending && after.is_some_and(|after| now.duration_since(zone.created_on) >= after)
        {
            activate(&mut zone, now);
        }
        if let Some(pending) = zone.plan_pending.filter(|pending| pending.from <= now) {
            zone.plan = pending.plan;
            zone.plan_pending = None;
            zone.modified_on = now;
        }
        world.put_zone(zone, now);
    }
}

/// The zone as the API shows it.
pub(crate) fn render(zone: &Zone, world: &World) -> Value {
    zone.render(world.held().accounts.get(&zone.account_id))
}

/// The zone's own fields for a dump.
pub(crate) fn summary(zone: &Zone, world: &World) -> Map<String, Value> {
    match render(zone, world) {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
