//! Reading what a spec names in Secrets and ConfigMaps, for one pass.

use std::collections::BTreeMap;

use super::{Pass, store_failure};
use crate::{
    cluster::{ClusterError, InputView},
    errors::{Class, Failure},
    inputs::{InputKey, Inputs, fingerprint},
    object::Object,
    plan::Plan,
    reason::Reason,
    resolve::Prepared,
};

impl Pass<'_> {
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
