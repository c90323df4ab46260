//! `kill -9` at every call to Cloudflare and every write to Kubernetes of a story, before and after its effect. The points
//! are counted in undisturbed runs; each is then hit once, in a run of its own, and the next controller takes up the work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use kflare_testkit::cluster::WaitError;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::harness::Extent;
use crate::harness::life::{Life, Setting};
use crate::harness::point::{Call, Moment, Plane, Point};
use crate::harness::site::Site;
use crate::harness::tenant::Tenant;
use crate::harness::wire::{Aim, Grip, Trap};
use crate::story;

/// Tenants whose stories are played at a time. Most of a story is waiting.
const SIDE_BY_SIDE: usize = 8;

/// How many undisturbed runs count the points. What only some of them saw depends on chance.
const COUNTS: usize = 3;

/// So many runs are tried until one comes to a point that every count saw: even such a call may be left out by chance.
const TRIES: usize = 8;

/// One point in so many may be left out by chance.
const MISSED_AT_MOST: usize = 10;

/// After so many failures the other points are not tried: each takes a minute, and what they have in common is known by then.
const ENOUGH: usize = 2 * SIDE_BY_SIDE;

/// How long the last call of a story may take to be seen after the story has ended.
const LAST_CALL: Duration = Duration::from_secs(2);

/// What a run did.
struct Played {
    /// The calls of its first controller.
    calls: BTreeSet<Call>,
    /// How often each kind of write took effect at Cloudflare.
    effects: BTreeMap<String, usize>,
    /// How many of its controllers were killed.
    kills: usize,
}

/// Plays the story of a new tenant, whose controller dies at `trap`. When it fails, says what there is.
async fn run(site: &Site, extent: Extent, trap: Option<&Point>) -> Result<Played, String> {
    let tenant = Tenant::move_in(site, "crash").await;
    let mut lives = Vec::new();
    tenant
        .outcome(&mut lives, async |lives| play(&tenant, extent, trap, lives).await)
        .await
}

async fn play(
    tenant: &Tenant<'_>,
    extent: Extent,
    trap: Option<&Point>,
    lives: &mut Vec<Life>,
) -> Result<Played, WaitError> {
    lives.push(Life::begin(tenant, stuck(trap.map(Trap::fatal))).await?);
    // The one that takes up the work dies too, as soon as it has done something about it.
    let again = Trap {
        aim: Aim::FirstWrite,
        moment: Moment::After,
        grip: Grip::Process,
    };
    let mut next = vec![stuck(None)];
    if extent == Extent::Full {
        next.push(stuck(Some(again)));
    }
    let (end, mut ended) = oneshot::channel::<()>();
    let telling = async {
        let told = story::play(tenant, extent).await;
        let _ = end.send(());
        told
    };
    let first = lives[0].wire.clone();
    let killing = async {
        let mut story_goes_on = true;
        while story_goes_on {
            let wire = lives.last().unwrap().wire.clone();
            tokio::select! {
                biased;
                () = wire.sprung() => {}
                _ = &mut ended => {
                    story_goes_on = false;
                    // The last call of all ends the story, and may do so before it is seen here.
                    if trap.is_none() || timeout(LAST_CALL, first.sprung()).await.is_err() || !wire.has_sprung() {
                        return Ok(());
                    }
                }
            }
            lives.last_mut().unwrap().kill();
            let setting = next.pop().unwrap_or_default();
            lives.push(Life::begin(tenant, setting).await?);
        }
        Ok::<_, WaitError>(())
    };
    let (told, killed) = tokio::join!(telling, killing);
    told?;
    killed?;
    // What it still has to do it does before it ends.
    lives.last_mut().unwrap().stop(tenant).await?;
    Ok(Played {
        calls: first.crossings().into_iter().map(|crossing| crossing.call).collect(),
        effects: tenant.effects(),
        kills: lives.len() - 1,
    })
}

