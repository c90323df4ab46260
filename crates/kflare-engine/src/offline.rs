//! Plans for manifests, without a cluster: the same preparation, observation and decision as in a pass, over a store that is
//! filled from files. Nothing is executed; the client that is handed in is expected to refuse every write.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    collections::{Collections, Freshness},
    credentials::Credentials,
    decide::{Claims, Observed, Situation, decide, decide_deletion},
    index::{CollectionKey, Index},
    kind::{Kind, Lifecycle, Remote},
    kinds::Kinds,
    object::{Object, ObjectKey},
    observe::{FEW, Look, Proof, observe},
    order::Arrangement,
    plan::Plan,
    policy::is_paused,
    reason::Reason,
    resolve::{Defaults, ParentRule, Prepared, prepare, with_recorded, without_recorded},
};

/// What would happen with one resource.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// The resource.
    #[serde(serialize_with = "as_text")]
    pub resource: ObjectKey,
    /// The Secrets and ConfigMaps that it reads. They are not at hand, so that a difference there is not shown.
    #[serde(rename = "notCompared", skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// What would be done, or why that is not known.
    #[serde(flatten)]
    pub outcome: PlannedOutcome,
}

/// See [`Planned`].
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PlannedOutcome {
    /// This.
    Plan(Plan),
    /// It could not be found out.
    Error(String),
}

fn as_text<S: serde::Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

/// A manifest that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not one of ours, or lacks a name.
    #[error("{0}")]
    Unusable(String),
    /// Two of the same name.
    #[error("{0} appears twice; keep one of the two")]
    Twice(ObjectKey),
}

/// A store filled from manifests.
pub struct Manifests {
    kinds: Kinds,
    index: Index,
}

struct NoClaims<'a> {
    index: &'a Index,
    collection: &'a CollectionKey,
    asking: &'a ObjectKey,
}

impl Claims for NoClaims<'_> {
    fn holder(&self, id: &str) -> Option<ObjectKey> {
        self.index.holder(self.collection, id, self.asking)
    }

    /// What tells an intent from a copy of one is a Secret, and manifests have none.
    fn announcer(&self, _remote: &Remote) -> Option<ObjectKey> {
        None
    }
}

impl Manifests {
    /// No manifest yet.
    pub fn new(kinds: Kinds) -> Self {
        Self {
            index: Index::new(kinds.clone()),
            kinds,
        }
    }

    /// Takes a manifest of one of our kinds. A namespaced one without a namespace is in `default`, as for kubectl.
    pub fn add(&mut self, mut manifest: DynamicObject) -> Result<ObjectKey, ManifestError> {
        let kind = manifest
            .types
            .as_ref()
            .map(|types| types.kind.clone())
            .unwrap_or_default();
        let Some(known) = self.kinds.get(&kind) else {
            return Err(ManifestError::Unusable(format!("{kind:?} is not a kind of kflare")));
        };
        if manifest.metadata.name.is_none() {
            return Err(ManifestError::Unusable(format!("a {kind} has no metadata.name")));
        }
        match known.descriptor().resource_scope {
            crate::kind::ResourceScope::Namespaced => {
                manifest.metadata.namespace.get_or_insert_with(|| "default".to_owned());
            }
            crate::kind::ResourceScope::Cluster => manifest.metadata.namespace = None,
        }
        let Some(mut object) = Object::from_dynamic(&kind, manifest) else {
            return Err(ManifestError::Unusable(format!("a {kind} has no metadata.name")));
        };
        if object.uid.is_empty() {
            object.uid = object.key.to_string();
        }
        let key = object.key.clone();
        if self.index.get(&key).is_some() {
            return Err(ManifestError::Twice(key));
        }
        self.index.apply(object);
        Ok(key)
    }

    /// Plans all resources, those referred to before those that refer to them.
    pub async fn plan(&mut self, credentials: &dyn Credentials, defaults: Defaults) -> Vec<Planned> {
        let collections = Collections::default();
        let freshness = Freshness::BegunAt(Instant::now());
        let mut planned = Vec::new();
        for key in self.in_order() {
            let outcome = match self
                .plan_one(&key, credentials, &collections, defaults, freshness)
                .await
            {
                Ok(plan) => PlannedOutcome::Plan(plan),
                Err(message) => PlannedOutcome::Error(message),
            };
            let not_compared = self.reads(&key);
            planned.push(Planned {
                resource: key,
                not_compared,
                outcome,
            });
        }
        planned
    }

