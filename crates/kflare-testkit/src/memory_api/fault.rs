//! Faults on demand: which requests go wrong, how often, and how.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;
use rand::Rng;
use rand::rngs::StdRng;

use super::route::Verb;

/// A request as fault rules and hooks see it.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    /// The name of the [`Life`](crate::life::Life) that sent it.
    pub life: String,
    /// What it does.
    pub verb: Verb,
    /// `plural.group`, or the plural alone in the core group; empty for discovery.
    pub resource: String,
    /// The namespace, for requests within one.
    pub namespace: Option<String>,
    /// The object's name, for requests about one.
    pub name: Option<String>,
    /// The subresource, such as `status`.
    pub subresource: Option<String>,
    /// Path and query.
    pub uri: String,
    /// The body.
    pub body: String,
}

impl RequestInfo {
    /// Whether it can change something.
    pub fn writes(&self) -> bool {
        self.verb.writes()
    }
}

/// How a lost request or reply looks to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// Nothing ever comes; the client's own time limit ends it.
    Silence,
    /// The connection breaks, after the usual latency: `kube::Error::Service` with an `io::Error`.
    ConnectionReset,
}

/// What goes wrong with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// It is answered with this error; it has no effect.
    Reject(Box<Status>),
    /// It has its effect at once; the answer takes this much longer.
    Delay(Duration),
    /// It never arrives: no effect.
    LoseRequest(Symptom),
    /// It has its effect; the answer never arrives.
    LoseReply(Symptom),
    /// It has its effect and is answered. If it was about an object without finalizers, that is removed so long after it, whatever
    /// the write put on it: as by a delete that had read it before (kubernetes/kubernetes#77988).
    Overtake(Duration),
}

impl Fault {
    /// A [`Fault::Reject`] with an HTTP status code, such as 500, 409 or 429.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::Reject(Status::failure(message, reason).with_code(code).boxed())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reject(status) => write!(formatter, "reject {}", status.code),
            Self::Delay(delay) => write!(formatter, "delay {delay:?}"),
            Self::LoseRequest(symptom) => write!(formatter, "lose request {symptom:?}"),
            Self::LoseReply(symptom) => write!(formatter, "lose reply {symptom:?}"),
            Self::Overtake(by) => write!(formatter, "overtake a delete by {by:?}"),
        }
    }
}

/// A fault and the requests it strikes. The first rule that strikes a request decides.
#[derive(Clone)]
pub struct FaultRule {
    fault: Fault,
    applies: Arc<dyn Fn(&RequestInfo) -> bool + Send + Sync>,
    skip: u64,
    times: Option<u64>,
    probability: f64,
}

impl FaultRule {
    /// Strikes every request `applies` is true for.
    pub fn new(fault: Fault, applies: impl Fn(&RequestInfo) -> bool + Send + Sync + 'static) -> Self {
        Self {
            fault,
            applies: Arc::new(applies),
            skip: 0,
            times: None,
            probability: 1.0,
        }
    }

    /// Lets so many matching requests through first.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Strikes at most so often.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Strikes a matching request with this probability (0 to 1), drawn from the seed.
    #[must_use]
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.probability = probability.clamp(0.0, 1.0);
        self
    }

    fn strike(&mut self, request: &RequestInfo, rng: &mut StdRng) -> Option<Fault> {
        if self.times == Some(0) || !(self.applies)(request) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        // Certain faults draw nothing, so that adding one does not shift the fate of everything after it.
        if self.probability < 1.0 && !rng.random_bool(self.probability) {
            return None;
        }
        self.times = self.times.map(|times| times - 1);
        Some(self.fault.clone())
    }
}

impl fmt::Debug for FaultRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fault,
            skip,
            times,
            probability,
            ..
        } = self;
        write!(
            formatter,
            "FaultRule({fault}, after {skip}, times {times:?}, probability {probability})"
        )
    }
}

/// The fault of the first rule that strikes.
pub(super) fn strike(rules: &mut [FaultRule], request: &RequestInfo, rng: &mut StdRng) -> Option<Fault> {
    rules.iter_mut().find_map(|rule| rule.strike(request, rng))
}
