//! The run loop: feeds the store from the watches, hands due objects to workers, carries out sweeps and Events, and stops
//! cleanly. One future, polled by one task: it spawns nothing itself and owns its time, so that a simulation can run, kill and
//! replay it whole.

mod intake;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{BoxStream, FuturesUnordered},
};
use kflare_cloudflare::{Pool, WriteGate};
use kube::Client;
use tokio::time::Instant;
use tracing::Instrument;

use crate::{
    clock::{Chance, WallClock},
    cluster::{Cluster, Protection},
    context::{Context, Parts, Settings},
    credentials::SecretCredentials,
    errors::Class,
    index::{CollectionKey, Wake},
    kind::{KindDescriptor, ResourceScope},
    kinds::Kinds,
    lease::{Elector, Leadership, LeaseOptions, Lost},
    limits::limited,
    metrics::{Metrics, PassResult},
    mutation::{self, Mutation},
    object::{Object, ObjectKey, SecretKey},
    pass::{self, Next},
    policy::is_paused,
    queue::{Priority, backoff},
    sweep::{self, Extent, Schedule},
    watch::{self, Fed, Watched},
};

use intake::FeedState;

/// How often metrics are brought up to date and idle snapshots dropped.
const HOUSEKEEPING: Duration = Duration::from_secs(15);

/// Events written at a time.
const EVENT_WRITERS: usize = 4;

/// How long running passes may take to end when the process is asked to stop.
const GRACE: Duration = Duration::from_secs(25);

/// What an engine is made of. Clock, chance, the Kubernetes client and the Cloudflare transport (inside `pool`) come from
/// outside.
pub struct EngineOptions {
    /// The kinds.
    pub kinds: Kinds,
    /// The operator's settings.
    pub settings: Settings,
    /// The Kubernetes client.
    pub client: Client,
    /// The Cloudflare clients.
    pub pool: Pool,
    /// The wall clock.
    pub clock: Arc<dyn WallClock>,
    /// Seed of all jitter.
    pub seed: u64,
    /// Metrics.
    pub metrics: Metrics,
    /// Leader election; none runs alone.
    pub lease: Option<LeaseOptions>,
}

/// Why an engine stopped without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The leader lease was lost.
    #[error(transparent)]
    LeaseLost(#[from] Lost),
    /// The watches ended.
    #[error("the watches ended")]
    WatchesEnded,
}

/// What probes ask.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// The store is filled: a leader works, a standby could take over at once.
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// See the module.
pub struct Engine {
    context: Arc<Context>,
    client: Client,
    leadership: Leadership,
    elector: Option<Elector>,
    readiness: Readiness,
}

struct LeaderGate(Leadership);

impl WriteGate for LeaderGate {
    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

impl Engine {
    /// An engine that has not started.
    pub fn new(options: EngineOptions) -> Self {
        let EngineOptions {
            kinds,
            settings,
            client,
            pool,
            clock,
            seed,
            metrics,
            lease,
        } = options;
        let client = limited(&client);
        let leadership = if lease.is_some() {
            Leadership::contender()
        } else {
            Leadership::alone()
        };
        let may_write = {
            let leadership = leadership.clone();
            Arc::new(move || leadership.check())
        };
        let cluster = Cluster::new(client.clone(), kinds.clone(), may_write);
        let gate = Arc::new(LeaderGate(leadership.clone()));
        let credentials = SecretCredentials::new(cluster.clone(), pool, gate);
        let elector = lease.map(|lease| Elector::new(client.clone(), lease, leadership.clone(), clock.clone()));
        let chance = Chance::from_seed(seed);
        let context = Arc::new(Context::new(Parts {
            kinds,
            settings,
            cluster,
            credentials,
            metrics,
            clock,
            chance,
        }));
        Self {
            context,
            client,
            leadership,
            elector,
            readiness: Readiness::default(),
        }
    }

