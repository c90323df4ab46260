//! Faults, and the end of a life.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kflare_testkit::life::{Doom, Life};
use kflare_testkit::memory_api::{Fault, FaultRule, ObjectId, RequestInfo, Symptom, Verb};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, watcher};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::support::*;

fn id(name: &str) -> ObjectId {
    ObjectId::namespaced::<Gadget>("default", name)
}

#[tokio::test(start_paused = true)]
async fn faults_strike_what_they_should_and_no_more() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let rule = FaultRule::new(Fault::status(500, "InternalError", "etcd is away"), |it| {
        it.verb == Verb::Create
    });
    server.inject(rule.after(1).times(2));
    api.create(&PostParams::default(), &gadget("one", 1)).await.unwrap();
    for _ in 0..2 {
        let refused = api.create(&PostParams::default(), &gadget("two", 1)).await;
        assert_eq!(refusal(refused), (500, "InternalError".into()));
        api.list(&ListParams::default()).await.unwrap();
    }
    assert!(server.get(&id("two")).is_none());
    api.create(&PostParams::default(), &gadget("two", 1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_probability_comes_from_the_seed() {
    let run = async |seed| {
        let (server, client) = server(|config| config.seed = seed);
        server.inject(FaultRule::new(Fault::status(503, "", "busy"), |_| true).with_probability(0.5));
        let mut hits = Vec::new();
        for _ in 0..64 {
            hits.push(gadgets(&client).list(&ListParams::default()).await.is_err());
        }
        hits
    };
    let hits = run(1).await;
    assert_eq!(hits, run(1).await);
    assert_ne!(hits, run(2).await);
    let count = hits.iter().filter(|&&hit| hit).count();
    assert!((16..=48).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn replies_and_requests_get_lost() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let about = |name: &'static str| move |it: &RequestInfo| it.writes() && it.body.contains(name);
    server.inject(FaultRule::new(
        Fault::LoseReply(Symptom::Silence),
        about("silent-reply"),
    ));
    server.inject(FaultRule::new(
        Fault::LoseRequest(Symptom::Silence),
        about("silent-request"),
    ));
    server.inject(FaultRule::new(
        Fault::LoseReply(Symptom::ConnectionReset),
        about("reset-reply"),
    ));
    server.inject(FaultRule::new(
        Fault::LoseRequest(Symptom::ConnectionReset),
        about("reset-request"),
    ));
    for (name, applied) in [("silent-reply", true), ("silent-request", false)] {
        timeout(
            Duration::from_secs(30),
            api.create(&PostParams::default(), &gadget(name, 1)),
        )
        .await
        .unwrap_err();
        assert_eq!(server.get(&id(name)).is_some(), applied, "{name}");
    }
    for (name, applied) in [("reset-reply", true), ("reset-request", false)] {
        let error = api.create(&PostParams::default(), &gadget(name, 1)).await.unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
        assert_eq!(server.get(&id(name)).is_some(), applied, "{name}");
    }
    server.heal();
    api.create(&PostParams::default(), &gadget("silent-request", 1))
        .await
        .unwrap();
}

/// As seen of a real API server (kubernetes/kubernetes#77988).
#[tokio::test(start_paused = true)]
async fn a_delete_may_be_overtaken_by_the_first_finalizer() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    server.inject(FaultRule::new(Fault::Overtake(Duration::from_millis(5)), |it| {
        it.verb == Verb::Patch
    }));
    api.create(&PostParams::default(), &gadget("new", 1)).await.unwrap();
    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    let held = api.patch("new", &PatchParams::default(), &finalizer).await.unwrap();
    assert_eq!(held.metadata.finalizers.unwrap_or_default(), ["example.com/hold"]);
    sleep(Duration::from_millis(10)).await;
    assert_eq!(server.get(&id("new")), None, "gone, finalizer or not");
    let last = &server.overtaken()[0]["metadata"];
    assert_eq!(last["finalizers"], json!(["example.com/hold"]));
    assert_eq!(
        last["deletionTimestamp"],
        json!(null),
        "nobody was told that it would go"
    );
    // Later a finalizer holds.
    let mut old = gadget("old", 1);
    old.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    api.create(&PostParams::default(), &old).await.unwrap();
    let size = Patch::Merge(json!({ "spec": { "size": 2 } }));
    api.patch("old", &PatchParams::default(), &size).await.unwrap();
    sleep(Duration::from_millis(10)).await;
    assert!(server.get(&id("old")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_effect_comes_before_its_delay() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    server.inject(FaultRule::new(Fault::Delay(Duration::from_secs(20)), RequestInfo::writes).times(2));
    let created = gadget("one", 1);
    timeout(Duration::from_secs(1), api.create(&PostParams::default(), &created))
        .await
        .unwrap_err();
    assert!(server.get(&id("one")).is_some(), "giving up does not undo it");
    let start = Instant::now();
    api.create(&PostParams::default(), &gadget("two", 1)).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_interfere_at_the_worst_moment() {
    let (server, client) = server(|_| ());
    server.create(manifest("one", 1)).unwrap();
    let once = AtomicBool::new(true);
    server.before_each(move |server, request| {
        if request.verb == Verb::Patch && once.swap(false, Ordering::SeqCst) {
            server.edit(&id("one"), |it| it["spec"]["size"] = json!(100)).unwrap();
        }
    });
    let api = gadgets(&client);
    let seen = api.get("one").await.unwrap();
    let patch =
        json!({"metadata": {"resourceVersion": seen.metadata.resource_version, "finalizers": ["kflare.dev/f"]}});
    let refused = api.patch("one", &PatchParams::default(), &Patch::Merge(&patch)).await;
    assert_eq!(refusal(refused), (409, "Conflict".into()));
}

#[tokio::test(start_paused = true)]
async fn a_life_dies_at_its_nth_request() {
    for (doom, applied) in [(Doom::BeforeRequest(3), 2), (Doom::AfterRequest(3), 3)] {
        let (server, _) = server(|_| ());
        let life = Life::doomed("first", doom);
        let client = server.client(&life);
        let done = life.run(async {
            for number in 0..10 {
                gadgets(&client)
                    .create(&PostParams::default(), &gadget(&format!("g{number}"), 1))
                    .await
                    .unwrap();
            }
        });
        assert!(done.await.is_none());
        assert_eq!(server.list("gadgets.kflare.dev").len(), applied, "{doom:?}");
        assert_eq!(life.requests(), 3);
        let next = server.client(&Life::new("second"));
        assert_eq!(
            gadgets(&next).list(&ListParams::default()).await.unwrap().items.len(),
            applied
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_dead_cannot_touch_the_world() {
    let (server, _) = server(|_| ());
    let life = Life::new("first");
    let client = server.client(&life);
    let mut events = watcher(gadgets(&client), watcher::Config::default()).boxed();
    events.next().await.unwrap().unwrap();
    events.next().await.unwrap().unwrap();
    let finished = Arc::new(AtomicBool::new(false));
    // A task the life leaves running, one request under way and one to come.
    let left_running = tokio::spawn({
        let (api, finished) = (gadgets(&client), Arc::clone(&finished));
        async move {
            api.create(&PostParams::default(), &gadget("under-way", 1))
                .await
                .unwrap();
            api.create(&PostParams::default(), &gadget("to-come", 1)).await.unwrap();
            finished.store(true, Ordering::SeqCst);
        }
    });
    while server.get(&id("under-way")).is_none() {
        tokio::task::yield_now().await;
    }
    life.kill();
    server.create(manifest("later", 1)).unwrap();
    timeout(Duration::from_mins(10), events.next())
        .await
        .expect_err("a dead life hears nothing");
    assert!(server.get(&id("to-come")).is_none());
    assert!(!finished.load(Ordering::SeqCst));
    left_running.abort();
}
