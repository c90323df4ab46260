//! What all passes of one process share.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kflare_cloudflare::Client;
use tokio::{sync::Notify, time::Instant};

use crate::{
    batch::Batches,
    clock::{Chance, WallClock},
    cluster::{Cluster, Event},
    collections::Collections,
    contest::Contests,
    credentials::SecretCredentials,
    decide::Claims,
    index::{CollectionKey, Index, Wake},
    intent::Intent,
    kind::{Kind, KindDescriptor, Remote},
    kinds::Kinds,
    metrics::Metrics,
    mutation::{self, Mutation},
    object::{Object, ObjectKey, Recorded},
    operations::Operations,
    order::Arrangement,
    plan::Plan,
    queue::{Priority, Queue},
    refusals::Refusals,
    report,
    resolve::{Defaults, ParentRule, Prepared, prepare},
    vanished::Vanished,
    yields,
};

/// Passes that wait for a batch do not hold a worker, up to this many: a hundred new records in each of twenty zones find a place,
/// and what else waits at that time.
const PARKED: usize = 2400;

/// Events that wait to be written; more are given up.
const EVENTS: usize = 2000;

/// What the operator's flags decide.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Defaults of policies.
    pub defaults: Defaults,
    /// How long one pass may take. None: for ever.
    pub reconcile_timeout: Option<Duration>,
    /// Passes at a time, per kind.
    pub concurrency: usize,
    /// Namespaces to watch; empty means all.
    pub namespaces: Vec<String>,
    /// Kinds to manage; empty means all. The others are watched all the same, because their references protect what is
    /// managed from deletion.
    pub managed: BTreeSet<String>,
}

impl Settings {
    /// Whether resources of `kind` are managed.
    pub fn manages(&self, kind: &str) -> bool {
        self.managed.is_empty() || self.managed.contains(kind)
    }
}

/// See the module.
pub struct Context {
    pub(crate) kinds: Kinds,
    pub(crate) settings: Settings,
    pub(crate) cluster: Cluster,
    pub(crate) credentials: SecretCredentials,
    pub(crate) collections: Collections,
    pub(crate) batches: Batches,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) chance: Chance,
    pub(crate) wake: Notify,
    pub(crate) report_turns: report::Turns,
    index: Mutex<Index>,
    queue: Mutex<Queue>,
    contests: Mutex<Contests>,
    refusals: Mutex<Refusals>,
    operations: Mutex<Operations>,
    /// By the UID of the resource and the time at which it announced a create.
    tries: Mutex<BTreeMap<String, BTreeMap<Timestamp, Try>>>,
    vanished: Mutex<Vanished>,
    events: Mutex<VecDeque<Event>>,
    workers: Mutex<Workers>,
}

/// What was seen of a create.
#[derive(Clone, Debug)]
pub(crate) enum Try {
    /// It surely had no effect.
    Unsent,
    /// It may have had one, and was over by then.
    Over(Timestamp),
    /// It made the object of that id.
    Made(Arc<str>),
}

#[derive(Default)]
struct Workers {
    active: BTreeMap<Arc<str>, usize>,
    parked: usize,
}