    /// For probes.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Runs until `shutdown` completes, then lets running passes end and releases the lease.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), EngineError> {
        let feeds = self.feeds();
        let mut run = Run {
            watched: feeds.iter().map(|(watched, _)| watched.clone()).collect(),
            states: feeds.iter().map(|_| FeedState::default()).collect(),
            context: self.context.clone(),
            leadership: self.leadership.clone(),
            readiness: self.readiness.clone(),
            working: false,
            schedule: Schedule::default(),
            passes: FuturesUnordered::new(),
            side: FuturesUnordered::new(),
            event_writers: 0,
            event_serial: 0,
            secret_versions: BTreeMap::new(),
            releasing: BTreeSet::new(),
            next_housekeeping: Instant::now(),
        };
        let mut fed = pin!(watch::merge(feeds.into_iter().map(|(_, feed)| feed).collect()));
        let mut shutdown = pin!(shutdown.fuse());
        let mut election: BoxFuture<'_, Elected> = match &self.elector {
            Some(elector) => elector.acquire().map(|()| Elected::Leads).boxed(),
            None => futures::future::ready(Elected::Leads).boxed(),
        };
        let result = loop {
            run.start_work();
            let timer = run.next_timer();
            tokio::select! {
                biased;
                () = &mut shutdown => break Ok(()),
                elected = &mut election => match elected {
                    Elected::Leads => {
                        run.lead();
                        election = match &self.elector {
                            Some(elector) => elector.keep().map(Elected::Lost).boxed(),
                            None => futures::future::pending().boxed(),
                        };
                    }
                    Elected::Lost(lost) => break Err(EngineError::from(lost)),
                },
                Some(done) = run.passes.next(), if !run.passes.is_empty() => run.finish(done),
                Some(done) = run.side.next(), if !run.side.is_empty() => run.finish_side(done),
                next = fed.next() => match next {
                    Some((id, fed)) => run.take(id, fed),
                    None => break Err(EngineError::WatchesEnded),
                },
                () = self.context.wake.notified() => {}
                () = tokio::time::sleep_until(timer) => run.on_timer(),
            }
        };
        self.readiness.0.store(false, Ordering::Relaxed);
        if result.is_ok() {
            // The lease is kept while passes end, so that their last writes are still allowed.
            run.drain(&mut election).await;
            if let Some(elector) = self.elector.as_ref().filter(|_| self.leadership.leads()) {
                elector.release().await;
            }
        }
        self.leadership.end();
        result
    }

    fn feeds(&self) -> Vec<(Watched, BoxStream<'static, Fed>)> {
        let chance = &self.context.chance;
        let namespaces = &self.context.settings.namespaces;
        let mut feeds = Vec::new();
        for kind in self.context.kinds.iter() {
            let descriptor: &KindDescriptor = kind.descriptor();
            let name: Arc<str> = descriptor.kind.as_ref().into();
            let within: Vec<Option<&str>> = match descriptor.resource_scope {
                ResourceScope::Namespaced if !namespaces.is_empty() => {
                    namespaces.iter().map(|it| Some(it.as_str())).collect()
                }
                _ => vec![None],
            };
            for namespace in within {
                let watched = Watched::Kind {
                    kind: name.clone(),
                    namespace: namespace.map(str::to_owned),
                };
                feeds.push((watched, watch::resources(&self.client, descriptor, namespace, chance)));
            }
        }
        feeds.push((
            Watched::Secrets { namespace: None },
            watch::secrets(&self.client, None, chance),
        ));
        feeds.push((Watched::ConfigMaps, watch::config_maps(&self.client, chance)));
        feeds.push((Watched::Namespaces, watch::namespaces(&self.client, chance)));
        feeds
    }
}

enum Elected {
    Leads,
    Lost(Lost),
}

struct PassDone {
    key: ObjectKey,
    next: Next,
    took: Duration,
}

enum SideDone {
    /// What is to be looked at again, and when.
    Swept(Option<(CollectionKey, Extent, Instant)>),
    EventWritten,
    Released(SecretKey, bool),
}

struct Run {
    context: Arc<Context>,
    leadership: Leadership,
    readiness: Readiness,
    watched: Vec<Watched>,
    states: Vec<FeedState>,
    /// Leads, and the store is filled.
    working: bool,
    schedule: Schedule,
    passes: FuturesUnordered<BoxFuture<'static, PassDone>>,
    side: FuturesUnordered<BoxFuture<'static, SideDone>>,
    event_writers: usize,
    event_serial: u64,
    secret_versions: BTreeMap<SecretKey, String>,
    releasing: BTreeSet<SecretKey>,
    next_housekeeping: Instant,
}

impl Run {
    fn synced(&self) -> bool {
        self.states.iter().all(|state| state.synced)
    }

    fn lead(&mut self) {
        self.context.metrics.leader(true);
        tracing::info!("this replica is active");
        self.begin_if_ready();
    }

