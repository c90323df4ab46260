//! Who made what, who asked for what, and what every call of a controller did: the independent book that the rules are
//! checked against while a story goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use kflare_api::names;
use kflare_sim::Simulator;
use serde_json::{Map, Value};

use super::act::{Setting, Target};
use super::perform::KINDS;
use super::rule::{Rule, Violation};
use super::twins;
use super::vocabulary::full_name;
use super::{lists, rulesets, stores, transforms, workers};
use crate::life::Life;
use crate::sim_transport::Witness;
use crate::simulation::World;

/// So long after a user's word a controller may still act on what it knew before.
const GRACE: Duration = Duration::from_mins(1);

/// Corrections of one field closer than this, after the third within [`CONTEST_WINDOW`], are a fight. The engine's first
/// pause is 20 minutes.
const CONTEST_PAUSE: Duration = Duration::from_mins(18);

/// See [`CONTEST_PAUSE`].
const CONTEST_WINDOW: Duration = Duration::from_hours(1);

/// Who made a remote object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Somebody in the account.
    Foreign,
    /// A controller of this cluster.
    Cluster(usize),
}

/// What an account holds, by id. Records carry the id and the name of their zone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holdings {
    /// Zones.
    pub zones: BTreeMap<String, Value>,
    /// Records.
    pub records: BTreeMap<String, Value>,
    /// KV namespaces, R2 buckets, D1 databases, queues.
    pub stores: BTreeMap<String, Value>,
    /// Tunnels that are not deleted, each with its configuration.
    pub tunnels: BTreeMap<String, Value>,
    /// Lists.
    pub lists: BTreeMap<String, Value>,
    /// Workers.
    pub workers: BTreeMap<String, Value>,
    /// Their routes.
    pub routes: BTreeMap<String, Value>,
    /// The managed transforms of each zone.
    pub transforms: BTreeMap<String, Value>,
    /// Rules, and their order.
    pub rules: rulesets::Rules,
}

/// Things of a kind, by id.
type Things = BTreeMap<String, Value>;

impl Holdings {
    /// What there is now.
    pub fn of(cloudflare: &Simulator) -> Self {
        let mut all = Self {
            stores: stores::holdings(cloudflare),
            lists: lists::holdings(cloudflare),
            workers: workers::holdings(cloudflare),
            ..Self::default()
        };
        for mut zone in cloudflare.dump()["zones"].as_array().cloned().unwrap_or_default() {
            let records = zone["records"].take();
            for mut record in records.as_array().cloned().unwrap_or_default() {
                record["zone_id"] = zone["id"].clone();
                record["zone_name"] = zone["name"].clone();
                all.records.insert(text(&record["id"]), record);
            }
            let rulesets = zone["rulesets"].take();
            all.rules.add(&zone, &rulesets);
            let transforms = transforms::held(&zone, &zone["managed_transforms"]);
            all.transforms.insert(text(&transforms["id"]), transforms);
            for route in zone["worker_routes"].as_array().into_iter().flatten() {
                all.routes.insert(text(&route["id"]), workers::held_route(&zone, route));
            }
            if let Some(zone) = zone.as_object_mut() {
                // Zones become active by themselves.
                for field in [
                    "records",
                    "rulesets",
                    "managed_transforms",
                    "worker_routes",
                    "status",
                    "activated_on",
                    "modified_on",
                ] {
                    zone.remove(field);
                }
            }
            all.zones.insert(text(&zone["id"]), zone);
        }
        for tunnel in super::tunnels::live(cloudflare) {
            all.tunnels.insert(text(&tunnel["id"]), tunnel);
        }
        all
    }
}

