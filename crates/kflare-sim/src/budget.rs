//! The call budget of a principal.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How many calls a principal (a user with all their tokens, or one account token) may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Calls in a window.
    pub calls: u32,
    /// The length of the window in seconds.
    pub window_seconds: u64,
    /// How long every call is refused once the limit is crossed, in seconds.
    pub block_seconds: u64,
}

impl Default for RateLimit {
    /// 1,200 calls in five minutes, then refused for five minutes (Cloudflare documents).
    fn default() -> Self {
        Self {
            calls: 1200,
            window_seconds: 300,
            block_seconds: 300,
        }
    }
}

/// What has been used of the budgets.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    used: BTreeMap<String, Used>,
}

#[derive(Debug, Default)]
struct Used {
    calls: VecDeque<Timestamp>,
    blocked_until: Option<Timestamp>,
}

/// The answer to a call over budget: come back in so many seconds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OverBudget {
    pub(crate) retry_after: u64,
}

impl Budgets {
    /// Takes one call out of the budget of `principal`.
    pub(crate) fn take(&mut self, limit: RateLimit, principal: &str, now: Timestamp) -> Result<(), OverBudget> {
        let used = self.used.entry(principal.to_owned()).or_default();
        if let Some(until) = used.blocked_until {
            if now < until {
                return Err(OverBudget {
                    retry_after: seconds_until(now, until),
                });
            }
            used.blocked_until = None;
            used.calls.clear();
        }
        let start = now
            .saturating_sub(seconds(limit.window_seconds))
            .unwrap_or(Timestamp::MIN);
        while used.calls.front().is_some_and(|at| *at <= start) {
            used.calls.pop_front();
        }
        if used.calls.len() >= limit.calls as usize {
            let until = now
                .saturating_add(seconds(limit.block_seconds))
                .unwrap_or(Timestamp::MAX);
            used.blocked_until = Some(until);
            return Err(OverBudget {
                retry_after: seconds_until(now, until),
            });
        }
        used.calls.push_back(now);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.used.clear();
    }
}

fn seconds(count: u64) -> SignedDuration {
    SignedDuration::try_from(Duration::from_secs(count)).unwrap_or(SignedDuration::MAX)
}

fn seconds_until(now: Timestamp, until: Timestamp) -> u64 {
    let left = until.duration_since(now);
    let whole = left.as_secs() + i64::from(left.subsec_nanos() > 0);
    u64::try_from(whole).unwrap_or(0).max(1)
}

/// The rate-limit policy that a route names in its headers. The numbers do not count down: nearly every recorded answer
/// said one less than the quota (seen live).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    name: &'static str,
    quota: u32,
}

impl Policy {
    pub(crate) const DEFAULT: Self = Self {
        name: "default",
        quota: 1200,
    };
    pub(crate) const LIST_ZONES: Self = Self {
        name: "list_zones",
        quota: 1201,
    };

    /// Some products name none (seen live).
    pub(crate) const SILENT: Self = Self { name: "", quota: 1200 };

    /// Whether answers have no such headers.
    pub(crate) fn is_silent(self) -> bool {
        self.name.is_empty()
    }
    /// Seen live on uploads of Workers.
    pub(crate) const WORKERS_SCRIPT_UPLOAD: Self = Self {
        name: "workers_script_upload",
        quota: 180_000,
    };
    /// Seen live on deletions of Workers.
    pub(crate) const WORKERS_SCRIPT_MODIFY: Self = Self {
        name: "workers_script_modify",
        quota: 180_000,
    };
    /// Seen live on the workers.dev switch.
    pub(crate) const WORKERS_ROUTE_UPDATE: Self = Self {
        name: "workers_route_update",
        quota: 180_000,
    };

    /// The value of the `Ratelimit` header; with a wait when the budget is spent.
    pub(crate) fn remaining(self, retry_after: Option<u64>) -> String {
        match retry_after {
            None => format!("\"{}\";r={};t=1", self.name, self.quota - 1),
            Some(wait) => format!("\"{}\";r=0;t={wait}", self.name),
        }
    }

    /// The value of the `Ratelimit-Policy` header.
    pub(crate) fn policy(self) -> String {
        format!("\"{}\";q={};w=300", self.name, self.quota)
    }
}
