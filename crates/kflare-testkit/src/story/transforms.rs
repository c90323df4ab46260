//! The managed transforms of zones in stories. They always exist: a zone in which none is on has nothing that anybody has made.

use kflare_api::names;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::act::{Act, Setting, Step, Target};
use super::identity::{domain_of, text};
use super::vocabulary::DOMAINS;
use crate::simulation::NAMESPACE;

const SECOND: u64 = 1000;

const KIND: &str = "ManagedTransform";

/// Transforms of every plan, none of which excludes another.
const REQUEST: [&str; 2] = ["add_visitor_location_headers", "remove_visitor_ip_headers"];
const RESPONSE: [&str; 2] = ["add_security_headers", "remove_x-powered-by_header"];

/// What happens to managed transforms in the story of a seed.
pub fn steps(seed: u64, setting: &Setting, length_ms: u64) -> Vec<Step> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x7472_616e_7366);
    let mut steps = Vec::new();
    if rng.random_bool(0.75) {
        return steps;
    }
    let zone = DOMAINS[0];
    for cluster in 0..setting.clusters {
        let names: Vec<String> = (0..rng.random_range(1..3))
            .map(|number| format!("mt{number}"))
            .collect();
        for name in &names {
            let at_ms = rng.random_range(0..30 * SECOND);
            steps.push(create(&mut rng, at_ms, cluster, name));
        }
        for _ in 0..rng.random_range(1..7) {
            let at_ms = rng.random_range(10 * SECOND..length_ms);
            let name = names.choose(&mut rng).cloned().unwrap_or_default();
            something(&mut rng, cluster, at_ms, zone, &name, &mut steps);
        }
    }
    steps
}

fn something(rng: &mut StdRng, cluster: usize, at_ms: u64, zone: &str, name: &str, steps: &mut Vec<Step>) {
    let target = Target {
        kind: KIND.to_owned(),
        name: name.to_owned(),
    };
    let act = match rng.random_range(0..9) {
        0 | 1 => Act::Edit {
            cluster,
            target,
            change: json!({ "managedRequestHeaders": listed(rng, REQUEST) }),
        },
        2 => Act::Edit {
            cluster,
            target,
            change: json!({ "managedResponseHeaders": listed(rng, RESPONSE) }),
        },
        3 => {
            if rng.random_bool(0.5) {
                let after = at_ms + rng.random_range(1..90) * SECOND;
                steps.push(create(rng, after, cluster, name));
            }
            Act::Delete { cluster, target }
        }
        4 => {
            let (annotation, values) = [
                (names::PAUSED, ["true", "false"]),
                (names::MODE, ["observe", "manage"]),
                (names::DELETION_POLICY, ["retain", "delete"]),
            ][rng.random_range(0..3)];
            Act::Annotate {
                cluster,
                target,
                annotation: annotation.to_owned(),
                value: Some(values[rng.random_range(0..2)].to_owned()),
            }
        }
        _ => Act::ForeignTransforms {
            zone: zone.to_owned(),
            body: json!({ "managed_request_headers": listed(rng, REQUEST), "managed_response_headers": listed(rng, RESPONSE) }),
        },
    };
    steps.push(Step { at_ms, act });
}

fn create(rng: &mut StdRng, at_ms: u64, cluster: usize, name: &str) -> Step {
    let mut annotations = json!({});
    if rng.random_bool(0.5) {
        let policy = ["adopt", "adopt-or-create", "adopt-if-matching"][rng.random_range(0..3)];
        annotations[names::ADOPTION_POLICY] = json!(policy);
    }
    let manifest = json!({
        "apiVersion": names::API_VERSION, "kind": KIND,
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
        "spec": {
            "zoneRef": { "name": DOMAINS[0].split('.').next() },
            "managedRequestHeaders": listed(rng, REQUEST), "managedResponseHeaders": listed(rng, RESPONSE),
        },
    });
    Step {
        at_ms,
        act: Act::Create { cluster, manifest },
    }
}

fn listed(rng: &mut StdRng, ids: [&str; 2]) -> Value {
    let mut listed = Vec::new();
    for id in ids {
        if rng.random_bool(0.7) {
            listed.push(json!({ "id": id, "enabled": rng.random_bool(0.6) }));
        }
    }
    Value::Array(listed)
}

/// What those of a zone are called: the zone itself has the id that their resource records.
pub fn id(zone_id: &str) -> String {
    format!("transforms of {zone_id}")
}

/// Those of a zone, as a dump shows it.
pub fn held(zone: &Value, shown: &Value) -> Value {
    let on: Vec<&Value> = ["managed_request_headers", "managed_response_headers"]
        .iter()
        .flat_map(|list| shown[list].as_array().into_iter().flatten())
        .filter(|transform| transform["enabled"] == true)
        .map(|transform| &transform["id"])
        .collect();
    let mut held = json!({
        "id": id(&text(&zone["id"])), "of": KIND, "zone_id": zone["id"], "zone_name": zone["name"], "transforms": on,
    });
    // Each is fought over by itself.
    for name in REQUEST.into_iter().chain(RESPONSE) {
        held[name] = json!(on.contains(&&json!(name)));
    }
    held
}

/// Whether these are the transforms of a zone and none is on: nobody has made them.
pub fn are_off(object: &Value) -> bool {
    object["transforms"].as_array().is_some_and(Vec::is_empty)
}

/// Kind and zone of a resource of this kind, or of what one manages.
pub fn identity(named: &Value) -> Option<(String, String)> {
    let zone = if named["kind"] == KIND {
        domain_of(named)
    } else {
        (named["of"] == KIND).then(|| text(&named["zone_name"]))?
    };
    Some((KIND.to_owned(), zone))
}

/// The listed transforms that are not as a resource asks for.
pub fn differences(resource: &Value, object: &Value) -> Vec<String> {
    let on = object["transforms"].as_array().cloned().unwrap_or_default();
    ["managedRequestHeaders", "managedResponseHeaders"]
        .iter()
        .flat_map(|list| resource["spec"][list].as_array().into_iter().flatten())
        .filter(|wanted| wanted["enabled"] != json!(on.contains(&wanted["id"])))
        .map(ToString::to_string)
        .collect()
}
