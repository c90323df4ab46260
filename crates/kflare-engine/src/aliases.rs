//! References by what an object is called at Cloudflare: a rule names a list so, not the resource that manages the list.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::ObjectKey;

/// A kind and what one of its objects is called.
type Alias = (&'static str, String);

/// Who is called how, and who refers to whom by that.
#[derive(Default)]
pub struct Aliases {
    holders: BTreeMap<(String, String), BTreeSet<ObjectKey>>,
    held: BTreeMap<ObjectKey, String>,
    referrers: BTreeMap<(String, String), BTreeSet<ObjectKey>>,
    referents: BTreeMap<ObjectKey, Vec<Alias>>,
}

impl Aliases {
    /// How many resources are called something, or refer to others so.
    pub fn len(&self) -> usize {
        self.held.len() + self.referents.len()
    }

    /// `key` is called `alias`.
    pub fn hold(&mut self, key: &ObjectKey, alias: String) {
        let slot = (key.kind.to_string(), alias.clone());
        self.holders.entry(slot).or_default().insert(key.clone());
        self.held.insert(key.clone(), alias);
    }

    /// `key` refers to the resource of `kind` that is called `alias`.
    pub fn refer(&mut self, key: &ObjectKey, kind: &'static str, alias: String) {
        let slot = (kind.to_owned(), alias.clone());
        self.referrers.entry(slot).or_default().insert(key.clone());
        self.referents.entry(key.clone()).or_default().push((kind, alias));
    }

    /// Forgets what `key` is called and to whom it refers.
    pub fn forget(&mut self, key: &ObjectKey) {
        if let Some(alias) = self.held.remove(key) {
            remove_from(&mut self.holders, &(key.kind.to_string(), alias), key);
        }
        for (kind, alias) in self.referents.remove(key).unwrap_or_default() {
            remove_from(&mut self.referrers, &(kind.to_owned(), alias), key);
        }
    }

    /// The resources of `kind` that are called `alias`, in whatever account.
    pub fn holders(&self, kind: &str, alias: &str) -> impl Iterator<Item = &ObjectKey> {
        let slot = (kind.to_owned(), alias.to_owned());
        self.holders.get(&slot).into_iter().flatten()
    }

    /// The resources that refer to what `key` is called, in whatever account.
    pub fn referrers(&self, key: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        let slot = self.held.get(key).map(|alias| (key.kind.to_string(), alias.clone()));
        slot.and_then(|slot| self.referrers.get(&slot)).into_iter().flatten()
    }

    /// What `key` refers to.
    pub fn referents(&self, key: &ObjectKey) -> impl Iterator<Item = (&str, &str)> {
        let all = self.referents.get(key).into_iter().flatten();
        all.map(|(kind, alias)| (*kind, alias.as_str()))
    }
}

fn remove_from(map: &mut BTreeMap<(String, String), BTreeSet<ObjectKey>>, slot: &(String, String), key: &ObjectKey) {
    if let Some(set) = map.get_mut(slot) {
        set.remove(key);
        if set.is_empty() {
            map.remove(slot);
        }
    }
}
