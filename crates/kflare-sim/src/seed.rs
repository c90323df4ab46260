//! Seeding: what the simulated cloud holds from the start.

mod workers;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::areas::dns::{Managed, Quota, Writer, name};
use crate::areas::managed_headers;
use crate::areas::rulesets::RulesetSeed;
use crate::areas::stores::seed::{BucketSeed, DatabaseSeed, KvNamespaceSeed, QueueSeed};
use crate::areas::tunnels::TunnelSeed;
use crate::config::Quirks;
use crate::envelope::Refusal;
use crate::ids::{is_hex32, is_uuid};
use crate::plan::Plan;
use crate::state::{
    Account, AccountType, Grant, ListKind, Owner, Subscription, Token, TokenStatus, User, World, Zone, ZoneStatus,
    ZoneType,
};

pub use workers::{BindableSeed, ModuleSeed, WorkerRouteSeed, WorkerSeed};

/// What to add to the simulated cloud. Everything that refers to accounts, users or zones may use their id or their name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Seed {
    /// Accounts.
    pub accounts: Vec<AccountSeed>,
    /// Users. Without any, a user who is a member of every account is made for tokens without an owner.
    pub users: Vec<UserSeed>,
    /// API tokens.
    pub tokens: Vec<TokenSeed>,
    /// Zones.
    pub zones: Vec<ZoneSeed>,
    /// KV namespaces.
    pub kv_namespaces: Vec<KvNamespaceSeed>,
    /// R2 buckets.
    pub r2_buckets: Vec<BucketSeed>,
    /// D1 databases.
    pub d1_databases: Vec<DatabaseSeed>,
    /// Queues.
    pub queues: Vec<QueueSeed>,
    /// Lists of accounts.
    pub lists: Vec<ListSeed>,
    /// What Workers may bind, of products that are not modelled.
    pub bindable: Vec<BindableSeed>,
    /// Workers, those that others call first.
    pub workers: Vec<WorkerSeed>,
    /// Routes to Workers.
    pub worker_routes: Vec<WorkerRouteSeed>,
    /// Tunnels.
    pub tunnels: Vec<TunnelSeed>,
}

/// An account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The account's name.
    pub name: String,
    /// The kind of account.
    #[serde(default, rename = "type")]
    pub kind: AccountType,
    /// How many D1 databases it may hold; unset: as many as the kind of account may.
    #[serde(default)]
    pub d1_quota: Option<usize>,
    /// Whether R2 was switched on; unset: it was.
    #[serde(default)]
    pub r2: Subscription,
}

impl AccountSeed {
    /// An account of this name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The user's address.
    pub email: String,
    /// The accounts the user is a member of; unset: all there are after this seed.
    #[serde(default)]
    pub accounts: Option<Vec<String>>,
    /// The global key, which may do everything.
    #[serde(default)]
    pub api_key: Option<String>,
}

/// An API token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The token's name.
    #[serde(default)]
    pub name: String,
    /// What is sent as `Authorization: Bearer`.
    pub value: String,
    /// The account the token belongs to; unset: it belongs to a user.
    #[serde(default)]
    pub account: Option<String>,
    /// The user the token belongs to; unset: the first user.
    #[serde(default)]
    pub user: Option<String>,
    /// Whether it is in use.
    #[serde(default)]
    pub status: TokenStatus,
    /// When it starts to work.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
    /// When it stops.
    #[serde(default)]
    pub expires_on: Option<Timestamp>,
    /// What it allows.
    #[serde(default)]
    pub permissions: Vec<Grant>,
}

impl TokenSeed {
    /// A token of the first user.
    pub fn of_user(value: &str, permissions: Vec<Grant>) -> Self {
        Self {
            id: None,
            name: String::new(),
            value: value.to_owned(),
            account: None,
            user: None,
            status: TokenStatus::Active,
            not_before: None,
            expires_on: None,
            permissions,
        }
    }

    /// A token of an account.
    pub fn of_account(value: &str, account: &str, permissions: Vec<Grant>) -> Self {
        Self {
            account: Some(account.to_owned()),
            ..Self::of_user(value, permissions)
        }
    }
}

