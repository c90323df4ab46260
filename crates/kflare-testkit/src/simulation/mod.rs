//! The whole controller in one process: the engine with all its watches and its queue, the in-memory API server and the
//! Cloudflare simulator, single-threaded on tokio's paused clock. The same seed gives the same trace, byte for byte.

mod user;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace, Secret},
    events::v1::Event,
};
use kflare_cloudflare::{BaseUrl, Metrics as ClientMetrics, Pool, PoolOptions, WallClock};
use kflare_engine::{
    Engine, EngineError, EngineOptions, Settings,
    lease::LeaseOptions,
    metrics::Metrics,
    policy::{DefaultDeletion, DriftCheck},
    resolve::Defaults,
};
use kflare_sim::{Latency, SimConfig, Simulator};
use tokio::{runtime::Builder, sync::Notify, time::sleep};

pub use self::user::{NAMESPACE, Told, User, everything, token};
use crate::{
    clock::VirtualClock,
    life::Life,
    memory_api::{MemoryApi, MemoryApiConfig, ResourceType},
    sim_transport::SimTransport,
    trace::Trace,
};

/// The account of every simulation.
pub const ACCOUNT_ID: &str = "0123456789abcdef0123456789abcdef";

/// A cluster and a Cloudflare, and the time they share.
#[derive(Clone)]
pub struct World {
    /// The API server.
    pub api: MemoryApi,
    /// Cloudflare.
    pub cloudflare: Simulator,
    /// The way from controllers to Cloudflare.
    pub way: SimTransport,
    seed: u64,
    clock: VirtualClock,
    trace: Trace,
}

struct Clock(VirtualClock);

impl WallClock for Clock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// What can be set about a controller.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// `--drift-check-interval`.
    pub drift_check: DriftCheck,
    /// Contend for the lease, as this replica; none runs alone.
    pub replica: Option<String>,
    /// `--default-deletion-policy`.
    pub deletion: DefaultDeletion,
    /// Where its metrics can be read; none: nowhere.
    pub registry: Option<prometheus::Registry>,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            drift_check: DriftCheck::Every(Duration::from_mins(10)),
            replica: None,
            deletion: DefaultDeletion::default(),
            registry: None,
        }
    }
}

/// Runs `scenario` in a world of its own on a paused clock and returns its result with the trace.
///
/// # Panics
/// When the runtime cannot be built.
pub fn simulate<T, F: Future<Output = T>>(seed: u64, scenario: impl FnOnce(World) -> F) -> (T, Vec<String>) {
    simulate_with(WorldOptions::seeded(seed), scenario)
}

/// What can be set about a world.
#[derive(Clone, Copy, Debug)]
pub struct WorldOptions {
    /// What all chance is drawn from.
    pub seed: u64,
    /// How long Cloudflare takes for an answer.
    pub latency: Latency,
}

impl WorldOptions {
    /// A Cloudflare that takes 20 to 200 ms.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            latency: Latency::between(Duration::from_millis(20), Duration::from_millis(200)),
        }
    }
}

/// [`simulate`] in a world that is not the usual one.
///
/// # Panics
/// When the runtime cannot be built.
pub fn simulate_with<T, F: Future<Output = T>>(
    options: WorldOptions,
    scenario: impl FnOnce(World) -> F,
) -> (T, Vec<String>) {
    on_paused_clock(async {
        let world = World::new(options);
        let trace = world.trace.clone();
        let result = scenario(world).await;
        (result, trace.lines())
    })
}

/// Runs a future single-threaded on a paused clock, without I/O.
///
/// # Panics
/// When the runtime cannot be built.
#[allow(clippy::expect_used)] // nothing can be tested without a runtime
pub fn on_paused_clock<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    runtime.block_on(future)
}

fn api_server(config: MemoryApiConfig) -> MemoryApi {
    let api = MemoryApi::new(config);
    for crd in kflare_api::crds() {
        api.register(ResourceType::from_crd(&crd));
    }
    api.register(ResourceType::builtin::<Secret>());
    api.register(ResourceType::builtin::<ConfigMap>());
    api.register(ResourceType::builtin::<Namespace>());
    api.register(ResourceType::builtin::<Lease>());
    api.register(ResourceType::builtin::<Event>());
    api
}

impl World {
    fn new(options: WorldOptions) -> Self {
        let config = SimConfig {
            latency: options.latency,
            ..SimConfig::default()
        };
        Self::with(MemoryApiConfig::new(options.seed), &config)
    }

