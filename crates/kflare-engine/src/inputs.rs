//! What a spec reads besides itself: keys of Secrets and ConfigMaps of its namespace. They are watched as metadata only, read one at
//! a time when a pass needs them, and never kept. A fingerprint of their versions in status tells after a restart whether one of
//! them has changed meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde_json::json;

use crate::{
    digest,
    mutation::{self, Mutation},
    object::ObjectKey,
    reason::Reason,
};

/// Field of status: fingerprint of the versions that the object was last brought into line with.
pub(crate) const FIELD: &str = "inputs";

/// What holds an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl InputKind {
    /// The Kubernetes kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// Reason while it does not exist.
    pub(crate) fn not_found(self) -> Reason {
        match self {
            Self::Secret => Reason::SECRET_NOT_FOUND,
            Self::ConfigMap => Reason::CONFIG_MAP_NOT_FOUND,
        }
    }

    /// Reason while it lacks a key.
    pub(crate) fn key_missing(self) -> Reason {
        match self {
            Self::Secret => Reason::SECRET_KEY_MISSING,
            Self::ConfigMap => Reason::CONFIG_MAP_KEY_MISSING,
        }
    }
}

/// A key of a Secret or ConfigMap in the namespace of the resource that names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// What holds it.
    pub kind: InputKind,
    /// Name of the Secret or ConfigMap.
    pub name: String,
    /// Key in it.
    pub key: String,
}

impl Input {
    /// A key of a Secret.
    pub fn secret(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            kind: InputKind::Secret,
            name: name.into(),
            key: key.into(),
        }
    }

    /// A key of a ConfigMap.
    pub fn config_map(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            kind: InputKind::ConfigMap,
            name: name.into(),
            key: key.into(),
        }
    }
}

/// The values of inputs, for as long as a pass takes.
#[derive(Clone, Default)]
pub struct Inputs(BTreeMap<Input, Vec<u8>>);

impl Inputs {
    /// The value of an input that the kind has named.
    pub fn get(&self, input: &Input) -> Option<&[u8]> {
        self.0.get(input).map(Vec::as_slice)
    }

    /// Adds a value.
    pub fn insert(&mut self, input: Input, value: Vec<u8>) {
        self.0.insert(input, value);
    }
}

impl fmt::Debug for Inputs {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Names a Secret or ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputKey {
    /// What it is.
    pub kind: InputKind,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl InputKey {
    /// A key from its parts.
    pub fn new(kind: InputKind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for InputKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.name(), self.namespace, self.name)
    }
}

/// Fingerprint of what was read: each Secret and ConfigMap with its resourceVersion.
pub(crate) fn fingerprint<'a>(versions: impl IntoIterator<Item = (&'a InputKey, &'a str)>) -> String {
    let all: Vec<_> = versions
        .into_iter()
        .map(|(key, version)| json!([key.kind.name(), &*key.namespace, &*key.name, version]))
        .collect();
    digest::fingerprint(&json!(all))
}

/// Who reads which Secrets and ConfigMaps, and at which version they are.
#[derive(Default)]
pub(crate) struct InputUsers {
    users: BTreeMap<InputKey, BTreeSet<ObjectKey>>,
    read_by: BTreeMap<ObjectKey, BTreeSet<InputKey>>,
    versions: BTreeMap<InputKey, String>,
    /// While all Secrets, or all ConfigMaps, are being listed: those among them that somebody reads and that have not come yet.
    unseen: BTreeMap<InputKind, BTreeSet<InputKey>>,
    /// Every resource is known: versions of what nobody reads are of no use.
    settled: bool,
}

impl InputUsers {
    /// How many entries are kept.
    pub fn len(&self) -> usize {
        self.users.len() + self.read_by.len() + self.versions.len()
    }

    /// Notes what `object` reads.
    pub fn link(&mut self, object: &ObjectKey, inputs: &[Input]) {
        let Some(namespace) = object.namespace.as_deref().filter(|_| !inputs.is_empty()) else {
            return;
        };
        let keys: BTreeSet<InputKey> = inputs
            .iter()
            .map(|input| InputKey::new(input.kind, namespace, &input.name))
            .collect();
        for key in &keys {
            self.users.entry(key.clone()).or_default().insert(object.clone());
        }
        self.read_by.insert(object.clone(), keys);
    }

    /// Forgets what `object` reads.
    pub fn unlink(&mut self, object: &ObjectKey) {
        for key in self.read_by.remove(object).unwrap_or_default() {
            if let Some(users) = self.users.get_mut(&key) {
                users.remove(object);
                if users.is_empty() {
                    self.users.remove(&key);
                }
            }
        }
    }

    /// Notes that a Secret or ConfigMap is at `version`, or gone. Gives who reads it, if that is news.
    pub fn note(&mut self, key: InputKey, version: Option<String>) -> Vec<ObjectKey> {
        let users: Vec<ObjectKey> = self.users.get(&key).into_iter().flatten().cloned().collect();
        if let Some(unseen) = self.unseen.get_mut(&key.kind) {
            unseen.remove(&key);
        }
        if users.is_empty() && self.settled {
            self.versions.remove(&key);
            return users;
        }
        let news = if let Some(version) = version {
            self.versions.insert(key, version.clone()).as_ref() != Some(&version)
        } else {
            // That it goes is news also if its version was never shown: it was there before anybody read it.
            self.versions.remove(&key);
            true
        };
        if news && !mutation::is(Mutation::InputsIgnored) {
            users
        } else {
            Vec::new()
        }
    }

