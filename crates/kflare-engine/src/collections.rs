//! Observation by list: one snapshot a collection, taken page by page, shared by look-ups, adoption and drift checks,
//! refreshed by one caller at a time, and void for everything written after it was begun.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use kflare_cloudflare::{Client, Error};
use tokio::time::Instant;

use crate::{
    errors::{Class, Failure},
    index::CollectionKey,
    kind::{Kind, NaturalKey, Remote},
    mutation::{self, Mutation},
    observe::failure,
    queue::backoff,
};

/// A snapshot nobody asked for that long is dropped.
const IDLE: Duration = Duration::from_mins(2);

/// That a container does not exist is believed that long, by everybody who asks for something in it.
const GONE: Duration = Duration::from_secs(30);

/// For that long after our own write a list may lag; what it says about that object is confirmed alone.
const LAG: Duration = Duration::from_mins(1);

/// A listing refused for lack of permission is not tried again for that long; objects are then asked for one by one.
const REFUSED: Duration = Duration::from_hours(1);

/// How long others wait for the write that finds out whether a refused credential is accepted again.
const PROBE: Duration = Duration::from_secs(30);

struct Snapshot {
    began: Instant,
    ended: Instant,
    items: BTreeMap<String, Arc<Remote>>,
    places: BTreeMap<String, Vec<String>>,
}

struct WrittenItem {
    at: Instant,
    /// None: deleted, or its state is not known.
    remote: Option<Arc<Remote>>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Snapshot>,
    written: BTreeMap<String, WrittenItem>,
    last_used: Option<Instant>,
    last_failure: Option<(Instant, Failure)>,
    refused_until: Option<Instant>,
    /// A write with an unknown outcome ended then: older snapshots do not show whether it was carried out.
    doubted: Option<Instant>,
    writes_refused: Option<Refusal>,
}

/// Writes that the credential may not make: one caller at a time finds out whether that has changed.
struct Refusal {
    until: Instant,
    times: u32,
    message: String,
}

impl Refusal {
    fn held(&self) -> Failure {
        Failure::new(Class::Held { until: self.until }, self.message.clone())
    }
}

#[derive(Default)]
struct Collection {
    state: Mutex<State>,
    listing: tokio::sync::Mutex<()>,
}

impl State {
    /// Whether the snapshot is new enough and knows of every write in doubt.
    fn is_fresh(&self, freshness: Freshness) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| {
            let new_enough = match freshness {
                Freshness::BegunAt(at) => snapshot.began >= at,
                Freshness::CompleteAt(at) => snapshot.ended >= at,
            };
            if mutation::is(Mutation::StaleSnapshotTrusted) {
                return true;
            }
            new_enough && self.doubted.is_none_or(|doubted| snapshot.began >= doubted)
        })
    }
}

impl Collection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// How new a snapshot has to be.
#[derive(Clone, Copy, Debug)]
pub enum Freshness {
    /// Begun no earlier: it shows everything that had happened by then.
    BegunAt(Instant),
    /// Complete no earlier. A list that takes longer than it stays fresh would otherwise never be fresh for anybody.
    CompleteAt(Instant),
}

/// How an id stands in a snapshot.
#[derive(Debug, PartialEq)]
pub enum Seen {
    /// It is there.
    Present(Arc<Remote>),
    /// It is not there, or what the list said is void: ask for it alone before believing anything.
    Unsure,
}

/// Why a collection was not listed.
#[derive(Debug)]
pub enum NotListed {
    /// The credential may not list it.
    Refused,
    /// It failed.
    Failed(Failure),
}

/// All snapshots of the process.
#[derive(Default)]
pub struct Collections {
    all: Mutex<BTreeMap<CollectionKey, Arc<Collection>>>,
}

impl Collections {
    fn collection(&self, key: &CollectionKey) -> Arc<Collection> {
        let mut all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.entry(key.clone()).or_default().clone()
    }

    /// Makes sure that there is a snapshot that is new enough. `expected` are ids that should be
    /// in it: a list that lacks many of them is not believed before one of them was asked for alone.
    pub async fn refresh(
        &self,
        key: &CollectionKey,
        kind: &dyn Kind,
        client: &Client,
        freshness: Freshness,
        expected: &(dyn Fn() -> BTreeSet<String> + Sync),
    ) -> Result<(), NotListed> {
        let collection = self.collection(key);
        let asked = Instant::now();
        {
            let mut state = collection.state();
            state.last_used = Some(asked);
            if state.is_fresh(freshness) {
                return Ok(());
            }
            if state.refused_until.is_some_and(|until| until > asked) {
                return Err(NotListed::Refused);
            }
        }
        let _turn = collection.listing.lock().await;
        {
            // Somebody else may have done it while we waited; a failure that ended while we waited is ours too.
            let state = collection.state();
            if state.is_fresh(freshness) {
                return Ok(());
            }
            if let Some((at, failure)) = &state.last_failure
                && (*at >= asked || (failure.class == Class::Missing && at.elapsed() < GONE))
            {
                return Err(NotListed::Failed(failure.clone()));
            }
        }
        let began = Instant::now();
        let listed = list(kind, client, &key.scope, &expected()).await;
        let mut state = collection.state();
        match listed {
            Ok(items) => {
                state
                    .written
                    .retain(|_, written| written.at >= began || written.at.elapsed() < LAG);
                state.snapshot = Some(Snapshot::new(kind, began, items));
                state.last_failure = None;
                Ok(())
            }
            Err(failure) if failure.class == Class::Auth => {
                state.refused_until = Some(Instant::now() + REFUSED);
                Err(NotListed::Refused)
            }
            Err(failure) => {
                state.last_failure = Some((Instant::now(), failure.clone()));
                Err(NotListed::Failed(failure))
            }
        }
    }

