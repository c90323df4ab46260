//! What must hold when the dust has settled, and when everything is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kflare_api::names;
use kflare_cloudflare::{BaseUrl, Metrics, Pool, PoolOptions};
use kflare_engine::credentials::FixedCredentials;
use kflare_engine::offline::{Manifests, Planned, PlannedOutcome};
use kflare_engine::policy::{DefaultDeletion, DriftCheck, parse_duration};
use kflare_engine::resolve::Defaults;
use kflare_engine::{Change, Plan};
use serde_json::Value;

use super::ledger::{Holdings, Maker, Write, identity, recorded_id, remote_identity, target_of, text, user_fields};
use super::perform::{KINDS, Stage};
use super::rule::Rule;
use super::wanted::{differences, wanted};
use super::{lists, rulesets, stores, transforms, workers};
use crate::life::Life;

/// Cloudflare's window, and what it allows in one.
const WINDOW: Duration = Duration::from_mins(5);
const CALLS_A_WINDOW: usize = 1200;

/// `Ready` of a resource: status, reason, and the generation it speaks of.
fn ready(resource: &Value) -> (String, String, Option<i64>) {
    let conditions = resource["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions
        .into_iter()
        .find(|it| it["type"] == "Ready")
        .unwrap_or_default();
    (
        text(&ready["status"]),
        text(&ready["reason"]),
        ready["observedGeneration"].as_i64(),
    )
}

fn annotation<'a>(resource: &'a Value, name: &str) -> Option<&'a str> {
    resource["metadata"]["annotations"][name].as_str()
}

fn is_paused(resource: &Value) -> bool {
    !matches!(annotation(resource, names::PAUSED), None | Some("false" | ""))
}

/// Everything in a cluster that is ours.
fn resources(stage: &Stage, cluster: usize) -> Vec<Value> {
    KINDS
        .iter()
        .flat_map(|plural| stage.clusters[cluster].api.list(&format!("{plural}.{}", names::GROUP)))
        .collect()
}

/// Whether a resource (`plural.group name`) may be written to at rest: it is fought over, for ever more rarely. Of two clusters
/// that want one object to be different, whichever had the last word says Ready until the other has answered.
pub fn may_be_restless(stage: &Stage, cluster: usize, what: &str) -> bool {
    let at_odds = |resource: &Value| {
        let others = (0..stage.clusters.len()).filter(|other| *other != cluster);
        let mut theirs = others.flat_map(|other| resources(stage, other));
        recorded_id(resource).is_some_and(|id| {
            theirs.any(|other| recorded_id(&other).as_ref() == Some(&id) && other["spec"] != resource["spec"])
        })
    };
    resources(stage, cluster)
        .iter()
        .filter(|it| what.ends_with(&format!(" {}", text(&it["metadata"]["name"]))))
        .any(|it| ready(it).1 == "Contested" || at_odds(it) || is_refused(it))
}

/// What a plan does not include is asked for again after hours: an intent is written, and taken off.
fn is_refused(resource: &Value) -> bool {
    resource["status"]["refused"].is_string()
}

/// For each collection whose members ask for checks at an interval of their own, the shortest.
pub fn intervals_asked_for(stage: &Stage) -> impl Iterator<Item = Duration> {
    let mut shortest: BTreeMap<(usize, String, String), Duration> = BTreeMap::new();
    for cluster in 0..stage.clusters.len() {
        for resource in resources(stage, cluster) {
            let asked = annotation(&resource, names::DRIFT_CHECK_INTERVAL).and_then(parse_duration);
            if let Some(interval) = asked.filter(|interval| !interval.is_zero()) {
                let container = text(&resource["spec"]["zoneRef"]["name"]);
                let known = shortest
                    .entry((cluster, target_of(&resource).kind, container))
                    .or_insert(interval);
                *known = interval.min(*known);
            }
        }
    }
    shortest.into_values()
}

/// One cluster and the account, as they are.
struct Sight<'a> {
    stage: &'a Stage,
    cluster: usize,
    all: Vec<Value>,
    holdings: &'a Holdings,
    /// Ids that more than one cluster has recorded.
    shared: &'a BTreeSet<String>,
}

