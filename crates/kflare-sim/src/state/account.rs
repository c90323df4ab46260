//! Accounts and users.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kind of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccountType {
    /// Pay-as-you-go.
    #[default]
    Standard,
    /// With an Enterprise contract: zones may be partial or subdomains from the start.
    Enterprise,
}

/// Whether an account has a product that somebody has to switch on first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subscription {
    /// It is switched on.
    #[default]
    Enabled,
    /// It was never switched on.
    Disabled,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: AccountType,
    pub(crate) created_on: Timestamp,
    /// In place of the quota that the kind of account has.
    #[serde(default)]
    pub(crate) d1_quota: Option<usize>,
    #[serde(default)]
    pub(crate) r2: Subscription,
}

impl Account {
    /// D1 databases that the account may hold: 10 on the free Workers plan, 50,000 on the paid one (Cloudflare documents).
    pub(crate) fn d1_quota(&self) -> usize {
        self.d1_quota.unwrap_or(match self.kind {
            AccountType::Standard => 10,
            AccountType::Enterprise => 50_000,
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) email: String,
    /// The accounts the user is a member of.
    pub(crate) accounts: Vec<String>,
    /// The global key.
    pub(crate) api_key: Option<String>,
}
