//! Lists and managed transforms through seeded trouble: users and strangers who change things, answers that are lost, operations
//! that take long or fail, and a controller that is killed. In the end everything is as its spec says, what belongs to others is
//! as they left it, and nothing is written any more.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{
    BulkOperations, Dropped, Fault, FaultMatch, FaultSpec, ListItemForm, ListWrites, Plan, Quirks, ZoneSeed,
};
use kflare_testkit::life::{Doom, Life};
use kflare_testkit::memory_api::ObjectId;
use kflare_testkit::simulation::{ACCOUNT_ID, ControllerOptions, NAMESPACE};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, Stage, ZONE, adopting, object, play, status, zone_id};

const TRANSFORMS: [&str; 2] = ["add_visitor_location_headers", "remove_visitor_ip_headers"];
const RESPONSES: [&str; 2] = ["add_security_headers", "remove_x-powered-by_header"];

/// Items in the spellings of users; no address twice.
fn items(rng: &mut StdRng) -> Value {
    let mut items = Vec::new();
    for n in 0..rng.random_range(0..40_u8) {
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

fn transforms(rng: &mut StdRng, ids: [&str; 2]) -> Value {
    let listed = ids.into_iter().filter(|_| rng.random_bool(0.8)).collect::<Vec<_>>();
    listed
        .into_iter()
        .map(|id| json!({ "id": id, "enabled": rng.random_bool(0.5) }))
        .collect()
}

fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    })
}

fn trouble(rng: &mut StdRng) -> FaultSpec {
    let routes = ["rules/lists", "items", "bulk_operations", "managed_headers", "."];
    let method = *["GET", "POST", "DELETE", "PUT", "PATCH"].choose(rng).unwrap();
    let matches = FaultMatch::path(method, routes.choose(rng).unwrap());
    let fault = match rng.random_range(0..6) {
        0 => Fault::DropBefore {
            dropped: Some(Dropped::Reset),
        },
        1 | 2 => Fault::DropAfter {
            dropped: Some(Dropped::Reset),
        },
        3 => Fault::Truncate { bytes: 40 },
        4 => Fault::RateLimited {
            retry_after: Some(rng.random_range(1..30)),
        },
        _ => status(503, 10_000),
    };
    FaultSpec::new(matches, fault)
        .skip(rng.random_range(0..3))
        .times(rng.random_range(1..4))
}

/// Somebody else's move, on a list of ours or on the zone.
fn foreign(stage: &Stage, rng: &mut StdRng) {
    let list = *["one", "two"].choose(rng).unwrap();
    let cloudflare = &stage.cloudflare;
    // A move that is not possible is none.
    match rng.random_range(0..5) {
        0 => drop(cloudflare.foreign_add_list_items(ACCOUNT_ID, list, &[json!({ "ip": "203.0.113.7" })])),
        1 => drop(cloudflare.foreign_remove_list_item(ACCOUNT_ID, list, "192.0.2.3")),
        2 => drop(cloudflare.foreign_describe_list(ACCOUNT_ID, list, "theirs")),
        3 => drop(cloudflare.foreign_delete_list(ACCOUNT_ID, list)),
        _ => {
            let body = json!({ "managed_response_headers": transforms(rng, RESPONSES) });
            drop(cloudflare.foreign_patch_managed_transforms(DOMAIN, object(&body)));
        }
    }
}

/// The items of a list at Cloudflare, as a spec could say them.
fn held(stage: &Stage, name: &str) -> Vec<(String, String)> {
    let lists = stage.cloudflare.lists(ACCOUNT_ID);
    let list = lists.into_iter().find(|list| list["name"] == name).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items
        .iter()
        .map(|item| (text(&item["ip"]), text(&item["comment"])))
        .collect()
}

