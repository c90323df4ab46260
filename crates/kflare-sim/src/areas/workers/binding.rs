//! What a Worker is bound to, and the checks that an upload makes.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::invalid;
use super::module::Module;
use super::upload::Inherit;
use crate::config::BindingOrder;
use crate::envelope::Refusal;
use crate::state::{Script, World};

type Binding = Map<String, Value>;

/// What bindings are checked against.
pub(super) struct Bound<'a> {
    pub(super) world: &'a World,
    pub(super) account: &'a str,
    /// The Worker itself.
    pub(super) name: &'a str,
    /// Its classes of Durable Objects.
    pub(super) classes: &'a BTreeSet<String>,
    pub(super) modules: &'a [Module],
}

/// Where a type of binding names what it binds, and the refusal when that does not exist.
struct Target {
    kind: &'static str,
    field: &'static str,
    code: i64,
    noun: &'static str,
}

/// Cloudflare documents the codes; that of VPC services was seen in its text too.
const TARGETS: [Target; 11] = [
    target("kv_namespace", "namespace_id", 10_041, "KV namespace"),
    target("r2_bucket", "bucket_name", 10_085, "R2 bucket"),
    target("d1", "id", 10_181, "D1 database"),
    target("queue", "queue_name", 11_000, "Queue"),
    target("service", "service", 10_144, "Worker"),
    target("hyperdrive", "id", 10_157, "Hyperdrive configuration"),
    target("vectorize", "index_name", 10_159, "Vectorize index"),
    target("vpc_service", "service_id", 10_180, "VPC Service"),
    target("secrets_store_secret", "store_id", 10_182, "Secrets Store"),
    target("dispatch_namespace", "namespace", 100_119, "Dispatch namespace"),
    target("mtls_certificate", "certificate_id", 100_143, "mTLS certificate"),
];

const fn target(kind: &'static str, field: &'static str, code: i64, noun: &'static str) -> Target {
    Target {
        kind,
        field,
        code,
        noun,
    }
}

/// Types without a target, and the fields they need.
const PLAIN: [(&str, &[&str]); 14] = [
    ("plain_text", &["text"]),
    ("secret_text", &["text"]),
    ("json", &["json"]),
    ("ai", &[]),
    ("browser", &[]),
    ("images", &[]),
    ("media", &[]),
    ("version_metadata", &[]),
    ("analytics_engine", &["dataset"]),
    ("ratelimit", &["namespace_id", "simple"]),
    ("send_email", &[]),
    ("wasm_module", &["part"]),
    ("text_blob", &["part"]),
    ("data_blob", &["part"]),
];

/// The bindings of an upload, checked. `inherit` ones are replaced by what the Worker had.
pub(super) fn read(
    bound: &Bound<'_>,
    sent: Option<&Value>,
    before: Option<&Script>,
    inherit: Inherit,
) -> Result<Vec<Binding>, Refusal> {
    let sent = match sent {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(sent)) => sent,
        Some(_) => return Err(invalid("bindings must be a list")),
    };
    let mut bindings: Vec<Binding> = Vec::with_capacity(sent.len());
    for entry in sent {
        let binding = entry
            .as_object()
            .ok_or_else(|| invalid("a binding must be an object"))?;
        let name = text(binding, "name").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Refusal::new(400, 10_052, "Binding name is required."))?;
        if bindings.iter().any(|other| text(other, "name") == Some(name)) {
            return Err(invalid(format!("Binding name '{name}' already in use.")));
        }
        if text(binding, "type") != Some("inherit") {
            check(bound, binding, name)?;
            bindings.push(binding.clone());
            continue;
        }
        let old = text(binding, "old_name").unwrap_or(name);
        let known = before.and_then(|script| script.bindings.iter().find(|known| text(known, "name") == Some(old)));
        match (known, inherit) {
            (Some(known), _) => {
                let mut kept = known.clone();
                kept.insert("name".to_owned(), name.into());
                bindings.push(kept);
            }
            (None, Inherit::Lenient) => {}
            (None, Inherit::Strict) => {
                let text = format!("inherit binding '{name}' is invalid");
                return Err(Refusal::new(400, 10_057, text));
            }
        }
    }
    Ok(bindings)
}

/// Adds what the Worker had of the named types, unless the upload has something of the same name.
pub(super) fn keep(bindings: &mut Vec<Binding>, kept: Option<&Value>, before: Option<&Script>) {
    let kinds: Vec<&str> = kept
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for known in before.iter().flat_map(|script| &script.bindings) {
        let is_kept = text(known, "type").is_some_and(|kind| kinds.contains(&kind));
        if is_kept && !bindings.iter().any(|other| text(other, "name") == text(known, "name")) {
            bindings.push(known.clone());
        }
    }
}

