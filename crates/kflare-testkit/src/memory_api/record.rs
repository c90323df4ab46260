//! What was asked and answered.

use std::time::Duration;

use super::fault::RequestInfo;

/// One request, for tests that count or look. Kept only with [`TraceDetail::Lines`](crate::trace::TraceDetail::Lines).
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// Counts all requests of the server from 1.
    pub number: u64,
    /// Virtual time since the server was created.
    pub at: Duration,
    /// The request.
    pub request: RequestInfo,
    /// The HTTP status of its answer; `None` when there never was one.
    pub status: Option<u16>,
}
