//! Permission to write, asked before every call that could change something.

/// Says whether this process may write to Cloudflare right now (it still leads, it is not in plan mode ...).
///
/// Asked before a call that is not a GET queues for its budget, and again immediately before it leaves.
pub trait WriteGate: Send + Sync {
    /// `Err` with a reason, fit for a condition, when writing is not allowed.
    fn check(&self) -> Result<(), String>;
}

/// The gate of [`Client::read_only`](crate::Client::read_only): it never opens.
pub(crate) struct ReadOnly;

impl WriteGate for ReadOnly {
    fn check(&self) -> Result<(), String> {
        Err("this client is read-only".to_owned())
    }
}
