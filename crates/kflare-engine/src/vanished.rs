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
pub(crate) struct Vanished(BTreeMap<ObjectKey, Vec<Gone>>);

/// A resource as it was last known, and what it referred to, which has to stay until its remains are dealt with.
struct Gone {
    object: Arc<Object>,
    referents: Vec<ObjectKey>,
}

impl Vanished {
    /// Notes a resource, as it was last known, that is no longer there. Only one that was just being created can have vanished so:
    /// a finalizer holds off every later delete. In any other state it went with our consent, or by force of a user who took the
    /// finalizer off.
    pub fn note(&mut self, object: &Arc<Object>, referents: Vec<ObjectKey>) -> bool {
        let creating = object.has_finalizer() && object.annotation(names::CREATE_INTENT).is_some();
        let vanished = creating && !object.deleting && !is_paused(object);
        if !vanished || mutation::is(Mutation::VanishedForgotten) {
            return false;
        }
        let object = object.clone();
        let of_that_name = self.0.entry(object.key.clone()).or_default();
        of_that_name.push(Gone { object, referents });
        true
    }

    /// Those of that name.
    pub fn called(&self, key: &ObjectKey) -> Vec<Arc<Object>> {
        let all = self.0.get(key).into_iter().flatten();
        all.map(|gone| gone.object.clone()).collect()
    }

    /// Whether there is one of that name.
    pub fn has(&self, key: &ObjectKey) -> bool {
        self.0.contains_key(key)
    }

    /// All of a kind.
    pub fn of_kind(&self, kind: &str) -> Vec<Arc<Object>> {
        let all = self.0.iter().filter(|(key, _)| &*key.kind == kind);
        all.flat_map(|(_, all)| all).map(|gone| gone.object.clone()).collect()
    }

    /// Those that referred to a resource.
    pub fn referrers(&self, referent: &ObjectKey) -> Vec<ObjectKey> {
        let all = self.0.values().flatten();
        let referring = all.filter(|gone| gone.referents.contains(referent));
        referring.map(|gone| gone.object.key.clone()).collect()
    }

    /// What the resource has left is dealt with, or it has left nothing. What it referred to.
    pub fn done(&mut self, object: &Object) -> Vec<ObjectKey> {
        let Some(all) = self.0.get_mut(&object.key) else {
            return Vec::new();
        };
        let at = all.iter().position(|gone| gone.object.uid == object.uid);
        let gone = at.map(|at| all.remove(at));
        if all.is_empty() {
            self.0.remove(&object.key);
        }
        gone.map(|gone| gone.referents).unwrap_or_default()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}
