//! The engine's view of the cluster: resources, who refers to whom, who claims what. Fed by the watches and by the
//! answers to our own writes, so a pass never acts on a state older than what it wrote itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kflare_api::names;

use crate::{
    aliases::Aliases,
    inputs::{InputKey, InputKind, InputUsers},
    kind::{CredentialSource, Kind, ReferenceName, ResourceScope, SpecError},
    object::{Object, ObjectKey, SecretKey},
    queue::Priority,
    yields::YieldedSecrets,
};

/// The kinds this process works with, by name.
#[derive(Clone)]
pub struct Kinds(Arc<BTreeMap<String, Box<dyn Kind>>>);

impl Kinds {
    /// A registry of `kinds`.
    pub fn new(kinds: impl IntoIterator<Item = Box<dyn Kind>>) -> Self {
        Self(Arc::new(
            kinds
                .into_iter()
                .map(|kind| (kind.descriptor().kind.clone().into_owned(), kind))
                .collect(),
        ))
    }

    /// A kind by name.
    pub fn get(&self, kind: &str) -> Option<&dyn Kind> {
        self.0.get(kind).map(AsRef::as_ref)
    }

    /// All kinds, by name.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Kind> {
        self.0.values().map(AsRef::as_ref)
    }

    /// The key of a referent, seen from `namespace`.
    pub fn referent(&self, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        let cluster = self
            .get(kind)
            .is_some_and(|it| it.descriptor().resource_scope == ResourceScope::Cluster);
        ObjectKey::new(kind, if cluster { None } else { namespace }, name)
    }
}

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
    fn seniority(&self, key: &ObjectKey) -> (bool, Option<Timestamp>, ObjectKey) {
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

    /// The ids recorded in a collection.
    pub fn recorded_ids(&self, collection: &CollectionKey) -> BTreeSet<String> {
        self.members(collection)
            .iter()
            .filter_map(|object| self.recorded_id(object))
            .collect()
    }

    /// The members of a collection: resources with a recorded object in it.
    pub fn members(&self, collection: &CollectionKey) -> Vec<Arc<Object>> {
        self.collections
            .get(collection)
            .into_iter()
            .flatten()
            .filter_map(|key| self.get(key))
            .collect()
    }

    /// Collections in use.
    pub fn collections(&self) -> impl Iterator<Item = &CollectionKey> {
        self.collections.keys()
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

    /// Whether `key` is a resource that is not the rightful holder of `id`, and who is. A recorded id counts more than a
    /// label (labels are copied with a manifest), the older resource more than the younger. An id that is a name (of a bucket)
    /// means another object in each container.
    pub fn holder(&self, collection: &CollectionKey, id: &str, asking: &ObjectKey) -> Option<ObjectKey> {
        let place = (collection.collection.clone(), collection.scope.clone(), id.to_owned());
        if let Some(reserved) = self.reserved.get(&place).filter(|holder| *holder != asking) {
            return Some(reserved.clone());
        }
        let rank = |key: &&ObjectKey| {
            let object = self.objects.get(*key);
            let recorded = object.is_some_and(|object| self.recorded_id(object).as_deref() == Some(id));
            (!recorded, object.and_then(|object| object.created), (*key).clone())
        };
        let claimants = self.claims.get(&(collection.collection.clone(), id.to_owned()))?;
        let best = claimants
            .iter()
            .filter(|key| self.is_in(key, collection))
            .min_by_key(rank)?;
        // A mere label never beats a resource that asks because it found the object by itself.
        let best_recorded = !rank(&best).0;
        (best != asking && (best_recorded || claimants.contains(asking))).then(|| best.clone())
    }

    /// The resources that claim `id`, rightfully or not.
    pub fn claimants(&self, collection: &CollectionKey, id: &str) -> impl Iterator<Item = &ObjectKey> {
        let claimants = self.claims.get(&(collection.collection.clone(), id.to_owned()));
        claimants
            .into_iter()
            .flatten()
            .filter(|key| self.is_in(key, collection))
    }

    /// The resources that have announced, rightfully or not, to make an object of that group.
    pub fn announcers(&self, collection: &CollectionKey, group: &str) -> Vec<Arc<Object>> {
        let place = (
            collection.collection.clone(),
            collection.scope.to_string(),
            group.to_owned(),
        );
        let keys = self.announced.get(&place).into_iter().flatten();
        keys.filter_map(|key| self.get(key)).collect()
    }

    fn announced_place(&self, object: &Object) -> Option<(Arc<str>, String, String)> {
        object.annotation(names::CREATE_INTENT)?;
        let descriptor = self.kinds.get(&object.key.kind)?.descriptor();
        let intent = object.recorded(descriptor.id_field()).intent?;
        Some((descriptor.collection.as_ref().into(), intent.scope, intent.group))
    }

    /// Whether a resource has recorded no container, or this one.
    fn is_in(&self, key: &ObjectKey, collection: &CollectionKey) -> bool {
        let scope = self.objects.get(key).and_then(|object| {
            let kind = self.kinds.get(&object.key.kind)?;
            object.recorded(kind.descriptor().id_field()).scope
        });
        scope.is_none_or(|scope| scope == *collection.scope)
    }

    /// Holds `id` for `key` while its adoption is on the way.
    pub fn reserve(&mut self, collection: &CollectionKey, id: &str, key: &ObjectKey) {
        let place = (collection.collection.clone(), collection.scope.clone(), id.to_owned());
        self.reserved.insert(place, key.clone());
    }

    /// The ids of a collection that are held for resources which do not have them recorded yet.
    pub fn reserved<'a>(&'a self, collection: &'a CollectionKey) -> impl Iterator<Item = (&'a str, &'a ObjectKey)> {
        let all = self
            .reserved
            .iter()
            .filter(move |((name, scope, _), _)| *name == collection.collection && *scope == collection.scope);
        all.map(|((_, _, id), key)| (id.as_str(), key))
    }

    /// Ends all reservations of `key`.
    pub fn unreserve(&mut self, key: &ObjectKey) {
        self.reserved.retain(|_, holder| holder != key);
    }

    fn recorded_id(&self, object: &Object) -> Option<String> {
        object
            .recorded(self.kinds.get(&object.key.kind)?.descriptor().id_field())
            .id
    }

    /// The collection in which `object` has a recorded object.
    pub fn collection_of(&self, object: &Object) -> Option<CollectionKey> {
        let descriptor = self.kinds.get(&object.key.kind)?.descriptor();
        let recorded = object.recorded(descriptor.id_field());
        recorded.id.as_ref()?;
        Some(CollectionKey {
            account: recorded.account?.into(),
            collection: descriptor.collection.as_ref().into(),
            scope: recorded.scope?.into(),
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

    /// Resources that stand back behind another and may take its place now.
    pub fn rivals(&self, object: &Object) -> Vec<Wake> {
        self.standing_back
            .iter()
            .filter(|other| other.kind == object.key.kind && **other != object.key)
            .map(|other| (other.clone(), Priority::Dependent))
            .collect()
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
                let lost = self.recorded_id(old).is_some() && self.recorded_id(new).is_none();
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
        let Some(kind) = self.kinds.0.get(&*object.key.kind) else {
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
        self.yielded.link(kind.as_ref(), object);
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
        if let Some(kind) = self.kinds.0.get(&*object.key.kind) {
            self.yielded.unlink(kind.as_ref(), object);
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

    fn claim_slots(&self, object: &Object) -> Vec<(Arc<str>, String)> {
        let Some(kind) = self.kinds.get(&object.key.kind) else {
            return Vec::new();
        };
        let descriptor = kind.descriptor();
        let Some(claim) = &descriptor.claim else {
            return Vec::new();
        };
        let label = object.labels.get(&claim.label).map(str::to_owned);
        let mut ids: Vec<String> = object
            .recorded(descriptor.id_field())
            .id
            .into_iter()
            .chain(label)
            .collect();
        ids.dedup();
        ids.into_iter()
            .map(|id| (descriptor.collection.as_ref().into(), id))
            .collect()
    }

    /// Notes the version of a Secret or ConfigMap (none: it is gone), and gives who reads it, if that is news.
    pub(crate) fn note_input(&mut self, key: InputKey, version: Option<String>) -> Vec<Wake> {
        let readers = self.inputs.note(key, version);
        readers.into_iter().map(|key| (key, Priority::UserChange)).collect()
    }

    /// All Secrets, or all ConfigMaps, are about to be listed.
    pub(crate) fn listing_inputs(&mut self, kind: InputKind) {
        self.inputs.listing(kind);
    }

    /// All of them have been listed; gives who reads one that is gone.
    pub(crate) fn listed_inputs(&mut self, kind: InputKind) -> Vec<Wake> {
        let readers = self.inputs.listed(kind);
        readers.into_iter().map(|key| (key, Priority::UserChange)).collect()
    }

    /// Every resource is known: what nobody reads need not be remembered.
    pub(crate) fn settle_inputs(&mut self) {
        self.inputs.settle();
    }

    /// Whether an object was brought into line with the Secrets and ConfigMaps that it reads, as they are now.
    pub(crate) fn inputs_are_current(&self, object: &Object) -> bool {
        let recorded = object.status.get::<String>(&[crate::inputs::FIELD]);
        self.inputs.is_current(&object.key, recorded.as_deref())
    }

    /// What is known of the Secrets that resources yield.
    pub fn yielded(&self) -> &YieldedSecrets {
        &self.yielded
    }

    /// As [`Self::yielded`], to note something.
    pub fn yielded_mut(&mut self) -> &mut YieldedSecrets {
        &mut self.yielded
    }

    /// The credential resources that read `secret`.
    pub fn secret_users(&self, secret: &SecretKey) -> Vec<ObjectKey> {
        self.secrets.get(secret).into_iter().flatten().cloned().collect()
    }

    /// Notes whether a Secret carries our protection.
    pub fn set_protected(&mut self, secret: &SecretKey, finalizers: &[String]) {
        if finalizers.iter().any(|it| it == names::TOKEN_PROTECTION) {
            self.protected.insert(secret.clone());
        } else {
            self.protected.remove(secret);
        }
    }

    /// Secrets that carry our protection although no resource reads them any more.
    pub fn unused_protections(&self) -> Vec<SecretKey> {
        self.protected
            .iter()
            .filter(|secret| !self.secrets.contains_key(*secret))
            .cloned()
            .collect()
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
