//! KV namespaces, R2 buckets, D1 databases and queues that are there from the start.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{d1, kv, queues, r2, r2_rules, region_of};
use crate::config::Quirks;
use crate::envelope::Refusal;
use crate::state::{Bucket, Database, KvNamespace, World};

/// A KV namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvNamespaceSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The account it is in.
    pub account: String,
    /// Its title.
    pub title: String,
}

/// An R2 bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketSeed {
    /// The account it is in.
    pub account: String,
    /// Its name.
    pub name: String,
    /// `us`, `eu`, `fedramp` or `fedramp-high`; unset: none.
    #[serde(default)]
    pub jurisdiction: Option<String>,
    /// How many objects are in it.
    #[serde(default)]
    pub objects: u64,
    /// When it was made; unset: now.
    #[serde(default)]
    pub created_on: Option<Timestamp>,
    /// Its CORS rules, as the API takes them; unset: none were ever set.
    #[serde(default)]
    pub cors: Option<Vec<Value>>,
    /// Its lifecycle rules, as the API takes them; unset: the one that a new bucket has.
    #[serde(default)]
    pub lifecycle: Option<Vec<Value>>,
}

/// A D1 database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSeed {
    /// A UUID in lower case; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The account it is in.
    pub account: String,
    /// Its name.
    pub name: String,
    /// When it was made; unset: now.
    #[serde(default)]
    pub created_on: Option<Timestamp>,
}

/// A queue, with the settings of a new one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The account it is in.
    pub account: String,
    /// Its name.
    pub name: String,
}

impl KvNamespaceSeed {
    pub(crate) fn apply(
        &self,
        world: &mut World,
        account_id: String,
        id: String,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let namespace = KvNamespace {
            id,
            account_id,
            title: self.title.clone(),
            jurisdiction: None,
        };
        kv::add(world, namespace, now).map(drop)
    }
}

impl BucketSeed {
    pub(crate) fn apply(&self, world: &mut World, account_id: String, now: Timestamp) -> Result<(), Refusal> {
        let jurisdiction = self.jurisdiction.as_deref();
        let bucket = Bucket {
            account_id,
            name: self.name.clone(),
            location: region_of(jurisdiction).to_owned(),
            jurisdiction: jurisdiction.unwrap_or("default").to_owned(),
            storage_class: "Standard".to_owned(),
            created_on: self.created_on.unwrap_or(now),
            objects: self.objects,
            cors: self.cors.clone(),
            lifecycle: self.lifecycle.clone().unwrap_or_else(|| vec![r2_rules::default_rule()]),
        };
        r2::add(world, bucket, Quirks::default(), now).map(drop)
    }
}

impl DatabaseSeed {
    pub(crate) fn apply(&self, world: &mut World, account_id: String, now: Timestamp) -> Result<(), Refusal> {
        let database = Database {
            id: self.id.clone().unwrap_or_else(|| world.new_uuid()),
            account_id,
            name: self.name.clone(),
            jurisdiction: None,
            region: region_of(None).to_uppercase(),
            created_on: self.created_on.unwrap_or(now),
            replication: "disabled".to_owned(),
        };
        d1::add(world, database, now).map(drop)
    }
}

impl QueueSeed {
    pub(crate) fn apply(
        &self,
        world: &mut World,
        account_id: String,
        id: String,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        queues::add(world, queues::new(id, account_id, self.name.clone(), now), now).map(drop)
    }
}