    /// Once the store is filled and this replica leads: queue what needs a pass, leave alone what is as it should be.
    fn begin_if_ready(&mut self) {
        if !self.synced() {
            return;
        }
        self.context.index().settle_inputs();
        self.readiness.0.store(true, Ordering::Relaxed);
        if self.working || !self.leadership.leads() {
            return;
        }
        self.working = true;
        let objects: Vec<Arc<Object>> = self.context.index().iter().cloned().collect();
        self.queue_unsettled(objects);
        self.schedule.update(&self.context);
    }

    fn queue_unsettled(&self, objects: Vec<Arc<Object>>) {
        let wakes: Vec<Wake> = objects
            .into_iter()
            .filter_map(|object| {
                let kind = self.context.kinds.get(&object.key.kind)?;
                if object.deleting {
                    return Some((object.key.clone(), Priority::Delete));
                }
                let asked = object.annotation(kflare_api::names::RECONCILE_AT)
                    != object.status.get::<String>(&["lastReconcileAt"]).as_deref();
                let at_rest = object.is_ready_at_generation()
                    && !asked
                    && is_paused(&object) == (object.ready().reason == "Paused")
                    && sweep::settled(&object, kind)
                    && self.context.index().inputs_are_current(&object)
                    && self.context.yield_is_in_order(&object, kind);
                // What cannot be listed is checked by a pass of its own, after the others.
                match (at_rest, kind.descriptor().listable) {
                    (true, true) => None,
                    (true, false) => Some((object.key.clone(), Priority::DriftCheck)),
                    (false, _) if object.ready().status.is_empty() => Some((object.key.clone(), Priority::UserChange)),
                    (false, _) => Some((object.key.clone(), Priority::Retry)),
                }
            })
            .collect();
        self.context.wake_all(wakes);
    }

    fn start_work(&mut self) {
        if !self.working {
            return;
        }
        loop {
            let context = &self.context;
            let next = context
                .queue()
                .pop(Instant::now(), &mut |kind| context.has_worker(kind));
            let Some((key, lane)) = next else { break };
            context.worker_starts(&key.kind);
            let span = tracing::error_span!(
                "reconcile",
                kind = %key.kind,
                namespace = key.namespace.as_deref().unwrap_or_default(),
                name = %key.name
            );
            self.passes
                .push(run_pass(context.clone(), key, lane).instrument(span).boxed());
        }
        while self.event_writers < EVENT_WRITERS {
            let Some(event) = self.context.next_event() else { break };
            self.event_writers += 1;
            self.event_serial += 1;
            let (context, serial) = (self.context.clone(), self.event_serial);
            self.side.push(
                async move {
                    let now = context.now();
                    if let Err(error) = context.cluster.create_event(&event, now, serial).await {
                        tracing::debug!(about = %event.about, %error, "event not written");
                    }
                    SideDone::EventWritten
                }
                .boxed(),
            );
        }
        self.release_secrets();
    }

    /// Takes our protection off Secrets that no account reads any more.
    fn release_secrets(&mut self) {
        let accounts_known = self
            .watched
            .iter()
            .zip(&self.states)
            .all(|(watched, state)| match watched {
                Watched::Kind { kind, .. } => {
                    state.listed
                        || !self
                            .context
                            .kinds
                            .get(kind)
                            .is_some_and(|kind| kind.descriptor().provides_credential)
                }
                _ => true,
            });
        if !accounts_known {
            return;
        }
        for secret in self.context.index().unused_protections() {
            if !self.releasing.insert(secret.clone()) {
                continue;
            }
            let context = self.context.clone();
            self.side.push(
                async move {
                    let released = context.cluster.protect_secret(&secret, Protection::Off).await;
                    if let Err(error) = &released {
                        tracing::debug!(%secret, %error, "token protection not released");
                    }
                    let gone = matches!(released, Ok(()) | Err(crate::cluster::ClusterError::NotFound));
                    SideDone::Released(secret, gone)
                }
                .boxed(),
            );
        }
    }

    fn finish(&mut self, done: PassDone) {
        let PassDone { key, next, took } = done;
        self.context.worker_ends(&key.kind);
        let result = match &next {
            Next::Settled => PassResult::Success,
            Next::Retry(class) if class.is_error() => PassResult::Error,
            Next::At(..) | Next::Retry(_) => PassResult::RequeueAfter,
        };
        self.context.metrics.pass(&key.kind, result, took);
        let gone = !self.context.concerns(&key);
        let mut queue = self.context.queue();
        if gone {
            queue.succeeded(&key);
            queue.forget(&key);
            return;
        }
        match next {
            Next::Settled => queue.succeeded(&key),
            Next::At(at, priority) => {
                queue.succeeded(&key);
                queue.add_at(&key, at, priority);
            }
            Next::Retry(class) => {
                let failures = queue.failed(&key);
                let mut delay = self.context.chance.jitter(backoff(failures, class.backoff()), 0.1);
                if mutation::is(Mutation::BackoffForgotten) {
                    delay = Duration::from_secs(1);
                }
                queue.add_at(&key, Instant::now() + delay, Priority::Retry);
            }
        }
    }

