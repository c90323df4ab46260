//! Clocks: the wall clock as a seam, and tokio's clock for the limiter.

use std::ops::Add;
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::nanos::Nanos;
use tokio::time::Instant;

/// The time of day, as a seam. In simulation it follows the virtual clock.
pub trait WallClock: Send + Sync {
    /// The present moment.
    fn now(&self) -> jiff::Timestamp;
}

/// The wall clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// Tokio's clock as the time source of the limiter, so that the budget follows the paused clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock;

/// A moment of tokio's clock, in the form the limiter wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) Instant);

impl Clock for TokioClock {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(Instant::now())
    }
}

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, span: Nanos) -> Self {
        Self(self.0 + Duration::from(span))
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_duration_since(earlier.0).into()
    }

    fn saturating_sub(&self, span: Nanos) -> Self {
        self.0.checked_sub(span.into()).map_or(*self, Self)
    }
}
