//! Resources that the API server has removed although our finalizer was on them.
//!
//! A delete that has read a resource just before it gets its first finalizer removes it all the same, after the write of the
//! finalizer was acknowledged (kubernetes/kubernetes#77988). What was on its way to be created for it then has to go by the
//! deletion policy, as if its deletion had been announced.

use std::{collections::BTreeMap, sync::Arc};

use kflare_api::names;

use crate::{
    mutation::{self, Mutation},
    object::{Object, ObjectKey},
    policy::is_paused,
};

/// Those whose remains are still to be dealt with. In memory: a process that dies first leaves them where they are.
#[derive(Default)]
pub(crate) struct Vanished {
    by_key: BTreeMap<ObjectKey, Vec<Arc<Object>>>,
}

impl Vanished {
    /// Notes a resource, as it was last known, that is no longer there. Only one that was just being created can have vanished so:
    /// a finalizer holds off every later delete. In any other state it went with our consent, or by force of a user who took the
    /// finalizer off.
    pub fn note(&mut self, object: &Arc<Object>) -> bool {
        let creating = object.has_finalizer() && object.annotation(names::CREATE_INTENT).is_some();
        let vanished = creating && !object.deleting && !is_paused(object);
        if vanished && !mutation::is(Mutation::VanishedForgotten) {
            self.by_key.entry(object.key.clone()).or_default().push(object.clone());
            return true;
        }
        false
    }

    /// The one of that name that vanished first.
    pub fn first(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.by_key.get(key).and_then(|all| all.first()).cloned()
    }

    /// All of a kind.
    pub fn of_kind(&self, kind: &str) -> Vec<Arc<Object>> {
        let all = self.by_key.iter().filter(|(key, _)| &*key.kind == kind);
        all.flat_map(|(_, all)| all).cloned().collect()
    }

    /// What the resource has left is dealt with.
    pub fn done(&mut self, object: &Object) {
        if let Some(all) = self.by_key.get_mut(&object.key) {
            all.retain(|it| it.uid != object.uid);
            if all.is_empty() {
                self.by_key.remove(&object.key);
            }
        }
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }
}
