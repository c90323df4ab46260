//! What a record is to be at Cloudflare: found out by asking an empty simulator for it, not the code under test.

use kflare_api::Tunnel;
use kflare_sim::{AccountSeed, Plan, Seed, SimConfig, Simulator, ZoneSeed};
use serde_json::{Value, json};

use super::act::Setting;
use super::holdings::Holdings;
use super::identity::{domain_of, text};
use super::vocabulary::{body, snake_case};
use crate::memory_api::ObjectId;
use crate::simulation::{NAMESPACE, World};

/// The record as Cloudflare shows it right after it was created from the spec, or why it refuses it.
pub fn wanted(clusters: &[World], setting: &Setting, holdings: &Holdings, resource: &Value) -> Result<Value, String> {
    let domain = domain_of(resource);
    let zone = holdings.zones.values().find(|zone| text(&zone["name"]) == domain);
    let plan = zone.map_or(Plan::Free, plan_of);
    let simulator = Simulator::new(SimConfig {
        quirks: setting.quirks(),
        ..SimConfig::default()
    });
    let seed = Seed {
        accounts: vec![AccountSeed::named("one")],
        zones: vec![ZoneSeed::named(&domain, "one").on(plan)],
        ..Seed::default()
    };
    simulator.seed(&seed).map_err(|error| error.to_string())?;
    let mut body = body(&resource["spec"]);
    if let Some(name) = resource["spec"]["tunnelRef"]["name"].as_str() {
        let tunnel = holdings.tunnels.values().find(|tunnel| tunnel["name"] == *name);
        // A tunnel that is gone, and that may not be made again, has the id that its resource remembers.
        let remembered = || {
            let tunnel = ObjectId::namespaced::<Tunnel>(NAMESPACE, name);
            let found = clusters.iter().find_map(|world| world.api.get(&tunnel));
            found.map(|tunnel| text(&tunnel["status"]["cloudflareMetadata"]["tunnelID"]))
        };
        let id = tunnel.map(|tunnel| text(&tunnel["id"])).or_else(remembered);
        let id = id.unwrap_or_default();
        body.insert("content".to_owned(), json!(format!("{id}.cfargotunnel.com")));
    }
    if !body.contains_key("ttl") {
        body.insert("ttl".to_owned(), json!(1));
    }
    simulator
        .foreign_create(&domain, &body)
        .map_err(|refusal| format!("{refusal:?}"))
}

/// The plan of a zone as Cloudflare shows it.
pub fn plan_of(zone: &Value) -> Plan {
    match zone["plan"]["legacy_id"].as_str() {
        Some("pro") => Plan::Pro,
        Some("business") => Plan::Business,
        Some("enterprise") => Plan::Enterprise,
        _ => Plan::Free,
    }
}

/// The fields in which a record is not what is wanted. Settings and priorities that a spec does not name are left alone.
pub fn differences(spec: &Value, wanted: &Value, record: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for field in ["type", "name", "content", "data", "ttl", "proxied", "comment"] {
        if !same(&wanted[field], &record[field]) {
            found.push(format!("{field}: wanted {}, is {}", wanted[field], record[field]));
        }
    }
    if sorted(&wanted["tags"]) != sorted(&record["tags"]) {
        found.push(format!("tags: wanted {}, is {}", wanted["tags"], record["tags"]));
    }
    if !spec["priority"].is_null() && wanted["priority"] != record["priority"] {
        found.push(format!(
            "priority: wanted {}, is {}",
            wanted["priority"], record["priority"]
        ));
    }
    for (setting, value) in spec["settings"].as_object().into_iter().flatten() {
        let setting = snake_case(setting);
        if record["settings"][&setting].as_bool().unwrap_or(false) != value.as_bool().unwrap_or(false) {
            found.push(format!("settings.{setting}: wanted {value}, is {}", record["settings"]));
        }
    }
    found
}

/// Tags are a set.
fn sorted(tags: &Value) -> Vec<String> {
    let mut tags: Vec<String> = tags.as_array().into_iter().flatten().map(ToString::to_string).collect();
    tags.sort();
    tags
}

fn same(a: &Value, b: &Value) -> bool {
    let nothing = |it: &Value| it.is_null() || *it == json!("") || *it == json!([]);
    a == b || (nothing(a) && nothing(b))
}
