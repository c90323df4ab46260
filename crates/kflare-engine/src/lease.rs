//! Leader election on a `coordination.k8s.io/v1` Lease. The holder stops writing well before anybody else may take over,
//! and releases the Lease when it stops, so that a standby takes over at once.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::Instant;

use crate::{
    clock::WallClock,
    mutation::{self, Mutation},
};

/// After so long without a renewal others may take the Lease.
const DURATION: Duration = Duration::from_secs(10);

/// After so long without a successful renewal the holder stops writing. The difference to [`DURATION`] covers calls that
/// are on their way.
const DEADLINE: Duration = Duration::from_secs(7);

/// Time between renewals.
const RENEW: Duration = Duration::from_secs(2);

/// Time between looks of those who wait.
const RETRY: Duration = Duration::from_secs(1);

/// How long one call may take.
const CALL: Duration = Duration::from_secs(4);

/// Where the Lease is and who we are.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Unique name of this process.
    pub identity: String,
}

/// The right to write, as seen by everybody who wants to.
#[derive(Clone)]
pub struct Leadership(Arc<Mutex<State>>);

enum State {
    /// No election: always the leader.
    Alone,
    /// Not the leader.
    Waiting,
    /// The leader until then, unless renewed.
    Until(Instant),
    /// Has given it up.
    Over,
}

impl Leadership {
    /// Leads without election.
    pub fn alone() -> Self {
        Self(Arc::new(Mutex::new(State::Alone)))
    }

    /// Does not lead yet.
    pub fn contender() -> Self {
        Self(Arc::new(Mutex::new(State::Waiting)))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process may write now, or why not.
    pub fn check(&self) -> Result<(), String> {
        if mutation::is(Mutation::LeaseIgnored) {
            return Ok(());
        }
        match *self.state() {
            State::Alone => Ok(()),
            State::Until(until) if Instant::now() < until => Ok(()),
            State::Until(_) => Err("the lease could not be renewed in time".to_owned()),
            State::Waiting => Err("this replica is not the leader".to_owned()),
            State::Over => Err("this replica is shutting down".to_owned()),
        }
    }

    /// Whether this process leads.
    pub fn leads(&self) -> bool {
        self.check().is_ok()
    }

    /// Nobody writes any more.
    pub fn end(&self) {
        *self.state() = State::Over;
    }
}

/// Seen by a contender: whose Lease, and since when it has not moved.
struct Sighting {
    version: String,
    since: Instant,
}

/// The Lease was lost: the process must not go on as if it still led.
#[derive(Debug, thiserror::Error)]
#[error("the leader lease {name} was lost: {why}")]
pub struct Lost {
    name: String,
    why: String,
}

/// Contends for the Lease and keeps it.
pub struct Elector {
    api: Api<Lease>,
    options: LeaseOptions,
    leadership: Leadership,
    clock: Arc<dyn WallClock>,
}

impl Elector {
    /// An elector that reports to `leadership`.
    pub fn new(client: Client, options: LeaseOptions, leadership: Leadership, clock: Arc<dyn WallClock>) -> Self {
        Self {
            api: Api::namespaced(client, &options.namespace),
            options,
            leadership,
            clock,
        }
    }

