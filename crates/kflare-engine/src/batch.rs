//! Writes gathered into one call. The first writer of a container waits for others as long as they keep coming, sends, and
//! hands each its own outcome; while a call is under way the next batch gathers. If a batch is refused as a whole it is
//! split until the guilty entries stand alone, and the others go through.
//!
//! A container in which somebody writes without end gets a call now and then, which takes everything along that has gathered
//! meanwhile: the call budget is there for the others too.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use kflare_cloudflare::{Client, Error, Lane, Writes};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use crate::{
    errors::WriteError,
    index::CollectionKey,
    kind::{BatchWriter, Kind, Site, Write, Written},
    metrics::Metrics,
};

/// A batch goes when nobody has joined it for that long.
pub const GATHER: Duration = Duration::from_millis(200);

/// A batch that is joined all the time goes after that long, or when it is full.
const GATHER_AT_MOST: Duration = Duration::from_secs(2);

/// So many batches a container may send in quick succession; full ones are not counted.
const BURST: u32 = 20;

/// Then it may send one in that time. Two tenths of what the call budget lets go in a second are left to one container.
const PACE: Duration = Duration::from_secs(3);

type Outcome = Result<Written, WriteError>;

/// What the owner of a queued write is told.
enum Told {
    /// What came of it.
    Outcome(Outcome),
    /// It is its turn to lead; here is the write back.
    Lead(Write, Lead),
}

struct Entry {
    write: Write,
    lane: Lane,
    reply: oneshot::Sender<Told>,
}

struct Queue {
    entries: VecDeque<Entry>,
    /// When the last of them joined.
    joined: Instant,
    full: Arc<Notify>,
    /// Somebody has joined who is more urgent than all before.
    hurry: Arc<Notify>,
}

impl Queue {
    fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            joined: Instant::now(),
            full: Arc::default(),
            hurry: Arc::default(),
        }
    }

    /// The most urgent lane of those who have joined.
    fn lane(&self) -> Option<Lane> {
        self.entries.iter().map(|entry| entry.lane).min()
    }
}

/// Containers in which a batch is being gathered or sent.
type Pending = Arc<Mutex<BTreeMap<CollectionKey, Queue>>>;

fn lock(pending: &Pending) -> MutexGuard<'_, BTreeMap<CollectionKey, Queue>> {
    pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The right, and the duty, to send the next batch of a container. If its holder's pass is cut off, what is queued is given
/// up, so that nobody waits for ever.
struct Lead {
    pending: Pending,
    key: CollectionKey,
    handed_over: bool,
}

impl Drop for Lead {
    fn drop(&mut self) {
        if !self.handed_over {
            lock(&self.pending).remove(&self.key);
        }
    }
}

impl Lead {
    /// Passes the lead to the first that still waits, or ends the gathering.
    fn hand_over(mut self) {
        self.handed_over = true;
        let mut pending = lock(&self.pending);
        while let Some(queue) = pending.get_mut(&self.key) {
            let Some(entry) = queue.entries.pop_front() else {
                pending.remove(&self.key);
                return;
            };
            let lead = Self {
                pending: self.pending.clone(),
                key: self.key.clone(),
                handed_over: false,
            };
            match entry.reply.send(Told::Lead(entry.write, lead)) {
                Ok(()) => return,
                // Its pass was cut off: the next.
                Err(Told::Lead(_, mut lead)) => lead.handed_over = true,
                Err(Told::Outcome(_)) => {}
            }
        }
    }
}

/// See the module.
pub struct Batches {
    pending: Pending,
    /// For each container that has sent lately, when it would have sent the last one at a steady pace.
    paces: Mutex<BTreeMap<CollectionKey, Instant>>,
    metrics: Metrics,
}

impl Batches {
    /// No batch yet.
    pub fn new(metrics: Metrics) -> Self {
        Self {
            pending: Pending::default(),
            paces: Mutex::default(),
            metrics,
        }
    }

    /// How many containers have a batch that is gathered or sent.
    pub fn size(&self) -> usize {
        lock(&self.pending).len()
    }

