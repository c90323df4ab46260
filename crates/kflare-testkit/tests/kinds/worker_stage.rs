//! What the tests of Workers have in common.

use kflare_api::names;
use kflare_sim::ForeignCall;
use kflare_testkit::simulation::{ACCOUNT_ID, NAMESPACE};
use serde_json::{Value, json};

use crate::stage::{Mark, Stage};

/// Where Workers are, below the base of the API.
pub const SCRIPT: &str = "/accounts/0123456789abcdef0123456789abcdef/workers/scripts";

/// Code that handles an event.
pub const CODE: &str = "export default { async fetch() { return new Response('hello') } }";

/// A WorkerScript; its name is that of the Worker. `null` takes a field out.
pub fn worker(name: &str, spec: Value) -> Value {
    let mut whole = json!({ "accountRef": { "name": "main" }, "name": name, "script": CODE });
    json_patch::merge(&mut whole, &spec);
    json!({
        "apiVersion": names::API_VERSION, "kind": "WorkerScript",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

/// A Secret of these texts.
pub fn secret(name: &str, texts: &Value) -> Value {
    let data = texts
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, text)| (key.clone(), json!(base64(text.as_str().unwrap()))));
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "data": data.collect::<serde_json::Map<_, _>>(),
    })
}

/// A ConfigMap.
pub fn config_map(name: &str, data: Value, binary: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "data": data, "binaryData": binary,
    })
}

pub fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A call that somebody else makes.
#[track_caller]
pub fn foreign(stage: &Stage, method: &str, path: &str, body: Option<Value>) -> Value {
    let call = ForeignCall {
        body,
        ..ForeignCall::new(method, path)
    };
    stage.cloudflare.foreign_call(&call).unwrap()
}

/// Somebody else's change of settings.
#[track_caller]
pub fn foreign_settings(stage: &Stage, name: &str, settings: &Value) {
    let body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"settings\"\r\nContent-Type: application/json\r\n\r\n{settings}\r\n--x--\r\n"
    );
    let path = format!("{SCRIPT}/{name}/settings");
    let call = ForeignCall::new("PATCH", path).raw("multipart/form-data; boundary=x", body);
    stage.cloudflare.foreign_call(&call).unwrap();
}

/// The settings of a Worker.
#[track_caller]
pub fn settings(stage: &Stage, name: &str) -> Value {
    foreign(stage, "GET", &format!("{SCRIPT}/{name}/settings"), None)
}

/// A Worker with everything that Cloudflare holds of it.
pub fn stored(stage: &Stage, name: &str) -> Option<Value> {
    stage.cloudflare.worker(ACCOUNT_ID, name)
}

/// The text of a binding, secret or not.
#[track_caller]
pub fn text_of(stage: &Stage, name: &str, binding: &str) -> String {
    let stored = stored(stage, name).unwrap();
    let all = stored["bindings"].as_array().unwrap();
    let found = all.iter().find(|it| it["name"] == binding);
    found.unwrap_or_else(|| panic!("no {binding} in {all:?}"))["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// How many uploads there were.
pub fn uploads(stage: &Stage, mark: &Mark) -> usize {
    let route = Some("/accounts/{account_id}/workers/scripts/{script_name}");
    let calls = stage.since(mark).calls;
    calls
        .iter()
        .filter(|call| call.method == "PUT" && call.route.as_deref() == route)
        .count()
}
