//! KV namespaces, R2 buckets, D1 databases and queues as an account holds them, and what they are to be.

use std::collections::BTreeMap;

use kflare_sim::{ForeignCall, Simulator};
use serde_json::{Value, json};

use super::{KINDS, VARIANTS, cors, lifecycle};
use crate::simulation::ACCOUNT_ID;
use crate::story::identity::text;

fn path(rest: &str) -> String {
    format!("/accounts/{ACCOUNT_ID}{rest}")
}

/// The call that makes what a spec asks for, without its rules.
pub(super) fn creation(kind: &str, spec: &Value) -> ForeignCall {
    match kind {
        "KVNamespace" => {
            ForeignCall::new("POST", path("/storage/kv/namespaces")).body(json!({ "title": spec["title"] }))
        }
        "R2Bucket" => {
            let call = ForeignCall::new("POST", path("/r2/buckets")).body(json!({ "name": spec["name"] }));
            call.header("cf-r2-jurisdiction", spec["jurisdiction"].as_str().unwrap_or("default"))
        }
        _ => {
            let (rest, name) = match kind {
                "Queue" => ("/queues", "queue_name"),
                _ => ("/d1/database", "name"),
            };
            let mut body = json!({ name: spec["name"] });
            if !spec["jurisdiction"].is_null() {
                body["jurisdiction"] = spec["jurisdiction"].clone();
            }
            ForeignCall::new("POST", path(rest)).body(body)
        }
    }
}

/// What there is, by id; a bucket's is its name, which is in one jurisdiction only. Each says its kind.
pub fn holdings(cloudflare: &Simulator) -> BTreeMap<String, Value> {
    let all = [
        ("KVNamespace", "id", cloudflare.kv_namespaces()),
        ("R2Bucket", "name", cloudflare.r2_buckets()),
        ("D1Database", "uuid", cloudflare.d1_databases()),
        ("Queue", "queue_id", cloudflare.queues()),
    ];
    let mut found = BTreeMap::new();
    for (kind, id, objects) in all {
        for mut object in objects {
            let id = text(&object[id]);
            object["kind"] = json!(kind);
            object["id"] = json!(id);
            if kind == "Queue" {
                object["name"] = object["queue_name"].clone();
                // They come and go with the bindings of Workers.
                for field in ["producers", "producers_total_count"] {
                    object.as_object_mut().map(|queue| queue.remove(field));
                }
            }
            found.insert(id, object);
        }
    }
    found
}

/// Kind and name of a resource of these kinds, or of what one manages.
pub fn identity(named: &Value) -> Option<(String, String)> {
    let kind = named["kind"].as_str()?;
    KINDS.iter().find(|(known, _)| *known == kind)?;
    let fields = if named["spec"].is_object() {
        &named["spec"]
    } else {
        named
    };
    let name = if kind == "KVNamespace" { "title" } else { "name" };
    Some((kind.to_owned(), text(&fields[name])))
}

