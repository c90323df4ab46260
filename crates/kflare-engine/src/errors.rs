//! What an error means for the resource: whether to try again, when, and what to tell the user.

use std::{sync::Arc, time::Duration};

use kflare_cloudflare::{Error, Limit, Outcome};
use tokio::time::Instant;

use crate::reason::Reason;

/// The class of a failure. One enum for the whole engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Class {
    /// The object in our store was older than the API server's. Looked at again at once.
    StoreConflict,
    /// Passing: 5xx, a time-out, a connection that broke, an incomplete list. Retried soon, with growing delays; the
    /// condition turns only after three in a row.
    Transient,
    /// A property of the credential, not of the object: everything that uses it waits, no condition turns.
    RateLimited {
        /// When calls are let through again.
        until: Instant,
        /// Cloudflare itself said so, rather than our own budget.
        by_cloudflare: bool,
    },
    /// The credential is refused or may not do this. Retried slowly, and at once when the token changes.
    Auth,
    /// Another write with the same credential was refused lately, so this one was not sent.
    Held {
        /// When the next write finds out whether that has changed.
        until: Instant,
    },
    /// The plan or a quota does not allow it. Retried after hours.
    Quota,
    /// Cloudflare refuses this spec. Final until something changes; looked at again once a day.
    Invalid(Reason),
    /// Something else at Cloudflare stands in the way of this spec. As final as [`Class::Invalid`].
    InTheWay(Reason),
    /// An object of that identity exists.
    Exists,
    /// Something else stands in the way; final until something changes.
    Blocked(Reason),
    /// Cloudflare is still busy with another change, and takes the next one when that is done. Tried again soon.
    Busy,
    /// The object does not exist.
    Missing,
    /// This replica may not write (not the leader, or shutting down).
    Stopped,
    /// A defect in kflare.
    Bug,
}

impl Class {
    /// Whether Cloudflare will say the same of the same write until something else changes.
    pub fn is_for_good(&self) -> bool {
        matches!(
            self,
            Self::Invalid(_) | Self::InTheWay(_) | Self::Blocked(_) | Self::Quota
        )
    }

    /// The reason to show.
    pub fn reason(&self) -> Reason {
        match self {
            Self::StoreConflict | Self::Transient | Self::Stopped => Reason::API_ERROR,
            Self::RateLimited { .. } => Reason::RATE_LIMITED,
            Self::Auth | Self::Held { .. } | Self::Quota | Self::Missing => Reason::TERMINAL_ERROR,
            Self::Invalid(reason) | Self::InTheWay(reason) | Self::Blocked(reason) => reason.clone(),
            Self::Exists => Reason::ALREADY_EXISTS,
            Self::Busy => Reason::UPDATING,
            Self::Bug => Reason::INTERNAL_ERROR,
        }
    }

    /// Whether it counts as a reconcile error in the metrics (rather than a state that waits for somebody).
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Transient | Self::Bug)
    }

    /// Bounds of the back-off between tries: first delay and the largest. None where nothing is gained by trying.
    pub fn backoff(&self) -> (Duration, Duration) {
        let secs = Duration::from_secs;
        match self {
            Self::StoreConflict => (Duration::from_millis(100), secs(5)),
            Self::Transient | Self::Stopped => (secs(1), secs(60)),
            Self::Busy => (secs(1), secs(30)),
            // Gone between two looks: soon. Gone with what it is in: that can last.
            Self::Missing => (secs(1), secs(30 * 60)),
            Self::RateLimited { .. } => (secs(1), secs(300)),
            Self::Auth | Self::Held { .. } | Self::Blocked(_) => (secs(60), secs(30 * 60)),
            Self::Exists => (secs(3600), secs(6 * 3600)),
            Self::Quota => (secs(30 * 60), secs(6 * 3600)),
            Self::Invalid(_) | Self::InTheWay(_) => (secs(24 * 3600), secs(24 * 3600)),
            Self::Bug => (secs(60), secs(3600)),
        }
    }
}

/// The general reading of a client error. Adapters are asked first.
pub fn classify(error: &Error) -> Class {
    match error {
        Error::RateLimited { until, limit, .. } => Class::RateLimited {
            until: *until,
            by_cloudflare: *limit == Limit::Cloudflare,
        },
        Error::Refused(_) => Class::Stopped,
        Error::InvalidToken(_) => Class::Auth,
        Error::Malformed(_) => Class::Bug,
        Error::Api(api) => match api.status {
            401 | 403 => Class::Auth,
            404 => Class::Missing,
            402 => Class::Quota,
            200..=299 | 408 | 409 | 425 | 429 | 500..=599 => Class::Transient,
            _ => Class::Invalid(Reason::TERMINAL_ERROR),
        },
        _ => Class::Transient,
    }
}

/// A failure on its way to the condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// What the condition shows. Safe for tenants: no token, no request body.
    pub message: String,
    /// Set when Cloudflare refused a create for good; see [`crate::refusals`].
    pub refused: Option<Refused>,
}

/// A create that was refused for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was refused; see [`crate::refusals::fingerprint`]. None when it is not known what stood in its place at that moment.
    pub fingerprint: Option<String>,
    /// When somebody looks whether something has changed.
    pub look_again: Instant,
}

impl Failure {
    /// A failure of a class with its message.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            refused: None,
        }
    }
}

/// A write that failed. Cheap to clone: one refusal of a batch can concern many.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// Cloudflare, or the way to it.
    #[error(transparent)]
    Cloudflare(Arc<Error>),
    /// One of several calls, after another of them has changed something: the object may be there.
    #[error(transparent)]
    Halfway(Arc<Error>),
    /// The pass that carried the batch ended before its answer; it may have been applied.
    #[error("the answer to the batch was lost")]
    Lost,
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Cloudflare(Arc::new(error))
    }
}

impl WriteError {
    /// Whether the write may have been applied although it failed.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Cloudflare(error) => matches!(error.outcome(), Outcome::Unknown),
            Self::Halfway(_) | Self::Lost => true,
        }
    }
}