fn stuck(trap: Option<Trap>) -> Setting {
    Setting {
        trap,
        ..Setting::default()
    }
}

/// The calls of undisturbed runs, each with how many of them saw it, and the effects that they all had.
async fn count(site: &Site, extent: Extent) -> (BTreeMap<Call, usize>, BTreeMap<String, usize>) {
    let runs = futures::future::join_all((0..COUNTS).map(|_| run(site, extent, None))).await;
    let mut runs: Vec<Played> = runs
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|told| panic!("{told}"));
    let mut calls = BTreeMap::new();
    for call in runs.iter().flat_map(|run| &run.calls) {
        *calls.entry(call.clone()).or_default() += 1;
    }
    let effects = std::mem::take(&mut runs[0].effects);
    for run in &runs[1..] {
        assert_eq!(run.effects, effects, "effects of undisturbed runs");
    }
    (calls, effects)
}

/// Hits one point: tries at most so many runs, until one comes to it. Tells how many controllers were killed: none, if no run
/// came to a point that chance may leave out. Reads are such: whether an object is asked for alone or found in a list depends on
/// timing. Writes that every count saw are not.
async fn hit(
    site: &Site,
    extent: Extent,
    point: &Point,
    tries: usize,
    effects: &BTreeMap<String, usize>,
) -> Result<usize, String> {
    for _ in 0..tries {
        let played = run(site, extent, Some(point)).await;
        let played = played.map_err(|told| format!("killed {point}: {told}"))?;
        if &played.effects != effects {
            let (is, should) = (&played.effects, effects);
            return Err(format!(
                "killed {point}: effects at Cloudflare are {is:?} and not {should:?}"
            ));
        }
        if played.kills > 0 {
            return Ok(played.kills);
        }
    }
    if tries < TRIES || point.call.only_reads() {
        Ok(0)
    } else {
        Err(format!("no controller came to the point {point} in {TRIES} runs"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_call_and_any_write_it_goes_on_as_if_nothing_had_happened() {
    let (began, extent) = (Instant::now(), Extent::asked_for());
    let site = Site::shared().await;
    let (calls, effects) = count(&site, extent).await;
    let moments = [Moment::Before, Moment::After];
    let points: Vec<(Point, usize)> = calls
        .iter()
        .flat_map(|(call, seen)| moments.map(|moment| (call.clone(), moment, *seen)))
        .map(|(call, moment, seen)| (Point { call, moment }, if seen == COUNTS { TRIES } else { 1 }))
        .collect();
    let of = |plane| calls.keys().filter(|call| call.plane == plane).count();
    let (to_cloudflare, to_kubernetes) = (of(Plane::Cloudflare), of(Plane::Kubernetes));
    assert!(to_cloudflare > 0 && to_kubernetes > 0, "{calls:?}");

    let runs = points
        .iter()
        .map(|(point, tries)| hit(&site, extent, point, *tries, &effects));
    let mut outcomes = stream::iter(runs).buffer_unordered(SIDE_BY_SIDE);
    let (mut tried, mut missed, mut kills, mut failed) = (0, 0, 0, 0);
    while let Some(outcome) = outcomes.next().await {
        tried += 1;
        match outcome {
            Ok(0) => missed += 1,
            Ok(died) => kills += died,
            Err(told) => {
                failed += 1;
                eprintln!("{told}\n");
            }
        }
        if failed == ENOUGH {
            break;
        }
    }
    eprintln!(
        "crash points: {to_cloudflare} calls to Cloudflare and {to_kubernetes} writes to Kubernetes, each before and after its \
         effect: {tried} of {} points tried with {kills} kills in {} s, {failed} failed; {missed} that chance may leave out \
         were not met again",
        points.len(),
        began.elapsed().as_secs(),
    );
    assert_eq!((tried, failed), (points.len(), 0), "points tried, and points failed");
    assert!(
        missed * MISSED_AT_MOST <= tried,
        "{missed} of {tried} points were not met again"
    );
}
