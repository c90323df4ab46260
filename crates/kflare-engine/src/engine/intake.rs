//! What the watches say goes into the store, and from there to whom it concerns.

use std::{collections::BTreeSet, sync::Arc};

use kube::{ResourceExt, runtime::watcher::Event as WatchEvent};
use tokio::time::Instant;

use super::Run;
use crate::{
    index::Wake,
    inputs::{InputKey, InputKind},
    object::{Object, ObjectKey, SecretKey},
    queue::Priority,
    watch::{Fed, FeedId, Watched},
    yields,
};

#[derive(Default)]
pub(super) struct FeedState {
    /// Its first list is complete, or it is known not to exist.
    pub synced: bool,
    /// Its first list is complete.
    pub listed: bool,
    /// Keys seen in the list that is under way.
    pub seen: Option<BTreeSet<ObjectKey>>,
    /// The same for Secrets.
    pub seen_secrets: Option<BTreeSet<SecretKey>>,
    pub last: Option<Instant>,
    pub complained: bool,
}

impl Run {
    pub(super) fn take(&mut self, id: FeedId, fed: Fed) {
        let Some(state) = self.states.get_mut(id) else { return };
        state.last = Some(Instant::now());
        match fed {
            Fed::Resource(event) => {
                state.complained &= matches!(event, WatchEvent::Init);
                self.take_resource(id, event);
            }
            Fed::Secret(event) => self.take_secret(id, event),
            Fed::ConfigMap(event) => self.take_config_map(id, event),
            Fed::Namespace(event) => self.take_namespace(id, event),
            Fed::Failed(trouble) => {
                let resource = self.watched.get(id).map(Watched::label).unwrap_or_default();
                if !std::mem::replace(&mut state.complained, true) {
                    tracing::warn!(%resource, error = %trouble.message, "watch failed, retrying");
                }
                // A kind whose CRD is not there (or that we may not see) does not hold up the others.
                if trouble.absent || trouble.forbidden {
                    state.synced = true;
                    self.begin_if_ready();
                }
            }
        }
    }

    fn take_resource(&mut self, id: FeedId, event: WatchEvent<kube::api::DynamicObject>) {
        let Some(Watched::Kind { kind, namespace }) = self.watched.get(id).cloned() else {
            return;
        };
        let Some(state) = self.states.get_mut(id) else { return };
        match event {
            WatchEvent::Init => state.seen = Some(BTreeSet::new()),
            WatchEvent::InitApply(object) | WatchEvent::Apply(object) => {
                let Some(object) = Object::from_dynamic(&kind, object) else {
                    return;
                };
                if let Some(seen) = &mut state.seen {
                    seen.insert(object.key.clone());
                }
                // Another has taken its name, and nobody said that it went.
                let known = self.context.index().get(&object.key);
                if known.is_some_and(|known| known.uid != object.uid) {
                    self.forget(id, &object.key);
                }
                let wakes = self.context.index().apply(object);
                self.wake(id, wakes);
            }
            WatchEvent::Delete(object) => {
                let name = object.name_any();
                let key = ObjectKey::new(&kind, object.namespace().as_deref(), &name);
                self.forget(id, &key);
            }
            WatchEvent::InitDone => {
                let seen = state.seen.take().unwrap_or_default();
                let first = !std::mem::replace(&mut state.listed, true);
                state.synced = true;
                let gone: Vec<ObjectKey> = {
                    let index = self.context.index();
                    let of_feed = |object: &&Arc<Object>| {
                        namespace
                            .as_deref()
                            .is_none_or(|it| object.key.namespace.as_deref() == Some(it))
                    };
                    index
                        .of_kind(&kind)
                        .filter(of_feed)
                        .map(|it| it.key.clone())
                        .filter(|key| !seen.contains(key))
                        .collect()
                };
                for key in gone {
                    self.forget(id, &key);
                }
                if self.working && first {
                    // A CRD that has just appeared.
                    let objects = self.context.index().of_kind(&kind).cloned().collect();
                    self.queue_unsettled(objects);
                }
                self.begin_if_ready();
            }
        }
    }

    /// Queues, unless this is a first list (whose objects are judged as a whole) or this replica does not work.
    fn wake(&self, id: FeedId, wakes: Vec<Wake>) {
        if self.working && self.states.get(id).is_some_and(|state| state.listed) {
            self.context.wake_all(wakes);
        }
    }

    fn forget(&mut self, id: FeedId, key: &ObjectKey) {
        let old = self.context.index().get(key);
        let referents = self.context.index().referents(key);
        let wakes = self.context.index().remove(key);
        self.context.queue().forget(key);
        if let Some(old) = old {
            let ours = self.working && self.context.settings.manages(&key.kind);
            if ours && self.context.vanished().note(&old, referents) {
                self.context.wake_all(vec![(key.clone(), Priority::Delete)]);
            } else {
                self.context.forget(&old);
            }
        }
        self.wake(id, wakes);
    }

