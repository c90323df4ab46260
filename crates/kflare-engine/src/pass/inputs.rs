//! Reading what a spec names in Secrets and ConfigMaps, for one pass.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use super::{Pass, Work, store_failure};
use crate::{
    cluster::{ClusterError, InputView},
    collections::Freshness,
    errors::{Class, Failure},
    inputs::{InputKey, Inputs, fingerprint},
    object::Object,
    observe::{FRESH, Proof},
    plan::{Plan, diff},
    queue::Priority,
    reason::Reason,
    resolve::Prepared,
    sweep::settled,
};

impl Pass<'_> {
    /// Whether a drift check finds everything as our last write left it, without reading a Secret or ConfigMap: neither the
    /// spec nor what it reads has changed since, and Cloudflare's mark of the last change is the one of that write.
    pub(super) async fn is_as_written(&self, object: &Arc<Object>, prepared: &Prepared) -> Result<bool, Failure> {
        let reads = self
            .kind
            .inputs(&object.spec.value())
            .is_ok_and(|inputs| !inputs.is_empty());
        let rested = object.is_ready_at_generation() && settled(object, self.kind);
        if self.lane != Priority::DriftCheck || !reads || !rested || !self.context.index().inputs_are_current(object) {
            return Ok(false);
        }
        let client = self.client(prepared).await?;
        let recorded = self.context.recorded(object, &client);
        let work = Work {
            prepared: prepared.clone(),
            client,
        };
        let now = Instant::now();
        let freshness = Freshness::CompleteAt(now.checked_sub(FRESH).unwrap_or(now));
        let observed = self.look(object, &work, &recorded, freshness, Proof::Versions).await?;
        Ok(observed.recorded.is_some_and(|remote| {
            let marked = remote.revision.is_some() && remote.revision == recorded.applied.revision;
            marked && diff(&prepared.desired.body, &remote.body, self.kind.descriptor().fields).is_empty()
        }))
    }

    /// Puts the values that `object` names into what is wanted, or says what is missing. Each Secret and ConfigMap is read once.
    pub(super) async fn fill(&self, object: &Object, prepared: &mut Prepared) -> Result<Option<Plan>, Failure> {
        let spec = object.spec.value();
        let wanted = match self.kind.inputs(&spec) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Some(invalid(error.to_string()))),
        };
        let Some(namespace) = object.key.namespace.as_deref().filter(|_| !wanted.is_empty()) else {
            return Ok(None);
        };
        let mut read: BTreeMap<InputKey, InputView> = BTreeMap::new();
        let mut inputs = Inputs::default();
        for input in wanted {
            let key = InputKey::new(input.kind, namespace, &input.name);
            if !read.contains_key(&key) {
                match self.context.cluster.read_input(&key).await {
                    Ok(view) => drop(read.insert(key.clone(), view)),
                    Err(ClusterError::NotFound) => {
                        return Ok(Some(Plan::Wait {
                            reason: input.kind.not_found(),
                            message: format!("{key} does not exist"),
                        }));
                    }
                    Err(error @ ClusterError::Stopped(_)) => return Err(store_failure(error)),
                    Err(error) => {
                        let message = format!("{key} could not be read: {error}");
                        return Err(Failure::new(Class::Transient, message));
                    }
                }
            }
            let Some(value) = read.get(&key).and_then(|view| view.values.get(&input.key)) else {
                return Ok(Some(Plan::Wait {
                    reason: input.kind.key_missing(),
                    message: format!("{key} has no key {}", input.key),
                }));
            };
            let value = value.clone();
            inputs.insert(input, value);
        }
        let versions = read.iter().map(|(key, view)| (key, view.version.as_str()));
        prepared.inputs = Some(fingerprint(versions));
        match self.kind.fill(&spec, &mut prepared.desired, &inputs) {
            Ok(()) => Ok(None),
            Err(error) => Ok(Some(invalid(error.to_string()))),
        }
    }
}

fn invalid(message: String) -> Plan {
    Plan::Blocked {
        reason: Reason::INVALID_SPEC,
        message,
        changes: Vec::new(),
    }
}
