//! Workers and their routes as an account holds them, and what they are to be.

use std::collections::BTreeMap;

use kflare_sim::{ForeignCall, Simulator};
use serde_json::{Map, Value, json};

use super::{ROUTE, STORES, WORKER};
use crate::memory_api::ObjectId;
use crate::simulation::{ACCOUNT_ID, NAMESPACE, World};
use crate::story::act::InputKind;
use crate::story::identity::{domain_of, recorded_id, text};
use crate::story::perform::unbase64;

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
    let object = world.api.get(&ObjectId::of(&named))?;
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

/// What a binding to the object of a store says: of a queue its name, of others their id.
pub fn binds(store: &Value) -> Option<String> {
    if store["kind"] == "Queue" {
        return store["spec"]["name"].as_str().map(str::to_owned);
    }
    recorded_id(store)
}

/// The fields in which a Worker is not what its resource asks for. `store` gives what a binding to a store says of it.
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
                "queue" => json!(["Queue", binding["queue_name"]]),
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
