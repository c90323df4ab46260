//! The objects and their history.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kube::core::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::refusal;
use super::resource::ResourceType;

/// Where an object is kept. The order is that of lists: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// [`ResourceType::qualified`].
    pub(super) resource: String,
    /// Empty for cluster-scoped kinds.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(resource: &ResourceType, namespace: Option<&str>, name: &str) -> Self {
        Self {
            resource: resource.qualified(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
        }
    }
}

/// One step of the history.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: Instant,
    pub(super) key: Key,
    /// What was there before; `None` for a new object.
    pub(super) before: Option<Arc<Value>>,
    /// What is there now; `None` when it was deleted.
    pub(super) after: Option<Arc<Value>>,
    /// What the event shows: the new object, or the last state of a deleted one. Its `resourceVersion` is this step.
    pub(super) shown: Arc<Value>,
}

/// All objects, and as much of the past as is kept. Every change takes one revision.
#[derive(Debug)]
pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    /// The changes `floor + 1 ..= floor + history.len()`.
    history: VecDeque<Change>,
    floor: u64,
    history_limit: usize,
}

impl Store {
    /// A real cluster has a past, too: the first change is no. 2.
    const FIRST: u64 = 1;

    pub(super) fn new(history_limit: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            floor: Self::FIRST,
            history_limit,
        }
    }

    /// The newest revision.
    pub(super) fn revision(&self) -> u64 {
        self.floor + self.history.len() as u64
    }

    /// The oldest revision a watch can start from.
    pub(super) fn oldest(&self) -> u64 {
        self.floor
    }

    /// Forgets the past, as etcd's compaction does.
    pub(super) fn compact(&mut self) {
        self.floor = self.revision();
        self.history.clear();
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// Whether there is an object with this UID.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.objects.values().any(|object| object["metadata"]["uid"] == uid)
    }

    /// The objects of a collection, in the order of lists.
    pub(super) fn collection<'a>(
        &'a self,
        resource: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> + 'a {
        let first = Key {
            resource: resource.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        self.objects
            .range(first..)
            .take_while(move |(key, _)| key.resource == resource && namespace.is_none_or(|it| key.namespace == it))
    }

    /// A collection as it was at a revision; 410 when that is forgotten.
    pub(super) fn collection_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<BTreeMap<Key, Arc<Value>>, Box<Status>> {
        if revision > self.revision() {
            return Err(refusal::too_new(revision, self.revision()));
        }
        if revision < self.floor {
            return Err(refusal::too_old(revision, self.floor));
        }
        let mut then: BTreeMap<Key, Arc<Value>> = self
            .collection(resource, namespace)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect();
        for change in self.history.iter().skip(offset(revision - self.floor)).rev() {
            if change.key.resource != resource || namespace.is_some_and(|it| change.key.namespace != it) {
                continue;
            }
            match &change.before {
                Some(before) => then.insert(change.key.clone(), Arc::clone(before)),
                None => then.remove(&change.key),
            };
        }
        Ok(then)
    }

    /// The change with this revision: `Ok(None)` when it has not happened yet, 410 when it is forgotten.
    pub(super) fn change(&self, revision: u64) -> Result<Option<&Change>, Box<Status>> {
        match revision.checked_sub(self.floor + 1) {
            Some(index) => Ok(self.history.get(offset(index))),
            None => Err(refusal::too_old(revision - 1, self.floor)),
        }
    }

    /// The revision the next change will get.
    pub(super) fn next_revision(&self) -> u64 {
        self.revision() + 1
    }

    /// Stores an object whose `resourceVersion` is [`Store::next_revision`].
    pub(super) fn put(&mut self, at: Instant, key: Key, object: Arc<Value>) {
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.record(Change {
            at,
            key,
            before,
            after: Some(Arc::clone(&object)),
            shown: object,
        });
    }

    /// Removes an object; `last` is its last state, whose `resourceVersion` is [`Store::next_revision`].
    pub(super) fn remove(&mut self, at: Instant, key: Key, last: Arc<Value>) {
        let before = self.objects.remove(&key);
        self.record(Change {
            at,
            key,
            before,
            after: None,
            shown: last,
        });
    }

    /// Removes all objects of a kind and its past, without a trace: the kind itself is gone.
    pub(super) fn forget(&mut self, resource: &str) {
        self.objects.retain(|key, _| key.resource != resource);
    }

    fn record(&mut self, change: Change) {
        self.history.push_back(change);
        while self.history.len() > self.history_limit {
            self.history.pop_front();
            self.floor += 1;
        }
    }
}

/// The history is in memory, so its length fits.
fn offset(distance: u64) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}
