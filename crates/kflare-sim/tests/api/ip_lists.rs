//! Lists of addresses: the lists, their items, and the operations that write items.

use std::time::Duration;

use kflare_sim::{
    Area, Fault, FaultMatch, FaultSpec, ListItemForm, ListWrites, Plan, Quirks, Seed, Simulator, TokenSeed, Totals,
};
use serde_json::{Value, json};

use crate::support::*;

const LISTS: &str = "/accounts/{account_id}/rules/lists";
const LIST: &str = "/accounts/{account_id}/rules/lists/{list_id}";
const ITEMS: &str = "/accounts/{account_id}/rules/lists/{list_id}/items";
const ITEM: &str = "/accounts/{account_id}/rules/lists/{list_id}/items/{item_id}";
const OPERATION: &str = "/accounts/{account_id}/rules/lists/bulk_operations/{operation_id}";

fn path(rest: &str) -> String {
    format!("/accounts/{ACCOUNT}/rules/lists{rest}")
}

async fn create(api: &Api, name: &str) -> Answer {
    let body = json!({ "name": name, "kind": "ip" });
    api.send("POST", &path(""), Some(&body)).await
}

/// Makes a list and gives its id.
async fn made(api: &Api, name: &str) -> String {
    id_of(&create(api, name).await.result())
}

async fn items(api: &Api, method: &str, list: &str, body: Value) -> Answer {
    api.send(method, &path(&format!("/{list}/items")), Some(&body)).await
}

/// The operation of a write that was accepted.
#[track_caller]
fn operation(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.body["result"]["operation_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

async fn state(api: &Api, operation: &str) -> Value {
    api.get(&path(&format!("/bulk_operations/{operation}"))).await.result()
}

/// Adds items and lets the operation end.
async fn add(api: &Api, list: &str, body: Value) -> Value {
    let operation = operation(&items(api, "POST", list, body).await);
    api.sim.advance(Duration::from_secs(2));
    state(api, &operation).await
}

/// The whole list of items, page by page.
async fn all_items(api: &Api, list: &str, per_page: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = path(&format!("/{list}/items?per_page={per_page}{cursor}"));
        let answer = api.get(&path).await;
        let page = answer.body["result"].as_array().expect("a list").clone();
        assert!(page.len() <= per_page);
        all.extend(page);
        match answer.body["result_info"]["cursors"]["after"].as_str() {
            Some(after) => cursor = format!("&cursor={}", after.replace('/', "%2F")),
            None => return all,
        }
    }
}

fn ips(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["ip"].as_str().expect("an ip")).collect()
}

/// Every modelled call, for the comparison with Cloudflare's description.
pub async fn answers(api: &Api) -> Vec<(&'static str, &'static str, Answer)> {
    let mut answers = Vec::new();
    let created = create(api, "described").await;
    let id = id_of(&created.body["result"]);
    answers.push(("POST", LISTS, created));
    answers.push(("GET", LISTS, api.get(&path("")).await));
    answers.push(("GET", LIST, api.get(&path(&format!("/{id}"))).await));
    let text = json!({ "description": "offices" });
    let put = api.send("PUT", &path(&format!("/{id}")), Some(&text)).await;
    answers.push(("PUT", LIST, put));
    let some = json!([{ "ip": "192.0.2.1", "comment": "one" }, { "ip": "2001:db8::/32" }]);
    let mut in_turn = Vec::new();
    for method in ["POST", "PUT"] {
        let answer = items(api, method, &id, some.clone()).await;
        in_turn.push(operation(&answer));
        answers.push((method, ITEMS, answer));
        // Pending, running, completed.
        for seconds in [0, 1, 1] {
            api.sim.advance(Duration::from_secs(seconds));
            let last = in_turn.last().expect("one").clone();
            let state = api.get(&path(&format!("/bulk_operations/{last}"))).await;
            answers.push(("GET", OPERATION, state));
        }
    }
    let listed = api.get(&path(&format!("/{id}/items"))).await;
    let item = id_of(&listed.body["result"][0]);
    answers.push(("GET", ITEMS, listed));
    answers.push(("GET", ITEM, api.get(&path(&format!("/{id}/items/{item}"))).await));
    api.sim.fail_next_bulk_operation(ACCOUNT, "it did not work");
    let answer = items(api, "DELETE", &id, json!({ "items": [{ "id": item }] })).await;
    let failed = operation(&answer);
    answers.push(("DELETE", ITEMS, answer));
    api.sim.advance(Duration::from_secs(2));
    let state = api.get(&path(&format!("/bulk_operations/{failed}"))).await;
    answers.push(("GET", OPERATION, state));
    answers.push(("DELETE", LIST, api.send("DELETE", &path(&format!("/{id}")), None).await));
    answers
}

