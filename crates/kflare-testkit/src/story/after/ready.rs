//! Ready means that Cloudflare has what the spec asks for.

use std::collections::BTreeMap;

use kflare_api::names;
use serde_json::Value;

use super::annotation;
use super::sight::Sight;
use crate::story::identity::{recorded_id, text};
use crate::story::wanted::differences;
use crate::story::{lists, rulesets, stores, transforms, tunnels, workers};

impl Sight<'_> {
    pub(super) fn check_ready(&self, resource: &Value) {
        if resource["kind"] == "CloudflareAccount" {
            return;
        }
        let Some(id) = &recorded_id(resource) else {
            return self.untrue(resource, "is Ready without an object");
        };
        // The user asked not to look.
        if annotation(resource, names::DRIFT_CHECK_INTERVAL) == Some("0s") {
            return;
        }
        if let Some(differences) = self.differences(resource, id) {
            if !differences.is_empty() && !self.shared.contains(id) {
                self.untrue(resource, &format!("is Ready and differs: {differences:?}"));
            }
            return;
        }
        if stores::identity(resource).is_some() {
            let Some(object) = self.holdings.stores.get(id) else {
                return self.untrue(resource, "is Ready and its object does not exist");
            };
            let differences = stores::differences(resource, object);
            if !differences.is_empty() && !self.shared.contains(id) {
                self.untrue(resource, &format!("is Ready and differs: {differences:?}"));
            }
            return;
        }
        if resource["kind"] == "Zone" {
            let Some(zone) = self.holdings.zones.get(id) else {
                return self.untrue(resource, "is Ready and its zone does not exist");
            };
            let paused = &resource["spec"]["paused"];
            if zone["name"] != resource["spec"]["name"] || (!paused.is_null() && zone["paused"] != *paused) {
                self.untrue(resource, &format!("is Ready and differs from {zone}"));
            }
            return;
        }
        if matches!(resource["kind"].as_str(), Some("Tunnel" | "TunnelConfiguration")) {
            let tunnels: Vec<Value> = self.holdings.tunnels.values().cloned().collect();
            if let Some(why) = tunnels::why_not(&self.stage.clusters[self.cluster], resource, &tunnels) {
                self.untrue(resource, &format!("is Ready, but {why}"));
            }
            return;
        }
        let Some(record) = self.holdings.records.get(id) else {
            return self.untrue(resource, "is Ready and its record does not exist");
        };
        match self.wanted(resource) {
            Err(refusal) => self.untrue(resource, &format!("is Ready although Cloudflare refuses it: {refusal}")),
            Ok(wanted) => {
                let differences = differences(&resource["spec"], &wanted, record);
                // Two that both adopted it may be at it right now.
                if !differences.is_empty() && !self.shared.contains(id) {
                    self.untrue(resource, &format!("is Ready and differs: {differences:?}"));
                }
            }
        }
    }

    /// In what the object `id` of a rule, a list, a Worker, a route or of managed transforms is not as the spec has it; none for
    /// other kinds.
    fn differences(&self, resource: &Value, id: &String) -> Option<Vec<String>> {
        let world = &self.stage.clusters[self.cluster];
        let compare = |all: &BTreeMap<String, Value>, differences: &dyn Fn(&Value) -> Vec<String>| {
            let missing = || vec!["it does not exist".to_owned()];
            Some(all.get(id).map_or_else(missing, differences))
        };
        match resource["kind"].as_str()? {
            "IPList" => compare(&self.holdings.lists, &|list| lists::differences(resource, list)),
            "ManagedTransform" => compare(&self.holdings.transforms, &|all| transforms::differences(resource, all)),
            "WorkerScript" => compare(&self.holdings.workers, &|worker| {
                let store = |kind: &str, name: &str| workers::binds(self.resource(kind, name)?);
                workers::differences(world, resource, worker, store)
            }),
            "WorkerRoute" => compare(&self.holdings.routes, &|route| {
                let script = self
                    .worker_of(resource)
                    .map(|it| text(&it["spec"]["name"]))
                    .unwrap_or_default();
                let wanted = [&resource["spec"]["pattern"], &Value::String(script)];
                let is = [&route["pattern"], &route["script"]];
                if wanted == is {
                    Vec::new()
                } else {
                    vec![format!("wanted {wanted:?}, is {is:?}")]
                }
            }),
            _ if rulesets::is_rule(resource) => compare(&self.holdings.rules.all, &|rule| {
                rulesets::differences(&self.stage.setting, resource, rule)
            }),
            _ => None,
        }
    }
}
