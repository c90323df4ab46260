//! What a [`MemoryApi`](super::MemoryApi) is like.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::Timestamp;

use crate::trace::{Trace, TraceDetail};

/// How the server says that a watch starts too far in the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiredWatch {
    /// HTTP 200 with an `ERROR` event of code 410, as real servers do. `kube`'s watcher lists again.
    #[default]
    ErrorEvent,
    /// HTTP status 410. `kube` 5.0's watcher asks for the same version again and again.
    HttpStatus,
}

/// How a watch ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchCut {
    /// The body ends after a complete event.
    Clean,
    /// The body fails with `UnexpectedEof`.
    UnexpectedEof,
    /// The body ends in the middle of a line.
    HalfLine,
    /// The body fails with `ConnectionReset`.
    ConnectionReset,
    /// An `ERROR` event with code 410: list again.
    Gone,
    /// Nothing comes any more, not even an end: what a load balancer does that has dropped the connection in silence.
    Silence,
}

/// Configuration of a simulated API server. All times are virtual.
#[derive(Clone, Debug)]
pub struct MemoryApiConfig {
    /// What all chance is drawn from: UIDs, generated names, latencies, faults with a probability.
    pub seed: u64,
    /// The wall clock at the creation of the server.
    pub epoch: Timestamp,
    /// From a request's arrival (and effect) to its answer. Below 1 ms counts as 1 ms: without it time could stand
    /// still for ever.
    pub latency: RangeInclusive<Duration>,
    /// From a change to its event, drawn for each event of each watch. Below 1 ms counts as 1 ms. Events of one watch
    /// never overtake each other.
    pub event_delay: RangeInclusive<Duration>,
    /// How many changes are kept for watches and continued lists; older versions get 410.
    pub history_limit: usize,
    /// How a too old watch is told.
    pub expired_watch: ExpiredWatch,
    /// Time between bookmarks of a watch that asks for them.
    pub bookmark_interval: Duration,
    /// When set, every watch ends early: after a time drawn from the range, in a way drawn from the list (an empty list
    /// means [`WatchCut::Clean`]).
    pub watch_lifetime: Option<(RangeInclusive<Duration>, Vec<WatchCut>)>,
    /// Where everything is recorded. Give the same one to every seam of a simulation.
    pub trace: Trace,
}

impl MemoryApiConfig {
    /// A well-behaved server: 1 to 5 ms for answers and events, 10,000 changes of history, bookmarks every minute.
    pub fn new(seed: u64) -> Self {
        let quick = Duration::from_millis(1)..=Duration::from_millis(5);
        Self {
            seed,
            // 2026-01-01T00:00:00Z
            epoch: Timestamp::constant(1_767_225_600, 0),
            latency: quick.clone(),
            event_delay: quick,
            history_limit: 10_000,
            expired_watch: ExpiredWatch::default(),
            bookmark_interval: Duration::from_mins(1),
            watch_lifetime: None,
            trace: Trace::new(TraceDetail::Lines),
        }
    }
}
