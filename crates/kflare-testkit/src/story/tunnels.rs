//! Tunnels in stories: a tunnel of each cluster, its configuration, a record that points at it, and who interferes. What they are
//! to be is written down here once more, not taken from the code under test.

use kflare_api::names;
use kflare_sim::Simulator;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::act::{Act, Step, Target};
use super::identity::{recorded_id, text};
use super::perform::unbase64;
use super::vocabulary::DOMAINS;
use crate::simulation::{NAMESPACE, World};

const SECOND: u64 = 1000;

/// The name of a cluster's tunnel, of its resource, and of the resource of its configuration.
fn tunnel_name(cluster: usize) -> String {
    format!("edge-c{cluster}")
}

fn secret_name(rng: &mut StdRng) -> String {
    format!("edge-token-{}", rng.random_range(0..3))
}

/// What happens with tunnels in the story of that seed. Drawn from a source of its own, so that everything else in a story
/// stays what it is.
pub(super) fn steps(seed: u64, clusters: usize, length_ms: u64) -> Vec<Step> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x0074_756e_6e65_6c73);
    let mut steps = Vec::new();
    for cluster in 0..clusters {
        if rng.random_bool(0.5) {
            continue;
        }
        let name = tunnel_name(cluster);
        let spec = json!({
            "accountRef": { "name": "main" }, "name": name, "credentialsSecretRef": { "name": secret_name(&mut rng) },
        });
        let record = json!({
            "zoneRef": { "name": DOMAINS[0].split('.').next() }, "name": format!("tunnel{cluster}"), "type": "CNAME",
            "tunnelRef": { "name": name }, "proxied": rng.random_bool(0.5),
        });
        let manifests = [
            manifest("Tunnel", &name, &spec),
            manifest("TunnelConfiguration", &name, &configuration(&mut rng, &name)),
            manifest("DNSRecord", &format!("through-{name}"), &record),
        ];
        for manifest in manifests {
            let at_ms = rng.random_range(0..20 * SECOND);
            steps.push(Step {
                at_ms,
                act: Act::Create { cluster, manifest },
            });
        }
        for _ in 0..rng.random_range(0..6) {
            let at_ms = rng.random_range(20 * SECOND..length_ms);
            let act = interference(&mut rng, cluster, &name);
            steps.push(Step { at_ms, act });
        }
    }
    steps
}

fn interference(rng: &mut StdRng, cluster: usize, name: &str) -> Act {
    let target = |kind: &str| Target {
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let edit = |kind: &str, change: Value| Act::Edit {
        cluster,
        target: target(kind),
        change,
    };
    match rng.random_range(0..9) {
        0 | 1 => edit(
            "Tunnel",
            json!({ "credentialsSecretRef": { "name": secret_name(rng) } }),
        ),
        2 | 3 => {
            let mut change = configuration(rng, name);
            for field in ["originRequest", "warpRouting"] {
                if change[field].is_null() {
                    change[field] = Value::Null;
                }
            }
            edit("TunnelConfiguration", change)
        }
        4 | 5 => Act::SpoilSecret {
            cluster,
            secret: secret_name(rng),
        },
        6 => Act::ForeignDeleteTunnel { name: name.to_owned() },
        7 => Act::Annotate {
            cluster,
            target: target(["Tunnel", "TunnelConfiguration"].choose(rng).unwrap_or(&"Tunnel")),
            annotation: names::PAUSED.to_owned(),
            value: rng.random_bool(0.5).then(|| "true".to_owned()),
        },
        _ => Act::Delete {
            cluster,
            target: target("TunnelConfiguration"),
        },
    }
}

fn manifest(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": spec,
    })
}

