//! How long nobody works when the leader ends.

use std::sync::Arc;
use std::time::Duration;

use kflare_engine::policy::DriftCheck;
use kflare_sim::{Plan, ZoneSeed};
use tokio::sync::Notify;

use super::stand::{BenchError, Place, Stand};
use crate::bench::figure::{self, Figure};
use crate::life::Life;
use crate::simulation::{ACCOUNT_ID, ControllerOptions, World, WorldOptions, simulate_with};

/// How a leader ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    AskedToStop,
}

const STEP: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_mins(2);

/// The leader ends at ten moments, spread over the two seconds between renewals of the lease; each time a record is applied
/// at that moment.
pub fn takeover() -> Result<Vec<Figure>, BenchError> {
    Ok(vec![
        figure::TAKEOVER_KILL.measured(longest(End::Killed)?.as_secs_f64()),
        figure::TAKEOVER_STOP.measured(longest(End::AskedToStop)?.as_secs_f64()),
    ])
}

fn longest(end: End) -> Result<Duration, BenchError> {
    let mut longest = Duration::ZERO;
    for moment in 0..10 {
        let after = Duration::from_secs(30) + moment * Duration::from_millis(200);
        let options = WorldOptions::seeded(3 + u64::from(moment));
        longest = longest.max(simulate_with(options, |world| end_of_leader(world, end, after)).0?);
    }
    Ok(longest)
}

async fn end_of_leader(world: World, end: End, after: Duration) -> Result<Duration, BenchError> {
    let stand = Stand::new(world);
    let place = Place {
        namespace: "team".to_owned(),
        zone: "example".to_owned(),
        domain: "example.com".to_owned(),
    };
    stand
        .user
        .open_account(vec![ZoneSeed::named(&place.domain, ACCOUNT_ID).on(Plan::Pro)]);
    stand.user.connect();
    stand.apply(place.zone_manifest())?;
    let ids = stand.apply_records(&place, 5)?;
    let replica = |name: &str| ControllerOptions {
        drift_check: DriftCheck::Off,
        replica: Some(name.to_owned()),
        ..ControllerOptions::default()
    };
    let (leader, stop) = (Life::new("one"), Arc::new(Notify::new()));
    {
        let (world, life, stop, options) = (stand.world.clone(), leader.clone(), stop.clone(), replica("one"));
        tokio::spawn(async move { world.run_controller_until(&life, options, stop).await });
    }
    stand.ready(&ids, STEP, PATIENCE).await?;
    stand.start("two", replica("two"));
    stand.world.pass_time(after).await;
    match end {
        End::Killed => leader.kill(),
        End::AskedToStop => stop.notify_one(),
    }
    let new = stand.apply(place.record_manifest("new"))?;
    stand.ready(&[new], STEP, PATIENCE).await
}
