//! Workers and their routes in stories: code from specs and ConfigMaps, secrets, bindings to the stores that stories tell of, and
//! what others do to them.

use std::collections::BTreeMap;

use kflare_api::names;
use kflare_sim::{ForeignCall, Simulator};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::act::{Act, InputKind, Setting, Step, Target};
use super::ledger::{domain_of, text};
use super::perform::unbase64;
use super::vocabulary::DOMAINS;
use crate::simulation::{ACCOUNT_ID, NAMESPACE, World};

const SECOND: u64 = 1000;

const WORKER: &str = "WorkerScript";
const ROUTE: &str = "WorkerRoute";

/// The Secret, its key, the ConfigMap and its key that Workers read.
const SECRET: (&str, &str) = ("keys", "api");
const CONFIG_MAP: (&str, &str) = ("code", "index.js");

const PATTERNS: [&str; 3] = ["alpha.example/api/*", "*.alpha.example/*", "alpha.example/*"];

/// The stores that bindings name: which field of a binding, of which kind, and the resource.
const STORES: [(&str, &str, &str); 3] = [
    ("kvNamespaceRef", "KVNamespace", "kv0"),
    ("r2BucketRef", "R2Bucket", "r20"),
    ("d1DatabaseRef", "D1Database", "d10"),
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
        _ => json!({ "keepSecrets": true }),
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

/// The Workers that there are, by id, with all that they are made of.
pub fn holdings(cloudflare: &Simulator) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for listed in cloudflare.workers(ACCOUNT_ID) {
        let (id, name) = (text(&listed["tag"]), text(&listed["id"]));
        let held = cloudflare.worker(ACCOUNT_ID, &name).unwrap_or_default();
        let ask = |part: &str| {
            let path = format!("/accounts/{ACCOUNT_ID}/workers/scripts/{name}/{part}");
            cloudflare
                .foreign_call(&ForeignCall::new("GET", path))
                .unwrap_or_default()
        };
        let settings = ask("settings");
        let schedules = ask("schedules");
        let crons = schedules["schedules"].as_array().into_iter().flatten();
        let crons: Vec<&Value> = crons.map(|schedule| &schedule["cron"]).collect();
        let worker = json!({
            "id": id, "of": WORKER, "name": name,
            "content": [held["syntax"], held["modules"], held["bindings"]],
            "modules": held["modules"], "bindings": held["bindings"],
            "compatibility_date": settings["compatibility_date"], "compatibility_flags": settings["compatibility_flags"],
            "observability": settings["observability"], "placement": settings["placement"], "limits": settings["limits"],
            "schedules": crons, "workers_dev": ask("subdomain")["enabled"],
        });
        found.insert(id, worker);
    }
    found
}

/// A route of a zone, as a dump shows both.
pub fn held_route(zone: &Value, route: &Value) -> Value {
    json!({
        "id": route["id"], "of": ROUTE, "zone_id": zone["id"], "zone_name": zone["name"], "pattern": route["pattern"],
        "script": text(&route["script"]),
    })
}

/// Kind and name of a resource of these kinds, or of what one manages.
pub fn identity(named: &Value) -> Option<(String, String)> {
    let spec = &named["spec"];
    let (kind, name) = if named["kind"] == WORKER {
        (WORKER, text(&spec["name"]))
    } else if named["kind"] == ROUTE {
        (ROUTE, format!("{} {}", domain_of(named), text(&spec["pattern"])))
    } else if named["of"] == WORKER {
        (WORKER, text(&named["name"]))
    } else {
        (named["of"] == ROUTE).then_some(())?;
        (
            ROUTE,
            format!("{} {}", text(&named["zone_name"]), text(&named["pattern"])),
        )
    };
    Some((kind.to_owned(), name))
}

/// The value of a key of a Secret or ConfigMap; none where it is missing.
fn read(world: &World, kind: InputKind, reference: &Value) -> Option<String> {
    let named = json!({
        "apiVersion": "v1", "kind": kind.name(), "metadata": { "name": reference["name"], "namespace": NAMESPACE },
    });
    let object = world.api.get(&crate::memory_api::ObjectId::of(&named))?;
    let value = object["data"][reference["key"].as_str()?].as_str()?.to_owned();
    Some(match kind {
        InputKind::Secret => unbase64(&value),
        InputKind::ConfigMap => value,
    })
}

