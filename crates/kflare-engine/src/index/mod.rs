//! The engine's view of the cluster: resources, who refers to whom, who claims what. Fed by the watches and by the
//! answers to our own writes, so a pass never acts on a state older than what it wrote itself.

mod claims;
mod references;
mod secrets;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    aliases::Aliases,
    inputs::InputUsers,
    kind::ReferenceName,
    kinds::Kinds,
    object::{Object, ObjectKey, SecretKey},
    queue::Priority,
    yields::YieldedSecrets,
};

/// Objects at Cloudflare that are observed together: one account's view of one collection in one container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionKey {
    /// The credential resource.
    pub account: Arc<str>,
    /// Name of the collection.
    pub collection: Arc<str>,
    /// Account id or zone id.
    pub scope: Arc<str>,
}

/// A resource to look at, and how urgently.
pub type Wake = (ObjectKey, Priority);

/// What dependents see of a resource.
#[derive(PartialEq)]
struct Export {
    uid: String,
    id: Option<String>,
    ready: bool,
    deleting: bool,
    generation: i64,
}

/// See the module.
pub struct Index {
    kinds: Kinds,
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    referents: BTreeMap<ObjectKey, Vec<ObjectKey>>,
    referrers: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    aliases: Aliases,
    inputs: InputUsers,
    /// Mostly one a claim.
    claims: BTreeMap<(Arc<str>, String), Vec<ObjectKey>>,
    /// By collection, container and id.
    reserved: BTreeMap<(Arc<str>, Arc<str>, String), ObjectKey>,
    collections: BTreeMap<CollectionKey, BTreeSet<ObjectKey>>,
    secrets: BTreeMap<SecretKey, BTreeSet<ObjectKey>>,
    protected: BTreeSet<SecretKey>,
    namespaces: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    standing_back: BTreeSet<ObjectKey>,
    /// Resources with an intent, by collection, container and group of what it announces. A few, for a short time.
    announced: BTreeMap<(Arc<str>, String, String), BTreeSet<ObjectKey>>,
    yielded: YieldedSecrets,
}
impl Index {
    /// An empty view.
    pub fn new(kinds: Kinds) -> Self {
        Self {
            kinds,
            objects: BTreeMap::new(),
            referents: BTreeMap::new(),
            referrers: BTreeMap::new(),
            aliases: Aliases::default(),
            inputs: InputUsers::default(),
            claims: BTreeMap::new(),
            reserved: BTreeMap::new(),
            collections: BTreeMap::new(),
            secrets: BTreeMap::new(),
            protected: BTreeSet::new(),
            namespaces: BTreeMap::new(),
            standing_back: BTreeSet::new(),
            announced: BTreeMap::new(),
            yielded: YieldedSecrets::default(),
        }
    }

    /// How much each part of the view holds.
    pub fn sizes(&self) -> [(&'static str, usize); 11] {
        [
            ("resources", self.objects.len()),
            (
                "references",
                self.referents.len() + self.referrers.len() + self.aliases.len(),
            ),
            ("claims", self.claims.len() + self.reserved.len()),
            ("collections", self.collections.len()),
            ("secrets", self.secrets.len()),
            ("protected_secrets", self.protected.len()),
            ("namespaces", self.namespaces.len()),
            ("standing_back", self.standing_back.len()),
            ("announced", self.announced.len()),
            ("inputs", self.inputs.len()),
            ("yielded_secrets", self.yielded.size()),
        ]
    }

    /// A resource.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.objects.get(key).cloned()
    }

