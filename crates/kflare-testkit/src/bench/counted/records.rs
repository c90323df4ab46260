//! Many records in one zone: made, checked, found by a new controller.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kflare_sim::{Latency, Plan, ZoneSeed};

use super::stand::{BenchError, Place, Stand};
use crate::bench::figure::{self, Figure};
use crate::simulation::{ACCOUNT_ID, ControllerOptions, World, WorldOptions, simulate_with};

const MINUTE: Duration = Duration::from_mins(1);
/// Between looks whether all is done: a tenth of what a figure in seconds is told in.
const STEP: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_mins(30);

/// Free zones made before September 2024 may hold a thousand records.
const OLD_FREE_ZONE: Timestamp = Timestamp::constant(1_704_067_200, 0);

fn fifty_milliseconds() -> WorldOptions {
    WorldOptions {
        seed: 8,
        latency: Latency::fixed(Duration::from_millis(50)),
    }
}

fn place() -> Place {
    Place {
        namespace: "team".to_owned(),
        zone: "example".to_owned(),
        domain: "example.com".to_owned(),
    }
}

fn only_zone(plan: Plan) -> ZoneSeed {
    ZoneSeed {
        created_on: Some(OLD_FREE_ZONE),
        // What an enterprise zone may hold is agreed on by contract.
        record_quota: (plan == Plan::Enterprise).then_some(10_000),
        ..ZoneSeed::named("example.com", ACCOUNT_ID).on(plan)
    }
}

/// A thousand records applied at once with their zone and account, and then two drift checks in which nothing happens.
pub fn thousand_records() -> Result<Vec<Figure>, BenchError> {
    simulate_with(fifty_milliseconds(), make_a_thousand).0
}

async fn make_a_thousand(world: World) -> Result<Vec<Figure>, BenchError> {
    let (stand, place) = (Stand::new(world), place());
    stand.user.open_account(vec![only_zone(Plan::Free)]);
    stand.start("controller", ControllerOptions::default());
    stand.world.pass_time(MINUTE).await;
    let mark = stand.mark();
    stand.user.connect();
    stand.apply(place.zone_manifest())?;
    let ids = stand.apply_records(&place, 1000)?;
    let took = stand.ready(&ids, STEP, PATIENCE).await?;
    stand.world.pass_time(MINUTE).await;
    let made = stand.since(&mark);
    let mut writes: BTreeMap<&str, usize> = BTreeMap::new();
    for write in &made.kubernetes_writes {
        if write.request.resource.starts_with("dnsrecords") {
            *writes
                .entry(write.request.name.as_deref().unwrap_or_default())
                .or_default() += 1;
        }
    }
    let most_writes = writes.values().max().copied().unwrap_or_default();

    let mark = stand.mark();
    // Twice the longest interval, so that there are two checks at least.
    stand.world.pass_time(23 * MINUTE).await;
    let rest = stand.since(&mark);
    if rest.record_calls() < 2 {
        return Err(BenchError::NotAsMeant(format!(
            "{} drift checks instead of two",
            rest.record_calls()
        )));
    }
    Ok(vec![
        figure::CALLS_CREATE.counted(made.calls.len()),
        figure::SECONDS_CREATE.measured(took.as_secs_f64()),
        figure::WRITES_NEW_RECORD.counted(most_writes),
        figure::WRITES_IDLE.counted(rest.kubernetes_writes.len()),
    ])
}

/// Five thousand records in one zone: a drift check of them, and a controller that starts and finds them as they should be.
pub fn five_thousand_records() -> Result<Vec<Figure>, BenchError> {
    simulate_with(fifty_milliseconds(), keep_five_thousand).0
}

async fn keep_five_thousand(world: World) -> Result<Vec<Figure>, BenchError> {
    let (stand, place) = (Stand::new(world), place());
    stand.user.open_account(vec![only_zone(Plan::Enterprise)]);
    stand.user.connect();
    stand.apply(place.zone_manifest())?;
    let ids = stand.apply_records(&place, 5000)?;
    let first = stand.start("first", ControllerOptions::default());
    stand.ready(&ids, Duration::from_secs(1), PATIENCE).await?;
    stand.world.pass_time(MINUTE).await;

    // One check: from the first call about records to when the next check is still minutes away.
    let mark = stand.mark();
    while stand.since(&mark).record_calls() == 0 {
        if stand.now() > PATIENCE {
            return Err(BenchError::NotAsMeant("no drift check was made".to_owned()));
        }
        stand.world.pass_time(Duration::from_secs(5)).await;
    }
    stand.world.pass_time(2 * MINUTE).await;
    let check = stand.since(&mark);

    first.kill();
    let mark = stand.mark();
    stand.start("second", ControllerOptions::default());
    stand.world.pass_time(5 * MINUTE).await;
    let restart = stand.since(&mark);
    if restart.record_calls() == 0 {
        return Err(BenchError::NotAsMeant(
            "the restarted controller did not look".to_owned(),
        ));
    }
    Ok(vec![
        figure::CALLS_DRIFT_CHECK.counted(check.record_calls()),
        figure::CALLS_RESTART.counted(restart.calls.len()),
        figure::WRITES_RESTART.counted(restart.writes()),
    ])
}