/// Whether a Secret or ConfigMap that a Worker reads is missing, or lacks the key.
pub fn lacks_input(world: &World, resource: &Value) -> bool {
    let spec = &resource["spec"];
    let bindings = spec["bindings"].as_array().into_iter().flatten();
    let mut secrets = bindings
        .map(|binding| &binding["secretKeyRef"])
        .filter(|it| !it.is_null());
    let code = &spec["scriptConfigMapRef"];
    secrets.any(|secret| read(world, InputKind::Secret, secret).is_none())
        || (!code.is_null() && read(world, InputKind::ConfigMap, code).is_none())
}

/// The resources of stores that a Worker is bound to, by kind and name.
pub fn stores_of(resource: &Value) -> Vec<(&'static str, String)> {
    let bindings = resource["spec"]["bindings"].as_array().into_iter().flatten();
    let named = bindings.flat_map(|binding| {
        let of_kind =
            |(field, kind, _): (&str, &'static str, &str)| Some((kind, binding[field]["name"].as_str()?.to_owned()));
        STORES.into_iter().filter_map(of_kind)
    });
    named.collect()
}

/// The fields in which a Worker is not what its resource asks for. `store` gives the id of the object of a store.
pub fn differences(
    world: &World,
    resource: &Value,
    worker: &Value,
    store: impl Fn(&str, &str) -> Option<String>,
) -> Vec<String> {
    let spec = &resource["spec"];
    let mut found = Vec::new();
    let mut check = |field: &str, wanted: Value, is: &Value| {
        if wanted != *is {
            found.push(format!("{field}: wanted {wanted}, is {is}"));
        }
    };
    let texts = |all: &Value, pointer: &str| -> Value {
        let all = all.as_array().into_iter().flatten();
        all.map(|it| it.pointer(pointer).cloned().unwrap_or_default()).collect()
    };
    let wanted = if spec["modules"].is_null() {
        let inline = spec["script"].as_str().map(str::to_owned);
        json!([inline.or_else(|| read(world, InputKind::ConfigMap, &spec["scriptConfigMapRef"]))])
    } else {
        texts(&spec["modules"], "/content")
    };
    check("code", wanted, &texts(&worker["modules"], "/body/text"));
    if let Some(bindings) = spec["bindings"].as_array() {
        let mut wanted = Map::new();
        for binding in bindings {
            let value = if let Some(text) = binding["plainText"].as_str() {
                json!(["plain_text", text])
            } else if binding["secretKeyRef"].is_object() {
                json!(["secret_text", read(world, InputKind::Secret, &binding["secretKeyRef"])])
            } else {
                let bound = STORES
                    .into_iter()
                    .find_map(|(field, kind, _)| Some((kind, binding[field]["name"].as_str()?)));
                json!(bound.map(|(kind, name)| (kind, store(kind, name))))
            };
            wanted.insert(text(&binding["name"]), value);
        }
        let mut is = Map::new();
        for binding in worker["bindings"].as_array().into_iter().flatten() {
            let kind = text(&binding["type"]);
            let value = match kind.as_str() {
                "kv_namespace" => json!(["KVNamespace", binding["namespace_id"]]),
                "r2_bucket" => json!(["R2Bucket", binding["bucket_name"]]),
                "d1" => json!(["D1Database", binding["id"]]),
                _ => json!([kind, binding["text"]]),
            };
            let kept =
                spec["keepSecrets"] == true && kind == "secret_text" && !wanted.contains_key(&text(&binding["name"]));
            if !kept {
                is.insert(text(&binding["name"]), value);
            }
        }
        check("bindings", json!(wanted), &json!(is));
    }
    let mut named = |field: &str, wanted: &Value, is: &Value| {
        if !wanted.is_null() {
            check(field, wanted.clone(), is);
        }
    };
    named(
        "compatibilityDate",
        &spec["compatibilityDate"],
        &worker["compatibility_date"],
    );
    named(
        "compatibilityFlags",
        &spec["compatibilityFlags"],
        &worker["compatibility_flags"],
    );
    let (observed, placed, limited) = (&worker["observability"], &worker["placement"], &worker["limits"]);
    named("observability", &spec["observability"]["enabled"], &observed["enabled"]);
    named("placement", &spec["placement"]["mode"], &placed["mode"]);
    named("limits", &spec["limits"]["cpuMs"], &limited["cpu_ms"]);
    named("workersDev", &spec["workersDev"], &worker["workers_dev"]);
    if let Some(schedules) = spec["schedules"].as_array() {
        let mut wanted: Vec<String> = schedules.iter().map(|it| text(it).replace("  ", " ")).collect();
        let mut is: Vec<String> = worker["schedules"].as_array().into_iter().flatten().map(text).collect();
        wanted.sort();
        is.sort();
        check("schedules", json!(wanted), &json!(is));
    }
    found
}