/// A zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The domain.
    pub name: String,
    /// The account it is in.
    pub account: String,
    /// The plan.
    #[serde(default)]
    pub plan: Plan,
    /// The setup.
    #[serde(default, rename = "type")]
    pub kind: ZoneType,
    /// How far it has come; unset: active.
    #[serde(default)]
    pub status: ZoneStatus,
    /// Whether it is paused.
    #[serde(default)]
    pub paused: bool,
    /// When it was made; unset: now.
    #[serde(default)]
    pub created_on: Option<Timestamp>,
    /// The name servers; unset: a pair that follows from the account.
    #[serde(default)]
    pub name_servers: Option<Vec<String>>,
    /// How many records it may hold; unset: as many as the plan allows.
    #[serde(default)]
    pub record_quota: Option<usize>,
    /// Its records. They are checked as the API would, except for their number.
    #[serde(default)]
    pub records: Vec<RecordSeed>,
    /// Its rulesets. They are checked as the API would, except for what the plan allows.
    #[serde(default)]
    pub rulesets: Vec<RulesetSeed>,
    /// The ids of its managed transforms that are on.
    #[serde(default)]
    pub managed_transforms: Vec<String>,
}

impl ZoneSeed {
    /// An active zone on the free plan.
    pub fn named(name: &str, account: &str) -> Self {
        Self {
            name: name.to_owned(),
            account: account.to_owned(),
            ..Self::default()
        }
    }

    /// On another plan.
    #[must_use]
    pub fn on(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }
}

/// A DNS record: the body that would create it, and what only the server sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What the server says about it. `read_only`, `email_routing` and `origin_worker_id` make it unchangeable through
    /// the API.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// The request body.
    #[serde(flatten)]
    pub body: Map<String, Value>,
}

/// A list of an account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The list's name.
    pub name: String,
    /// The account it is in.
    pub account: String,
    /// What it holds.
    #[serde(default)]
    pub kind: ListKind,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Its items, if they are addresses. They are checked as the API would, except for their number.
    #[serde(default)]
    pub items: Vec<ListItemSeed>,
}

/// An item of a list of addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListItemSeed {
    /// The address or network.
    pub ip: String,
    /// The comment.
    #[serde(default)]
    pub comment: String,
}

/// The ids of what was seeded, in the order of the seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeded {
    /// Of the accounts.
    pub accounts: Vec<String>,
    /// Of the users.
    pub users: Vec<String>,
    /// Of the tokens.
    pub tokens: Vec<String>,
    /// Of the zones.
    pub zones: Vec<String>,
    /// Of the records of each zone.
    pub records: Vec<Vec<String>>,
    /// Of the KV namespaces.
    pub kv_namespaces: Vec<String>,
    /// Of the rulesets of each zone.
    pub rulesets: Vec<Vec<String>>,
    /// Of the lists.
    #[serde(default)]
    pub lists: Vec<String>,
    /// Of the Workers: their tags.
    pub workers: Vec<String>,
    /// Of the routes to Workers.
    pub worker_routes: Vec<String>,
    /// Of the tunnels.
    pub tunnels: Vec<String>,
}

/// The seed makes no sense. What came before the fault in it has been added.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// An id has the wrong form.
    #[error("{0:?} is no id: expected 32 lower-case hex digits")]
    Id(String),
    /// A reference leads nowhere.
    #[error("{referrer} refers to {kind} {name:?}, which is not there")]
    Missing {
        /// Who refers.
        referrer: String,
        /// To what.
        kind: &'static str,
        /// Of which id or name.
        name: String,
    },
    /// Something in an account is refused.
    #[error("{kind} {name:?} is refused")]
    Store {
        /// What it is.
        kind: &'static str,
        /// Its name or title.
        name: String,
        /// Why.
        source: Refusal,
    },
    /// A zone's name is no domain, or taken.
    #[error("{0:?} is no domain, or there is a zone of that name")]
    ZoneName(String),
    /// The content of a module is not there, there twice, or no base64.
    #[error("module {0:?} needs either text or base64")]
    Module(String),
    /// A Worker or a route is refused.
    #[error("{name} is refused")]
    Worker {
        /// The Worker's name or the route's pattern.
        name: String,
        /// Why.
        source: Refusal,
    },
    /// A tunnel is refused.
    #[error("tunnel {name:?} is refused")]
    Tunnel {
        /// The tunnel's name.
        name: String,
        /// Why.
        source: Refusal,
    },
    /// A record is refused.
    #[error("record {index} of zone {zone} is refused")]
    Record {
        /// The zone's name.
        zone: String,
        /// Which one, from 0.
        index: usize,
        /// Why.
        source: Refusal,
    },
    /// A ruleset is refused.
    #[error("ruleset {index} of zone {zone} is refused")]
    Ruleset {
        /// The zone's name.
        zone: String,
        /// Which one, from 0.
        index: usize,
        /// Why.
        source: Refusal,
    },
    /// A list is refused.
    #[error("list {list} is refused")]
    List {
        /// The list's name.
        list: String,
        /// Why.
        source: Refusal,
    },
    /// The managed transforms of a zone are refused.
    #[error("the managed transforms of zone {zone} are refused")]
    ManagedTransforms {
        /// The zone's name.
        zone: String,
        /// Why.
        source: Refusal,
    },
}

