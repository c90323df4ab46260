//! Watches, through `kube`'s own watcher.

use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Secret;
use kflare_testkit::memory_api::{ExpiredWatch, MemoryApi, ObjectId, Verb, WatchCut};
use kube::api::{WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::support::*;

/// The next event in short; errors by their kind.
async fn next<K: ResourceExt>(stream: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin)) -> String {
    let event = tokio::time::timeout(Duration::from_mins(10), stream.next())
        .await
        .expect("an event")
        .unwrap();
    match event {
        Ok(Event::Init) => "init".into(),
        Ok(Event::InitApply(object)) => format!("has {}", object.name_any()),
        Ok(Event::InitDone) => "done".into(),
        Ok(Event::Apply(object)) => format!("apply {}", object.name_any()),
        Ok(Event::Delete(object)) => format!("delete {}", object.name_any()),
        Err(watcher::Error::WatchError(status)) => format!("error {}", status.code),
        Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) => format!("start failed {}", status.code),
        Err(error) => format!("{error:?}"),
    }
}

fn id(name: &str) -> ObjectId {
    ObjectId::namespaced::<Gadget>("default", name)
}

fn count(server: &MemoryApi, verb: Verb) -> usize {
    server
        .requests()
        .iter()
        .filter(|record| record.request.verb == verb)
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_everything_in_order() {
    let (server, client) = server(|_| ());
    server.create(manifest("a", 1)).unwrap();
    let mut events = watcher(gadgets(&client), watcher::Config::default()).boxed();
    for expected in ["init", "has a", "done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    server.create(manifest("b", 1)).unwrap();
    server.edit(&id("a"), |it| it["spec"]["size"] = json!(2)).unwrap();
    server.delete(&id("b")).unwrap();
    server.create(manifest("b", 2)).unwrap();
    for expected in ["apply b", "apply a", "delete b", "apply b"] {
        assert_eq!(next(&mut events).await, expected);
    }
    assert_eq!(server.open_watches(), 1);
    drop(events);
    tokio::task::yield_now().await;
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_resumes_without_loss_or_a_new_list() {
    for cut in [
        WatchCut::Clean,
        WatchCut::UnexpectedEof,
        WatchCut::HalfLine,
        WatchCut::ConnectionReset,
    ] {
        let (server, client) = server(|_| ());
        let mut events = watcher(gadgets(&client), watcher::Config::default())
            .default_backoff()
            .boxed();
        assert_eq!([next(&mut events).await, next(&mut events).await], ["init", "done"]);
        server.create(manifest("a", 1)).unwrap();
        assert_eq!(next(&mut events).await, "apply a");
        server.cut_watches("gadgets.kflare.dev", cut);
        server.create(manifest("b", 1)).unwrap();
        let mut seen = next(&mut events).await;
        if cut == WatchCut::ConnectionReset {
            assert!(seen.contains("WatchFailed"), "{seen}");
            seen = next(&mut events).await;
        }
        assert_eq!(seen, "apply b", "{cut:?}");
        assert_eq!(
            (count(&server, Verb::List), count(&server, Verb::Watch)),
            (1, 2),
            "{cut:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_again() {
    let (server, client) = server(|_| ());
    let mut events = watcher(gadgets(&client), watcher::Config::default())
        .default_backoff()
        .boxed();
    assert_eq!([next(&mut events).await, next(&mut events).await], ["init", "done"]);
    server.create(manifest("a", 1)).unwrap();
    assert_eq!(next(&mut events).await, "apply a");
    // While nobody watches, the past is forgotten.
    server.cut_watches("gadgets.kflare.dev", WatchCut::Clean);
    server.create(manifest("b", 1)).unwrap();
    server.delete(&id("a")).unwrap();
    server.compact();
    for expected in ["error 410", "init", "has b", "done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    // A watch that is open already can be told, too.
    server.create(manifest("c", 1)).unwrap();
    assert_eq!(next(&mut events).await, "apply c");
    server.cut_watches("gadgets.kflare.dev", WatchCut::Gone);
    for expected in ["error 410", "init", "has b", "has c", "done"] {
        assert_eq!(next(&mut events).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_history_expires_by_itself() {
    let (server, client) = server(|config| config.history_limit = 3);
    let mut events = watcher(gadgets(&client), watcher::Config::default())
        .default_backoff()
        .boxed();
    assert_eq!([next(&mut events).await, next(&mut events).await], ["init", "done"]);
    server.create(manifest("a", 1)).unwrap();
    assert_eq!(next(&mut events).await, "apply a");
    for name in ["b", "c", "d", "e"] {
        server.create(manifest(name, 1)).unwrap();
    }
    for expected in ["error 410", "init", "has a", "has b", "has c", "has d", "has e", "done"] {
        assert_eq!(next(&mut events).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_can_be_told_by_http_status() {
    let (server, client) = server(|config| config.expired_watch = ExpiredWatch::HttpStatus);
    let mut events = watcher(gadgets(&client), watcher::Config::default())
        .default_backoff()
        .boxed();
    assert_eq!([next(&mut events).await, next(&mut events).await], ["init", "done"]);
    server.create(manifest("a", 1)).unwrap();
    assert_eq!(next(&mut events).await, "apply a");
    server.cut_watches("gadgets.kflare.dev", WatchCut::Clean);
    server.create(manifest("b", 1)).unwrap();
    server.compact();
    for _ in 0..3 {
        assert_eq!(
            next(&mut events).await,
            "start failed 410",
            "kube asks for the same version again"
        );
    }
    assert_eq!(count(&server, Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_carry_a_quiet_watch_past_a_compaction() {
    let (server, client) = server(|_| ());
    let mut events = watcher(gadgets(&client), watcher::Config::default())
        .default_backoff()
        .boxed();
    assert_eq!([next(&mut events).await, next(&mut events).await], ["init", "done"]);
    // Changes of another kind move the version on; only bookmarks tell this watch.
    let busy = async {
        for name in ["s1", "s2"] {
            server
                .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}))
                .unwrap();
        }
        tokio::time::sleep(Duration::from_secs(61)).await;
        server.compact();
        server.cut_watches("gadgets.kflare.dev", WatchCut::Clean);
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.create(manifest("a", 1)).unwrap();
    };
    let (seen, ()) = tokio::join!(next(&mut events), busy);
    assert_eq!(seen, "apply a", "the bookmark's version was still good");
    assert_eq!(count(&server, Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn selectors_turn_changes_into_comings_and_goings() {
    let (server, client) = server(|_| ());
    let label = |value: &'static str| move |it: &mut Value| it["metadata"]["labels"] = json!({"app": value});
    server.create(manifest("a", 1)).unwrap();
    server.create(manifest("b", 1)).unwrap();
    let start = server.revision();
    let api = gadgets(&client);
    let mut events = api
        .watch(&WatchParams::default().labels("app=web"), &start.to_string())
        .await
        .unwrap()
        .boxed();
    server.edit(&id("a"), label("web")).unwrap();
    server.edit(&id("a"), |it| it["spec"]["size"] = json!(2)).unwrap();
    server.edit(&id("b"), label("db")).unwrap();
    server.edit(&id("a"), label("db")).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(it) => format!("added {} {}", it.name_any(), it.resource_version().unwrap()),
            WatchEvent::Modified(it) => format!("modified {} {}", it.name_any(), it.resource_version().unwrap()),
            WatchEvent::Deleted(it) => format!(
                "deleted {} {} {:?}",
                it.name_any(),
                it.resource_version().unwrap(),
                it.labels()
            ),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(
        seen,
        [
            format!("added a {}", start + 1),
            format!("modified a {}", start + 2),
            format!("deleted a {} {{\"app\": \"web\"}}", start + 4),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn metadata_is_watched_without_the_rest() {
    let (server, client) = server(|_| ());
    let create = |name: &str| {
        let manifest =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"k": "aGlkZGVu"}});
        server.create(manifest).unwrap()
    };
    create("a");
    let secrets: Api<PartialObjectMeta<Secret>> = Api::default_namespaced(client);
    let mut events = watcher(secrets, watcher::Config::default()).boxed();
    for expected in ["init", "has a", "done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    create("b");
    assert_eq!(next(&mut events).await, "apply b");
    let asked: Vec<String> = server
        .trace()
        .lines()
        .into_iter()
        .filter(|line| line.contains("user GET"))
        .collect();
    assert_eq!(asked.len(), 2);
    assert!(
        asked.iter().all(|line| line.contains("as=PartialObjectMetadata")),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_a_marked_bookmark() {
    let (server, client) = server(|_| ());
    server.create(manifest("a", 1)).unwrap();
    let mut events = watcher(gadgets(&client), watcher::Config::default().streaming_lists()).boxed();
    for expected in ["init", "has a", "done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    server.create(manifest("b", 1)).unwrap();
    assert_eq!(next(&mut events).await, "apply b");
    assert_eq!(count(&server, Verb::List), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_keeps_up_with_a_flaky_server() {
    let (server, client) = server(|config| {
        config.event_delay = Duration::from_millis(1)..=Duration::from_secs(2);
        let cuts = vec![
            WatchCut::Clean,
            WatchCut::UnexpectedEof,
            WatchCut::HalfLine,
            WatchCut::Gone,
        ];
        config.watch_lifetime = Some((Duration::from_secs(1)..=Duration::from_secs(20), cuts));
        config.history_limit = 20;
    });
    let (store, writer) = reflector::store();
    let stream = watcher(gadgets(&client), watcher::Config::default().page_size(3)).default_backoff();
    let reflecting = tokio::spawn(stream.reflect(writer).for_each(|_| std::future::ready(())));
    for round in 0..200_u32 {
        let name = format!("g{}", round % 7);
        match server.get(&id(&name)) {
            None => drop(server.create(manifest(&name, round)).unwrap()),
            Some(_) if round % 3 == 0 => server.delete(&id(&name)).unwrap(),
            Some(_) => drop(server.edit(&id(&name), |it| it["spec"]["size"] = json!(round)).unwrap()),
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let objects = server.list("gadgets.kflare.dev");
    assert_eq!(store.len(), objects.len());
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        let cached = store.get(&ObjectRef::new(name).within("default")).expect(name);
        assert_eq!(
            cached.resource_version().unwrap(),
            object["metadata"]["resourceVersion"]
        );
    }
    assert!(count(&server, Verb::Watch) > 10, "the watches were cut");
    assert!(count(&server, Verb::List) > 3, "some had to list again");
    reflecting.abort();
}
