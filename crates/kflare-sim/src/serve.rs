//! The simulator on a socket.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use futures::future::{Either, select};
use tokio::sync::oneshot;

use crate::config::SimConfig;
use crate::persist::StateError;
use crate::seed::{Seed, SeedError};
use crate::simulator::Simulator;

/// How long open connections may finish their calls at shutdown.
const GRACE: Duration = Duration::from_secs(2);
/// Changes that follow each other closely are saved together.
const SAVE_AFTER: Duration = Duration::from_millis(200);

/// Where and how to serve a simulator.
#[derive(Debug)]
pub struct ServeOptions {
    /// The address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Certificate chain and private key as PEM files; `None`: plain HTTP. The process needs a default provider of rustls.
    pub tls: Option<TlsFiles>,
    /// Where changes are saved. Reading the file is the caller's business, see [`Simulator::load`].
    pub state_file: Option<PathBuf>,
    /// Told the address once it is bound.
    pub bound: Option<oneshot::Sender<SocketAddr>>,
}

/// A certificate chain and its private key, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain, the server's own first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What a simulator process is to do.
#[derive(Debug)]
pub struct SimOptions {
    /// How the simulator is set up.
    pub config: SimConfig,
    /// What to seed, as JSON; not when the state file already holds something.
    pub seed_file: Option<PathBuf>,
    /// Where and how to serve it.
    pub serve: ServeOptions,
}

/// The simulator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The address cannot be bound, or serving failed.
    #[error("cannot serve on {listen}")]
    Serve {
        /// The address.
        listen: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use the certificate {} with the key {}", cert.display(), key.display())]
    Tls {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The state file cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The seed file cannot be read.
    #[error("cannot read the seed file {}", path.display())]
    SeedFile {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The seed file is not as it should be.
    #[error("the seed file {} is not valid", path.display())]
    SeedFormat {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// The seed makes no sense.
    #[error("cannot seed from {}", path.display())]
    Seed {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: SeedError,
    },
}

/// Makes a simulator, loads or seeds it, and serves it until `shutdown`.
pub async fn run(options: SimOptions, shutdown: impl Future<Output = ()> + Send) -> Result<(), SimError> {
    let simulator = Simulator::new(options.config);
    let loaded = match &options.serve.state_file {
        Some(path) => simulator.load(path)?,
        None => false,
    };
    match &options.seed_file {
        Some(path) if !loaded => seed_from(&simulator, path)?,
        _ => {}
    }
    serve(simulator, options.serve, shutdown).await
}

fn seed_from(simulator: &Simulator, path: &Path) -> Result<(), SimError> {
    let text = std::fs::read(path).map_err(|source| SimError::SeedFile {
        path: path.to_owned(),
        source,
    })?;
    let seed: Seed = serde_json::from_slice(&text).map_err(|source| SimError::SeedFormat {
        path: path.to_owned(),
        source,
    })?;
    let seeded = simulator.seed(&seed).map_err(|source| SimError::Seed {
        path: path.to_owned(),
        source,
    })?;
    tracing::info!(zones = seeded.zones.len(), tokens = seeded.tokens.len(), "seeded");
    Ok(())
}

/// Serves a simulator until `shutdown`, and saves it a last time then. Calls that hang are cut off after two seconds.
pub async fn serve(
    simulator: Simulator,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), SimError> {
    let listen = options.listen;
    let failed = |source| SimError::Serve { listen, source };
    let listener = std::net::TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let tls = match options.tls {
        None => None,
        Some(TlsFiles { cert, key }) => match RustlsConfig::from_pem_file(&cert, &key).await {
            Ok(config) => Some(config),
            Err(source) => return Err(SimError::Tls { cert, key, source }),
        },
    };
    tracing::info!(%address, tls = tls.is_some(), "simulator listens");
    if let Some(bound) = options.bound {
        // Nobody waits for the address any more: nothing lost.
        let _ = bound.send(address);
    }
    let handle = Handle::new();
    let make = tower::service_fn({
        let service = simulator.service();
        move |_: SocketAddr| {
            let service = service.clone();
            async move { Ok::<_, std::convert::Infallible>(service) }
        }
    });
    let serving = {
        let handle = handle.clone();
        async move {
            match tls {
                Some(config) => {
                    axum_server::from_tcp_rustls(listener, config)?
                        .handle(handle)
                        .serve(make)
                        .await
                }
                None => axum_server::from_tcp(listener)?.handle(handle).serve(make).await,
            }
        }
    };
    let stopping = async move {
        shutdown.await;
        handle.graceful_shutdown(Some(GRACE));
        std::future::pending::<()>().await;
    };
    let saving = save_changes(&simulator, options.state_file.as_deref());
    let background = futures::future::join(stopping, saving);
    let served = match select(Box::pin(serving), Box::pin(background)).await {
        Either::Left((served, _)) => served,
        Either::Right(_) => Ok(()),
    };
    if let Some(path) = &options.state_file {
        simulator.save(path)?;
    }
    served.map_err(failed)
}

/// Saves the simulator after every change, for ever. A change that cannot be saved is logged, and tried again with the
/// next one and at shutdown.
async fn save_changes(simulator: &Simulator, path: Option<&Path>) {
    let Some(path) = path else {
        return std::future::pending().await;
    };
    let mut changes = simulator.changes();
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        tokio::time::sleep(SAVE_AFTER).await;
        changes.mark_unchanged();
        if let Err(error) = simulator.save(path) {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot save");
        }
    }
}