    /// All resources, in order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    /// All resources of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Arc<Object>> {
        self.objects
            .iter()
            .filter(move |(key, _)| &*key.kind == kind)
            .map(|(_, object)| object)
    }

    /// Labels of a namespace, when it is known.
    pub fn namespace_labels(&self, namespace: &str) -> Option<&BTreeMap<String, String>> {
        self.namespaces.get(namespace)
    }

    /// Notes the labels of a namespace and wakes its resources when they changed.
    pub fn set_namespace(&mut self, name: &str, labels: Option<BTreeMap<String, String>>) -> Vec<Wake> {
        let changed = match labels {
            Some(labels) => self.namespaces.insert(name.into(), labels.clone()) != Some(labels),
            None => self.namespaces.remove(name).is_some(),
        };
        if !changed {
            return Vec::new();
        }
        let inside = |key: &&ObjectKey| key.namespace.as_deref() == Some(name);
        self.objects
            .keys()
            .filter(inside)
            .map(|key| (key.clone(), Priority::Dependent))
            .collect()
    }

    fn recorded_id(&self, object: &Object) -> Option<String> {
        object
            .recorded(self.kinds.get(&object.key.kind)?.descriptor().id_field())
            .id
    }

    /// Takes a newer state of a resource, from a watch or from the answer to our own write, and says whom it concerns.
    /// An older state than the one known is ignored (resourceVersions of one resource are ordered).
    pub fn apply(&mut self, mut object: Object) -> Vec<Wake> {
        let old = self.objects.get(&object.key).cloned();
        if let Some(old) = &old {
            // One text for all who name it.
            object.key = old.key.clone();
        }
        let key = object.key.clone();
        if let Some(old) = &old
            && old.uid == object.uid
            && !newer(&object.resource_version, &old.resource_version)
        {
            return Vec::new();
        }
        let mut wakes = self.wakes_of(old.as_deref(), &object);
        if let Some(old) = &old {
            // What the spec does not name any more may go.
            if old.generation != object.generation || old.uid != object.uid {
                wakes.extend(self.deleting(self.referents(&key)));
            }
            self.unlink(old);
        }
        self.link(&object);
        self.objects.insert(key, Arc::new(object));
        wakes.sort();
        wakes.dedup();
        wakes
    }

    /// Takes the answer to our own write: only if the resource is still known, so that a late answer does not bring back
    /// what has gone.
    pub fn apply_own(&mut self, object: Object) -> Vec<Wake> {
        match self.objects.get(&object.key) {
            Some(known) if known.uid == object.uid => {
                if object.deleting && object.finalizers.is_empty() {
                    let key = object.key.clone();
                    return self.remove(&key);
                }
                self.apply(object)
            }
            _ => Vec::new(),
        }
    }

    /// Forgets a resource and says whom it concerns.
    pub fn remove(&mut self, key: &ObjectKey) -> Vec<Wake> {
        let Some(old) = self.objects.remove(key) else {
            return Vec::new();
        };
        let mut wakes: Vec<Wake> = self
            .referrers(key)
            .map(|child| (child.clone(), Priority::Dependent))
            .collect();
        wakes.extend(self.deleting(self.referents(key)));
        wakes.extend(self.rivals(&old));
        self.unlink(&old);
        self.inputs.prune();
        self.referents.remove(key);
        wakes
    }

    /// Whether somebody has taken away what kflare puts on a resource, as `kubectl replace` does: without the finalizer it could go at
    /// any moment, and its object would stay.
    fn is_stripped(&self, old: &Object, new: &Object) -> bool {
        let claim = self
            .kinds
            .get(&new.key.kind)
            .and_then(|kind| kind.descriptor().claim.as_ref());
        let has_label = |object: &Object| claim.is_some_and(|claim| object.labels.get(&claim.label).is_some());
        let finalizer = old.has_finalizer() && !new.has_finalizer();
        !new.deleting && (finalizer || (has_label(old) && !has_label(new)))
    }

    fn export(&self, object: &Object) -> Export {
        Export {
            uid: object.uid.clone(),
            id: self.recorded_id(object),
            ready: object.is_ready(),
            deleting: object.deleting,
            generation: object.generation,
        }
    }

    fn wakes_of(&self, old: Option<&Object>, new: &Object) -> Vec<Wake> {
        let mut wakes = Vec::new();
        let own = if new.deleting {
            Priority::Delete
        } else {
            Priority::UserChange
        };
        match old {
            Some(old) if old.uid == new.uid => {
                // A record that vanishes from status was taken away by somebody else, or is gone: no wish of a user either way.
                let unrecorded = self.recorded_id(old).is_some() && self.recorded_id(new).is_none();
                let lost = unrecorded || self.is_stripped(old, new);
                if old.trigger() != new.trigger() {
                    wakes.push((new.key.clone(), own));
                } else if lost {
                    let lane = if new.deleting { own } else { Priority::Dependent };
                    wakes.push((new.key.clone(), lane));
                }
                if self.export(old) != self.export(new) {
                    wakes.extend(
                        self.referrers(&new.key)
                            .map(|child| (child.clone(), Priority::Dependent)),
                    );
                }
            }
            _ => {
                wakes.push((new.key.clone(), own));
                wakes.extend(
                    self.referrers(&new.key)
                        .map(|child| (child.clone(), Priority::Dependent)),
                );
            }
        }
        wakes
    }

    fn link(&mut self, object: &Object) {
        let Some(kind) = self.kinds.get(&object.key.kind) else {
            return;
        };
        let descriptor = kind.descriptor();
        let namespace = object.key.namespace.as_deref();
        let spec = object.spec.value();
        let mut referents: Vec<ObjectKey> = Vec::new();
        for reference in kind.references(&spec).unwrap_or_default() {
            match reference.name {
                ReferenceName::Resource(name) => {
                    let referent = self.kinds.referent(reference.kind, namespace, &name);
                    referents.push(match self.referrers.get_key_value(&referent) {
                        Some((known, _)) => known.clone(),
                        None => referent,
                    });
                }
                ReferenceName::Alias(alias) => self.aliases.refer(&object.key, reference.kind, alias),
            }
        }
        self.inputs.link(&object.key, &kind.inputs(&spec).unwrap_or_default());
        if let Some(alias) = kind.alias(&spec) {
            self.aliases.hold(&object.key, alias);
        }
        for referent in &referents {
            self.referrers
                .entry(referent.clone())
                .or_default()
                .insert(object.key.clone());
        }
        self.referents.insert(object.key.clone(), referents);
        if object.ready().reason == descriptor.reasons.claimed.as_str() {
            self.standing_back.insert(object.key.clone());
        }
        for slot in self.claim_slots(object) {
            let claimants = self.claims.entry(slot).or_insert_with(|| Vec::with_capacity(1));
            if let Err(at) = claimants.binary_search(&object.key) {
                claimants.insert(at, object.key.clone());
            }
        }
        if let Some(collection) = self.collection_of(object) {
            self.collections
                .entry(collection)
                .or_default()
                .insert(object.key.clone());
        }
        if let Some(place) = self.announced_place(object) {
            self.announced.entry(place).or_default().insert(object.key.clone());
        }
        self.yielded.link(kind, object);
        if descriptor.provides_credential
            && let Ok(Some(source)) = kind.credential(&object.spec.value())
        {
            self.secrets
                .entry(source.secret)
                .or_default()
                .insert(object.key.clone());
        }
    }

    fn unlink(&mut self, object: &Object) {
        self.standing_back.remove(&object.key);
        if let Some(kind) = self.kinds.get(&object.key.kind) {
            self.yielded.unlink(kind, object);
        }
        self.aliases.forget(&object.key);
        self.inputs.unlink(&object.key);
        for referent in self.referents.get(&object.key).cloned().unwrap_or_default() {
            remove_from(&mut self.referrers, &referent, &object.key);
        }
        for slot in self.claim_slots(object) {
            if let Some(claimants) = self.claims.get_mut(&slot) {
                claimants.retain(|it| *it != object.key);
                if claimants.is_empty() {
                    self.claims.remove(&slot);
                }
            }
        }
        if let Some(place) = self.announced_place(object) {
            remove_from(&mut self.announced, &place, &object.key);
        }
        if let Some(collection) = self.collection_of(object) {
            remove_from(&mut self.collections, &collection, &object.key);
        }
        if self
            .kinds
            .get(&object.key.kind)
            .is_some_and(|kind| kind.descriptor().provides_credential)
        {
            self.secrets.retain(|_, holders| {
                holders.remove(&object.key);
                !holders.is_empty()
            });
        }
    }
}

fn remove_from<K: Ord>(map: &mut BTreeMap<K, BTreeSet<ObjectKey>>, at: &K, key: &ObjectKey) {
    if let Some(set) = map.get_mut(at) {
        set.remove(key);
        if set.is_empty() {
            map.remove(at);
        }
    }
}

/// Whether resourceVersion `a` is newer than `b`. Versions of one resource are decimal numbers that grow; anything else
/// counts as newer, so that nothing is lost.
pub(crate) fn newer(a: &str, b: &str) -> bool {
    match (a.parse::<u128>(), b.parse::<u128>()) {
        (Ok(a), Ok(b)) => a > b,
        _ => a != b,
    }
}
