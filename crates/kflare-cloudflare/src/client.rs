//! The client: everything a caller sees of a call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hmac::{Hmac, Mac};
use http::StatusCode;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::Sha256;
use tokio::time::{Instant, sleep};

use crate::answer::{Answer, Asked};
use crate::credential::{Credential, CredentialId};
use crate::error::Error;
use crate::exchange::exchange;
use crate::lane::Lane;
use crate::pool::Shared;
use crate::request::Request;
use crate::retry::Attempts;
use crate::scheduler::Permit;
use crate::write_gate::{ReadOnly, WriteGate};

/// Calls the API with one token. A clone is cheap and shares everything.
///
/// Made by [`Pool::client`](crate::Pool::client). A new client is in the lane [`Lane::UserChange`] and may write.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    credential: Arc<Credential>,
    lane: Lane,
    gates: Vec<Arc<dyn WriteGate>>,
    seal_key: Option<Arc<SecretString>>,
    writes: Vec<Writes>,
    turn: Option<Turn>,
}

/// The right to the next call, until it is made.
type Turn = Arc<Mutex<Option<Permit>>>;

/// Whether calls that are not a GET were answered well; see [`Client::noting`]. At first there was none. Clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub struct Writes(Arc<AtomicBool>);

impl Writes {
    /// Whether there was one.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A successful answer, with its envelope.
#[derive(Clone)]
pub struct Reply {
    /// The `result` of the envelope; null when there is none.
    pub result: Value,
    /// The `result_info` of the envelope.
    pub result_info: Option<Value>,
    /// The HTTP status, a 2xx.
    pub status: StatusCode,
    /// The `Date` header: Cloudflare's time, in whole seconds.
    pub date: Option<Timestamp>,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, credential: Arc<Credential>) -> Self {
        Self {
            shared,
            credential,
            lane: Lane::UserChange,
            gates: Vec::new(),
            seal_key: None,
            writes: Vec::new(),
            turn: None,
        }
    }

    /// The same client, its calls waiting in `lane`.
    #[must_use]
    pub fn in_lane(&self, lane: Lane) -> Self {
        Self { lane, ..self.clone() }
    }

    /// The lane in which its calls wait.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// The same client, asking `gate` before every call that is not a GET: when the call is made, and again when its
    /// turn has come, immediately before it leaves. Gates add up; each one must agree.
    #[must_use]
    pub fn with_write_gate(&self, gate: Arc<dyn WriteGate>) -> Self {
        let mut client = self.clone();
        client.gates.push(gate);
        client
    }

    /// The same client, refusing everything but a GET. Nothing makes it writable again.
    #[must_use]
    pub fn read_only(&self) -> Self {
        self.with_write_gate(Arc::new(ReadOnly))
    }

    /// The same client, noting in `writes` that a call which is not a GET was answered well: whoever makes several calls for one
    /// purpose knows, when a later one fails, whether an earlier one has changed something.
    #[must_use]
    pub fn noting(&self, writes: &Writes) -> Self {
        let mut client = self.clone();
        client.writes.push(writes.clone());
        client
    }

    /// The same client, making seals with `key`; see [`Client::seal`].
    #[must_use]
    pub fn with_seal_key(&self, key: SecretString) -> Self {
        Self {
            seal_key: Some(Arc::new(key)),
            ..self.clone()
        }
    }

    /// The name of the token, safe to log.
    pub fn credential(&self) -> &CredentialId {
        &self.credential.id
    }

    /// A seal on `text` that only a holder of the seal key can make: what kflare wrote into an object it can tell from what
    /// others wrote there. HMAC-SHA256, 32 hexadecimal digits of it. `None` without a seal key.
    pub fn seal(&self, text: &str) -> Option<String> {
        let key = self.seal_key.as_ref()?.expose_secret().as_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
        mac.update(text.as_bytes());
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        Some(format!("{:032x}", u128::from_be_bytes(*bytes.first_chunk()?)))
    }

    /// Until when Cloudflare's rate limit keeps all calls with this credential waiting; `None` when it does not.
    pub fn gate_closed_until(&self) -> Option<Instant> {
        self.shared.scheduler.gate_closed_until(self.credential.budget)
    }