/// Checks a world at rest.
pub fn settled(stage: &Stage) {
    let holdings = Holdings::of(&stage.clusters[0].cloudflare);
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for cluster in 0..stage.clusters.len() {
        let ids: BTreeSet<String> = resources(stage, cluster).iter().filter_map(recorded_id).collect();
        for id in ids {
            *recorded.entry(id).or_default() += 1;
        }
    }
    let shared = recorded
        .into_iter()
        .filter(|(_, clusters)| *clusters > 1)
        .map(|(id, _)| id)
        .collect();
    for cluster in 0..stage.clusters.len() {
        let sight = Sight {
            stage,
            cluster,
            all: resources(stage, cluster),
            holdings: &holdings,
            shared: &shared,
        };
        sight.check_claims();
        sight.check_order();
        for resource in &sight.all {
            sight.check(resource);
        }
    }
    foreign_untouched(stage, &holdings);
    no_orphans(stage, &holdings);
}

impl Sight<'_> {
    fn untrue(&self, resource: &Value, what: &str) {
        let told = format!("cluster {} {}: {what}; {resource}", self.cluster, target_of(resource));
        self.stage.ledger.broken(Rule::Truth, told);
    }

    /// No object has two resources that both call themselves Ready.
    fn check_claims(&self) {
        // A tunnel and its configuration have one id.
        let mut seen: BTreeMap<(String, String), &Value> = BTreeMap::new();
        for resource in self.all.iter().filter(|it| ready(it).0 == "True") {
            if let Some(id) = recorded_id(resource)
                && let Some(other) = seen.insert((text(&resource["kind"]), id), resource)
            {
                self.untrue(resource, &format!("is Ready with the object of {}", target_of(other)));
            }
        }
    }

    /// Rules of ours stand as their priorities and names say; those that may not be moved, or that nobody looks at, aside.
    fn check_order(&self) {
        let looked_after = self.all.iter().filter(|it| {
            let idle = is_paused(it) || annotation(it, names::MODE) == Some("observe");
            !idle && ready(it).0 == "True" && annotation(it, names::DRIFT_CHECK_INTERVAL) != Some("0s")
        });
        if let Some((first, then)) = rulesets::out_of_order(&self.holdings.rules, looked_after) {
            let ids = [first, then].map(recorded_id);
            // Two clusters that both adopted it have a name and a priority each.
            if !ids.iter().flatten().any(|id| self.shared.contains(id)) {
                self.untrue(first, &format!("stands behind {}", target_of(then)));
            }
        }
    }

    fn check(&self, resource: &Value) {
        let (status, reason, generation) = ready(resource);
        if reason == "InternalError" {
            self.stage.ledger.broken(Rule::Defect, resource.to_string());
        }
        if is_paused(resource) {
            if reason != "Paused" {
                self.untrue(resource, "is paused and does not say so");
            }
            return;
        }
        if generation != resource["metadata"]["generation"].as_i64() {
            return self.untrue(resource, "does not speak of its spec as it is");
        }
        if !resource["metadata"]["deletionTimestamp"].is_null() {
            return self.check_leaving(resource, &reason);
        }
        if status == "True" {
            self.check_ready(resource);
        } else if let Some(why) = self.why_untrue(resource, &reason) {
            self.untrue(resource, &format!("says {reason}, but {why}"));
        }
    }

    fn check_leaving(&self, resource: &Value, reason: &str) {
        let full = recorded_id(resource)
            .and_then(|id| self.holdings.stores.get(&id))
            .is_some_and(|bucket| bucket["objects"].as_u64() > Some(0));
        if full && reason == "BucketNotEmpty" {
            return;
        }
        if resource["kind"] == "IPList" && reason == "ListInUse" {
            let name = text(&resource["spec"]["name"]);
            let mut rules = self.holdings.rules.all.values();
            let mut resources = self.all.iter().filter(|it| rulesets::is_rule(it));
            if rules.any(|rule| rulesets::list_of(rule).as_ref() == Some(&name))
                || resources.any(|it| rulesets::list_of(&it["spec"]).as_ref() == Some(&name))
            {
                return;
            }
        }
        let children = self.children(resource);
        if children.is_empty() {
            let what = format!(
                "cluster {} {} is still there: {resource}",
                self.cluster,
                target_of(resource)
            );
            self.stage.ledger.broken(Rule::Goes, what);
        } else if reason != "InUse" {
            self.untrue(resource, "waits for others and does not say so");
        }
    }

    fn children(&self, resource: &Value) -> Vec<&Value> {
        let field = match resource["kind"].as_str() {
            Some("CloudflareAccount") => "accountRef",
            Some("Zone") => "zoneRef",
            Some("Tunnel") => "tunnelRef",
            Some("WorkerScript") => "workerScriptRef",
            Some(kind) => {
                let name = text(&resource["metadata"]["name"]);
                let is_bound = |it: &&Value| {
                    workers::stores_of(it)
                        .iter()
                        .any(|store| store.0 == kind && store.1 == name)
                };
                return self.all.iter().filter(is_bound).collect();
            }
            None => return Vec::new(),
        };
        self.all
            .iter()
            .filter(|it| it["spec"][field]["name"] == resource["metadata"]["name"])
            .collect()
    }

    fn check_ready(&self, resource: &Value) {
        if resource["kind"] == "CloudflareAccount" {
            return;
        }
        let Some(id) = &recorded_id(resource) else {
            return self.untrue(resource, "is Ready without an object");
        };
        // The user asked not to look.
        if annotation(resource, names::DRIFT_CHECK_INTERVAL) == Some("0s") {
            return;
        }
        if let Some(differences) = self.differences(resource, id) {
            if !differences.is_empty() && !self.shared.contains(id) {
                self.untrue(resource, &format!("is Ready and differs: {differences:?}"));
            }
            return;
        }
        if stores::identity(resource).is_some() {
            let Some(object) = self.holdings.stores.get(id) else {
                return self.untrue(resource, "is Ready and its object does not exist");
            };
            let differences = stores::differences(resource, object);
            if !differences.is_empty() && !self.shared.contains(id) {
                self.untrue(resource, &format!("is Ready and differs: {differences:?}"));
            }
            return;
        }
        if resource["kind"] == "Zone" {
            let Some(zone) = self.holdings.zones.get(id) else {
                return self.untrue(resource, "is Ready and its zone does not exist");
            };
            let paused = &resource["spec"]["paused"];
            if zone["name"] != resource["spec"]["name"] || (!paused.is_null() && zone["paused"] != *paused) {
                self.untrue(resource, &format!("is Ready and differs from {zone}"));
            }
            return;
        }
        if matches!(resource["kind"].as_str(), Some("Tunnel" | "TunnelConfiguration")) {
            let tunnels: Vec<Value> = self.holdings.tunnels.values().cloned().collect();
            if let Some(why) = super::tunnels::why_not(&self.stage.clusters[self.cluster], resource, &tunnels) {
                self.untrue(resource, &format!("is Ready, but {why}"));
            }
            return;
        }
        let Some(record) = self.holdings.records.get(id) else {
            return self.untrue(resource, "is Ready and its record does not exist");
        };
        match self.wanted(resource) {
            Err(refusal) => self.untrue(resource, &format!("is Ready although Cloudflare refuses it: {refusal}")),
            Ok(wanted) => {
                let differences = differences(&resource["spec"], &wanted, record);
                // Two that both adopted it may be at it right now.
                if !differences.is_empty() && !self.shared.contains(id) {
                    self.untrue(resource, &format!("is Ready and differs: {differences:?}"));
                }
            }
        }
    }

    /// Why a reason is not true; none if it is.
    fn why_untrue(&self, resource: &Value, reason: &str) -> Option<String> {
        let id = recorded_id(resource);
        let id = id.as_ref();
        let (kind, name) = identity(resource);
        let policy = annotation(resource, names::ADOPTION_POLICY);
        let zone = self.zone_of(resource);
        let others: Vec<&Value> = self
            .holdings
            .iter()
            .filter(|(other, object)| {
                Some(*other) != id
                    && remote_identity(object) == (kind.clone(), name.clone())
                    && !transforms::are_off(object)
            })
            .map(|(_, object)| object)
            .collect();
        let claimed = || {
            self.all.iter().any(|other| {
                target_of(other) != target_of(resource)
                    && recorded_id(other).is_some()
                    // One that is still to be renamed has the object under the name that is wanted here.
                    && (identity(other) == (kind.clone(), name.clone())
                        || others.iter().any(|it| it["id"].as_str() == recorded_id(other).as_deref()))
            })
        };
        // What of a list is refused for good is one too many. That there is room again is not seen before the next try.
        let refused = || {
            (resource["kind"] == "DNSRecord" && self.wanted(resource).is_err())
                || (resource["kind"] == "IPList" && id.is_none() && is_refused(resource))
                || rulesets::is_refused(&self.stage.setting, self.holdings, resource, self.lists())
        };
        let holds = match reason {
            // A title can be taken also by a rename.
            "AlreadyExists" => (policy.is_none() || id.is_some()) && !others.is_empty(),
            "AlreadyClaimed" => claimed(),
            "NothingToAdopt" => matches!(policy, Some("adopt" | "adopt-if-matching")),
            "AdoptionBlocked" => policy == Some("adopt-if-matching") && !others.is_empty(),
            "SecretNotFound" | "SecretKeyMissing" | "ConfigMapNotFound" | "ConfigMapKeyMissing" => {
                workers::lacks_input(&self.stage.clusters[self.cluster], resource)
            }
            // Of several resources of a zone the oldest has its managed transforms.
            "AlreadyConfigured" => self.all.iter().any(|it| {
                it["kind"] == "ManagedTransform"
                    && target_of(it) != target_of(resource)
                    && it["spec"]["zoneRef"] == resource["spec"]["zoneRef"]
            }),
            "PatternConflict" => !others.is_empty(),
            "WorkerScriptNotFound" | "WorkerScriptNotReady" => {
                let worker = self.worker_of(resource);
                worker.is_none_or(|it| self.is_not_there(it))
            }
            "KVNamespaceNotFound" | "R2BucketNotFound" | "D1DatabaseNotFound" => {
                self.stores_of(resource).iter().any(Option::is_none)
            }
            "KVNamespaceNotReady" | "R2BucketNotReady" | "D1DatabaseNotReady" | "BindingNotFound" => self
                .stores_of(resource)
                .into_iter()
                .flatten()
                .any(|it| self.is_not_there(it)),
            "IPListNotReady" => {
                let list = rulesets::list_of(&resource["spec"]);
                let mut lists = self.all.iter().filter(|it| it["kind"] == "IPList");
                lists.any(|it| it["spec"]["name"].as_str() == list.as_deref() && self.is_not_there(it))
            }
            "RulesetConflict" => rulesets::conflicts(self.holdings, resource),
            "RecordConflict" => self
                .holdings
                .records
                .iter()
                .any(|(other, record)| Some(other) != id && text(&record["name"]) == name),
            "ZoneNotFound" => zone.is_none(),
            "TunnelNotFound" => self.tunnel_of(resource).is_none(),
            "TunnelNotReady" => self.tunnel_of(resource).is_some_and(|it| recorded_id(it).is_none()),
            "ZoneNotReady" => {
                zone.is_some_and(|zone| recorded_id(zone).is_none() || !zone["metadata"]["deletionTimestamp"].is_null())
            }
            // That its zone does not exist is true as long as the resource of the zone may not say so itself.
            "TerminalError"
                if zone
                    .and_then(recorded_id)
                    .is_some_and(|id| !self.holdings.zones.contains_key(&id)) =>
            {
                true
            }
            // The same goes for the tunnel of a configuration.
            "TerminalError"
                if self
                    .tunnel_of(resource)
                    .and_then(recorded_id)
                    .is_some_and(|id| !self.holdings.tunnels.contains_key(&id)) =>
            {
                true
            }
            "InvalidSpec" | "TerminalError" => refused(),
            "Observing" => annotation(resource, names::MODE) == Some("observe"),
            // Whoever fought has rested for hours, unless it is another cluster.
            "Contested" => id.is_some_and(|id| self.shared.contains(id)),
            _ => return Some("that is no reason to stay like this".to_owned()),
        };
        (!holds).then(|| format!("it is not so: adoption {policy:?}, others {others:?}, zone {zone:?}"))
    }

    /// Whether the object of a resource is not there, as far as its status or the account tells; or it leaves.
    fn is_not_there(&self, resource: &Value) -> bool {
        let leaves = !resource["metadata"]["deletionTimestamp"].is_null();
        leaves || recorded_id(resource).is_none_or(|id| self.holdings.iter().all(|(other, _)| *other != id))
    }

    /// What lists of this cluster are called that are there.
    fn lists(&self) -> Vec<String> {
        let lists = self
            .all
            .iter()
            .filter(|it| it["kind"] == "IPList" && !self.is_not_there(it));
        lists.map(|it| text(&it["spec"]["name"])).collect()
    }

    fn resource(&self, kind: &str, name: &str) -> Option<&Value> {
        let mut all = self.all.iter();
        all.find(|it| it["kind"] == kind && it["metadata"]["name"] == *name)
    }

    fn worker_of(&self, resource: &Value) -> Option<&Value> {
        self.resource("WorkerScript", resource["spec"]["workerScriptRef"]["name"].as_str()?)
    }

    fn stores_of(&self, resource: &Value) -> Vec<Option<&Value>> {
        let stores = workers::stores_of(resource).into_iter();
        stores.map(|(kind, name)| self.resource(kind, &name)).collect()
    }

    /// In what the object `id` of a rule, a list, a Worker, a route or of managed transforms is not as the spec has it; none for
    /// other kinds.
    fn differences(&self, resource: &Value, id: &String) -> Option<Vec<String>> {
        let world = &self.stage.clusters[self.cluster];
        let compare = |all: &BTreeMap<String, Value>, differences: &dyn Fn(&Value) -> Vec<String>| {
            let missing = || vec!["it does not exist".to_owned()];
            Some(all.get(id).map_or_else(missing, differences))
        };
        match resource["kind"].as_str()? {
            "IPList" => compare(&self.holdings.lists, &|list| lists::differences(resource, list)),
            "ManagedTransform" => compare(&self.holdings.transforms, &|all| transforms::differences(resource, all)),
            "WorkerScript" => compare(&self.holdings.workers, &|worker| {
                let store = |kind: &str, name: &str| recorded_id(self.resource(kind, name)?);
                workers::differences(world, resource, worker, store)
            }),
            "WorkerRoute" => compare(&self.holdings.routes, &|route| {
                let script = self
                    .worker_of(resource)
                    .map(|it| text(&it["spec"]["name"]))
                    .unwrap_or_default();
                let wanted = [&resource["spec"]["pattern"], &Value::String(script)];
                let is = [&route["pattern"], &route["script"]];
                if wanted == is {
                    Vec::new()
                } else {
                    vec![format!("wanted {wanted:?}, is {is:?}")]
                }
            }),
            _ if rulesets::is_rule(resource) => compare(&self.holdings.rules.all, &|rule| {
                rulesets::differences(&self.stage.setting, resource, rule)
            }),
            _ => None,
        }
    }

    fn tunnel_of(&self, resource: &Value) -> Option<&Value> {
        let name = &resource["spec"]["tunnelRef"]["name"];
        let mut all = self.all.iter();
        all.find(|it| it["kind"] == "Tunnel" && it["metadata"]["name"] == *name)
    }

    fn wanted(&self, resource: &Value) -> Result<Value, String> {
        wanted(&self.stage.clusters, &self.stage.setting, self.holdings, resource)
    }

    fn zone_of(&self, resource: &Value) -> Option<&Value> {
        self.all
            .iter()
            .find(|it| it["kind"] == "Zone" && it["metadata"]["name"] == resource["spec"]["zoneRef"]["name"])
    }
}

