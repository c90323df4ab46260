//! The wall clock of a simulation.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A wall clock that follows tokio's clock, so that it stands still with it and jumps with it.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    epoch: Timestamp,
    start: Instant,
}

impl VirtualClock {
    /// A clock that shows `epoch` now.
    pub fn new(epoch: Timestamp) -> Self {
        Self {
            epoch,
            start: Instant::now(),
        }
    }

    /// Time since its creation.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time of day. Saturates at the end of time (the year 9999).
    pub fn now(&self) -> Timestamp {
        self.epoch.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// [`VirtualClock::elapsed`] as traces show it: seconds with milliseconds.
    pub fn stamp(&self) -> String {
        let elapsed = self.elapsed();
        format!("{:>8}.{:03}", elapsed.as_secs(), elapsed.subsec_millis())
    }
}
