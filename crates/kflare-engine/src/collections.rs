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
    kind::{Kind, Listing, NaturalKey, Packed, Remote},
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
    /// By id.
    items: Vec<Packed>,
    /// The place of each item with its index, by place.
    places: Vec<(Box<str>, usize)>,
    /// Ids in the order of the collection, where that means something.
    order: Vec<Box<str>>,
    /// See [`Listing::handle`].
    handle: Option<String>,
}

/// What we wrote lately.
#[derive(Default)]
struct Written {
    items: BTreeMap<Box<str>, WrittenItem>,
    /// Place and id of those whose state is known.
    places: BTreeSet<(Box<str>, Box<str>)>,
}

struct WrittenItem {
    at: Instant,
    /// None: deleted, or its state is not known.
    stored: Option<StoredItem>,
}

struct StoredItem {
    place: Box<str>,
    remote: Packed,
}

#[derive(Default)]
struct State {
    snapshot: Option<Snapshot>,
    written: Written,
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
    editing: Arc<tokio::sync::Mutex<()>>,
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

    fn take(&mut self, kind: &dyn Kind, began: Instant, listing: Listing) {
        self.written
            .retain(|written| written.at >= began || written.at.elapsed() < LAG);
        self.snapshot = Some(Snapshot::new(kind, began, listing));
        self.last_failure = None;
    }

