//! Where the simulator takes its time from.

use std::sync::Mutex;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The simulator's wall clock. Everything it stamps, expires or counts per window follows this clock; the pauses before a
/// reply follow tokio's timer instead.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;

    /// Moves the clock forward by `by`, on top of its own course.
    fn advance(&self, by: Duration);
}

/// What was added to a clock by hand.
#[derive(Debug, Default)]
struct Offset(Mutex<SignedDuration>);

impl Offset {
    fn get(&self) -> SignedDuration {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn add(&self, by: Duration) {
        let mut offset = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        *offset = offset.saturating_add(by);
    }
}

/// The machine's clock plus what it was advanced by.
#[derive(Debug, Default)]
pub struct SystemClock {
    offset: Offset,
}

impl SystemClock {
    /// A clock that shows the machine's time.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
            .saturating_add(self.offset.get())
            .unwrap_or(Timestamp::MAX)
    }

    fn advance(&self, by: Duration) {
        self.offset.add(by);
    }
}

/// A clock that starts at a given moment and follows [`tokio::time::Instant`], hence stands still and jumps with tokio's
/// paused time.
#[derive(Debug)]
pub struct VirtualClock {
    epoch: Timestamp,
    start: tokio::time::Instant,
    offset: Offset,
}

impl VirtualClock {
    /// A clock that shows `epoch` now. Call it inside the runtime whose time it is to follow.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            epoch,
            start: tokio::time::Instant::now(),
            offset: Offset::default(),
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        let elapsed = elapsed.saturating_add(self.offset.get());
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    fn advance(&self, by: Duration) {
        self.offset.add(by);
    }
}