fn foreign_untouched(stage: &Stage, holdings: &Holdings) {
    for (id, left) in stage.ledger.untouchable() {
        let now = holdings.iter().find(|(other, _)| **other == id).map(|(_, now)| now);
        let zone_id = text(&left["zone_id"]);
        let zone_is_gone = !zone_id.is_empty() && !holdings.zones.contains_key(&zone_id);
        if now.is_none() && (zone_is_gone || holdings.leads_nowhere(&left)) {
            continue;
        }
        if now.is_none_or(|now| user_fields(now) != user_fields(&left)) {
            stage
                .ledger
                .broken(Rule::Foreign, format!("left as {left}, now {now:?}"));
        }
    }
}

fn no_orphans(stage: &Stage, holdings: &Holdings) {
    for cluster in 0..stage.clusters.len() {
        let all = resources(stage, cluster);
        let recorded: BTreeSet<String> = all.iter().filter_map(recorded_id).collect();
        // What a standing intent announces is found again as soon as its resource may go on, or when it is deleted.
        let intended: BTreeSet<(String, String)> = all
            .iter()
            .filter(|it| annotation(it, names::CREATE_INTENT).is_some())
            .map(identity)
            .collect();
        for (id, object) in holdings.iter() {
            let known = recorded.contains(id) || intended.contains(&remote_identity(object));
            if stage.ledger.maker(id) == Some(Maker::Cluster(cluster))
                && !known
                && !transforms::are_off(object)
                && !stage.ledger.may_be_kept(cluster, object)
            {
                stage.ledger.broken(
                    Rule::Orphan,
                    format!("cluster {cluster} made {object}, and nobody knows"),
                );
            }
        }
    }
}

