//! Time and chance come from outside, so that one seed gives one run.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Mutex;

pub use kflare_cloudflare::WallClock;

/// Seeded chance for jitter. Cheap to clone; all clones draw from one sequence.
#[derive(Clone)]
pub struct Chance(Arc<Mutex<SmallRng>>);

impl Chance {
    /// A sequence that depends on nothing but `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))))
    }

    /// `base` give or take `share` of it (0.1 is ±10 %).
    pub fn jitter(&self, base: Duration, share: f64) -> Duration {
        let factor = 1.0 + share * (2.0 * self.unit() - 1.0);
        base.mul_f64(factor.max(0.0))
    }

    /// A number in [0, 1).
    pub fn unit(&self) -> f64 {
        match self.0.lock() {
            Ok(mut rng) => rng.random(),
            Err(poisoned) => poisoned.into_inner().random(),
        }
    }
}

/// Truncates to whole seconds, the resolution of Kubernetes times and of Cloudflare's `Date` header.
pub fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
