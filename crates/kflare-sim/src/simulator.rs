//! The simulator: the API as a service, and the handles to control it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::areas::dns::{Change, Managed, Quota, Writer};
use crate::areas::stores::{d1, kv, queues, r2};
use crate::areas::{lists, managed_headers, zones};
use crate::budget::{Budgets, RateLimit};
use crate::calls::{CallLog, CallRecord};
use crate::config::{BulkOperations, Quirks, SimConfig};
use crate::envelope::Refusal;
use crate::fault::{FaultError, FaultSpec, FaultState, Faults};
use crate::plan::Plan;
use crate::seed::{Seed, SeedError, Seeded};
use crate::state::{Bucket, Database, KvNamespace, Queue, TokenStatus, World, Zone};

/// A simulated Cloudflare. Clones are handles of the same one.
#[derive(Clone)]
pub struct Simulator {
    shared: Arc<Shared>,
}

struct Shared {
    core: Mutex<Core>,
    /// The version of the world, for those who save it.
    version: watch::Sender<u64>,
}

/// Everything behind the lock.
pub(crate) struct Core {
    pub(crate) config: SimConfig,
    pub(crate) world: World,
    pub(crate) faults: Faults,
    pub(crate) calls: CallLog,
    pub(crate) budgets: Budgets,
    pub(crate) rng: SmallRng,
}

impl Core {
    /// The pause before the next answer.
    pub(crate) fn latency(&mut self) -> Duration {
        let (min, max) = self.config.latency.bounds();
        let spread = u64::try_from(max.saturating_sub(min).as_millis()).unwrap_or(u64::MAX);
        if spread == 0 {
            min
        } else {
            min + Duration::from_millis(self.rng.random_range(0..=spread))
        }
    }
}

impl std::fmt::Debug for Simulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator").finish_non_exhaustive()
    }
}

impl Simulator {
    /// An empty cloud.
    pub fn new(config: SimConfig) -> Self {
        let core = Core {
            world: World::new(config.seed, config.history),
            faults: Faults::default(),
            calls: CallLog::new(config.call_log_limit),
            budgets: Budgets::default(),
            rng: SmallRng::seed_from_u64(config.seed),
            config,
        };
        let (version, _) = watch::channel(0);
        Self {
            shared: Arc::new(Shared {
                core: Mutex::new(core),
                version,
            }),
        }
    }

    /// Works on everything behind the lock; those who save the world hear of it when it changed.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let result = work(&mut core);
        let version = core.world.version();
        drop(core);
        self.shared
            .version
            .send_if_modified(|known| std::mem::replace(known, version) != version);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.shared.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of every change of what is held.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// Adds to what is held.
    pub fn seed(&self, seed: &Seed) -> Result<Seeded, SeedError> {
        self.with(|core| {
            let now = core.config.clock.now();
            seed.apply(&mut core.world, core.config.quirks, now)
        })
    }

    /// Empties the cloud: as if made anew with the same configuration. The clock goes on.
    pub fn reset(&self) {
        self.with(|core| {
            let config = core.config.clone();
            let held = World::new(config.seed, config.history).held().clone();
            core.world.replace(held);
            core.faults = Faults::default();
            core.calls = CallLog::new(config.call_log_limit);
            core.budgets = Budgets::default();
            core.rng = SmallRng::seed_from_u64(config.seed);
        });
    }

    /// Arms a fault; the number is for [`Simulator::remove_fault`].
    pub fn add_fault(&self, spec: FaultSpec) -> Result<u64, FaultError> {
        self.with(|core| core.faults.add(spec))
    }

    /// Disarms one fault. Tells whether it was there.
    pub fn remove_fault(&self, id: u64) -> bool {
        self.with(|core| core.faults.remove(id))
    }

    /// Disarms every fault.
    pub fn clear_faults(&self) {
        self.with(|core| core.faults.clear());
    }

    /// The armed faults, with how often they matched and fired.
    pub fn faults(&self) -> Vec<FaultState> {
        self.lock().faults.states()
    }

