//! One replica of the controller: the engine in a thread of its own, with the rights of its ServiceAccount.

use std::thread::JoinHandle;
use std::time::Duration;

use kflare_cloudflare::{Metrics as ClientMetrics, Pool, PoolOptions, SystemWallClock};
use kflare_engine::lease::LeaseOptions;
use kflare_engine::metrics::Metrics;
use kflare_engine::policy::{DefaultDeletion, DriftCheck};
use kflare_engine::resolve::Defaults;
use kflare_engine::{Engine, EngineError, EngineOptions, Readiness, Settings};
use kflare_testkit::life::Life;
use prometheus::Registry;
use tokio::sync::oneshot;

use super::site::{SERVICE_ACCOUNT, SYSTEM, Site};

/// What can be set about a replica.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Its name, in traces and on the Lease.
    pub name: String,
    /// Who else there may be.
    pub election: Election,
    /// `--default-deletion-policy`.
    pub deletion: DefaultDeletion,
}

/// Who else there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// Nobody: it leads from the start.
    Alone,
    /// Others that want the same Lease.
    Lease,
}

/// Name of the Lease, in [`SYSTEM`].
pub const LEASE: &str = "kflare-controller";

impl ReplicaOptions {
    /// The only replica, with the defaults of the operator but no drift checks.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            election: Election::Alone,
            deletion: DefaultDeletion::Delete,
        }
    }

    /// One of several.
    pub fn contending(name: &str) -> Self {
        Self {
            election: Election::Lease,
            ..Self::named(name)
        }
    }
}

/// A running replica. Dropping it kills it.
pub struct Replica {
    /// Its metrics.
    pub registry: Registry,
    life: Life,
    readiness: Readiness,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Option<Result<(), EngineError>>>>,
}

impl Replica {
    /// Starts a replica. It may not be ready yet.
    pub async fn start(site: &Site, options: ReplicaOptions) -> Self {
        let life = Life::new(&options.name);
        let registry = Registry::new();
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let transport = site.way.transport(&life);
        let (access, thread_life, thread_registry) = (site.access.clone(), life.clone(), registry.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = access.service_account_client(SYSTEM, SERVICE_ACCOUNT).await.unwrap();
                let pool = Pool::new(
                    transport,
                    PoolOptions::default(),
                    ClientMetrics::register(&thread_registry).unwrap(),
                );
                let engine = Engine::new(EngineOptions {
                    kinds: kflare_kinds::kinds(),
                    settings: Settings {
                        defaults: Defaults {
                            deletion: options.deletion,
                            drift_check: DriftCheck::Off,
                        },
                        reconcile_timeout: Some(Duration::from_mins(5)),
                        concurrency: 8,
                        namespaces: Vec::new(),
                        managed: std::collections::BTreeSet::new(),
                    },
                    client,
                    pool,
                    clock: std::sync::Arc::new(SystemWallClock),
                    seed: 0,
                    metrics: Metrics::register(&thread_registry).unwrap(),
                    lease: (options.election == Election::Lease).then(|| LeaseOptions {
                        namespace: SYSTEM.to_owned(),
                        name: LEASE.to_owned(),
                        identity: options.name,
                    }),
                });
                let _ = tell.send(engine.readiness());
                let stopped = async {
                    let _ = stopped.await;
                };
                thread_life.run(engine.run(stopped)).await
            })
        });
        Self {
            registry,
            life,
            readiness: told.await.unwrap(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Whether its store is filled: it works, or could take over at once.
    pub fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Asks it to stop; [`Replica::stopped`] waits for it.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until it has stopped as asked.
    pub async fn stopped(mut self) -> Result<(), EngineError> {
        self.ask_to_stop();
        self.joined().await.unwrap()
    }

    /// Ends it as SIGKILL would: nothing it had begun goes on.
    pub async fn kill(mut self) {
        self.life.kill();
        self.joined().await;
    }

    async fn joined(&mut self) -> Option<Result<(), EngineError>> {
        let thread = self.thread.take().unwrap();
        tokio::task::spawn_blocking(|| thread.join().unwrap()).await.unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.life.kill();
    }
}