    fn take_secret(
        &mut self,
        id: FeedId,
        event: WatchEvent<kube::api::PartialObjectMeta<k8s_openapi::api::core::v1::Secret>>,
    ) {
        self.note_yielded(id, &event);
        let Some(state) = self.states.get_mut(id) else { return };
        let (secret, version, deleted) = match event {
            WatchEvent::Init => return self.context.index().listing_inputs(InputKind::Secret),
            WatchEvent::InitDone => {
                state.listed = true;
                state.synced = true;
                self.miss_inputs(InputKind::Secret);
                return self.begin_if_ready();
            }
            WatchEvent::Apply(meta) | WatchEvent::InitApply(meta) => {
                let secret = secret_key(&meta);
                self.context.index().set_protected(&secret, meta.finalizers());
                (secret, meta.resource_version().unwrap_or_default(), false)
            }
            WatchEvent::Delete(meta) => {
                let secret = secret_key(&meta);
                self.context.index().set_protected(&secret, &[]);
                (secret, String::new(), true)
            }
        };
        let input = InputKey {
            kind: InputKind::Secret,
            namespace: secret.namespace.clone(),
            name: secret.name.clone(),
        };
        self.take_input(input, (!deleted).then(|| version.clone()));
        let users = self.context.index().secret_users(&secret);
        if users.is_empty() {
            self.secret_versions.remove(&secret);
            return;
        }
        let changed = self.secret_versions.insert(secret.clone(), version.clone()) != Some(version);
        if !changed && !deleted {
            return;
        }
        self.context.credentials.forget_secret(&secret);
        let mut wakes = Vec::new();
        for user in users {
            self.context.collections.forgive(&user.name);
            let index = self.context.index();
            let refused = index
                .descendants(&user)
                .into_iter()
                .filter(|key| index.get(key).is_some_and(|it| !it.is_ready()));
            wakes.extend(refused.map(|key| (key, Priority::Dependent)));
            drop(index);
            wakes.push((user, Priority::UserChange));
        }
        if self.working {
            self.context.wake_all(wakes);
        }
    }

    fn take_config_map(
        &mut self,
        id: FeedId,
        event: WatchEvent<kube::api::PartialObjectMeta<k8s_openapi::api::core::v1::ConfigMap>>,
    ) {
        let key = |meta: &kube::api::PartialObjectMeta<_>| {
            InputKey::new(
                InputKind::ConfigMap,
                &meta.namespace().unwrap_or_default(),
                &meta.name_any(),
            )
        };
        match event {
            WatchEvent::Init => self.context.index().listing_inputs(InputKind::ConfigMap),
            WatchEvent::InitDone => {
                if let Some(state) = self.states.get_mut(id) {
                    state.listed = true;
                    state.synced = true;
                }
                self.miss_inputs(InputKind::ConfigMap);
                self.begin_if_ready();
            }
            WatchEvent::Apply(meta) | WatchEvent::InitApply(meta) => {
                self.take_input(key(&meta), Some(meta.resource_version().unwrap_or_default()));
            }
            WatchEvent::Delete(meta) => self.take_input(key(&meta), None),
        }
    }

    /// A Secret or ConfigMap has another version, or is gone: whoever reads it looks anew.
    fn take_input(&self, key: InputKey, version: Option<String>) {
        let wakes = self.context.index().note_input(key, version);
        if self.working {
            self.context.wake_all(wakes);
        }
    }

    /// A whole list has come: whoever reads what it did not show looks anew.
    fn miss_inputs(&self, kind: InputKind) {
        let wakes = self.context.index().listed_inputs(kind);
        if self.working {
            self.context.wake_all(wakes);
        }
    }

    /// What the watch shows of Secrets that resources yield, and wakes those whose Secret somebody else has changed.
    fn note_yielded(
        &mut self,
        id: FeedId,
        event: &WatchEvent<kube::api::PartialObjectMeta<k8s_openapi::api::core::v1::Secret>>,
    ) {
        let Some(state) = self.states.get_mut(id) else { return };
        let mut index = self.context.index();
        let concerned = match event {
            WatchEvent::Init => {
                state.seen_secrets = Some(BTreeSet::new());
                Vec::new()
            }
            WatchEvent::Apply(meta) | WatchEvent::InitApply(meta) => {
                let (secret, mark) = (secret_key(meta), yields::mark(meta));
                if let Some(seen) = state.seen_secrets.as_mut().filter(|_| mark.owner.is_some()) {
                    seen.insert(secret.clone());
                }
                index.yielded_mut().noted(&secret, Some(mark))
            }
            WatchEvent::Delete(meta) => index.yielded_mut().noted(&secret_key(meta), None),
            WatchEvent::InitDone => {
                let seen = state.seen_secrets.take().unwrap_or_default();
                let gone = index.yielded().missing(&seen);
                let gone = gone.iter();
                gone.flat_map(|secret| index.yielded_mut().noted(secret, None))
                    .collect()
            }
        };
        drop(index);
        if self.working {
            let wakes = concerned.into_iter().map(|key| (key, Priority::UserChange));
            self.context.wake_all(wakes.collect());
        }
    }

    fn take_namespace(
        &mut self,
        id: FeedId,
        event: WatchEvent<kube::api::PartialObjectMeta<k8s_openapi::api::core::v1::Namespace>>,
    ) {
        let wakes = match event {
            WatchEvent::Init => Vec::new(),
            WatchEvent::InitDone => {
                if let Some(state) = self.states.get_mut(id) {
                    state.listed = true;
                    state.synced = true;
                }
                self.begin_if_ready();
                Vec::new()
            }
            WatchEvent::Apply(meta) | WatchEvent::InitApply(meta) => {
                let labels = meta.labels().clone();
                self.context.index().set_namespace(&meta.name_any(), Some(labels))
            }
            WatchEvent::Delete(meta) => self.context.index().set_namespace(&meta.name_any(), None),
        };
        if self.working {
            self.context.wake_all(wakes);
        }
    }
}

fn secret_key<K: ResourceExt>(meta: &K) -> SecretKey {
    SecretKey {
        namespace: meta.namespace().unwrap_or_default().into(),
        name: meta.name_any().into(),
    }
}
