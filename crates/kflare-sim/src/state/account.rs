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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: AccountType,
    pub(crate) created_on: Timestamp,
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
