//! Accounts, and the verification of tokens.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::{Client, Error, Paging, Request};

/// An account.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Account {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The name a person gave it.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// `standard` or `enterprise`.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// Settings of the account, as Cloudflare sends them.
    #[serde(default)]
    pub settings: Value,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_on: Option<Timestamp>,
}

/// What Cloudflare says about the token of the call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TokenStatus {
    /// The id of the token (not the token).
    pub id: String,
    /// `active`, `disabled` or `expired`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub status: String,
    /// When it ends; `None` when it does not.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub expires_on: Option<Timestamp>,
    /// When it begins; `None` when it has begun with its creation.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub not_before: Option<Timestamp>,
}

/// Rows of a page of accounts; Cloudflare documents 50 as the most.
const PER_PAGE: u32 = 50;

/// One account.
pub async fn get(client: &Client, account_id: &str) -> Result<Account, Error> {
    client.call(Request::get("/accounts/{account_id}", &[account_id])).await
}

/// Every account the token can see.
pub async fn list(client: &Client) -> Result<Vec<Account>, Error> {
    client
        .list_pages(Request::get("/accounts", &[]), Paging::Page { per_page: PER_PAGE })
        .await
}

/// Verifies a token that belongs to a user. A token that belongs to an account is refused here with code 1000
/// although it is good: ask [`verify_account_token`] too before believing it.
pub async fn verify_user_token(client: &Client) -> Result<TokenStatus, Error> {
    client.call(Request::get("/user/tokens/verify", &[])).await
}

/// Verifies a token that belongs to an account.
pub async fn verify_account_token(client: &Client, account_id: &str) -> Result<TokenStatus, Error> {
    client
        .call(Request::get("/accounts/{account_id}/tokens/verify", &[account_id]))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_verify_sends() {
        let status: TokenStatus =
            serde_json::from_value(json!({"id": "t1", "status": "active", "expires_on": "2026-12-01T00:00:00Z"}))
                .unwrap();
        assert_eq!(
            status.expires_on.map(|time| time.to_string()).as_deref(),
            Some("2026-12-01T00:00:00Z")
        );
        assert_eq!(status.not_before, None);
        let status: TokenStatus =
            serde_json::from_value(json!({"id": "t1", "status": null, "expires_on": ""})).unwrap();
        assert_eq!((status.status.as_str(), status.expires_on), ("", None));
    }

    #[test]
    fn reads_an_account_with_nothing_but_its_id() {
        let account: Account = serde_json::from_value(json!({"id": "a1"})).unwrap();
        assert_eq!(
            (account.name.as_str(), account.kind, account.settings),
            ("", None, Value::Null)
        );
    }
}
