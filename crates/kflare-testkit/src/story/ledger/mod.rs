//! Who made what, who asked for what, and what every call of a controller did: the independent book that the rules are
//! checked against while a story goes on.

mod checks;
mod contest;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kflare_api::names;
use kflare_sim::Simulator;
use serde_json::Value;

use super::act::{Setting, Target};
use super::holdings::Holdings;
use super::identity::{identity, is_recorded, remote_identity, text};
use super::rule::{Rule, Violation};
use super::{transforms, twins};
use crate::simulation::World;

/// So long after a user's word a controller may still act on what it knew before.
const GRACE: Duration = Duration::from_mins(1);

/// A controller that made no call from so long to so long after one has died. No outage is as long as the first, and drift checks
/// are more frequent than the second; after it, in the last part of a story, names of lives are used again.
const DIED_WITHIN: (Duration, Duration) = (Duration::from_mins(5), Duration::from_hours(2));

/// Who made a remote object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Somebody in the account.
    Foreign,
    /// A controller of this cluster.
    Cluster(usize),
}

/// A call that was answered.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it was made.
    pub at: Duration,
    /// By which life of a controller.
    pub life: String,
    /// Whether it only reads.
    pub reads: bool,
    /// The list whose items it is to change.
    pub items_of: Option<String>,
    /// When its answer came, with its status and `retry-after`.
    pub answer: Option<(Duration, u16, Option<u64>)>,
}

/// The book. Clones are the same.
#[derive(Clone)]
pub struct Ledger {
    clusters: Vec<World>,
    setting: Setting,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    before: Option<Holdings>,
    makers: BTreeMap<String, Maker>,
    /// Which life of a controller made an object, and when.
    made_by: BTreeMap<String, (String, Duration)>,
    /// What the last foreign hand left of a foreign object.
    foreign: BTreeMap<String, Value>,
    /// Type and full name of what users of a cluster asked to adopt.
    consents: BTreeSet<(usize, String, String)>,
    /// Type and full name of what users of a cluster asked to keep.
    retained: BTreeSet<(usize, String, String)>,
    /// When an annotation of a resource was last changed, creation not counted.
    changes: BTreeMap<(usize, Target, String), Duration>,
    /// When a cluster's controllers could not see what goes on.
    blind: Vec<(usize, Duration, Duration)>,
    rotations: Vec<Duration>,
    /// What a cluster had made and others changed before it was recorded: it is no longer what was announced.
    changed_early: BTreeSet<String>,
    /// What others made just as a cluster had announced it, and when that was announced.
    twins: BTreeMap<(usize, String), Duration>,
    corrections: BTreeMap<(String, String, String), Vec<(Duration, Value)>>,
    calls: BTreeMap<u64, Call>,
    /// Of each life and list, the last operation on its items that was accepted.
    operations: BTreeMap<(String, String), String>,
    writes: BTreeMap<usize, Vec<Write>>,
    violations: Vec<Violation>,
}

impl Book {
    /// What users of these clusters said of the one type and name goes for the other too.
    fn is_called(&mut self, clusters: Range<usize>, before: &(String, String), after: &(String, String)) {
        if before == after {
            return;
        }
        for said in [&mut self.consents, &mut self.retained] {
            let also: Vec<_> = said
                .iter()
                .filter(|(cluster, kind, name)| clusters.contains(cluster) && (kind, name) == (&before.0, &before.1))
                .map(|(cluster, ..)| (*cluster, after.0.clone(), after.1.clone()))
                .collect();
            said.extend(also);
        }
    }
}

/// A change that a controller made at Cloudflare.
#[derive(Clone, Debug)]
pub struct Write {
    /// When.
    pub at: Duration,
    /// Before and after; null for what was not there.
    pub before: Value,
    /// See `before`.
    pub after: Value,
}

