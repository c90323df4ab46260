//! The registry of kinds.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    kind::{Kind, ResourceScope},
    object::ObjectKey,
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
