//! The control API, the log, the state file, and that a seed decides everything.

use kflare_sim::{Effect, Plan, Simulator};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::*;

async fn control(sim: &Simulator, method: &str, path: &str, body: Option<Value>) -> Answer {
    let request = http::Request::builder().method(method).uri(format!("/_sim{path}"));
    let request = request.header("content-type", "application/json");
    let body = body.map_or_else(axum::body::Body::empty, |body| axum::body::Body::from(body.to_string()));
    answer(
        sim.service()
            .oneshot(request.body(body).expect("a request"))
            .await
            .expect("an answer"),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn everything_over_http() {
    let sim = Simulator::new(config());
    assert_eq!(
        control(&sim, "GET", "/healthz", None).await.body,
        json!({ "status": "ok" })
    );
    let seed = json!({
        "accounts": [{ "id": ACCOUNT, "name": "One", "type": "enterprise" }],
        "tokens": [
            { "value": token("all"), "permissions": ["account.read", "zone.write", { "permission": "dns.write", "scope": { "zones": ["example.com"] } }] },
        ],
        "zones": [{
            "id": ZONE, "name": "example.com", "account": "One", "plan": "pro", "status": "pending",
            "records": [{ "id": UNKNOWN, "meta": { "read_only": true }, "type": "A", "name": "www", "content": "192.0.2.1" }],
        }],
    });
    let seeded = control(&sim, "POST", "/seed", Some(seed)).await;
    assert_eq!(
        (seeded.status, &seeded.body["zones"], &seeded.body["records"]),
        (200, &json!([ZONE]), &json!([[UNKNOWN]]))
    );
    let api = Api {
        sim: sim.clone(),
        token: Some(token("all")),
    };
    assert_eq!(names(&api.list("").await.result()), ["www.example.com"]);

    assert_eq!(
        control(&sim, "POST", "/zones/example.com/activate", None).await.status,
        204
    );
    assert_eq!(
        control(
            &sim,
            "PUT",
            &format!("/zones/{ZONE}/plan"),
            Some(json!({ "plan": "business" }))
        )
        .await
        .status,
        204
    );
    let zone = api.get(&format!("/zones/{ZONE}")).await.result();
    assert_eq!(
        (&zone["status"], &zone["plan"]["legacy_id"]),
        (&json!("active"), &json!("business"))
    );

    let fault = json!({
        "match": { "method": "GET", "route": "/zones/{zone_id}" }, "times": 1,
        "fault": { "kind": "status", "status": 500, "code": 1000, "message": "x" },
    });
    let id = control(&sim, "POST", "/faults", Some(fault)).await.body["id"].clone();
    assert_eq!(api.get(&format!("/zones/{ZONE}")).await.status, 500);
    let faults = control(&sim, "GET", "/faults", None).await.body;
    assert_eq!(
        (&faults["faults"][0]["id"], &faults["faults"][0]["fired"]),
        (&id, &json!(1))
    );
    assert_eq!(
        control(&sim, "DELETE", &format!("/faults/{id}"), None).await.status,
        204
    );
    assert_eq!(
        control(&sim, "DELETE", &format!("/faults/{id}"), None).await.status,
        404
    );
    assert_eq!(control(&sim, "DELETE", "/faults", None).await.status, 204);
    let bad = json!({ "match": { "path": "(" }, "fault": { "kind": "delay", "ms": 1 } });
    assert_eq!(control(&sim, "POST", "/faults", Some(bad)).await.status, 400);
    assert_eq!(
        control(&sim, "POST", "/faults", Some(json!({ "fault": { "kind": "nothing" } })))
            .await
            .status,
        422
    );

    let before = control(&sim, "GET", "/clock", None).await.body["now"].clone();
    let after = control(&sim, "POST", "/clock/advance", Some(json!({ "seconds": 3600 })))
        .await
        .body["now"]
        .clone();
    let parse = |text: &Value| text.as_str().expect("text").parse::<jiff::Timestamp>().expect("a time");
    assert_eq!(parse(&after).duration_since(parse(&before)).as_secs(), 3600);

    assert_eq!(
        control(
            &sim,
            "PUT",
            "/rate-limit",
            Some(json!({ "calls": 1, "window_seconds": 60, "block_seconds": 60 }))
        )
        .await
        .status,
        204
    );
    api.list("").await.result();
    assert_eq!(api.list("").await.status, 429);
    assert_eq!(control(&sim, "DELETE", "/rate-limit", None).await.status, 204);
    api.list("").await.result();

    assert_eq!(
        control(&sim, "PUT", "/quirks", Some(json!({ "txt": "bare" })))
            .await
            .status,
        204
    );
    assert_eq!(control(&sim, "GET", "/quirks", None).await.body["txt"], "bare");
    assert_eq!(control(&sim, "PUT", "/marks/here", None).await.status, 204);

    let counts = control(&sim, "GET", "/calls/counts", None).await.body;
    assert_eq!(counts["counts"]["GET /zones/{zone_id}/dns_records"], 4);
    let calls = control(
        &sim,
        "GET",
        "/calls?method=get&route=/zones/%7Bzone_id%7D&since=1",
        None,
    )
    .await
    .body;
    assert_eq!(calls["calls"].as_array().map(Vec::len), Some(2));
    assert_eq!(control(&sim, "DELETE", "/calls", None).await.status, 204);
    assert_eq!(control(&sim, "GET", "/calls", None).await.body, json!({ "calls": [] }));

    let dump = control(&sim, "GET", "/dump", None).await;
    assert_eq!(dump.body["zones"][0]["records"][0]["name"], "www.example.com");
    assert!(!dump.text.contains(&token("all")), "no token values");
    assert_eq!(control(&sim, "POST", "/reset", None).await.status, 204);
    assert_eq!(control(&sim, "GET", "/dump", None).await.body["zones"], json!([]));
    assert_eq!(control(&sim, "GET", "/nothing", None).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn foreign_edits_cost_nothing_and_leave_no_trace() {
    let api = api_on(Plan::Free);
    let made = control(
        &api.sim,
        "POST",
        "/zones/example.com/records",
        Some(address("www", "192.0.2.1")),
    )
    .await;
    let path = format!("/zones/{ZONE}/records/{}", id_of(&made.body));
    let patched = control(&api.sim, "PATCH", &path, Some(json!({ "content": "192.0.2.2" }))).await;
    assert_eq!(patched.body["content"], "192.0.2.2");
    let twice = control(
        &api.sim,
        "POST",
        "/zones/example.com/records",
        Some(address("www", "192.0.2.2")),
    )
    .await;
    assert_eq!(twice.refusal(), (400, 81058));
    let list = control(&api.sim, "GET", "/zones/example.com/records", None).await;
    assert_eq!(names(&list.body["records"]), ["www.example.com"]);
    assert_eq!(control(&api.sim, "DELETE", &path, None).await.status, 204);
    assert_eq!(control(&api.sim, "DELETE", &path, None).await.status, 404);
    assert_eq!(
        control(&api.sim, "POST", "/zones/nothing.example/records", Some(json!({})))
            .await
            .status,
        400
    );
    assert_eq!(api.sim.calls(), []);
}

#[tokio::test(start_paused = true)]
async fn the_log_tells_what_was_asked_and_what_came_of_it() {
    let api = api_on(Plan::Free);
    let body = address("www", "192.0.2.1");
    api.create(body.clone()).await.result();
    api.create(body.clone()).await.refusal();
    api.list("?type=A").await.result();
    let calls = api.sim.calls();
    let told: Vec<_> = calls
        .iter()
        .map(|call| (call.sequence, call.status, call.error_code, call.effect))
        .collect();
    assert_eq!(
        told,
        [
            (1, Some(200), None, Effect::Applied),
            (2, Some(400), Some(81058), Effect::None),
            (3, Some(200), None, Effect::None),
        ]
    );
    assert_eq!(calls[0].body, Some(body));
    assert_eq!(calls[2].body, None);
    assert_eq!(calls[2].path, format!("/client/v4/zones/{ZONE}/dns_records?type=A"));
    assert_eq!(calls[2].route.as_deref(), Some("/zones/{zone_id}/dns_records"));
    assert!(calls[0].token_id.is_some());
    assert_eq!(api.sim.calls_since(2).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn ids_that_were_lost_with_a_killed_process_do_not_come_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    let api = api_on(Plan::Pro);
    api.sim.save(&path).expect("saved");
    let lost = api.create(address("lost", "192.0.2.1")).await.result();
    let mut given = vec![lost["id"].clone()];
    for passed in 1..=2 {
        // Killed before anything was saved, twice.
        let sim = Simulator::new(config());
        sim.advance(hours(passed));
        assert!(sim.load(&path).expect("loaded"));
        let after = Api {
            sim,
            token: api.token.clone(),
        };
        let next = after.create(address("next", "192.0.2.2")).await.result();
        assert!(!given.contains(&next["id"]), "{next}");
        given.push(next["id"].clone());
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_file_holds_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    let api = api_on(Plan::Pro);
    for body in bodies() {
        api.create(body).await.result();
    }
    api.sim.advance(hours(1000));
    api.sim.save(&path).expect("saved");
    let copy = Simulator::new(config());
    assert!(copy.load(&path).expect("loaded"));
    assert_eq!(copy.dump(), api.sim.dump(), "the clock too");
    let again = Api {
        sim: copy.clone(),
        token: api.token.clone(),
    };
    let next = again.create(address("next", "192.0.2.1")).await.result();
    assert!(
        api.list("")
            .await
            .result()
            .as_array()
            .expect("a list")
            .iter()
            .all(|record| record["id"] != next["id"])
    );
    assert!(!copy.load(&folder.path().join("none.json")).expect("nothing there"));
    std::fs::write(&path, "{}").expect("written");
    assert!(copy.load(&path).is_err());
    assert!(copy.save(&folder.path().join("no/folder/state.json")).is_err());
    let names: Vec<_> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["state.json"], "nothing half-written is left");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() {
    let run = async || {
        let latency = kflare_sim::Latency::between(
            std::time::Duration::from_millis(1),
            std::time::Duration::from_millis(90),
        );
        let api = api_with(kflare_sim::SimConfig { latency, ..config() }, Plan::Pro);
        let mut trace = Vec::new();
        for body in bodies() {
            let answer = api.create(body).await;
            trace.push((answer.text, format!("{:?}", answer.headers)));
        }
        (trace, api.sim.dump(), api.sim.now())
    };
    let (first, second) = (run().await, run().await);
    assert_eq!(first, second);
    let passed = first.2.duration_since(epoch()).as_millis();
    assert!(
        (21..=21 * 90).contains(&passed) && passed != 21,
        "latencies differ: {passed} ms"
    );
}
