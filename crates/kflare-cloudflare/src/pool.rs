//! What all clients of a process share.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use secrecy::SecretString;
use tokio::time::Instant;

use crate::bucket::Allowance;
use crate::client::Client;
use crate::metrics::Metrics;
use crate::options::PoolOptions;
use crate::registry::{Registry, Surroundings};
use crate::scheduler::{Limits, Scheduler};
use crate::transport::Transport;

/// Hands out clients and holds what they share: the transport, the budgets, the calls in flight. A clone is the same
/// pool.
///
/// ```no_run
/// use kflare_cloudflare::{Metrics, Pool, PoolOptions, TransportOptions, reqwest_transport};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let transport = reqwest_transport(&TransportOptions::default())?;
/// let pool = Pool::new(transport, PoolOptions::default(), Metrics::register(prometheus::default_registry())?);
/// let client = pool.client("my-account", std::env::var("CF_API_TOKEN")?.into());
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) transport: Transport,
    pub(crate) options: PoolOptions,
    pub(crate) metrics: Metrics,
    pub(crate) scheduler: Arc<Scheduler>,
    registry: Mutex<Registry>,
    jitter: Mutex<SmallRng>,
    cloudflare_time: Mutex<Option<(Timestamp, Instant)>>,
}

impl Pool {
    /// A pool without any credential yet.
    pub fn new(transport: Transport, options: PoolOptions, metrics: Metrics) -> Self {
        let limits = Limits {
            allowance: Allowance::new(options.budget_share.of(options.calls_per_window), options.window),
            max_in_flight: options.max_in_flight,
            max_wait: options.max_wait,
        };
        let shared = Shared {
            transport,
            scheduler: Scheduler::new(limits, metrics.clone()),
            metrics,
            registry: Mutex::new(Registry::default()),
            jitter: Mutex::new(SmallRng::seed_from_u64(options.seed)),
            cloudflare_time: Mutex::new(None),
            options,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A client that calls with `token`.
    ///
    /// `holder` names who brings the token (the account resource). There is one budget per token. When a holder comes
    /// with a new token, that token takes over the budget of the holder's previous one, unless it has a budget
    /// already: a rotation does not double the allowance. A token that no client holds is forgotten after one window.
    ///
    /// A token that cannot be sent is reported by every call, as [`Error::InvalidToken`](crate::Error::InvalidToken).
    pub fn client(&self, holder: &str, token: SecretString) -> Client {
        let surroundings = Surroundings {
            scheduler: &self.shared.scheduler,
            metrics: &self.shared.metrics,
            window: self.shared.options.window,
            seed: self.shared.options.seed,
        };
        let mut registry = self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let credential = registry.credential(holder, token, &surroundings);
        drop(registry);
        Client::new(Arc::clone(&self.shared), credential)
    }
}

impl Shared {
    /// Records Cloudflare's own time, from the `Date` header of an answer that has just come.
    pub(crate) fn set_cloudflare_time(&self, date: Timestamp) {
        *self.cloudflare_time.lock().unwrap_or_else(PoisonError::into_inner) = Some((date, Instant::now()));
    }

    /// Cloudflare's time by the last `Date` header, else the wall clock.
    pub(crate) fn cloudflare_time(&self) -> Timestamp {
        let last = *self.cloudflare_time.lock().unwrap_or_else(PoisonError::into_inner);
        last.and_then(|(date, seen)| {
            let elapsed = SignedDuration::try_from(seen.elapsed()).ok()?;
            date.checked_add(elapsed).ok()
        })
        .unwrap_or_else(|| self.options.clock.now())
    }

    /// Runs `draw` with the seeded generator of this pool.
    pub(crate) fn jitter<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        draw(&mut self.jitter.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