impl Seed {
    pub(crate) fn apply(&self, world: &mut World, quirks: Quirks, now: Timestamp) -> Result<Seeded, SeedError> {
        let mut seeded = Seeded::default();
        for account in &self.accounts {
            let id = id(world, account.id.as_ref())?;
            let account = Account {
                id: id.clone(),
                name: account.name.clone(),
                kind: account.kind,
                created_on: now,
                d1_quota: account.d1_quota,
                r2: account.r2,
            };
            world.administer(now, |held| drop(held.accounts.insert(account.id.clone(), account)));
            seeded.accounts.push(id);
        }
        for user in &self.users {
            seeded.users.push(user.apply(world, now)?);
        }
        let needs_user = self
            .tokens
            .iter()
            .any(|token| token.account.is_none() && token.user.is_none());
        if needs_user && world.held().users.is_empty() {
            UserSeed {
                email: "user@example.com".into(),
                ..UserSeed::default()
            }
            .apply(world, now)?;
        }
        for token in &self.tokens {
            seeded.tokens.push(token.apply(world, now)?);
        }
        for zone in &self.zones {
            let (id, records, rulesets) = zone.apply(world, quirks, now)?;
            seeded.zones.push(id);
            seeded.records.push(records);
            seeded.rulesets.push(rulesets);
        }
        for list in &self.lists {
            let account = find_account(world, &list.account, &list.name)?;
            let id = id(world, list.id.as_ref())?;
            list.add_to(world, &account, id.clone(), now)
                .map_err(|source| SeedError::List {
                    list: list.name.clone(),
                    source,
                })?;
            seeded.lists.push(id);
        }
        self.apply_stores(world, now, &mut seeded)?;
        for bindable in &self.bindable {
            bindable.apply(world, now)?;
        }
        for worker in &self.workers {
            seeded.workers.push(worker.apply(world, now)?);
        }
        for route in &self.worker_routes {
            seeded.worker_routes.push(route.apply(world, now)?);
        }
        for tunnel in &self.tunnels {
            let account = find_account(world, &tunnel.account, &tunnel.name)?;
            let made = tunnel.apply(world, account, now);
            seeded.tunnels.push(made.map_err(|source| SeedError::Tunnel {
                name: tunnel.name.clone(),
                source,
            })?);
        }
        Ok(seeded)
    }

    fn apply_stores(&self, world: &mut World, now: Timestamp, seeded: &mut Seeded) -> Result<(), SeedError> {
        let refused = |kind: &'static str, name: &str| {
            let name = name.to_owned();
            move |source| SeedError::Store { kind, name, source }
        };
        for namespace in &self.kv_namespaces {
            let account = find_account(world, &namespace.account, &namespace.title)?;
            let id = id(world, namespace.id.as_ref())?;
            let added = namespace.apply(world, account, id.clone(), now);
            added.map_err(refused("KV namespace", &namespace.title))?;
            seeded.kv_namespaces.push(id);
        }
        for bucket in &self.r2_buckets {
            let account = find_account(world, &bucket.account, &bucket.name)?;
            let added = bucket.apply(world, account, now);
            added.map_err(refused("bucket", &bucket.name))?;
        }
        for database in &self.d1_databases {
            let account = find_account(world, &database.account, &database.name)?;
            if let Some(wrong) = database.id.as_ref().filter(|id| !is_uuid(id)) {
                return Err(SeedError::Id(wrong.clone()));
            }
            let added = database.apply(world, account, now);
            added.map_err(refused("database", &database.name))?;
        }
        for queue in &self.queues {
            let account = find_account(world, &queue.account, &queue.name)?;
            let id = id(world, queue.id.as_ref())?;
            let added = queue.apply(world, account, id, now);
            added.map_err(refused("queue", &queue.name))?;
        }
        Ok(())
    }
}

fn id(world: &mut World, given: Option<&String>) -> Result<String, SeedError> {
    match given {
        None => Ok(world.new_id()),
        Some(id) if is_hex32(id) => Ok(id.clone()),
        Some(wrong) => Err(SeedError::Id(wrong.clone())),
    }
}

fn find_account(world: &World, name: &str, referrer: &str) -> Result<String, SeedError> {
    world.find_account(name).ok_or_else(|| SeedError::Missing {
        referrer: referrer.to_owned(),
        kind: "account",
        name: name.to_owned(),
    })
}

