//! The stream of a watch.

use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use kube::core::Status;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::config::WatchCut;
use super::refusal;
use super::representation::Representation;
use super::resource::ResourceType;
use super::route::Query;
use super::selector::Selectors;
use super::service::status_body;
use super::store::{Change, Store};
use super::world::Shared;
use crate::life::Life;

/// A watch of a client that names no time limit lasts so long.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;

/// An open watch as the rest of the server sees it.
#[derive(Debug)]
pub(super) struct OpenWatch {
    pub(super) resource: String,
    pub(super) cut: Option<WatchCut>,
}

/// What a watch asks for.
pub(super) struct WatchRequest {
    resource: ResourceType,
    namespace: Option<String>,
    selectors: Selectors,
    representation: Representation,
    /// The newest version the client has seen.
    cursor: u64,
    /// Objects shown as `ADDED` before anything else.
    initial: VecDeque<Arc<Value>>,
    /// Whether a bookmark that marks the end of those is still to be sent.
    initial_end_owed: bool,
    wants_bookmarks: bool,
    timeout: Duration,
}

impl WatchRequest {
    pub(super) fn parse(
        store: &Store,
        resource: &ResourceType,
        namespace: Option<&str>,
        query: &Query,
        representation: Representation,
    ) -> Result<Self, Box<Status>> {
        let selectors = Selectors::parse(query.get("labelSelector"), query.get("fieldSelector"))?;
        let version = query.number("resourceVersion")?.unwrap_or_default();
        let streaming_list = query.flag("sendInitialEvents");
        let mut initial = VecDeque::new();
        let mut cursor = version;
        if version == 0 || streaming_list {
            let qualified = resource.qualified();
            let objects = store.collection(&qualified, namespace).map(|(_, object)| object);
            initial.extend(objects.filter(|object| selectors.match_object(object)).cloned());
            cursor = store.revision();
        } else if version < store.oldest() {
            return Err(refusal::too_old(version, store.oldest()));
        }
        Ok(Self {
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
            selectors,
            representation,
            cursor,
            initial,
            initial_end_owed: streaming_list,
            wants_bookmarks: query.flag("allowWatchBookmarks"),
            timeout: Duration::from_secs(query.number("timeoutSeconds")?.unwrap_or(DEFAULT_TIMEOUT_SECONDS)),
        })
    }
}

/// An event on its way.
struct Due {
    at: Instant,
    line: String,
    label: String,
}

/// What to do next.
enum Step {
    Send { line: String, label: String },
    End,
    Fail(io::ErrorKind),
    SendAndEnd(String),
    WaitUntil(Instant),
    FallSilent,
}

/// One watch. Leaves the list of open watches when it is dropped.
pub(super) struct Watch {
    id: u64,
    shared: Shared,
    life: Life,
    request: WatchRequest,
    rng: StdRng,
    event_delay: RangeInclusive<Duration>,
    deadline: Instant,
    cut_at: Option<(Instant, WatchCut)>,
    bookmark_at: Instant,
    due: Option<Due>,
    /// When the last event was sent or planned: events keep their order.
    last_at: Instant,
    over: bool,
}

