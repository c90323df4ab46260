//! Edits of rules by somebody else: without token, budget or log, and past what the plan allows.

use axum::extract::{Path, State};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::draft::Limits;
use super::phase::Phase;
use super::ruleset::Ruleset;
use super::write::{RuleChange, RulesetWriter};
use crate::areas::zones;
use crate::envelope::Refusal;
use crate::simulator::Simulator;
use crate::state::Zone;

type Body = Map<String, Value>;

impl Simulator {
    /// The rulesets of a zone (by id or name) as the API shows them, by id, without those of Cloudflare. `None`: there is no
    /// such zone.
    pub fn rulesets(&self, zone: &str) -> Option<Vec<Value>> {
        self.with(|core| {
            let zone = core.world.find_zone(zone)?.id.clone();
            let rulesets = core.world.rulesets(&zone, None);
            let quirks = core.config.quirks;
            Some(rulesets.iter().map(|ruleset| ruleset.render(quirks)).collect())
        })
    }

    /// The entry point of a phase of a zone (by id or name), as the API shows it; `None` without one.
    pub fn entry_point(&self, zone: &str, phase: Phase) -> Option<Value> {
        self.with(|core| {
            let zone = core.world.find_zone(zone)?.id.clone();
            let ruleset = core.world.entry_point(&zone, phase)?;
            Some(ruleset.render(core.config.quirks))
        })
    }

    /// Adds a rule to the entry point of a phase, which is made if there is none. The body may have a `position`; the answer
    /// is the ruleset.
    pub fn foreign_add_rule(&self, zone: &str, phase: Phase, body: &Body) -> Result<Value, Refusal> {
        self.foreign_rules(zone, |writer| {
            let entry_point = match writer.entry_point(phase) {
                Ok(entry_point) => entry_point,
                Err(_) => writer.make_entry_point(phase, &Body::new())?,
            };
            writer.add_rule(entry_point, body)
        })
    }

    /// Merges a change into a rule of the entry point of a phase, moves it, or both. The answer is the ruleset.
    pub fn foreign_patch_rule(&self, zone: &str, phase: Phase, rule_id: &str, body: &Body) -> Result<Value, Refusal> {
        self.foreign_rules(zone, |writer| {
            let entry_point = writer.entry_point(phase)?;
            writer.change_rule(entry_point, rule_id, body, RuleChange::Merge)
        })
    }

    /// Deletes a rule of the entry point of a phase. The answer is the ruleset.
    pub fn foreign_delete_rule(&self, zone: &str, phase: Phase, rule_id: &str) -> Result<Value, Refusal> {
        self.foreign_rules(zone, |writer| {
            let entry_point = writer.entry_point(phase)?;
            writer.delete_rule(entry_point, rule_id)
        })
    }

    /// Deletes the entry point of a phase with all its rules.
    pub fn foreign_delete_entry_point(&self, zone: &str, phase: Phase) -> Result<(), Refusal> {
        self.foreign_rules(zone, |writer| {
            let entry_point = writer.entry_point(phase)?;
            writer.delete(&entry_point);
            Ok(entry_point)
        })
        .map(drop)
    }

    fn foreign_rules(
        &self,
        zone: &str,
        work: impl FnOnce(&mut RulesetWriter<'_>) -> Result<Ruleset, Refusal>,
    ) -> Result<Value, Refusal> {
        self.with(|core| {
            let zone = Zone::clone(core.world.find_zone(zone).ok_or_else(zones::unknown)?);
            let start = core.world.version();
            let result = work(&mut RulesetWriter {
                now: core.config.clock.now(),
                world: &mut core.world,
                zone: &zone,
                limits: Limits::Ignored,
            });
            match result {
                Ok(ruleset) => Ok(ruleset.render(core.config.quirks)),
                Err(refusal) => {
                    core.world.roll_back(start);
                    Err(refusal)
                }
            }
        })
    }
}

/// The part of the control API that is about rules.
pub(crate) fn router() -> Router<Simulator> {
    Router::new()
        .route("/zones/{zone}/rulesets", get(rulesets))
        .route(
            "/zones/{zone}/rulesets/{phase}",
            axum::routing::delete(delete_entry_point),
        )
        .route("/zones/{zone}/rulesets/{phase}/rules", post(add_rule))
        .route(
            "/zones/{zone}/rulesets/{phase}/rules/{id}",
            patch(patch_rule).delete(delete_rule),
        )
}

type Sim = State<Simulator>;

async fn rulesets(State(sim): Sim, Path(zone): Path<String>) -> Result<Json<Value>, Refusal> {
    let rulesets = sim.rulesets(&zone).ok_or_else(zones::unknown)?;
    Ok(Json(json!({ "rulesets": rulesets })))
}

async fn add_rule(
    State(sim): Sim,
    Path((zone, phase)): Path<(String, Phase)>,
    Json(body): Json<Body>,
) -> Result<Json<Value>, Refusal> {
    sim.foreign_add_rule(&zone, phase, &body).map(Json)
}

async fn patch_rule(
    State(sim): Sim,
    Path((zone, phase, id)): Path<(String, Phase, String)>,
    Json(body): Json<Body>,
) -> Result<Json<Value>, Refusal> {
    sim.foreign_patch_rule(&zone, phase, &id, &body).map(Json)
}

async fn delete_rule(
    State(sim): Sim,
    Path((zone, phase, id)): Path<(String, Phase, String)>,
) -> Result<Json<Value>, Refusal> {
    sim.foreign_delete_rule(&zone, phase, &id).map(Json)
}

async fn delete_entry_point(
    State(sim): Sim,
    Path((zone, phase)): Path<(String, Phase)>,
) -> Result<StatusCode, Refusal> {
    sim.foreign_delete_entry_point(&zone, phase)
        .map(|()| StatusCode::NO_CONTENT)
}