    /// A cluster and a Cloudflare of these kinds. Seed and clock of both are those of the cluster. To be called inside a
    /// runtime.
    pub fn with(cluster: MemoryApiConfig, cloudflare: &SimConfig) -> Self {
        let (seed, epoch, trace) = (cluster.seed, cluster.epoch, cluster.trace.clone());
        let api = api_server(cluster);
        let cloudflare = Simulator::new(SimConfig {
            seed,
            clock: Arc::new(kflare_sim::VirtualClock::starting_at(epoch)),
            ..cloudflare.clone()
        });
        let clock = api.clock();
        let way = SimTransport::new(cloudflare.clone(), trace.clone(), clock);
        Self {
            api,
            cloudflare,
            way,
            seed,
            clock,
            trace,
        }
    }

    /// Another cluster whose controllers reach the same Cloudflare. To be called at the same virtual time as the first was
    /// made, so that both clocks show the same.
    #[must_use]
    pub fn beside(&self, seed: u64, cluster: MemoryApiConfig) -> Self {
        let api = api_server(MemoryApiConfig {
            seed,
            trace: self.trace.clone(),
            ..cluster
        });
        Self {
            api,
            seed,
            ..self.clone()
        }
    }

    /// Another cluster beside this one, as quick as this one.
    #[must_use]
    pub fn another_cluster(&self) -> Self {
        let seed = self.seed.wrapping_add(1);
        self.beside(seed, MemoryApiConfig::new(seed))
    }

    /// Virtual time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Writes a line into the trace.
    pub fn note(&self, text: impl std::fmt::Display) {
        self.trace.push(format!("{} {text}", self.clock.stamp()));
    }

    /// Runs a controller until its life ends (none) or it stops by itself.
    pub async fn run_controller(&self, life: &Life, options: ControllerOptions) -> Option<Result<(), EngineError>> {
        let engine = self.engine(life, &options);
        life.run(engine.run(std::future::pending())).await
    }

    /// Runs a controller until `stop` is notified and it has stopped cleanly.
    pub async fn run_controller_until(
        &self,
        life: &Life,
        options: ControllerOptions,
        stop: Arc<Notify>,
    ) -> Option<Result<(), EngineError>> {
        let engine = self.engine(life, &options);
        life.run(engine.run(async move { stop.notified().await })).await
    }

    #[allow(clippy::expect_used)] // a registry serves one controller
    fn engine(&self, life: &Life, options: &ControllerOptions) -> Engine {
        let clock: Arc<dyn WallClock> = Arc::new(Clock(self.clock));
        let transport = self.way.transport(life);
        let pool_options = PoolOptions {
            base_url: BaseUrl::default(),
            clock: clock.clone(),
            seed: self.seed,
            ..PoolOptions::default()
        };
        Engine::new(EngineOptions {
            kinds: kflare_kinds::kinds(),
            settings: Settings {
                defaults: Defaults {
                    deletion: options.deletion,
                    drift_check: options.drift_check,
                },
                reconcile_timeout: Some(Duration::from_mins(5)),
                concurrency: 8,
                namespaces: Vec::new(),
                managed: std::collections::BTreeSet::new(),
            },
            client: self.api.client(life),
            pool: Pool::new(transport, pool_options, ClientMetrics::unregistered()),
            clock,
            seed: self.seed,
            metrics: options
                .registry
                .as_ref()
                .map_or_else(Metrics::unregistered, |registry| {
                    Metrics::register(registry).expect("the registry is empty")
                }),
            lease: options.replica.as_ref().map(|replica| LeaseOptions {
                namespace: "kflare-system".to_owned(),
                name: "kflare-controller".to_owned(),
                identity: replica.clone(),
            }),
        })
    }

    /// A user of the cluster and of the account.
    pub fn user(&self) -> User {
        User::new(self.clone())
    }

    /// Waits until `holds`, at most `limit` of virtual time. Returns whether it did.
    pub async fn until(&self, limit: Duration, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let end = self.clock.elapsed() + limit;
        while self.clock.elapsed() < end {
            if holds(self) {
                return true;
            }
            sleep(Duration::from_millis(100)).await;
        }
        holds(self)
    }

    /// Lets virtual time pass.
    pub async fn pass_time(&self, time: Duration) {
        sleep(time).await;
    }
}