    /// Whether the list was refused lately.
    pub fn is_refused(&self, key: &CollectionKey) -> bool {
        let now = Instant::now();
        self.collection(key)
            .state()
            .refused_until
            .is_some_and(|until| until > now)
    }

    /// Whether there is a snapshot that is new enough.
    pub fn is_fresh(&self, key: &CollectionKey, freshness: Freshness) -> bool {
        self.collection(key).state().is_fresh(freshness)
    }

    /// Why a write need not be prepared now: the credential was refused lately.
    pub fn writes_held(&self, key: &CollectionKey) -> Option<Failure> {
        let collection = self.collection(key);
        let state = collection.state();
        let refusal = state.writes_refused.as_ref()?;
        (Instant::now() < refusal.until).then(|| refusal.held())
    }

    /// Asks to send a write. While the credential is refused, one caller is let through when a pause is over, and the
    /// others are told what it was told last.
    pub fn admit_write(&self, key: &CollectionKey) -> Result<(), Failure> {
        let collection = self.collection(key);
        let mut state = collection.state();
        let Some(refusal) = state.writes_refused.as_mut() else {
            return Ok(());
        };
        let now = Instant::now();
        if now < refusal.until {
            return Err(refusal.held());
        }
        refusal.until = now + PROBE;
        Ok(())
    }

    /// A write was carried out: the credential may write here.
    pub fn writes_allowed(&self, key: &CollectionKey) {
        self.collection(key).state().writes_refused = None;
    }

    /// The credential may not write here. The pauses between probes grow with each refusal.
    pub fn refuse_writes(&self, key: &CollectionKey, message: &str) {
        let collection = self.collection(key);
        let mut state = collection.state();
        let now = Instant::now();
        let times = state.writes_refused.as_ref().map_or(0, |refusal| refusal.times);
        // Refusals of calls that were under way together count once.
        if state
            .writes_refused
            .as_ref()
            .is_some_and(|refusal| now + PROBE < refusal.until)
        {
            return;
        }
        let pause = backoff(times + 1, Class::Auth.backoff());
        state.writes_refused = Some(Refusal {
            until: now + pause,
            times: times + 1,
            message: message.to_owned(),
        });
    }

    /// Lets refused lists and writes be tried again (the token has changed).
    pub fn forgive(&self, account: &str) {
        let all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (_, collection) in all.iter().filter(|(key, _)| &*key.account == account) {
            let mut state = collection.state();
            state.refused_until = None;
            state.writes_refused = None;
        }
    }

    /// How `id` stands in the snapshot.
    pub fn seen(&self, key: &CollectionKey, id: &str) -> Seen {
        let collection = self.collection(key);
        let state = collection.state();
        let began = state.snapshot.as_ref().map(|it| it.began);
        match state.written.get(id) {
            Some(written) if began.is_none_or(|began| written.at >= began) => match &written.remote {
                Some(remote) => Seen::Present(remote.clone()),
                None => Seen::Unsure,
            },
            _ => match state.snapshot.as_ref().and_then(|it| it.items.get(id)) {
                Some(remote) => Seen::Present(remote.clone()),
                None => Seen::Unsure,
            },
        }
    }

    /// Whether the list that tells about `id` may not know yet what we wrote last: it was begun after that, but not long after.
    /// A list begun before does not tell about `id` at all: the answer to our write does.
    pub fn may_lag(&self, key: &CollectionKey, id: &str) -> bool {
        let collection = self.collection(key);
        let state = collection.state();
        let listed_since = |at: Instant| state.snapshot.as_ref().is_some_and(|snapshot| snapshot.began > at);
        state
            .written
            .get(id)
            .is_some_and(|written| written.at.elapsed() < LAG && listed_since(written.at))
    }

    /// The objects in the place of `wanted`, what we wrote since included.
    pub fn neighbours(&self, key: &CollectionKey, kind: &dyn Kind, wanted: &NaturalKey) -> Vec<Remote> {
        let place = kind.place(wanted);
        let collection = self.collection(key);
        let state = collection.state();
        let mut found: BTreeMap<String, Arc<Remote>> = BTreeMap::new();
        if let Some(snapshot) = &state.snapshot {
            for id in snapshot.places.get(&place).into_iter().flatten() {
                if let Some(remote) = snapshot.items.get(id) {
                    found.insert(id.clone(), remote.clone());
                }
            }
        }
        for (id, written) in &state.written {
            if state.snapshot.as_ref().is_some_and(|it| written.at < it.began) {
                continue;
            }
            found.remove(id);
            if let Some(remote) = written
                .remote
                .as_ref()
                .filter(|remote| kind.place(&remote.key) == place)
            {
                found.insert(id.clone(), remote.clone());
            }
        }
        found.into_values().map(|remote| (*remote).clone()).collect()
    }