/// Somebody changes one of those that are there, or deletes it.
pub fn meddle(cloudflare: &Simulator, pick: usize, number: u64) {
    // In an order that does not depend on ids.
    let mut all: Vec<Value> = holdings(cloudflare).into_values().collect();
    all.sort_by_key(identity);
    if all.is_empty() {
        return;
    }
    let object = &all[pick % all.len()];
    let id = text(&object["id"]);
    let variant = usize::try_from(number / 4).unwrap_or_default();
    let jurisdiction = object["jurisdiction"].as_str().unwrap_or("default");
    let bucket = |method: &str, rest: &str| {
        ForeignCall::new(method, path(&format!("/r2/buckets/{id}{rest}"))).header("cf-r2-jurisdiction", jurisdiction)
    };
    let call = match (object["kind"].as_str().unwrap_or_default(), number % 4) {
        ("KVNamespace", 0) => ForeignCall::new("DELETE", path(&format!("/storage/kv/namespaces/{id}"))),
        ("KVNamespace", _) => ForeignCall::new("PUT", path(&format!("/storage/kv/namespaces/{id}")))
            .body(json!({ "title": format!("theirs {}", variant % 2) })),
        ("D1Database", 0) => ForeignCall::new("DELETE", path(&format!("/d1/database/{id}"))),
        ("D1Database", _) => {
            let mode = ["auto", "disabled"][variant % 2];
            ForeignCall::new("PATCH", path(&format!("/d1/database/{id}")))
                .body(json!({ "read_replication": { "mode": mode } }))
        }
        ("Queue", 0) => ForeignCall::new("DELETE", path(&format!("/queues/{id}"))),
        ("Queue", _) => {
            let settings = [
                json!({ "delivery_delay": 3 }),
                json!({ "message_retention_period": 64 }),
                json!({ "delivery_paused": number % 4 == 1 }),
            ];
            ForeignCall::new("PATCH", path(&format!("/queues/{id}")))
                .body(json!({ "settings": settings[variant % settings.len()] }))
        }
        (_, 0) if variant % 2 == 0 => bucket("DELETE", ""),
        (_, 0) => {
            drop(cloudflare.set_objects(ACCOUNT_ID, jurisdiction, &id, number));
            return;
        }
        (_, 1) => bucket("PATCH", "").header("cf-r2-storage-class", ["Standard", "InfrequentAccess"][variant % 2]),
        (_, 2) => match cors(variant).1 {
            Value::Null => bucket("DELETE", "/cors"),
            rules => bucket("PUT", "/cors").body(json!({ "rules": rules })),
        },
        _ => bucket("PUT", "/lifecycle").body(json!({ "rules": lifecycle(variant).1 })),
    };
    drop(cloudflare.foreign_call(&call));
}

/// Somebody takes all objects out of all buckets.
pub fn empty_buckets(cloudflare: &Simulator) {
    for bucket in cloudflare.r2_buckets() {
        let jurisdiction = bucket["jurisdiction"].as_str().unwrap_or("default");
        let name = text(&bucket["name"]);
        drop(cloudflare.set_objects(ACCOUNT_ID, jurisdiction, &name, 0));
    }
}

/// The fields in which an object is not what its resource asks for. What a spec does not name is left alone.
pub fn differences(resource: &Value, object: &Value) -> Vec<String> {
    let spec = &resource["spec"];
    let mut found = Vec::new();
    let mut check = |field: &str, wanted: &Value, is: &Value| {
        if !wanted.is_null() && wanted != is {
            found.push(format!("{field}: wanted {wanted}, is {is}"));
        }
    };
    check("title", &spec["title"], &object["title"]);
    check("name", &spec["name"], &object["name"]);
    check("jurisdiction", &spec["jurisdiction"], &object["jurisdiction"]);
    check("storageClass", &spec["storageClass"], &object["storage_class"]);
    let mode = &spec["readReplication"]["mode"];
    check("readReplication", mode, &object["read_replication"]["mode"]);
    let settings = &object["settings"];
    check(
        "deliveryDelaySeconds",
        &spec["deliveryDelaySeconds"],
        &settings["delivery_delay"],
    );
    let retention = &settings["message_retention_period"];
    check("messageRetentionSeconds", &spec["messageRetentionSeconds"], retention);
    let paused = json!(settings["delivery_paused"].as_bool().unwrap_or_default());
    check("deliveryPaused", &spec["deliveryPaused"], &paused);
    for variant in 0..VARIANTS {
        let (asked, wire) = cors(variant);
        if spec["cors"] == asked && object["cors"] != wire {
            found.push(format!("cors: wanted {wire}, is {}", object["cors"]));
        }
        let (asked, wire) = lifecycle(variant);
        let mut rules = object["lifecycle"].as_array().cloned().unwrap_or_default();
        rules.retain(|rule| rule["id"] != "Default Multipart Abort Rule");
        rules.sort_by_key(|rule| text(&rule["id"]));
        if spec["lifecycle"] == asked && json!(rules) != wire {
            found.push(format!("lifecycle: wanted {wire}, is {}", object["lifecycle"]));
        }
    }
    found
}
