//! Drift checks: each collection in use is listed once an interval, every resource in it is decided about in memory, and
//! only those whose plan is not what their condition says get a pass. In steady state a sweep costs one list and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    clock::Chance,
    collections::{Freshness, NotListed, Seen},
    context::Context,
    credentials::Credentials,
    decide::Observed,
    errors::Class,
    index::CollectionKey,
    kind::Kind,
    mutation::{self, Mutation},
    object::Object,
    observe::FEW,
    pass::decide_with,
    plan::Plan,
    policy::{DriftCheck, is_paused},
    queue::Priority,
};

/// After a start all collections are looked at once within this time, spread evenly, drift checks on or off: what changed
/// while kflare was not running is not waited for.
pub(crate) const START_SPREAD: Duration = Duration::from_secs(30);

/// A check that was turned away for lack of calls comes back about that long after calls are let through again.
const TURNED_AWAY: Duration = Duration::from_secs(10);

/// Which resources of a collection a sweep looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All: what changed while kflare was not running is not waited for.
    All,
    /// Those that have scheduled checks.
    Scheduled,
}

/// When each collection is looked at next.
#[derive(Default)]
pub(crate) struct Schedule {
    due: BTreeMap<CollectionKey, Instant>,
    /// Found at the start and not looked at since.
    unseen: BTreeSet<CollectionKey>,
    started: bool,
}

impl Schedule {
    /// Takes up new collections, gives up those no longer in use. The first time it spreads all over [`START_SPREAD`].
    pub fn update(&mut self, context: &Context) {
        let in_use: Vec<CollectionKey> = context.index().collections().cloned().collect();
        self.due.retain(|key, _| in_use.binary_search(key).is_ok());
        self.unseen.retain(|key| in_use.binary_search(key).is_ok());
        let now = Instant::now();
        for key in in_use {
            if let Some(due) = self.due.get(&key).copied() {
                // Somebody has joined who wants to be looked at more often than those who were there.
                if let Some(interval) = interval(context, &key)
                    && due > now + interval.mul_f64(1.1)
                {
                    self.due.insert(key, now + jittered(&context.chance, interval));
                }
                continue;
            }
            let at = if self.started {
                // Every object in it has just been made or adopted by a pass of its own.
                interval(context, &key).map(|interval| now + jittered(&context.chance, interval))
            } else {
                self.unseen.insert(key.clone());
                Some(now + START_SPREAD.mul_f64(context.chance.unit()))
            };
            if let Some(at) = at {
                self.due.insert(key, at);
            }
        }
        self.started = true;
    }

    /// When the next collection is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// The collections that are due, each with whose drift is looked for; each gets its next time.
    pub fn take_due(&mut self, context: &Context) -> Vec<(CollectionKey, Extent)> {
        let now = Instant::now();
        let mut due: Vec<(Instant, CollectionKey)> = self
            .due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(key, at)| (*at, key.clone()))
            .collect();
        // Who has waited longest comes first.
        due.sort();
        let due: Vec<CollectionKey> = due.into_iter().map(|(_, key)| key).collect();
        for key in &due {
            match interval(context, key) {
                Some(interval) => self.due.insert(key.clone(), now + jittered(&context.chance, interval)),
                None => self.due.insert(key.clone(), now + Duration::from_hours(24)),
            };
        }
        let with_extent = |key: CollectionKey| {
            let extent = if self.unseen.remove(&key) {
                Extent::All
            } else {
                Extent::Scheduled
            };
            (key, extent)
        };
        due.into_iter().map(with_extent).collect()
    }

    /// A check that could not be made for lack of calls is not left out: the collection is looked at again at that time.
    pub fn put_off(&mut self, key: CollectionKey, extent: Extent, at: Instant) {
        if extent == Extent::All {
            self.unseen.insert(key.clone());
        }
        let due = self.due.entry(key).or_insert(at);
        *due = at.min(*due);
    }
}

fn jittered(chance: &Chance, interval: Duration) -> Duration {
    chance.jitter(interval, 0.1)
}

/// The shortest interval that a member asks for.
fn interval(context: &Context, key: &CollectionKey) -> Option<Duration> {
    let index = context.index();
    let default = context.settings.defaults.drift_check;
    index
        .members(key)
        .iter()
        .filter_map(|object| drift_interval(object, default))
        .min()
}

fn drift_interval(object: &Object, default: DriftCheck) -> Option<Duration> {
    use kflare_api::names::DRIFT_CHECK_INTERVAL;
    let own = object
        .annotation(DRIFT_CHECK_INTERVAL)
        .and_then(crate::policy::parse_duration);
    match own.map_or(default, DriftCheck::from_duration) {
        DriftCheck::Every(interval) => Some(interval),
        DriftCheck::Off => None,
    }
}