/// Checks a world in which users deleted everything.
pub fn gone(stage: &Stage) {
    let holdings = Holdings::of(&stage.clusters[0].cloudflare);
    for (cluster, world) in stage.clusters.iter().enumerate() {
        let mut left = resources(stage, cluster);
        left.extend(world.api.list("secrets"));
        for object in left {
            stage.ledger.broken(Rule::Goes, format!("cluster {cluster}: {object}"));
        }
    }
    foreign_untouched(stage, &holdings);
    no_orphans(stage, &holdings);
}

/// Checks how often Cloudflare was called.
pub fn budget(stage: &Stage) {
    let calls = stage.ledger.calls();
    for cluster in 0..stage.clusters.len() {
        let prefix = format!("c{cluster}-");
        let times: Vec<Duration> = calls
            .iter()
            .filter(|it| it.life.starts_with(&prefix))
            .map(|it| it.at)
            .collect();
        for (first, at) in times.iter().enumerate() {
            let within = times[first..].iter().take_while(|it| **it < *at + WINDOW).count();
            if within > CALLS_A_WINDOW {
                stage.ledger.broken(
                    Rule::Budget,
                    format!("cluster {cluster} made {within} calls within five minutes"),
                );
                break;
            }
        }
    }
    let second = Duration::from_secs(1);
    let rotations = stage.ledger.rotations();
    for refused in &calls {
        let Some((at, 429, Some(seconds))) = refused.answer else {
            continue;
        };
        let until = at + Duration::from_secs(seconds.saturating_sub(1));
        let replaced = rotations.iter().any(|rotation| *rotation <= until);
        let early = calls
            .iter()
            .find(|it| it.life == refused.life && it.at > at + second && it.at < until);
        if let Some(early) = early.filter(|_| !replaced) {
            let what = format!(
                "{} was told at {at:?} to wait {seconds} s, and called at {:?}",
                early.life, early.at
            );
            stage.ledger.broken(Rule::Budget, what);
        }
    }
}