    fn finish_side(&mut self, done: SideDone) {
        match done {
            SideDone::Swept(None) => {}
            SideDone::Swept(Some((key, extent, again))) => self.schedule.put_off(key, extent, again),
            SideDone::EventWritten => self.event_writers = self.event_writers.saturating_sub(1),
            SideDone::Released(secret, released) => {
                if released {
                    self.context.index().set_protected(&secret, &[]);
                    self.releasing.remove(&secret);
                }
                // Otherwise housekeeping lets it be tried again.
            }
        }
    }

    fn next_timer(&self) -> Instant {
        let mut at = self.next_housekeeping;
        if self.working {
            let due = [self.context.queue().next_due(), self.schedule.next_due()];
            at = due.into_iter().flatten().fold(at, Instant::min);
        }
        at
    }

    fn on_timer(&mut self) {
        let now = Instant::now();
        if self.working {
            for (key, extent) in self.schedule.take_due(&self.context) {
                let context = self.context.clone();
                self.side.push(
                    async move {
                        let again = sweep::sweep(&context, &key, extent).await;
                        SideDone::Swept(again.map(|again| (key, extent, again)))
                    }
                    .boxed(),
                );
            }
        }
        if now >= self.next_housekeeping {
            self.next_housekeeping = now + HOUSEKEEPING;
            self.housekeeping();
        }
    }

    fn housekeeping(&mut self) {
        let context = &self.context;
        if self.working {
            self.schedule.update(context);
        }
        context.collections.drop_idle();
        self.releasing.clear();
        context.metrics.depth(context.queue().depth());
        context.metrics.snapshot_ages(&context.collections.ages());
        self.secret_versions
            .retain(|secret, _| !context.index().secret_users(secret).is_empty());
        let watched = ("secret_versions", self.secret_versions.len());
        context.metrics.entries(context.sizes().into_iter().chain([watched]));
        for (watched, state) in self.watched.iter().zip(&self.states) {
            if let Some(last) = state.last {
                context.metrics.watch_age(&watched.label(), last.elapsed());
            }
        }
        let mut counts: BTreeMap<(String, String, String), i64> = BTreeMap::new();
        for object in context.index().iter() {
            let ready = object.ready();
            *counts
                .entry((object.key.kind.to_string(), ready.status, ready.reason))
                .or_default() += 1;
        }
        context.metrics.resources(&counts);
    }

    /// Lets running passes and Events end.
    async fn drain(&mut self, election: &mut BoxFuture<'_, Elected>) {
        let deadline = Instant::now() + GRACE;
        self.working = false;
        while !self.passes.is_empty() {
            tokio::select! {
                biased;
                Some(done) = self.passes.next() => self.finish(done),
                Elected::Lost(_) = &mut *election => return,
                () = tokio::time::sleep_until(deadline) => return,
            }
        }
    }
}

async fn run_pass(context: Arc<Context>, key: ObjectKey, lane: Priority) -> PassDone {
    let began = Instant::now();
    let attempt = AssertUnwindSafe(pass::run(&context, &key, lane)).catch_unwind();
    let limit = context.settings.reconcile_timeout;
    let ended = match limit {
        Some(limit) => tokio::time::timeout(limit, attempt).await.map_err(|_| limit),
        None => Ok(attempt.await),
    };
    let next = match ended {
        Ok(Ok(next)) => next,
        Ok(Err(_panic)) => {
            context.metrics.panic(&key.kind);
            tracing::error!(kind = %key.kind, namespace = key.namespace.as_deref(), name = %key.name, "a pass panicked: this is a defect in kflare");
            let message = "kflare met a defect of its own while working on this resource; see its log";
            Box::pin(pass::give_up(&context, &key, lane, Class::Bug, message)).await
        }
        Err(limit) => {
            context.metrics.timeout(&key.kind);
            let message = format!("the pass did not end within {} s", limit.as_secs());
            Box::pin(pass::give_up(&context, &key, lane, Class::Transient, &message)).await
        }
    };
    PassDone {
        key,
        next,
        took: began.elapsed(),
    }
}
