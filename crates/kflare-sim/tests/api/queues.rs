//! Queues.

use kflare_sim::{
    AccountSeed, AccountType, Area, Fault, FaultMatch, FaultSpec, ForeignCall, Plan, QueueSeed, Seed, Simulator,
    TokenSeed,
};
use serde_json::{Value, json};

use crate::support::*;

fn path(rest: &str) -> String {
    format!("/accounts/{ACCOUNT}/queues{rest}")
}

/// A token `queues` that may do everything here, `reader` that may look, one for Workers, and an Enterprise account.
fn queues() -> Api {
    let api = api_on(Plan::Free);
    let of =
        |name: &str, account: &str, area, write| TokenSeed::of_account(&token(name), account, grants(&[(area, write)]));
    api.sim
        .seed(&Seed {
            accounts: vec![AccountSeed {
                id: Some(OTHER_ACCOUNT.into()),
                kind: AccountType::Enterprise,
                ..AccountSeed::named("Two")
            }],
            tokens: vec![
                of("queues", "One", Area::Queues, true),
                of("reader", "One", Area::Queues, false),
                of("workers", "One", Area::WorkersScripts, true),
                of("kv", "One", Area::Kv, true),
                of("two", "Two", Area::Queues, true),
            ],
            ..Seed::default()
        })
        .expect("a good seed");
    api.as_token("queues")
}

async fn add(api: &Api, body: Value) -> Answer {
    api.send("POST", &path(""), Some(&body)).await
}