impl Holdings {
    /// Each kind of thing, before and after.
    fn beside<'a>(&'a self, after: &'a Self) -> [(&'a Things, &'a Things); 9] {
        [
            (&self.zones, &after.zones),
            (&self.records, &after.records),
            (&self.stores, &after.stores),
            (&self.tunnels, &after.tunnels),
            (&self.rules.all, &after.rules.all),
            (&self.lists, &after.lists),
            (&self.workers, &after.workers),
            (&self.routes, &after.routes),
            (&self.transforms, &after.transforms),
        ]
    }

    /// Whether this is a route to a Worker that there is not: Cloudflare deletes routes with the Worker that they lead to.
    pub fn leads_nowhere(&self, object: &Value) -> bool {
        let script = text(&object["script"]);
        object["of"] == "WorkerRoute" && !script.is_empty() && self.workers.values().all(|it| it["name"] != *script)
    }

    /// Everything, by id.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.beside(self).into_iter().flat_map(|(all, _)| all)
    }
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

    /// Whether users of the cluster asked to keep such an object, or others had made it theirs before it was recorded. Of KV namespaces Cloudflare does not say when they were made:
    /// what one resource's interrupted create left behind may be what another was asked to adopt, and then it stays.
    pub fn may_be_kept(&self, cluster: usize, object: &Value) -> bool {
        let (kind, name) = remote_identity(object);
        let book = self.book();
        let changed = book.changed_early.contains(&text(&object["id"]));
        let adopted = kind == "KVNamespace" && book.consents.contains(&(cluster, kind.clone(), name.clone()));
        changed || adopted || book.retained.contains(&(cluster, kind, name))
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

    fn saw(&self, cluster: usize, life: &Life, before: &Holdings, after: &Holdings) {
        let zones_gone = before
            .zones
            .keys()
            .filter(|id| !after.zones.contains_key(*id))
            .cloned()
            .collect::<BTreeSet<_>>();
        let mut touched = Vec::new();
        for (old, new) in before.beside(after) {
            let ids: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for id in ids {
                let (was, is) = (old.get(id), new.get(id));
                let went_with_its_zone =
                    is.is_none() && was.is_some_and(|it| zones_gone.contains(&text(&it["zone_id"])));
                let went_with_its_worker = is.is_none() && was.is_some_and(|it| after.leads_nowhere(it));
                // With a zone come its managed transforms, all off.
                let came_with_its_zone = was.is_none() && is.is_some_and(transforms::are_off);
                if was != is && !went_with_its_zone && !went_with_its_worker && !came_with_its_zone {
                    touched.push((
                        id.clone(),
                        was.cloned().unwrap_or_default(),
                        is.cloned().unwrap_or_default(),
                    ));
                }
            }
        }
        for movers in after.rules.moved(&before.rules) {
            // Of two that changed places nobody can say which one it was.
            let ours = movers.iter().find(|id| self.maker(id) == Some(Maker::Cluster(cluster)));
            let Some(mover) = ours.or(movers.first()) else {
                self.broken(
                    Rule::Foreign,
                    format!("{} put more than one rule elsewhere", life.name()),
                );
                continue;
            };
            let placed = |rules: &rulesets::Rules| {
                let mut rule = rules.all.get(mover).cloned().unwrap_or_default();
                rule["position"] = rules.place(mover).into();
                rule
            };
            touched.push((mover.clone(), placed(&before.rules), placed(&after.rules)));
        }
        if touched.is_empty() {
            return;
        }
        self.check_leader(cluster, life);
        for (id, was, is) in touched {
            let at = self.now();
            let write = Write {
                at,
                before: was.clone(),
                after: is.clone(),
            };
            self.book().writes.entry(cluster).or_default().push(write);
            if was.is_null() || transforms::are_off(&was) {
                self.book().makers.insert(id.clone(), Maker::Cluster(cluster));
            }
            self.check(cluster, life, &id, &was, &is);
        }
    }

    fn check(&self, cluster: usize, life: &Life, id: &str, was: &Value, is: &Value) {
        let object = if is.is_null() { was } else { is };
        let Some(world) = self.clusters.get(cluster) else {
            return;
        };
        let told = |what: &str| format!("{} {what}: {was} -> {is}", life.name());
        let askers = askers(world, object);
        // The one that recorded it, else all that name it.
        let recorded: Vec<&Value> = askers
            .iter()
            .filter(|it| recorded_id(it).as_deref() == Some(id))
            .collect();
        let responsible: Vec<&Value> = if recorded.is_empty() {
            askers.iter().collect()
        } else {
            recorded
        };
        if responsible.is_empty() {
            return self.broken(Rule::Unasked, told("did what no resource asks for"));
        }
        if responsible.iter().all(|resource| self.holds_back(cluster, resource)) {
            self.broken(Rule::HeldBack, told("wrote although the user said pause or observe"));
        }
        let (kind, name) = remote_identity(object);
        let maker = self.maker(id);
        // Two clusters that make the same object in the same minutes, and one of them dies meanwhile: nothing tells the
        // survivor's object from its own (docs/reliability.md, "Not promised").
        let twin = matches!(maker, Some(Maker::Cluster(_)))
            && responsible
                .iter()
                .any(|it| it["status"]["ownership"]["origin"] == "Created");
        let ours = maker == Some(Maker::Cluster(cluster)) || twin || self.is_twin(cluster, life, id);
        if !ours && !self.book().consents.contains(&(cluster, kind, name)) {
            self.broken(Rule::Foreign, told("touched what is not ours"));
        }
        let leaves = || {
            responsible
                .iter()
                .any(|it| !it["metadata"]["deletionTimestamp"].is_null())
        };
        if is.is_null() || (transforms::are_off(is) && leaves()) {
            self.check_deletion(cluster, &responsible, ours, &told("deleted"));
        } else if !was.is_null() {
            self.check_contest(life, id, was, is);
        }
    }

    /// Whether somebody made the object just as this cluster had announced it, and the controller that did has died since, or
    /// had no answer to a write.
    fn is_twin(&self, cluster: usize, life: &Life, id: &str) -> bool {
        let book = self.book();
        let Some(announced) = book.twins.get(&(cluster, id.to_owned())) else {
            return false;
        };
        let calls = || book.calls.values().filter(|call| call.life == life.name());
        let is_another = calls().all(|call| call.at > *announced);
        is_another || calls().any(|call| call.at >= *announced && !call.reads && call.answer.is_none())
    }

    fn check_deletion(&self, cluster: usize, responsible: &[&Value], ours: bool, told: &str) {
        let leaving = responsible
            .iter()
            .find(|it| !it["metadata"]["deletionTimestamp"].is_null());
        let Some(leaving) = leaving else {
            return self.broken(Rule::Unasked, format!("{told}, and no resource goes"));
        };
        let policy = leaving["metadata"]["annotations"][names::DELETION_POLICY].as_str();
        let allowed = match policy {
            Some("delete") => true,
            Some("retain") => false,
            _ => ours,
        };
        if !allowed && self.is_old_news(cluster, leaving, names::DELETION_POLICY) {
            self.broken(
                Rule::DeletionPolicy,
                format!("{told}, and the policy is {policy:?}, made by us: {ours}"),
            );
        }
        if leaving["kind"] == "Zone" {
            let api = &self.clusters[cluster].api;
            let all = KINDS
                .iter()
                .flat_map(|plural| api.list(&format!("{plural}.{}", names::GROUP)));
            let children: Vec<String> = all
                .collect::<Vec<Value>>()
                .iter()
                .filter(|it| it["spec"]["zoneRef"]["name"] == leaving["metadata"]["name"])
                // One that was created a moment ago may not be known yet.
                .filter(|it| self.age(cluster, it) > GRACE)
                .map(|it| text(&it["metadata"]["name"]))
                .collect();
            if !children.is_empty() {
                self.broken(Rule::InUse, format!("{told} under {children:?}"));
            }
        }
    }

    fn age(&self, cluster: usize, object: &Value) -> Duration {
        let created = object["metadata"]["creationTimestamp"]
            .as_str()
            .and_then(|at| at.parse::<jiff::Timestamp>().ok());
        let now = self.clusters[cluster].api.clock().now();
        created
            .and_then(|at| now.duration_since(at).try_into().ok())
            .unwrap_or_default()
    }

    /// Whether the controllers had time to hear of the last change of an annotation.
    fn is_old_news(&self, cluster: usize, resource: &Value, annotation: &str) -> bool {
        let now = self.now();
        let book = self.book();
        let key = (cluster, target_of(resource), annotation.to_owned());
        let Some(changed) = book.changes.get(&key).copied() else {
            return true;
        };
        let slow = Duration::from_millis(self.setting.event_delay_ms);
        let restless = if self.setting.restless_watches {
            2 * GRACE
        } else {
            Duration::ZERO
        };
        let blind = book
            .blind
            .iter()
            .any(|(at, from, to)| *at == cluster && *to >= changed && *from <= now);
        now > changed + GRACE + slow + restless && !blind
    }

    fn holds_back(&self, cluster: usize, resource: &Value) -> bool {
        let annotations = &resource["metadata"]["annotations"];
        let paused = !matches!(annotations[names::PAUSED].as_str(), None | Some("false" | ""));
        let observes = annotations[names::MODE] == "observe";
        (paused && self.is_old_news(cluster, resource, names::PAUSED))
            || (observes && self.is_old_news(cluster, resource, names::MODE))
    }

    fn check_leader(&self, cluster: usize, life: &Life) {
        if !self.setting.lease {
            return;
        }
        let Some(world) = self.clusters.get(cluster) else {
            return;
        };
        let lease = world
            .api
            .list("leases.coordination.k8s.io")
            .into_iter()
            .next()
            .unwrap_or_default();
        let holder = text(&lease["spec"]["holderIdentity"]);
        let renewed = lease["spec"]["renewTime"]
            .as_str()
            .and_then(|at| at.parse::<jiff::Timestamp>().ok());
        let age = renewed.map(|at| world.api.clock().now().duration_since(at).as_secs_f64());
        let seconds = lease["spec"]["leaseDurationSeconds"].as_f64().unwrap_or_default();
        if !life.name().starts_with(&holder) || holder.is_empty() || age.is_none_or(|age| age > seconds) {
            let what = format!(
                "{} wrote while {holder:?} held the lease, renewed {age:?} s ago",
                life.name()
            );
            self.broken(Rule::Leader, what);
        }
    }

    /// Items are not changed again by who knows that a change of them is under way.
    fn check_operation(&self, call: &Call) {
        let known = call.items_of.clone().and_then(|list| {
            let book = self.book();
            book.operations.get(&(call.life.clone(), list)).cloned()
        });
        if let (Some(operation), Some(world)) = (known, self.clusters.first())
            && lists::is_under_way(&world.cloudflare, &operation)
        {
            let what = format!("{} changes items while operation {operation} is under way", call.life);
            self.broken(Rule::Operations, what);
        }
    }

    fn check_contest(&self, life: &Life, id: &str, was: &Value, is: &Value) {
        let at = self.now();
        let mut fights = Vec::new();
        {
            let mut book = self.book();
            for (field, value) in is.as_object().into_iter().flatten() {
                // Of managed transforms each has a field of its own.
                if was[field] == *value || field.ends_with("_on") || field == "transforms" {
                    continue;
                }
                let key = (life.name().to_owned(), id.to_owned(), field.clone());
                let times = book.corrections.entry(key).or_default();
                if times.last().is_some_and(|(_, last)| last != value) {
                    times.clear();
                }
                let last = times.last().map(|(at, _)| *at);
                times.push((at, value.clone()));
                // The first may be the user's own change, and three corrections are free.
                let lately = times
                    .iter()
                    .filter(|(then, _)| at.saturating_sub(*then) < CONTEST_WINDOW)
                    .count();
                if lately > 4 && last.is_some_and(|last| at.saturating_sub(last) < CONTEST_PAUSE) {
                    fights.push(format!(
                        "{} set {field} of {id} {lately} times within an hour",
                        life.name()
                    ));
                }
            }
        }
        for fight in fights {
            self.broken(Rule::Contest, fight);
        }
    }
}

