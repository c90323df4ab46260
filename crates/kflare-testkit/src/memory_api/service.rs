//! The `tower` service under `kube::Client`.

use std::future::pending;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::core::Status;
use rand::Rng;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::MemoryApi;
use super::config::ExpiredWatch;
use super::fault::{self, Fault, RequestInfo, Symptom};
use super::handle::{Answer, handle, overtake, unheld};
use super::record::RequestRecord;
use super::refusal;
use super::resource::ResourceType;
use super::route::{Query, Route, Target, Verb};
use super::store::Key;
use super::watch::Watch;
use super::world::World;
use crate::life::{Fate, Life};

/// The shortest time an answer takes, so that no loop can stop the clock.
const SHORTEST: Duration = Duration::from_millis(1);

pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A request that arrived.
struct Arrival {
    parts: Parts,
    body: Bytes,
    route: Option<Route>,
    query: Query,
    verb: Result<Verb, Box<Status>>,
    info: RequestInfo,
}

/// What a request came to, before its answer travels back.
struct Outcome {
    answer: Result<Answer, Box<Status>>,
    latency: Duration,
    symptom: Option<Symptom>,
}

/// Serves one request of one life. The effect comes first and the delay after it, so dropping this future while it
/// waits does not undo what was done, as with a real server.
pub(super) async fn serve<B>(api: MemoryApi, life: Life, request: Request<B>) -> Result<Response<Body>, io::Error>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    life.gate().await;
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let arrival = Arrival::new(parts, body, &life);
    let fate = life.admit();
    if fate == Fate::Nothing {
        api.shared.trace(&format!(
            "{} died before {} {}",
            life.name(),
            arrival.parts.method,
            arrival.info.uri
        ));
        return pending().await;
    }
    let hooks = api.shared.lock().hooks.clone();
    for hook in hooks {
        hook(&api, &arrival.info);
    }
    let outcome = take_effect(&api, &arrival, fate);
    if fate == Fate::DieAfterEffect {
        life.kill();
        return pending().await;
    }
    if outcome.symptom == Some(Symptom::Silence) {
        return pending().await;
    }
    sleep(outcome.latency).await;
    life.gate().await;
    if outcome.symptom == Some(Symptom::ConnectionReset) {
        return Err(io::Error::new(
            io::ErrorKind::ConnectionReset,
            "the simulated connection broke",
        ));
    }
    match outcome.answer {
        Ok(Answer::Json(status, body)) => Ok(respond(status, &body)),
        Ok(Answer::Watch(watch)) => {
            let frames = Watch::open(api.shared.clone(), life, watch).into_frames();
            let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
            response
                .headers_mut()
                .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
            Ok(response)
        }
        Err(status) => {
            let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Ok(respond(code, &status_body(&status)))
        }
    }
}

impl Arrival {
    fn new(parts: Parts, body: Bytes, life: &Life) -> Self {
        let query = Query::parse(&parts.uri);
        let route = Route::parse(parts.uri.path());
        let verb = route
            .as_ref()
            .ok_or_else(refusal::unknown_path)
            .and_then(|route| route.verb(&parts.method, &query));
        let target = match &route {
            Some(Route::Resource(target)) => target.clone(),
            _ => Target::default(),
        };
        let resource = match target.group.as_str() {
            "" => target.plural,
            group => format!("{}.{group}", target.plural),
        };
        let info = RequestInfo {
            life: life.name().to_owned(),
            verb: verb.clone().unwrap_or(Verb::Discover),
            resource,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            uri: parts.uri.to_string(),
            body: String::from_utf8_lossy(&body).into_owned(),
        };
        Self {
            parts,
            body,
            route,
            query,
            verb,
            info,
        }
    }

    fn describe(&self, number: u64) -> Vec<String> {
        let Self { parts, info, .. } = self;
        let mut words = vec![format!("#{number} {} {} {}", info.life, parts.method, info.uri)];
        for name in [ACCEPT, CONTENT_TYPE] {
            if let Some(value) = parts.headers.get(&name).and_then(|value| value.to_str().ok()) {
                words.push(format!("{name}={value}"));
            }
        }
        if !info.body.is_empty() {
            words.push(format!("body={}", info.body));
        }
        words
    }
}

