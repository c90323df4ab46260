//! Routes of a zone to Workers.

use kflare_sim::{Plan, Seed, WorkerSeed};
use serde_json::{Value, json};

use crate::support::*;

const ROUTES: &str = "/zones/cccccccccccccccccccccccccccccccc/workers/routes";

fn with_worker(name: &str) -> Api {
    let api = api_on(Plan::Free);
    let workers = vec![WorkerSeed::of_module("One", name, "export default { fetch() {} }")];
    api.sim
        .seed(&Seed {
            workers,
            ..Seed::default()
        })
        .expect("a good seed");
    api
}

async fn create(api: &Api, pattern: &str, script: Value) -> Answer {
    api.send("POST", ROUTES, Some(&json!({ "pattern": pattern, "script": script })))
        .await
}

#[tokio::test(start_paused = true)]
async fn a_route_is_made_changed_and_deleted() {
    let api = with_worker("web");
    let made = create(&api, "example.com/*", json!("web")).await.result();
    let path = format!("{ROUTES}/{}", id_of(&made));
    assert_eq!(api.get(&path).await.result(), made);
    let change = json!({ "pattern": "*.example.com/*" });
    let changed = api.send("PUT", &path, Some(&change)).await.result();
    assert_eq!(
        changed,
        json!({ "id": made["id"], "pattern": "*.example.com/*" }),
        "no Worker runs there"
    );
    assert_eq!(api.get(ROUTES).await.result(), json!([changed]));
    assert_eq!(
        api.send("DELETE", &path, None).await.result(),
        json!({ "id": made["id"] })
    );
    assert_eq!(api.get(&path).await.refusal(), (404, 10_009));
    assert_eq!(api.send("DELETE", &path, None).await.refusal(), (404, 10_009));
}

#[tokio::test(start_paused = true)]
async fn refused_routes() {
    let api = with_worker("web");
    let taken = create(&api, "example.com/*", json!("web")).await.result();
    let other = create(&api, "example.com/a/*", Value::Null).await.result();
    for (pattern, script, refusal) in [
        ("example.com/*", json!("web"), (409, 10_020)),
        ("example.com/*", Value::Null, (409, 10_020)),
        ("example.com/new/*", json!("gone"), (400, 10_019)),
        ("example.org/*", json!("web"), (400, 10_022)),
        ("", json!("web"), (400, 10_022)),
    ] {
        assert_eq!(create(&api, pattern, script).await.refusal(), refusal, "{pattern}");
    }
    let path = format!("{ROUTES}/{}", id_of(&other));
    let onto = json!({ "pattern": taken["pattern"] });
    assert_eq!(api.send("PUT", &path, Some(&onto)).await.refusal(), (409, 10_020));
    let unchanged = json!({ "pattern": other["pattern"], "script": "web" });
    api.send("PUT", &path, Some(&unchanged)).await.result();
}

#[tokio::test(start_paused = true)]
async fn routes_go_with_their_zone() {
    let api = with_worker("web");
    create(&api, "example.com/*", json!("web")).await.result();
    api.send("DELETE", &format!("/zones/{ZONE}"), None).await.result();
    assert_eq!(api.get(ROUTES).await.refusal(), (404, 1003));
    assert_eq!(api.sim.workers("One").len(), 1);
}
