//! `kill -9` at every call to Cloudflare and every write to Kubernetes of a story, before and after its effect. The points
//! are counted in an undisturbed run; each is then hit once, in a run of its own, and the next controller takes up the work.

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

/// A run in which calls come in another order, or fewer of them, may never come to a point. So often it is tried anew.
const TRIES: usize = 4;

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

/// Hits one point: at most [`TRIES`] runs, until one comes to it.
async fn hit(site: &Site, extent: Extent, point: &Point, effects: &BTreeMap<String, usize>) -> Result<usize, String> {
    for _ in 0..TRIES {
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
    Err(format!("no controller came to the point {point} in {TRIES} runs"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_call_and_any_write_it_goes_on_as_if_nothing_had_happened() {
    let (began, extent) = (Instant::now(), Extent::asked_for());
    let site = Site::shared().await;
    let undisturbed = run(&site, extent, None).await.unwrap_or_else(|told| panic!("{told}"));
    let calls = &undisturbed.calls;
    let points: Vec<Point> = calls
        .iter()
        .flat_map(|call| {
            [Moment::Before, Moment::After].map(|moment| Point {
                call: call.clone(),
                moment,
            })
        })
        .collect();
    let of = |plane| calls.iter().filter(|call| call.plane == plane).count();
    let (to_cloudflare, to_kubernetes) = (of(Plane::Cloudflare), of(Plane::Kubernetes));
    assert!(to_cloudflare > 0 && to_kubernetes > 0, "{calls:?}");

    let runs = points
        .iter()
        .map(|point| hit(&site, extent, point, &undisturbed.effects));
    let mut outcomes = stream::iter(runs).buffer_unordered(SIDE_BY_SIDE);
    let (mut tried, mut kills, mut failed) = (0, 0, 0);
    while let Some(outcome) = outcomes.next().await {
        tried += 1;
        match outcome {
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
         effect: {tried} of {} points tried with {kills} kills in {} s, {failed} failed",
        points.len(),
        began.elapsed().as_secs(),
    );
    assert_eq!((tried, failed), (points.len(), 0), "points tried, and points failed");
}
