//! The whole controller on a virtual clock: what it does, and that one seed does it twice in the same way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::{sync::Arc, time::Duration};

use kflare_engine::policy::DriftCheck;
use kflare_sim::{Fault, FaultMatch, FaultSpec};
use kflare_testkit::{
    life::{Doom, Life},
    simulation::{ControllerOptions, User, World, simulate},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

const MINUTE: Duration = Duration::from_mins(1);

fn start(world: &World, life: &Life) -> tokio::task::JoinHandle<()> {
    let (world, life) = (world.clone(), life.clone());
    tokio::spawn(async move {
        let ended = world.run_controller(&life, ControllerOptions::default()).await;
        world.note(format!(
            "controller {} ended: {}",
            life.name(),
            if ended.is_some() { "by itself" } else { "killed" }
        ));
    })
}

fn all_ready(world: &World, records: &[&str]) -> bool {
    let user = world.user();
    records.iter().all(|name| user.is_ready(&User::record_id(name)))
}

fn zone_of(world: &World) -> String {
    world
        .cloudflare
        .zones()
        .first()
        .and_then(|zone| zone["id"].as_str())
        .unwrap_or_default()
        .to_owned()
}

fn contents(world: &World) -> Vec<(String, String, u64)> {
    let records = world.cloudflare.records(&zone_of(world)).unwrap_or_default();
    let mut all: Vec<_> = records
        .iter()
        .map(|it| {
            let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
            (
                format!("{} {}", text("type"), text("name")),
                text("content"),
                it["ttl"].as_u64().unwrap_or_default(),
            )
        })
        .collect();
    all.sort();
    all
}

fn set_up(world: &World) {
    let user = world.user();
    user.open_account(vec![]);
    user.connect();
    user.zone("example", "example.com");
    for number in 1..=5 {
        user.record(
            &format!("a{number}"),
            "example",
            json!({ "name": format!("a{number}"), "type": "A", "content": format!("192.0.2.{number}") }),
        );
    }
}

const FIVE: [&str; 5] = ["a1", "a2", "a3", "a4", "a5"];

/// Create, drift, a lost reply, a kill and a restart, and the end of everything.
async fn a_life_with_troubles(world: World) -> Vec<(String, String, u64)> {
    set_up(&world);
    let first = Life::new("first");
    start(&world, &first);
    assert!(
        world.until(5 * MINUTE, |world| all_ready(world, &FIVE)).await,
        "created"
    );

    // Somebody edits a record behind kflare's back.
    let zone = zone_of(&world);
    let id = world.cloudflare.records(&zone).unwrap()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ttl = serde_json::Map::from_iter([("ttl".to_owned(), json!(300))]);
    world.cloudflare.foreign_patch(&zone, &id, &ttl).unwrap();
    let corrected = |world: &World| contents(world).iter().all(|(_, _, ttl)| *ttl == 1);
    assert!(world.until(20 * MINUTE, corrected).await, "drift is put right");

    // The answer to a create is lost.
    let lost = FaultSpec::new(
        FaultMatch::route("POST", "/zones/{zone_id}/dns_records"),
        Fault::DropAfter { dropped: None },
    );
    world.cloudflare.add_fault(lost.times(1)).unwrap();
    world.user().record(
        "b1",
        "example",
        json!({ "name": "b1", "type": "TXT", "content": "v=1" }),
    );
    assert!(
        world.until(20 * MINUTE, |world| all_ready(world, &["b1"])).await,
        "found again"
    );

    // The process dies right after the next create had its effect.
    first.kill();
    let second = Life::doomed("second", Doom::AfterRequest(40));
    start(&world, &second);
    world.user().record(
        "b2",
        "example",
        json!({ "name": "b2", "type": "A", "content": "192.0.2.99" }),
    );
    world.until(5 * MINUTE, |_| !second.is_alive()).await;
    second.kill();
    let third = Life::new("third");
    start(&world, &third);
    assert!(
        world.until(20 * MINUTE, |world| all_ready(world, &["b2"])).await,
        "after the restart"
    );
    let end = contents(&world);

    world.user().delete_all();
    let gone = |world: &World| {
        let left = |kind: &str| world.api.list(&format!("{kind}.kflare.dev")).len();
        left("dnsrecords") + left("zones") + left("cloudflareaccounts") + world.api.list("secrets").len() == 0
    };
    assert!(world.until(10 * MINUTE, gone).await, "deleted in one go");
    assert_eq!(world.cloudflare.zones(), Vec::<Value>::new());
    end
}

#[test]
fn one_seed_gives_one_trace_and_another_seed_another() {
    let (end, trace) = simulate(7, a_life_with_troubles);
    let names: Vec<_> = end.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "A a1.example.com",
            "A a2.example.com",
            "A a3.example.com",
            "A a4.example.com",
            "A a5.example.com",
            "A b2.example.com",
            "TXT b1.example.com"
        ],
        "each exactly once"
    );
    let (again, same) = simulate(7, a_life_with_troubles);
    assert_eq!(end, again);
    for (number, (a, b)) in trace.iter().zip(&same).enumerate() {
        assert_eq!(a, b, "line {number}");
    }
    assert_eq!(trace.len(), same.len());
    assert!(trace.len() > 200, "{} lines", trace.len());
    let (_, other) = simulate(8, a_life_with_troubles);
    assert_ne!(trace, other);
}

