//! `kflare sim`: the simulator of the Cloudflare API on a socket.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::Args;
use kflare_engine::policy::parse_duration;
use kflare_sim::{Latency, ServeOptions, SimConfig, SimOptions, TlsFiles};
use tokio::sync::oneshot;

use crate::{
    controller,
    logging::{self, LogFilter, LogFormat},
    shutdown::{self, Signals},
};

/// The flags of `kflare sim`.
#[derive(Args, Debug)]
pub struct SimFlags {
    /// Where to listen; port 0 takes a free one, which the log names
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,

    /// Keep the state in this file: read at the start, written after changes
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Start with the accounts, tokens and zones of this JSON file, unless the state file already holds something
    #[arg(long, value_name = "FILE")]
    seed_file: Option<PathBuf>,

    /// The pause before each answer, at least 1ms
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = latency)]
    latency: Duration,

    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// What is logged: error, warn, info, debug or trace, or targets such as info,kflare_sim=debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogFilter,

    /// How lines are written
    #[arg(long, value_name = "FORMAT", default_value = "console")]
    log_format: LogFormat,
}

#[derive(Debug, thiserror::Error)]
#[error("not a duration; use a number with a unit (ms, s, m, h), such as 50ms")]
struct NoDuration;

fn latency(text: &str) -> Result<Duration, NoDuration> {
    parse_duration(text.trim()).ok_or(NoDuration)
}

/// Runs until SIGTERM or SIGINT.
pub fn run(flags: SimFlags) -> anyhow::Result<ExitCode> {
    logging::init(&flags.log_level, flags.log_format)?;
    controller::install_crypto_provider()?;
    let options = SimOptions {
        config: SimConfig {
            latency: Latency::fixed(flags.latency),
            ..SimConfig::default()
        },
        seed_file: flags.seed_file,
        serve: ServeOptions {
            listen: flags.listen,
            tls: flags
                .tls_cert
                .zip(flags.tls_key)
                .map(|(cert, key)| TlsFiles { cert, key }),
            state_file: flags.state,
            bound: None,
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let result = runtime.block_on(async {
        let signals = Signals::install().context("cannot watch for signals")?;
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(signals.watch(stop, shutdown::end_at_once));
        kflare_sim::run(options, async {
            // The sender only goes away with the runtime.
            let _ = stopped.await;
        })
        .await?;
        Ok(ExitCode::SUCCESS)
    });
    runtime.shutdown_background();
    result
}
