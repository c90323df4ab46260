//! Zones.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Account;
use crate::plan::Plan;
use crate::time::micros;

/// How a zone is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ZoneType {
    /// Cloudflare serves the zone.
    #[default]
    Full,
    /// Somebody else does, and points single names at Cloudflare.
    Partial,
    /// Copied from another primary.
    Secondary,
    /// Answers inside the account only.
    Internal,
}

impl ZoneType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Secondary => "secondary",
            Self::Internal => "internal",
        }
    }
}

/// How far a zone has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ZoneStatus {
    /// Being set up.
    Initializing,
    /// Waiting for the registrar to name the assigned name servers.
    Pending,
    /// In service.
    #[default]
    Active,
    /// The name servers were taken away again.
    Moved,
}

impl ZoneStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Moved => "moved",
        }
    }
}

/// A downgrade that waits for the end of the paid period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingPlan {
    pub(crate) plan: Plan,
    pub(crate) from: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Zone {
    pub(crate) id: String,
    pub(crate) account_id: String,
    /// Lower-case punycode, no final dot.
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: ZoneType,
    pub(crate) status: ZoneStatus,
    pub(crate) paused: bool,
    pub(crate) plan: Plan,
    pub(crate) plan_pending: Option<PendingPlan>,
    pub(crate) name_servers: Vec<String>,
    pub(crate) vanity_name_servers: Vec<String>,
    pub(crate) verification_key: Option<String>,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
    pub(crate) activated_on: Option<Timestamp>,
    pub(crate) last_check: Option<Timestamp>,
    /// In place of the plan's quota.
    pub(crate) record_quota: Option<usize>,
}

/// Names as Cloudflare gives its name servers; each account has one pair.
const NAME_SERVERS: [(&str, &str); 8] = [
    ("ada", "bob"),
    ("amy", "carl"),
    ("dana", "ed"),
    ("gina", "hank"),
    ("iris", "jay"),
    ("kate", "leo"),
    ("mia", "ned"),
    ("nina", "otto"),
];

impl Zone {
    /// The pair of name servers of an account.
    pub(crate) fn assigned_name_servers(account_id: &str) -> Vec<String> {
        let draw = usize::from(crate::ids::stable(account_id)[0]) % NAME_SERVERS.len();
        let (one, other) = NAME_SERVERS[draw];
        vec![format!("{one}.ns.cloudflare.com"), format!("{other}.ns.cloudflare.com")]
    }

    pub(crate) fn record_quota(&self) -> usize {
        self.record_quota
            .unwrap_or_else(|| self.plan.record_quota(self.created_on))
    }

    /// The zone as the API shows it. The shape follows answers that users published; the brand-new account behind the
    /// recordings had no zone.
    pub(crate) fn render(&self, account: Option<&Account>) -> Value {
        let mut zone = Map::new();
        let mut set = |key: &str, value: Value| drop(zone.insert(key.to_owned(), value));
        set("id", json!(self.id));
        set("name", json!(self.name));
        set("status", json!(self.status.name()));
        set("paused", json!(self.paused));
        set("type", json!(self.kind.name()));
        set("development_mode", json!(0));
        set("name_servers", json!(self.name_servers));
        set("original_name_servers", Value::Null);
        set("original_registrar", Value::Null);
        set("original_dnshost", Value::Null);
        set("created_on", json!(micros(self.created_on)));
        set("modified_on", json!(micros(self.modified_on)));
        set(
            "activated_on",
            self.activated_on.map_or(Value::Null, |at| json!(micros(at))),
        );
        set("vanity_name_servers", json!(self.vanity_name_servers));
        set(
            "meta",
            json!({
                "step": 4,
                "custom_certificate_quota": u32::from(self.plan.may_be_partial()),
                "page_rule_quota": self.plan.page_rules(),
                "phishing_detected": false,
            }),
        );
        set("owner", json!({ "id": null, "type": "user", "email": null }));
        set(
            "account",
            json!({ "id": self.account_id, "name": account.map(|account| account.name.as_str()) }),
        );
        set("tenant", json!({ "id": null, "name": null }));
        set("tenant_unit", json!({ "id": null }));
        set(
            "permissions",
            json!(["#zone:read", "#zone:edit", "#dns_records:read", "#dns_records:edit"]),
        );
        set("plan", self.plan.render());
        if let Some(pending) = self.plan_pending {
            set("plan_pending", pending.plan.render());
        }
        if let Some(key) = &self.verification_key {
            set("verification_key", json!(key));
            set("cname_suffix", json!("cdn.cloudflare.net"));
        }
        Value::Object(zone)
    }
}
