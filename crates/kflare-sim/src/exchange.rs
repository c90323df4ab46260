//! One call from its arrival to its answer, short of the waiting.

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use crate::areas::{lists, tokens, zones};
use crate::auth::{self, Caller};
use crate::budget::Policy;
use crate::calls::{CallRecord, Delivery, Effect};
use crate::config::Dropped;
use crate::envelope::{Refusal, Reply, ReplyBody};
use crate::fault::{Fault, Faults, Fired, Probe, Totals};
use crate::ids;
use crate::paging::Query;
use crate::route::{self, Answers, Call, Found, Params, Route};
use crate::simulator::Core;
use crate::state::Point;
use crate::time::http_date;

/// What goes out, and how.
pub(crate) struct Exchange {
    pub(crate) delay: std::time::Duration,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    Answer(Answer),
    /// An answer that ends with a connection error after so many bytes.
    Truncated(Answer, usize),
    Dropped(Dropped),
    /// No answer, and the call is still to be carried out, after that long.
    Late(std::time::Duration, Dropped),
}

pub(crate) struct Answer {
    pub(crate) status: http::StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

/// Takes a call in: its effect, if it has one yet, is there when this returns, whatever becomes of the answer.
pub(crate) fn take_in(core: &mut Core, parts: &Parts, body: &Bytes) -> Exchange {
    exchange(core, parts, body, Faults::fire)
}

/// Carries a call out whose caller has long given up.
pub(crate) fn carry_out(core: &mut Core, parts: &Parts, body: &Bytes) {
    exchange(core, parts, body, |_, _, _| Fired::default());
}

fn exchange(
    core: &mut Core,
    parts: &Parts,
    body: &Bytes,
    fire: impl FnOnce(&mut Faults, &Probe<'_>, &mut SmallRng) -> Fired,
) -> Exchange {
    let now = core.config.clock.now();
    zones::settle(&mut core.world, core.config.activation, now);
    lists::settle(&mut core.world, now);
    let path = parts.uri.path();
    let path_and_query = parts.uri.path_and_query().map_or(path, http::uri::PathAndQuery::as_str);
    let query = Query::parse(parts.uri.query());
    let found = match route::segments(path) {
        Some(segments) => route::find(parts.method.as_str(), &segments),
        None => Found::Nothing,
    };
    let (template, answers) = match &found {
        Found::Route(route, _) => (Some(route.template), route.answers),
        Found::NotModelled(template) => (Some(*template), Answers::Other),
        Found::OtherMethods | Found::Nothing => (None, Answers::Other),
    };
    let purpose = match &found {
        Found::Route(route, _) => tokens::purpose(route),
        _ => auth::Purpose::Use,
    };
    let caller = auth::authenticate(&core.world, &parts.headers, purpose, now);
    let token_id = caller.as_ref().ok().and_then(|caller| caller.token_id.clone());
    let fired = fire(
        &mut core.faults,
        &Probe {
            method: parts.method.as_str(),
            template,
            answers,
            path_and_query,
            token_id: token_id.as_deref(),
            page: query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1),
        },
        &mut core.rng,
    );
    let sequence = core.calls.next();
    let version = core.world.version();
    let mut record = CallRecord {
        sequence,
        at: now,
        method: parts.method.to_string(),
        route: template.map(str::to_owned),
        path: path_and_query.to_owned(),
        status: None,
        error_code: None,
        token_id,
        body: serde_json::from_slice(body).ok(),
        effect: Effect::None,
        delivery: Delivery::DroppedBefore,
        faults: fired.ids.clone(),
    };
    let delay = core.latency() + std::time::Duration::from_millis(fired.delay_ms);
    let outcome = if let Some(Fault::DropBefore { dropped }) = &fired.fault {
        Outcome::Dropped(dropped.unwrap_or(core.config.dropped))
    } else if let Some(Fault::Late { ms, dropped }) = &fired.fault {
        let after = std::time::Duration::from_millis(*ms);
        Outcome::Late(after, dropped.unwrap_or(core.config.dropped))
    } else {
        let policy = match &found {
            Found::Route(route, _) => route.policy,
            _ => Policy::DEFAULT,
        };
        let reply = answer(core, parts, body, &query, found, caller, &fired).unwrap_or_else(Refusal::into_reply);
        record.status = Some(reply.status);
        record.error_code = error_code(&reply);
        record.delivery = Delivery::Answered;
        let answer = finish(reply, policy, now, &ids::ray(core.config.seed, sequence));
        match &fired.fault {
            Some(Fault::DropAfter { dropped }) => {
                record.delivery = Delivery::DroppedAfter;
                Outcome::Dropped(dropped.unwrap_or(core.config.dropped))
            }
            Some(Fault::Truncate { bytes }) => {
                record.delivery = Delivery::Truncated;
                Outcome::Truncated(answer, *bytes)
            }
            _ => Outcome::Answer(answer),
        }
    };
    if core.world.version() != version {
        record.effect = Effect::Applied;
    }
    tracing::debug!(sequence, method = %record.method, path = %record.path, status = record.status, "call");
    core.calls.push(record);
    Exchange { delay, outcome }
}

/// Faults without effect first, then routing, the budget, permissions and the handler.
fn answer(
    core: &mut Core,
    parts: &Parts,
    body: &Bytes,
    query: &Query,
    found: Found,
    caller: Result<Caller, Refusal>,
    fired: &Fired,
) -> Result<Reply, Refusal> {
    match &fired.fault {
        Some(Fault::Status { status, code, message }) => {
            return Err(Refusal::new(*status, *code, message.clone()));
        }
        Some(Fault::Html { status, body }) => {
            let mut reply = Reply::text("text/html; charset=UTF-8", body.clone());
            reply.status = *status;
            return Ok(reply);
        }
        Some(Fault::RateLimited { retry_after }) => return Ok(too_many(*retry_after)),
        _ => {}
    }
    let path = parts.uri.path();
    let (route, params) = match found {
        Found::Route(route, params) => (route, params),
        Found::NotModelled(template) => return Err(not_modelled(parts.method.as_str(), template)),
        Found::OtherMethods => {
            let text = format!("Method {} not available for that URI.", parts.method);
            return Err(Refusal::new(405, 7001, text));
        }
        Found::Nothing => return Err(no_route(path)),
    };
    let caller = caller?;
    if let Some(limit) = core.config.rate_limit
        && let Err(over) = core.budgets.take(limit, &caller.budget, core.config.clock.now())
    {
        return Ok(too_many(Some(over.retry_after)));
    }
    if !params.are_well_formed() {
        return Err(Refusal::new(404, 7003, could_not_route(path)));
    }
    auth::authorize(&core.world, &caller, route.access, &params)?;
    let view = match &fired.fault {
        Some(Fault::StaleList { seconds, mark }) => {
            core.world.point(core.config.clock.now(), *seconds, mark.as_deref())
        }
        _ => None,
    };
    let message = Message {
        headers: &parts.headers,
        query,
        body,
    };
    let mut reply = handle(core, &message, route, &params, &caller, view)?;
    if let Some(Fault::EmptyList { totals }) = &fired.fault {
        empty(&mut reply, *totals);
    }
    Ok(reply)
}

/// What a call brings beside its path.
pub(crate) struct Message<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) query: &'a Query,
    pub(crate) body: &'a Bytes,
}

