//! Who may be restless in a world at rest.

use std::collections::BTreeMap;
use std::time::Duration;

use kflare_api::names;
use kflare_engine::policy::parse_duration;

use super::{annotation, is_refused, ready, resources};
use crate::story::identity::{recorded_id, target_of, text};
use crate::story::perform::Stage;
use serde_json::Value;

/// Whether a resource (`plural.group name`) may be written to at rest: it is fought over, for ever more rarely. Of two clusters
/// that want one object to be different, whichever had the last word says Ready until the other has answered.
pub fn may_be_restless(stage: &Stage, cluster: usize, what: &str) -> bool {
    let at_odds = |resource: &Value| {
        let others = (0..stage.clusters.len()).filter(|other| *other != cluster);
        let mut theirs = others.flat_map(|other| resources(stage, other));
        recorded_id(resource).is_some_and(|id| {
            theirs.any(|other| recorded_id(&other).as_ref() == Some(&id) && other["spec"] != resource["spec"])
        })
    };
    resources(stage, cluster)
        .iter()
        .filter(|it| what.ends_with(&format!(" {}", text(&it["metadata"]["name"]))))
        .any(|it| ready(it).1 == "Contested" || at_odds(it) || is_refused(it))
}

/// For each collection whose members ask for checks at an interval of their own, the shortest.
pub fn intervals_asked_for(stage: &Stage) -> impl Iterator<Item = Duration> {
    let mut shortest: BTreeMap<(usize, String, String), Duration> = BTreeMap::new();
    for cluster in 0..stage.clusters.len() {
        for resource in resources(stage, cluster) {
            let asked = annotation(&resource, names::DRIFT_CHECK_INTERVAL).and_then(parse_duration);
            if let Some(interval) = asked.filter(|interval| !interval.is_zero()) {
                let container = text(&resource["spec"]["zoneRef"]["name"]);
                let known = shortest
                    .entry((cluster, target_of(&resource).kind, container))
                    .or_insert(interval);
                *known = interval.min(*known);
            }
        }
    }
    shortest.into_values()
}