    /// Waits until this process leads.
    pub async fn acquire(&self) {
        let mut sighting: Option<Sighting> = None;
        loop {
            let asked = Instant::now();
            match self.try_acquire(&mut sighting).await {
                Ok(true) => {
                    *self.leadership.state() = State::Until(asked + DEADLINE);
                    return;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(lease = %self.options.name, %error, "lease not reached"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn try_acquire(&self, sighting: &mut Option<Sighting>) -> Result<bool, kube::Error> {
        let Some(lease) = bounded(self.api.get_opt(&self.options.name)).await? else {
            let lease = self.lease(None, None);
            return won(bounded(self.api.create(&PostParams::default(), &lease)).await);
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let spec = lease.spec.unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let free = holder.is_empty() || holder == self.options.identity || {
            let now = Instant::now();
            let seen = match sighting.take() {
                Some(seen) if seen.version == version => seen,
                _ => Sighting {
                    version: version.clone(),
                    since: now,
                },
            };
            let theirs = spec
                .lease_duration_seconds
                .and_then(|it| u64::try_from(it).ok())
                .map_or(DURATION, Duration::from_secs);
            let expired = now.duration_since(seen.since) >= theirs;
            *sighting = Some(seen);
            expired
        };
        if !free {
            return Ok(false);
        }
        let lease = self.lease(Some(version), Some(&spec));
        won(bounded(self.api.replace(&self.options.name, &PostParams::default(), &lease)).await)
    }

    /// Renews for as long as it can; returns when it no longer can.
    pub async fn keep(&self) -> Lost {
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(RENEW).await;
            let mut why = "no answer in time".to_owned();
            while last.elapsed() < DEADLINE {
                let asked = Instant::now();
                // A renewal that takes longer than the right to write lasts is no renewal.
                let renewed = tokio::time::timeout_at(last + DEADLINE, self.renew()).await;
                match renewed.unwrap_or_else(|_| Err(late())) {
                    Ok(true) => {
                        last = asked;
                        *self.leadership.state() = State::Until(asked + DEADLINE);
                        break;
                    }
                    Ok(false) => return self.lost("another replica has taken it".to_owned()),
                    Err(error) => why = error.to_string(),
                }
                tokio::time::sleep(RETRY).await;
            }
            if last.elapsed() >= DEADLINE {
                return self.lost(why);
            }
        }
    }

    fn lost(&self, why: String) -> Lost {
        self.leadership.end();
        Lost {
            name: self.options.name.clone(),
            why,
        }
    }

    async fn renew(&self) -> Result<bool, kube::Error> {
        let lease = bounded(self.api.get(&self.options.name)).await?;
        let spec = lease.spec.unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(&self.options.identity) {
            return Ok(false);
        }
        let lease = self.lease(lease.metadata.resource_version, Some(&spec));
        match bounded(self.api.replace(&self.options.name, &PostParams::default(), &lease)).await {
            Ok(_) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Gives the Lease to whoever comes next. Best effort: without it the others wait until it expires.
    pub async fn release(&self) {
        self.leadership.end();
        let released = async {
            let mut lease = bounded(self.api.get(&self.options.name)).await?;
            if let Some(spec) = &mut lease.spec {
                if spec.holder_identity.as_deref() != Some(&self.options.identity) {
                    return Ok(());
                }
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
            }
            bounded(self.api.replace(&self.options.name, &PostParams::default(), &lease))
                .await
                .map(|_| ())
        };
        if let Err(error) = released.await {
            tracing::warn!(lease = %self.options.name, %error, "lease not released");
        }
    }

    fn lease(&self, version: Option<String>, before: Option<&LeaseSpec>) -> Lease {
        let now: Timestamp = self.clock.now();
        let ours = before.and_then(|spec| spec.holder_identity.as_deref()) == Some(&self.options.identity);
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.options.name.clone()),
                namespace: Some(self.options.namespace.clone()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.options.identity.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time: match before.filter(|_| ours) {
                    Some(spec) => spec.acquire_time.clone(),
                    None => Some(MicroTime(now)),
                },
                renew_time: Some(MicroTime(now)),
                lease_transitions: Some(if ours || before.is_none() {
                    transitions
                } else {
                    transitions.saturating_add(1)
                }),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// Whether a contended write was ours: a conflict means that another was quicker.
fn won(result: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

async fn bounded<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match tokio::time::timeout(CALL, call).await {
        Ok(result) => result,
        Err(_) => Err(late()),
    }
}

fn late() -> kube::Error {
    kube::Error::Service("the API server did not answer in time".into())
}