    /// What we wrote of `id` since the list was begun: the list does not tell.
    fn written_since_listed(&self, id: &str) -> Option<&WrittenItem> {
        let began = self.snapshot.as_ref().map(|it| it.began);
        let written = self.written.items.get(id)?;
        began.is_none_or(|began| written.at >= began).then_some(written)
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
#[allow(clippy::large_enum_variant, reason = "one at a time, and mostly the large one")]
pub enum Seen {
    /// It is there.
    Present(Remote),
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
            Ok(listing) => {
                state.take(kind, began, listing);
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
        let packed = match state.written_since_listed(id) {
            Some(written) => written.stored.as_ref().map(|it| &it.remote),
            None => state.snapshot.as_ref().and_then(|it| it.get(id)),
        };
        packed.map_or(Seen::Unsure, |packed| Seen::Present(packed.remote()))
    }

    /// Whether the list that tells about `id` may not know yet what we wrote last: it was begun after that, but not long after.
    /// A list begun before does not tell about `id` at all: the answer to our write does.
    pub fn may_lag(&self, key: &CollectionKey, id: &str) -> bool {
        let collection = self.collection(key);
        let state = collection.state();
        let listed_since = |at: Instant| state.snapshot.as_ref().is_some_and(|snapshot| snapshot.began > at);
        state
            .written
            .items
            .get(id)
            .is_some_and(|written| written.at.elapsed() < LAG && listed_since(written.at))
    }

    /// The objects in the place of `wanted`, what we wrote since included.
    pub fn neighbours(&self, key: &CollectionKey, kind: &dyn Kind, wanted: &NaturalKey) -> Vec<Remote> {
        let place = kind.place(wanted);
        let collection = self.collection(key);
        let state = collection.state();
        let listed = state.snapshot.iter().flat_map(|snapshot| snapshot.at(&place));
        let listed = listed.filter(|it| state.written_since_listed(it.id()).is_none());
        let written = state.written.ids_at(&place).filter_map(|id| {
            let stored = state.written_since_listed(id)?.stored.as_ref()?;
            Some(&stored.remote)
        });
        let mut found: Vec<&Packed> = listed.chain(written).collect();
        found.sort_by_key(|it| it.id());
        found.into_iter().map(Packed::remote).collect()
    }

    /// The id of an object of the same group as `wanted`, as last seen.
    pub fn occupant(&self, key: &CollectionKey, kind: &dyn Kind, wanted: &NaturalKey) -> Option<String> {
        let mut near = self.neighbours(key, kind, wanted).into_iter();
        near.find(|it| it.key.group == wanted.group).map(|it| it.id)
    }

    /// Notes what we wrote: a list begun before now says nothing about it.
    pub fn wrote(&self, key: &CollectionKey, kind: &dyn Kind, id: &str, remote: Option<Remote>) {
        let stored = remote.map(|remote| StoredItem {
            place: kind.place(&remote.key).into(),
            remote: remote.into(),
        });
        // The last write is remembered with or without a snapshot, for lists that are under way.
        let at = Instant::now();
        self.collection(key)
            .state()
            .written
            .insert(id, WrittenItem { at, stored });
    }

    /// Takes the whole collection as the answer to a write has it. `began` is when the write was sent.
    pub fn relisted(&self, key: &CollectionKey, kind: &dyn Kind, began: Instant, listing: Listing) {
        self.collection(key).state().take(kind, began, listing);
    }

    /// The index of each object in the collection as last listed, where order means something.
    pub fn positions(&self, key: &CollectionKey) -> BTreeMap<Box<str>, usize> {
        let collection = self.collection(key);
        let state = collection.state();
        let order = state.snapshot.iter().flat_map(|snapshot| &snapshot.order);
        order.enumerate().map(|(at, id)| (id.clone(), at)).collect()
    }

    /// What edits of the collection need to know, from its last listing.
    pub fn handle(&self, key: &CollectionKey) -> Option<String> {
        self.collection(key).state().snapshot.as_ref()?.handle.clone()
    }

    /// Waits until nobody else edits the collection, and keeps others from it as long as the answer is held.
    pub async fn editing(&self, key: &CollectionKey) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = self.collection(key).editing.clone();
        turn.lock_owned().await
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
            state.snapshot.as_ref().map_or(0, |it| it.items.len()) + state.written.items.len()
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
            state.written.retain(|written| now.duration_since(written.at) <= IDLE);
            let remembered = !state.written.items.is_empty()
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
    fn new(kind: &dyn Kind, began: Instant, listing: Listing) -> Self {
        let Listing {
            objects: mut items,
            handle,
        } = listing;
        let order = if kind.descriptor().nature.ordered {
            items.iter().map(|it| it.id().into()).collect()
        } else {
            Vec::new()
        };
        items.sort_by(|a, b| a.id().cmp(b.id()));
        items.dedup_by(|a, b| a.id() == b.id());
        let places = items.iter().enumerate();
        let mut places: Vec<_> = places.map(|(at, it)| (kind.place(&it.key()).into(), at)).collect();
        places.sort_unstable();
        Self {
            began,
            ended: Instant::now(),
            items,
            places,
            order,
            handle,
        }
    }

    fn get(&self, id: &str) -> Option<&Packed> {
        let at = self.items.binary_search_by(|it| it.id().cmp(id)).ok()?;
        self.items.get(at)
    }

    fn at(&self, place: &str) -> impl Iterator<Item = &Packed> {
        let first = self.places.partition_point(|(other, _)| &**other < place);
        let there = self
            .places
            .iter()
            .skip(first)
            .take_while(move |(other, _)| &**other == place);
        there.filter_map(|(_, at)| self.items.get(*at))
    }
}

impl Written {
    fn insert(&mut self, id: &str, item: WrittenItem) {
        let id: Box<str> = id.into();
        if let Some(old) = self.items.remove(&id).and_then(|old| old.stored) {
            self.places.remove(&(old.place, id.clone()));
        }
        if let Some(stored) = &item.stored {
            self.places.insert((stored.place.clone(), id.clone()));
        }
        self.items.insert(id, item);
    }

    fn retain(&mut self, mut keep: impl FnMut(&WrittenItem) -> bool) {
        let Self { items, places } = self;
        items.retain(|id, item| {
            let kept = keep(item);
            if !kept && let Some(stored) = &item.stored {
                places.remove(&(stored.place.clone(), id.clone()));
            }
            kept
        });
    }

    fn ids_at(&self, place: &str) -> impl Iterator<Item = &str> {
        let first = (Box::from(place), Box::default());
        let there = self
            .places
            .range(first..)
            .take_while(move |(other, _)| &**other == place);
        there.map(|(_, id)| &**id)
    }
}

/// Lists a collection. A list that lacks at least three of the expected objects, and at least half of them, is believed
/// only if one of the missing is really gone: an empty or cut list is more likely than a mass deletion, and acting on it
/// would re-create all.
async fn list(kind: &dyn Kind, client: &Client, scope: &str, expected: &BTreeSet<String>) -> Result<Listing, Failure> {
    let failure = |error: Error| failure(kind, &error);
    let listing = match kind.list(client, scope).await.map_err(failure) {
        Err(gone) if gone.class == Class::Missing => {
            return Err(confirmed_gone(kind, client, scope, expected, gone).await);
        }
        listed => listed?,
    };
    let listed: BTreeSet<&str> = listing.objects.iter().map(Packed::id).collect();
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
    Ok(listing)
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
