//! What a Worker is bound to: as the spec says it, as Cloudflare does, and as the two are compared.

use kflare_api::{
    worker_binding::{ServiceBinding, WorkerBinding},
    worker_script::WorkerScriptSpec,
};
use kflare_engine::{Parents, Reference};
use serde_json::{Map, Value, json};

use super::present;

/// Field of the body: every binding that can be read back, by name in order.
pub(super) const BINDINGS: &str = "bindings";
/// Field of the body: the names of all secrets.
pub(super) const SECRET_NAMES: &str = "secret_names";
/// Field of the body: the type of each secret by name, where others may have put more there.
pub(super) const SECRETS: &str = "secrets";

/// Types whose value Cloudflare never tells.
const SECRET_TYPES: [&str; 2] = ["secret_text", "secret_key"];

/// The resources that the bindings refer to. Binding names are unique, so the fields are.
pub(super) fn references(spec: &WorkerScriptSpec) -> impl Iterator<Item = Reference> {
    spec.bindings.iter().flatten().flat_map(|binding| {
        let kinds = [
            ("kvNamespaceRef", "KVNamespace", &binding.kv_namespace_ref),
            ("r2BucketRef", "R2Bucket", &binding.r2_bucket_ref),
            ("d1DatabaseRef", "D1Database", &binding.d1_database_ref),
            ("queueRef", "Queue", &binding.queue_ref),
        ];
        kinds.into_iter().filter_map(|(field, kind, referent)| {
            let name = referent.as_ref()?.name.clone();
            Some(Reference::new(at(binding, field), kind, name))
        })
    })
}

fn at(binding: &WorkerBinding, field: &str) -> String {
    format!("bindings[{}].{field}", binding.name)
}

/// The fields of the body that the bindings of the spec stand for. None of them when the spec leaves bindings alone.
pub(super) fn desired(spec: &WorkerScriptSpec, parents: &Parents) -> Map<String, Value> {
    let Some(bindings) = &spec.bindings else {
        return Map::new();
    };
    let visible = bindings.iter().filter_map(|binding| visible(binding, parents));
    let secrets: Vec<&str> = bindings
        .iter()
        .filter(|binding| binding.secret_key_ref.is_some())
        .map(|binding| binding.name.as_str())
        .collect();
    let mut body = Map::new();
    body.insert(BINDINGS.to_owned(), in_order(visible.collect()));
    if spec.keep_secrets {
        let typed = secrets.iter().map(|name| ((*name).to_owned(), json!("secret_text")));
        body.insert(SECRETS.to_owned(), Value::Object(typed.collect()));
    } else {
        body.insert(SECRET_NAMES.to_owned(), names(secrets));
    }
    body
}

/// A binding in Cloudflare's spelling; none for secrets.
fn visible(binding: &WorkerBinding, parents: &Parents) -> Option<Value> {
    let id = |field: &str| parents.get(&at(binding, field)).map(|parent| parent.id.clone());
    let kv = binding.kv_namespace_id.clone().or_else(|| id("kvNamespaceRef"));
    let bucket = binding.r2_bucket_name.clone().or_else(|| id("r2BucketRef"));
    let database = binding.d1_database_id.clone().or_else(|| id("d1DatabaseRef"));
    // Queues are bound by the name that never changes, not by their id.
    let named = |field: &str| {
        let name = parents
            .get(&at(binding, field))?
            .spec
            .value()
            .get("name")?
            .as_str()?
            .to_owned();
        Some(name)
    };
    let queue = binding.queue.clone().or_else(|| named("queueRef"));
    let fields = if let Some(text) = &binding.plain_text {
        json!({ "type": "plain_text", "text": text })
    } else if let Some(json) = &binding.json {
        json!({ "type": "json", "json": json })
    } else if let Some(id) = kv {
        json!({ "type": "kv_namespace", "namespace_id": id })
    } else if let Some(name) = bucket {
        let parent = parents.get(&at(binding, "r2BucketRef"));
        let jurisdiction = parent.and_then(|parent| parent.spec.value().get("jurisdiction").cloned());
        json!({ "type": "r2_bucket", "bucket_name": name, "jurisdiction": jurisdiction })
    } else if let Some(id) = database {
        json!({ "type": "d1", "id": id })
    } else if let Some(ServiceBinding { name, entrypoint }) = &binding.service {
        json!({ "type": "service", "service": name, "entrypoint": entrypoint })
    } else if let Some(queue) = queue {
        json!({ "type": "queue", "queue_name": queue })
    } else if let Some(object) = &binding.durable_object {
        json!({
            "type": "durable_object_namespace",
            "class_name": object.class_name,
            "script_name": object.script_name,
        })
    } else if let Some(id) = &binding.vpc_service_id {
        json!({ "type": "vpc_service", "service_id": id })
    } else if let Some(id) = &binding.hyperdrive_id {
        json!({ "type": "hyperdrive", "id": id })
    } else if binding.ai.is_some() {
        json!({ "type": "ai" })
    } else if binding.version_metadata.is_some() {
        json!({ "type": "version_metadata" })
    } else {
        return None;
    };
    let mut fields = present(fields);
    fields.insert("name".to_owned(), json!(binding.name));
    Some(Value::Object(fields))
}

