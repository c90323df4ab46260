//! The log of calls.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call to the API. Calls to the control API are not logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Counts from 1.
    pub sequence: u64,
    /// When it came in, by the simulator's clock.
    pub at: Timestamp,
    /// The method.
    pub method: String,
    /// The template of the route, for example `/zones/{zone_id}`; none for paths that Cloudflare does not have.
    pub route: Option<String>,
    /// Path and query as sent.
    pub path: String,
    /// The status that was answered, or would have been had the connection not dropped. `None`: dropped before the effect.
    pub status: Option<u16>,
    /// The code of the first error, the innermost one where it is wrapped.
    pub error_code: Option<i64>,
    /// The id of the token, where one was recognised.
    pub token_id: Option<String>,
    /// The request body, where there was one and it was JSON.
    pub body: Option<Value>,
    /// Whether it changed anything.
    pub effect: Effect,
    /// How the answer went out.
    pub delivery: Delivery,
    /// The faults that fired on it.
    pub faults: Vec<u64>,
}

/// Whether a call changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing changed.
    None,
    /// Something changed.
    Applied,
}

/// How the answer to a call went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It was sent.
    Answered,
    /// It broke off.
    Truncated,
    /// The connection dropped before the effect.
    DroppedBefore,
    /// The connection dropped after the effect.
    DroppedAfter,
}

#[derive(Debug)]
pub(crate) struct CallLog {
    last: u64,
    kept: VecDeque<CallRecord>,
    limit: usize,
    counts: BTreeMap<String, u64>,
}

impl CallLog {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            last: 0,
            kept: VecDeque::new(),
            limit,
            counts: BTreeMap::new(),
        }
    }

    /// The number of the next call.
    pub(crate) fn next(&self) -> u64 {
        self.last + 1
    }

    pub(crate) fn push(&mut self, record: CallRecord) {
        self.last = record.sequence;
        let key = format!("{} {}", record.method, record.route.as_deref().unwrap_or("(unknown)"));
        *self.counts.entry(key).or_default() += 1;
        self.kept.push_back(record);
        while self.kept.len() > self.limit {
            self.kept.pop_front();
        }
    }

    pub(crate) fn since(&self, sequence: u64) -> Vec<CallRecord> {
        self.kept
            .iter()
            .filter(|record| record.sequence > sequence)
            .cloned()
            .collect()
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }

    /// Forgets the calls and the counts; numbering goes on.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.counts.clear();
    }
}
