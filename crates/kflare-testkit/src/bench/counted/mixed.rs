//! Two thousand resources of every kind: what it costs to look whether all is as it should be.

use std::time::Duration;

use super::stand::{BenchError, Stand};
use crate::bench::figure::{self, Figure};
use crate::bench::mixed::{Team, zone_seeds};
use crate::simulation::{ControllerOptions, World, WorldOptions, simulate_with};

const MINUTE: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_hours(1);

/// How often everything is checked unless a flag says otherwise, and so many times that the tenth by which each check comes
/// earlier or later makes no difference.
const INTERVAL: Duration = Duration::from_mins(10);
const CHECKS: usize = 12;

/// Lets 2,000 resources over all kinds rest in five zones, for as long as twelve drift checks take, and says what one costs.
pub fn two_thousand_mixed() -> Result<Vec<Figure>, BenchError> {
    simulate_with(WorldOptions::seeded(41), keep_two_thousand).0
}

async fn keep_two_thousand(world: World) -> Result<Vec<Figure>, BenchError> {
    let stand = Stand::new(world);
    let team = Team {
        namespace: "team",
        account: "main",
    };
    stand.user.open_account(zone_seeds());
    stand.user.connect();
    stand.apply(team.secret())?;
    let ids = team
        .manifests(2000)
        .into_iter()
        .map(|manifest| stand.apply(manifest))
        .collect::<Result<Vec<_>, _>>()?;
    stand.start("controller", ControllerOptions::default());
    stand.ready(&ids, STEP, PATIENCE).await?;
    // What was made is looked at once more, and the first checks are spread.
    stand.world.pass_time(2 * INTERVAL + MINUTE).await;

    let mark = stand.mark();
    for _ in 0..CHECKS {
        stand.world.pass_time(INTERVAL).await;
    }
    let rest = stand.since(&mark);
    if rest.writes() > 0 {
        return Err(BenchError::NotAsMeant(format!("{} writes at rest", rest.writes())));
    }
    Ok(vec![
        figure::CALLS_DRIFT_CHECK_MIXED.counted(rest.calls.len().div_ceil(CHECKS)),
    ])
}
