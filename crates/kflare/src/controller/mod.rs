//! `kflare controller`: the engine on the main thread; probes, metrics and signals on a thread of their own, so that busy
//! passes never make the process look dead.

pub mod flags;
mod heartbeat;
mod identity;
mod kubernetes;
mod listen;
mod metrics;
mod probes;
mod serving;
pub mod values;

use std::{future::pending, process::ExitCode, sync::Arc};

use anyhow::Context;
use flags::ControllerFlags;
use heartbeat::Heartbeat;
use identity::{Environment, Identity};
use kflare_cloudflare::{Pool, PoolOptions, SystemWallClock, TransportOptions, reqwest_transport};
use kflare_engine::{
    Engine, EngineOptions, Settings, lease::LeaseOptions, metrics::Metrics, policy::DriftCheck, resolve::Defaults,
};
use kubernetes::RequestCounter;
use listen::bind;
use metrics::{MetricsServer, Protection, certificate::Served, process};
use prometheus::Registry;
use serving::{Health, Serving};
use values::Listen;

use crate::logging;

/// Chooses the cryptography of the process. Once a process.
pub fn install_crypto_provider() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another cryptography provider is already installed"))
}

/// Runs until SIGTERM or SIGINT, or until the process must not go on: the leader lease is lost, or probes and metrics
/// cannot be served.
pub fn run(flags: &ControllerFlags) -> anyhow::Result<ExitCode> {
    logging::init(&flags.log_level, flags.log_format)?;
    install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let result = runtime.block_on(control(flags));
    // A name lookup that hangs does not hold the process up.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

async fn control(flags: &ControllerFlags) -> anyhow::Result<()> {
    let health_listener = bind(flags.health_addr, "--health-addr")?;
    let metrics_listener = bind(flags.metrics_addr, "--metrics-addr")?;
    let environment = Environment::of_process();
    let identity = Identity::new(&environment);
    let registry = Registry::new();
    process::register(&registry)?;

    let config = kubernetes::config().await?;
    let requests = RequestCounter::register(&registry)?;
    let client = kubernetes::client(config.clone(), &requests)?;
    let transport = reqwest_transport(&TransportOptions::default())?;
    let pool_options = PoolOptions {
        base_url: flags.cloudflare_url.clone(),
        budget_share: flags.api_budget,
        seed: identity.seed,
        ..PoolOptions::default()
    };
    let pool = Pool::new(
        transport,
        pool_options,
        kflare_cloudflare::Metrics::register(&registry)?,
    );
    let lease = flags.leader_elect.then(|| LeaseOptions {
        namespace: identity::lease_namespace(flags.lease_namespace.0.as_ref(), &environment),
        name: flags.lease_name.0.clone(),
        identity: identity.name.clone(),
    });
    say_hello(flags, &identity, lease.as_ref());
    let engine = Engine::new(EngineOptions {
        kinds: kflare_kinds::kinds(),
        settings: Settings {
            defaults: Defaults {
                deletion: flags.default_deletion_policy.into(),
                drift_check: flags.drift_check_interval,
            },
            reconcile_timeout: flags.reconcile_timeout.0,
            concurrency: flags.concurrency.get(),
            namespaces: flags.watch_namespaces.as_slice().to_vec(),
            managed: flags.kinds.as_slice().iter().cloned().collect(),
        },
        client,
        pool,
        clock: Arc::new(SystemWallClock),
        seed: identity.seed,
        metrics: Metrics::register(&registry)?,
        lease,
    });

    let heartbeat = Arc::new(Heartbeat::start());
    let readiness = engine.readiness();
    let health = health_listener.map(|listener| Health {
        listener,
        probes: probes::Probes::new(heartbeat.clone(), move || readiness.is_ready()),
    });
    let metrics = match metrics_listener {
        None => None,
        Some(listener) => {
            let protection = if flags.metrics_secure {
                Protection::Full {
                    certificate: match &flags.metrics_cert_dir.0 {
                        None => Served::self_signed(&environment.host_names())?,
                        Some(directory) => Served::from_directory(directory, &registry)?,
                    },
                    cluster: Box::new(config),
                    requests,
                }
            } else {
                Protection::None
            };
            Some(MetricsServer {
                listener,
                registry,
                protection,
            })
        }
    };
    let (serving, stop) = Serving::start(health, metrics)?;
    tokio::spawn(async move { heartbeat.keep_beating().await });
    let stop = async {
        // Only a signal stops the engine. If the serving thread ends, that is a failure.
        if stop.await.is_err() {
            pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        failure = serving.failed() => Err(failure),
        ended = engine.run(stop) => {
            ended?;
            tracing::info!("stopped");
            Ok(())
        }
    }
}

fn say_hello(flags: &ControllerFlags, identity: &Identity, lease: Option<&LeaseOptions>) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = identity.name,
        namespaces = flags.watch_namespaces.as_slice().join(","),
        kinds = flags.kinds.as_slice().join(","),
        drift_check_seconds = match flags.drift_check_interval {
            DriftCheck::Every(interval) => interval.as_secs(),
            DriftCheck::Off => 0,
        },
        default_deletion_policy = ?flags.default_deletion_policy,
        reconcile_timeout_seconds = flags.reconcile_timeout.0.map_or(0, |limit| limit.as_secs()),
        concurrency = flags.concurrency,
        api_budget = flags.api_budget.get(),
        cloudflare_url = %flags.cloudflare_url,
        lease = lease.map(|lease| format!("{}/{}", lease.namespace, lease.name)),
        "kflare controller starts"
    );
    let url: Option<http::Uri> = flags.cloudflare_url.as_str().parse().ok();
    let in_the_clear = url.is_some_and(|url| {
        let host = url.host().unwrap_or_default();
        url.scheme_str() == Some("http") && !matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    });
    if in_the_clear {
        tracing::warn!("API tokens are sent unencrypted: --cloudflare-url does not start with https://");
    }
    if !flags.metrics_secure && flags.metrics_addr != Listen::Off {
        tracing::warn!("metrics are served unencrypted to everybody who can connect: --metrics-secure is false");
    }
}
