//! What must hold, whatever happens.

use std::fmt;
use std::time::Duration;

/// A rule that no controller may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Nothing is done at Cloudflare that no resource asks for.
    Unasked,
    /// Nothing that others made is touched without consent.
    Foreign,
    /// Nothing is written while paused or observing.
    HeldBack,
    /// Only the leader writes.
    Leader,
    /// What is deleted may be deleted.
    DeletionPolicy,
    /// Parents stay while others depend on them.
    InUse,
    /// Nobody fights over a field.
    Contest,
    /// No change is asked for while one that was accepted is under way.
    Operations,
    /// The call budget is kept, and silence after a 429.
    Budget,
    /// What is Ready is at Cloudflare as the spec has it, and what is not gives a reason that is true.
    Truth,
    /// What is deleted goes.
    Goes,
    /// Everything that kflare made belongs to a resource.
    Orphan,
    /// At rest nothing is written to Kubernetes, and few calls are made.
    Quiet,
    /// `kflare plan` shows what will be written.
    Plan,
    /// A defect reported by the engine itself.
    Defect,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// When, since the beginning.
    pub at: Duration,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} broken at {:.3} s: {}",
            self.rule,
            self.at.as_secs_f64(),
            self.what
        )
    }
}