impl Watch {
    pub(super) fn open(shared: Shared, life: Life, request: WatchRequest) -> Self {
        let now = Instant::now();
        let mut world = shared.lock();
        let id = world.next_watch;
        world.next_watch += 1;
        world.watches.insert(
            id,
            OpenWatch {
                resource: request.resource.qualified(),
                cut: None,
            },
        );
        let mut rng = StdRng::seed_from_u64(world.config.seed.wrapping_add(id.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let cut_at = world.config.watch_lifetime.as_ref().map(|(lifetime, cuts)| {
            let after = rng.random_range(lifetime.clone());
            let cut = if cuts.is_empty() {
                WatchCut::Clean
            } else {
                cuts[rng.random_range(0..cuts.len())]
            };
            (now + after, cut)
        });
        let event_delay = world.config.event_delay.clone();
        let bookmark_at = now + world.config.bookmark_interval;
        drop(world);
        let deadline = now + request.timeout;
        Self {
            id,
            shared,
            life,
            request,
            rng,
            event_delay,
            deadline,
            cut_at,
            bookmark_at,
            due: None,
            last_at: now,
            over: false,
        }
    }

    pub(super) fn into_frames(self) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send {
        futures::stream::unfold(self, Self::next)
    }

    async fn next(mut self) -> Option<(io::Result<Frame<Bytes>>, Self)> {
        loop {
            self.life.gate().await;
            if self.over {
                return None;
            }
            let shared = self.shared.clone();
            let mut changed = pin!(shared.changed());
            changed.as_mut().enable();
            match self.step() {
                Step::Send { line, label } => {
                    self.trace(&label);
                    return Some((Ok(Frame::data(line.into())), self));
                }
                Step::SendAndEnd(line) => {
                    self.over = true;
                    return Some((Ok(Frame::data(line.into())), self));
                }
                Step::End => {
                    self.trace("end");
                    return None;
                }
                Step::Fail(kind) => {
                    self.over = true;
                    self.trace(&format!("fail {kind:?}"));
                    return Some((Err(io::Error::new(kind, "the simulated connection broke")), self));
                }
                Step::FallSilent => return std::future::pending().await,
                Step::WaitUntil(until) => {
                    tokio::select! {
                        biased;
                        () = changed => (),
                        () = sleep_until(until) => (),
                        () = self.life.ended() => (),
                    }
                }
            }
        }
    }

    fn step(&mut self) -> Step {
        let now = Instant::now();
        let shared = self.shared.clone();
        let mut world = shared.lock();
        let ordered = world.watches.get_mut(&self.id).and_then(|open| open.cut.take());
        if let Some(cut) = ordered.or(self.cut_at.filter(|(at, _)| *at <= now).map(|(_, cut)| cut)) {
            return self.cut(cut, &world.store);
        }
        if let Some(object) = self.request.initial.pop_front() {
            return self.event("ADDED", &object);
        }
        if std::mem::take(&mut self.request.initial_end_owed) {
            let mut bookmark = self
                .request
                .representation
                .bookmark(&self.request.resource, self.request.cursor);
            bookmark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            return self.event("BOOKMARK", &bookmark);
        }
        if now >= self.deadline {
            return Step::End;
        }
        if self.due.is_none() {
            match self.plan(&world.store) {
                Ok(due) => self.due = due,
                Err(expired) => return self.gone(&expired),
            }
        }
        let soonest = self.cut_at.map_or(self.deadline, |(at, _)| at.min(self.deadline));
        if let Some(due) = self.due.take() {
            if due.at <= now {
                return Step::Send {
                    line: due.line,
                    label: due.label,
                };
            }
            let at = due.at;
            self.due = Some(due);
            return Step::WaitUntil(at.min(soonest));
        }
        if !self.request.wants_bookmarks {
            return Step::WaitUntil(soonest);
        }
        if now >= self.bookmark_at {
            self.bookmark_at = now + world.config.bookmark_interval.max(Duration::from_millis(1));
            let bookmark = self
                .request
                .representation
                .bookmark(&self.request.resource, self.request.cursor);
            return self.event("BOOKMARK", &bookmark);
        }
        Step::WaitUntil(self.bookmark_at.min(soonest))
    }

    /// Looks for the next change this watch shows, and draws when it will.
    fn plan(&mut self, store: &Store) -> Result<Option<Due>, Box<Status>> {
        while self.request.cursor < store.revision() {
            let Some(change) = store.change(self.request.cursor + 1)? else {
                break;
            };
            self.request.cursor += 1;
            let Some((kind, object)) = self.show(change) else {
                continue;
            };
            let delay = self
                .rng
                .random_range(self.event_delay.clone())
                .max(Duration::from_millis(1));
            let at = (change.at + delay).max(self.last_at);
            self.last_at = at;
            let Step::Send { line, label } = self.event(kind, &object) else {
                continue;
            };
            return Ok(Some(Due { at, line, label }));
        }
        Ok(None)
    }

    /// The event a change is to this watch. An object that leaves the selection looks deleted, one that enters looks
    /// new.
    fn show(&self, change: &Change) -> Option<(&'static str, Value)> {
        let request = &self.request;
        let elsewhere = request
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != change.key.namespace);
        if change.key.resource != request.resource.qualified() || elsewhere {
            return None;
        }
        let fits = |object: &Option<Arc<Value>>| object.as_ref().is_some_and(|it| request.selectors.match_object(it));
        match (fits(&change.before), fits(&change.after)) {
            (false, false) => None,
            (false, true) => Some(("ADDED", Value::clone(&change.shown))),
            (true, true) => Some(("MODIFIED", Value::clone(&change.shown))),
            (true, false) => {
                let gone = change.after.is_none();
                let mut last = Value::clone(change.before.as_ref().filter(|_| !gone).unwrap_or(&change.shown));
                last["metadata"]["resourceVersion"] = change.shown["metadata"]["resourceVersion"].clone();
                Some(("DELETED", last))
            }
        }
    }

    fn event(&self, kind: &str, object: &Value) -> Step {
        let shown = if kind == "BOOKMARK" {
            object.clone()
        } else {
            self.request.representation.object(object)
        };
        let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
        let label = format!(
            "{kind} {}/{} {}",
            field("namespace"),
            field("name"),
            field("resourceVersion")
        );
        Step::Send {
            line: line(kind, &shown),
            label,
        }
    }

    fn cut(&mut self, cut: WatchCut, store: &Store) -> Step {
        match cut {
            WatchCut::Clean => Step::End,
            WatchCut::UnexpectedEof => Step::Fail(io::ErrorKind::UnexpectedEof),
            WatchCut::ConnectionReset => Step::Fail(io::ErrorKind::ConnectionReset),
            WatchCut::HalfLine => {
                self.trace("half a line");
                let whole = line(
                    "BOOKMARK",
                    &self.request.representation.bookmark(&self.request.resource, 0),
                );
                Step::SendAndEnd(whole[..whole.len() / 2].to_owned())
            }
            WatchCut::Silence => {
                self.trace("silence");
                Step::FallSilent
            }
            WatchCut::Gone => self.gone(&refusal::too_old(self.request.cursor, store.revision())),
        }
    }

    fn gone(&self, expired: &Status) -> Step {
        self.trace("ERROR 410");
        Step::SendAndEnd(line("ERROR", &status_body(expired)))
    }

    fn trace(&self, what: &str) {
        self.shared.trace(&format!(
            "watch {} of {} {}: {what}",
            self.id,
            self.life.name(),
            self.request.resource.qualified()
        ));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().watches.remove(&self.id);
    }
}

pub(super) fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}