/// Lets the route answer. Lists show the past of `view`.
pub(crate) fn handle(
    core: &mut Core,
    message: &Message<'_>,
    route: &Route,
    params: &Params,
    caller: &Caller,
    view: Option<Point>,
) -> Result<Reply, Refusal> {
    let now = core.config.clock.now();
    (route.handler)(&mut Call {
        world: &mut core.world,
        params,
        query: message.query,
        headers: message.headers,
        body: message.body,
        caller,
        quirks: core.config.quirks,
        activation: core.config.activation,
        billing_period: core.config.billing_period,
        bulk_operations: core.config.bulk_operations,
        now,
        view,
    })
}

fn empty(reply: &mut Reply, totals: Totals) {
    if let ReplyBody::Result { result, info, .. } = &mut reply.body
        && let Some(list) = list_in(result)
    {
        list.clear();
        if let Some(info) = info {
            if info.remove("cursors").is_some() {
                return;
            }
            info.remove("cursor");
            if info.contains_key("count") {
                info.insert("count".into(), json!(0));
            }
            if totals == Totals::Zero && info.contains_key("total_count") {
                info.insert("total_count".into(), json!(0));
                info.insert("total_pages".into(), json!(0));
            }
        }
    }
}

/// The list that a result is, or holds as its only member (R2).
fn list_in(result: &mut Value) -> Option<&mut Vec<Value>> {
    match result {
        Value::Array(list) => Some(list),
        Value::Object(members) if members.len() == 1 => members.values_mut().next().and_then(Value::as_array_mut),
        _ => None,
    }
}

/// Over budget. Which code comes with it is not known; 971 is documented for "slow down".
fn too_many(retry_after: Option<u64>) -> Reply {
    let text = "Please wait and consider throttling your request speed";
    let mut reply = Refusal::new(429, 971, text).into_reply();
    reply.retry_after = retry_after;
    reply
}

/// The simulator's own answer, never Cloudflare's: honest about what it is not.
fn not_modelled(method: &str, template: &str) -> Refusal {
    Refusal::new(501, 10_501, format!("kflare-sim does not model {method} {template}"))
}

fn no_route(path: &str) -> Refusal {
    let mut refusal = Refusal::new(404, 7003, could_not_route(path));
    refusal
        .errors
        .push(crate::envelope::ApiError::new(7000, "No route for that URI"));
    refusal
}

fn could_not_route(path: &str) -> String {
    format!("Could not route to {path}, perhaps your object identifier is invalid?")
}

fn error_code(reply: &Reply) -> Option<i64> {
    match &reply.body {
        ReplyBody::Errors(errors) | ReplyBody::BareErrors(errors) => errors
            .first()
            .map(|error| error.error_chain.last().unwrap_or(error).code),
        _ => None,
    }
}

fn finish(reply: Reply, policy: Policy, now: jiff::Timestamp, ray: &str) -> Answer {
    let status = reply.status();
    let retry_after = reply.retry_after;
    let (content_type, body) = reply.encode();
    let mut headers = vec![
        ("content-type", content_type),
        ("date", http_date(now)),
        ("server", "cloudflare".to_owned()),
        ("cf-ray", ray.to_owned()),
    ];
    if !policy.is_silent() {
        let wait = (status.as_u16() == 429).then_some(retry_after.unwrap_or(0));
        headers.push(("ratelimit", policy.remaining(wait)));
        headers.push(("ratelimit-policy", policy.policy()));
    }
    if let Some(seconds) = retry_after {
        headers.push(("retry-after", seconds.to_string()));
    }
    Answer { status, headers, body }
}
