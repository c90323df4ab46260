//! Lists of addresses in stories: their items, written by operations that take their time or fail, and what others do to them.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response};
use kflare_api::names;
use kflare_sim::{Dropped, Fault, FaultMatch, FaultSpec, ForeignCall, SimConfig, Simulator};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::act::{Act, ListEdit, Setting, Step, Target};
use super::identity::text;
use crate::simulation::{ACCOUNT_ID, NAMESPACE};

const SECOND: u64 = 1000;

/// Few names, so that clusters and neighbours meet.
const NAMES: [&str; 2] = ["office", "bad_bots"];

/// The kind of their resources.
const KIND: &str = "IPList";

/// What happens to lists in the story of a seed, and the names that rules may use.
pub fn steps(seed: u64, setting: &Setting, length_ms: u64) -> (Vec<Step>, Vec<String>) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x0061_6464_7265_7373);
    if rng.random_bool(0.7) {
        return (Vec::new(), Vec::new());
    }
    let mut steps = Vec::new();
    if rng.random_bool(0.3) {
        let (at_ms, name) = (rng.random_range(0..60 * SECOND), pick(&mut rng, &["office", "theirs"]));
        let edit = ListEdit::Create { items: items(&mut rng) };
        steps.push(step(
            at_ms,
            Act::ForeignList {
                name: name.to_owned(),
                edit,
            },
        ));
    }
    for cluster in 0..setting.clusters {
        for name in NAMES {
            if rng.random_bool(0.6) {
                steps.push(step(rng.random_range(0..30 * SECOND), create(&mut rng, cluster, name)));
            }
        }
        for _ in 0..rng.random_range(1..8) {
            let at_ms = rng.random_range(10 * SECOND..length_ms);
            something(&mut rng, cluster, at_ms, &mut steps);
        }
    }
    (steps, NAMES.into_iter().chain(["theirs"]).map(str::to_owned).collect())
}

fn step(at_ms: u64, act: Act) -> Step {
    Step { at_ms, act }
}

fn pick<'a>(rng: &mut StdRng, all: &[&'a str]) -> &'a str {
    all.choose(rng).copied().unwrap_or_default()
}

fn create(rng: &mut StdRng, cluster: usize, name: &str) -> Act {
    let mut annotations = Map::new();
    match rng.random_range(0..8) {
        0..=2 => {
            let policy = pick(rng, &["adopt", "adopt-or-create", "adopt-if-matching"]);
            annotations.insert(names::ADOPTION_POLICY.to_owned(), json!(policy));
        }
        3 => drop(annotations.insert(names::DELETION_POLICY.to_owned(), json!("retain"))),
        _ => {}
    }
    let mut spec = json!({ "accountRef": { "name": "main" }, "name": name, "items": items(rng) });
    if rng.random_bool(0.4) {
        spec["description"] = json!("ours");
    }
    let manifest = json!({
        "apiVersion": names::API_VERSION, "kind": KIND,
        "metadata": { "name": resource_name(name), "namespace": NAMESPACE, "annotations": annotations },
        "spec": spec,
    });
    Act::Create { cluster, manifest }
}

fn resource_name(list: &str) -> String {
    list.replace('_', "-")
}

/// Items in the spellings of users; no address twice.
fn items(rng: &mut StdRng) -> Value {
    let mut items = Vec::new();
    for n in 0..rng.random_range(0..7) {
        let ip = match rng.random_range(0..5) {
            0 => continue,
            1 => format!("192.0.2.{n}/32"),
            2 => format!("2001:DB8:0:{n}::{n}/64"),
            3 => format!("10.{n}.7.9/16"),
            _ => format!("192.0.2.{n}"),
        };
        let mut item = json!({ "ip": ip });
        if rng.random_bool(0.3) {
            item["comment"] = json!(format!("note {}", rng.random_range(0..3)));
        }
        items.push(item);
    }
    Value::Array(items)
}

fn something(rng: &mut StdRng, cluster: usize, at_ms: u64, steps: &mut Vec<Step>) {
    let name = pick(rng, &NAMES);
    let target = Target {
        kind: KIND.to_owned(),
        name: resource_name(name),
    };
    let theirs = |edit: ListEdit| Act::ForeignList {
        name: name.to_owned(),
        edit,
    };
    let edit = |target: Target, change: Value| Act::Edit {
        cluster,
        target,
        change,
    };
    let act = match rng.random_range(0..14) {
        0..=3 => edit(target, json!({ "items": items(rng) })),
        4 => edit(target, json!({ "description": pick(rng, &["ours", "ours too"]) })),
        5 => {
            if rng.random_bool(0.6) {
                let after = at_ms + rng.random_range(1..90) * SECOND;
                steps.push(step(after, create(rng, cluster, name)));
            }
            Act::Delete { cluster, target }
        }
        6 => Act::Annotate {
            cluster,
            target,
            annotation: names::PAUSED.to_owned(),
            value: rng.random_bool(0.5).then(|| "true".to_owned()),
        },
        7 | 8 => theirs(ListEdit::Add {
            ip: "203.0.113.7".to_owned(),
        }),
        9 => theirs(ListEdit::Remove {
            ip: "192.0.2.3".to_owned(),
        }),
        10 => theirs(ListEdit::Describe {
            text: "theirs".to_owned(),
        }),
        11 if rng.random_bool(0.4) => theirs(ListEdit::Delete),
        11 | 12 => theirs(ListEdit::FailNextOperation),
        _ => Act::CloudflareFails {
            fault: fault(rng),
            for_ms: rng.random_range(1..120) * SECOND,
        },
    };
    steps.push(step(at_ms, act));
}