fn configuration(rng: &mut StdRng, tunnel: &str) -> Value {
    let mut rules = Vec::new();
    for number in 0..rng.random_range(0..4) {
        let mut rule = json!({ "hostname": format!("h{number}.alpha.example"), "service": "http://web.demo.svc:80" });
        if rng.random_bool(0.3) {
            rule["path"] = json!("^/api/");
        }
        if rng.random_bool(0.3) {
            rule["originRequest"] = json!({ "connectTimeout": "1m30s", "noTLSVerify": true });
        }
        rules.push(rule);
    }
    let mut spec = json!({
        "tunnelRef": { "name": tunnel }, "ingress": rules,
        "defaultService": *["http_status:404", "http_status:503", "hello_world"].choose(rng).unwrap_or(&"http_status:404"),
    });
    if rng.random_bool(0.3) {
        spec["originRequest"] = json!({ "tlsTimeout": "10s", "httpHostHeader": "web" });
    }
    if rng.random_bool(0.3) {
        spec["warpRouting"] = json!({ "enabled": rng.random_bool(0.5) });
    }
    spec
}

/// The tunnels that are not deleted, without what moves by itself.
pub(super) fn live(cloudflare: &Simulator) -> Vec<Value> {
    let mut tunnels = cloudflare.dump()["tunnels"].as_array().cloned().unwrap_or_default();
    tunnels.retain(|tunnel| tunnel["deleted_at"].is_null());
    for tunnel in &mut tunnels {
        tunnel["configuration"] = tunnel["configuration"]["config"].take();
    }
    tunnels
}

/// Why a Tunnel or a TunnelConfiguration that says it is Ready is not; none if it is.
pub(super) fn why_not(world: &World, resource: &Value, tunnels: &[Value]) -> Option<String> {
    let id = &recorded_id(resource)?;
    let Some(tunnel) = tunnels.iter().find(|tunnel| tunnel["id"] == *id) else {
        return Some("its tunnel does not exist".to_owned());
    };
    if resource["kind"] == "Tunnel" {
        if tunnel["name"] != resource["spec"]["name"] {
            return Some(format!("its tunnel is {}", tunnel["name"]));
        }
        return why_no_secret(world, resource, id);
    }
    let wanted = document(&resource["spec"]);
    let found = &tunnel["configuration"];
    let differs = |field: &str| wanted[field] != found.get(field).cloned().unwrap_or_default();
    let routing = !wanted["warp-routing"].is_null() && differs("warp-routing");
    (differs("ingress") || differs("originRequest") || routing).then(|| format!("wanted {wanted}, is {found}"))
}

fn why_no_secret(world: &World, resource: &Value, id: &str) -> Option<String> {
    let name = &resource["spec"]["credentialsSecretRef"]["name"];
    let secrets = world.api.list("secrets");
    let owned: Vec<&Value> = secrets
        .iter()
        .filter(|it| it["metadata"]["ownerReferences"][0]["uid"] == resource["metadata"]["uid"])
        .collect();
    let [secret] = owned.as_slice() else {
        return Some(format!("it owns {} Secrets", owned.len()));
    };
    if secret["metadata"]["name"] != *name || resource["status"]["credentialsSecretName"] != *name {
        return Some(format!("its Secret is {}", secret["metadata"]["name"]));
    }
    let token = world.cloudflare.tunnel_token(id);
    (token != Some(unbase64(&text(&secret["data"]["TUNNEL_TOKEN"]))))
        .then(|| "its Secret holds another token".to_owned())
}

/// The document that a spec asks for, as Cloudflare keeps it.
fn document(spec: &Value) -> Value {
    let mut rules = Vec::new();
    for rule in spec["ingress"].as_array().into_iter().flatten() {
        let mut sent = rule.clone();
        if let Some(request) = sent.get_mut("originRequest") {
            *request = in_seconds(request);
        }
        rules.push(sent);
    }
    rules.push(json!({ "service": spec["defaultService"] }));
    let mut document = Map::new();
    document.insert("ingress".to_owned(), json!(rules));
    document.insert("originRequest".to_owned(), in_seconds(&spec["originRequest"]));
    document.insert("warp-routing".to_owned(), spec["warpRouting"].clone());
    Value::Object(document)
}

/// The durations of these stories are `10s` and `1m30s`.
fn in_seconds(request: &Value) -> Value {
    let mut request = request.clone();
    for (_, value) in request.as_object_mut().into_iter().flatten() {
        match value.as_str() {
            Some("10s") => *value = json!(10),
            Some("1m30s") => *value = json!(90),
            _ => {}
        }
    }
    request
}