/// What a [`Context`] is made of.
pub(crate) struct Parts {
    pub kinds: Kinds,
    pub settings: Settings,
    pub cluster: Cluster,
    pub credentials: SecretCredentials,
    pub metrics: Metrics,
    pub clock: Arc<dyn WallClock>,
    pub chance: Chance,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            index: Mutex::new(Index::new(parts.kinds.clone())),
            kinds: parts.kinds,
            settings: parts.settings,
            cluster: parts.cluster,
            credentials: parts.credentials,
            collections: Collections::default(),
            batches: Batches::new(parts.metrics.clone()),
            metrics: parts.metrics,
            clock: parts.clock,
            chance: parts.chance,
            wake: Notify::new(),
            report_turns: report::Turns::default(),
            queue: Mutex::default(),
            contests: Mutex::default(),
            refusals: Mutex::default(),
            operations: Mutex::default(),
            tries: Mutex::default(),
            vanished: Mutex::default(),
            events: Mutex::default(),
            workers: Mutex::default(),
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.index)
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    pub(crate) fn contests(&self) -> MutexGuard<'_, Contests> {
        lock(&self.contests)
    }

    pub(crate) fn refusals(&self) -> MutexGuard<'_, Refusals> {
        lock(&self.refusals)
    }

    pub(crate) fn operations(&self) -> MutexGuard<'_, Operations> {
        lock(&self.operations)
    }

    pub(crate) fn vanished(&self) -> MutexGuard<'_, Vanished> {
        lock(&self.vanished)
    }

    /// Something changed in a collection: what was refused there may be possible now.
    pub(crate) fn wake_refused(&self, collection: &CollectionKey) {
        let refused = self.refusals().within(collection);
        self.wake_all(refused.into_iter().map(|key| (key, Priority::Dependent)).collect());
    }

    /// Queues what a change of the store concerns.
    pub(crate) fn wake_all(&self, wakes: Vec<Wake>) {
        if wakes.is_empty() {
            return;
        }
        let index = self.index();
        let mut queue = self.queue();
        for (key, priority) in wakes {
            if self.settings.manages(&key.kind) && (index.get(&key).is_some() || self.vanished().has(&key)) {
                queue.add(&key, priority);
            }
        }
        self.wake.notify_one();
    }

    /// Takes the answer to our own write into the store. Nothing that we write is a reason for a pass over the resource
    /// itself; if the answer holds one all the same, somebody else has changed the resource meanwhile.
    pub(crate) fn wrote(&self, object: Object) -> Arc<Object> {
        let key = object.key.clone();
        let given = Arc::new(object.clone());
        let wakes = self.index().apply_own(object);
        self.wake_all(wakes);
        let known = self.index().get(&key);
        known.unwrap_or_else(|| {
            // Our finalizer was the last: the watch has nothing to add.
            self.forget(&given);
            given
        })
    }

    /// The order of a collection as last listed, with `joining` in it.
    pub(crate) fn arrangement(&self, collection: &CollectionKey, joining: &Object) -> Arrangement {
        Arrangement::of(&self.index(), &self.kinds, &self.collections, collection, joining)
    }

    /// See [`crate::yields::is_in_order`]; for the object that is recorded.
    pub(crate) fn yield_is_in_order(&self, object: &Object, kind: &dyn Kind) -> bool {
        let recorded = object.recorded(kind.descriptor().id_field());
        yields::is_in_order(self.index().yielded(), kind, object, recorded.id.as_deref())
    }

    pub(crate) fn prepare(&self, object: &Object) -> Result<Prepared, Plan> {
        prepare(
            &self.index(),
            &self.kinds,
            object,
            self.settings.defaults,
            ParentRule::MustExist,
        )
    }

    /// What is remembered of the remote object. An intent counts only if it was sealed with the key of `client` and was
    /// not seen to fail without an effect.
    pub(crate) fn recorded(&self, object: &Object, client: &Client) -> Recorded {
        let mut recorded = self.recorded_unproven(object);
        recorded.intent = recorded
            .intent
            .filter(|it| client.seal(&it.sealed_text(&object.uid)).as_ref() == Some(&it.seal));
        recorded
    }

    /// As [`Self::recorded`], with an intent that may not be ours: good enough to see that there is something to look at.
    pub(crate) fn recorded_unproven(&self, object: &Object) -> Recorded {
        let id_field = self
            .kinds
            .get(&object.key.kind)
            .and_then(|kind| kind.descriptor().id_field());
        let mut recorded = object.recorded(id_field);
        if let Some(intent) = recorded.intent.take() {
            let tries = lock(&self.tries);
            recorded.intent = match tries.get(&object.uid).and_then(|seen| seen.get(&intent.at)) {
                Some(Try::Unsent) => None,
                Some(Try::Over(over)) => Some(Intent {
                    over: Some(*over),
                    ..intent
                }),
                Some(Try::Made(id)) => Some(Intent {
                    id: Some(id.to_string()),
                    ..intent
                }),
                None => Some(intent),
            };
        }
        recorded
    }

    /// Notes what is known of the create that `intent` announced; none while it is under way: then the resource names this one, and
    /// what was known of those before is of no use.
    pub(crate) fn note_try(&self, object: &Object, intent: &Intent, seen: Option<Try>) {
        // Of one that is gone, and has left nothing, nothing is kept.
        let known = self
            .index()
            .get(&object.key)
            .is_some_and(|known| known.uid == object.uid);
        if !known && !self.vanished().has(&object.key) {
            return;
        }
        let mut tries = lock(&self.tries);
        match seen {
            Some(seen) => drop(tries.entry(object.uid.clone()).or_default().insert(intent.at, seen)),
            None => drop(tries.remove(&object.uid)),
        }
    }

    /// Whether there is anything to do for a resource of that name: it is known, or what it has left is still to be dealt with.
    pub(crate) fn concerns(&self, key: &ObjectKey) -> bool {
        self.index().get(key).is_some() || self.vanished().has(key)
    }

    /// The object that a create made is recorded: what was seen of the create is of no use any more.
    pub(crate) fn forget_tries(&self, object: &Object) {
        lock(&self.tries).remove(&object.uid);
    }

    /// Forgets what was kept in memory about an object that is gone.
    pub(crate) fn forget(&self, object: &Object) {
        self.contests().forget(&object.uid);
        self.refusals().forget(&object.uid);
        self.operations().forget(&object.uid);
        self.credentials.forget(&object.key);
        lock(&self.tries).remove(&object.uid);
    }

    /// How much is kept in memory, by what keeps it.
    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let mut sizes = self.index().sizes().to_vec();
        sizes.extend(self.collections.sizes());
        sizes.extend([
            ("queue", self.queue().size()),
            ("contests", self.contests().size()),
            ("creates", lock(&self.tries).len()),
            ("operations", self.operations().size()),
            ("vanished", self.vanished().size()),
            ("events", lock(&self.events).len()),
            ("batches", self.batches.size()),
            ("clients", self.credentials.size()),
        ]);
        sizes
    }

    pub(crate) fn tell(&self, event: Event) {
        let mut events = lock(&self.events);
        if events.len() >= EVENTS {
            self.metrics.event_dropped();
            return;
        }
        events.push_back(event);
        drop(events);
        self.wake.notify_one();
    }

    pub(crate) fn next_event(&self) -> Option<Event> {
        lock(&self.events).pop_front()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a worker for `kind` is free.
    pub(crate) fn has_worker(&self, kind: &str) -> bool {
        lock(&self.workers).active.get(kind).copied().unwrap_or(0) < self.settings.concurrency
    }

    pub(crate) fn worker_starts(&self, kind: &Arc<str>) {
        *lock(&self.workers).active.entry(kind.clone()).or_default() += 1;
    }

    pub(crate) fn worker_ends(&self, kind: &Arc<str>) {
        if let Some(active) = lock(&self.workers).active.get_mut(kind) {
            *active = active.saturating_sub(1);
        }
        self.wake.notify_one();
    }

    /// Gives the worker back while the pass waits for a batch. It may go on above the bound for a moment afterwards.
    pub(crate) fn park(&self, kind: &Arc<str>) -> Option<Parked<'_>> {
        {
            let mut workers = lock(&self.workers);
            if workers.parked >= PARKED {
                return None;
            }
            workers.parked += 1;
        }
        self.worker_ends(kind);
        Some(Parked {
            context: self,
            kind: kind.clone(),
        })
    }

    /// When, give or take a tenth, something is to be done that is due in `delay`.
    pub(crate) fn soon(&self, delay: Duration) -> Instant {
        Instant::now() + self.chance.jitter(delay, 0.1)
    }
}

