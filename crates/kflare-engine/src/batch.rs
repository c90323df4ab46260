//! Writes gathered into one call. The first writer of a container waits a moment for others, sends, and hands each its own
//! outcome; while a call is under way the next batch gathers. If a batch is refused as a whole it is split until the
//! guilty entries stand alone, and the others go through.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use kflare_cloudflare::{Client, Error};
use tokio::sync::{Notify, oneshot};

use crate::{
    errors::WriteError,
    index::CollectionKey,
    kind::{BatchWriter, Kind, Write, Written},
    metrics::Metrics,
};

/// How long the first of a batch waits for others.
pub const GATHER: Duration = Duration::from_millis(200);

type Outcome = Result<Written, WriteError>;

struct Entry {
    write: Write,
    reply: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct Pending {
    entries: Vec<Entry>,
    led: bool,
    full: Arc<Notify>,
}

/// See the module.
pub struct Batches {
    pending: Mutex<BTreeMap<CollectionKey, Pending>>,
    metrics: Metrics,
}

/// Ends the leadership of a batch whatever happens to its leader, so that the next writer leads.
struct Lead<'a> {
    batches: &'a Batches,
    key: CollectionKey,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut pending = self.batches.pending();
        if let Some(queue) = pending.get_mut(&self.key) {
            queue.led = false;
            if queue.entries.is_empty() {
                pending.remove(&self.key);
            }
        }
    }
}

impl Batches {
    /// No batch yet.
    pub fn new(metrics: Metrics) -> Self {
        Self {
            pending: Mutex::new(BTreeMap::new()),
            metrics,
        }
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<CollectionKey, Pending>> {
        self.pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes, alone or with others.
    pub async fn write(&self, key: &CollectionKey, kind: &dyn Kind, client: &Client, write: Write) -> Outcome {
        let Some(writer) = kind.batch() else {
            return write_alone(kind, client, &key.scope, &write).await;
        };
        let (reply, outcome) = oneshot::channel();
        let (leads, full) = {
            let mut pending = self.pending();
            let queue = pending.entry(key.clone()).or_default();
            queue.entries.push(Entry { write, reply });
            if queue.entries.len() >= writer.limit().get() {
                queue.full.notify_one();
            }
            (!std::mem::replace(&mut queue.led, true), queue.full.clone())
        };
        if leads {
            let lead = Lead {
                batches: self,
                key: key.clone(),
            };
            let _ = tokio::time::timeout(GATHER, full.notified()).await;
            self.lead(key, kind, writer, client).await;
            drop(lead);
        }
        // A leader whose pass was cut off leaves its followers without an answer: what became of the call is unknown.
        outcome.await.unwrap_or(Err(WriteError::Lost))
    }

    async fn lead(&self, key: &CollectionKey, kind: &dyn Kind, writer: &dyn BatchWriter, client: &Client) {
        loop {
            let entries = {
                let mut pending = self.pending();
                let Some(queue) = pending.get_mut(key) else { return };
                let many = queue.entries.len().min(writer.limit().get());
                queue.entries.drain(..many).collect::<Vec<_>>()
            };
            if entries.is_empty() {
                return;
            }
            let (batch, replies): (Vec<_>, Vec<_>) = entries.into_iter().map(|it| (it.write, it.reply)).unzip();
            let outcomes = self.send(kind, writer, client, &key.scope, &batch).await;
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // A receiver that is gone belonged to a pass that was cut off; its next pass looks for itself.
                drop(reply.send(outcome));
            }
        }
    }

    fn send<'a>(
        &'a self,
        kind: &'a dyn Kind,
        writer: &'a dyn BatchWriter,
        client: &'a Client,
        scope: &'a str,
        batch: &'a [Write],
    ) -> BoxFuture<'a, Vec<Outcome>> {
        async move {
            if let [write] = batch {
                self.metrics.batch_size(&kind.descriptor().kind, 1);
                return vec![write_alone(kind, client, scope, write).await];
            }
            self.metrics.batch_size(&kind.descriptor().kind, batch.len());
            match writer.write(client, scope, batch).await {
                Ok(written) if written.len() == batch.len() => written.into_iter().map(Ok).collect(),
                // As many outcomes as writes, or nothing is known about any of them.
                Ok(_) => vec![Err(WriteError::Lost); batch.len()],
                Err(error) if concerns_all(&error) => vec![Err(error.into()); batch.len()],
                Err(_) => {
                    let (left, right) = batch.split_at(batch.len() / 2);
                    let mut outcomes = self.send(kind, writer, client, scope, left).await;
                    outcomes.extend(self.send(kind, writer, client, scope, right).await);
                    outcomes
                }
            }
        }
        .boxed()
    }
}

/// Whether an error says nothing about single entries: not sent, lost, rate limited, not authorised, a server's fault.
fn concerns_all(error: &Error) -> bool {
    match error {
        Error::Api(api) => {
            error.outcome() == kflare_cloudflare::Outcome::Unknown || matches!(api.status, 401 | 403 | 429)
        }
        _ => true,
    }
}

async fn write_alone(kind: &dyn Kind, client: &Client, scope: &str, write: &Write) -> Outcome {
    match write {
        Write::Create { desired } => kind.create(client, scope, desired).await.map(Written::Stored),
        Write::Update { id, desired, changes } => kind
            .update(client, scope, id, desired, changes)
            .await
            .map(Written::Stored),
        Write::Delete { id } => kind.delete(client, scope, id).await.map(|()| Written::Deleted),
    }
    .map_err(WriteError::from)
}
