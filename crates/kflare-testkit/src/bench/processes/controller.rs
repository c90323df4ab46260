//! The controller as a process of its own.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::site::Site;
use super::{ProcessError, usage};
use crate::control_plane::free_ports;
use crate::guarded::Guarded;

const READY_WITHIN: Duration = Duration::from_mins(1);
const STOPS_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// How much of the log goes into an error message, in bytes.
const LOG_TAIL: u64 = 4096;

/// A running controller. It is killed when this value is dropped, and when this process ends in any way.
pub(super) struct Controller {
    process: Guarded,
}

impl Controller {
    /// Starts the controller as it runs in a cluster: leader election, probes and protected metrics are on. Waits until it
    /// says that it is ready.
    pub async fn start(site: &Site, program: &Path, drift_check: &str) -> Result<Self, ProcessError> {
        let [health, metrics] = free_ports().map_err(ProcessError::io("looking for free ports"))?;
        let arguments = [
            format!("KUBECONFIG={}", site.kubeconfig().display()),
            program.display().to_string(),
            "controller".to_owned(),
            format!("--cloudflare-url={}", site.cloudflare_url()),
            format!("--drift-check-interval={drift_check}"),
            format!("--health-addr=127.0.0.1:{health}"),
            format!("--metrics-addr=127.0.0.1:{metrics}"),
        ];
        let log = site.folder().join("controller.log");
        // `env` becomes the controller: the process id stays the same.
        let process = Guarded::spawn("kflare", Path::new("env"), &arguments, log)
            .map_err(ProcessError::io("starting the controller"))?;
        let controller = Self { process };
        let deadline = Instant::now() + READY_WITHIN;
        while !is_ready(health).await {
            if Instant::now() > deadline {
                return Err(controller.not_in_time("the controller is not ready".to_owned(), READY_WITHIN));
            }
            sleep(POLL).await;
        }
        Ok(controller)
    }

    /// What is resident, in MiB.
    pub fn resident_mib(&self) -> Result<f64, ProcessError> {
        self.memory("VmRSS")
    }

    /// The most that was ever resident, or since [`Self::forget_peak`], in MiB.
    pub fn peak_mib(&self) -> Result<f64, ProcessError> {
        self.memory("VmHWM")
    }

    fn memory(&self, field: &str) -> Result<f64, ProcessError> {
        usage::memory_mib(self.process.pid(), field).map_err(ProcessError::io("reading the controller's memory"))
    }

    pub fn forget_peak(&self) -> Result<(), ProcessError> {
        usage::forget_peak(self.process.pid()).map_err(ProcessError::io("resetting the controller's peak of memory"))
    }

    /// Processor time since its start.
    pub fn cpu(&self) -> Result<Duration, ProcessError> {
        usage::cpu(self.process.pid()).map_err(ProcessError::io("reading the controller's processor time"))
    }

    /// Processor time in the next `time`.
    pub async fn cpu_during(&self, time: Duration) -> Result<Duration, ProcessError> {
        let before = self.cpu()?;
        sleep(time).await;
        Ok(self.cpu()?.saturating_sub(before))
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(mut self) -> Result<(), ProcessError> {
        self.process
            .signal("TERM")
            .map_err(ProcessError::io("stopping the controller"))?;
        let deadline = Instant::now() + STOPS_WITHIN;
        loop {
            let ended = self
                .process
                .exited()
                .map_err(ProcessError::io("waiting for the controller"))?;
            if ended.is_some() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.not_in_time("the controller has not stopped".to_owned(), STOPS_WITHIN));
            }
            sleep(POLL).await;
        }
    }

    /// The error of somebody who waited for the controller to do something.
    pub fn not_in_time(&self, what: String, within: Duration) -> ProcessError {
        ProcessError::NotInTime {
            what,
            within,
            log: self.process.log_tail(LOG_TAIL),
        }
    }
}

/// Asks the probe. A refused connection is a no.
async fn is_ready(port: u16) -> bool {
    let ask = async {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
        connection
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    ask.await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