impl Ledger {
    /// An empty book about these clusters, which share one Cloudflare.
    pub fn new(clusters: Vec<World>, setting: Setting) -> Self {
        Self {
            clusters,
            setting,
            book: Arc::default(),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.clusters.first().map(World::elapsed).unwrap_or_default()
    }

    /// What there is now.
    pub fn holdings(&self) -> Holdings {
        self.clusters
            .first()
            .map(|world| Holdings::of(&world.cloudflare))
            .unwrap_or_default()
    }

    /// Lets somebody else change the account, and notes what they did.
    pub fn foreign(&self, act: impl FnOnce(&Simulator)) {
        let before = self.holdings();
        if let Some(world) = self.clusters.first() {
            act(&world.cloudflare);
        }
        let after = self.holdings();
        let now = self.now();
        let mut book = self.book();
        for (known, all) in before.beside(&after) {
            for (id, object) in all
                .iter()
                .filter(|(id, _)| known.get(*id).is_none_or(transforms::are_off))
            {
                for cluster in 0..self.clusters.len() {
                    if let Some(age) = twins::announced(&self.clusters, cluster, &self.setting, &after, object) {
                        book.twins.insert((cluster, id.clone()), now.saturating_sub(age));
                    }
                }
            }
            for (id, object) in all {
                // Whoever was asked to take or to keep it is still, whatever it is called now.
                if let Some(before) = known.get(id) {
                    book.is_called(
                        0..self.clusters.len(),
                        &remote_identity(before),
                        &remote_identity(object),
                    );
                }
                let recorded = || self.clusters.iter().any(|world| is_recorded(world, object));
                if known.get(id).is_some_and(|before| before != object) && !recorded() {
                    book.changed_early.insert(id.clone());
                }
                let turned_on = known.get(id).is_some_and(transforms::are_off) && !transforms::are_off(object);
                // What a cluster has made of nothing is its own, also when others are the first to turn something on.
                let own = |cluster: &usize| {
                    let world = self.clusters.get(*cluster);
                    world.is_some_and(|world| is_recorded(world, object))
                };
                if turned_on && let Some(cluster) = (0..self.clusters.len()).find(own) {
                    book.makers.insert(id.clone(), Maker::Cluster(cluster));
                }
                let is_new = match known.get(id) {
                    Some(_) => turned_on && !recorded(),
                    None => !transforms::are_off(object),
                };
                if !is_new && (known.get(id) == Some(object) || book.makers.get(id) != Some(&Maker::Foreign)) {
                    continue;
                }
                book.makers.insert(id.clone(), Maker::Foreign);
                book.foreign.insert(id.clone(), object.clone());
            }
            for id in known.keys().filter(|id| !all.contains_key(*id)) {
                book.foreign.remove(id);
            }
        }
    }

    /// A user gave a resource these annotations.
    pub fn asked(&self, cluster: usize, manifest: &Value) {
        let annotations = &manifest["metadata"]["annotations"];
        let (kind, name) = identity(manifest);
        let mut book = self.book();
        if annotations[names::ADOPTION_POLICY].is_string() {
            book.consents.insert((cluster, kind.clone(), name.clone()));
        }
        if annotations[names::DELETION_POLICY] == "retain" || annotations[names::MODE] == "observe" {
            book.retained.insert((cluster, kind, name));
        }
    }

    /// A user changed an annotation of a resource.
    pub fn annotated(&self, cluster: usize, target: &Target, annotation: &str) {
        let at = self.now();
        self.book()
            .changes
            .insert((cluster, target.clone(), annotation.to_owned()), at);
    }

    /// A user changed a spec of that cluster: what looked like a fight before may be this user.
    pub fn edited(&self, cluster: usize) {
        let lives = format!("c{cluster}-");
        self.book()
            .corrections
            .retain(|(life, ..), _| !life.starts_with(&lives));
    }

    /// A user of a cluster renamed what a resource asks for: what was said of the one name goes for the other.
    pub fn renamed(&self, cluster: usize, before: &(String, String), after: &(String, String)) {
        self.book().is_called(cluster..cluster + 1, before, after);
    }

    /// The controllers of a cluster cannot see, or not reliably, what goes on between now and then.
    pub fn blinded(&self, cluster: usize, for_time: Duration) {
        let from = self.now();
        self.book().blind.push((cluster, from, from + for_time + GRACE));
    }

    /// A token was replaced.
    pub fn rotated(&self) {
        let at = self.now();
        self.book().rotations.push(at);
    }

    /// Who made an object.
    pub fn maker(&self, id: &str) -> Option<Maker> {
        self.book().makers.get(id).copied()
    }

    /// What others have made, as they left it, unless a cluster was asked to adopt it.
    pub fn untouchable(&self) -> BTreeMap<String, Value> {
        let book = self.book();
        let free = |object: &Value| {
            let (kind, name) = remote_identity(object);
            (0..self.clusters.len()).all(|cluster| !book.consents.contains(&(cluster, kind.clone(), name.clone())))
        };
        let twin =
            |id: &String| (0..self.clusters.len()).any(|cluster| book.twins.contains_key(&(cluster, id.clone())));
        book.foreign
            .iter()
            .filter(|(id, object)| free(object) && !twin(id))
            .map(|(id, object)| (id.clone(), object.clone()))
            .collect()
    }

    /// Whether users of the cluster asked to keep such an object, or others had made it theirs before it was recorded. Of KV
    /// namespaces Cloudflare does not say when they were made: what one resource's interrupted create left behind may be what
    /// another was asked to adopt, and then it stays. A bucket's id is its name: who has adopted one has adopted its successor.
    pub fn may_be_kept(&self, cluster: usize, object: &Value) -> bool {
        let (kind, name) = remote_identity(object);
        let book = self.book();
        let changed = book.changed_early.contains(&text(&object["id"]));
        let by_name = kind == "KVNamespace" || kind == "R2Bucket";
        let adopted = by_name && book.consents.contains(&(cluster, kind.clone(), name.clone()));
        changed || adopted || book.retained.contains(&(cluster, kind, name))
    }

    /// Whether the resource that an object was made for had been removed, finalizer or not, and the controller that made it died
    /// soon after: nobody else can know of it (docs/reliability.md, "Not promised").
    pub fn nobody_can_know(&self, cluster: usize, id: &str, object: &Value) -> bool {
        let Some(world) = self.clusters.get(cluster) else {
            return false;
        };
        let wanted = remote_identity(object);
        let book = self.book();
        let Some((life, at)) = book.made_by.get(id) else {
            return false;
        };
        let without_calls = *at + DIED_WITHIN.0..*at + DIED_WITHIN.1;
        let mut calls = book.calls.values().filter(|call| call.life == *life);
        let died = !calls.any(|call| without_calls.contains(&call.at));
        died && world
            .api
            .overtaken()
            .iter()
            .any(|resource| identity(resource) == wanted)
    }

    /// Every change that controllers of a cluster made since a moment.
    pub fn writes_since(&self, cluster: usize, since: Duration) -> Vec<Write> {
        let book = self.book();
        let all = book.writes.get(&cluster).into_iter().flatten();
        all.filter(|write| write.at >= since).cloned().collect()
    }

    /// All calls.
    pub fn calls(&self) -> Vec<Call> {
        self.book().calls.values().cloned().collect()
    }

    /// When tokens were replaced.
    pub fn rotations(&self) -> Vec<Duration> {
        self.book().rotations.clone()
    }

    /// Notes that a rule was broken.
    pub fn broken(&self, rule: Rule, what: String) {
        let at = self.now();
        self.book().violations.push(Violation { rule, at, what });
    }

    /// The rules that were broken.
    pub fn violations(&self) -> Vec<Violation> {
        self.book().violations.clone()
    }
}

/// The name of a replica, which its lives' names begin with.
pub fn replica_name(cluster: usize, replica: usize) -> String {
    format!("c{cluster}-r{replica}")
}
