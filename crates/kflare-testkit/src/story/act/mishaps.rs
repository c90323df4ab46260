//! How things break.

use serde::{Deserialize, Serialize};

/// How a request to the API server goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiFault {
    /// 500.
    ServerError,
    /// 429.
    TooManyRequests,
    /// 409, whatever the version.
    Conflict,
    /// It never arrives, and nothing is heard of it.
    LostRequest,
    /// It has its effect, and nothing is heard of it.
    LostReply,
    /// It has its effect, and the connection breaks.
    BrokenReply,
    /// It takes five seconds.
    Slow,
    /// It announces a create, and a user's delete that came before it takes effect after it: the finalizer holds off nothing.
    OvertakesDelete,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// After a complete event.
    Clean,
    /// In the middle of a line.
    HalfLine,
    /// With a broken connection.
    Reset,
    /// With 410.
    Gone,
}

/// When a replica dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KillPoint {
    /// At once.
    Now,
    /// Restarted at once, the new process dies at its n-th request through any seam, which has no effect.
    BeforeRequest(u64),
    /// Restarted at once, the new process dies right after its n-th request had its effect.
    AfterRequest(u64),
    /// Restarted at once, the new process dies at its n-th poll: at any await.
    AtPoll(u64),
}