fn fault(rng: &mut StdRng) -> FaultSpec {
    let (method, path) = *[
        ("POST", "items"),
        ("DELETE", "items"),
        ("GET", "bulk_operations"),
        ("POST", "rules/lists"),
    ]
    .choose(rng)
    .unwrap_or(&("POST", "items"));
    let dropped = Some(Dropped::Reset);
    let fault = match rng.random_range(0..3) {
        0 => Fault::DropBefore { dropped },
        1 => Fault::DropAfter { dropped },
        _ => Fault::Status {
            status: 503,
            code: 10_001,
            message: "Service unavailable".to_owned(),
        },
    };
    FaultSpec::new(FaultMatch::path(method, path), fault).times(rng.random_range(1..3))
}

/// Somebody does something to the list of a name.
pub fn meddle(cloudflare: &Simulator, name: &str, edit: &ListEdit) {
    match edit {
        ListEdit::Create { items } => {
            let body = json!({ "name": name, "kind": "ip", "items": items });
            drop(cloudflare.foreign_create_list(ACCOUNT_ID, &body.as_object().cloned().unwrap_or_default()));
        }
        ListEdit::Add { ip } => drop(cloudflare.foreign_add_list_items(ACCOUNT_ID, name, &[json!({ "ip": ip })])),
        ListEdit::Remove { ip } => drop(cloudflare.foreign_remove_list_item(ACCOUNT_ID, name, ip)),
        ListEdit::Describe { text } => drop(cloudflare.foreign_describe_list(ACCOUNT_ID, name, text)),
        ListEdit::Delete => drop(cloudflare.foreign_delete_list(ACCOUNT_ID, name)),
        ListEdit::FailNextOperation => cloudflare.fail_next_bulk_operation(ACCOUNT_ID, "it did not work"),
    }
}

/// The lists that there are, by id, without what Cloudflare counts.
pub fn holdings(cloudflare: &Simulator) -> BTreeMap<String, Value> {
    let lists = cloudflare.lists(ACCOUNT_ID).into_iter();
    let shown = lists.map(|list| {
        let shown = json!({
            "id": list["id"], "of": KIND, "name": list["name"], "description": list["description"], "items": plain(&list["items"]),
        });
        (text(&list["id"]), shown)
    });
    shown.collect()
}

fn plain(items: &Value) -> Value {
    let items = items.as_array().into_iter().flatten();
    items
        .map(|item| json!({ "ip": item["ip"], "comment": text(&item["comment"]) }))
        .collect()
}

/// Kind and name of a resource of this kind, or of what one manages.
pub fn identity(named: &Value) -> Option<(String, String)> {
    let name = if named["kind"] == KIND {
        &named["spec"]["name"]
    } else {
        (named["of"] == KIND).then_some(&named["name"])?
    };
    Some((KIND.to_owned(), text(name)))
}

/// The list whose items a call is to change.
pub fn items_of(request: &Request<Bytes>) -> Option<String> {
    let rest = request.uri().path().split_once("/rules/lists/")?.1;
    let list = rest.strip_suffix("/items")?;
    (request.method() != Method::GET).then(|| list.to_owned())
}

/// The operation that an answer says is under way.
pub fn operation_of(response: &Response<Bytes>) -> Option<String> {
    let body: Value = serde_json::from_slice(response.body()).ok()?;
    body["result"]["operation_id"].as_str().map(str::to_owned)
}

/// Whether an operation is under way.
pub fn is_under_way(cloudflare: &Simulator, operation: &str) -> bool {
    let path = format!("/accounts/{ACCOUNT_ID}/rules/lists/bulk_operations/{operation}");
    let shown = cloudflare
        .foreign_call(&ForeignCall::new("GET", path))
        .unwrap_or_default();
    matches!(shown["status"].as_str(), Some("pending" | "running"))
}

/// The fields in which a list is not what its resource asks for: an empty simulator says what its items mean.
pub fn differences(resource: &Value, list: &Value) -> Vec<String> {
    let spec = &resource["spec"];
    let body = json!({ "name": "asked", "kind": "ip", "items": spec["items"] });
    let made = Simulator::new(SimConfig::default())
        .foreign_create_list("nobody", &body.as_object().cloned().unwrap_or_default())
        .unwrap_or_default();
    let mut found = Vec::new();
    let wanted = plain(&made["items"]);
    if wanted != list["items"] {
        found.push(format!("items: wanted {wanted}, is {}", list["items"]));
    }
    if text(&spec["description"]) != text(&list["description"]) {
        found.push(format!(
            "description: wanted {}, is {}",
            spec["description"], list["description"]
        ));
    }
    found
}
