//! `.../schedules`: when a Worker is run by itself.

use serde_json::{Value, json};

use super::{change, named};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::{AccountType, Schedule, Script};
use crate::time::micros;

pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::object(shown(&*named(call)?)))
}

/// Replaces all of them. The body is a bare array.
pub(super) fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    let malformed = || Refusal::new(400, 6007, "Malformed JSON in request body");
    let sent: Vec<Value> = serde_json::from_slice(call.body).map_err(|_| malformed())?;
    let mut schedules: Vec<Schedule> = Vec::with_capacity(sent.len());
    for entry in &sent {
        let cron = entry.get("cron").and_then(Value::as_str).ok_or_else(malformed)?;
        if !is_cron(cron) {
            // The code is unproven.
            return Err(Refusal::new(400, 10_100, format!("invalid cron string: {cron}")));
        }
        if schedules.iter().any(|other| other.cron == cron) {
            continue;
        }
        let known = script.schedules.iter().find(|known| known.cron == cron);
        schedules.push(Schedule {
            cron: cron.to_owned(),
            created_on: known.map_or(call.now, |known| known.created_on),
            modified_on: call.now,
        });
    }
    room(call, &script, schedules.len())?;
    let script = change(call, |script| script.schedules = schedules)?;
    Ok(Reply::object(shown(&script)))
}

/// Five schedules an account on the free plan of Workers, 250 on the paid one (Cloudflare documents). The code is unproven.
fn room(call: &Call<'_>, script: &Script, wanted: usize) -> Result<(), Refusal> {
    let account = call.world.held().accounts.get(&script.account_id);
    let limit = match account.map(|account| account.kind) {
        Some(AccountType::Enterprise) => 250,
        _ => 5,
    };
    let scripts = call.world.scripts(&script.account_id, None);
    let others: usize = scripts
        .iter()
        .filter(|other| other.name != script.name)
        .map(|other| other.schedules.len())
        .sum();
    if others + wanted <= limit {
        return Ok(());
    }
    Err(Refusal::new(
        403,
        10_072,
        format!("You have exceeded the limit of {limit} cron triggers on your account."),
    ))
}

/// Five fields of digits, names of days and months, and `* , - / L W #`.
fn is_cron(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let fits = |field: &&str| {
        field
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '*' | ',' | '-' | '/' | '#'))
    };
    fields.len() == 5 && fields.iter().all(fits)
}

fn shown(script: &Script) -> Value {
    let schedules: Vec<Value> = script
        .schedules
        .iter()
        .map(|schedule| {
            json!({
                "cron": schedule.cron,
                "created_on": micros(schedule.created_on),
                "modified_on": micros(schedule.modified_on),
            })
        })
        .collect();
    json!({ "schedules": schedules })
}
