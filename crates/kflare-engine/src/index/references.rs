//! Who refers to whom, and with whose credential.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Index, Wake};
use crate::{
    kind::{CredentialSource, SpecError},
    object::ObjectKey,
    queue::Priority,
};

impl Index {
    /// The resources that refer to `key`, by its name or by what its object is called in the same account.
    pub fn referrers(&self, key: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        let account = self.account_of(key).ok();
        let by_alias = self.aliases.referrers(key);
        let by_alias = by_alias.filter(move |other| self.account_of(other).ok() == account);
        self.referrers.get(key).into_iter().flatten().chain(by_alias)
    }

    /// The resource that manages the object called `alias`, in the account of `from`. Of several the one that has it recorded.
    pub fn aliased(&self, kind: &str, alias: &str, from: &ObjectKey) -> Option<ObjectKey> {
        let account = self.account_of(from).ok();
        let same_account = self.aliases.holders(kind, alias);
        let same_account = same_account.filter(|key| self.account_of(key).ok() == account);
        same_account.min_by_key(|key| self.seniority(key)).cloned()
    }

    /// The resource that is to have the one object of the container of `key`: one that has it recorded, else the oldest.
    pub fn singleton_holder(&self, key: &ObjectKey) -> Option<ObjectKey> {
        let parent = self.referents.get(key)?.first()?;
        let all = self
            .referrers
            .get(parent)?
            .iter()
            .filter(|other| other.kind == key.kind);
        all.min_by_key(|key| self.seniority(key)).cloned()
    }

    /// Orders resources that are meant by the same words: first one that has an object recorded, then the oldest.
    pub(super) fn seniority(&self, key: &ObjectKey) -> (bool, Option<Timestamp>, ObjectKey) {
        let object = self.objects.get(key);
        let recorded = object.is_some_and(|object| self.recorded_id(object).is_some());
        (!recorded, object.and_then(|object| object.created), key.clone())
    }

    /// The resources that refer to `key`, directly or through others.
    pub fn descendants(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let mut found = BTreeSet::new();
        let mut open = vec![key.clone()];
        while let Some(next) = open.pop() {
            for child in self.referrers(&next) {
                if found.insert(child.clone()) {
                    open.push(child.clone());
                }
            }
        }
        found
    }

    /// Whether at most `few` resources of the same kind share the first referent of `key`: they live in one collection.
    pub fn has_few_siblings(&self, key: &ObjectKey, few: usize) -> bool {
        let parent = self.referents.get(key).and_then(|all| all.first());
        parent.is_none_or(|parent| {
            self.referrers(parent)
                .filter(|other| other.kind == key.kind)
                .take(few + 1)
                .count()
                <= few
        })
    }

    /// The credential that `key` provides, if it is of such a kind.
    pub fn credential(&self, key: &ObjectKey) -> Option<Result<CredentialSource, SpecError>> {
        let kind = self
            .kinds
            .get(&key.kind)
            .filter(|kind| kind.descriptor().provides_credential)?;
        kind.credential(&self.objects.get(key)?.spec.value()).transpose()
    }

    /// The resource that carries the credential for `key`: itself, or the first found along its references. The error
    /// is the missing referent.
    pub fn account_of(&self, key: &ObjectKey) -> Result<ObjectKey, Option<ObjectKey>> {
        let mut at = key.clone();
        for _ in 0..16 {
            if self
                .kinds
                .get(&at.kind)
                .is_some_and(|kind| kind.descriptor().provides_credential)
            {
                return if self.objects.contains_key(&at) {
                    Ok(at)
                } else {
                    Err(Some(at))
                };
            }
            match self.referents.get(&at).and_then(|all| all.first()) {
                Some(next) => at = next.clone(),
                None if self.objects.contains_key(&at) => return Err(None),
                None => return Err(Some(at)),
            }
        }
        Err(None)
    }

    /// What a resource refers to.
    pub fn referents(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let aliased = self.aliases.referents(key);
        let aliased = aliased.flat_map(|(kind, alias)| self.aliases.holders(kind, alias));
        let all = self.referents.get(key).into_iter().flatten().chain(aliased);
        all.cloned().collect()
    }

    /// Those of them that wait to go.
    pub fn deleting(&self, referents: Vec<ObjectKey>) -> Vec<Wake> {
        let is_deleting = |key: &ObjectKey| self.objects.get(key).is_some_and(|it| it.deleting);
        let leaving = referents.into_iter().filter(is_deleting);
        leaving.map(|key| (key, Priority::Delete)).collect()
    }
}
