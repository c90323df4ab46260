//! The control API under `/_sim`: JSON, no authentication, never logged, never limited, never delayed.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post, put};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::budget::RateLimit;
use crate::config::Quirks;
use crate::envelope::Refusal;
use crate::fault::FaultSpec;
use crate::foreign::ForeignCall;
use crate::plan::Plan;
use crate::seed::Seed;
use crate::simulator::Simulator;

pub(crate) fn router(simulator: Simulator) -> Router {
    Router::new()
        .route("/healthz", get(async || Json(json!({ "status": "ok" }))))
        .route("/seed", post(seed))
        .route("/reset", post(reset))
        .route("/faults", get(faults).post(add_fault).delete(clear_faults))
        .route("/faults/{id}", axum::routing::delete(remove_fault))
        .route("/clock", get(clock))
        .route("/clock/advance", post(advance))
        .route("/marks/{name}", put(mark))
        .route("/calls", get(calls).delete(clear_calls))
        .route("/calls/counts", get(call_counts))
        .route("/dump", get(dump))
        .route("/rate-limit", put(set_rate_limit).delete(lift_rate_limit))
        .route("/quirks", get(quirks).put(set_quirks))
        .route("/foreign", post(foreign))
        .route("/accounts/{account}/r2/{bucket}/objects", put(set_objects))
        .route("/accounts/{account}/workers/{name}", get(worker))
        .route("/zones/{zone}/activate", post(activate))
        .route("/zones/{zone}/plan", put(set_plan))
        .route("/zones/{zone}/records", get(records).post(create_record))
        .route("/zones/{zone}/records/{id}", patch(patch_record).delete(delete_record))
        .merge(crate::areas::lists::control())
        .merge(crate::areas::managed_headers::control())
        .merge(crate::areas::rulesets::router())
        .merge(crate::areas::tunnels::control())
        .with_state(simulator)
}

type Sim = State<Simulator>;

/// A refusal of the control API: `{"error": text}`.
struct ControlError {
    status: StatusCode,
    text: String,
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.text }))).into_response()
    }
}

fn bad_request(error: &dyn std::error::Error) -> ControlError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    ControlError {
        status: StatusCode::BAD_REQUEST,
        text,
    }
}

fn not_found(what: &str) -> ControlError {
    ControlError {
        status: StatusCode::NOT_FOUND,
        text: format!("no such {what}"),
    }
}

/// Refusals of foreign edits keep the form that the API gives them.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        (status, Json(json!({ "success": false, "errors": self.errors }))).into_response()
    }
}

async fn seed(State(sim): Sim, Json(seed): Json<Seed>) -> Result<Json<Value>, ControlError> {
    sim.seed(&seed)
        .map(|seeded| Json(json!(seeded)))
        .map_err(|error| bad_request(&error))
}

async fn reset(State(sim): Sim) -> StatusCode {
    sim.reset();
    StatusCode::NO_CONTENT
}

async fn faults(State(sim): Sim) -> Json<Value> {
    Json(json!({ "faults": sim.faults() }))
}

async fn add_fault(State(sim): Sim, Json(spec): Json<FaultSpec>) -> Result<Json<Value>, ControlError> {
    sim.add_fault(spec)
        .map(|id| Json(json!({ "id": id })))
        .map_err(|error| bad_request(&error))
}

async fn clear_faults(State(sim): Sim) -> StatusCode {
    sim.clear_faults();
    StatusCode::NO_CONTENT
}

async fn remove_fault(State(sim): Sim, Path(id): Path<u64>) -> Result<StatusCode, ControlError> {
    if sim.remove_fault(id) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(not_found("fault"))
    }
}

