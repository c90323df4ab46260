//! Waiting for a condition instead of for a time.

use std::fmt;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, timeout_at};

use super::diagnosis::diagnose;

/// How long [`wait_for`] waits.
const DEFAULT_WITHIN: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// Something did not come about in time. Both `Display` and `Debug` show the whole report, so that an `unwrap` in a test
/// prints what a person needs.
pub struct WaitError {
    what: String,
    within: Duration,
    last: String,
    report: String,
}

impl fmt::Display for WaitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            within,
            last,
            report,
        } = self;
        write!(
            formatter,
            "waited {within:?} for {what}, in vain; the last look: {last}\n{report}"
        )
    }
}

impl fmt::Debug for WaitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for WaitError {}

/// Asks `probe` until it answers `Some`, at most a minute. An error of the probe is not final: it is asked again.
///
/// On failure the error shows the events and kflare objects of `namespace`.
pub async fn wait_for<T, E: fmt::Display>(
    client: &Client,
    namespace: &str,
    what: &str,
    probe: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<T, WaitError> {
    wait_for_within(DEFAULT_WITHIN, client, namespace, what, probe).await
}

/// [`wait_for`] with a time limit of one's own.
pub async fn wait_for_within<T, E: fmt::Display>(
    within: Duration,
    client: &Client,
    namespace: &str,
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<T, WaitError> {
    let deadline = Instant::now() + within;
    let mut last = "no answer at all".to_owned();
    while let Ok(answer) = timeout_at(deadline, probe()).await {
        last = match answer {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "not yet".to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() + POLL >= deadline {
            break;
        }
        sleep(POLL).await;
    }
    let report = timeout_at(Instant::now() + DEFAULT_WITHIN, diagnose(client, namespace))
        .await
        .unwrap_or_else(|_| "the cluster does not answer\n".to_owned());
    Err(WaitError {
        what: what.to_owned(),
        within,
        last,
        report,
    })
}