#[tokio::test(start_paused = true)]
async fn a_list_is_made_described_and_deleted() {
    let api = api_on(Plan::Pro);
    let list = create(&api, "office").await.result();
    assert_eq!((&list["kind"], &list["num_items"]), (&json!("ip"), &json!(0)));
    assert_eq!(list["num_referencing_filters"], 0);
    assert_eq!(list["created_on"], "2026-11-29T12:00:00Z", "whole seconds");
    assert_eq!(list.get("description"), None);
    let id = id_of(&list);

    api.sim.advance(Duration::from_mins(1));
    // Name and kind are not changed.
    let body = json!({ "description": "ours", "name": "other", "kind": "asn" });
    let put = api.send("PUT", &path(&format!("/{id}")), Some(&body)).await.result();
    assert_eq!((&put["name"], &put["kind"]), (&json!("office"), &json!("ip")));
    assert_eq!(put["description"], "ours");
    assert_ne!(put["modified_on"], put["created_on"]);
    assert_eq!(api.get(&path(&format!("/{id}"))).await.result(), put);
    assert_eq!(names(&api.get(&path("")).await.result()), ["office"]);

    assert_eq!(create(&api, "office").await.refusal().1, 10_021);
    for name in ["", "a-b", "a b", &"x".repeat(51)] {
        assert_eq!(create(&api, name).await.status, 400, "{name:?}");
    }
    let deleted = api.send("DELETE", &path(&format!("/{id}")), None).await.result();
    assert_eq!(deleted, json!({ "id": id }));
    assert_eq!(api.get(&path(&format!("/{id}"))).await.refusal(), (404, 10_001));
    assert_eq!(
        api.send("DELETE", &path(&format!("/{id}")), None).await.refusal(),
        (404, 10_001)
    );
    assert_eq!(api.get(&path("/nonsense")).await.refusal(), (404, 7003));
}

#[tokio::test(start_paused = true)]
async fn a_write_is_accepted_and_done_later() {
    let api = api_on(Plan::Free);
    let list = made(&api, "office").await;
    let accepted = items(
        &api,
        "POST",
        &list,
        json!([{ "ip": "192.0.2.7/24", "comment": "home" }]),
    )
    .await;
    let id = operation(&accepted);
    assert_eq!(state(&api, &id).await, json!({ "id": id, "status": "pending" }));
    assert_eq!(all_items(&api, &list, 500).await, Vec::<Value>::new());
    api.sim.advance(Duration::from_secs(1));
    assert_eq!(state(&api, &id).await, json!({ "id": id, "status": "running" }));
    assert_eq!(all_items(&api, &list, 500).await, Vec::<Value>::new());
    api.sim.advance(Duration::from_secs(1));
    let done = state(&api, &id).await;
    assert_eq!((&done["status"], done.get("error")), (&json!("completed"), None));
    let all = all_items(&api, &list, 500).await;
    assert_eq!((ips(&all), &all[0]["comment"]), (vec!["192.0.2.0/24"], &json!("home")));
    let unknown = format!("/bulk_operations/{UNKNOWN}");
    assert_eq!(api.get(&path(&unknown)).await.refusal(), (404, 10_001));
}