/// Looks at one collection. Failures are left to the next sweep: a check that could not be made says nothing about the
/// objects. What was turned away for lack of calls is looked at again at the time given back.
pub(crate) async fn sweep(context: &Context, key: &CollectionKey, extent: Extent) -> Option<Instant> {
    let members = context.index().members(key);
    let default = context.settings.defaults.drift_check;
    let members: Vec<Arc<Object>> = members
        .into_iter()
        .filter(|it| extent == Extent::All || drift_interval(it, default).is_some())
        .collect();
    let kind = members.first().and_then(|object| context.kinds.get(&object.key.kind));
    let kind = kind.filter(|kind| context.settings.manages(&kind.descriptor().kind))?;
    // All wait for something: there is nothing to compare with (their zone may be gone), and each is woken in its time.
    if members.iter().all(|object| context.prepare(object).is_err()) {
        return None;
    }
    // What has just failed is tried again by its own back-off, not by every check.
    let at_rest = |object: &&Arc<Object>| context.queue().failures(&object.key) == 0;
    // What cannot be listed comes to a check by itself, one by one.
    if !kind.descriptor().listable {
        return None;
    }
    let few = members.len() <= FEW && !kind.descriptor().lists_for_few();
    if few || context.collections.is_refused(key) {
        enqueue(context, members.iter().filter(at_rest));
        return None;
    }
    let account = members
        .first()
        .and_then(|object| context.index().account_of(&object.key).ok())?;
    let source = context.index().credential(&account)?.ok()?;
    let client = match context.credentials.client(&account, &source).await {
        Ok(client) => client.in_lane(Priority::DriftCheck).read_only(),
        Err(failure) => {
            tracing::debug!(collection = ?key, detail = %failure.message, "drift check not made");
            return None;
        }
    };
    let expected = || context.index().recorded_ids(key);
    match context
        .collections
        .refresh(key, kind, &client, Freshness::BegunAt(Instant::now()), &expected)
        .await
    {
        Ok(()) => {
            let drifted: Vec<Arc<Object>> = members
                .into_iter()
                .filter(|object| needs_pass(context, key, object))
                .collect();
            enqueue(context, drifted.iter());
        }
        Err(NotListed::Refused) => enqueue(context, members.iter().filter(at_rest)),
        // What they are in is gone: they have to say so.
        Err(NotListed::Failed(failure)) if failure.class == Class::Missing => {
            enqueue(context, members.iter().filter(at_rest));
        }
        Err(NotListed::Failed(failure)) => {
            tracing::debug!(collection = ?key, detail = %failure.message, "drift check not made");
            if let Class::RateLimited { until, .. } = failure.class {
                // Not all at once, and in no order.
                return Some(until + context.chance.jitter(TURNED_AWAY, 0.9));
            }
        }
    }
    None
}

fn enqueue<'a>(context: &Context, objects: impl Iterator<Item = &'a Arc<Object>>) {
    context.wake_all(
        objects
            .map(|object| (object.key.clone(), Priority::DriftCheck))
            .collect(),
    );
}

/// Whether what the list shows differs from what the resource says of itself.
fn needs_pass(context: &Context, key: &CollectionKey, object: &Arc<Object>) -> bool {
    // The list took time; the resource may be another by now.
    let Some(object) = context.index().get(&object.key) else {
        return false;
    };
    if object.deleting || is_paused(&object) || mutation::is(Mutation::DriftIgnored) {
        return false;
    }
    let Some(kind) = context.kinds.get(&object.key.kind) else {
        return false;
    };
    let Ok(prepared) = context.prepare(&object) else {
        return true;
    };
    let recorded = context.recorded_unproven(&object);
    let Some(id) = &recorded.id else { return true };
    let failing = context.queue().failures(&object.key) > 0;
    let mut remote = match context.collections.seen(key, id) {
        Seen::Present(remote) => remote,
        Seen::Unsure => return !failing,
    };
    let unread = kind.descriptor().fields.unread(&prepared.desired.body);
    if !unread.is_empty() {
        // The list does not tell of these; that nothing has changed since our own write does, where Cloudflare says so.
        let marked = remote.revision.is_some() && remote.revision == recorded.applied.revision;
        let untouched = marked && kind.descriptor().fields.mark_covers(&prepared.desired.body);
        if !untouched || !object.is_ready_at_generation() {
            return !failing;
        }
        remote.body.extend(unread);
    }
    let placement = if kind.descriptor().nature.ordered {
        context.arrangement(key, &object).placement(&object.key)
    } else {
        None
    };
    let observed = Observed {
        recorded: Some(remote),
        placement,
        ..Observed::default()
    };
    match decide_with(context, kind, &object, &prepared, &observed, &recorded, None) {
        Plan::NoOp { .. }
            if object.is_ready_at_generation()
                && settled(&object, kind)
                && context.yield_is_in_order(&object, kind) =>
        {
            context.contests().at_rest(&object.uid, Instant::now());
            false
        }
        Plan::NoOp { .. } => true,
        Plan::Blocked { reason, .. } | Plan::Wait { reason, .. } => object.ready().reason != reason.as_str(),
        _ => !failing,
    }
}

/// Whether the resource carries what a finished pass leaves on it.
pub(crate) fn settled(object: &Object, kind: &dyn Kind) -> bool {
    let claim = kind.descriptor().claim.as_ref();
    let recorded = object.recorded(kind.descriptor().id_field());
    let labelled = claim.is_none_or(|claim| object.labels.get(&claim.label) == recorded.id.as_deref());
    labelled && object.has_finalizer() && recorded.intent.is_none()
}