impl Witness for Ledger {
    fn before(&self, life: &Life, number: u64, request: &Request<Bytes>) {
        let call = Call {
            at: self.now(),
            life: life.name().to_owned(),
            reads: request.method() == Method::GET,
            items_of: lists::items_of(request),
            answer: None,
        };
        self.check_operation(&call);
        self.book().calls.insert(number, call);
        if request.method() != Method::GET {
            let before = self.holdings();
            self.book().before = Some(before);
        }
    }

    fn applied(&self, life: &Life, _number: u64, request: &Request<Bytes>) {
        if request.method() == Method::GET {
            return;
        }
        let before = self.book().before.take().unwrap_or_default();
        let after = self.holdings();
        if let Some(cluster) = cluster_of(life.name()) {
            self.saw(cluster, life, &before, &after);
        }
    }

    fn answered(&self, _life: &Life, number: u64, response: &Response<Bytes>) {
        let now = self.now();
        let retry_after = response.headers().get(http::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|it| it.to_str().ok()?.parse().ok());
        let mut book = self.book();
        let Some(call) = book.calls.get_mut(&number) else {
            return;
        };
        call.answer = Some((now, response.status().as_u16(), retry_after));
        let accepted = call.items_of.clone().zip(lists::operation_of(response));
        let life = call.life.clone();
        if let Some((list, operation)) = accepted {
            book.operations.insert((life, list), operation);
        }
    }
}

