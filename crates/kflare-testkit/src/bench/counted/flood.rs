//! Very many records at once, over very many zones, one of them poison.

use std::time::Duration;

use kflare_sim::{Plan, Seed, ZoneSeed};
use serde_json::json;

use super::stand::{BenchError, Place, Stand, account_id};
use crate::bench::figure::{self, Figure};
use crate::memory_api::ObjectId;
use crate::simulation::{ACCOUNT_ID, ControllerOptions, World, WorldOptions, simulate_with};

const RECORDS_PER_ZONE: usize = 100;
const ZONES_PER_TENANT: usize = 10;
const PATIENCE: Duration = Duration::from_hours(2);

/// What the budget lets go at once, and then in a second: three eighths of 960 calls, and the rest over five minutes.
const AT_ONCE: f64 = 360.0;
const PER_SECOND: f64 = 2.0;

/// What a flood cost.
#[derive(Clone, Debug)]
pub struct Flood {
    /// All calls until everything was Ready.
    pub calls: usize,
    /// From applying to Ready.
    pub took: Duration,
    /// Writes to Kubernetes, Events left out.
    pub kubernetes_writes: usize,
    /// Resources of records, the poison not counted.
    pub records: usize,
    /// The reason of the poison record's condition.
    pub poison: String,
}

impl Flood {
    /// The shortest time in which the call budget lets so many calls go.
    pub fn budget_limit(&self) -> Duration {
        let waiting = (figure::FLOOD_CALLS.counted(self.calls).value - AT_ONCE).max(0.0);
        Duration::from_secs_f64(waiting / PER_SECOND)
    }

    /// As figures. Only a flood of 20,000 records over 200 zones may be told so.
    pub fn figures(&self) -> Vec<Figure> {
        let writes = figure::FLOOD_WRITES.counted(self.kubernetes_writes).value;
        let records = figure::FLOOD_WRITES.counted(self.records).value;
        let took = self.took.as_secs_f64();
        let mut figures = vec![
            figure::FLOOD_CALLS.counted(self.calls),
            figure::FLOOD_SECONDS.measured(took),
            figure::FLOOD_WRITES.measured(writes / records),
        ];
        let limit = self.budget_limit().as_secs_f64();
        if limit > 0.0 {
            figures.push(figure::FLOOD_RATIO.measured(took / limit));
        }
        figures
    }
}

/// Applies a hundred records in each of `zones` zones, which exist and are adopted in the same moment, by a tenant for every
/// ten zones, and one record that Cloudflare refuses. `before` runs when all is applied and the controller has not started.
pub fn flood(zones: usize, before: impl FnOnce()) -> Result<Flood, BenchError> {
    simulate_with(WorldOptions::seeded(20), |world| come(world, zones, before)).0
}

async fn come(world: World, zones: usize, before: impl FnOnce()) -> Result<Flood, BenchError> {
    let stand = Stand::new(world);
    let places: Vec<Place> = (0..zones)
        .map(|n| Place {
            namespace: format!("tenant-{:02}", n / ZONES_PER_TENANT),
            zone: format!("z{n:03}"),
            domain: format!("z{n:03}.example"),
        })
        .collect();
    stand.user.open_account(vec![]);
    let seed = Seed {
        zones: places
            .iter()
            .map(|place| ZoneSeed::named(&place.domain, ACCOUNT_ID).on(Plan::Pro))
            .collect(),
        ..Seed::default()
    };
    stand
        .world
        .cloudflare
        .seed(&seed)
        .map_err(|error| BenchError::NotAsMeant(error.to_string()))?;
    stand.user.connect();
    let mut ids: Vec<ObjectId> = vec![account_id()];
    for place in &places {
        ids.push(stand.apply(place.zone_manifest())?);
    }
    for place in &places {
        ids.extend(stand.apply_records(place, RECORDS_PER_ZONE)?);
    }
    let poison = poison(&stand, places.get(zones / 2))?;
    before();

    let mark = stand.mark();
    stand.start("controller", ControllerOptions::default());
    let took = stand.ready(&ids, Duration::from_secs(1), PATIENCE).await?;
    // What was refused says so a call later: kflare looks what stands in its way.
    let told = |world: &World| !world.user().ready(&poison.0).1.is_empty();
    if !stand.world.until(Duration::from_mins(1), told).await {
        return Err(BenchError::NotAsMeant("the poison record says nothing".to_owned()));
    }
    let since = stand.since(&mark);
    for place in places.iter().step_by(10) {
        let there = stand.world.cloudflare.records(&place.domain).unwrap_or_default().len();
        let expected = RECORDS_PER_ZONE + usize::from(place.domain == poison.1);
        if there != expected {
            return Err(BenchError::NotAsMeant(format!(
                "{there} records in {} instead of {expected}",
                place.domain
            )));
        }
    }
    Ok(Flood {
        calls: since.calls.len(),
        took,
        kubernetes_writes: since.kubernetes_writes.len(),
        records: zones * RECORDS_PER_ZONE,
        poison: stand.user.ready(&poison.0).1,
    })
}

/// A CNAME where somebody else's A record is: Cloudflare refuses it, with every batch that it is in. With it, the zone's domain.
fn poison(stand: &Stand, place: Option<&Place>) -> Result<(ObjectId, String), BenchError> {
    let place = place.ok_or_else(|| BenchError::NotAsMeant("a flood needs a zone".to_owned()))?;
    let body = json!({ "name": "poison", "type": "CNAME", "content": "a.example.net" });
    let body = body.as_object().cloned().unwrap_or_default();
    stand
        .world
        .cloudflare
        .foreign_create(&place.domain, &body)
        .map_err(|refusal| BenchError::NotAsMeant(format!("{refusal:?}")))?;
    Ok((stand.apply(place.record_manifest("poison"))?, place.domain.clone()))
}
