//! The Cloudflare simulator as the transport of the Cloudflare client: no socket, no TLS, one life at a time.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kflare_cloudflare::{Transport, TransportError, TransportErrorKind};
use kflare_sim::{ConnectionReset, SimService, Simulator};
use tower::{Service, service_fn};

use crate::clock::VirtualClock;
use crate::life::{Fate, Life};
use crate::trace::Trace;

/// How long it takes to notice that there is no connection; without it a caller that tries again could stop the clock.
const NO_CONNECTION_AFTER: Duration = Duration::from_millis(1);

/// The way from controllers to a simulated Cloudflare. Clones are the same way.
///
/// Every call is traced when it is made and when it is answered (no headers: they hold the token). A call has its effect
/// as soon as it is made, before the simulator's latency, so giving up on the answer does not undo it.
#[derive(Clone, Debug)]
pub struct SimTransport {
    simulator: Simulator,
    service: SimService,
    trace: Trace,
    clock: VirtualClock,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    severed: AtomicBool,
    calls: AtomicU64,
    witness: Mutex<Option<Arc<dyn Witness>>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let State { severed, calls, .. } = self;
        formatter
            .debug_struct("State")
            .field("severed", severed)
            .field("calls", calls)
            .finish_non_exhaustive()
    }
}

/// Somebody who sees every call of every life that reaches the simulator.
pub trait Witness: Send + Sync {
    /// A call is about to have its effect.
    fn before(&self, life: &Life, number: u64, request: &Request<Bytes>);
    /// It has had its effect; its answer is on the way.
    fn applied(&self, life: &Life, number: u64, request: &Request<Bytes>);
    /// Its answer has arrived.
    fn answered(&self, life: &Life, number: u64, response: &Response<Bytes>);
}

impl SimTransport {
    /// A way to `simulator`. Give it the trace and the clock of the other seams. The simulator's own clock must follow
    /// the same time (`kflare_sim::VirtualClock`).
    pub fn new(simulator: Simulator, trace: Trace, clock: VirtualClock) -> Self {
        Self {
            service: simulator.service(),
            simulator,
            trace,
            clock,
            state: Arc::default(),
        }
    }

    /// The simulator at its end.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// Lets somebody see every call from now on, instead of whoever did before; none ends it. A witness that itself holds on
    /// to this way has to be sent away, or neither is ever freed.
    pub fn watch(&self, witness: Option<Arc<dyn Witness>>) {
        *self.state.witness.lock().unwrap_or_else(PoisonError::into_inner) = witness;
    }