/// A pass that waits without a worker.
pub(crate) struct Parked<'a> {
    context: &'a Context,
    kind: Arc<str>,
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        let mut workers = lock(&self.context.workers);
        workers.parked = workers.parked.saturating_sub(1);
        *workers.active.entry(self.kind.clone()).or_default() += 1;
    }
}

/// The claims of the store, as one resource sees them.
pub(crate) struct ClaimsFor<'a> {
    pub context: &'a Context,
    pub descriptor: &'a KindDescriptor,
    /// That of the collection's account; none: nothing is asked about intents.
    pub client: Option<&'a Client>,
    pub collection: &'a CollectionKey,
    pub asking: &'a Object,
}

impl Claims for ClaimsFor<'_> {
    fn holder(&self, id: &str) -> Option<ObjectKey> {
        if mutation::is(Mutation::ClaimIgnored) {
            return None;
        }
        self.context.index().holder(self.collection, id, &self.asking.key)
    }

    fn announcer(&self, remote: &Remote) -> Option<ObjectKey> {
        let client = self.client?;
        let mut announcers = self.context.index().announcers(self.collection, &remote.key.group);
        // What is still to go is nobody else's either.
        announcers.extend(self.context.vanished().of_kind(&self.asking.key.kind));
        let others = announcers.iter().filter(|other| other.uid != self.asking.uid);
        let made = others.filter(|other| {
            let intent = self.context.recorded(other, client).intent;
            let intent = intent.filter(|it| it.scope == *self.collection.scope);
            intent.is_some_and(|it| it.made(remote, self.descriptor.nature, client.server_time()))
        });
        made.map(|other| other.key.clone()).next()
    }
}