    /// What the resource reads in its namespace, by name.
    fn reads(&self, key: &ObjectKey) -> Vec<String> {
        let (Some(object), Some(kind)) = (self.index.get(key), self.kinds.get(&key.kind)) else {
            return Vec::new();
        };
        let inputs = kind.inputs(&object.spec.value()).unwrap_or_default();
        let names = inputs.iter().map(|it| format!("{} {}", it.kind.name(), it.name));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn in_order(&self) -> Vec<ObjectKey> {
        let keys: Vec<ObjectKey> = self.index.iter().map(|object| object.key.clone()).collect();
        let mut left: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> =
            keys.iter().map(|key| (key.clone(), BTreeSet::new())).collect();
        for key in &keys {
            for child in self.index.referrers(key) {
                left.entry(child.clone()).or_default().insert(key.clone());
            }
        }
        let mut order = Vec::new();
        while !left.is_empty() {
            let free: Vec<ObjectKey> = left
                .iter()
                .filter(|(_, parents)| parents.is_empty())
                .map(|(key, _)| key.clone())
                .collect();
            // References cannot form a circle; if they did, the rest is planned in order of names.
            let next = if free.is_empty() {
                left.keys().cloned().collect()
            } else {
                free
            };
            for key in next {
                left.remove(&key);
                for parents in left.values_mut() {
                    parents.remove(&key);
                }
                order.push(key);
            }
        }
        order
    }

    async fn plan_one(
        &mut self,
        key: &ObjectKey,
        credentials: &dyn Credentials,
        collections: &Collections,
        defaults: Defaults,
        freshness: Freshness,
    ) -> Result<Plan, String> {
        let (Some(object), Some(kind)) = (self.index.get(key), self.kinds.get(&key.kind)) else {
            return Err("not loaded".to_owned());
        };
        if is_paused(&object) {
            return Ok(Plan::Wait {
                reason: Reason::PAUSED,
                message: "kflare.dev/paused is set".to_owned(),
            });
        }
        let descriptor = kind.descriptor();
        let prepared = match prepare(&self.index, &self.kinds, &object, defaults, ParentRule::MayBePlanned) {
            Ok(prepared) => prepared,
            Err(plan) => return Ok(plan),
        };
        let mut recorded = object.recorded(descriptor.id_field());
        if object.deleting {
            return Ok(decide_deletion(&recorded, None, prepared.policy.deletion));
        }
        let mut now = Timestamp::MIN;
        let mut observed = if prepared.scope.is_empty() {
            // It lives in something that is itself to be created: there is nothing to find yet.
            Observed::default()
        } else {
            let client = credentials
                .client(&prepared.account, &prepared.source)
                .await
                .map_err(|failure| failure.message)?;
            recorded.intent = recorded
                .intent
                .filter(|it| client.seal(&it.sealed_text(&object.uid)).as_ref() == Some(&it.seal));
            let look = Look {
                kind,
                client: &client,
                collection: &prepared.collection,
                recorded: &recorded,
                desired: &prepared.desired,
                freshness,
                proof: Proof::Hash,
                few: self.index.has_few_siblings(key, FEW),
                expected: &|| self.index.recorded_ids(&prepared.collection),
            };
            now = client.server_time();
            observe(collections, &look).await.map_err(|failure| failure.message)?
        };
        if descriptor.nature.ordered && observed.recorded.is_some() {
            let arrangement = Arrangement::of(&self.index, &self.kinds, collections, &prepared.collection, &object);
            observed.placement = arrangement.placement(key);
        }
        let mut plan = decide(&Situation {
            descriptor,
            now,
            desired: &prepared.desired,
            observed: &observed,
            recorded: &recorded,
            scope: &prepared.scope,
            adoption: prepared.policy.adoption,
            claims: &NoClaims {
                index: &self.index,
                collection: &prepared.collection,
                asking: key,
            },
        });
        if let Plan::Adopt { changes, .. } = &mut plan
            && !self.reads(key).is_empty()
        {
            changes.extend(descriptor.fields.never_told(&prepared.desired.body));
        }
        if descriptor.lifecycle == Lifecycle::Managed {
            note_found(&mut self.index, &object, kind, &prepared, &observed, &plan);
        }
        Ok(plan)
    }
}

/// Lets dependents, and other resources of the same object, see what was found.
fn note_found(
    index: &mut Index,
    object: &Object,
    kind: &dyn Kind,
    prepared: &Prepared,
    observed: &Observed,
    plan: &Plan,
) {
    let found = observed.recorded.as_ref().or_else(|| {
        let key = &prepared.desired.key;
        observed.candidates.iter().find(|remote| remote.key == *key)
    });
    let Some(id_field) = kind.descriptor().id_field() else {
        return;
    };
    let Some(remote) = found else {
        // What is recorded is gone: for dependents it is as if it had never been.
        if object.recorded(Some(id_field)).id.is_some() {
            let mut noted = without_recorded(object);
            noted.resource_version.push('+');
            index.apply(noted);
        }
        return;
    };
    if matches!(plan, Plan::Blocked { reason, .. } if *reason == kind.descriptor().reasons.claimed) {
        return;
    }
    let mut noted = with_recorded(object, id_field, &remote.id, &prepared.scope, &remote.metadata);
    noted.resource_version.push('+');
    index.apply(noted);
}