    fn witness(&self) -> Option<Arc<dyn Witness>> {
        self.state
            .witness
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::SeqCst)
    }

    /// Makes calls fail with [`TransportErrorKind::NotSent`] until [`SimTransport::restore`].
    pub fn sever(&self) {
        self.state.severed.store(true, Ordering::SeqCst);
    }

    /// Undoes [`SimTransport::sever`].
    pub fn restore(&self) {
        self.state.severed.store(false, Ordering::SeqCst);
    }

    /// The transport of one life of the controller. It stops reaching the simulator when the life ends.
    pub fn transport(&self, life: &Life) -> Transport {
        let (way, life) = (self.clone(), life.clone());
        Transport::new(service_fn(move |request| way.clone().exchange(life.clone(), request)))
    }

    async fn exchange(self, life: Life, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        life.gate().await;
        let number = self.state.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let fate = life.admit();
        let body = String::from_utf8_lossy(request.body());
        self.say(&format!(
            "#{number} {} {} {} {body}",
            life.name(),
            request.method(),
            request.uri()
        ));
        if fate == Fate::Nothing {
            self.say(&format!("#{number} died before it"));
            return pending().await;
        }
        if self.state.severed.load(Ordering::SeqCst) {
            self.say(&format!("#{number} -> no connection"));
            tokio::time::sleep(NO_CONNECTION_AFTER).await;
            life.gate().await;
            return Err(TransportErrorKind::NotSent.into());
        }
        let seen = request.clone();
        if let Some(witness) = self.witness() {
            witness.before(&life, number, &seen);
        }
        let mut call = self.service.clone().call(request.map(Full::new));
        // The simulator acts on a call when it is first polled and pauses afterwards. So the effect is there now, and
        // neither the end of this life nor a dropped future can undo it.
        let at_once = poll_once(&mut call).await;
        if let Some(witness) = self.witness() {
            witness.applied(&life, number, &seen);
        }
        if fate == Fate::DieAfterEffect {
            self.say(&format!("#{number} died after it"));
            life.kill();
            return pending().await;
        }
        let answer = match at_once {
            Poll::Ready(answer) => answer,
            Poll::Pending => call.await,
        };
        let answer = complete(answer).await;
        life.gate().await;
        match &answer {
            Ok(response) => {
                self.say(&format!("#{number} -> {}", response.status().as_u16()));
                if let Some(witness) = self.witness() {
                    witness.answered(&life, number, response);
                }
            }
            Err(error) => self.say(&format!("#{number} -> {error}")),
        }
        answer
    }

    fn say(&self, what: &str) {
        self.trace.push(format!("{} cf {what}", self.clock.stamp()));
    }
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// Reads the answer to its end, which may be missing.
async fn complete(
    answer: Result<
        Response<impl http_body::Body<Data = Bytes, Error: Into<kflare_cloudflare::BoxError>>>,
        ConnectionReset,
    >,
) -> Result<Response<Bytes>, TransportError> {
    let interrupted = |cause| TransportError::new(TransportErrorKind::Interrupted, cause);
    let (parts, body) = answer.map_err(|reset| interrupted(reset.into()))?.into_parts();
    let body = body.collect().await.map_err(|error| interrupted(error.into()))?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use kflare_sim::{
        AccountSeed, Area, Dropped, Fault, FaultMatch, FaultSpec, Grant, Permission, Seed, SimConfig, TokenSeed,
        ZoneSeed,
    };
    use tower::ServiceExt;

    use super::*;
    use crate::life::Doom;
    use crate::trace::TraceDetail;

    const RECORDS: &str = "/zones/{zone_id}/dns_records";

    /// A way to a cloud with one zone, whose id is returned.
    fn cloud() -> (SimTransport, String) {
        let epoch = Timestamp::constant(1_767_225_600, 0);
        let clock = Arc::new(kflare_sim::VirtualClock::starting_at(epoch));
        let simulator = Simulator::new(SimConfig {
            clock,
            ..SimConfig::default()
        });
        let write_records = Grant::everywhere(Permission::write(Area::Dns));
        let seed = Seed {
            accounts: vec![AccountSeed::named("one")],
            tokens: vec![TokenSeed::of_user(&token(), vec![write_records])],
            zones: vec![ZoneSeed::named("example.com", "one")],
            ..Seed::default()
        };
        let zone = simulator.seed(&seed).unwrap().zones[0].clone();
        (
            SimTransport::new(simulator, Trace::new(TraceDetail::Lines), VirtualClock::new(epoch)),
            zone,
        )
    }

    fn token() -> String {
        format!("sim-token-{}", 1)
    }

    fn create(zone: &str, name: &str) -> Request<Bytes> {
        let body = format!(r#"{{"type":"A","name":"{name}.example.com","content":"192.0.2.1","ttl":1}}"#);
        Request::post(format!("https://api.cloudflare.com/client/v4/zones/{zone}/dns_records"))
            .header("authorization", format!("Bearer {}", token()))
            .header("content-type", "application/json")
            .body(body.into())
            .unwrap()
    }

    fn records(way: &SimTransport, zone: &str) -> usize {
        way.simulator().records(zone).unwrap().len()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_reach_the_simulator_and_leave_a_trace_without_tokens() {
        let (way, zone) = cloud();
        let answer = way
            .transport(&Life::new("first"))
            .oneshot(create(&zone, "a"))
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{:?}", answer.body());
        assert_eq!((records(&way, &zone), way.calls()), (1, 1));
        let lines = way.trace.lines();
        assert!(
            lines[0].contains("#1 first POST") && lines[1].ends_with("#1 -> 200"),
            "{lines:?}"
        );
        assert!(!lines.concat().contains(&token()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_call_keeps_its_effect() {
        let (way, zone) = cloud();
        let slow = FaultSpec::new(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 60_000 });
        way.simulator().add_fault(slow).unwrap();
        let call = way.transport(&Life::new("first")).oneshot(create(&zone, "a"));
        tokio::time::timeout(Duration::from_secs(1), call).await.unwrap_err();
        assert_eq!(records(&way, &zone), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_connection_is_an_interruption_and_a_severed_one_is_not_sent() {
        let (way, zone) = cloud();
        let transport = way.transport(&Life::new("first"));
        let reset = Fault::DropAfter {
            dropped: Some(Dropped::Reset),
        };
        way.simulator()
            .add_fault(FaultSpec::new(FaultMatch::route("POST", RECORDS), reset).times(1))
            .unwrap();
        let error = transport.clone().oneshot(create(&zone, "a")).await.unwrap_err();
        assert_eq!((error.kind, records(&way, &zone)), (TransportErrorKind::Interrupted, 1));
        way.sever();
        let error = transport.clone().oneshot(create(&zone, "b")).await.unwrap_err();
        assert_eq!((error.kind, records(&way, &zone)), (TransportErrorKind::NotSent, 1));
        way.restore();
        transport.oneshot(create(&zone, "b")).await.unwrap();
        assert_eq!(records(&way, &zone), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_life_dies_before_or_after_its_nth_call() {
        for (doom, applied) in [(Doom::BeforeRequest(2), 1), (Doom::AfterRequest(2), 2)] {
            let (way, zone) = cloud();
            let life = Life::doomed("first", doom);
            let transport = way.transport(&life);
            let work = life.run(async {
                for name in ["a", "b", "c"] {
                    transport.clone().oneshot(create(&zone, name)).await.unwrap();
                }
            });
            assert!(work.await.is_none());
            assert_eq!(records(&way, &zone), applied, "{doom:?}");
            let late = tokio::time::timeout(Duration::from_mins(1), transport.oneshot(create(&zone, "d")));
            late.await.unwrap_err();
            assert_eq!(records(&way, &zone), applied, "the dead call nobody");
        }
    }
}
