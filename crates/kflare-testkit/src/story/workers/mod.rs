//! Workers and their routes in stories: code from specs and ConfigMaps, secrets, bindings to the stores that stories tell of, and
//! what others do to them.

mod remote;

use kflare_api::names;
use kflare_sim::ForeignCall;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::act::{Act, InputKind, Setting, Step, Target};
use super::vocabulary::DOMAINS;
use crate::simulation::{ACCOUNT_ID, NAMESPACE, World};

pub use remote::{binds, differences, held_route, holdings, identity, lacks_input, stores_of};

const SECOND: u64 = 1000;

const WORKER: &str = "WorkerScript";
const ROUTE: &str = "WorkerRoute";

/// The Secret, its key, the ConfigMap and its key that Workers read.
const SECRET: (&str, &str) = ("keys", "api");
const CONFIG_MAP: (&str, &str) = ("code", "index.js");

const PATTERNS: [&str; 3] = ["alpha.example/api/*", "*.alpha.example/*", "alpha.example/*"];

/// The stores that bindings name: which field of a binding, of which kind, and the resource.
const STORES: [(&str, &str, &str); 4] = [
    ("kvNamespaceRef", "KVNamespace", "kv0"),
    ("r2BucketRef", "R2Bucket", "r20"),
    ("d1DatabaseRef", "D1Database", "d10"),
    ("queueRef", "Queue", "qu0"),
];

fn code(number: usize) -> String {
    format!("export default {{ fetch() {{ return new Response('{number}') }} }}")
}

/// What happens to Workers in the story of a seed.
pub fn steps(seed: u64, setting: &Setting, length_ms: u64) -> Vec<Step> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x776f_726b_6572);
    let mut steps = Vec::new();
    if rng.random_bool(0.7) {
        return steps;
    }
    for cluster in 0..setting.clusters {
        let workers = [format!("api-c{cluster}"), "both".to_owned()];
        for name in &workers[..rng.random_range(1..3)] {
            let at_ms = rng.random_range(0..30 * SECOND);
            steps.push(create(&mut rng, at_ms, cluster, name));
        }
        for number in 0..rng.random_range(0..3) {
            let spec = route(&mut rng, &workers);
            let at_ms = rng.random_range(0..40 * SECOND);
            steps.push(step(
                at_ms,
                manifest(cluster, ROUTE, &format!("route{number}"), &json!({}), &spec),
            ));
        }
        // Inputs come late at times, or never.
        for (kind, (name, key)) in [(InputKind::Secret, SECRET), (InputKind::ConfigMap, CONFIG_MAP)] {
            if rng.random_bool(0.85) {
                let at_ms = rng.random_range(0..60 * SECOND);
                let value = Some(written(&mut rng, kind));
                steps.push(step(at_ms, write(cluster, kind, name, key, value)));
            }
        }
        for _ in 0..rng.random_range(2..9) {
            let at_ms = rng.random_range(20 * SECOND..length_ms);
            something(&mut rng, cluster, at_ms, &workers, &mut steps);
        }
    }
    steps
}

fn step(at_ms: u64, act: Act) -> Step {
    Step { at_ms, act }
}

fn written(rng: &mut StdRng, kind: InputKind) -> String {
    let number = rng.random_range(0..4);
    match kind {
        InputKind::Secret => format!("value {number}"),
        InputKind::ConfigMap => code(number),
    }
}

fn write(cluster: usize, kind: InputKind, name: &str, key: &str, value: Option<String>) -> Act {
    Act::WriteInput {
        cluster,
        kind,
        name: name.to_owned(),
        key: key.to_owned(),
        value,
    }
}

fn manifest(cluster: usize, kind: &str, name: &str, annotations: &Value, spec: &Value) -> Act {
    let manifest = json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
        "spec": spec,
    });
    Act::Create { cluster, manifest }
}

fn create(rng: &mut StdRng, at_ms: u64, cluster: usize, name: &str) -> Step {
    let mut annotations = json!({});
    if rng.random_bool(0.15) {
        annotations[names::ADOPTION_POLICY] = json!("adopt-or-create");
    }
    let mut spec = json!({ "accountRef": { "name": "main" }, "name": name });
    json_patch::merge(&mut spec, &source(rng));
    for _ in 0..2 {
        json_patch::merge(&mut spec, &settings(rng));
    }
    if rng.random_bool(0.8) {
        spec["bindings"] = bindings(rng);
    }
    step(at_ms, manifest(cluster, WORKER, name, &annotations, &spec))
}

/// Where the code comes from; what other sources have is taken out.
fn source(rng: &mut StdRng) -> Value {
    let mut source =
        json!({ "script": null, "scriptConfigMapRef": null, "modules": null, "mainModule": null, "format": "module" });
    match rng.random_range(0..6) {
        0..=2 => source["scriptConfigMapRef"] = json!({ "name": CONFIG_MAP.0, "key": CONFIG_MAP.1 }),
        3 => source["script"] = json!(code(rng.random_range(0..4))),
        4 => {
            source["script"] = json!("addEventListener('fetch', () => {})");
            source["format"] = json!("serviceWorker");
        }
        _ => {
            source["mainModule"] = json!("main.js");
            source["modules"] = json!([
                { "name": "main.js", "type": "esModule", "content": code(rng.random_range(0..4)) },
                { "name": "note.txt", "type": "text", "content": "hi" },
            ]);
        }
    }
    source
}