/// What `kflare plan` says about everything in a cluster.
pub async fn plan(stage: &Stage, cluster: usize) -> Vec<Planned> {
    let world = &stage.clusters[cluster];
    let life = Life::new(format!("plan-{cluster}"));
    let options = PoolOptions {
        base_url: BaseUrl::default(),
        ..PoolOptions::default()
    };
    let pool = Pool::new(world.way.transport(&life), options, Metrics::unregistered());
    let client = pool.client("plan", stage.token(cluster).into()).read_only();
    let mut manifests = Manifests::new(kflare_kinds::kinds());
    for resource in resources(stage, cluster) {
        let added = serde_json::from_value(resource).map_err(|error| error.to_string());
        let added = added.and_then(|manifest| manifests.add(manifest).map_err(|error| error.to_string()));
        if let Err(error) = added {
            stage.ledger.broken(Rule::Plan, error);
        }
    }
    let defaults = Defaults {
        deletion: DefaultDeletion::Delete,
        drift_check: DriftCheck::Off,
    };
    manifests.plan(&FixedCredentials::new(client), defaults).await
}

/// Checks that a cluster's controllers did what the plan had said.
pub fn as_planned(stage: &Stage, cluster: usize, plan: &[Planned], since: Duration) {
    // Two clusters answer each other's moves, which no plan of one of them shows.
    if stage.clusters.len() > 1 {
        return;
    }
    let all = resources(stage, cluster);
    let writes = stage.ledger.writes_since(cluster, since);
    for (number, write) in writes.iter().enumerate() {
        let object = if write.after.is_null() {
            &write.before
        } else {
            &write.after
        };
        let id = text(&object["id"]);
        let owner = all.iter().find(|it| recorded_id(it).as_ref() == Some(&id));
        let Some(owner) = owner.or_else(|| all.iter().find(|it| identity(it) == remote_identity(object))) else {
            continue;
        };
        let (kind, name) = (target_of(owner).kind, target_of(owner).name);
        let planned = plan
            .iter()
            .find(|it| *it.resource.kind == *kind && *it.resource.name == *name);
        let Some(planned) = planned else { continue };
        if !allows(&planned.outcome, write, number > 0) {
            let what = format!(
                "{kind} {name} was planned as {:?}, and {} -> {}",
                planned.outcome, write.before, write.after
            );
            stage.ledger.broken(Rule::Plan, what);
        }
    }
}

