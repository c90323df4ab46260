//! The work queue: lanes by urgency, turns by namespace within a lane, per-object back-off, one pass an object at a time.
//! It holds no future and reads no clock; the run loop drives it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use crate::object::ObjectKey;

/// Urgency. The same lanes order the calls to Cloudflare.
pub use kflare_cloudflare::Lane as Priority;

/// Every so many passes the most patient lane is served, whatever waits in the others, so that no lane starves.
const PATIENCE: u64 = 8;

/// Namespaces take turns: one that changes a thousand objects delays the others by a factor of two at most.
#[derive(Default)]
struct Lane {
    turns: VecDeque<Option<Arc<str>>>,
    by_namespace: BTreeMap<Option<Arc<str>>, VecDeque<ObjectKey>>,
}

impl Lane {
    fn push(&mut self, key: ObjectKey) {
        let namespace = key.namespace.clone();
        let queue = self.by_namespace.entry(namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(namespace);
        }
        queue.push_back(key);
    }

    fn remove(&mut self, key: &ObjectKey) {
        if let Some(queue) = self.by_namespace.get_mut(&key.namespace) {
            queue.retain(|other| other != key);
            if queue.is_empty() {
                self.by_namespace.remove(&key.namespace);
                self.turns.retain(|namespace| *namespace != key.namespace);
            }
        }
    }

    /// The next object that `may_run` accepts, by turns.
    fn pop(&mut self, may_run: &mut dyn FnMut(&ObjectKey) -> bool) -> Option<ObjectKey> {
        for _ in 0..self.turns.len() {
            let namespace = self.turns.pop_front()?;
            let queue = self.by_namespace.get_mut(&namespace)?;
            let at = queue.iter().position(&mut *may_run);
            let found = at.and_then(|at| queue.remove(at));
            if queue.is_empty() {
                self.by_namespace.remove(&namespace);
            } else {
                self.turns.push_back(namespace);
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready(Priority),
    Waiting(Instant, u64, Priority),
}

#[derive(Default)]
struct Entry {
    place: Option<Place>,
    running: bool,
    failures: u32,
}

/// See the module.
#[derive(Default)]
pub struct Queue {
    ready: BTreeMap<Priority, Lane>,
    waiting: BTreeMap<(Instant, u64), ObjectKey>,
    entries: BTreeMap<ObjectKey, Entry>,
    depth: BTreeMap<Arc<str>, usize>,
    sequence: u64,
    popped: u64,
}

impl Queue {
    fn push(&mut self, key: ObjectKey, priority: Priority) {
        *self.depth.entry(key.kind.clone()).or_default() += 1;
        self.ready.entry(priority).or_default().push(key);
    }

    fn less(&mut self, kind: &Arc<str>) {
        if let Some(depth) = self.depth.get_mut(kind) {
            *depth = depth.saturating_sub(1);
        }
    }

    fn unqueue(&mut self, key: &ObjectKey, priority: Priority) {
        if let Some(lane) = self.ready.get_mut(&priority) {
            lane.remove(key);
        }
        self.less(&key.kind);
    }

    /// Asks for a pass. Asked for twice, it runs once, with the greater urgency. While a pass is running it is run again
    /// afterwards. A waiting retry is brought forward.
    pub fn add(&mut self, key: &ObjectKey, priority: Priority) {
        let entry = self.entries.entry(key.clone()).or_default();
        match entry.place {
            Some(Place::Ready(current)) if current <= priority => return,
            Some(Place::Ready(current)) => {
                entry.place = Some(Place::Ready(priority));
                self.unqueue(key, current);
                self.push(key.clone(), priority);
                return;
            }
            Some(Place::Waiting(at, sequence, _)) => {
                self.waiting.remove(&(at, sequence));
            }
            None => {}
        }
        entry.place = Some(Place::Ready(priority));
        self.push(key.clone(), priority);
    }

    /// Asks for a pass at `at`, unless one is due sooner anyway.
    pub fn add_at(&mut self, key: &ObjectKey, at: Instant, priority: Priority) {
        let entry = self.entries.entry(key.clone()).or_default();
        match entry.place {
            Some(Place::Ready(_)) => return,
            Some(Place::Waiting(sooner, ..)) if sooner <= at => return,
            Some(Place::Waiting(later, sequence, _)) => {
                self.waiting.remove(&(later, sequence));
            }
            None => {}
        }
        self.sequence += 1;
        entry.place = Some(Place::Waiting(at, self.sequence, priority));
        self.waiting.insert((at, self.sequence), key.clone());
    }

    /// The next object to run, once its time has come. `may_run` says whether a kind has a worker free.
    pub fn pop(&mut self, now: Instant, may_run: &mut dyn FnMut(&str) -> bool) -> Option<(ObjectKey, Priority)> {
        self.promote(now);
        if !self.depth.iter().any(|(kind, depth)| *depth > 0 && may_run(kind)) {
            return None;
        }
        let entries = &self.entries;
        let mut free = |key: &ObjectKey| entries.get(key).is_none_or(|entry| !entry.running) && may_run(&key.kind);
        let patient = (self.popped + 1).is_multiple_of(PATIENCE);
        let lanes: Vec<Priority> = if patient {
            self.ready.keys().rev().copied().collect()
        } else {
            self.ready.keys().copied().collect()
        };
        let mut found = None;
        for priority in lanes {
            if let Some(key) = self.ready.get_mut(&priority).and_then(|lane| lane.pop(&mut free)) {
                found = Some((key, priority));
                break;
            }
        }
        let (key, priority) = found?;
        self.popped += 1;
        self.less(&key.kind);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = None;
            entry.running = true;
        }
        Some((key, priority))
    }

    fn promote(&mut self, now: Instant) {
        while let Some((&(at, sequence), _)) = self.waiting.first_key_value() {
            if at > now {
                break;
            }
            if let Some(key) = self.waiting.remove(&(at, sequence)) {
                let entry = self.entries.entry(key.clone()).or_default();
                let priority = match entry.place {
                    Some(Place::Waiting(_, _, priority)) => priority,
                    _ => Priority::Retry,
                };
                entry.place = Some(Place::Ready(priority));
                self.push(key, priority);
            }
        }
    }

    /// When the next waiting object is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// A pass has ended well; its back-off is over.
    pub fn succeeded(&mut self, key: &ObjectKey) {
        self.finish(key, 0);
    }

    /// A pass has ended and is to be tried again later. Returns how many have failed in a row.
    pub fn failed(&mut self, key: &ObjectKey) -> u32 {
        let failures = self
            .entries
            .get(key)
            .map_or(0, |entry| entry.failures)
            .saturating_add(1);
        self.finish(key, failures);
        failures
    }

    /// How many passes have failed in a row.
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    fn finish(&mut self, key: &ObjectKey, failures: u32) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.running = false;
            entry.failures = failures;
            if entry.place.is_none() && failures == 0 {
                self.entries.remove(key);
            }
        }
    }

