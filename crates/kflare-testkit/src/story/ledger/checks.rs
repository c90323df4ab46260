//! What must hold of each change that a controller makes at Cloudflare.

use std::time::Duration;

use kflare_api::names;
use serde_json::Value;

use super::{GRACE, Ledger, Maker};
use crate::life::Life;
use crate::memory_api::ObjectId;
use crate::story::identity::{askers, recorded_id, remote_identity, target_of, text};
use crate::story::perform::KINDS;
use crate::story::rule::Rule;
use crate::story::transforms;

impl Ledger {
    pub(super) fn check(&self, cluster: usize, life: &Life, id: &str, was: &Value, is: &Value) {
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
        let api = &self.clusters[cluster].api;
        // Nothing has come to be under a zone that went before its id was recorded.
        if leaving["kind"] == "Zone" && api.get(&ObjectId::of(leaving)).is_some() {
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

    pub(super) fn check_leader(&self, cluster: usize, life: &Life) {
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
}
