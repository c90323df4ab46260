//! What a controller takes as the cluster around it grows, for whoever sets requests and limits.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::controller::Controller;
use super::load;
use super::site::Site;
use super::{ProcessError, SETTLE};

/// Records in all, step by step.
const STEPS: [usize; 3] = [1_000, 5_000, 10_000];

/// What was measured of a controller in one situation. Shown as the row of a Markdown table.
#[derive(Clone, Debug)]
pub struct Size {
    /// What there is.
    pub situation: String,
    /// Resident once nothing is left to do, in MiB.
    pub resident_mib: f64,
    /// The most that was resident on the way there, in MiB.
    pub peak_mib: f64,
    /// Processor time from the situation before.
    pub cpu: Duration,
    /// From the first request to the API server until everything was as asked for.
    pub took: Duration,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {} | {:.0} MiB | {:.0} MiB | {:.1} s | {:.0} s |",
            self.situation,
            self.resident_mib,
            self.peak_mib,
            self.cpu.as_secs_f64(),
            self.took.as_secs_f64()
        )
    }
}

/// What to read before a step.
struct Start {
    cpu: Duration,
    at: Instant,
}

fn start(controller: &Controller) -> Result<Start, ProcessError> {
    controller.forget_peak()?;
    Ok(Start {
        cpu: controller.cpu()?,
        at: Instant::now(),
    })
}

async fn end(controller: &Controller, situation: String, start: Start) -> Result<Size, ProcessError> {
    let took = start.at.elapsed();
    sleep(SETTLE).await;
    Ok(Size {
        situation,
        resident_mib: controller.resident_mib()?,
        peak_mib: controller.peak_mib()?,
        cpu: controller.cpu()?.saturating_sub(start.cpu),
        took,
    })
}

/// Measures the controller of `program`; each situation goes to `tell` as soon as it is known.
pub async fn measure(program: &Path, tell: &mut dyn FnMut(Size)) -> Result<(), ProcessError> {
    let site = Site::prepare(vec![load::zone_seed()]).await?;
    let leader = Controller::start(&site, program, "10m").await?;
    let begun = start(&leader)?;
    tell(end(&leader, "nothing to manage".to_owned(), begun).await?);

    site.connect().await?;
    load::apply_zone(&site).await?;
    let mut there = 0;
    for records in STEPS {
        let begun = start(&leader)?;
        load::apply_records(&site, there..records).await?;
        load::all_ready(&site, &leader, records).await?;
        tell(end(&leader, format!("{records} records"), begun).await?);
        there = records;
    }
    let begun = start(&leader)?;
    load::apply_secrets(&site).await?;
    tell(end(&leader, "and 100 MiB of Secrets of others".to_owned(), begun).await?);

    let standby = Controller::start(&site, program, "10m").await?;
    let begun = start(&standby)?;
    tell(end(&standby, "a replica that stands by".to_owned(), begun).await?);

    // Killed, not stopped: its Lease has to run out first.
    drop(leader);
    let begun = start(&standby)?;
    load::apply_records(&site, there..there + 1).await?;
    load::all_ready(&site, &standby, there + 1).await?;
    tell(end(&standby, "the same, after the leader was killed".to_owned(), begun).await?);
    standby.stop().await
}
