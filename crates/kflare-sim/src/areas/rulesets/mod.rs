//! `/zones/{zone_id}/rulesets`.

mod control;
mod draft;
mod entitlements;
mod error;
mod expression;
mod list;
mod managed;
mod params;
mod phase;
mod position;
mod ratelimit;
pub(crate) mod references;
mod ruleset;
mod seed;
mod shape;
mod tokens;
mod write;

pub(crate) use control::router;
pub use phase::Phase;
pub(crate) use ruleset::Ruleset;
pub use ruleset::RulesetKind;
pub use seed::RulesetSeed;

use draft::Limits;
use write::{Ids, RuleChange, RulesetWriter};

use crate::auth::{Access, forbidden, no_zone};
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply, ReplyBody};
use crate::route::{Answers, Call, Handler, Route};
use crate::state::{Level, Permission, Zone};

pub(crate) static ROUTES: [Route; 10] = [
    route("GET", "/zones/{zone_id}/rulesets", Answers::List, list::list),
    route("POST", "/zones/{zone_id}/rulesets", Answers::Other, create),
    route(
        "GET",
        "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint",
        Answers::Rules,
        get_entry_point,
    ),
    route(
        "PUT",
        "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint",
        Answers::Other,
        put_entry_point,
    ),
    route("GET", "/zones/{zone_id}/rulesets/{ruleset_id}", Answers::Rules, get),
    route("PUT", "/zones/{zone_id}/rulesets/{ruleset_id}", Answers::Other, put),
    route(
        "DELETE",
        "/zones/{zone_id}/rulesets/{ruleset_id}",
        Answers::Other,
        delete,
    ),
    route(
        "POST",
        "/zones/{zone_id}/rulesets/{ruleset_id}/rules",
        Answers::Other,
        add_rule,
    ),
    route(
        "PATCH",
        "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}",
        Answers::Other,
        patch_rule,
    ),
    route(
        "DELETE",
        "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}",
        Answers::Other,
        delete_rule,
    ),
];

/// Which permission is wanted follows from the phase, which may be in the body or in the ruleset: each handler asks.
const fn route(method: &'static str, template: &'static str, answers: Answers, handler: Handler) -> Route {
    Route {
        method,
        template,
        access: Access::Anyone,
        answers,
        policy: Policy::DEFAULT,
        handler,
    }
}

/// The zone of the call.
fn zone_of(call: &Call<'_>) -> Result<Zone, Refusal> {
    let zone = call.world.zone(call.param("zone_id"));
    zone.map(|zone| Zone::clone(zone)).ok_or_else(no_zone)
}

/// Checks that the caller has the permission that a phase wants.
fn allow(call: &Call<'_>, zone: &Zone, phase: Phase, level: Level) -> Result<(), Refusal> {
    let wanted = Permission {
        area: phase.area(),
        level,
    };
    if call.caller.may_on_zone(wanted, zone) {
        Ok(())
    } else {
        Err(forbidden())
    }
}

/// Checks that the caller has the permission that some phase wants.
fn allow_any(call: &Call<'_>, zone: &Zone, level: Level) -> Result<(), Refusal> {
    if Phase::ALL
        .into_iter()
        .any(|phase| allow(call, zone, phase, level).is_ok())
    {
        Ok(())
    } else {
        Err(forbidden())
    }
}

/// The zone and the phase in the path of the call.
fn phase_of(call: &Call<'_>, level: Level) -> Result<(Zone, Phase), Refusal> {
    let zone = zone_of(call)?;
    allow_any(call, &zone, level)?;
    let phase = Phase::find(call.param("ruleset_phase"))?;
    allow(call, &zone, phase, level)?;
    Ok((zone, phase))
}