    /// Notes what we wrote: a list begun before now says nothing about it.
    pub fn wrote(&self, key: &CollectionKey, id: &str, remote: Option<Remote>) {
        let collection = self.collection(key);
        let mut state = collection.state();
        // The last write is remembered with or without a snapshot, for lists that are under way.
        state.written.insert(
            id.to_owned(),
            WrittenItem {
                at: Instant::now(),
                remote: remote.map(Arc::new),
            },
        );
    }

    /// A write ended without a word about its outcome: only a list begun from now on can tell.
    pub fn doubt(&self, key: &CollectionKey) {
        self.collection(key).state().doubted = Some(Instant::now());
    }

    /// Age of each snapshot, for metrics.
    pub fn ages(&self) -> Vec<(CollectionKey, Duration)> {
        let all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.iter()
            .filter_map(|(key, it)| it.state().snapshot.as_ref().map(|it| (key.clone(), it.began.elapsed())))
            .collect()
    }

    /// How many collections are known, and how many objects are kept of them.
    pub fn sizes(&self) -> [(&'static str, usize); 2] {
        let all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let objects = all.values().map(|collection| {
            let state = collection.state();
            state.snapshot.as_ref().map_or(0, |it| it.items.len()) + state.written.len()
        });
        [("listings", all.len()), ("listed_objects", objects.sum())]
    }

    /// Drops snapshots nobody used lately, so that memory holds only what is being looked at, and what is known of
    /// collections that nobody uses any more.
    pub fn drop_idle(&self) {
        let now = Instant::now();
        let mut all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.retain(|_, collection| {
            let mut state = collection.state();
            if state.last_used.is_some_and(|used| now.duration_since(used) <= IDLE) {
                return true;
            }
            state.snapshot = None;
            state
                .written
                .retain(|_, written| now.duration_since(written.at) <= IDLE);
            let remembered = !state.written.is_empty()
                || state.refused_until.is_some_and(|until| until > now)
                || state
                    .writes_refused
                    .as_ref()
                    .is_some_and(|refusal| refusal.until + REFUSED > now);
            drop(state);
            // Somebody may be about to list it.
            remembered || Arc::strong_count(collection) > 1
        });
    }
}

impl Snapshot {
    fn new(kind: &dyn Kind, began: Instant, items: Vec<Remote>) -> Self {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut by_id = BTreeMap::new();
        for remote in items {
            places
                .entry(kind.place(&remote.key))
                .or_default()
                .push(remote.id.clone());
            by_id.insert(remote.id.clone(), Arc::new(remote));
        }
        Self {
            began,
            ended: Instant::now(),
            items: by_id,
            places,
        }
    }
}

/// Lists a collection. A list that lacks at least three of the expected objects, and at least half of them, is believed
/// only if one of the missing is really gone: an empty or cut list is more likely than a mass deletion, and acting on it
/// would re-create all.
async fn list(
    kind: &dyn Kind,
    client: &Client,
    scope: &str,
    expected: &BTreeSet<String>,
) -> Result<Vec<Remote>, Failure> {
    let failure = |error: Error| failure(kind, &error);
    let items = match kind.list(client, scope).await.map_err(failure) {
        Err(gone) if gone.class == Class::Missing => {
            return Err(confirmed_gone(kind, client, scope, expected, gone).await);
        }
        listed => listed?,
    };
    let listed: BTreeSet<&str> = items.iter().map(|remote| remote.id.as_str()).collect();
    let missing: Vec<&String> = expected.iter().filter(|id| !listed.contains(id.as_str())).collect();
    if missing.len() >= 3
        && missing.len() * 2 >= expected.len()
        && !mutation::is(Mutation::AbsenceBelieved)
        && let Some(id) = missing.first()
        && kind.get(client, scope, id).await.map_err(failure)?.is_some()
    {
        let message = format!(
            "the list lacks {} objects, and at least one of them exists",
            missing.len()
        );
        return Err(Failure::new(Class::Transient, message));
    }
    Ok(items)
}

/// What it means that a list says that its container does not exist: it is believed only if an object that should be in it is
/// gone as well.
async fn confirmed_gone(
    kind: &dyn Kind,
    client: &Client,
    scope: &str,
    expected: &BTreeSet<String>,
    gone: Failure,
) -> Failure {
    let Some(id) = expected.first() else { return gone };
    match kind.get(client, scope, id).await.map_err(|error| failure(kind, &error)) {
        Ok(Some(_)) => Failure::new(Class::Transient, format!("{}, and yet {id} exists in it", gone.message)),
        Ok(None) => gone,
        Err(failure) if failure.class == Class::Missing => gone,
        Err(failure) => failure,
    }
}
