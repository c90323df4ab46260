//! `.../subdomain`: whether a Worker answers on workers.dev.

use serde_json::{Value, json};

use super::{change, invalid, named};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::Script;

pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::object(shown(&*named(call)?)))
}

/// `previews_enabled` follows `enabled` where it is not sent (Cloudflare's own tool relies on it).
pub(super) fn post(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let enabled = body.get("enabled").and_then(Value::as_bool);
    let enabled = enabled.ok_or_else(|| invalid("enabled is required"))?;
    let previews = body.get("previews_enabled").and_then(Value::as_bool).unwrap_or(enabled);
    switch(call, enabled, previews)
}

pub(super) fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    switch(call, false, false)
}

fn switch(call: &mut Call<'_>, enabled: bool, previews: bool) -> Result<Reply, Refusal> {
    let script = change(call, |script| {
        script.workers_dev = enabled;
        script.previews = previews;
    })?;
    Ok(Reply::object(shown(&script)))
}

fn shown(script: &Script) -> Value {
    json!({ "enabled": script.workers_dev, "previews_enabled": script.previews })
}
