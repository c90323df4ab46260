//! What an account stores data in: KV namespaces, R2 buckets, D1 databases, queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::journal::Undo;
use super::{Point, World};

/// A KV namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KvNamespace {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) title: String,
    pub(crate) jurisdiction: Option<String>,
}

/// An R2 bucket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bucket {
    pub(crate) account_id: String,
    /// `default` where there is none.
    pub(crate) jurisdiction: String,
    pub(crate) name: String,
    /// In lower case.
    pub(crate) location: String,
    pub(crate) storage_class: String,
    pub(crate) created_on: Timestamp,
    /// How many objects are in it.
    pub(crate) objects: u64,
    /// `None`: never set, or deleted.
    pub(crate) cors: Option<Vec<Value>>,
    pub(crate) lifecycle: Vec<Value>,
}

/// A D1 database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Database {
    /// A UUID.
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) name: String,
    pub(crate) jurisdiction: Option<String>,
    /// In upper case.
    pub(crate) region: String,
    pub(crate) created_on: Timestamp,
    /// `auto` or `disabled`.
    pub(crate) replication: String,
}

/// A queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Queue {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) name: String,
    pub(crate) jurisdiction: Option<String>,
    /// In seconds.
    pub(crate) delivery_delay: u64,
    /// In seconds.
    pub(crate) message_retention_period: u64,
    /// `None`: never set.
    pub(crate) delivery_paused: Option<bool>,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
}

type Table<T> = BTreeMap<String, Arc<T>>;

/// What has a key in a table of [`Stores`].
pub(crate) trait Stored: Sized + 'static {
    /// Unique among its kind. Buckets have no id: account, jurisdiction and name.
    fn key(&self) -> String;
    fn account(&self) -> &str;
    fn table(stores: &Stores) -> &Table<Self>;
    fn table_mut(stores: &mut Stores) -> &mut Table<Self>;
    fn to_undo(change: Change<Self>) -> StoreUndo;
    fn of_undo(undo: &StoreUndo) -> Option<&Change<Self>>;
}

/// What was under a key before a change.
#[derive(Debug)]
pub(crate) struct Change<T> {
    key: String,
    before: Option<Arc<T>>,
}

impl<T> Change<T> {
    fn take_back(self, table: &mut Table<T>) {
        match self.before {
            Some(before) => drop(table.insert(self.key, before)),
            None => drop(table.remove(&self.key)),
        }
    }
}

/// One line a kind: its type, its table, what a change of it is called, and its key.
macro_rules! stores {
    ($($kind:ident in $table:ident as $undo:ident by $key:expr;)*) => {
        /// Everything of these kinds, by key.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub(crate) struct Stores {
            $($table: Table<$kind>,)*
        }

        /// How to take one change of a store back.
        #[derive(Debug)]
        pub(crate) enum StoreUndo {
            $($undo(Change<$kind>),)*
        }

        impl Stores {
            /// Takes one change back.
            pub(super) fn take_back(&mut self, undo: StoreUndo) {
                match undo {
                    $(StoreUndo::$undo(change) => change.take_back(&mut self.$table),)*
                }
            }
        }

        $(impl Stored for $kind {
            fn key(&self) -> String {
                $key(self)
            }
            fn account(&self) -> &str {
                &self.account_id
            }
            fn table(stores: &Stores) -> &Table<Self> {
                &stores.$table
            }
            fn table_mut(stores: &mut Stores) -> &mut Table<Self> {
                &mut stores.$table
            }
            fn to_undo(change: Change<Self>) -> StoreUndo {
                StoreUndo::$undo(change)
            }
            fn of_undo(undo: &StoreUndo) -> Option<&Change<Self>> {
                match undo {
                    StoreUndo::$undo(change) => Some(change),
                    _ => None,
                }
            }
        })*
    };
}

stores! {
    KvNamespace in namespaces as Namespace by |it: &KvNamespace| it.id.clone();
    Bucket in buckets as Bucket by |it: &Bucket| Bucket::key_of(&it.account_id, &it.jurisdiction, &it.name);
    Database in databases as Database by |it: &Database| it.id.clone();
    Queue in queues as Queue by |it: &Queue| it.id.clone();
}

impl Bucket {
    fn key_of(account: &str, jurisdiction: &str, name: &str) -> String {
        format!("{account}/{jurisdiction}/{name}")
    }
}

impl World {
    /// The KV namespace of this id, for those who bind to it.
    pub(crate) fn kv_namespace(&self, account: &str, id: &str) -> Option<&Arc<KvNamespace>> {
        let found = self.held.stores.namespaces.get(id);
        found.filter(|namespace| namespace.account_id == account)
    }

    /// The bucket of this name in a jurisdiction (`default` where there is none), for those who bind to it.
    pub(crate) fn bucket(&self, account: &str, jurisdiction: &str, name: &str) -> Option<&Arc<Bucket>> {
        self.held
            .stores
            .buckets
            .get(&Bucket::key_of(account, jurisdiction, name))
    }

    /// The D1 database of this id, for those who bind to it.
    pub(crate) fn database(&self, account: &str, id: &str) -> Option<&Arc<Database>> {
        let found = self.held.stores.databases.get(id);
        found.filter(|database| database.account_id == account)
    }

    /// The queue of this name, for those who bind to it.
    pub(crate) fn queue(&self, account: &str, name: &str) -> Option<&Arc<Queue>> {
        let mut all = self.held.stores.queues.values();
        all.find(|queue| queue.account_id == account && queue.name == name)
    }

    /// What an account has of a kind, by key, as it is or as it was.
    pub(crate) fn stored_in<T: Stored>(&self, account: &str, at: Option<Point>) -> Vec<Arc<T>> {
        let mut table = T::table(&self.held.stores).clone();
        if let Some(point) = at {
            for undo in self.journal.undone_since(point) {
                if let Undo::Store(undo) = undo
                    && let Some(change) = T::of_undo(undo)
                {
                    match &change.before {
                        Some(before) => drop(table.insert(change.key.clone(), Arc::clone(before))),
                        None => drop(table.remove(&change.key)),
                    }
                }
            }
        }
        table
            .into_values()
            .filter(|stored| stored.account() == account)
            .collect()
    }

    /// Everything of a kind, by key.
    pub(crate) fn stored<T: Stored>(&self) -> impl Iterator<Item = &Arc<T>> {
        T::table(&self.held.stores).values()
    }

    pub(crate) fn put_stored<T: Stored>(&mut self, stored: T, now: Timestamp) {
        let key = stored.key();
        let before = T::table_mut(&mut self.held.stores).insert(key.clone(), Arc::new(stored));
        self.journal.push(now, Undo::Store(T::to_undo(Change { key, before })));
    }

    pub(crate) fn remove_stored<T: Stored>(&mut self, stored: &T, now: Timestamp) {
        let key = stored.key();
        if let Some(before) = T::table_mut(&mut self.held.stores).remove(&key) {
            let change = Change {
                key,
                before: Some(before),
            };
            self.journal.push(now, Undo::Store(T::to_undo(change)));
        }
    }
}
