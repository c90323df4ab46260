//! Zones.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::{Client, Error, Paging, Request};

/// A zone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Zone {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The name, usually in punycode.
    pub name: String,
    /// `initializing`, `pending`, `active` or `moved`.
    #[serde(default)]
    pub status: Option<String>,
    /// Whether Cloudflare only answers DNS for it.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub paused: bool,
    /// `full`, `partial`, `secondary` or `internal`.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// The account it belongs to.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub account: ZoneAccount,
    /// The plan it is on.
    #[serde(default)]
    pub plan: Option<Plan>,
    /// The plan it will be on, after a scheduled downgrade for instance.
    #[serde(default)]
    pub plan_pending: Option<Plan>,
    /// The name servers Cloudflare assigned.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name_servers: Vec<String>,
    /// The name servers the domain had before.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub original_name_servers: Vec<String>,
    /// The TXT value that proves ownership of a partial zone.
    #[serde(default)]
    pub verification_key: Option<String>,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_on: Option<Timestamp>,
    /// When it was last changed.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub modified_on: Option<Timestamp>,
    /// When it became active.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub activated_on: Option<Timestamp>,
}

/// The account of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct ZoneAccount {
    /// The id.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub id: String,
    /// The name.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
}

/// A plan of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Plan {
    /// The id: 32 hexadecimal digits.
    #[serde(default)]
    pub id: Option<String>,
    /// The short name: `free`, `pro`, `business`, `enterprise`.
    #[serde(default)]
    pub legacy_id: Option<String>,
    /// The name for people.
    #[serde(default)]
    pub name: Option<String>,
}

/// A change of one property: Cloudflare takes only one in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZoneEdit {
    /// Whether Cloudflare only answers DNS for the zone.
    Paused(bool),
    /// The type: `full`, `partial`, `secondary` or `internal`.
    Type(String),
    /// The plan, by id or short name. Unproven with an API token: it is in the older documentation only.
    Plan(String),
}

impl ZoneEdit {
    /// The body of the PATCH.
    pub fn to_body(&self) -> Value {
        match self {
            Self::Paused(paused) => json!({"paused": paused}),
            Self::Type(kind) => json!({"type": kind}),
            Self::Plan(plan) => json!({"plan": {"id": plan}}),
        }
    }
}

/// Rows of a page of zones; Cloudflare documents 50 as the most.
const PER_PAGE: u32 = 50;

/// Every zone of an account that the token can see.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<Zone>, Error> {
    let request = Request::get("/zones", &[]).query("account.id", account_id);
    client.list_pages(request, Paging::Page { per_page: PER_PAGE }).await
}

/// The zones of this name in this account: none or one, as a rule. A token for one zone may make this call, but not
/// [`list`].
///
/// Case does not matter. Zones of other accounts are left out even if Cloudflare sends them.
pub async fn find(client: &Client, account_id: &str, name: &str) -> Result<Vec<Zone>, Error> {
    let request = Request::get("/zones", &[])
        .query("name", name)
        .query("account.id", account_id);
    let mut zones: Vec<Zone> = client.list_pages(request, Paging::Page { per_page: PER_PAGE }).await?;
    zones.retain(|zone| zone.name.eq_ignore_ascii_case(name) && zone.account.id == account_id);
    Ok(zones)
}

/// One zone.
pub async fn get(client: &Client, zone_id: &str) -> Result<Zone, Error> {
    client.call(Request::get("/zones/{zone_id}", &[zone_id])).await
}

/// Makes a zone from `{"name", "account": {"id"}, "type"}`.
pub async fn create(client: &Client, body: &Value) -> Result<Zone, Error> {
    client.call(Request::post("/zones", &[]).json(body)).await
}

/// Changes one property of a zone.
pub async fn edit(client: &Client, zone_id: &str, edit: &ZoneEdit) -> Result<Zone, Error> {
    client
        .call(Request::patch("/zones/{zone_id}", &[zone_id]).json(&edit.to_body()))
        .await
}

/// Deletes a zone and everything in it.
pub async fn delete(client: &Client, zone_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete("/zones/{zone_id}", &[zone_id]))
        .await
        .map(drop)
}

/// Asks Cloudflare to look at the name servers of a pending zone now. Allowed once an hour on the Free plan, once in
/// five minutes on others.
pub async fn activation_check(client: &Client, zone_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::put("/zones/{zone_id}/activation_check", &[zone_id]))
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_full_and_a_bare_zone() {
        let zone: Zone = serde_json::from_value(json!({
            "id": "z1", "name": "example.com", "status": "pending", "paused": false, "type": "full",
            "account": {"id": "a1", "name": "A"}, "plan": {"id": "0f", "legacy_id": "free", "name": "Free Website"},
            "plan_pending": null, "name_servers": ["a.ns.example", "b.ns.example"], "original_name_servers": null,
            "created_on": "2026-09-29T10:00:00.123456Z", "meta": {"step": 2}, "owner": {"type": "user"}
        }))
        .unwrap();
        assert_eq!(zone.account.id, "a1");
        assert_eq!(zone.plan.and_then(|plan| plan.legacy_id).as_deref(), Some("free"));
        assert!(zone.created_on.is_some() && zone.plan_pending.is_none());

        let bare: Zone =
            serde_json::from_value(json!({"id": "z1", "name": "n", "account": null, "paused": null})).unwrap();
        assert_eq!(
            (bare.account.id.as_str(), bare.paused, bare.name_servers.len()),
            ("", false, 0)
        );
    }

    #[test]
    fn an_edit_is_one_property() {
        assert_eq!(ZoneEdit::Paused(true).to_body(), json!({"paused": true}));
        assert_eq!(
            ZoneEdit::Type("partial".to_owned()).to_body(),
            json!({"type": "partial"})
        );
        assert_eq!(
            ZoneEdit::Plan("pro".to_owned()).to_body(),
            json!({"plan": {"id": "pro"}})
        );
    }
}
