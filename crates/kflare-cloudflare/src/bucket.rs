//! The call budget of one credential.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

use crate::clock::TokioClock;

/// How a number of calls per window is turned into a burst and a steady rate.
///
/// A bucket that holds `burst` tokens and gains one every `interval` lets at most `burst + window / interval` calls
/// (rounded down) through in any window, wherever it begins. The two parts are chosen so that this sum is the limit:
/// three eighths at once, the rest evenly. With 960 calls in 300 s that is 360, then 2 a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    burst: NonZeroU32,
    interval: Duration,
}

impl Allowance {
    /// `limit` calls in any `window`.
    pub(crate) fn new(limit: u32, window: Duration) -> Self {
        let limit = limit.max(1);
        let burst = NonZeroU32::new(limit / 8 * 3 + limit % 8 * 3 / 8).unwrap_or(NonZeroU32::MIN);
        let steady = limit - burst.get();
        let nanos = match window.as_nanos().checked_div(u128::from(steady)) {
            // Rounded up, so that `steady` intervals are never shorter than the window.
            Some(nanos) if nanos * u128::from(steady) == window.as_nanos() => nanos,
            Some(nanos) => nanos + 1,
            // No steady part: the next call comes only after the window is over.
            None => window.as_nanos() + 1,
        };
        let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).max(Duration::from_nanos(1));
        Self { burst, interval }
    }

    /// The time between two calls once the burst is used up.
    pub(crate) fn interval(self) -> Duration {
        self.interval
    }
}

/// A token bucket on tokio's clock.
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, StateInformationMiddleware>,
    allowance: Allowance,
    next: Option<Instant>,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(allowance: Allowance) -> Self {
        let quota = Quota::with_period(allowance.interval).unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN));
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(allowance.burst), TokioClock)
            .with_middleware::<StateInformationMiddleware>();
        Self {
            limiter,
            allowance,
            next: None,
        }
    }

    /// Takes one token and says how many are left, or says when the next one comes.
    pub(crate) fn take(&mut self) -> Result<u32, Instant> {
        if let Some(next) = self.next.filter(|&next| next > TokioClock.now().0) {
            return Err(next);
        }
        match self.limiter.check() {
            Ok(state) => {
                self.next = None;
                Ok(state.remaining_burst_capacity())
            }
            Err(not_until) => {
                let next = not_until.earliest_possible().0;
                self.next = Some(next);
                Err(next)
            }
        }
    }

    /// When the next token comes, if a call to [`take`](Self::take) has just found none.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Throws all tokens away, so that calls start again at the steady rate.
    pub(crate) fn drain(&mut self) {
        while self.take().is_ok() {}
    }

    pub(crate) fn allowance(&self) -> Allowance {
        self.allowance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_is_360_at_once_then_two_a_second() {
        let allowance = Allowance::new(960, Duration::from_mins(5));
        assert_eq!(
            allowance,
            Allowance {
                burst: NonZeroU32::new(360).unwrap(),
                interval: Duration::from_millis(500)
            }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn drained_it_gives_one_token_per_interval() {
        let mut bucket = Bucket::new(Allowance::new(960, Duration::from_mins(5)));
        assert_eq!(bucket.take(), Ok(359));
        bucket.drain();
        let next = bucket.take().unwrap_err();
        assert_eq!(next - Instant::now(), Duration::from_millis(500));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(bucket.take().is_ok() && bucket.take().is_ok() && bucket.take().is_err());
    }

    proptest! {
        #[test]
        fn burst_and_rate_together_stay_within_the_limit(
            limit in 1_u32..2_000,
            nanos in prop_oneof![1_u64..100_000, 1_u64..1_000_000_000_000],
        ) {
            let window = Duration::from_nanos(nanos);
            let allowance = Allowance::new(limit, window);
            let steady = window.as_nanos() / allowance.interval.as_nanos();
            prop_assert!(u128::from(allowance.burst.get()) + steady <= u128::from(limit));
        }
    }
}
