//! Who manages which object of a collection, who is about to make one, and who stands back.

use std::{collections::BTreeSet, sync::Arc};

use kflare_api::names;

use super::{CollectionKey, Index, Wake};
use crate::{
    object::{Object, ObjectKey},
    queue::Priority,
};

impl Index {
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

    pub(super) fn claim_slots(&self, object: &Object) -> Vec<(Arc<str>, String)> {
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

    pub(super) fn announced_place(&self, object: &Object) -> Option<(Arc<str>, String, String)> {
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

    /// Resources that stand back behind another and may take its place now.
    pub fn rivals(&self, object: &Object) -> Vec<Wake> {
        self.standing_back
            .iter()
            .filter(|other| other.kind == object.key.kind && **other != object.key)
            .map(|other| (other.clone(), Priority::Dependent))
            .collect()
    }
}
