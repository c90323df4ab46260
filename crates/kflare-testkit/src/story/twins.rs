//! Objects that nothing tells from what an interrupted create has made (docs/reliability.md, "Not promised").

use std::time::Duration;

use jiff::Timestamp;
use kflare_api::names;
use serde_json::Value;

use super::act::Setting;
use super::holdings::Holdings;
use super::identity::{identity, remote_identity};
use super::perform::KINDS;
use super::wanted::{differences, wanted};
use crate::simulation::World;

/// So long after its intent a create may take effect, for the engine (docs/contract.md, "Ownership").
const ARRIVES_WITHIN: Duration = Duration::from_mins(5);

/// How long ago a resource of cluster number `cluster` announced that it was about to make just what `object` is, if one did
/// within the time in which that create could have taken effect. Of records every field is compared; of other kinds it is
/// the name.
pub fn announced(
    clusters: &[World],
    cluster: usize,
    setting: &Setting,
    holdings: &Holdings,
    object: &Value,
) -> Option<Duration> {
    let world = clusters.get(cluster)?;
    let now = world.api.clock().now();
    let is_announced = |resource: &Value| {
        if identity(resource) != remote_identity(object) {
            return false;
        }
        let is_record = resource["kind"] == "DNSRecord";
        !is_record
            || wanted(clusters, setting, holdings, resource)
                .is_ok_and(|wanted| differences(&resource["spec"], &wanted, object).is_empty())
    };
    KINDS
        .iter()
        .flat_map(|plural| world.api.list(&format!("{plural}.{}", names::GROUP)))
        .filter_map(|resource| Some((age_of_intent(&resource, now)?, resource)))
        .filter(|(age, resource)| *age <= ARRIVES_WITHIN && is_announced(resource))
        .map(|(age, _)| age)
        .min()
}

fn age_of_intent(resource: &Value, now: Timestamp) -> Option<Duration> {
    let intent = resource["metadata"]["annotations"][names::CREATE_INTENT].as_str()?;
    let intent: Value = serde_json::from_str(intent).ok()?;
    let at: Timestamp = intent["at"].as_str()?.parse().ok()?;
    now.duration_since(at).try_into().ok()
}