impl UserSeed {
    fn apply(&self, world: &mut World, now: Timestamp) -> Result<String, SeedError> {
        let accounts = match &self.accounts {
            None => world.held().accounts.keys().cloned().collect(),
            Some(names) => names
                .iter()
                .map(|name| find_account(world, name, &self.email))
                .collect::<Result<_, _>>()?,
        };
        let id = id(world, self.id.as_ref())?;
        let user = User {
            id: id.clone(),
            email: self.email.clone(),
            accounts,
            api_key: self.api_key.clone(),
        };
        world.administer(now, |held| drop(held.users.insert(user.id.clone(), user)));
        Ok(id)
    }
}

impl TokenSeed {
    fn apply(&self, world: &mut World, now: Timestamp) -> Result<String, SeedError> {
        let referrer = format!("token {:?}", self.name);
        let owner = match (&self.account, &self.user) {
            (Some(account), _) => Owner::Account(find_account(world, account, &referrer)?),
            (None, wanted) => {
                let fits = |user: &&User| {
                    wanted
                        .as_ref()
                        .is_none_or(|name| user.id == *name || user.email == *name)
                };
                let user = world
                    .held()
                    .users
                    .values()
                    .find(fits)
                    .ok_or_else(|| SeedError::Missing {
                        referrer,
                        kind: "user",
                        name: wanted.clone().unwrap_or_default(),
                    })?;
                Owner::User(user.id.clone())
            }
        };
        let id = id(world, self.id.as_ref())?;
        let token = Token {
            id: id.clone(),
            name: self.name.clone(),
            value: self.value.clone(),
            owner,
            status: self.status,
            not_before: self.not_before,
            expires_on: self.expires_on,
            grants: self.permissions.clone(),
        };
        world.administer(now, |held| drop(held.tokens.insert(token.id.clone(), token)));
        Ok(id)
    }
}

impl ZoneSeed {
    /// Returns the ids of the zone, of its records and of its rulesets.
    fn apply(
        &self,
        world: &mut World,
        quirks: Quirks,
        now: Timestamp,
    ) -> Result<(String, Vec<String>, Vec<String>), SeedError> {
        let account_id = find_account(world, &self.account, &self.name)?;
        let name = name::zone(&self.name).filter(|name| world.find_zone(name).is_none());
        let name = name.ok_or_else(|| SeedError::ZoneName(self.name.clone()))?;
        let id = id(world, self.id.as_ref())?;
        let created_on = self.created_on.unwrap_or(now);
        let assigned = match self.kind {
            ZoneType::Partial => Vec::new(),
            _ => Zone::assigned_name_servers(&account_id),
        };
        let zone = Zone {
            id: id.clone(),
            account_id,
            name,
            kind: self.kind,
            status: self.status,
            paused: self.paused,
            plan: self.plan,
            plan_pending: None,
            name_servers: self.name_servers.clone().unwrap_or(assigned),
            vanity_name_servers: Vec::new(),
            verification_key: None,
            created_on,
            modified_on: created_on,
            activated_on: (self.status == ZoneStatus::Active).then_some(created_on),
            last_check: None,
            record_quota: self.record_quota,
        };
        world.put_zone(zone.clone(), now);
        let mut ids = Vec::with_capacity(self.records.len());
        for (index, record) in self.records.iter().enumerate() {
            let id = self::id(world, record.id.as_ref())?;
            let mut writer = Writer {
                world,
                zone: &zone,
                quirks,
                now,
                managed: Managed::Open,
            };
            writer
                .create_as(id.clone(), record.meta.clone(), &record.body, Quota::Ignored)
                .map_err(|source| SeedError::Record {
                    zone: zone.name.clone(),
                    index,
                    source,
                })?;
            ids.push(id);
        }
        let mut ruleset_ids = Vec::with_capacity(self.rulesets.len());
        for (index, ruleset) in self.rulesets.iter().enumerate() {
            let id = self::id(world, ruleset.id.as_ref())?;
            ruleset
                .apply(world, &zone, id.clone(), now)
                .map_err(|source| SeedError::Ruleset {
                    zone: zone.name.clone(),
                    index,
                    source,
                })?;
            ruleset_ids.push(id);
        }
        let on = managed_headers::seeded(&zone, &self.managed_transforms).map_err(|source| {
            SeedError::ManagedTransforms {
                zone: zone.name.clone(),
                source,
            }
        })?;
        world.set_managed_transforms(&id, on, now);
        Ok((id, ids, ruleset_ids))
    }
}