    /// Every logged call, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.calls_since(0)
    }

    /// The logged calls after this number.
    pub fn calls_since(&self, sequence: u64) -> Vec<CallRecord> {
        self.lock().calls.since(sequence)
    }

    /// Calls by method and route template, for example `GET /zones/{zone_id}`.
    pub fn call_counts(&self) -> BTreeMap<String, u64> {
        self.lock().calls.counts()
    }

    /// Forgets the logged calls and their counts; numbering goes on.
    pub fn clear_calls(&self) {
        self.with(|core| core.calls.clear());
    }

    /// The simulator's present.
    pub fn now(&self) -> Timestamp {
        self.lock().config.clock.now()
    }

    /// Moves the clock forward, and lets happen what becomes due.
    pub fn advance(&self, by: Duration) -> Timestamp {
        self.with(|core| {
            core.config.clock.advance(by);
            let now = core.config.clock.now();
            zones::settle(&mut core.world, core.config.activation, now);
            lists::settle(&mut core.world, now);
            now
        })
    }

    /// Names the present, so that [`Fault::StaleList`](crate::Fault::StaleList) can show it later. History since the
    /// oldest mark is kept for ever.
    pub fn mark(&self, name: &str) {
        self.with(|core| core.world.mark(name.to_owned()));
    }

    /// Sets the call budgets, and clears what was used of them; `None` switches them off.
    pub fn set_rate_limit(&self, limit: Option<RateLimit>) {
        self.with(|core| {
            core.config.rate_limit = limit;
            core.budgets.clear();
        });
    }

    /// Sets how long operations on list items take that are asked for from now on.
    pub fn set_bulk_operations(&self, durations: BulkOperations) {
        self.with(|core| core.config.bulk_operations = durations);
    }

    /// Sets the forms of answers.
    pub fn set_quirks(&self, quirks: Quirks) {
        self.with(|core| core.config.quirks = quirks);
    }

    /// The forms of answers.
    pub fn quirks(&self) -> Quirks {
        self.lock().config.quirks
    }

    /// Every zone, as the API shows them, by id.
    pub fn zones(&self) -> Vec<Value> {
        let core = self.lock();
        core.world
            .zones(None)
            .iter()
            .map(|zone| zones::render(zone, &core.world))
            .collect()
    }

    /// The records of a zone (by id or name), as the API shows them, by id. `None`: there is no such zone.
    pub fn records(&self, zone: &str) -> Option<Vec<Value>> {
        let core = self.lock();
        let zone = core.world.find_zone(zone)?;
        let records = core.world.records(&zone.id);
        Some(records.iter().map(|record| record.render(core.config.quirks)).collect())
    }

    /// Every KV namespace, as the API shows them, by id.
    pub fn kv_namespaces(&self) -> Vec<Value> {
        let core = self.lock();
        core.world.stored::<KvNamespace>().map(|it| kv::render(it)).collect()
    }

    /// Every R2 bucket, as the API shows them alone, with its rules and how many objects are in it.
    pub fn r2_buckets(&self) -> Vec<Value> {
        let core = self.lock();
        let shown = core.world.stored::<Bucket>().map(|bucket| {
            let mut shown = r2::render(bucket, core.config.quirks);
            shown["objects"] = json!(bucket.objects);
            shown["cors"] = json!(bucket.cors);
            shown["lifecycle"] = json!(bucket.lifecycle);
            shown
        });
        shown.collect()
    }

    /// Every D1 database, as the API shows them alone, by id.
    pub fn d1_databases(&self) -> Vec<Value> {
        let core = self.lock();
        let databases = core.world.stored::<Database>();
        databases.map(|it| d1::render(it, d1::Shape::Single)).collect()
    }

    /// Every queue, as the API shows them alone, by id.
    pub fn queues(&self) -> Vec<Value> {
        let core = self.lock();
        let all = core.world.stored::<Queue>();
        all.map(|it| queues::render(it, queues::Shape::Single, &core.world))
            .collect()
    }

    /// Leaves so many objects in a bucket, as those who use it would. `jurisdiction` is `default` where there is none.
    pub fn set_objects(&self, account: &str, jurisdiction: &str, bucket: &str, objects: u64) -> Result<(), Refusal> {
        self.with(|core| {
            let found = core
                .world
                .bucket(account, jurisdiction, bucket)
                .ok_or_else(r2::unknown)?;
            let bucket = Bucket {
                objects,
                ..Bucket::clone(found)
            };
            let now = core.config.clock.now();
            core.world.put_stored(bucket, now);
            Ok(())
        })
    }

    /// Makes a pending zone (by id or name) active, as when the registrar names its name servers.
    pub fn activate_zone(&self, zone: &str) -> Result<(), Refusal> {
        self.change_zone(zone, zones::activate)
    }

    /// Puts a zone (by id or name) on a plan at once, as the sales desk would.
    pub fn set_zone_plan(&self, zone: &str, plan: Plan) -> Result<(), Refusal> {
        self.change_zone(zone, |zone, now| {
            zone.plan = plan;
            zone.plan_pending = None;
            zone.modified_on = now;
        })
    }

    /// Deletes a zone (by id or name) with everything in it, as somebody else would.
    pub fn foreign_delete_zone(&self, zone: &str) -> Result<(), Refusal> {
        self.with(|core| {
            let id = core.world.find_zone(zone).ok_or_else(zones::unknown)?.id.clone();
            let now = core.config.clock.now();
            core.world.remove_zone(&id, now);
            Ok(())
        })
    }

    fn change_zone(&self, zone: &str, change: impl FnOnce(&mut Zone, Timestamp)) -> Result<(), Refusal> {
        self.with(|core| {
            let mut zone = Zone::clone(core.world.find_zone(zone).ok_or_else(zones::unknown)?);
            let now = core.config.clock.now();
            change(&mut zone, now);
            core.world.put_zone(zone, now);
            Ok(())
        })
    }

    /// Switches a token off, as its owner would in the dashboard. Tells whether there is one of that value.
    pub fn disable_token(&self, value: &str) -> bool {
        self.with(|core| {
            let now = core.config.clock.now();
            let mut found = false;
            core.world.administer(now, |held| {
                for token in held.tokens.values_mut().filter(|token| token.value == value) {
                    token.status = TokenStatus::Disabled;
                    found = true;
                }
            });
            found
        })
    }

    /// Creates a record as somebody else would: without token, budget or log, and past the quota. The zone is named by id
    /// or name; the answer is the record.
    pub fn foreign_create(&self, zone: &str, body: &Map<String, Value>) -> Result<Value, Refusal> {
        self.foreign(zone, |writer| writer.create(body, Quota::Ignored))
    }

    /// Merges a change into a record as somebody else would, also into one that another product manages.
    pub fn foreign_patch(&self, zone: &str, id: &str, body: &Map<String, Value>) -> Result<Value, Refusal> {
        self.foreign(zone, |writer| writer.change(id, body, Change::Merge))
    }

    /// Deletes a record as somebody else would, also one that another product manages.
    pub fn foreign_delete(&self, zone: &str, id: &str) -> Result<(), Refusal> {
        self.foreign(zone, |writer| writer.delete(id)).map(|_| ())
    }

    fn foreign(
        &self,
        zone: &str,
        work: impl FnOnce(&mut Writer<'_>) -> Result<crate::areas::dns::Record, Refusal>,
    ) -> Result<Value, Refusal> {
        self.with(|core| {
            let zone = Zone::clone(core.world.find_zone(zone).ok_or_else(zones::unknown)?);
            let mut writer = Writer {
                now: core.config.clock.now(),
                world: &mut core.world,
                zone: &zone,
                quirks: core.config.quirks,
                managed: Managed::Open,
            };
            let record = work(&mut writer)?;
            Ok(record.render(core.config.quirks))
        })
    }

    /// Everything that is held, as the API shows it. Token values are left out.
    pub fn dump(&self) -> Value {
        let (namespaces, buckets, databases) = (self.kv_namespaces(), self.r2_buckets(), self.d1_databases());
        let queues = self.queues();
        let core = self.lock();
        let held = core.world.held();
        let zones = held.zones.values().map(|zone| {
            let mut shown = zones::summary(zone, &core.world);
            let records = core.world.records(&zone.id);
            let records: Vec<Value> = records.iter().map(|record| record.render(core.config.quirks)).collect();
            shown.insert("records".into(), records.into());
            let rulesets = core.world.rulesets(&zone.id, None);
            let rulesets: Vec<Value> = rulesets
                .iter()
                .map(|ruleset| ruleset.render(core.config.quirks))
                .collect();
            shown.insert("rulesets".into(), rulesets.into());
            shown.insert("managed_transforms".into(), managed_headers::render(zone, &core.world));
            let routes = core.world.worker_routes(&zone.id, None);
            shown.insert("worker_routes".into(), json!(routes));
            Value::Object(shown)
        });
        let tokens = held.tokens.values().map(|token| {
            json!({
                "id": token.id,
                "name": token.name,
                "owner": token.owner,
                "status": token.status,
                "permissions": token.grants,
            })
        });
        let now = core.config.clock.now();
        let tunnels = held.tunnels.values().map(|tunnel| {
            let mut shown = tunnel.render_with_connections(now);
            shown.insert("configuration".into(), tunnel.render_configuration());
            shown
        });
        let users = held
            .users
            .values()
            .map(|user| json!({ "id": user.id, "email": user.email, "accounts": user.accounts }));
        let workers = held
            .accounts
            .keys()
            .flat_map(|account| core.world.scripts(account, None));
        let workers = workers.map(|script| crate::areas::workers::shown(&script));
        json!({
            "now": core.config.clock.now(),
            "accounts": held.accounts.values().collect::<Vec<_>>(),
            "users": users.collect::<Vec<_>>(),
            "tokens": tokens.collect::<Vec<_>>(),
            "zones": zones.collect::<Vec<_>>(),
            "kv_namespaces": namespaces,
            "r2_buckets": buckets,
            "d1_databases": databases,
            "queues": queues,
            "lists": lists::dump(&core.world),
            "workers": workers.collect::<Vec<_>>(),
            "tunnels": tunnels.collect::<Vec<_>>(),
        })
    }
}
