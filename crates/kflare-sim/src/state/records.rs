//! The records of one zone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::areas::dns::Record;

/// Records by id, with an index by name: conflicts are between records of one name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Record>", into = "Vec<Record>")]
pub(crate) struct RecordSet {
    by_id: BTreeMap<String, Arc<Record>>,
    by_name: BTreeMap<String, BTreeSet<String>>,
}

impl RecordSet {
    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Record>> {
        self.by_id.get(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.by_id.values()
    }

    /// The records of exactly this name.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Record>> {
        self.by_name
            .get(name)
            .into_iter()
            .flatten()
            .filter_map(|id| self.by_id.get(id))
    }

    /// Puts `record` in the place of what has this id, or removes that. Returns what was there.
    pub(super) fn replace(&mut self, id: &str, record: Option<Arc<Record>>) -> Option<Arc<Record>> {
        let before = self.by_id.remove(id);
        if let Some(old) = &before
            && let Some(ids) = self.by_name.get_mut(&old.fields.name)
        {
            ids.remove(id);
            if ids.is_empty() {
                self.by_name.remove(&old.fields.name);
            }
        }
        if let Some(new) = record {
            self.by_name
                .entry(new.fields.name.clone())
                .or_default()
                .insert(id.to_owned());
            self.by_id.insert(id.to_owned(), new);
        }
        before
    }
}

impl From<Vec<Record>> for RecordSet {
    fn from(records: Vec<Record>) -> Self {
        let mut set = Self::default();
        for record in records {
            let id = record.id.clone();
            set.replace(&id, Some(Arc::new(record)));
        }
        set
    }
}

impl From<RecordSet> for Vec<Record> {
    fn from(set: RecordSet) -> Self {
        set.by_id.into_values().map(Arc::unwrap_or_clone).collect()
    }
}