fn allows(planned: &PlannedOutcome, write: &Write, others_moved: bool) -> bool {
    let shown = |changes: &[Change]| {
        let changed = user_fields(&write.after);
        // Settings that are off may be shown or not.
        let off = |value: &Value| {
            value
                .as_object()
                .is_none_or(|it| it.values().all(|on| *on == Value::Bool(false)))
        };
        let changed = changed.iter().filter(|(field, value)| {
            let before = &write.before[field.as_str()];
            before != *value && !(*field == "settings" && off(before) && off(value))
        });
        changed.map(|(field, _)| field).all(|field| {
            changes.iter().any(|change| {
                let top = change.path.split('.').next().unwrap_or_default();
                let spelling = match top {
                    "storageClass" => "storage_class",
                    "defaultLifecycleRule" => "lifecycle",
                    "delivery_delay" | "message_retention_period" | "delivery_paused" => "settings",
                    "managed_request_headers" | "managed_response_headers" => "transforms",
                    // Of records; of Workers it is the code with all bindings.
                    "data" | "bindings" | "secret_names" | "secrets" => "content",
                    other => other,
                };
                top == field || spelling == field
            })
        })
    };
    match planned {
        PlannedOutcome::Plan(Plan::Create { .. }) => write.before.is_null() || others_moved,
        PlannedOutcome::Plan(
            Plan::Update { changes, .. } | Plan::Adopt { changes, .. } | Plan::Recover { changes, .. },
        ) => !write.before.is_null() && !write.after.is_null() && shown(changes),
        PlannedOutcome::Plan(Plan::Replace { .. }) => true,
        PlannedOutcome::Plan(Plan::Delete { .. }) => write.after.is_null(),
        PlannedOutcome::Plan(Plan::Blocked { .. } | Plan::Wait { .. }) => others_moved,
        PlannedOutcome::Plan(Plan::NoOp { .. } | Plan::Forget { .. }) | PlannedOutcome::Error(_) => false,
    }
}