    /// All Secrets, or all ConfigMaps, are about to be listed.
    pub fn listing(&mut self, kind: InputKind) {
        let read = self.users.keys().filter(|key| key.kind == kind);
        self.unseen.insert(kind, read.cloned().collect());
    }

    /// All of them have been listed: those that did not come are gone. Gives who reads them.
    pub fn listed(&mut self, kind: InputKind) -> Vec<ObjectKey> {
        let gone = self.unseen.remove(&kind).unwrap_or_default();
        gone.into_iter().flat_map(|key| self.note(key, None)).collect()
    }

    /// All resources are known from here on.
    pub fn settle(&mut self) {
        self.settled = true;
        self.prune();
    }

    /// Drops the versions of what nobody reads.
    pub fn prune(&mut self) {
        if self.settled {
            let users = &self.users;
            self.versions.retain(|key, _| users.contains_key(key));
        }
    }

    /// Whether `object` was brought into line with what it reads as that is now, by the fingerprint in its status. What reads
    /// nothing always is; what reads something of an unknown version never.
    pub fn is_current(&self, object: &ObjectKey, recorded: Option<&str>) -> bool {
        let Some(keys) = self
            .read_by
            .get(object)
            .filter(|_| !mutation::is(Mutation::InputsIgnored))
        else {
            return true;
        };
        let versions: Option<Vec<(&InputKey, &str)>> = keys
            .iter()
            .map(|key| Some((key, self.versions.get(key)?.as_str())))
            .collect();
        versions.is_some_and(|versions| recorded == Some(fingerprint(versions).as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> ObjectKey {
        ObjectKey::new("WorkerScript", Some("a"), "web")
    }

    fn secret(name: &str) -> InputKey {
        InputKey::new(InputKind::Secret, "a", name)
    }

    #[test]
    fn only_news_wakes_who_reads_it() {
        let mut users = InputUsers::default();
        users.link(&reader(), &[Input::secret("s", "k"), Input::secret("s", "l")]);
        assert_eq!(users.note(secret("s"), Some("1".into())), [reader()]);
        assert_eq!(users.note(secret("s"), Some("1".into())), []);
        assert_eq!(users.note(secret("s"), Some("2".into())), [reader()]);
        assert_eq!(users.note(secret("other"), Some("1".into())), []);
        assert_eq!(users.note(secret("s"), None), [reader()]);
    }

    #[test]
    fn what_was_there_before_its_reader_and_goes_is_missed() {
        let mut users = InputUsers::default();
        users.settle();
        users.note(secret("s"), Some("1".into()));
        users.link(&reader(), &[Input::secret("s", "k")]);
        assert_eq!(users.note(secret("s"), None), [reader()]);
    }

    #[test]
    fn what_a_whole_list_does_not_show_is_gone() {
        let mut users = InputUsers::default();
        users.link(&reader(), &[Input::secret("s", "k"), Input::config_map("c", "k")]);
        users.listing(InputKind::Secret);
        users.note(secret("s"), Some("1".into()));
        assert_eq!(users.listed(InputKind::Secret), []);
        users.listing(InputKind::Secret);
        users.note(secret("other"), Some("1".into()));
        assert_eq!(users.listed(InputKind::Secret), [reader()]);
        assert_eq!(users.listed(InputKind::ConfigMap), [], "none was taken");
    }

    #[test]
    fn what_nobody_reads_is_kept_only_until_all_readers_are_known() {
        let mut users = InputUsers::default();
        users.note(secret("s"), Some("1".into()));
        users.note(secret("t"), Some("1".into()));
        users.link(&reader(), &[Input::secret("s", "k")]);
        users.settle();
        assert_eq!(users.len(), 3);
        users.note(secret("t"), Some("2".into()));
        assert_eq!(users.len(), 3);
        users.unlink(&reader());
        users.prune();
        assert_eq!(users.len(), 0);
    }

    #[test]
    fn a_fingerprint_tells_whether_something_has_changed() {
        let mut users = InputUsers::default();
        assert!(users.is_current(&reader(), None), "reads nothing");
        users.link(&reader(), &[Input::secret("s", "k"), Input::config_map("s", "k")]);
        let config = InputKey::new(InputKind::ConfigMap, "a", "s");
        let print = fingerprint([(&secret("s"), "1"), (&config, "7")]);
        assert!(!users.is_current(&reader(), Some(&print)), "versions not known yet");
        users.note(config, Some("7".into()));
        users.note(secret("s"), Some("1".into()));
        assert!(users.is_current(&reader(), Some(&print)));
        users.note(secret("s"), Some("2".into()));
        assert!(!users.is_current(&reader(), Some(&print)));
    }

    #[test]
    fn values_are_not_shown() {
        let mut inputs = Inputs::default();
        inputs.insert(Input::secret("s", "k"), b"hush".to_vec());
        assert!(!format!("{inputs:?}").contains("hush"));
    }
}
