//! Batches: gathered, sent, handed on; nobody is lost when a pass is cut off.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kflare_cloudflare::{
    Client, Error, Metrics as ClientMetrics, Pool, PoolOptions, Transport, TransportError, TransportErrorKind,
};
use kflare_engine::{
    Change, Deleted, Desired, Kind, KindDescriptor, Listing, NaturalKey, Parents, Reference, Remote, Site, SpecError,
    Stored,
    batch::{Batches, GATHER},
    errors::WriteError,
    index::CollectionKey,
    kind::{BatchWriter, Write, Written},
    metrics::Metrics,
};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

/// A kind whose batches take a second and hold three writes; it notes what each batch held.
struct Fake {
    descriptor: KindDescriptor,
    sent: Mutex<Vec<Vec<String>>>,
}

fn remote(name: &str) -> Remote {
    Remote {
        id: format!("id of {name}"),
        key: NaturalKey {
            group: name.into(),
            member: String::new(),
        },
        ..Remote::default()
    }
}

fn name(write: &Write) -> String {
    match write {
        Write::Create { desired } => desired.key.group.clone(),
        Write::Update { id, .. } | Write::Delete { id } => id.clone(),
    }
}

#[async_trait]
impl Kind for Fake {
    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, _: &Value) -> Result<Vec<Reference>, SpecError> {
        Ok(Vec::new())
    }

    fn scope(&self, _: &Value, _: &Parents) -> Result<String, SpecError> {
        Ok("zone".into())
    }

    fn desired(&self, _: &Value, _: &Parents) -> Result<Desired, SpecError> {
        unreachable!("batches decide nothing")
    }

    async fn list(&self, _: &Client, _: &str) -> Result<Listing, Error> {
        Ok(Listing::default())
    }

    async fn find(&self, _: &Client, _: &str, _: &NaturalKey) -> Result<Vec<Remote>, Error> {
        Ok(Vec::new())
    }

    async fn get(&self, _: &Client, _: &str, _: &str) -> Result<Option<Remote>, Error> {
        Ok(None)
    }

    async fn create(&self, _: &Client, _: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        self.note(vec![desired.key.group.clone()]).await;
        Ok(remote(&desired.key.group).into())
    }

    async fn update(&self, _: &Client, _: Site<'_>, id: &str, _: &Desired, _: &[Change]) -> Result<Stored, Error> {
        Ok(remote(id).into())
    }

    async fn delete(&self, _: &Client, _: Site<'_>, _: &str) -> Result<Deleted, Error> {
        Ok(Deleted::default())
    }

    fn batch(&self) -> Option<&dyn BatchWriter> {
        Some(self)
    }
}

#[async_trait]
impl BatchWriter for Fake {
    fn limit(&self) -> NonZeroUsize {
        NonZeroUsize::new(3).unwrap()
    }

    async fn write(&self, _: &Client, _: &str, writes: &[Write]) -> Result<Vec<Written>, Error> {
        let names: Vec<String> = writes.iter().map(name).collect();
        self.note(names.clone()).await;
        Ok(names.iter().map(|name| Written::Stored(remote(name).into())).collect())
    }
}

impl Fake {
    fn new() -> Self {
        let descriptor = KindDescriptor::new("Fake", "fakes", "Fake", "fakes");
        Self {
            descriptor,
            sent: Mutex::default(),
        }
    }

    async fn note(&self, names: Vec<String>) {
        self.sent.lock().unwrap().push(names);
        sleep(Duration::from_secs(1)).await;
    }

    fn sent(&self) -> Vec<Vec<String>> {
        self.sent.lock().unwrap().clone()
    }
}

struct Stage {
    kind: Fake,
    client: Client,
    batches: Batches,
    key: CollectionKey,
}