    /// Forgets an object that has gone. A pass that is running ends by itself.
    pub fn forget(&mut self, key: &ObjectKey) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let place = entry.place.take();
        entry.failures = 0;
        if !entry.running {
            self.entries.remove(key);
        }
        match place {
            Some(Place::Ready(priority)) => self.unqueue(key, priority),
            Some(Place::Waiting(at, sequence, _)) => {
                self.waiting.remove(&(at, sequence));
            }
            None => {}
        }
    }

    /// How many objects it knows of: those that wait, run, or have failed.
    pub fn size(&self) -> usize {
        self.entries.len()
    }

    /// How many objects of each kind wait for a worker now (not those that wait for a time).
    pub fn depth(&self) -> &BTreeMap<Arc<str>, usize> {
        &self.depth
    }
}

/// The delay after `failures` in a row: doubled each time, from `first` to `largest`.
pub fn backoff(failures: u32, (first, largest): (Duration, Duration)) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    first.saturating_mul(1 << doublings).min(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new("Thing", Some(namespace), name)
    }

    fn pop(queue: &mut Queue, now: Instant) -> Option<String> {
        queue.pop(now, &mut |_| true).map(|(key, _)| key.name.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn user_changes_go_first_and_asking_twice_runs_once() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(&key("a", "drift"), Priority::DriftCheck);
        queue.add(&key("a", "retry"), Priority::Retry);
        queue.add(&key("a", "user"), Priority::UserChange);
        queue.add(&key("a", "user"), Priority::DriftCheck);
        queue.add(&key("a", "drift"), Priority::Delete);
        assert_eq!(pop(&mut queue, now).as_deref(), Some("user"));
        assert_eq!(pop(&mut queue, now).as_deref(), Some("drift"));
        assert_eq!(pop(&mut queue, now).as_deref(), Some("retry"));
        assert_eq!(pop(&mut queue, now), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_never_runs_twice_at_once_and_a_change_meanwhile_is_not_lost() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(&key("a", "x"), Priority::UserChange);
        assert!(pop(&mut queue, now).is_some());
        queue.add(&key("a", "x"), Priority::UserChange);
        assert_eq!(pop(&mut queue, now), None, "still running");
        queue.succeeded(&key("a", "x"));
        assert_eq!(pop(&mut queue, now).as_deref(), Some("x"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_with_a_thousand_changes_delays_another_by_one_turn() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for n in 0..1000 {
            queue.add(&key("loud", &format!("x{n}")), Priority::UserChange);
        }
        queue.add(&key("quiet", "y"), Priority::UserChange);
        let order: Vec<_> = (0..3).filter_map(|_| pop(&mut queue, now)).collect();
        assert!(order.contains(&"y".to_owned()), "{order:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_lane_starves() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(&key("a", "patient"), Priority::DriftCheck);
        for n in 0..100 {
            queue.add(&key("a", &format!("x{n}")), Priority::UserChange);
        }
        let position = (0..100).position(|_| pop(&mut queue, now).as_deref() == Some("patient"));
        assert!(position.is_some_and(|position| position < 8), "{position:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_by_time_and_a_change_brings_it_forward() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add_at(&key("a", "later"), now + Duration::from_mins(1), Priority::Retry);
        assert_eq!(pop(&mut queue, now), None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_mins(1)));
        queue.add(&key("a", "later"), Priority::UserChange);
        assert_eq!(pop(&mut queue, now).as_deref(), Some("later"));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn backoff_grows_and_is_bounded() {
        let bounds = (Duration::from_secs(1), Duration::from_mins(1));
        let delays: Vec<u64> = (1..10).map(|n| backoff(n, bounds).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff(u32::MAX, bounds).as_secs(), 60);
    }
}
