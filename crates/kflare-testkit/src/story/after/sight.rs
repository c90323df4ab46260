//! A cluster and the account at rest: what its resources say, beside what there is.

use std::collections::{BTreeMap, BTreeSet};

use kflare_api::names;
use serde_json::Value;

use super::{annotation, is_paused, ready};
use crate::story::holdings::Holdings;
use crate::story::identity::{recorded_id, target_of, text};
use crate::story::perform::Stage;
use crate::story::rule::Rule;
use crate::story::wanted::wanted;
use crate::story::{rulesets, workers};

/// One cluster and the account, as they are.
pub(super) struct Sight<'a> {
    pub(super) stage: &'a Stage,
    pub(super) cluster: usize,
    pub(super) all: Vec<Value>,
    pub(super) holdings: &'a Holdings,
    /// Ids that more than one cluster has recorded.
    pub(super) shared: &'a BTreeSet<String>,
}

impl Sight<'_> {
    pub(super) fn untrue(&self, resource: &Value, what: &str) {
        let told = format!("cluster {} {}: {what}; {resource}", self.cluster, target_of(resource));
        self.stage.ledger.broken(Rule::Truth, told);
    }

    /// No object has two resources that both call themselves Ready.
    pub(super) fn check_claims(&self) {
        // A tunnel and its configuration have one id.
        let mut seen: BTreeMap<(String, String), &Value> = BTreeMap::new();
        for resource in self.all.iter().filter(|it| ready(it).0 == "True") {
            if let Some(id) = recorded_id(resource)
                && let Some(other) = seen.insert((text(&resource["kind"]), id), resource)
            {
                self.untrue(resource, &format!("is Ready with the object of {}", target_of(other)));
            }
        }
    }

    /// Rules of ours stand as their priorities and names say; those that may not be moved, or that nobody looks at, aside.
    pub(super) fn check_order(&self) {
        let looked_after = self.all.iter().filter(|it| {
            let idle = is_paused(it) || annotation(it, names::MODE) == Some("observe");
            !idle && ready(it).0 == "True" && annotation(it, names::DRIFT_CHECK_INTERVAL) != Some("0s")
        });
        if let Some((first, then)) = rulesets::out_of_order(&self.holdings.rules, looked_after) {
            let ids = [first, then].map(recorded_id);
            // Two clusters that both adopted it have a name and a priority each.
            if !ids.iter().flatten().any(|id| self.shared.contains(id)) {
                self.untrue(first, &format!("stands behind {}", target_of(then)));
            }
        }
    }

    pub(super) fn check(&self, resource: &Value) {
        let (status, reason, generation) = ready(resource);
        if reason == "InternalError" {
            self.stage.ledger.broken(Rule::Defect, resource.to_string());
        }
        if is_paused(resource) {
            if reason != "Paused" {
                self.untrue(resource, "is paused and does not say so");
            }
            return;
        }
        if generation != resource["metadata"]["generation"].as_i64() {
            return self.untrue(resource, "does not speak of its spec as it is");
        }
        if !resource["metadata"]["deletionTimestamp"].is_null() {
            return self.check_leaving(resource, &reason);
        }
        if status == "True" {
            self.check_ready(resource);
        } else if let Some(why) = self.why_untrue(resource, &reason) {
            self.untrue(resource, &format!("says {reason}, but {why}"));
        }
    }

    fn check_leaving(&self, resource: &Value, reason: &str) {
        let full = recorded_id(resource)
            .and_then(|id| self.holdings.stores.get(&id))
            .is_some_and(|bucket| bucket["objects"].as_u64() > Some(0));
        if full && reason == "BucketNotEmpty" {
            return;
        }
        if resource["kind"] == "IPList" && reason == "ListInUse" {
            let name = text(&resource["spec"]["name"]);
            let mut rules = self.holdings.rules.all.values();
            let mut resources = self.all.iter().filter(|it| rulesets::is_rule(it));
            if rules.any(|rule| rulesets::list_of(rule).as_ref() == Some(&name))
                || resources.any(|it| rulesets::list_of(&it["spec"]).as_ref() == Some(&name))
            {
                return;
            }
        }
        let children = self.children(resource);
        if children.is_empty() {
            let what = format!(
                "cluster {} {} is still there: {resource}",
                self.cluster,
                target_of(resource)
            );
            self.stage.ledger.broken(Rule::Goes, what);
        } else if reason != "InUse" {
            self.untrue(resource, "waits for others and does not say so");
        }
    }

    fn children(&self, resource: &Value) -> Vec<&Value> {
        let field = match resource["kind"].as_str() {
            Some("CloudflareAccount") => "accountRef",
            Some("Zone") => "zoneRef",
            Some("Tunnel") => "tunnelRef",
            Some("WorkerScript") => "workerScriptRef",
            Some(kind) => {
                let name = text(&resource["metadata"]["name"]);
                let is_bound = |it: &&Value| {
                    workers::stores_of(it)
                        .iter()
                        .any(|store| store.0 == kind && store.1 == name)
                };
                return self.all.iter().filter(is_bound).collect();
            }
            None => return Vec::new(),
        };
        self.all
            .iter()
            .filter(|it| it["spec"][field]["name"] == resource["metadata"]["name"])
            .collect()
    }

    /// Whether the object of a resource is not there, as far as its status or the account tells; or it leaves.
    pub(super) fn is_not_there(&self, resource: &Value) -> bool {
        let leaves = !resource["metadata"]["deletionTimestamp"].is_null();
        leaves || recorded_id(resource).is_none_or(|id| self.holdings.iter().all(|(other, _)| *other != id))
    }

    /// What lists of this cluster are called that are there.
    pub(super) fn lists(&self) -> Vec<String> {
        let lists = self
            .all
            .iter()
            .filter(|it| it["kind"] == "IPList" && !self.is_not_there(it));
        lists.map(|it| text(&it["spec"]["name"])).collect()
    }

    pub(super) fn resource(&self, kind: &str, name: &str) -> Option<&Value> {
        let mut all = self.all.iter();
        all.find(|it| it["kind"] == kind && it["metadata"]["name"] == *name)
    }

    pub(super) fn worker_of(&self, resource: &Value) -> Option<&Value> {
        self.resource("WorkerScript", resource["spec"]["workerScriptRef"]["name"].as_str()?)
    }

    pub(super) fn stores_of(&self, resource: &Value) -> Vec<Option<&Value>> {
        let stores = workers::stores_of(resource).into_iter();
        stores.map(|(kind, name)| self.resource(kind, &name)).collect()
    }

    pub(super) fn tunnel_of(&self, resource: &Value) -> Option<&Value> {
        let name = &resource["spec"]["tunnelRef"]["name"];
        let mut all = self.all.iter();
        all.find(|it| it["kind"] == "Tunnel" && it["metadata"]["name"] == *name)
    }

    pub(super) fn wanted(&self, resource: &Value) -> Result<Value, String> {
        wanted(&self.stage.clusters, &self.stage.setting, self.holdings, resource)
    }

    pub(super) fn zone_of(&self, resource: &Value) -> Option<&Value> {
        self.all
            .iter()
            .find(|it| it["kind"] == "Zone" && it["metadata"]["name"] == resource["spec"]["zoneRef"]["name"])
    }
}