    /// Writes, alone or with others.
    pub async fn write(
        &self,
        key: &CollectionKey,
        handle: Option<&str>,
        kind: &dyn Kind,
        client: &Client,
        write: Write,
    ) -> Outcome {
        let Some(writer) = kind.batch() else {
            let site = Site {
                scope: &key.scope,
                handle,
            };
            return write_alone(kind, client, site, &write).await;
        };
        let (reply, mut told) = oneshot::channel();
        let first = {
            let mut pending = lock(&self.pending);
            let first = !pending.contains_key(key);
            let queue = pending.entry(key.clone()).or_insert_with(Queue::new);
            let lane = client.lane();
            if queue.lane().is_none_or(|before| lane < before) {
                queue.hurry.notify_one();
            }
            queue.entries.push_back(Entry { write, lane, reply });
            queue.joined = Instant::now();
            if queue.entries.len() >= writer.limit().get() {
                queue.full.notify_one();
            }
            first
        };
        if first {
            let lead = Lead {
                pending: self.pending.clone(),
                key: key.clone(),
                handed_over: false,
            };
            Box::pin(self.lead(lead, kind, writer, client)).await;
        }
        loop {
            match told.await {
                Ok(Told::Outcome(outcome)) => return outcome,
                // While the last batch was under way the next has gathered, with this write at its head.
                Ok(Told::Lead(write, lead)) => {
                    let (reply, next) = oneshot::channel();
                    told = next;
                    if let Some(queue) = lock(&self.pending).get_mut(key) {
                        let lane = client.lane();
                        queue.entries.push_front(Entry { write, lane, reply });
                    }
                    Box::pin(self.lead(lead, kind, writer, client)).await;
                }
                // The pass that led was cut off: what became of the call is unknown.
                Err(_) => return Err(WriteError::Lost),
            }
        }
    }

    /// Waits until a batch is full, or nobody joins it any more and its container may send.
    async fn gather(&self, key: &CollectionKey, limit: usize) {
        let began = Instant::now();
        loop {
            let (full, quiet) = match lock(&self.pending).get(key) {
                Some(queue) if queue.entries.len() < limit => (queue.full.clone(), queue.joined + GATHER),
                _ => return,
            };
            let until = quiet.min(began + GATHER_AT_MOST).max(self.slot(key));
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                biased;
                () = full.notified() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Waits for the turn of a batch, in the lane of the most urgent of those who have joined it.
    async fn turn(&self, key: &CollectionKey, client: &Client) -> Result<Client, Error> {
        loop {
            let joined = lock(&self.pending)
                .get(key)
                .map(|queue| (queue.lane(), queue.hurry.clone()));
            let (lane, hurry) = joined.unwrap_or_default();
            let client = client.in_lane(lane.unwrap_or(client.lane()));
            tokio::select! {
                biased;
                turn = client.in_turn() => return turn,
                () = hurry.notified() => {}
            }
        }
    }

    /// When a container may send a batch that is not full.
    fn slot(&self, key: &CollectionKey) -> Instant {
        let now = Instant::now();
        let paces = self.paces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let steady = paces.get(key).copied().unwrap_or(now);
        steady.checked_sub(BURST * PACE).unwrap_or(now)
    }

    /// Notes that a container sends a batch that is not full.
    fn charge(&self, key: &CollectionKey) {
        let now = Instant::now();
        let mut paces = self.paces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        paces.retain(|_, steady| *steady > now);
        *paces.entry(key.clone()).or_insert(now) += PACE;
    }

    /// Gathers and sends one batch and hands each its outcome, and the lead to the next.
    async fn lead(&self, lead: Lead, kind: &dyn Kind, writer: &dyn BatchWriter, client: &Client) {
        let limit = writer.limit().get();
        self.gather(&lead.key, limit).await;
        // Until its turn has come, others may still join.
        let client = self.turn(&lead.key, client).await;
        let entries: Vec<Entry> = match lock(&self.pending).get_mut(&lead.key) {
            Some(queue) => {
                let many = queue.entries.len().min(limit);
                queue.entries.drain(..many).collect()
            }
            None => Vec::new(),
        };
        if entries.len() < limit {
            self.charge(&lead.key);
        }
        let (batch, replies): (Vec<_>, Vec<_>) = entries.into_iter().map(|it| (it.write, it.reply)).unzip();
        let outcomes = match client {
            Ok(client) => self.send(kind, writer, &client, &lead.key.scope, &batch).await,
            Err(error) => {
                let error = WriteError::from(error);
                batch.iter().map(|_| Err(error.clone())).collect()
            }
        };
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // A receiver that is gone belonged to a pass that was cut off; its next pass looks for itself.
            drop(reply.send(Told::Outcome(outcome)));
        }
        lead.hand_over();
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
            if batch.is_empty() {
                return Vec::new();
            }
            if let [write] = batch {
                self.metrics.batch_size(&kind.descriptor().kind, 1);
                let site = Site { scope, handle: None };
                return vec![write_alone(kind, client, site, write).await];
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

async fn write_alone(kind: &dyn Kind, client: &Client, site: Site<'_>, write: &Write) -> Outcome {
    match write {
        Write::Create { desired } => {
            let writes = Writes::default();
            let created = kind.create(&client.noting(&writes), site, desired).await;
            return created.map(Written::Stored).map_err(|error| {
                if writes.any() {
                    WriteError::Halfway(Arc::new(error))
                } else {
                    error.into()
                }
            });
        }
        Write::Update { id, desired, changes } => kind
            .update(client, site, id, desired, changes)
            .await
            .map(Written::Stored),
        Write::Delete { id } => kind.delete(client, site, id).await.map(Written::Deleted),
    }
    .map_err(WriteError::from)
}
