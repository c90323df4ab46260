//! What an account holds, as the rules see it: everything by its id, without what changes by itself.

use std::collections::BTreeMap;

use kflare_sim::Simulator;
use serde_json::Value;

use super::identity::text;
use super::{lists, rulesets, stores, transforms, tunnels, workers};

/// What an account holds, by id. Records carry the id and the name of their zone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holdings {
    /// Zones.
    pub zones: BTreeMap<String, Value>,
    /// Records.
    pub records: BTreeMap<String, Value>,
    /// KV namespaces, R2 buckets, D1 databases, queues.
    pub stores: BTreeMap<String, Value>,
    /// Tunnels that are not deleted, each with its configuration.
    pub tunnels: BTreeMap<String, Value>,
    /// Lists.
    pub lists: BTreeMap<String, Value>,
    /// Workers.
    pub workers: BTreeMap<String, Value>,
    /// Their routes.
    pub routes: BTreeMap<String, Value>,
    /// The managed transforms of each zone.
    pub transforms: BTreeMap<String, Value>,
    /// Rules, and their order.
    pub rules: rulesets::Rules,
}

/// Things of a kind, by id.
pub(super) type Things = BTreeMap<String, Value>;

impl Holdings {
    /// What there is now.
    pub fn of(cloudflare: &Simulator) -> Self {
        let mut all = Self {
            stores: stores::holdings(cloudflare),
            lists: lists::holdings(cloudflare),
            workers: workers::holdings(cloudflare),
            ..Self::default()
        };
        for mut zone in cloudflare.dump()["zones"].as_array().cloned().unwrap_or_default() {
            let records = zone["records"].take();
            for mut record in records.as_array().cloned().unwrap_or_default() {
                record["zone_id"] = zone["id"].clone();
                record["zone_name"] = zone["name"].clone();
                all.records.insert(text(&record["id"]), record);
            }
            let rulesets = zone["rulesets"].take();
            all.rules.add(&zone, &rulesets);
            let transforms = transforms::held(&zone, &zone["managed_transforms"]);
            all.transforms.insert(text(&transforms["id"]), transforms);
            for route in zone["worker_routes"].as_array().into_iter().flatten() {
                all.routes.insert(text(&route["id"]), workers::held_route(&zone, route));
            }
            if let Some(zone) = zone.as_object_mut() {
                // Zones become active by themselves.
                for field in [
                    "records",
                    "rulesets",
                    "managed_transforms",
                    "worker_routes",
                    "status",
                    "activated_on",
                    "modified_on",
                ] {
                    zone.remove(field);
                }
            }
            all.zones.insert(text(&zone["id"]), zone);
        }
        for tunnel in tunnels::live(cloudflare) {
            all.tunnels.insert(text(&tunnel["id"]), tunnel);
        }
        all
    }

    /// Each kind of thing, before and after.
    pub(super) fn beside<'a>(&'a self, after: &'a Self) -> [(&'a Things, &'a Things); 9] {
        [
            (&self.zones, &after.zones),
            (&self.records, &after.records),
            (&self.stores, &after.stores),
            (&self.tunnels, &after.tunnels),
            (&self.rules.all, &after.rules.all),
            (&self.lists, &after.lists),
            (&self.workers, &after.workers),
            (&self.routes, &after.routes),
            (&self.transforms, &after.transforms),
        ]
    }

    /// Whether this is a route to a Worker that there is not: Cloudflare deletes routes with the Worker that they lead to.
    pub fn leads_nowhere(&self, object: &Value) -> bool {
        let script = text(&object["script"]);
        object["of"] == "WorkerRoute" && !script.is_empty() && self.workers.values().all(|it| it["name"] != *script)
    }

    /// Everything, by id.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.beside(self).into_iter().flat_map(|(all, _)| all)
    }
}