/// The name of a replica, which its lives' names begin with.
pub fn replica_name(cluster: usize, replica: usize) -> String {
    format!("c{cluster}-r{replica}")
}

fn cluster_of(life: &str) -> Option<usize> {
    life.strip_prefix('c')?.split('-').next()?.parse().ok()
}

/// The resources of a cluster that name an object.
fn askers(world: &World, object: &Value) -> Vec<Value> {
    let identity_wanted = remote_identity(object);
    let id = text(&object["id"]);
    KINDS
        .iter()
        .filter(|plural| **plural != "cloudflareaccounts")
        .flat_map(|plural| world.api.list(&format!("{plural}.{}", names::GROUP)))
        // A namespace that is still to be renamed is known by its id.
        .filter(|resource| identity(resource) == identity_wanted || recorded_id(resource).as_ref() == Some(&id))
        .collect()
}

/// Whether a resource of a cluster has recorded an object.
fn is_recorded(world: &World, object: &Value) -> bool {
    let id = text(&object["id"]);
    let askers = askers(world, object);
    askers
        .iter()
        .any(|resource| recorded_id(resource).as_ref() == Some(&id))
}

/// The fields of ids. A record and a route have the ids of themselves and of their zone.
const IDS: [&str; 10] = [
    "recordID",
    "ruleID",
    "routeID",
    "listID",
    "scriptID",
    "zoneID",
    "tunnelID",
    "namespaceID",
    "databaseID",
    "queueID",
];