#[tokio::test(start_paused = true)]
async fn items_are_added_replaced_and_removed() {
    let api = api_on(Plan::Free);
    let list = made(&api, "office").await;
    add(
        &api,
        &list,
        json!([{ "ip": "192.0.2.1", "comment": "one" }, { "ip": "192.0.2.2" }]),
    )
    .await;
    let before = all_items(&api, &list, 500).await;
    // What is there gets the comment, and keeps the rest.
    add(
        &api,
        &list,
        json!([{ "ip": "192.0.2.1/32", "comment": "first" }, { "ip": "192.0.2.3" }]),
    )
    .await;
    let after = all_items(&api, &list, 500).await;
    assert_eq!(ips(&after), ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
    assert_eq!(
        (&after[0]["comment"], &after[0]["id"]),
        (&json!("first"), &before[0]["id"])
    );
    let single = api.get(&path(&format!("/{list}/items/{}", id_of(&after[0])))).await;
    assert_eq!(single.result(), after[0]);

    let body = json!({ "items": [{ "id": after[0]["id"] }, { "id": after[2]["id"] }] });
    let removal = operation(&items(&api, "DELETE", &list, body.clone()).await);
    api.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&api, &removal).await["status"], "completed");
    assert_eq!(ips(&all_items(&api, &list, 500).await), ["192.0.2.2"]);
    // What is not there cannot be removed: the operation fails, and does nothing.
    let again = operation(&items(&api, "DELETE", &list, body).await);
    api.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&api, &again).await["status"], "failed");

    let whole = operation(&items(&api, "PUT", &list, json!([{ "ip": "2001:DB8::1" }])).await);
    api.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&api, &whole).await["status"], "completed");
    assert_eq!(ips(&all_items(&api, &list, 500).await), ["2001:db8::1"]);
    assert_eq!(api.get(&path("")).await.result()[0]["num_items"], 1);
    items(&api, "PUT", &list, json!([])).await;
    api.sim.advance(Duration::from_secs(2));
    assert_eq!(all_items(&api, &list, 500).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_refused_at_once() {
    let api = api_on(Plan::Pro);
    let list = made(&api, "office").await;
    for body in [
        json!([]),
        json!([{ "ip": "192.0.2" }]),
        json!([{ "ip": "2001:db8::/96" }]),
        json!([{ "asn": 13335 }]),
        json!([{ "ip": "192.0.2.1", "comment": "x".repeat(501) }]),
        // Two spellings of one address.
        json!([{ "ip": "192.0.2.1" }, { "ip": "192.0.2.1/32" }]),
        json!({ "ip": "192.0.2.1" }),
    ] {
        let answer = items(&api, "POST", &list, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}");
    }
    assert_eq!(items(&api, "DELETE", &list, json!({ "items": [] })).await.status, 400);
    let unknown = items(&api, "POST", UNKNOWN, json!([{ "ip": "192.0.2.1" }])).await;
    assert_eq!(unknown.refusal(), (404, 10_001));
    let asn = json!({ "name": "asns", "kind": "asn" });
    let asn = id_of(&api.send("POST", &path(""), Some(&asn)).await.result());
    assert_eq!(items(&api, "POST", &asn, json!([{ "asn": 13335 }])).await.status, 501);
}

#[tokio::test(start_paused = true)]
async fn pages_follow_cursors_in_order_of_addresses() {
    let api = api_on(Plan::Free);
    let list = made(&api, "office").await;
    let body: Vec<Value> = (0..60)
        .map(|n| json!({ "ip": format!("192.0.2.{}", 200 - n * 3) }))
        .collect();
    add(&api, &list, json!(body)).await;
    add(&api, &list, json!([{ "ip": "10.0.0.0/8" }, { "ip": "2001:db8::/32" }])).await;
    let all = all_items(&api, &list, 500).await;
    assert_eq!((all.len(), all[0]["ip"].as_str()), (62, Some("10.0.0.0/8")));
    assert_eq!(all_items(&api, &list, 7).await, all);
    let page = api.get(&path(&format!("/{list}/items"))).await;
    assert_eq!(page.body["result"].as_array().map(Vec::len), Some(25));
    assert_eq!(page.body["result_info"]["cursors"].get("before"), None);
    let found = api
        .get(&path(&format!("/{list}/items?search=192.0.2.2")))
        .await
        .result();
    assert_eq!(
        ips(found.as_array().expect("a list")),
        ["192.0.2.23", "192.0.2.26", "192.0.2.29", "192.0.2.200"]
    );

    let padded = Quirks {
        list_items: ListItemForm::Padded,
        ..Quirks::default()
    };
    api.sim.set_quirks(padded);
    let item = all_items(&api, &list, 500).await.swap_remove(0);
    assert_eq!(
        (&item["hostname"], &item["redirect"], &item["comment"]),
        (&json!({}), &json!({}), &json!(""))
    );
}

#[tokio::test(start_paused = true)]
async fn one_operation_of_an_account_at_a_time_or_one_after_the_other() {
    let api = api_on(Plan::Pro);
    let (one, two) = (made(&api, "one").await, made(&api, "two").await);
    let write = |list: &str, n: u8| {
        let (api, list) = (api.clone(), list.to_owned());
        async move { items(&api, "POST", &list, json!([{ "ip": format!("192.0.2.{n}") }])).await }
    };
    let first = operation(&write(&one, 1).await);
    // Also for another list of the account.
    for list in [&one, &two] {
        let refused = write(list, 2).await;
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (429, None),
            "{}",
            refused.text
        );
    }
    api.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&api, &first).await["status"], "completed");

    api.sim.set_quirks(Quirks {
        list_writes: ListWrites::Queued,
        ..Quirks::default()
    });
    let mut queued = Vec::new();
    for (list, n) in [(&one, 3), (&one, 4), (&two, 5)] {
        queued.push(operation(&write(list, n).await));
    }
    api.sim.advance(Duration::from_secs(2));
    let mut states = Vec::new();
    for operation in &queued {
        states.push(state(&api, operation).await["status"].clone());
    }
    assert_eq!(
        states,
        ["completed", "pending", "completed"],
        "first in, first out for each list"
    );
    api.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&api, &queued[1]).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn quotas_of_the_plan() {
    let api = api_on(Plan::Free);
    let list = made(&api, "office").await;
    assert_eq!(create(&api, "second").await.status, 400, "Free accounts have one list");
    let many = |range: std::ops::Range<u32>| -> Value {
        range
            .map(|n| json!({ "ip": format!("10.{}.{}.1", n / 256, n % 256) }))
            .collect()
    };
    assert_eq!(add(&api, &list, many(0..10_000)).await["status"], "completed");
    let full = add(&api, &list, many(10_000..10_001)).await;
    assert_eq!(full["status"], "failed");
    assert_eq!(full["error"], "This list is at the maximum number of items");
    assert_eq!(all_items(&api, &list, 500).await.len(), 10_000);
    api.sim.set_zone_plan("example.com", Plan::Enterprise).expect("changed");
    assert_eq!(add(&api, &list, many(10_000..10_001)).await["status"], "completed");
    assert_eq!(create(&api, "second").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_rules_use_is_not_deleted() {
    let api = api_on(Plan::Free);
    let list = made(&api, "office").await;
    api.sim
        .set_other_expressions(ACCOUNT, &["ip.src in $office", "not ip.src in $office_2"]);
    let shown = api.get(&path(&format!("/{list}"))).await.result();
    assert_eq!(shown["num_referencing_filters"], 1);
    let refused = api.send("DELETE", &path(&format!("/{list}")), None).await;
    assert_eq!(refused.refusal(), (400, 10_031));
    api.sim.set_other_expressions(ACCOUNT, &[]);
    assert_eq!(api.send("DELETE", &path(&format!("/{list}")), None).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn lists_need_their_own_permission() {
    let api = api_on(Plan::Free);
    let list = made(&api, "office").await;
    let tokens = [
        ("reader", grants(&[(Area::Lists, false)])),
        (
            "zones",
            grants(&[(Area::Account, true), (Area::Zone, true), (Area::Dns, true)]),
        ),
    ];
    api.sim
        .seed(&Seed {
            tokens: tokens
                .map(|(name, grants)| TokenSeed::of_user(&token(name), grants))
                .into(),
            ..Seed::default()
        })
        .expect("a good seed");
    let reader = api.as_token("reader");
    assert_eq!(reader.get(&path("")).await.status, 200);
    let body = json!([{ "ip": "192.0.2.1" }]);
    assert_eq!(items(&reader, "POST", &list, body).await.refusal(), (403, 10_000));
    assert_eq!(api.as_token("zones").get(&path("")).await.refusal(), (403, 10_000));
    let elsewhere = format!("/accounts/{OTHER_ACCOUNT}/rules/lists");
    assert_eq!(api.get(&elsewhere).await.refusal(), (403, 10_000));
}

#[tokio::test(start_paused = true)]
async fn others_edit_lists_and_lists_can_be_stale() {
    let api = api_on(Plan::Pro);
    let body = json!({ "name": "theirs", "kind": "ip", "items": [{ "ip": "192.0.2.1" }] });
    api.sim
        .foreign_create_list(ACCOUNT, body.as_object().expect("an object"))
        .expect("made");
    api.sim.mark("before");
    api.sim.advance(Duration::from_secs(5));
    let more = json!([{ "ip": "192.0.2.2", "comment": "new" }]);
    api.sim
        .foreign_add_list_items(ACCOUNT, "theirs", more.as_array().expect("a list"))
        .expect("added");
    api.sim
        .foreign_remove_list_item(ACCOUNT, "theirs", "192.0.2.1")
        .expect("removed");
    assert!(
        api.sim
            .foreign_remove_list_item(ACCOUNT, "theirs", "192.0.2.1")
            .is_err()
    );
    api.sim
        .foreign_describe_list(ACCOUNT, "theirs", "found")
        .expect("described");
    let now = api.sim.lists(ACCOUNT);
    assert_eq!(
        (&now[0]["num_items"], &now[0]["description"]),
        (&json!(1), &json!("found"))
    );
    let id = id_of(&now[0]);

    let stale = Fault::StaleList {
        seconds: None,
        mark: Some("before".into()),
    };
    for (route, what) in [(LISTS, path("")), (ITEMS, path(&format!("/{id}/items")))] {
        let spec = FaultSpec::new(FaultMatch::route("GET", route), stale.clone()).times(1);
        api.sim.add_fault(spec).expect("armed");
        let (old, new) = (api.get(&what).await.result(), api.get(&what).await.result());
        assert_ne!(old, new, "{route}");
    }
    let empty = Fault::EmptyList { totals: Totals::Zero };
    let spec = FaultSpec::new(FaultMatch::route("GET", ITEMS), empty).times(1);
    api.sim.add_fault(spec).expect("armed");
    assert_eq!(all_items(&api, &id, 1).await, Vec::<Value>::new());
    api.sim.foreign_delete_list(ACCOUNT, "theirs").expect("deleted");
    assert_eq!(api.sim.lists(ACCOUNT), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn lists_are_seeded_and_an_operation_outlives_a_restart() {
    let api = api_on(Plan::Free);
    let seed: Seed = serde_json::from_value(json!({ "lists": [{
        "name": "office", "account": "One", "description": "ours",
        "items": [{ "ip": "192.0.2.1", "comment": "one" }, { "ip": "192.0.2.2" }],
    }]}))
    .expect("a seed");
    let list = api.sim.seed(&seed).expect("a good seed").lists.swap_remove(0);
    assert!(api.sim.seed(&seed).is_err(), "the name is taken");
    let operation = operation(&items(&api, "POST", &list, json!([{ "ip": "192.0.2.3" }])).await);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.json");
    api.sim.save(&file).expect("saved");

    let copy = Api {
        sim: Simulator::new(config()),
        token: api.token.clone(),
    };
    assert!(copy.sim.load(&file).expect("loaded"));
    assert_eq!(state(&copy, &operation).await["status"], "pending");
    copy.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&copy, &operation).await["status"], "completed");
    assert_eq!(
        ips(&all_items(&copy, &list, 500).await),
        ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    );
    // A list that goes takes the operations on it along.
    let orphan = self::operation(&items(&copy, "POST", &list, json!([{ "ip": "192.0.2.4" }])).await);
    copy.send("DELETE", &path(&format!("/{list}")), None).await.result();
    copy.sim.advance(Duration::from_secs(2));
    assert_eq!(state(&copy, &orphan).await["status"], "failed");
}