/// Applies faults and the request itself, and records both.
fn take_effect(api: &MemoryApi, arrival: &Arrival, fate: Fate) -> Outcome {
    let mut world = api.shared.lock();
    let world = &mut *world;
    let number = world.next_request;
    world.next_request += 1;
    // Drawn for every request, so that a fault does not shift the chances of all that follow.
    let mut latency = world.rng.random_range(world.config.latency.clone()).max(SHORTEST);
    let fault = fault::strike(&mut world.faults, &arrival.info, &mut world.rng);
    let before = world.store.revision();
    let mut symptom = None;
    let answer = match &fault {
        Some(Fault::Reject(status)) => Err(status.clone()),
        Some(Fault::LoseRequest(how)) => {
            symptom = Some(*how);
            Err(refusal::unknown_path())
        }
        other => {
            match other {
                Some(Fault::Delay(delay)) => latency += *delay,
                Some(Fault::LoseReply(how)) => symptom = Some(*how),
                _ => (),
            }
            let unheld = arrival.route.as_ref().and_then(|route| unheld(world, route));
            let answer = effect(world, api, arrival);
            if let (Some(Fault::Overtake(by)), Ok(_), Some((resource, key))) = (other, &answer, unheld) {
                tokio::spawn(remove(api.clone(), *by, resource, key));
            }
            answer
        }
    };
    let answered = symptom.is_none() && fate == Fate::Proceed;
    let status = answered.then(|| match &answer {
        Ok(Answer::Json(status, _)) => status.as_u16(),
        Ok(Answer::Watch(_)) => StatusCode::OK.as_u16(),
        Err(status) => status.code,
    });
    let mut words = arrival.describe(number);
    words.push(status.map_or_else(|| "-> no answer".to_owned(), |status| format!("-> {status}")));
    if world.store.revision() > before {
        words.push(format!("rv={}", world.store.revision()));
        api.shared.announce();
    }
    if let Some(fault) = &fault {
        words.push(format!("fault={fault}"));
    }
    if fate == Fate::DieAfterEffect {
        words.push("died after it".to_owned());
    }
    api.shared.trace(&words.join(" "));
    if api.shared.trace_log().detail() == crate::trace::TraceDetail::Lines {
        let at = api.shared.clock().elapsed();
        world.records.push(RequestRecord {
            number,
            at,
            request: arrival.info.clone(),
            status,
        });
    }
    Outcome {
        answer,
        latency,
        symptom,
    }
}

/// Removes an object after a while, whatever has happened to it meanwhile.
async fn remove(api: MemoryApi, after: Duration, resource: ResourceType, key: Key) {
    sleep(after).await;
    let mut world = api.shared.lock();
    let removed = overtake(&mut world, api.shared.clock(), &resource, key);
    drop(world);
    if let Some(name) = removed {
        api.shared
            .trace(&format!("removed, finalizers or not: {} {name}", resource.kind));
        api.shared.announce();
    }
}

fn effect(world: &mut World, api: &MemoryApi, arrival: &Arrival) -> Result<Answer, Box<Status>> {
    let verb = arrival.verb.clone()?;
    let route = arrival.route.as_ref().ok_or_else(refusal::unknown_path)?;
    let answer = handle(
        world,
        api.shared.clock(),
        route,
        verb,
        &arrival.query,
        &arrival.parts,
        &arrival.body,
    );
    match answer {
        Err(expired)
            if expired.code == 410 && verb == Verb::Watch && world.config.expired_watch == ExpiredWatch::ErrorEvent =>
        {
            Ok(Answer::Json(
                StatusCode::OK,
                json!({"type": "ERROR", "object": status_body(&expired)}),
            ))
        }
        answer => answer,
    }
}

/// A `Status` object as it goes over the wire.
pub(super) fn status_body(status: &Status) -> Value {
    let mut body = json!(status);
    body["kind"] = json!("Status");
    body["apiVersion"] = json!("v1");
    if status.metadata.is_none() {
        body["metadata"] = json!({});
    }
    body
}

fn respond(status: StatusCode, body: &Value) -> Response<Body> {
    let bytes = Bytes::from(format!("{body}\n"));
    let mut response = Response::new(Full::new(bytes).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