fn settings(rng: &mut StdRng) -> Value {
    match rng.random_range(0..8) {
        0 => json!({ "compatibilityDate": (*["2026-01-31", "2025-06-01"].choose(rng).unwrap_or(&"2026-01-31")) }),
        1 => json!({ "compatibilityFlags": ["nodejs_compat"] }),
        2 => json!({ "observability": { "enabled": rng.random_bool(0.5) } }),
        3 => json!({ "placement": { "mode": "smart" } }),
        4 => json!({ "limits": { "cpuMs": *[20, 50].choose(rng).unwrap_or(&20) } }),
        5 => {
            json!({ "schedules": *[&["0  3 * * *"][..], &["*/5 * * * *", "0 3 * * *"], &[]].choose(rng).unwrap_or(&&[][..]) })
        }
        6 => json!({ "workersDev": rng.random_bool(0.5) }),
        _ => json!({ "keepSecrets": true, "migrations": [{ "tag": "v1", "newSqliteClasses": ["Room"] }] }),
    }
}

fn bindings(rng: &mut StdRng) -> Value {
    let mut bindings = Vec::new();
    if rng.random_bool(0.8) {
        bindings.push(json!({ "name": "KEY", "secretKeyRef": { "name": SECRET.0, "key": SECRET.1 } }));
    }
    if rng.random_bool(0.4) {
        bindings.push(json!({ "name": "TEXT", "plainText": format!("text {}", rng.random_range(0..3)) }));
    }
    for (field, _, name) in STORES {
        if rng.random_bool(0.25) {
            bindings.push(json!({ "name": name.to_uppercase(), field: { "name": name } }));
        }
    }
    Value::Array(bindings)
}

fn route(rng: &mut StdRng, workers: &[String]) -> Value {
    let mut spec = json!({
        "zoneRef": { "name": DOMAINS[0].split('.').next() }, "pattern": *PATTERNS.choose(rng).unwrap_or(&PATTERNS[0]),
    });
    if rng.random_bool(0.8) {
        spec["workerScriptRef"] = json!({ "name": workers.choose(rng) });
    }
    spec
}

fn something(rng: &mut StdRng, cluster: usize, at_ms: u64, workers: &[String], steps: &mut Vec<Step>) {
    let name = workers.choose(rng).cloned().unwrap_or_default();
    let target = |kind: &str, name: &str| Target {
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let edit = |target: Target, change: Value| Act::Edit {
        cluster,
        target,
        change,
    };
    let route_name = format!("route{}", rng.random_range(0..2));
    let path = format!("/accounts/{ACCOUNT_ID}/workers/scripts/{name}");
    let act = match rng.random_range(0..20) {
        0 | 1 => edit(target(WORKER, &name), source(rng)),
        2 => edit(target(WORKER, &name), settings(rng)),
        3 | 4 => edit(target(WORKER, &name), json!({ "bindings": bindings(rng) })),
        5..=7 => write(
            cluster,
            InputKind::Secret,
            SECRET.0,
            SECRET.1,
            Some(written(rng, InputKind::Secret)),
        ),
        8..=10 => {
            let value = Some(written(rng, InputKind::ConfigMap));
            write(cluster, InputKind::ConfigMap, CONFIG_MAP.0, CONFIG_MAP.1, value)
        }
        11 => write(cluster, InputKind::Secret, SECRET.0, SECRET.1, None),
        12 | 13 => edit(target(ROUTE, &route_name), route(rng, workers)),
        14 => Act::Delete {
            cluster,
            target: target(ROUTE, &route_name),
        },
        15 => {
            if rng.random_bool(0.6) {
                let after = at_ms + rng.random_range(1..90) * SECOND;
                let again = create(rng, after, cluster, &name);
                steps.push(again);
            }
            Act::Delete {
                cluster,
                target: target(WORKER, &name),
            }
        }
        16 => Act::Annotate {
            cluster,
            target: target(WORKER, &name),
            annotation: names::PAUSED.to_owned(),
            value: rng.random_bool(0.5).then(|| "true".to_owned()),
        },
        17 => Act::ForeignCall {
            call: ForeignCall::new("DELETE", path),
        },
        _ => Act::ForeignCall {
            call: ForeignCall::new("PUT", format!("{path}/schedules")).body(json!([{ "cron": "1 2 3 * *" }])),
        },
    };
    steps.push(step(at_ms, act));
}

/// A user writes a value into a Secret or ConfigMap, which is made if there is none; without a value it is deleted.
pub fn write_input(world: &World, kind: InputKind, name: &str, key: &str, value: Option<&str>) {
    let object = |value: &str| {
        let value = match kind {
            InputKind::Secret => super::perform::base64(value),
            InputKind::ConfigMap => value.to_owned(),
        };
        json!({
            "apiVersion": "v1", "kind": kind.name(), "metadata": { "name": name, "namespace": NAMESPACE }, "data": { key: value },
        })
    };
    let written = object(value.unwrap_or_default());
    let id = crate::memory_api::ObjectId::of(&written);
    match value {
        None => drop(world.api.delete(&id)),
        Some(_) if world.api.get(&id).is_some() => {
            drop(
                world
                    .api
                    .edit(&id, |object| object["data"][key] = written["data"][key].clone()),
            );
        }
        Some(_) => drop(world.api.create(written)),
    }
}

/// Users delete what Workers read.
pub fn delete_inputs(world: &World) {
    for (kind, (name, key)) in [(InputKind::Secret, SECRET), (InputKind::ConfigMap, CONFIG_MAP)] {
        write_input(world, kind, name, key, None);
    }
}