fn queue_id(queue: &Value) -> String {
    queue["queue_id"].as_str().expect("an id").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_queue_lives() {
    let api = queues();
    let made = add(&api, json!({ "queue_name": "jobs" })).await;
    assert_eq!(made.header("ratelimit"), None, "queues name no policy");
    let made = made.result();
    let one = path(&format!("/{}", queue_id(&made)));
    assert_eq!(made["created_on"], made["modified_on"]);
    assert_eq!(
        made,
        json!({
            "queue_id": queue_id(&made), "queue_name": "jobs",
            "created_on": "2026-11-29T12:00:00.000000Z", "modified_on": "2026-11-29T12:00:00.000000Z",
            "settings": { "delivery_delay": 0, "message_retention_period": 86_400 },
        })
    );
    let again = add(&api, json!({ "queue_name": "jobs" })).await;
    assert_eq!(again.refusal(), (409, 11_009));
    let alone = api.get(&one).await.result();
    assert_eq!(
        (&alone["producers"], &alone["consumers_total_count"]),
        (&json!([]), &json!(0))
    );
    assert_eq!(alone["settings"], made["settings"]);
    assert_eq!(api.send("DELETE", &one, None).await.result(), Value::Null);
    assert_eq!(api.get(&one).await.refusal(), (404, 11_000));
    assert_eq!(api.send("DELETE", &one, None).await.refusal(), (404, 11_000));
    assert_eq!(api.send("PATCH", &one, Some(&json!({}))).await.refusal(), (404, 11_000));
}

#[tokio::test(start_paused = true)]
async fn names_and_settings_are_checked() {
    let api = queues();
    for name in ["Bad Name!", "", "-jobs", "jobs-", "jobs_2", &"j".repeat(64)] {
        assert_eq!(
            add(&api, json!({ "queue_name": name })).await.refusal(),
            (400, 11_003),
            "{name}"
        );
    }
    assert_eq!(add(&api, json!({})).await.refusal(), (400, 11_003));
    for wrong in [
        json!({ "delivery_delay": 86_401 }),
        json!({ "delivery_delay": -1 }),
        json!({ "message_retention_period": 59 }),
        // For the paid plan.
        json!({ "message_retention_period": 86_401 }),
        json!({ "delivery_paused": "yes" }),
        json!([]),
    ] {
        let body = json!({ "queue_name": "jobs", "settings": wrong });
        assert_eq!(add(&api, body).await.refusal(), (400, 100_128), "{wrong}");
    }
    let mars = json!({ "queue_name": "jobs", "jurisdiction": "mars" });
    assert_eq!(add(&api, mars).await.refusal(), (400, 100_128));
    assert!(api.sim.queues().is_empty());
    let long = json!({ "queue_name": "j".repeat(63), "settings": { "message_retention_period": 1_209_600 } });
    let elsewhere = format!("/accounts/{OTHER_ACCOUNT}/queues");
    let made = api.as_token("two").send("POST", &elsewhere, Some(&long)).await.result();
    assert_eq!(made["settings"]["message_retention_period"], 1_209_600);
}

#[tokio::test(start_paused = true)]
async fn a_patch_merges_and_a_put_resets() {
    let api = queues();
    let settings = json!({ "delivery_delay": 5, "message_retention_period": 600, "delivery_paused": true });
    let body = json!({ "queue_name": "jobs", "jurisdiction": "eu", "settings": settings });
    let made = add(&api, body).await.result();
    assert_eq!(
        made["settings"],
        json!({ "delivery_delay": 5, "message_retention_period": 600 }),
        "no pause at creation"
    );
    let one = path(&format!("/{}", queue_id(&made)));
    let change = async |method: &str, body: Value| api.send(method, &one, Some(&body)).await;
    let paused = change("PATCH", json!({ "settings": { "delivery_paused": true } }))
        .await
        .result();
    assert_eq!(paused["settings"], settings);
    assert!(paused.get("producers").is_none(), "writes do not count");
    assert!(paused["modified_on"].as_str() > made["modified_on"].as_str());
    assert_eq!(api.get(&one).await.result()["settings"], settings);
    add(&api, json!({ "queue_name": "mails" })).await.result();
    assert_eq!(
        change("PATCH", json!({ "queue_name": "mails" })).await.refusal(),
        (409, 11_009)
    );
    assert_eq!(
        change("PATCH", json!({ "queue_name": "No" })).await.refusal(),
        (400, 11_003)
    );
    let renamed = change("PATCH", json!({ "queue_name": "tasks" })).await.result();
    assert_eq!(
        (&renamed["queue_name"], &renamed["settings"]),
        (&json!("tasks"), &settings)
    );
    let reset = change("PUT", json!({ "queue_name": "tasks" })).await.result();
    assert_eq!(
        reset["settings"],
        json!({ "delivery_delay": 0, "message_retention_period": 86_400 })
    );
    assert_eq!(
        (&reset["created_on"], &reset["jurisdiction"]),
        (&made["created_on"], &json!("eu"))
    );
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_with_counts_and_without_settings_and_filter_by_name() {
    let api = queues();
    for number in 0..101 {
        add(&api, json!({ "queue_name": format!("q{number}") })).await.result();
    }
    let first = api.get(&path("")).await;
    assert_eq!(
        first.body["result_info"],
        json!({ "page": 1, "per_page": 100, "count": 100, "total_count": 101, "total_pages": 2 })
    );
    assert_eq!(
        (&first.body["errors"], &first.body["messages"]),
        (&Value::Null, &Value::Null)
    );
    let row = first.body["result"][0].as_object().expect("a queue");
    assert!(
        row.contains_key("producers_total_count") && !row.contains_key("settings"),
        "{row:?}"
    );
    let rest = api.get(&path("?page=2")).await;
    assert_eq!(rest.body["result"].as_array().map(Vec::len), Some(1));
    let found = api.get(&path("?name=q1&name=q100&name=q")).await;
    assert_eq!(found.body["result_info"]["total_count"], 2);
}

#[tokio::test(start_paused = true)]
async fn those_who_manage_workers_manage_queues() {
    let api = queues();
    let body = json!({ "queue_name": "jobs" });
    assert_eq!(api.as_token("kv").get(&path("")).await.refusal(), (403, 10_000));
    assert_eq!(api.as_token("two").get(&path("")).await.refusal(), (403, 10_000));
    let reader = api.as_token("reader");
    assert_eq!(
        reader.send("POST", &path(""), Some(&body)).await.refusal(),
        (403, 10_000)
    );
    api.as_token("workers")
        .send("POST", &path(""), Some(&body))
        .await
        .result();
    assert_eq!(reader.get(&path("")).await.body["result"][0]["queue_name"], "jobs");
    let workers = format!("/accounts/{ACCOUNT}/workers/scripts");
    assert_eq!(
        api.get(&workers).await.refusal(),
        (403, 10_000),
        "not the other way round"
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_there_can_be_bound_and_knows_who_sends() {
    let api = queues();
    let jobs = json!([{ "name": "JOBS", "type": "queue", "queue_name": "jobs" }]);
    let workers = api.as_token("workers");
    assert_eq!(
        crate::workers::bound(&workers, "web", jobs.clone()).await.refusal(),
        (400, 11_000)
    );
    let made = add(&api, json!({ "queue_name": "jobs" })).await.result();
    crate::workers::bound(&workers, "web", jobs).await.result();
    let alone = api.get(&path(&format!("/{}", queue_id(&made)))).await.result();
    assert_eq!(alone["producers"], json!([{ "type": "worker", "script": "web" }]));
    assert_eq!(alone["producers_total_count"], 1);
}

#[tokio::test(start_paused = true)]
async fn queues_are_seeded_kept_and_seen_as_they_were() {
    let api = queues();
    let seed = Seed {
        queues: vec![QueueSeed {
            id: Some(UNKNOWN.into()),
            account: "One".into(),
            name: "jobs".into(),
        }],
        ..Seed::default()
    };
    api.sim.seed(&seed).expect("a good seed");
    let twice = QueueSeed {
        id: None,
        ..seed.queues[0].clone()
    };
    let twice = Seed {
        queues: vec![twice],
        ..Seed::default()
    };
    assert!(api.sim.seed(&twice).is_err(), "the name is taken");
    api.sim.mark("before");
    let gone = ForeignCall::new("DELETE", path(&format!("/{UNKNOWN}")));
    api.sim.foreign_call(&gone).expect("deleted");
    add(
        &api,
        json!({ "queue_name": "mails", "settings": { "delivery_delay": 9 } }),
    )
    .await
    .result();
    let stale = Fault::StaleList {
        seconds: None,
        mark: Some("before".to_owned()),
    };
    let fault = api
        .sim
        .add_fault(FaultSpec::new(FaultMatch::any(), stale))
        .expect("a fault");
    assert_eq!(api.get(&path("")).await.body["result"][0]["queue_name"], "jobs");
    api.sim.remove_fault(fault);
    assert_eq!(api.get(&path("")).await.body["result"][0]["queue_name"], "mails");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.json");
    api.sim.save(&file).expect("saved");
    let copy = Simulator::new(config());
    assert!(copy.load(&file).expect("loaded"));
    assert_eq!(copy.dump(), api.sim.dump());
    assert_eq!(copy.dump()["queues"][0]["settings"]["delivery_delay"], 9);
}
