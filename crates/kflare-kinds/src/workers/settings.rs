//! Settings of a Worker that are neither code nor bindings, and the metadata of an upload.

use kflare_api::worker_script::{WorkerFormat, WorkerScriptSpec};
use kflare_cloudflare::endpoints::workers::Settings;
use kflare_engine::SpecError;
use serde_json::{Map, Value, json};

use super::{bindings, content::Content, migrations, present};

/// Fields of the body that only a read of the one Worker tells.
pub(super) const UNLISTED: [&str; 10] = [
    bindings::BINDINGS,
    bindings::SECRET_NAMES,
    bindings::SECRETS,
    "compatibility_date",
    "compatibility_flags",
    "observability",
    "placement",
    "limits",
    SCHEDULES,
    WORKERS_DEV,
];
/// When the Worker is run by itself.
pub(super) const SCHEDULES: &str = "schedules";
/// Whether it answers on workers.dev.
pub(super) const WORKERS_DEV: &str = "workers_dev";

/// Fields of a placement that are the user's; others report how it goes.
const PLACEMENT: [&str; 4] = ["mode", "region", "hostname", "host"];

/// The settings that the spec sets.
pub(super) fn desired(spec: &WorkerScriptSpec) -> Map<String, Value> {
    let observability = spec.observability.as_ref().map(|it| {
        let logs = it.logs.as_ref().map(|logs| {
            present(json!({
                "enabled": logs.enabled,
                "invocation_logs": logs.invocation_logs,
                "head_sampling_rate": logs.head_sampling_rate,
                "persist": logs.persist,
            }))
        });
        present(json!({ "enabled": it.enabled, "head_sampling_rate": it.head_sampling_rate, "logs": logs }))
    });
    let placement = spec.placement.as_ref().map(|it| present(json!(it)));
    let limits = spec
        .limits
        .map(|it| present(json!({ "cpu_ms": it.cpu_ms, "subrequests": it.subrequests })));
    present(json!({
        "compatibility_date": spec.compatibility_date,
        "compatibility_flags": in_order(spec.compatibility_flags.clone()),
        "observability": observability,
        "placement": placement,
        "limits": limits,
        migrations::TAG: spec.migrations.as_ref().and_then(|steps| Some(&steps.last()?.tag)),
        SCHEDULES: spec.schedules.as_deref().map(crons),
        WORKERS_DEV: spec.workers_dev,
    }))
}

/// Refuses schedules that are no cron expressions: Cloudflare would say so only after the Worker is uploaded.
pub(super) fn check_schedules(spec: &WorkerScriptSpec) -> Result<(), SpecError> {
    for (at, cron) in spec.schedules.iter().flatten().enumerate() {
        if cron.split_whitespace().count() != 5 {
            return Err(SpecError::new(
                format!("spec.schedules[{at}]"),
                format!(
                    "{cron:?} is no cron expression: minute, hour, day of the month, month, day of the week, as in \"0 3 * * *\""
                ),
            ));
        }
    }
    Ok(())
}

/// Settings as Cloudflare has them.
pub(super) fn remote(settings: &Settings) -> Map<String, Value> {
    present(json!({
        "compatibility_date": settings.compatibility_date,
        "compatibility_flags": in_order(settings.compatibility_flags.clone()),
        "observability": settings.observability,
        "placement": placement(settings),
        "limits": settings.limits,
    }))
}

/// Cron expressions as a set, with single spaces.
pub(super) fn crons(crons: &[String]) -> Value {
    let spaced = crons
        .iter()
        .map(|cron| cron.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut crons: Vec<String> = spaced.collect();
    crons.sort();
    crons.dedup();
    crons.into()
}

fn in_order(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

fn placement(settings: &Settings) -> Option<Map<String, Value>> {
    let fields = settings.placement.as_object()?;
    let fields = fields.iter().filter(|(field, _)| PLACEMENT.contains(&field.as_str()));
    let fields: Map<String, Value> = fields.map(|(field, value)| (field.clone(), value.clone())).collect();
    Some(fields).filter(|fields| !fields.is_empty())
}

/// The metadata of an upload: what the spec sets, and of the rest what the Worker has (`current`), because an upload drops what it
/// does not name. `migrated`: the tag of its last migration.
pub(super) fn metadata(
    body: &Map<String, Value>,
    content: &Content,
    current: Option<&Settings>,
    migrated: Option<&str>,
) -> Value {
    let mut metadata = current.map(carried_over).unwrap_or_default();
    for field in ["compatibility_date", "compatibility_flags", "placement"] {
        if let Some(value) = body.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    for field in ["observability", "limits"] {
        if let Some(Value::Object(wanted)) = body.get(field) {
            let mut merged = match metadata.remove(field) {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            merge(&mut merged, wanted);
            metadata.insert(field.to_owned(), Value::Object(merged));
        }
    }
    let entry = match content.format {
        WorkerFormat::Module => "main_module",
        WorkerFormat::ServiceWorker => "body_part",
    };
    metadata.insert(entry.to_owned(), json!(content.entry));
    let visible = body.get(bindings::BINDINGS).and_then(Value::as_array);
    let secrets = content
        .secrets
        .iter()
        .map(|(name, text)| json!({ "name": name, "type": "secret_text", "text": text }));
    let all: Vec<Value> = visible.into_iter().flatten().cloned().chain(secrets).collect();
    metadata.insert("bindings".to_owned(), all.into());
    metadata.insert("keep_bindings".to_owned(), bindings::kept(body).into());
    if let Some(migrations) = migrations::pending(&content.migrations, migrated) {
        metadata.insert("migrations".to_owned(), migrations);
    }
    Value::Object(metadata)
}

/// What an upload has to name, so that it stays.
fn carried_over(current: &Settings) -> Map<String, Value> {
    let mut kept = remote(current);
    if current.logpush {
        kept.insert("logpush".to_owned(), json!(true));
    }
    for (field, list) in [("tail_consumers", &current.tail_consumers), ("tags", &current.tags)] {
        if !list.is_empty() {
            kept.insert(field.to_owned(), json!(list));
        }
    }
    kept
}

/// Puts the fields of `wanted` over those of `fields`, at every depth.
fn merge(fields: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    for (name, value) in wanted {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => merge(inner, value),
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}
