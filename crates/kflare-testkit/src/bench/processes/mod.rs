//! Figures of a release-built controller as its own process: memory, processor time, real seconds.
//!
//! The cluster is a real API server with etcd, Cloudflare is the simulator on a socket of this process, with 50 ms a call.

mod controller;
mod latency;
mod load;
mod mixed;
mod site;
pub mod sizing;
mod usage;

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use self::controller::Controller;
use self::site::Site;
use super::figure::{self, Figure};
use crate::cluster::CrdError;
use crate::control_plane::ControlPlaneError;

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The control plane does not start or answer.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// kflare's CRDs cannot be installed.
    #[error(transparent)]
    Crds(#[from] CrdError),
    /// The API server refused something.
    #[error("the API server: {doing}")]
    Cluster {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: kube::Error,
    },
    /// The simulator cannot be set up.
    #[error("the simulator: {0}")]
    Simulator(String),
    /// A process cannot be started, asked about or stopped.
    #[error("{doing}")]
    Process {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Something did not come about in time.
    #[error("waited {within:?} in vain: {what}\n{log}")]
    NotInTime {
        /// What was waited for.
        what: String,
        /// How long.
        within: Duration,
        /// The end of the controller's log.
        log: String,
    },
}

impl ProcessError {
    fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Process { doing, source }
    }

    fn cluster(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Cluster { doing, source }
    }
}

/// How long a process that has nothing more to do is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(20);
/// Records that are timed, and records in all.
const FIRST: usize = 1_000;
const ALL: usize = 5_000;
/// Drift checks whose processor time is averaged, and how often they come (the shortest interval there is).
const CHECKS: usize = 6;
const CHECK_INTERVAL: &str = "10s";
/// How long the processor time of a controller at rest is watched.
const REST: Duration = Duration::from_secs(15);

/// Takes all figures with the controller of `program`; each goes to `tell` as soon as it is known.
pub async fn measure(program: &Path, tell: &mut dyn FnMut(Figure)) -> Result<(), ProcessError> {
    of_records(program, tell).await?;
    mixed::measure(program, tell).await
}

async fn of_records(program: &Path, tell: &mut dyn FnMut(Figure)) -> Result<(), ProcessError> {
    let site = Site::prepare(vec![load::zone_seed()]).await?;
    let controller = Controller::start(&site, program, "10m").await?;
    sleep(SETTLE).await;
    tell(figure::RSS_IDLE.measured(controller.resident_mib()?));

    controller.forget_peak()?;
    site.connect().await?;
    load::apply_zone(&site).await?;
    let began = Instant::now();
    load::apply_records(&site, 0..FIRST).await?;
    load::all_ready(&site, &controller, FIRST).await?;
    tell(figure::REAL_SECONDS_CREATE.measured(began.elapsed().as_secs_f64()));

    load::apply_secrets(&site).await?;
    load::apply_records(&site, FIRST..ALL).await?;
    load::all_ready(&site, &controller, ALL).await?;
    sleep(SETTLE).await;
    tell(figure::RSS_CREATING.measured(controller.peak_mib()?));
    tell(figure::RSS_RECORDS_AND_SECRETS.measured(controller.resident_mib()?));

    controller.forget_peak()?;
    load::delete_secrets(&site).await?;
    sleep(Duration::from_secs(5)).await;
    tell(figure::RSS_SECRETS_DELETED.measured(controller.peak_mib()?));
    let idle = controller.cpu_during(REST).await?;
    controller.stop().await?;

    let controller = Controller::start(&site, program, CHECK_INTERVAL).await?;
    let (busy, time) = checks(&site, &controller).await?;
    let idle = idle.mul_f64(time.div_duration_f64(REST));
    let per_thousand = busy.saturating_sub(idle).as_secs_f64() * 1e3 / as_f64(CHECKS * ALL / 1_000);
    tell(figure::CPU_CHECK.measured(per_thousand));
    tell(figure::RSS_RESTARTED.measured(controller.resident_mib()?));

    let mut times = latency::changes_during_sweeps(&site, &controller).await?;
    times.sort_unstable();
    let percentile = |share: usize| {
        let index = (times.len() * share).div_ceil(100).max(1) - 1;
        times.get(index).map_or(f64::NAN, |it| it.as_secs_f64() * 1e3)
    };
    tell(figure::LATENCY_SWEEP.measured(percentile(95)));
    tell(figure::LATENCY_SWEEP_MEDIAN.measured(percentile(50)));
    controller.stop().await
}

/// The processor time of [`CHECKS`] drift checks and of the time between them, which comes second.
async fn checks(site: &Site, controller: &Controller) -> Result<(Duration, Duration), ProcessError> {
    // The first check after a start looks at more; it is not counted.
    site.wait_for_sweeps(controller, 1).await?;
    sleep(Duration::from_secs(3)).await;
    let (cpu, began) = (controller.cpu()?, Instant::now());
    site.wait_for_sweeps(controller, CHECKS).await?;
    sleep(Duration::from_secs(3)).await;
    Ok((controller.cpu()?.saturating_sub(cpu), began.elapsed()))
}

/// What is resident of this very process, in MiB.
pub fn own_memory_mib() -> io::Result<f64> {
    usage::memory_mib(std::process::id(), "VmRSS")
}

/// The most that was ever resident of this very process, in MiB.
pub fn own_peak_mib() -> io::Result<f64> {
    usage::memory_mib(std::process::id(), "VmHWM")
}

#[allow(clippy::cast_precision_loss)] // small numbers
fn as_f64(number: usize) -> f64 {
    number as f64
}
