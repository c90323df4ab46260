//! What must hold when the dust has settled, and when everything is gone.

mod budget;
mod plan;
mod ready;
mod reasons;
mod rest;
mod sight;

use std::collections::{BTreeMap, BTreeSet};

use kflare_api::names;
use serde_json::Value;

use super::holdings::Holdings;
use super::identity::{identity, recorded_id, remote_identity, text, user_fields};
use super::ledger::Maker;
use super::perform::{KINDS, Stage};
use super::rule::Rule;
use super::transforms;
use sight::Sight;

pub use budget::budget;
pub use plan::{as_planned, plan};
pub use rest::{intervals_asked_for, may_be_restless};

/// `Ready` of a resource: status, reason, and the generation it speaks of.
fn ready(resource: &Value) -> (String, String, Option<i64>) {
    let conditions = resource["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions
        .into_iter()
        .find(|it| it["type"] == "Ready")
        .unwrap_or_default();
    (
        text(&ready["status"]),
        text(&ready["reason"]),
        ready["observedGeneration"].as_i64(),
    )
}

fn annotation<'a>(resource: &'a Value, name: &str) -> Option<&'a str> {
    resource["metadata"]["annotations"][name].as_str()
}

fn is_paused(resource: &Value) -> bool {
    !matches!(annotation(resource, names::PAUSED), None | Some("false" | ""))
}

/// Everything in a cluster that is ours.
fn resources(stage: &Stage, cluster: usize) -> Vec<Value> {
    KINDS
        .iter()
        .flat_map(|plural| stage.clusters[cluster].api.list(&format!("{plural}.{}", names::GROUP)))
        .collect()
}

/// What a plan does not include is asked for again after hours: an intent is written, and taken off.
fn is_refused(resource: &Value) -> bool {
    resource["status"]["refused"].is_string()
}

/// Checks a world at rest.
pub fn settled(stage: &Stage) {
    let holdings = Holdings::of(&stage.clusters[0].cloudflare);
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for cluster in 0..stage.clusters.len() {
        let ids: BTreeSet<String> = resources(stage, cluster).iter().filter_map(recorded_id).collect();
        for id in ids {
            *recorded.entry(id).or_default() += 1;
        }
    }
    let shared = recorded
        .into_iter()
        .filter(|(_, clusters)| *clusters > 1)
        .map(|(id, _)| id)
        .collect();
    for cluster in 0..stage.clusters.len() {
        let sight = Sight {
            stage,
            cluster,
            all: resources(stage, cluster),
            holdings: &holdings,
            shared: &shared,
        };
        sight.check_claims();
        sight.check_order();
        for resource in &sight.all {
            sight.check(resource);
        }
    }
    foreign_untouched(stage, &holdings);
    no_orphans(stage, &holdings);
}

fn foreign_untouched(stage: &Stage, holdings: &Holdings) {
    for (id, left) in stage.ledger.untouchable() {
        let now = holdings.iter().find(|(other, _)| **other == id).map(|(_, now)| now);
        let zone_id = text(&left["zone_id"]);
        let zone_is_gone = !zone_id.is_empty() && !holdings.zones.contains_key(&zone_id);
        if now.is_none() && (zone_is_gone || holdings.leads_nowhere(&left)) {
            continue;
        }
        if now.is_none_or(|now| user_fields(now) != user_fields(&left)) {
            stage
                .ledger
                .broken(Rule::Foreign, format!("left as {left}, now {now:?}"));
        }
    }
}

fn no_orphans(stage: &Stage, holdings: &Holdings) {
    for cluster in 0..stage.clusters.len() {
        let all = resources(stage, cluster);
        let recorded: BTreeSet<String> = all.iter().filter_map(recorded_id).collect();
        // What a standing intent announces is found again as soon as its resource may go on, or when it is deleted.
        let intended: BTreeSet<(String, String)> = all
            .iter()
            .filter(|it| annotation(it, names::CREATE_INTENT).is_some())
            .map(identity)
            .collect();
        for (id, object) in holdings.iter() {
            let known = recorded.contains(id) || intended.contains(&remote_identity(object));
            if stage.ledger.maker(id) == Some(Maker::Cluster(cluster))
                && !known
                && !transforms::are_off(object)
                && !stage.ledger.may_be_kept(cluster, object)
                && !stage.ledger.nobody_can_know(cluster, id, object)
            {
                stage.ledger.broken(
                    Rule::Orphan,
                    format!("cluster {cluster} made {object}, and nobody knows"),
                );
            }
        }
    }
}

/// Checks a world in which users deleted everything.
pub fn gone(stage: &Stage) {
    let holdings = Holdings::of(&stage.clusters[0].cloudflare);
    for (cluster, world) in stage.clusters.iter().enumerate() {
        let mut left = resources(stage, cluster);
        left.extend(world.api.list("secrets"));
        for object in left {
            stage.ledger.broken(Rule::Goes, format!("cluster {cluster}: {object}"));
        }
    }
    foreign_untouched(stage, &holdings);
    no_orphans(stage, &holdings);
}