async fn clock(State(sim): Sim) -> Json<Value> {
    Json(json!({ "now": sim.now() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    seconds: u64,
}

async fn advance(State(sim): Sim, Json(by): Json<Advance>) -> Json<Value> {
    Json(json!({ "now": sim.advance(Duration::from_secs(by.seconds)) }))
}

async fn mark(State(sim): Sim, Path(name): Path<String>) -> StatusCode {
    sim.mark(&name);
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct CallFilter {
    #[serde(default)]
    since: u64,
    method: Option<String>,
    route: Option<String>,
}

async fn calls(State(sim): Sim, Query(filter): Query<CallFilter>) -> Json<Value> {
    let mut calls = sim.calls_since(filter.since);
    calls.retain(|call| {
        filter
            .method
            .as_ref()
            .is_none_or(|method| method.eq_ignore_ascii_case(&call.method))
            && filter
                .route
                .as_ref()
                .is_none_or(|route| call.route.as_ref() == Some(route))
    });
    Json(json!({ "calls": calls }))
}

async fn call_counts(State(sim): Sim) -> Json<Value> {
    Json(json!({ "counts": sim.call_counts() }))
}

async fn clear_calls(State(sim): Sim) -> StatusCode {
    sim.clear_calls();
    StatusCode::NO_CONTENT
}

async fn dump(State(sim): Sim) -> Json<Value> {
    Json(sim.dump())
}

async fn set_rate_limit(State(sim): Sim, Json(limit): Json<RateLimit>) -> StatusCode {
    sim.set_rate_limit(Some(limit));
    StatusCode::NO_CONTENT
}

async fn lift_rate_limit(State(sim): Sim) -> StatusCode {
    sim.set_rate_limit(None);
    StatusCode::NO_CONTENT
}

async fn quirks(State(sim): Sim) -> Json<Quirks> {
    Json(sim.quirks())
}

async fn set_quirks(State(sim): Sim, Json(quirks): Json<Quirks>) -> StatusCode {
    sim.set_quirks(quirks);
    StatusCode::NO_CONTENT
}

async fn foreign(State(sim): Sim, Json(call): Json<ForeignCall>) -> Result<Json<Value>, Refusal> {
    sim.foreign_call(&call).map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Objects {
    count: u64,
    /// Left out: none.
    jurisdiction: Option<String>,
}

async fn set_objects(
    State(sim): Sim,
    Path((account, bucket)): Path<(String, String)>,
    Json(objects): Json<Objects>,
) -> Result<StatusCode, Refusal> {
    let jurisdiction = objects.jurisdiction.as_deref().unwrap_or("default");
    sim.set_objects(&account, jurisdiction, &bucket, objects.count)
        .map(|()| StatusCode::NO_CONTENT)
}

async fn worker(State(sim): Sim, Path((account, name)): Path<(String, String)>) -> Result<Json<Value>, ControlError> {
    sim.worker(&account, &name).map(Json).ok_or_else(|| not_found("Worker"))
}

async fn activate(State(sim): Sim, Path(zone): Path<String>) -> Result<StatusCode, Refusal> {
    sim.activate_zone(&zone).map(|()| StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanChange {
    plan: Plan,
}

async fn set_plan(
    State(sim): Sim,
    Path(zone): Path<String>,
    Json(change): Json<PlanChange>,
) -> Result<StatusCode, Refusal> {
    sim.set_zone_plan(&zone, change.plan).map(|()| StatusCode::NO_CONTENT)
}

async fn records(State(sim): Sim, Path(zone): Path<String>) -> Result<Json<Value>, ControlError> {
    let records = sim.records(&zone).ok_or_else(|| not_found("zone"))?;
    Ok(Json(json!({ "records": records })))
}

async fn create_record(
    State(sim): Sim,
    Path(zone): Path<String>,
    Json(body): Json<Map<String, Value>>,
) -> Result<Json<Value>, Refusal> {
    sim.foreign_create(&zone, &body).map(Json)
}

async fn patch_record(
    State(sim): Sim,
    Path((zone, id)): Path<(String, String)>,
    Json(body): Json<Map<String, Value>>,
) -> Result<Json<Value>, Refusal> {
    sim.foreign_patch(&zone, &id, &body).map(Json)
}

async fn delete_record(State(sim): Sim, Path((zone, id)): Path<(String, String)>) -> Result<StatusCode, Refusal> {
    sim.foreign_delete(&zone, &id).map(|()| StatusCode::NO_CONTENT)
}
