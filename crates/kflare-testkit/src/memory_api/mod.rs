//! A Kubernetes API server in memory, for simulations on tokio's paused clock.
//!
//! [`MemoryApi::client`] gives a real `kube::Client`; below it there is no network, no thread and no chance that does
//! not come from the seed. Objects follow the rules of a real server: versions and conflicts, generations, finalizers,
//! the `/status` endpoint, paged lists that show one moment, watches with bookmarks and expiry, metadata-only answers.
//!
//! What it does not model, and says so where one can ask for it (404, 405, 406, 415 or a 400): schemas and CEL (see
//! [`ResourceType::with_admission`]), field ownership (server-side apply is a merge), strategic merge patches, garbage
//! collection by owner of anything but Secrets, conversion between versions, access rights, aggregated discovery. Namespaces need not exist.

mod collector;
mod config;
mod direct;
mod discovery;
mod fault;
mod handle;
mod patch;
mod read;
mod record;
mod refusal;
mod representation;
mod resource;
mod route;
mod selector;
mod service;
mod store;
mod watch;
mod world;
mod write;

use kube::Client;
use tower::service_fn;

pub use self::config::{ExpiredWatch, MemoryApiConfig, WatchCut};
pub use self::fault::{Fault, FaultRule, RequestInfo, Symptom};
pub use self::record::RequestRecord;
pub use self::resource::{Admission, ObjectId, Operation, ResourceType};
pub use self::route::Verb;
use self::world::Shared;
use crate::clock::VirtualClock;
use crate::life::Life;
use crate::trace::Trace;

/// The server. Clones are the same server.
#[derive(Clone, Debug)]
pub struct MemoryApi {
    shared: Shared,
}

impl MemoryApi {
    /// An empty server that serves no kinds yet. Its clock starts now, so create it inside the runtime.
    pub fn new(config: MemoryApiConfig) -> Self {
        Self {
            shared: Shared::new(config),
        }
    }

    /// Serves a kind from now on, as when its CRD is installed. Replaces one with the same group and plural.
    pub fn register(&self, resource: ResourceType) {
        let mut world = self.shared.lock();
        world.resources.retain(|it| it.qualified() != resource.qualified());
        world.resources.push(resource);
    }

    /// Stops serving a kind, as when its CRD is removed: its objects vanish and its watches end. `qualified` is
    /// `plural.group`, or the plural alone in the core group.
    pub fn unregister(&self, qualified: &str) {
        self.cut_watches(qualified, WatchCut::Clean);
        let mut world = self.shared.lock();
        world.resources.retain(|it| it.qualified() != qualified);
        world.store.forget(qualified);
    }

    /// A client of one life of the controller. It stops reaching the server when the life ends. Its default namespace
    /// is `default`. Must be called inside the runtime.
    pub fn client(&self, life: &Life) -> Client {
        let (api, life) = (self.clone(), life.clone());
        let service =
            service_fn(move |request| service::serve::<kube::client::Body>(api.clone(), life.clone(), request));
        Client::new(service, "default")
    }

    /// Adds a fault rule after those there are; the first that strikes a request decides.
    pub fn inject(&self, rule: FaultRule) {
        self.shared.lock().faults.push(rule);
    }

    /// What [`Fault::Overtake`] has removed, as it last was.
    pub fn overtaken(&self) -> Vec<serde_json::Value> {
        self.shared.lock().overtaken.clone()
    }

    /// Removes all fault rules.
    pub fn heal(&self) {
        self.shared.lock().faults.clear();
    }

    /// Runs `hook` for every request of every client before it has its effect: the place to let someone else change an
    /// object at exactly the wrong moment. The hook may use the server it is given.
    pub fn before_each(&self, hook: impl Fn(&Self, &RequestInfo) + Send + Sync + 'static) {
        self.shared.lock().hooks.push(std::sync::Arc::new(hook));
    }

    /// Cuts all open watches of a kind (`plural.group`, or the plural alone in the core group).
    pub fn cut_watches(&self, qualified: &str, cut: WatchCut) {
        for open in self
            .shared
            .lock()
            .watches
            .values_mut()
            .filter(|open| open.resource == qualified)
        {
            open.cut = Some(cut);
        }
        self.shared.announce();
    }

    /// Forgets the past: watches and continued lists from before now get 410, also those that are behind already.
    pub fn compact(&self) {
        self.shared.lock().store.compact();
        self.shared.announce();
    }

    /// How many watches are open.
    pub fn open_watches(&self) -> usize {
        self.shared.lock().watches.len()
    }

    /// The newest `resourceVersion`.
    pub fn revision(&self) -> u64 {
        self.shared.lock().store.revision()
    }

    /// All requests so far; none with [`TraceDetail::DigestOnly`](crate::trace::TraceDetail::DigestOnly).
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.lock().records.clone()
    }

    /// How many requests there were so far.
    pub fn request_count(&self) -> u64 {
        self.shared.lock().next_request - 1
    }

    /// Where everything is recorded.
    pub fn trace(&self) -> &Trace {
        self.shared.trace_log()
    }

    /// The wall clock that timestamps follow.
    pub fn clock(&self) -> VirtualClock {
        self.shared.clock()
    }
}
