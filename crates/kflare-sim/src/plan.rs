//! Plans of zones and what they allow.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The plan of a zone. The order is the order of price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// Free Website.
    #[default]
    Free,
    /// Pro Website.
    Pro,
    /// Business Website.
    Business,
    /// Enterprise Website.
    Enterprise,
}

impl Plan {
    /// All plans, cheapest first.
    pub const ALL: [Self; 4] = [Self::Free, Self::Pro, Self::Business, Self::Enterprise];

    /// The id by which the API names the plan. Free was seen live, the others appear in Cloudflare's API documentation.
    pub fn id(self) -> &'static str {
        match self {
            Self::Free => "0feeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
            Self::Pro => "a577b510288e82b26486fd1df47000ec",
            Self::Business => "1ac039e6c29b691475c3d74fe588d1ae",
            Self::Enterprise => "94f3b7b768b0458b56d2cac4fe5ec0f9",
        }
    }

    /// The short name: `legacy_id` of the plan object.
    pub fn legacy_id(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Business => "business",
            Self::Enterprise => "enterprise",
        }
    }

    /// The plan of this id or short name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|plan| plan.id() == name || plan.legacy_id() == name)
    }

    /// The plan object of a zone.
    pub(crate) fn render(self) -> Value {
        let (name, price) = match self {
            Self::Free => ("Free Website", 0),
            Self::Pro => ("Pro Website", 25),
            Self::Business => ("Business Website", 250),
            Self::Enterprise => ("Enterprise Website", 0),
        };
        json!({
            "id": self.id(),
            "name": name,
            "price": price,
            "currency": "USD",
            "frequency": if price == 0 { "" } else { "monthly" },
            "is_subscribed": true,
            "can_subscribe": self != Self::Enterprise,
            "legacy_id": self.legacy_id(),
            "legacy_discount": false,
            "externally_managed": false,
        })
    }

    /// DNS records a zone may hold. Free zones made before 2024-09-01 hold 1,000 (Cloudflare documents).
    pub(crate) fn record_quota(self, zone_created: Timestamp) -> usize {
        const FREE_QUOTA_CUT: i64 = 1_725_148_800; // 2024-09-01T00:00:00Z
        match self {
            Self::Free if zone_created.as_second() < FREE_QUOTA_CUT => 1000,
            Self::Free => 200,
            _ => 3500,
        }
    }

    /// Operations in one batch call (Cloudflare documents).
    pub(crate) fn batch_limit(self) -> usize {
        if self == Self::Free { 200 } else { 3500 }
    }

    /// Characters of a record comment (Cloudflare documents).
    pub(crate) fn comment_limit(self) -> usize {
        if self == Self::Free { 100 } else { 500 }
    }

    /// Tags of a record (Cloudflare documents).
    pub(crate) fn tag_limit(self) -> usize {
        if self == Self::Free { 0 } else { 20 }
    }

    /// The shortest TTL that may be set, in seconds (Cloudflare documents).
    pub(crate) fn min_ttl(self) -> u32 {
        if self == Self::Enterprise { 30 } else { 60 }
    }

    /// Whether the flattening of single CNAME records can be chosen (Cloudflare documents: from Pro up).
    pub(crate) fn may_flatten(self) -> bool {
        self >= Self::Pro
    }

    /// Whether partial (CNAME) setup and vanity name servers are on offer (Cloudflare documents: from Business up).
    pub(crate) fn may_be_partial(self) -> bool {
        self >= Self::Business
    }

    /// How often an activation check may be asked for (Cloudflare documents).
    pub(crate) fn check_interval(self) -> Duration {
        Duration::from_secs(if self == Self::Free { 3600 } else { 300 })
    }

    /// Page rules of a zone (Cloudflare documents).
    pub(crate) fn page_rules(self) -> u32 {
        match self {
            Self::Free => 3,
            Self::Pro => 20,
            Self::Business => 50,
            Self::Enterprise => 125,
        }
    }
}
