//! The Secrets and ConfigMaps that resources read, yield and hold.

use kflare_api::names;

use super::{Index, Wake};
use crate::{
    inputs::{FIELD, InputKey, InputKind},
    object::{Object, ObjectKey, SecretKey},
    queue::Priority,
    yields::YieldedSecrets,
};

impl Index {
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
        let recorded = object.status.get::<String>(&[FIELD]);
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
