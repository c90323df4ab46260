//! The thread that serves probes and metrics and watches for signals.

mod connections;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};

use anyhow::Context;
use axum_server::{Server, tls_rustls::RustlsAcceptor};
use connections::Bounded;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::oneshot;

use super::{
    metrics::{MetricsServer, Prepared},
    probes::Probes,
};
use crate::shutdown::{self, Signals};

/// Connections open at a time, for each server; more are closed at once.
const CONNECTIONS: usize = 64;

/// How long the first request of a connection may take to arrive.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// How long a connection may be idle, and a later request may take to arrive. Longer than usual scrape intervals.
const IDLE: Duration = Duration::from_mins(2);

/// The server of the probes.
pub struct Health {
    /// Where it listens.
    pub listener: TcpListener,
    /// What it answers.
    pub probes: Probes,
}

/// The running thread.
pub struct Serving {
    failure: oneshot::Receiver<anyhow::Error>,
}

impl Serving {
    /// Starts the thread. The receiver is told at the first SIGTERM or SIGINT.
    pub fn start(
        health: Option<Health>,
        metrics: Option<MetricsServer>,
    ) -> anyhow::Result<(Self, oneshot::Receiver<()>)> {
        let (failed, failure) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("kflare-serving".to_owned())
            .spawn(move || {
                if let Err(error) = serve(health, metrics, stop) {
                    // The main thread may be gone already.
                    let _ = failed.send(error);
                }
            })
            .context("cannot start the thread for probes and metrics")?;
        Ok((Self { failure }, stopped))
    }

    /// Completes if the thread ends, which it never should.
    pub async fn failed(self) -> anyhow::Error {
        self.failure
            .await
            .unwrap_or_else(|_| anyhow::anyhow!("the thread for probes and metrics has ended"))
    }
}

fn serve(health: Option<Health>, metrics: Option<MetricsServer>, stop: oneshot::Sender<()>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let signals = Signals::install().context("cannot watch for signals")?;
        let mut tasks: FuturesUnordered<BoxFuture<'_, anyhow::Result<()>>> = FuturesUnordered::new();
        tasks.push(signals.watch(stop, shutdown::end_at_once).map(Ok).boxed());
        if let Some(Health { listener, probes }) = health {
            tracing::info!(address = %listener.local_addr()?, "probes listen");
            let server = http_server(listener)?.acceptor(Bounded::new(CONNECTIONS));
            let serving = server.serve(probes.router().into_make_service());
            tasks.push(serving.map(|ended| ended.context("cannot serve probes")).boxed());
        }
        if let Some(metrics) = metrics {
            tracing::info!(address = %metrics.listener.local_addr()?, "metrics listen");
            serve_metrics(metrics.prepare()?, &tasks)?;
        }
        // Each of them runs for ever.
        tasks.next().await.unwrap_or(Ok(()))
    })
}

fn serve_metrics(
    Prepared {
        listener,
        router,
        certificate,
    }: Prepared,
    tasks: &FuturesUnordered<BoxFuture<'_, anyhow::Result<()>>>,
) -> io::Result<()> {
    let server = http_server(listener)?;
    let bounded = Bounded::new(CONNECTIONS);
    let make = router.into_make_service();
    let serving = match certificate {
        None => server.acceptor(bounded).serve(make).boxed(),
        Some(certificate) => {
            let acceptor = RustlsAcceptor::new(certificate.config()).acceptor(bounded);
            tasks.push(certificate.keep_fresh().map(Ok).boxed());
            server.acceptor(acceptor).serve(make).boxed()
        }
    };
    tasks.push(serving.map(|ended| ended.context("cannot serve metrics")).boxed());
    Ok(())
}

fn http_server(listener: TcpListener) -> io::Result<Server<SocketAddr>> {
    let mut server = axum_server::from_tcp(listener)?
        .http1_only()
        .first_request_timeout(FIRST_REQUEST);
    server.http_builder().http1().header_read_timeout(IDLE);
    Ok(server)
}