/// The id that a resource has recorded.
pub fn recorded_id(resource: &Value) -> Option<String> {
    let metadata = &resource["status"]["cloudflareMetadata"];
    if resource["kind"] == "ManagedTransform" {
        return metadata["zoneID"].as_str().map(transforms::id);
    }
    let id = IDS.iter().find_map(|field| metadata[*field].as_str());
    let id = id.or_else(|| metadata["name"].as_str().filter(|_| resource["kind"] == "R2Bucket"));
    id.map(str::to_owned)
}

type Identify = fn(&Value) -> Option<(String, String)>;

/// What tells things of some kinds apart, for a resource as for what it manages.
const IDENTITIES: [Identify; 5] = [
    stores::identity,
    rulesets::identity,
    lists::identity,
    transforms::identity,
    workers::identity,
];

/// Type and full name of what a resource asks for.
pub fn identity(resource: &Value) -> (String, String) {
    if let Some(identity) = IDENTITIES.iter().find_map(|of| of(resource)) {
        return identity;
    }
    let spec = &resource["spec"];
    if resource["kind"] == "Zone" {
        return ("Zone".to_owned(), text(&spec["name"]));
    }
    // A configuration is a part of its tunnel, whose resource has the name of the tunnel.
    if resource["kind"] == "Tunnel" {
        return ("Tunnel".to_owned(), text(&spec["name"]));
    }
    if resource["kind"] == "TunnelConfiguration" {
        return ("Tunnel".to_owned(), text(&spec["tunnelRef"]["name"]));
    }
    (
        text(&spec["type"]),
        full_name(&text(&spec["name"]), &domain_of(resource)),
    )
}

/// The domain of a record resource.
pub fn domain_of(resource: &Value) -> String {
    format!("{}.example", text(&resource["spec"]["zoneRef"]["name"]))
}

/// Type and full name of an object.
pub fn remote_identity(object: &Value) -> (String, String) {
    if let Some(identity) = IDENTITIES.iter().find_map(|of| of(object)) {
        return identity;
    }
    if !object["tun_type"].is_null() {
        ("Tunnel".to_owned(), text(&object["name"]))
    } else if object["zone_id"].is_null() {
        ("Zone".to_owned(), text(&object["name"]))
    } else {
        (text(&object["type"]), text(&object["name"]))
    }
}

/// What a resource is called.
pub fn target_of(resource: &Value) -> Target {
    Target {
        kind: text(&resource["kind"]),
        name: text(&resource["metadata"]["name"]),
    }
}

/// The text in a value; empty if it is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The fields of an object that users see and kflare may set.
pub fn user_fields(object: &Value) -> Map<String, Value> {
    const FIELDS: [&str; 36] = [
        "type",
        "name",
        "content",
        "data",
        "ttl",
        "proxied",
        "priority",
        "comment",
        "tags",
        "settings",
        "title",
        "storage_class",
        "cors",
        "lifecycle",
        "read_replication",
        "ref",
        "action",
        "action_parameters",
        "expression",
        "description",
        "enabled",
        "logging",
        "ratelimit",
        "position",
        "items",
        "transforms",
        "pattern",
        "script",
        "content",
        "compatibility_date",
        "compatibility_flags",
        "observability",
        "placement",
        "limits",
        "schedules",
        "workers_dev",
    ];
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.retain(|field, _| FIELDS.contains(&field.as_str()));
    fields
}
