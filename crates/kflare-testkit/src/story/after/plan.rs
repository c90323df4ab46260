//! `kflare plan` shows what will be written.

use std::time::Duration;

use kflare_cloudflare::{BaseUrl, Metrics, Pool, PoolOptions};
use kflare_engine::credentials::FixedCredentials;
use kflare_engine::offline::{Manifests, Planned, PlannedOutcome};
use kflare_engine::policy::{DefaultDeletion, DriftCheck};
use kflare_engine::resolve::Defaults;
use kflare_engine::{Change, Plan};
use serde_json::Value;

use super::resources;
use crate::life::Life;
use crate::story::identity::{identity, recorded_id, remote_identity, target_of, text, user_fields};
use crate::story::ledger::Write;
use crate::story::perform::Stage;
use crate::story::rule::Rule;

/// What `kflare plan` says about everything in a cluster.
pub async fn plan(stage: &Stage, cluster: usize) -> Vec<Planned> {
    let world = &stage.clusters[cluster];
    let life = Life::new(format!("plan-{cluster}"));
    let options = PoolOptions {
        base_url: BaseUrl::default(),
        ..PoolOptions::default()
    };
    let pool = Pool::new(world.way.transport(&life), options, Metrics::unregistered());
    let client = pool.client("plan", stage.token(cluster).into()).read_only();
    let mut manifests = Manifests::new(kflare_kinds::kinds());
    for resource in resources(stage, cluster) {
        let added = serde_json::from_value(resource).map_err(|error| error.to_string());
        let added = added.and_then(|manifest| manifests.add(manifest).map_err(|error| error.to_string()));
        if let Err(error) = added {
            stage.ledger.broken(Rule::Plan, error);
        }
    }
    let defaults = Defaults {
        deletion: DefaultDeletion::Delete,
        drift_check: DriftCheck::Off,
    };
    manifests.plan(&FixedCredentials::new(client), defaults).await
}

/// Checks that a cluster's controllers did what the plan had said.
pub fn as_planned(stage: &Stage, cluster: usize, plan: &[Planned], since: Duration) {
    // Two clusters answer each other's moves, which no plan of one of them shows.
    if stage.clusters.len() > 1 {
        return;
    }
    let all = resources(stage, cluster);
    let writes = stage.ledger.writes_since(cluster, since);
    for (number, write) in writes.iter().enumerate() {
        let object = if write.after.is_null() {
            &write.before
        } else {
            &write.after
        };
        let id = text(&object["id"]);
        let owner = all.iter().find(|it| recorded_id(it).as_ref() == Some(&id));
        let Some(owner) = owner.or_else(|| all.iter().find(|it| identity(it) == remote_identity(object))) else {
            continue;
        };
        let (kind, name) = (target_of(owner).kind, target_of(owner).name);
        let planned = plan
            .iter()
            .find(|it| *it.resource.kind == *kind && *it.resource.name == *name);
        let Some(planned) = planned else { continue };
        if !allows(&planned.outcome, write, number > 0) {
            let what = format!(
                "{kind} {name} was planned as {:?}, and {} -> {}",
                planned.outcome, write.before, write.after
            );
            stage.ledger.broken(Rule::Plan, what);
        }
    }
}

fn allows(planned: &PlannedOutcome, write: &Write, others_moved: bool) -> bool {
    let shown = |changes: &[Change]| {
        let changed = user_fields(&write.after);
        // Settings that are off may be shown or not.
        let off = |value: &Value| {
            value
                .as_object()
                .is_none_or(|it| it.values().all(|on| *on == Value::Bool(false)))
        };
        let changed = changed.iter().filter(|(field, value)| {
            let before = &write.before[field.as_str()];
            before != *value && !(*field == "settings" && off(before) && off(value))
        });
        changed.map(|(field, _)| field).all(|field| {
            changes.iter().any(|change| {
                let top = change.path.split('.').next().unwrap_or_default();
                let spelling = match top {
                    "storageClass" => "storage_class",
                    "defaultLifecycleRule" => "lifecycle",
                    "delivery_delay" | "message_retention_period" | "delivery_paused" => "settings",
                    "managed_request_headers" | "managed_response_headers" => "transforms",
                    // Of records; of Workers it is the code with all bindings.
                    "data" | "bindings" | "secret_names" | "secrets" => "content",
                    other => other,
                };
                top == field || spelling == field
            })
        })
    };
    match planned {
        PlannedOutcome::Plan(Plan::Create { .. }) => write.before.is_null() || others_moved,
        PlannedOutcome::Plan(
            Plan::Update { changes, .. } | Plan::Adopt { changes, .. } | Plan::Recover { changes, .. },
        ) => !write.before.is_null() && !write.after.is_null() && shown(changes),
        PlannedOutcome::Plan(Plan::Replace { .. }) => true,
        PlannedOutcome::Plan(Plan::Delete { .. }) => write.after.is_null(),
        PlannedOutcome::Plan(Plan::Blocked { .. } | Plan::Wait { .. }) => others_moved,
        PlannedOutcome::Plan(Plan::NoOp { .. } | Plan::Forget { .. }) | PlannedOutcome::Error(_) => false,
    }
}
