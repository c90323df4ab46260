//! What the simulated cloud holds.

mod account;
mod journal;
mod lists;
mod records;
mod rulesets;
mod stores;
mod token;
mod tunnel;
mod workers;
mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use account::{Account, User};
pub use account::{AccountType, Subscription};
pub(crate) use journal::Point;
use journal::{Journal, Undo};
pub use lists::ListKind;
pub(crate) use lists::{Ending, Item, ItemChange, Items, List, ListState, Operation};
pub(crate) use records::RecordSet;
pub(crate) use stores::{Bucket, Database, KvNamespace, Queue, Stores};
pub(crate) use token::Owner;
pub(crate) use token::Token;
pub use token::{Area, Grant, Level, Permission, Scope, TokenStatus, UnknownPermission};
pub use tunnel::ConfigSource;
pub(crate) use tunnel::{
    Configuration as TunnelConfigurationDocument, Connector, Tunnel, VERSION as CONNECTOR_VERSION, connection,
};
pub(crate) use workers::{Schedule, Script, Syntax, WorkerRoute, Workers};
pub(crate) use zone::{PendingPlan, Zone};
pub use zone::{ZoneStatus, ZoneType};

use crate::areas::dns::Record;
use crate::areas::rulesets::Ruleset;
use crate::ids::IdSource;

/// Everything that a state file keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) ids: IdSource,
    pub(crate) accounts: BTreeMap<String, Account>,
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) zones: BTreeMap<String, Arc<Zone>>,
    /// By zone id.
    pub(crate) records: BTreeMap<String, RecordSet>,
    /// KV namespaces, R2 buckets, D1 databases, queues.
    #[serde(default)]
    pub(crate) stores: Stores,
    /// By zone id and ruleset id.
    #[serde(default)]
    pub(crate) rulesets: BTreeMap<String, BTreeMap<String, Arc<Ruleset>>>,
    #[serde(default)]
    pub(crate) lists: ListState,
    /// The managed transforms that are on, by zone id.
    #[serde(default)]
    pub(crate) managed_transforms: BTreeMap<String, BTreeSet<String>>,
    #[serde(default)]
    pub(crate) workers: Workers,
    /// By id, deleted ones too.
    #[serde(default)]
    pub(crate) tunnels: BTreeMap<String, Arc<Tunnel>>,
}

/// The simulated cloud: what it holds, and how it came to hold it.
#[derive(Debug)]
pub(crate) struct World {
    held: Held,
    journal: Journal,
}

impl World {
    pub(crate) fn new(seed: u64, history: std::time::Duration) -> Self {
        Self {
            held: Held {
                ids: IdSource::new(seed),
                accounts: BTreeMap::new(),
                users: BTreeMap::new(),
                tokens: BTreeMap::new(),
                zones: BTreeMap::new(),
                records: BTreeMap::new(),
                stores: Stores::default(),
                rulesets: BTreeMap::new(),
                lists: ListState::default(),
                managed_transforms: BTreeMap::new(),
                workers: Workers::default(),
                tunnels: BTreeMap::new(),
            },
            journal: Journal::new(history),
        }
    }

    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// Replaces everything. The past is forgotten.
    pub(crate) fn replace(&mut self, held: Held) {
        self.held = held;
        self.journal.forget();
    }

    pub(crate) fn new_id(&mut self) -> String {
        self.held.ids.hex32()
    }

    /// A new id of the products that have UUIDs.
    pub(crate) fn new_uuid(&mut self) -> String {
        self.held.ids.uuid()
    }

    /// Grows with every change to what is held.
    pub(crate) fn version(&self) -> u64 {
        self.journal.position()
    }

    /// Names the present moment, so that a stale list can show it later.
    pub(crate) fn mark(&mut self, name: String) {
        self.journal.mark(name);
    }

    /// The place in history that lies `seconds` back, or that was marked.
    pub(crate) fn point(&self, now: Timestamp, seconds: Option<u64>, mark: Option<&str>) -> Option<Point> {
        match mark {
            Some(name) => self.journal.marked(name),
            None => Some(self.journal.point_before(now, seconds.unwrap_or(0))),
        }
    }

    /// Undoes every change since `version` of [`World::version`].
    pub(crate) fn roll_back(&mut self, version: u64) {
        while let Some(undo) = self.journal.pop_after(version) {
            match undo {
                Undo::Record { zone, id, before } => {
                    if let Some(set) = self.held.records.get_mut(&zone) {
                        set.replace(&id, before);
                    }
                }
                Undo::Zone { id, before } => match before {
                    Some(zone) => drop(self.held.zones.insert(id, zone)),
                    None => drop(self.held.zones.remove(&id)),
                },
                Undo::Store(undo) => self.held.stores.take_back(undo),
                Undo::Ruleset { zone, id, before } => {
                    self.replace_ruleset(&zone, &id, before);
                }
                Undo::List { id, before } => self.held.lists.restore(&id, before),
                Undo::Workers(undo) => self.held.workers.take_back(undo),
                Undo::Tunnel { id, before } => match before {
                    Some(tunnel) => drop(self.held.tunnels.insert(id, tunnel)),
                    None => drop(self.held.tunnels.remove(&id)),
                },
                Undo::Other => {}
            }
        }
    }

    pub(crate) fn zone(&self, id: &str) -> Option<&Arc<Zone>> {
        self.held.zones.get(id)
    }