fn stage() -> Arc<Stage> {
    let transport = Transport::new(tower::service_fn(async |_| {
        Err::<http::Response<bytes::Bytes>, _>(TransportError::from(TransportErrorKind::NotSent))
    }));
    let pool = Pool::new(transport, PoolOptions::default(), ClientMetrics::unregistered());
    Arc::new(Stage {
        kind: Fake::new(),
        client: pool.client("main", ["a", "word"].join("-").into()),
        batches: Batches::new(Metrics::unregistered()),
        key: CollectionKey {
            account: "main".into(),
            collection: "fakes".into(),
            scope: "zone".into(),
        },
    })
}

fn write(stage: &Arc<Stage>, name: &str) -> BoxFuture<'static, Result<String, WriteError>> {
    let (stage, name) = (stage.clone(), name.to_owned());
    Box::pin(async move {
        let key = NaturalKey {
            group: name,
            member: String::new(),
        };
        let desired = Desired {
            key,
            exclusive: false,
            body: Map::from_iter([("a".to_owned(), json!(1))]),
            ..Desired::default()
        };
        match stage
            .batches
            .write(&stage.key, None, &stage.kind, &stage.client, Write::Create { desired })
            .await?
        {
            Written::Stored(stored) => Ok(stored.remote.id),
            Written::Deleted(_) => panic!("nothing was deleted"),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn what_gathers_while_a_batch_is_under_way_goes_at_once_and_each_has_its_own_outcome() {
    let stage = stage();
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let mut writes: FuturesUnordered<_> = names.iter().map(|name| write(&stage, name)).collect();
    let began = tokio::time::Instant::now();
    let mut ids = Vec::new();
    while let Some(id) = writes.next().await {
        ids.push(id.unwrap());
    }
    ids.sort();
    assert_eq!(ids, names.map(|name| format!("id of {name}")));
    assert_eq!(stage.kind.sent().iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    // Full at once, so nothing was waited for; three calls of a second.
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_leaves_nobody_waiting() {
    let stage = stage();
    let mut leader = write(&stage, "leader");
    let follower = tokio::spawn(write(&stage, "follower"));
    // The leader gathers and is in the middle of its call when its pass is cut off.
    assert!(timeout(GATHER + Duration::from_millis(500), &mut leader).await.is_err());
    drop(leader);
    let lost = timeout(Duration::from_secs(5), follower)
        .await
        .expect("it does not wait for ever")
        .unwrap();
    assert!(lost.unwrap_err().outcome_unknown());
    assert_eq!(
        timeout(Duration::from_secs(5), write(&stage, "next"))
            .await
            .unwrap()
            .unwrap(),
        "id of next"
    );
}

#[tokio::test(start_paused = true)]
async fn the_lead_goes_past_passes_that_were_cut_off() {
    let stage = stage();
    let first = tokio::spawn(write(&stage, "first"));
    sleep(GATHER + Duration::from_millis(100)).await;
    let mut gone = write(&stage, "gone");
    assert!(
        timeout(Duration::from_millis(1), &mut gone).await.is_err(),
        "it is queued"
    );
    let last = tokio::spawn(write(&stage, "last"));
    sleep(Duration::from_millis(100)).await;
    drop(gone);
    assert_eq!(first.await.unwrap().unwrap(), "id of first");
    assert_eq!(
        timeout(Duration::from_secs(5), last).await.unwrap().unwrap().unwrap(),
        "id of last"
    );
    assert!(
        stage.kind.sent().iter().flatten().all(|name| name != "gone"),
        "nobody waits for it: {:?}",
        stage.kind.sent()
    );
}

/// A tenant in a loop must not use up the budget that it shares with others.
#[tokio::test(start_paused = true)]
async fn a_container_that_is_written_without_end_slows_down_to_a_call_every_three_seconds() {
    let stage = stage();
    let began = tokio::time::Instant::now();
    for _ in 0..100 {
        write(&stage, "again").await.unwrap();
    }
    let took = began.elapsed().as_secs();
    // Twenty at once; the others at their pace.
    assert!((237..=245).contains(&took), "{took} s");
}