#[test]
fn nothing_is_written_at_rest_and_a_restart_writes_nothing() {
    simulate(1, |world| async move {
        set_up(&world);
        let first = Life::new("first");
        start(&world, &first);
        assert!(world.until(5 * MINUTE, |world| all_ready(world, &FIVE)).await);
        world.pass_time(2 * MINUTE).await;
        let (revision, calls) = (world.api.revision(), world.cloudflare.calls().len());
        world.pass_time(120 * MINUTE).await;
        assert_eq!(world.api.revision(), revision, "no write in two hours");
        let since = &world.cloudflare.calls()[calls..];
        assert!(since.iter().all(|call| call.method == "GET"), "{since:#?}");
        // Twelve checks of one zone's records, of one zone, and of one account.
        assert!(since.len() <= 13 * 4, "{} calls", since.len());

        first.kill();
        let calls = world.cloudflare.calls().len();
        let second = Life::new("second");
        start(&world, &second);
        world.pass_time(5 * MINUTE).await;
        assert_eq!(world.api.revision(), revision, "a restart writes nothing");
        let since = &world.cloudflare.calls()[calls..];
        assert!(
            since.iter().all(|call| call.method == "GET") && since.len() <= 5,
            "{since:#?}"
        );
    });
}

// Field case 143.
#[test]
fn a_standby_takes_over_at_once_after_a_clean_stop_and_within_twelve_seconds_after_a_kill() {
    simulate(3, |world| async move {
        set_up(&world);
        let stop = Arc::new(Notify::new());
        let one = Life::new("one");
        let replica = |name: &str| ControllerOptions {
            drift_check: DriftCheck::Off,
            replica: Some(name.to_owned()),
            ..ControllerOptions::default()
        };
        let first = {
            let (world, one, stop, options) = (world.clone(), one.clone(), stop.clone(), replica("one"));
            tokio::spawn(async move { world.run_controller_until(&one, options, stop).await })
        };
        assert!(world.until(5 * MINUTE, |world| all_ready(world, &FIVE)).await);
        let (two, three) = (Life::new("two"), Life::new("three"));
        for life in [&two, &three] {
            let (world, life, options) = (world.clone(), life.clone(), replica(life.name()));
            tokio::spawn(async move { world.run_controller(&life, options).await });
        }
        world.pass_time(MINUTE).await;
        stop.notify_one();
        first.await.unwrap().unwrap().unwrap();
        world.user().record(
            "c1",
            "example",
            json!({ "name": "c1", "type": "A", "content": "192.0.2.7" }),
        );
        assert!(
            world
                .until(Duration::from_secs(3), |world| all_ready(world, &["c1"]))
                .await,
            "after a clean stop"
        );

        let holder = |world: &World| {
            world.api.list("leases.coordination.k8s.io")[0]["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let leader = if holder(&world) == "two" { two } else { three };
        leader.kill();
        world.user().record(
            "c2",
            "example",
            json!({ "name": "c2", "type": "A", "content": "192.0.2.8" }),
        );
        assert!(
            world
                .until(Duration::from_secs(13), |world| all_ready(world, &["c2"]))
                .await,
            "after a kill"
        );
    });
}
