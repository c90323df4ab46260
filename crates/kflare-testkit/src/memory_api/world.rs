//! Everything a server holds, and how its parts reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::MemoryApi;
use super::config::MemoryApiConfig;
use super::fault::{FaultRule, RequestInfo};
use super::record::RequestRecord;
use super::resource::ResourceType;
use super::store::Store;
use super::watch::OpenWatch;
use crate::clock::VirtualClock;
use crate::trace::Trace;

/// Runs before a request has its effect.
pub(super) type Hook = Arc<dyn Fn(&MemoryApi, &RequestInfo) + Send + Sync>;

pub(super) struct World {
    pub(super) config: MemoryApiConfig,
    pub(super) store: Store,
    pub(super) rng: StdRng,
    pub(super) resources: Vec<ResourceType>,
    pub(super) faults: Vec<FaultRule>,
    pub(super) hooks: Vec<Hook>,
    /// By number, in the order they were opened.
    pub(super) watches: BTreeMap<u64, OpenWatch>,
    pub(super) next_watch: u64,
    pub(super) next_request: u64,
    pub(super) records: Vec<RequestRecord>,
    /// What [`Fault::Overtake`](super::Fault::Overtake) has removed.
    pub(super) overtaken: Vec<serde_json::Value>,
}

/// The server's state, shared by its clients, watches and test users.
#[derive(Clone)]
pub(super) struct Shared {
    inner: Arc<Inner>,
}

struct Inner {
    world: Mutex<World>,
    /// Wakes watches: something changed, or a watch was cut.
    changed: Notify,
    clock: VirtualClock,
    trace: Trace,
}

impl Shared {
    pub(super) fn new(config: MemoryApiConfig) -> Self {
        let clock = VirtualClock::new(config.epoch);
        let trace = config.trace.clone();
        let world = World {
            store: Store::new(config.history_limit),
            rng: StdRng::seed_from_u64(config.seed),
            resources: Vec::new(),
            faults: Vec::new(),
            hooks: Vec::new(),
            watches: BTreeMap::new(),
            next_watch: 1,
            next_request: 1,
            records: Vec::new(),
            overtaken: Vec::new(),
            config,
        };
        let changed = Notify::new();
        Self {
            inner: Arc::new(Inner {
                world: Mutex::new(world),
                changed,
                clock,
                trace,
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.inner.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when watches have something to look at.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.inner.changed.notified()
    }

    pub(super) fn announce(&self) {
        self.inner.changed.notify_waiters();
    }

    pub(super) fn clock(&self) -> VirtualClock {
        self.inner.clock
    }

    pub(super) fn trace_log(&self) -> &Trace {
        &self.inner.trace
    }

    /// Appends a line that begins with the virtual time.
    pub(super) fn trace(&self, what: &str) {
        self.inner
            .trace
            .push(format!("{} k8s {what}", self.inner.clock.stamp()));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.lock();
        formatter
            .debug_struct("MemoryApi")
            .field("resources", &world.resources)
            .field("revision", &world.store.revision())
            .finish_non_exhaustive()
    }
}