    /// The id of the account of this id or name.
    pub(crate) fn find_account(&self, id_or_name: &str) -> Option<String> {
        let mut accounts = self.held.accounts.values();
        let found = accounts.find(|account| account.id == id_or_name || account.name == id_or_name);
        found.map(|account| account.id.clone())
    }

    /// The zone of this id or name.
    pub(crate) fn find_zone(&self, id_or_name: &str) -> Option<&Arc<Zone>> {
        self.zone(id_or_name)
            .or_else(|| self.held.zones.values().find(|zone| zone.name == id_or_name))
    }

    pub(crate) fn put_zone(&mut self, zone: Zone, now: Timestamp) {
        let id = zone.id.clone();
        self.held.records.entry(id.clone()).or_default();
        let before = self.held.zones.insert(id.clone(), Arc::new(zone));
        self.journal.push(now, Undo::Zone { id, before });
    }

    /// Removes a zone, its records, its rulesets and its Worker routes.
    pub(crate) fn remove_zone(&mut self, id: &str, now: Timestamp) {
        for ruleset in self.rulesets(id, None) {
            self.remove_ruleset(id, &ruleset.id, now);
        }
        for record in self.records(id) {
            self.remove_record(id, &record.id, now);
        }
        self.held.managed_transforms.remove(id);
        for route in self.worker_routes(id, None) {
            self.remove_worker_route(id, &route.id, now);
        }
        if let Some(before) = self.held.zones.remove(id) {
            self.journal.push(
                now,
                Undo::Zone {
                    id: id.to_owned(),
                    before: Some(before),
                },
            );
        }
    }

    /// The zones, as they are or as they were.
    pub(crate) fn zones(&self, at: Option<Point>) -> Vec<Arc<Zone>> {
        let mut zones = self.held.zones.clone();
        if let Some(point) = at {
            for undo in self.journal.undone_since(point) {
                if let Undo::Zone { id, before } = undo {
                    match before {
                        Some(zone) => drop(zones.insert(id.clone(), Arc::clone(zone))),
                        None => drop(zones.remove(id)),
                    }
                }
            }
        }
        zones.into_values().collect()
    }

    pub(crate) fn record_set(&self, zone: &str) -> Option<&RecordSet> {
        self.held.records.get(zone)
    }

    /// The records of a zone, by id.
    pub(crate) fn records(&self, zone: &str) -> Vec<Arc<Record>> {
        self.held
            .records
            .get(zone)
            .map(|set| set.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The records of a zone as they were.
    pub(crate) fn records_at(&self, zone: &str, point: Point) -> Vec<Arc<Record>> {
        let mut set = self.held.records.get(zone).cloned().unwrap_or_default();
        for undo in self.journal.undone_since(point) {
            if let Undo::Record { zone: of, id, before } = undo
                && of == zone
            {
                set.replace(id, before.clone());
            }
        }
        set.iter().cloned().collect()
    }

    pub(crate) fn put_record(&mut self, record: Record, now: Timestamp) {
        let zone = record.zone_id.clone();
        let id = record.id.clone();
        let set = self.held.records.entry(zone.clone()).or_default();
        let before = set.replace(&id, Some(Arc::new(record)));
        self.journal.push(now, Undo::Record { zone, id, before });
    }

    pub(crate) fn remove_record(&mut self, zone: &str, id: &str, now: Timestamp) {
        let Some(set) = self.held.records.get_mut(zone) else {
            return;
        };
        if let Some(before) = set.replace(id, None) {
            self.journal.push(
                now,
                Undo::Record {
                    zone: zone.to_owned(),
                    id: id.to_owned(),
                    before: Some(before),
                },
            );
        }
    }

    /// The managed transforms of a zone that are on.
    pub(crate) fn managed_transforms(&self, zone: &str) -> BTreeSet<String> {
        self.held.managed_transforms.get(zone).cloned().unwrap_or_default()
    }

    /// Sets which managed transforms of a zone are on.
    pub(crate) fn set_managed_transforms(&mut self, zone: &str, on: BTreeSet<String>, now: Timestamp) {
        if self.managed_transforms(zone) != on {
            self.held.managed_transforms.insert(zone.to_owned(), on);
            self.journal.push(now, Undo::Other);
        }
    }

    /// The tunnels, deleted ones too, as they are or as they were.
    pub(crate) fn tunnels(&self, at: Option<Point>) -> Vec<Arc<Tunnel>> {
        let mut tunnels = self.held.tunnels.clone();
        if let Some(point) = at {
            for undo in self.journal.undone_since(point) {
                if let Undo::Tunnel { id, before } = undo {
                    match before {
                        Some(tunnel) => drop(tunnels.insert(id.clone(), Arc::clone(tunnel))),
                        None => drop(tunnels.remove(id)),
                    }
                }
            }
        }
        tunnels.into_values().collect()
    }

    pub(crate) fn put_tunnel(&mut self, tunnel: Tunnel, now: Timestamp) {
        let id = tunnel.id.clone();
        let before = self.held.tunnels.insert(id.clone(), Arc::new(tunnel));
        self.journal.push(now, Undo::Tunnel { id, before });
    }

    /// Changes what only the control API changes: accounts, users, tokens.
    pub(crate) fn administer(&mut self, now: Timestamp, change: impl FnOnce(&mut Held)) {
        change(&mut self.held);
        self.journal.push(now, Undo::Other);
    }
}
