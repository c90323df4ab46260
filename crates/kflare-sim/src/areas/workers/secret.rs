//! `.../secrets`: bindings whose value is never read back.

use serde_json::{Map, Value, json};

use super::{binding, invalid, named, new_version};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;

pub(super) fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    let secrets = script.bindings.iter().filter(|it| binding::is_secret(it));
    Ok(Reply::object(secrets.map(shown).collect()))
}

/// Adds or replaces one, which makes a new version.
pub(super) fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    named(call)?;
    let body = call.json()?;
    let name = body.get("name").and_then(Value::as_str).map(str::to_owned);
    let name = name.ok_or_else(|| Refusal::new(400, 10_052, "Binding name is required."))?;
    if body.get("type").and_then(Value::as_str) != Some("secret_text")
        || !body.get("text").is_some_and(Value::is_string)
    {
        return Err(invalid("a secret needs the type secret_text and a text"));
    }
    let answer = shown(&body);
    new_version(call, |script| {
        script
            .bindings
            .retain(|it| it.get("name").and_then(Value::as_str) != Some(&name));
        script.bindings.push(body);
    })?;
    Ok(Reply::object(answer))
}

pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    let secret = script.bindings.iter().find(|it| is(it, call.param("secret_name")));
    secret.map(|secret| Reply::object(shown(secret))).ok_or_else(no_secret)
}

pub(super) fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let name = call.param("secret_name").to_owned();
    if !named(call)?.bindings.iter().any(|it| is(it, &name)) {
        return Err(no_secret());
    }
    new_version(call, |script| script.bindings.retain(|it| !is(it, &name)))?;
    Ok(Reply::object(Value::Null))
}

fn is(binding: &Map<String, Value>, name: &str) -> bool {
    binding::is_secret(binding) && binding.get("name").and_then(Value::as_str) == Some(name)
}

fn no_secret() -> Refusal {
    Refusal::new(404, 10_056, "Binding not found.")
}

fn shown(secret: &Map<String, Value>) -> Value {
    json!({ "name": secret.get("name"), "type": secret.get("type") })
}