/// The same fields, out of what Cloudflare answers: its order means nothing, and some fields it adds.
pub(super) fn remote(bindings: Vec<Map<String, Value>>) -> Map<String, Value> {
    let (secrets, visible): (Vec<_>, Vec<_>) = bindings.into_iter().partition(is_secret);
    let visible = visible.into_iter().map(|mut binding| {
        binding.retain(|_, value| !value.is_null());
        // What a D1 binding calls its id a second time, and the only environment that there is.
        binding.remove("database_id");
        binding.remove("environment");
        Value::Object(binding)
    });
    let secret = |field: &str| {
        let value = move |binding: &Map<String, Value>| binding.get(field)?.as_str().map(str::to_owned);
        secrets.iter().filter_map(value).collect::<Vec<String>>()
    };
    let (secret_names, types) = (secret("name"), secret("type"));
    let secrets = secret_names.iter().cloned().zip(types.into_iter().map(Value::String));
    let secrets: Map<String, Value> = secrets.collect();
    let mut body = Map::new();
    body.insert(BINDINGS.to_owned(), in_order(visible.collect()));
    body.insert(
        SECRET_NAMES.to_owned(),
        names(secret_names.iter().map(String::as_str).collect()),
    );
    body.insert(SECRETS.to_owned(), Value::Object(secrets));
    body
}

/// Types of bindings that stay as they are at an upload which names no other of the same name.
pub(super) fn kept(body: &Map<String, Value>) -> Vec<&'static str> {
    if !body.contains_key(BINDINGS) {
        return [KEPT_WITHOUT_BINDINGS.as_slice(), &SECRET_TYPES].concat();
    }
    if body.contains_key(SECRETS) {
        return SECRET_TYPES.to_vec();
    }
    Vec::new()
}

/// The types that a Worker can have, but for secrets.
const KEPT_WITHOUT_BINDINGS: [&str; 21] = [
    "plain_text",
    "json",
    "kv_namespace",
    "r2_bucket",
    "d1",
    "service",
    "queue",
    "durable_object_namespace",
    "vpc_service",
    "vpc_network",
    "hyperdrive",
    "ai",
    "version_metadata",
    "vectorize",
    "analytics_engine",
    "browser",
    "images",
    "mtls_certificate",
    "ratelimit",
    "secrets_store_secret",
    "send_email",
];

fn is_secret(binding: &Map<String, Value>) -> bool {
    let kind = binding.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| SECRET_TYPES.contains(&kind))
}

fn names(mut names: Vec<&str>) -> Value {
    names.sort_unstable();
    names.into()
}

fn in_order(mut bindings: Vec<Value>) -> Value {
    let name = |binding: &Value| binding["name"].as_str().unwrap_or_default().to_owned();
    bindings.sort_by_key(name);
    bindings.into()
}
