//! How long a user waits for a change while all records are being swept.

use std::time::Duration;

use futures::future::try_join_all;
use kflare_sim::{Fault, FaultMatch, FaultSpec};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::ProcessError;
use super::controller::Controller;
use super::load::{is_ready, records};
use super::site::Site;

/// How much longer each list takes: that of a real zone of this size takes seconds.
const LIST: Duration = Duration::from_secs(2);
/// Sweeps during which changes are made.
const SWEEPS: usize = 4;
/// Users who change something at a time, each one record.
const USERS: usize = 4;
const POLL: Duration = Duration::from_millis(10);
const CHANGED_WITHIN: Duration = Duration::from_mins(1);

/// Four users change one record each, again and again as long as a sweep's list is on its way, in each of four sweeps. The times
/// from the API server's answer to the change until the record is Ready for it.
pub(super) async fn changes_during_sweeps(site: &Site, controller: &Controller) -> Result<Vec<Duration>, ProcessError> {
    let slow = FaultSpec::new(
        FaultMatch::route("GET", "/zones/{zone_id}/dns_records"),
        Fault::Delay {
            ms: u64::try_from(LIST.as_millis()).unwrap_or_default(),
        },
    );
    let armed = site
        .cloudflare
        .add_fault(slow)
        .map_err(|error| ProcessError::Simulator(error.to_string()))?;
    let mut times = Vec::new();
    for sweep in 0..SWEEPS {
        site.wait_for_sweeps(controller, 1).await?;
        let end = Instant::now() + LIST;
        let users = (0..USERS).map(|user| changes_until(site, controller, user, sweep, end));
        times.extend(try_join_all(users).await?.into_iter().flatten());
    }
    site.cloudflare.remove_fault(armed);
    Ok(times)
}

/// Changes begun before `end`, one after the other.
async fn changes_until(
    site: &Site,
    controller: &Controller,
    user: usize,
    sweep: usize,
    end: Instant,
) -> Result<Vec<Duration>, ProcessError> {
    let (api, name) = (records(site), format!("r{:04}", user * 1_000));
    let mut times = Vec::new();
    while Instant::now() < end {
        let comment = format!("sweep {sweep}, change {}", times.len());
        times.push(change(&api, controller, &name, &comment).await?);
    }
    Ok(times)
}

async fn change(
    api: &Api<DynamicObject>,
    controller: &Controller,
    name: &str,
    comment: &str,
) -> Result<Duration, ProcessError> {
    let patch = Patch::Merge(json!({ "spec": { "comment": comment } }));
    let changed = api.patch(name, &PatchParams::default(), &patch).await;
    changed.map_err(ProcessError::cluster("changing a record"))?;
    let began = Instant::now();
    loop {
        let object = api
            .get(name)
            .await
            .map_err(ProcessError::cluster("reading a changed record"))?;
        if is_ready(&object) {
            return Ok(began.elapsed());
        }
        if began.elapsed() > CHANGED_WITHIN {
            return Err(controller.not_in_time(format!("the change of {name}"), CHANGED_WITHIN));
        }
        sleep(POLL).await;
    }
}