fn check(bound: &Bound<'_>, binding: &Binding, name: &str) -> Result<(), Refusal> {
    let kind = text(binding, "type").unwrap_or_default();
    if let Some(target) = TARGETS.iter().find(|target| target.kind == kind) {
        let id = needed(binding, name, target.field)?;
        if bound.exists(binding, kind, id) {
            return Ok(());
        }
        let text = match kind {
            "vpc_service" => format!(
                "VPC Service '{id}' not found. Verify the service exists in your account and that the service_id in your \
                 configuration is correct."
            ),
            _ => format!("{} '{id}' not found.", target.noun),
        };
        return Err(Refusal::new(400, target.code, text));
    }
    if kind == "durable_object_namespace" {
        let class = needed(binding, name, "class_name")?;
        let known = match text(binding, "script_name").filter(|script| *script != bound.name) {
            None => bound.classes.contains(class),
            Some(script) => bound
                .world
                .script(bound.account, script)
                .is_some_and(|script| script.classes.contains(class)),
        };
        return if known {
            Ok(())
        } else {
            let text = format!(
                "Cannot create binding for class {class} that is not exported by script {}.",
                bound.name
            );
            Err(Refusal::new(400, 10_061, text))
        };
    }
    let Some((_, fields)) = PLAIN.iter().find(|(known, _)| *known == kind) else {
        return Err(Refusal::new(
            501,
            10_501,
            format!("kflare-sim does not model bindings of type {kind:?}"),
        ));
    };
    for field in *fields {
        if binding.get(*field).is_none_or(Value::is_null) {
            return Err(invalid(format!("Binding '{name}' of type {kind} needs {field}.")));
        }
    }
    match text(binding, "part") {
        Some(part) if fields.contains(&"part") && !bound.modules.iter().any(|module| module.name == part) => {
            Err(invalid(format!(
                "Binding '{name}' names the part \"{part}\", which is not there."
            )))
        }
        _ => Ok(()),
    }
}

fn needed<'a>(binding: &'a Binding, name: &str, field: &str) -> Result<&'a str, Refusal> {
    text(binding, field)
        .filter(|value| !value.is_empty())
        .ok_or_else(|| invalid(format!("Binding '{name}' needs {field}.")))
}

impl Bound<'_> {
    fn exists(&self, binding: &Binding, kind: &str, id: &str) -> bool {
        let (world, account) = (self.world, self.account);
        let modelled = match kind {
            "service" => id == self.name || world.script(account, id).is_some(),
            "kv_namespace" => world.kv_namespace(account, id).is_some(),
            "r2_bucket" => {
                let jurisdiction = text(binding, "jurisdiction").unwrap_or("default");
                world.bucket(account, jurisdiction, id).is_some()
            }
            "d1" => world.database(account, id).is_some(),
            "queue" => world.queue(account, id).is_some(),
            _ => false,
        };
        // What is seeded as bindable stands for products that are not modelled.
        modelled || world.held().workers.is_bindable(account, kind, id)
    }
}

fn text<'a>(binding: &'a Binding, field: &str) -> Option<&'a str> {
    binding.get(field).and_then(Value::as_str)
}

/// The bindings as they are read back: secrets without their text.
pub(super) fn shown(bindings: &[Binding], order: BindingOrder) -> Vec<Value> {
    let mut bindings: Vec<Binding> = bindings.iter().map(concealed).collect();
    match order {
        BindingOrder::AsSent => {}
        BindingOrder::Sorted => bindings.sort_by(|a, b| text(a, "name").cmp(&text(b, "name"))),
        BindingOrder::Reversed => bindings.sort_by(|a, b| text(b, "name").cmp(&text(a, "name"))),
    }
    bindings.into_iter().map(Value::Object).collect()
}

fn concealed(binding: &Binding) -> Binding {
    let mut shown = binding.clone();
    if is_secret(binding) {
        for field in ["text", "key_base64", "key_jwk"] {
            shown.remove(field);
        }
    }
    // Cloudflare documents that both are answered for D1.
    if text(binding, "type") == Some("d1")
        && let Some(id) = binding.get("id")
    {
        shown.insert("database_id".to_owned(), id.clone());
    }
    shown
}

/// Whether a binding's value is never read back.
pub(super) fn is_secret(binding: &Binding) -> bool {
    matches!(text(binding, "type"), Some("secret_text" | "secret_key"))
}

/// Whether a Worker calls another one.
pub(super) fn binds_service(script: &Script, service: &str) -> bool {
    script
        .bindings
        .iter()
        .any(|binding| text(binding, "type") == Some("service") && text(binding, "service") == Some(service))
}

/// The Workers of an account that send to the queue of this name.
pub(crate) fn senders(world: &World, account: &str, queue: &str) -> Vec<String> {
    let sends = |script: &Script| {
        let mut bindings = script.bindings.iter();
        bindings.any(|it| text(it, "type") == Some("queue") && text(it, "queue_name") == Some(queue))
    };
    let scripts = world.scripts(account, None).into_iter();
    scripts
        .filter(|script| sends(script))
        .map(|script| script.name.clone())
        .collect()
}