/// What an empty simulator makes of these items: found out without the code under test.
fn expected(items: &Value) -> Vec<(String, String)> {
    let simulator = kflare_sim::Simulator::new(kflare_sim::SimConfig::default());
    let body = json!({ "name": "asked", "kind": "ip", "items": items });
    let made = simulator.foreign_create_list("nobody", object(&body)).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = made["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| (text(&item["ip"]), text(&item["comment"])))
        .collect()
}

fn tell(seed: u64) {
    play(seed, |stage| async move {
        let mut rng = StdRng::seed_from_u64(seed);
        stage.cloudflare.set_quirks(Quirks {
            list_writes: *[ListWrites::Refused, ListWrites::Queued].choose(&mut rng).unwrap(),
            list_items: *[ListItemForm::Plain, ListItemForm::Padded].choose(&mut rng).unwrap(),
            ..Quirks::default()
        });
        stage.cloudflare.set_bulk_operations(BulkOperations {
            pending: Duration::from_millis(rng.random_range(1..20_000)),
            running: Duration::from_millis(rng.random_range(1..20_000)),
        });
        stage
            .user
            .open_account(vec![ZoneSeed::named(DOMAIN, "Example").on(Plan::Pro)]);
        stage.user.connect();
        let stranger = json!({ "name": "theirs", "kind": "ip", "items": items(&mut rng) });
        stage
            .cloudflare
            .foreign_create_list(ACCOUNT_ID, object(&stranger))
            .unwrap();
        let untouched = held(&stage, "theirs");

        let zone = adopting(crate::stage::zone(ZONE, json!({ "name": DOMAIN })), "adopt");
        stage.create(zone);
        let mut ids: Vec<ObjectId> = Vec::new();
        for name in ["one", "two"] {
            let spec = json!({ "accountRef": { "name": "main" }, "name": name, "description": name, "items": items(&mut rng) });
            ids.push(stage.create(adopting(manifest("IPList", name, spec), "adopt-or-create")));
        }
        let spec = json!({
            "zoneRef": { "name": ZONE },
            "managedRequestHeaders": transforms(&mut rng, TRANSFORMS),
            "managedResponseHeaders": transforms(&mut rng, RESPONSES),
        });
        ids.push(stage.create(adopting(manifest("ManagedTransform", "mt", spec), "adopt-or-create")));

        let mut life: Life = stage.start();
        for step in 0..12 {
            stage.rest(Duration::from_millis(rng.random_range(10..45_000))).await;
            match rng.random_range(0..8) {
                0 | 1 => foreign(&stage, &mut rng),
                2 | 3 => drop(stage.cloudflare.add_fault(trouble(&mut rng)).unwrap()),
                4 => stage.cloudflare.fail_next_bulk_operation(ACCOUNT_ID, "it did not work"),
                5 => {
                    life.kill();
                    let doom = match rng.random_range(0..3) {
                        0 => Doom::None,
                        1 => Doom::BeforeRequest(rng.random_range(1..60)),
                        _ => Doom::AfterRequest(rng.random_range(1..60)),
                    };
                    life = Life::doomed(format!("controller-{step}"), doom);
                    let (world, running) = (stage.world.clone(), life.clone());
                    tokio::spawn(async move { world.run_controller(&running, ControllerOptions::default()).await });
                }
                6 => stage.user.edit_spec(
                    ids.last().unwrap(),
                    &json!({ "managedRequestHeaders": transforms(&mut rng, TRANSFORMS) }),
                ),
                _ => {
                    let id = ids[..2].choose(&mut rng).unwrap();
                    stage.user.edit_spec(id, &json!({ "items": items(&mut rng) }));
                }
            }
        }
        // The dust settles.
        stage.cloudflare.clear_faults();
        life.kill();
        stage.start_with("last", ControllerOptions::default());
        stage.rest(2 * HOUR).await;
        ids.push(zone_id());
        stage.ready(&ids).await;
        for name in ["one", "two"] {
            let id = ids.iter().find(|id| id.name == name).unwrap();
            let spec = stage.world.api.get(id).unwrap()["spec"].clone();
            assert_eq!(held(&stage, name), expected(&spec["items"]), "seed {seed}, list {name}");
        }
        let spec = stage.world.api.get(&ids[2]).unwrap()["spec"].clone();
        let remote = stage.cloudflare.managed_transforms(DOMAIN).unwrap();
        for (field, list) in [
            ("managedRequestHeaders", "managed_request_headers"),
            ("managedResponseHeaders", "managed_response_headers"),
        ] {
            for wanted in spec[field].as_array().unwrap() {
                let all = remote[list].as_array().unwrap();
                let is = all.iter().find(|it| it["id"] == wanted["id"]).unwrap();
                assert_eq!(is["enabled"], wanted["enabled"], "seed {seed}, {wanted}");
            }
        }
        assert_eq!(held(&stage, "theirs"), untouched, "seed {seed}");
        let names: Vec<Value> = stage
            .cloudflare
            .lists(ACCOUNT_ID)
            .iter()
            .map(|list| list["name"].clone())
            .collect();
        assert_eq!(names, ["one", "theirs", "two"], "seed {seed}: no twin, no orphan");
        let mark = stage.mark();
        stage.rest(2 * HOUR).await;
        stage.since(&mark).assert_no_write();

        // Everything goes, and takes with it what it made.
        stage.user.delete_all();
        stage.gone(&ids).await;
        assert_eq!(held(&stage, "theirs"), untouched, "seed {seed}");
    });
}

#[test]
fn seeded_trouble_ends_well() {
    for seed in 0..40 {
        tell(seed);
    }
}
