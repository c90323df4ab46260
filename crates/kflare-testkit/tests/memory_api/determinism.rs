//! The same seed, the same trace.

use std::time::Duration;

use futures::StreamExt;
use kflare_testkit::life::{Doom, Life};
use kflare_testkit::memory_api::{Fault, FaultRule, ObjectId, Symptom, WatchCut};
use kflare_testkit::trace::{Trace, TraceDetail};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::ResetTimerBackoff;
use kube::runtime::watcher::{self, Event, ExponentialBackoff, watcher};
use serde_json::json;

use super::support::*;

/// A small controller under faults, two lives long, with a user who creates, edits and deletes.
fn run(seed: u64, detail: TraceDetail) -> Trace {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (server, _) = server(|config| {
            config.seed = seed;
            config.latency = Duration::from_millis(1)..=Duration::from_millis(80);
            config.event_delay = Duration::from_millis(1)..=Duration::from_millis(900);
            let cuts = vec![WatchCut::Clean, WatchCut::Gone, WatchCut::ConnectionReset];
            config.watch_lifetime = Some((Duration::from_secs(2)..=Duration::from_secs(30), cuts));
            config.trace = Trace::new(detail);
        });
        let faults = [
            Fault::status(500, "", "broken"),
            Fault::LoseReply(Symptom::ConnectionReset),
        ];
        for fault in faults {
            server.inject(FaultRule::new(fault, |it| it.life != "user" && it.writes()).with_probability(0.2));
        }
        let user = tokio::spawn({
            let server = server.clone();
            async move {
                for round in 0..60_u32 {
                    let id = ObjectId::namespaced::<Gadget>("default", format!("g{}", round % 5));
                    match server.get(&id) {
                        None => drop(server.create(manifest(&id.name, round)).unwrap()),
                        Some(_) if round % 11 == 0 => server.delete(&id).unwrap(),
                        Some(_) => drop(server.edit(&id, |it| it["spec"]["size"] = json!(round)).unwrap()),
                    }
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
        });
        for doom in [Doom::AfterRequest(25), Doom::None] {
            let life = Life::doomed(format!("{doom:?}"), doom);
            let work = controller(server.client(&life), seed);
            drop(tokio::time::timeout(Duration::from_mins(1), life.run(work)).await);
            life.kill();
        }
        user.await.unwrap();
        for object in server.list("gadgets.kflare.dev") {
            assert_eq!(
                object["status"]["phase"],
                format!("size {}", object["spec"]["size"]),
                "it has converged"
            );
        }
        server.trace().clone()
    })
}

/// Reports each gadget's size in its status; goes on until it is dropped.
async fn controller(client: Client, seed: u64) {
    let backoff = ExponentialBackoff::from(
        backon::ExponentialBuilder::default()
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(seed),
    );
    let backoff = ResetTimerBackoff::new(backoff, Duration::from_mins(2));
    let api = gadgets(&client);
    let mut events = watcher(api.clone(), watcher::Config::default().page_size(2))
        .backoff(backoff)
        .boxed();
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(gadget) | Event::InitApply(gadget)) = event else {
            continue;
        };
        let phase = format!("size {}", gadget.spec.size);
        if gadget.status.is_some_and(|status| status.phase == phase) {
            continue;
        }
        let name = gadget.metadata.name.unwrap();
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        loop {
            match api.patch_status(&name, &PatchParams::default(), &patch).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.code == 404 => break,
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let first = run(42, TraceDetail::Lines);
    assert!(first.count() > 200, "{} lines", first.count());
    assert_eq!(first.lines(), run(42, TraceDetail::Lines).lines());
    let digest = run(42, TraceDetail::DigestOnly);
    assert_eq!((digest.digest(), digest.lines().len()), (first.digest(), 0));
    // On another thread, where thread-local state starts afresh.
    let elsewhere = std::thread::spawn(|| run(42, TraceDetail::DigestOnly).digest());
    assert_eq!(elsewhere.join().unwrap(), first.digest());
}

#[test]
fn another_seed_gives_another_trace() {
    let digests: std::collections::BTreeSet<String> =
        (0..8).map(|seed| run(seed, TraceDetail::DigestOnly).digest()).collect();
    assert_eq!(digests.len(), 8);
}
