//! The lanes in which calls wait for their turn.

/// What a call is for. Waiting calls leave in this order, and first come first served within a lane, except that
/// every eighth call of a credential comes from the lane that has been passed over the longest: a lane with waiting
/// calls is served at the latest after 40 calls, whatever the load on the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A user changed something and waits.
    UserChange,
    /// A user deleted something.
    Delete,
    /// An earlier attempt failed.
    Retry,
    /// Something this object depends on changed.
    Dependent,
    /// A scheduled look whether something drifted.
    DriftCheck,
}

impl Lane {
    pub(crate) const COUNT: u32 = 5;
}

/// Every how many calls of a credential the lane passed over the longest has its turn.
pub(crate) const FLOOR_EVERY: u32 = 8;
