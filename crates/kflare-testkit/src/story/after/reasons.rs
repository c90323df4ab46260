//! Every reason other than Ready is true of the account.

use kflare_api::names;
use serde_json::Value;

use super::sight::Sight;
use super::{annotation, is_refused};
use crate::story::identity::{identity, recorded_id, remote_identity, target_of, text};
use crate::story::{rulesets, transforms, workers};

impl Sight<'_> {
    /// Why a reason is not true; none if it is.
    pub(super) fn why_untrue(&self, resource: &Value, reason: &str) -> Option<String> {
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
        // What of a list is refused for good is one too many. That there is room again is not seen before the next try. A refusal
        // is not put down as long as an earlier create may have been carried out.
        let in_doubt = annotation(resource, names::CREATE_INTENT).is_some();
        let refused = || {
            (resource["kind"] == "DNSRecord" && self.wanted(resource).is_err())
                || (resource["kind"] == "IPList" && id.is_none() && (is_refused(resource) || in_doubt))
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
            "KVNamespaceNotFound" | "R2BucketNotFound" | "D1DatabaseNotFound" | "QueueNotFound" => {
                self.stores_of(resource).iter().any(Option::is_none)
            }
            "KVNamespaceNotReady" | "R2BucketNotReady" | "D1DatabaseNotReady" | "QueueNotReady" | "BindingNotFound" => {
                self.stores_of(resource)
                    .into_iter()
                    .flatten()
                    .any(|it| self.is_not_there(it))
            }
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
}