    /// Until when a call would be turned away at once, because so many others wait for the call budget that its turn would not
    /// come in time; `None` when it may be made. What has to be written down before a call is better not written down then.
    pub fn turned_away_until(&self) -> Option<Instant> {
        self.shared
            .scheduler
            .turned_away_until(self.credential.budget, self.lane)
    }

    /// Whether the call budget is as good as used up: a call more is a call less for somebody else.
    pub fn calls_are_scarce(&self) -> bool {
        self.shared.scheduler.is_scarce(self.credential.budget)
    }

    /// The best estimate of Cloudflare's own time: its last `Date` header plus the time since, else the wall clock.
    ///
    /// A `Date` header has whole seconds and was written before the answer arrived, so the estimate is behind rather
    /// than ahead, by up to a second and the way back.
    pub fn server_time(&self) -> Timestamp {
        self.shared.cloudflare_time()
    }

    /// Waits for the turn of a call. The next call of the client that is returned goes at once; those after it wait for turns of
    /// their own. For what can still be added to a call while it waits.
    ///
    /// # Errors
    /// As for a call whose turn does not come in time.
    pub async fn in_turn(&self) -> Result<Self, Error> {
        let permit = self.permit().await?;
        Ok(Self {
            turn: Some(Arc::new(Mutex::new(Some(permit)))),
            ..self.clone()
        })
    }

    async fn permit(&self) -> Result<Permit, Error> {
        let held = self.turn.as_ref();
        let held = held.and_then(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(permit) = held {
            return Ok(permit);
        }
        let scheduler = &self.shared.scheduler;
        let permit = scheduler.acquire(self.credential.budget, self.lane, &self.credential.id);
        permit.await.map_err(|wait| Error::RateLimited {
            until: wait.until,
            limit: wait.limit,
            answer: None,
        })
    }

    /// Makes a call and reads the `result` of its answer as `T`.
    ///
    /// Where the result does not matter (a delete answers with an id, an object, null or nothing), let `T` be
    /// `serde::de::IgnoredAny`.
    pub async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, Error> {
        self.send(&request).await?.decode(asked(&request))
    }

    /// Makes a call and returns the parts of its envelope.
    pub async fn call_raw(&self, request: Request) -> Result<Reply, Error> {
        let answer = self.send(&request).await?;
        Ok(Reply {
            result: answer.decode(asked(&request))?,
            result_info: answer.result_info,
            status: answer.status,
            date: answer.date,
        })
    }

    /// Makes a call, again and again while it is a GET that fails for a passing reason.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, Error> {
        let deadline = Instant::now() + self.shared.options.call_timeout;
        let mut attempts = Attempts::default();
        loop {
            let error = match self.attempt(request, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !request.is_get() || !attempts.may_try_again(&error) {
                return Err(error);
            }
            let pause = self.shared.jitter(|rng| attempts.pause(rng));
            if Instant::now() + pause >= deadline {
                return Err(error);
            }
            sleep(pause).await;
        }
    }

    async fn attempt(&self, request: &Request, deadline: Instant) -> Result<Answer, Error> {
        if let Some(fault) = request.fault() {
            return Err(Error::Malformed(fault));
        }
        // A token that cannot be sent would only waste budget.
        self.credential.header().map_err(Error::InvalidToken)?;
        self.check_gates(request)?;
        let permit = self.permit().await?;
        self.check_gates(request)?;
        let answer = exchange(&self.shared, &self.credential, request, deadline).await;
        drop(permit);
        if answer.is_ok() && !request.is_get() {
            for writes in &self.writes {
                writes.0.store(true, Ordering::Relaxed);
            }
        }
        answer
    }

    fn check_gates(&self, request: &Request) -> Result<(), Error> {
        if request.is_get() {
            return Ok(());
        }
        self.gates
            .iter()
            .try_for_each(|gate| gate.check())
            .map_err(Error::Refused)
    }
}

pub(crate) fn asked(request: &Request) -> Asked<'_> {
    Asked {
        method: request.method(),
        route: request.route(),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("credential", &self.credential.id.as_str())
            .field("lane", &self.lane)
            .field("gates", &self.gates.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reply {
    /// Without the result, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("date", &self.date)
            .field("result_info", &self.result_info)
            .finish_non_exhaustive()
    }
}