/// The zone and the ruleset in the path of the call.
fn ruleset_of(call: &Call<'_>, level: Level) -> Result<(Zone, Ruleset), Refusal> {
    let zone = zone_of(call)?;
    allow_any(call, &zone, level)?;
    let id = call.param("ruleset_id");
    if managed::Managed::find(id).is_some() {
        return Err(error::not_modelled("the rules of managed rulesets"));
    }
    let ruleset = match (level, call.view) {
        (Level::Read, Some(point)) => {
            let rulesets = call.world.rulesets(&zone.id, Some(point));
            rulesets.into_iter().find(|ruleset| ruleset.id == id)
        }
        _ => call.world.ruleset(&zone.id, id).cloned(),
    };
    let ruleset = ruleset.ok_or_else(error::no_ruleset)?;
    allow(call, &zone, ruleset.phase, level)?;
    Ok((zone, Ruleset::clone(&ruleset)))
}

/// Does `work` on the rulesets of a zone. With `dry_run` everything is checked and answered, and nothing has happened.
fn write<T>(
    call: &mut Call<'_>,
    zone: &Zone,
    work: impl FnOnce(&mut RulesetWriter<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let start = call.world.version();
    let result = work(&mut RulesetWriter {
        world: call.world,
        zone,
        now: call.now,
        limits: Limits::Enforced,
    });
    if call.query.get("dry_run") == Some("true") {
        call.world.roll_back(start);
    }
    result
}

fn whole(ruleset: &Ruleset, call: &Call<'_>) -> Reply {
    Reply::object(ruleset.render(call.quirks))
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = zone_of(call)?;
    allow_any(call, &zone, Level::Write)?;
    let body = call.json()?;
    allow(call, &zone, write::phase_of(&body)?, Level::Write)?;
    let ruleset = write(call, &zone, |writer| writer.create(None, &body, Ids::Refer))?;
    Ok(whole(&ruleset, call))
}

fn get_entry_point(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, phase) = phase_of(call, Level::Read)?;
    let rulesets = call.world.rulesets(&zone.id, call.view);
    let ruleset = rulesets
        .iter()
        .find(|ruleset| ruleset.phase == phase && ruleset.kind == RulesetKind::Zone)
        .ok_or_else(|| error::no_entry_point(phase))?;
    Ok(whole(ruleset, call))
}

fn put_entry_point(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, phase) = phase_of(call, Level::Write)?;
    let body = call.json()?;
    let ruleset = write(call, &zone, |writer| writer.put_entry_point(phase, &body))?;
    Ok(whole(&ruleset, call))
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (_, ruleset) = ruleset_of(call, Level::Read)?;
    Ok(whole(&ruleset, call))
}

fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, ruleset) = ruleset_of(call, Level::Write)?;
    let body = call.json()?;
    let ruleset = write(call, &zone, |writer| writer.replace(ruleset, &body))?;
    Ok(whole(&ruleset, call))
}

/// 204 without a body (Cloudflare documents).
fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, ruleset) = ruleset_of(call, Level::Write)?;
    write(call, &zone, |writer| {
        writer.delete(&ruleset);
        Ok(())
    })?;
    Ok(Reply {
        status: 204,
        body: ReplyBody::Text {
            content_type: "application/json",
            text: String::new(),
        },
        retry_after: None,
    })
}

fn add_rule(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, ruleset) = ruleset_of(call, Level::Write)?;
    let body = call.json()?;
    let ruleset = write(call, &zone, |writer| writer.add_rule(ruleset, &body))?;
    Ok(whole(&ruleset, call))
}

fn patch_rule(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, ruleset) = ruleset_of(call, Level::Write)?;
    let body = call.json()?;
    let id = call.param("rule_id").to_owned();
    let ruleset = write(call, &zone, |writer| {
        writer.change_rule(ruleset, &id, &body, RuleChange::Replace)
    })?;
    Ok(whole(&ruleset, call))
}

fn delete_rule(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (zone, ruleset) = ruleset_of(call, Level::Write)?;
    let id = call.param("rule_id").to_owned();
    let ruleset = write(call, &zone, |writer| writer.delete_rule(ruleset, &id))?;
    Ok(whole(&ruleset, call))
}
