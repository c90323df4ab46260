//! Whether one tenant holds up another.

use std::time::Duration;

use kflare_sim::{Plan, ZoneSeed};
use serde_json::json;

use super::stand::{BenchError, Place, Stand};
use crate::bench::figure::{self, Definition, Figure};
use crate::simulation::{ACCOUNT_ID, ControllerOptions, World, WorldOptions, simulate_with};

const MINUTE: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_mins(30);

/// Time between the edits of the tenant in a loop.
const LOOP: Duration = Duration::from_millis(50);
/// Changes of the other tenant, one after the other.
const CHANGES: u32 = 60;
/// From one to the next: together ten minutes, two windows of the call budget.
const BETWEEN: Duration = Duration::from_secs(10);

/// Records in each zone.
const RECORDS: usize = 10;

/// What the busy tenant does.
#[derive(Clone, Copy, Debug)]
enum Neighbour {
    Quiet,
    /// Edits so many records in turn, one every [`LOOP`].
    Loops(usize),
    /// Applies so many new records at once.
    Floods(usize),
}

/// A tenant changes one record every ten seconds, while another does nothing, edits one record in a loop, edits ten in a
/// loop, or applies two thousand.
pub fn fairness() -> Result<Vec<Figure>, BenchError> {
    let alone = mean_change(Neighbour::Quiet, CHANGES)?;
    let ratio = |definition: &'static Definition, neighbour, changes| {
        let beside = mean_change(neighbour, changes)?;
        Ok::<_, BenchError>(definition.measured(beside.as_secs_f64() / alone.as_secs_f64()))
    };
    Ok(vec![
        ratio(&figure::FAIRNESS_ONE, Neighbour::Loops(1), CHANGES)?,
        ratio(&figure::FAIRNESS_MANY, Neighbour::Loops(RECORDS), CHANGES)?,
        ratio(&figure::FAIRNESS_FLOOD, Neighbour::Floods(2000), 1)?,
    ])
}

fn mean_change(neighbour: Neighbour, changes: u32) -> Result<Duration, BenchError> {
    simulate_with(WorldOptions::seeded(30), |world| live(world, neighbour, changes)).0
}

async fn live(world: World, neighbour: Neighbour, changes: u32) -> Result<Duration, BenchError> {
    let stand = Stand::new(world);
    let place = |name: &str| Place {
        namespace: name.to_owned(),
        zone: name.to_owned(),
        domain: format!("{name}.example"),
    };
    let (busy, other) = (place("busy"), place("other"));
    let seeds = [&busy, &other].map(|it| ZoneSeed::named(&it.domain, ACCOUNT_ID).on(Plan::Pro));
    stand.user.open_account(seeds.to_vec());
    stand.user.connect();
    let mut ids = Vec::new();
    for it in [&busy, &other] {
        ids.push(stand.apply(it.zone_manifest())?);
        ids.extend(stand.apply_records(it, RECORDS)?);
    }
    stand.start("controller", ControllerOptions::default());
    stand.ready(&ids, STEP, PATIENCE).await?;
    stand.world.pass_time(5 * MINUTE).await;

    match neighbour {
        Neighbour::Quiet => {}
        Neighbour::Loops(records) => {
            let (user, place) = (stand.world.user(), busy.clone());
            tokio::spawn(async move {
                for turn in 0_usize.. {
                    let id = place.record_id(&format!("r{}", turn % records));
                    user.edit_spec(&id, &json!({ "comment": format!("edit {turn}") }));
                    tokio::time::sleep(LOOP).await;
                }
            });
        }
        Neighbour::Floods(records) => {
            for n in 0..records {
                stand.apply(busy.record_manifest(&format!("new{n}")))?;
            }
        }
    }
    let mut total = Duration::ZERO;
    for change in 0..changes {
        let began = stand.now();
        let id = other.record_id(&format!("r{}", usize::try_from(change).unwrap_or_default() % RECORDS));
        stand
            .user
            .edit_spec(&id, &json!({ "comment": format!("change {change}") }));
        total += stand.ready(std::slice::from_ref(&id), STEP, PATIENCE).await?;
        let rest = BETWEEN.saturating_sub(stand.elapsed_since(began));
        stand.world.pass_time(rest).await;
    }
    Ok(total / changes)
}
