//! Workers and the routes that lead to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Point, World, journal};
use crate::areas::workers::Module;

/// Everything about Workers that is held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Workers {
    /// By account, by name.
    scripts: BTreeMap<String, BTreeMap<String, Arc<Script>>>,
    /// By zone, by id.
    routes: BTreeMap<String, BTreeMap<String, Arc<WorkerRoute>>>,
    /// By account: type of binding and id of what exists for Workers to bind, of products that are not modelled.
    bindable: BTreeMap<String, BTreeSet<(String, String)>>,
}

/// How to take a change of Workers back.
#[derive(Debug)]
pub(super) enum Undo {
    Script {
        account: String,
        name: String,
        before: Option<Arc<Script>>,
    },
    Route {
        zone: String,
        id: String,
        before: Option<Arc<WorkerRoute>>,
    },
}

/// A Worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Script {
    pub(crate) account_id: String,
    pub(crate) name: String,
    /// The id that outlives uploads: 32 hex digits.
    pub(crate) tag: String,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
    /// A hash of the code.
    pub(crate) etag: String,
    /// The id of the latest version, without dashes.
    pub(crate) version: String,
    pub(crate) syntax: Syntax,
    /// In the order of the upload.
    pub(crate) modules: Vec<Module>,
    /// In the order of the upload, secret texts included.
    pub(crate) bindings: Vec<Map<String, Value>>,
    pub(crate) compatibility_date: String,
    pub(crate) compatibility_flags: Vec<Value>,
    pub(crate) limits: Option<Value>,
    pub(crate) placement: Option<Value>,
    pub(crate) observability: Option<Value>,
    pub(crate) logpush: bool,
    pub(crate) tail_consumers: Vec<Value>,
    pub(crate) tags: Vec<Value>,
    /// Classes of Durable Objects that migrations have made.
    pub(crate) classes: BTreeSet<String>,
    pub(crate) migration_tag: Option<String>,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) workers_dev: bool,
    pub(crate) previews: bool,
}

/// How the code of a Worker is written, and the part that is run first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Syntax {
    Modules(String),
    ServiceWorker(String),
}

/// When a Worker is run by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) cron: String,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
}

/// Which URLs of a zone a Worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerRoute {
    pub(crate) id: String,
    pub(crate) pattern: String,
    /// None: no Worker runs here.
    pub(crate) script: Option<String>,
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

impl Workers {
    fn set_script(&mut self, account: &str, name: &str, script: Option<Arc<Script>>) -> Option<Arc<Script>> {
        set(
            self.scripts.entry(account.to_owned()).or_default(),
            name.to_owned(),
            script,
        )
    }

    fn set_route(&mut self, zone: &str, id: &str, route: Option<Arc<WorkerRoute>>) -> Option<Arc<WorkerRoute>> {
        set(self.routes.entry(zone.to_owned()).or_default(), id.to_owned(), route)
    }

    pub(super) fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Script { account, name, before } => drop(self.set_script(&account, &name, before)),
            Undo::Route { zone, id, before } => drop(self.set_route(&zone, &id, before)),
        }
    }

    /// Whether something that is not modelled was seeded for Workers to bind.
    pub(crate) fn is_bindable(&self, account: &str, kind: &str, id: &str) -> bool {
        self.bindable
            .get(account)
            .is_some_and(|known| known.contains(&(kind.to_owned(), id.to_owned())))
    }

    pub(crate) fn add_bindable(&mut self, account: &str, kind: &str, id: &str) {
        self.bindable
            .entry(account.to_owned())
            .or_default()
            .insert((kind.to_owned(), id.to_owned()));
    }
}

impl World {
    /// A Worker by name.
    pub(crate) fn script(&self, account: &str, name: &str) -> Option<&Arc<Script>> {
        self.held.workers.scripts.get(account)?.get(name)
    }

    /// The Workers of an account by name, as they are or as they were.
    pub(crate) fn scripts(&self, account: &str, at: Option<Point>) -> Vec<Arc<Script>> {
        let mut scripts = self.held.workers.scripts.get(account).cloned().unwrap_or_default();
        for undo in at.into_iter().flat_map(|point| self.journal.undone_since(point)) {
            if let journal::Undo::Workers(Undo::Script {
                account: of,
                name,
                before,
            }) = undo
                && of == account
            {
                set(&mut scripts, name.clone(), before.clone());
            }
        }
        scripts.into_values().collect()
    }

    pub(crate) fn put_script(&mut self, script: Script, now: Timestamp) {
        let (account, name) = (script.account_id.clone(), script.name.clone());
        let before = self.held.workers.set_script(&account, &name, Some(Arc::new(script)));
        let undo = Undo::Script { account, name, before };
        self.journal.push(now, journal::Undo::Workers(undo));
    }

    /// Removes a Worker and, as Cloudflare does, the routes that lead to it.
    pub(crate) fn remove_script(&mut self, account: &str, name: &str, now: Timestamp) {
        let zones: Vec<String> = self
            .held
            .zones
            .values()
            .filter(|zone| zone.account_id == account)
            .map(|zone| zone.id.clone())
            .collect();
        for zone in zones {
            for route in self.worker_routes(&zone, None) {
                if route.script.as_deref() == Some(name) {
                    self.remove_worker_route(&zone, &route.id, now);
                }
            }
        }
        if let Some(before) = self.held.workers.set_script(account, name, None) {
            let undo = Undo::Script {
                account: account.to_owned(),
                name: name.to_owned(),
                before: Some(before),
            };
            self.journal.push(now, journal::Undo::Workers(undo));
        }
    }

    /// The routes of a zone by id, as they are or as they were.
    pub(crate) fn worker_routes(&self, zone: &str, at: Option<Point>) -> Vec<Arc<WorkerRoute>> {
        let mut routes = self.held.workers.routes.get(zone).cloned().unwrap_or_default();
        for undo in at.into_iter().flat_map(|point| self.journal.undone_since(point)) {
            if let journal::Undo::Workers(Undo::Route { zone: of, id, before }) = undo
                && of == zone
            {
                set(&mut routes, id.clone(), before.clone());
            }
        }
        routes.into_values().collect()
    }

    pub(crate) fn put_worker_route(&mut self, zone: &str, route: WorkerRoute, now: Timestamp) {
        let (zone, id) = (zone.to_owned(), route.id.clone());
        let before = self.held.workers.set_route(&zone, &id, Some(Arc::new(route)));
        let undo = Undo::Route { zone, id, before };
        self.journal.push(now, journal::Undo::Workers(undo));
    }

    pub(crate) fn remove_worker_route(&mut self, zone: &str, id: &str, now: Timestamp) {
        if let Some(before) = self.held.workers.set_route(zone, id, None) {
            let undo = Undo::Route {
                zone: zone.to_owned(),
                id: id.to_owned(),
                before: Some(before),
            };
            self.journal.push(now, journal::Undo::Workers(undo));
        }
    }
}
