//! API tokens and what they allow.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who a token belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Owner {
    /// A user: the token reaches the user's accounts and draws on the user's call budget.
    User(String),
    /// An account: the token reaches that account alone and has a budget of its own.
    Account(String),
}

/// The state of a token, as verify tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenStatus {
    /// In use.
    #[default]
    Active,
    /// Switched off.
    Disabled,
    /// Past its end.
    Expired,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) owner: Owner,
    pub(crate) status: TokenStatus,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) expires_on: Option<Timestamp>,
    pub(crate) grants: Vec<Grant>,
}

impl Token {
    /// The status at a moment: the end date counts.
    pub(crate) fn status_at(&self, now: Timestamp) -> TokenStatus {
        match self.status {
            TokenStatus::Active if self.expires_on.is_some_and(|end| end <= now) => TokenStatus::Expired,
            status => status,
        }
    }

    /// Whether the token opens anything at this moment.
    pub(crate) fn works_at(&self, now: Timestamp) -> bool {
        self.status_at(now) == TokenStatus::Active && self.not_before.is_none_or(|start| start <= now)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// What a permission is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Account settings.
    Account,
    /// Zones themselves.
    Zone,
    /// DNS records.
    Dns,
    /// Workers KV Storage.
    Kv,
    /// Workers R2 Storage.
    R2,
    /// D1.
    D1,
    /// Queues.
    Queues,
    /// Custom rules, rate limiting rules and managed rulesets of zones.
    Waf,
    /// Transform rules.
    Transform,
    /// Single redirects.
    Redirect,
    /// Cache rules.
    Cache,
    /// Configuration rules.
    Configuration,
    /// Origin rules.
    Origin,
    /// Lists of an account (Cloudflare: Account Filter Lists).
    Lists,
    /// Managed transforms of zones (Cloudflare: Managed headers).
    ManagedHeaders,
    /// Workers: code, settings, schedules.
    WorkersScripts,
    /// Routes of zones to Workers.
    WorkersRoutes,
    /// Tunnels (Cloudflare: Cloudflare Tunnel).
    Tunnel,
}

impl Area {
    /// Every area.
    pub const ALL: [Self; 18] = [
        Self::Account,
        Self::Zone,
        Self::Dns,
        Self::Kv,
        Self::R2,
        Self::D1,
        Self::Queues,
        Self::Waf,
        Self::Transform,
        Self::Redirect,
        Self::Cache,
        Self::Configuration,
        Self::Origin,
        Self::Lists,
        Self::ManagedHeaders,
        Self::WorkersScripts,
        Self::WorkersRoutes,
        Self::Tunnel,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Zone => "zone",
            Self::Dns => "dns",
            Self::Kv => "kv",
            Self::R2 => "r2",
            Self::D1 => "d1",
            Self::Queues => "queues",
            Self::Waf => "waf",
            Self::Transform => "transform",
            Self::Redirect => "redirect",
            Self::Cache => "cache",
            Self::Configuration => "configuration",
            Self::Origin => "origin",
            Self::Lists => "lists",
            Self::ManagedHeaders => "managed_headers",
            Self::WorkersScripts => "workers_scripts",
            Self::WorkersRoutes => "workers_routes",
            Self::Tunnel => "tunnel",
        }
    }

    /// Whether the permission is given on accounts (true) or on zones.
    pub(crate) fn is_of_accounts(self) -> bool {
        match self {
            Self::Account
            | Self::Kv
            | Self::R2
            | Self::D1
            | Self::Queues
            | Self::Lists
            | Self::WorkersScripts
            | Self::Tunnel => true,
            Self::Zone
            | Self::Dns
            | Self::Waf
            | Self::Transform
            | Self::Redirect
            | Self::Cache
            | Self::Configuration
            | Self::Origin
            | Self::ManagedHeaders
            | Self::WorkersRoutes => false,
        }
    }
}

/// How much a permission allows. Write includes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Look.
    Read,
    /// Look and change.
    Write,
}

/// A permission, written `zone.read`, `dns.write` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Permission {
    /// What it is about.
    pub area: Area,
    /// How much it allows.
    pub level: Level,
}

impl Permission {
    /// A permission to look.
    pub const fn read(area: Area) -> Self {
        Self {
            area,
            level: Level::Read,
        }
    }

    /// A permission to look and change.
    pub const fn write(area: Area) -> Self {
        Self {
            area,
            level: Level::Write,
        }
    }

    fn includes(self, wanted: Self) -> bool {
        // Cloudflare documents that permissions on Workers will do for queues.
        let is_about = self.area == wanted.area || (self.area, wanted.area) == (Area::WorkersScripts, Area::Queues);
        is_about && self.level >= wanted.level
    }
}

/// The text is no permission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no permission: expected an area such as account, zone or dns, a dot, and read or write")]
pub struct UnknownPermission(String);

impl FromStr for Permission {
    type Err = UnknownPermission;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownPermission(text.to_owned());
        let (area, level) = text.split_once('.').ok_or_else(unknown)?;
        let area = Area::ALL
            .into_iter()
            .find(|known| known.name() == area)
            .ok_or_else(unknown)?;
        match level {
            "read" => Ok(Self::read(area)),
            "write" => Ok(Self::write(area)),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Permission {
    type Error = UnknownPermission;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Permission> for String {
    fn from(permission: Permission) -> Self {
        permission.to_string()
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Read => "read",
            Level::Write => "write",
        };
        write!(f, "{}.{level}", self.area.name())
    }
}

/// What a permission holds for, within the accounts that the token's owner reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everything.
    #[default]
    All,
    /// These accounts, by id, and every zone in them.
    Accounts(Vec<String>),
    /// These zones, by id or name.
    Zones(Vec<String>),
}

/// One permission of a token and what it holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "GrantForm")]
pub struct Grant {
    /// What is allowed.
    pub permission: Permission,
    /// For what.
    pub scope: Scope,
}

/// A grant may be written as the bare permission, which then holds for everything.
#[derive(Deserialize)]
#[serde(untagged)]
enum GrantForm {
    Bare(Permission),
    Full {
        permission: Permission,
        #[serde(default)]
        scope: Scope,
    },
}

impl From<GrantForm> for Grant {
    fn from(form: GrantForm) -> Self {
        match form {
            GrantForm::Bare(permission) => Self {
                permission,
                scope: Scope::All,
            },
            GrantForm::Full { permission, scope } => Self { permission, scope },
        }
    }
}

impl Grant {
    /// A permission for everything the owner reaches.
    pub fn everywhere(permission: Permission) -> Self {
        Self {
            permission,
            scope: Scope::All,
        }
    }

    /// A permission for some zones, by id or name.
    pub fn on_zones(permission: Permission, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            permission,
            scope: Scope::Zones(zones.into_iter().map(Into::into).collect()),
        }
    }

    /// A permission for some accounts, by id.
    pub fn on_accounts(permission: Permission, accounts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            permission,
            scope: Scope::Accounts(accounts.into_iter().map(Into::into).collect()),
        }
    }

    pub(crate) fn allows(&self, wanted: Permission) -> bool {
        self.permission.includes(wanted)
    }

    /// Whether it holds for things of this account that are in no zone.
    pub(crate) fn covers_account(&self, account: &str) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Accounts(ids) => ids.iter().any(|id| id == account),
            Scope::Zones(_) => false,
        }
    }

    pub(crate) fn covers_zone(&self, account: &str, zone: &str, name: &str) -> bool {
        match &self.scope {
            Scope::All | Scope::Accounts(_) => self.covers_account(account),
            Scope::Zones(zones) => zones.iter().any(|entry| entry == zone || entry == name),
        }
    }
}
