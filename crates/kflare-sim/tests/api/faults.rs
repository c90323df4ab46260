//! Faults, each kind.

use std::time::Duration;

use kflare_sim::{
    CallRecord, Delivery, Dropped, Effect, Fault, FaultError, FaultMatch, FaultSpec, Plan, SimConfig, Totals,
};
use serde_json::json;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use crate::support::*;

const RECORDS: &str = "/zones/{zone_id}/dns_records";

fn posts() -> FaultMatch {
    FaultMatch::route("POST", RECORDS)
}

fn lists() -> FaultMatch {
    FaultMatch::route("GET", RECORDS)
}

fn arm(api: &Api, spec: FaultSpec) -> u64 {
    api.sim.add_fault(spec).expect("a good fault")
}

fn unavailable() -> Fault {
    Fault::Status {
        status: 503,
        code: 1000,
        message: "Internal Server Error".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_has_no_effect_and_counts_times_and_skips() {
    let api = api_on(Plan::Free);
    arm(&api, FaultSpec::new(posts(), unavailable()).skip(1).times(2));
    let mut statuses = Vec::new();
    for number in 0..5 {
        statuses.push(api.create(address(&format!("h{number}"), "192.0.2.1")).await.status);
    }
    assert_eq!(statuses, [200, 503, 503, 200, 200]);
    assert_eq!(api.record_count(), 3);
    let state = &api.sim.faults()[0];
    assert_eq!((state.matched, state.fired), (5, 2));
    let calls = api.sim.calls();
    assert_eq!(
        (calls[1].effect, &calls[1].faults, calls[1].error_code),
        (Effect::None, &vec![state.id], Some(1000))
    );
    assert_eq!(api.list("").await.status, 200, "another method");
}

#[tokio::test(start_paused = true)]
async fn html_and_429() {
    let api = api_on(Plan::Free);
    arm(
        &api,
        FaultSpec::new(
            lists(),
            Fault::Html {
                status: 502,
                body: "<html>Bad gateway</html>".into(),
            },
        )
        .times(1),
    );
    let html = api.list("").await;
    assert_eq!((html.status, html.text.as_str()), (502, "<html>Bad gateway</html>"));
    assert_eq!(html.header("content-type"), Some("text/html; charset=UTF-8"));
    arm(
        &api,
        FaultSpec::new(FaultMatch::any(), Fault::RateLimited { retry_after: Some(30) }).times(1),
    );
    let limited = api.list("").await;
    assert_eq!(
        (limited.refusal(), limited.header("retry-after")),
        ((429, 971), Some("30"))
    );
    arm(
        &api,
        FaultSpec::new(FaultMatch::any(), Fault::RateLimited { retry_after: None }).times(1),
    );
    let limited = api.list("").await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, None));
}

#[tokio::test(start_paused = true)]
async fn every_answer_takes_a_millisecond_and_a_delay_adds() {
    let api = api_on(Plan::Free);
    let start = Instant::now();
    api.list("").await.result();
    assert_eq!(start.elapsed(), Duration::from_millis(1));
    arm(&api, FaultSpec::new(lists(), Fault::Delay { ms: 250 }));
    arm(&api, FaultSpec::new(lists(), unavailable()).times(1));
    let start = Instant::now();
    assert_eq!(api.list("").await.status, 503);
    assert_eq!(start.elapsed(), Duration::from_millis(251));
    assert_eq!(api.list("").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_effect_is_there_although_the_caller_gives_up() {
    let api = api_on(Plan::Free);
    arm(&api, FaultSpec::new(posts(), Fault::Delay { ms: 60_000 }));
    let call = api.create(address("www", "192.0.2.1"));
    assert!(timeout(Duration::from_secs(30), call).await.is_err());
    assert_eq!(api.record_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_connections_hang_or_break() {
    let api = api_on(Plan::Free);
    let cases = [
        (Fault::DropBefore { dropped: None }, None, 0, Delivery::DroppedBefore),
        (Fault::DropAfter { dropped: None }, None, 1, Delivery::DroppedAfter),
        (
            Fault::DropBefore {
                dropped: Some(Dropped::Reset),
            },
            Some(()),
            1,
            Delivery::DroppedBefore,
        ),
        (
            Fault::DropAfter {
                dropped: Some(Dropped::Reset),
            },
            Some(()),
            2,
            Delivery::DroppedAfter,
        ),
    ];
    for (number, (fault, reset, records, delivery)) in cases.into_iter().enumerate() {
        arm(&api, FaultSpec::new(posts(), fault).times(1));
        let body = address(&format!("h{number}"), "192.0.2.1");
        let request = api.request("POST", &format!("/zones/{ZONE}/dns_records"), Some(&body));
        let outcome = timeout(hours(1), api.sim.service().oneshot(request)).await;
        match reset {
            None => assert!(outcome.is_err(), "no answer, ever"),
            Some(()) => drop(outcome.expect("an outcome").expect_err("a reset")),
        }
        assert_eq!(api.record_count(), records);
        let call = api.sim.calls().pop().expect("logged");
        let effect = if delivery == Delivery::DroppedAfter {
            Effect::Applied
        } else {
            Effect::None
        };
        assert_eq!((call.delivery, call.effect), (delivery, effect));
        assert_eq!(call.status.is_some(), delivery == Delivery::DroppedAfter);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_call_has_its_effect_after_the_caller_has_gone() {
    let api = api_on(Plan::Free);
    let late = Fault::Late {
        ms: 60_000,
        dropped: Some(Dropped::Reset),
    };
    arm(&api, FaultSpec::new(posts(), late));
    let body = address("www", "192.0.2.1");
    let request = api.request("POST", &format!("/zones/{ZONE}/dns_records"), Some(&body));
    assert!(api.sim.service().oneshot(request).await.is_err(), "a reset");
    assert_eq!(api.record_count(), 0);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(api.record_count(), 1);
    let seen = |call: &CallRecord| (call.delivery, call.effect, call.status);
    let calls: Vec<_> = api.sim.calls().iter().map(seen).collect();
    let expected = [
        (Delivery::DroppedBefore, Effect::None, None),
        (Delivery::Answered, Effect::Applied, Some(200)),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test(start_paused = true)]
async fn a_router_turns_resets_into_failing_bodies() {
    let api = api_with(
        SimConfig {
            dropped: Dropped::Reset,
            ..config()
        },
        Plan::Free,
    );
    arm(&api, FaultSpec::new(lists(), Fault::DropBefore { dropped: None }));
    let response = api
        .sim
        .router()
        .oneshot(api.request("GET", &format!("/zones/{ZONE}/dns_records"), None))
        .await;
    let body = response.expect("infallible").into_body();
    assert!(http_body_util::BodyExt::collect(body).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_truncated_body_had_its_effect() {
    let api = api_on(Plan::Free);
    arm(&api, FaultSpec::new(posts(), Fault::Truncate { bytes: 10 }));
    let body = address("www", "192.0.2.1");
    let request = api.request("POST", &format!("/zones/{ZONE}/dns_records"), Some(&body));
    let response = api.sim.service().oneshot(request).await.expect("headers");
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let first = http_body_util::BodyExt::frame(&mut body)
        .await
        .expect("a frame")
        .expect("data");
    assert_eq!(first.into_data().expect("data").len(), 10);
    assert!(
        http_body_util::BodyExt::frame(&mut body)
            .await
            .expect("a frame")
            .is_err()
    );
    assert_eq!(api.record_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn stale_lists_show_the_past() {
    let api = api_on(Plan::Free);
    let kept = id_of(&api.create(address("kept", "192.0.2.1")).await.result());
    let deleted = id_of(&api.create(address("deleted", "192.0.2.1")).await.result());
    api.sim.mark("before");
    tokio::time::advance(Duration::from_mins(1)).await;
    api.patch(&kept, json!({ "content": "192.0.2.9" })).await.result();
    api.send("DELETE", &format!("/zones/{ZONE}/dns_records/{deleted}"), None)
        .await
        .result();
    tokio::time::advance(Duration::from_mins(1)).await;
    api.create(address("new", "192.0.2.1")).await.result();
    let stale = |seconds: Option<u64>, mark: Option<&str>| {
        let fault = Fault::StaleList {
            seconds,
            mark: mark.map(str::to_owned),
        };
        arm(&api, FaultSpec::new(lists(), fault).times(1));
    };
    let shown = async || {
        let answer = api.list("?order=name").await;
        let total = answer.body["result_info"]["total_count"].as_u64().expect("a number");
        let list = answer.result();
        let shown: Vec<String> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|record| {
                format!(
                    "{}={}",
                    record["name"].as_str().expect("a name").replace(".example.com", ""),
                    record["content"].as_str().expect("content")
                )
            })
            .collect();
        assert_eq!(total, shown.len() as u64);
        shown
    };
    stale(Some(90), None);
    assert_eq!(shown().await, ["deleted=192.0.2.1", "kept=192.0.2.1"]);
    stale(Some(30), None);
    assert_eq!(shown().await, ["kept=192.0.2.9"]);
    stale(None, Some("before"));
    assert_eq!(shown().await, ["deleted=192.0.2.1", "kept=192.0.2.1"]);
    stale(Some(100_000), None);
    assert_eq!(shown().await, [""; 0]);
    assert_eq!(shown().await, ["kept=192.0.2.9", "new=192.0.2.1"], "the present again");
    api.get(&format!("/zones/{ZONE}/dns_records/{kept}")).await.result();
    let zone = json!({ "name": "late.example", "account": { "id": ACCOUNT } });
    api.send("POST", "/zones", Some(&zone)).await.result();
    let fault = Fault::StaleList {
        seconds: None,
        mark: Some("before".into()),
    };
    arm(&api, FaultSpec::new(FaultMatch::route("GET", "/zones"), fault).times(1));
    assert_eq!(names(&api.get("/zones").await.result()), ["example.com"]);
    assert_eq!(
        names(&api.get("/zones").await.result()),
        ["example.com", "late.example"]
    );
}

#[tokio::test(start_paused = true)]
async fn empty_lists_and_failing_pages() {
    let api = api_on(Plan::Pro);
    let posts: Vec<_> = (0..150).map(|n| address(&format!("h{n:03}"), "192.0.2.1")).collect();
    api.batch(json!({ "posts": posts })).await.result();
    for (totals, total) in [(Totals::Zero, 0), (Totals::True, 150)] {
        arm(
            &api,
            FaultSpec::new(lists().page(2), Fault::EmptyList { totals }).times(1),
        );
        assert_eq!(
            api.list("").await.result().as_array().map(Vec::len),
            Some(100),
            "page 1 is whole"
        );
        let empty = api.list("?page=2").await;
        assert_eq!(empty.body["result"], json!([]));
        assert_eq!(empty.body["result_info"]["count"], 0);
        assert_eq!(empty.body["result_info"]["total_count"], total);
    }
    arm(&api, FaultSpec::new(lists().page(2), unavailable()).times(1));
    assert_eq!(api.list("?page=1").await.status, 200);
    assert_eq!(api.list("?page=2").await.status, 503);
    assert_eq!(api.list("?page=2").await.result().as_array().map(Vec::len), Some(50));
}

#[tokio::test(start_paused = true)]
async fn matching_by_path_and_token() {
    let api = api_on(Plan::Free);
    let token_id = api.sim.dump()["tokens"][0]["id"].as_str().expect("an id").to_owned();
    arm(
        &api,
        FaultSpec::new(FaultMatch::path("get", r"dns_records\?.*name=www"), unavailable()),
    );
    assert_eq!(api.list("?name=www.example.com").await.status, 503);
    assert_eq!(api.list("?name=mail.example.com").await.status, 200);
    api.sim.clear_faults();
    let id = arm(&api, FaultSpec::new(FaultMatch::any().token(UNKNOWN), unavailable()));
    assert_eq!(api.list("").await.status, 200);
    assert!(api.sim.remove_fault(id) && !api.sim.remove_fault(id));
    arm(&api, FaultSpec::new(FaultMatch::any().token(&token_id), unavailable()));
    assert_eq!(api.list("").await.status, 503);
    let pattern = FaultSpec::new(FaultMatch::path("GET", "("), unavailable());
    assert!(matches!(api.sim.add_fault(pattern), Err(FaultError::Pattern { .. })));
    let chance = FaultSpec::new(FaultMatch::any(), unavailable()).probability(1.5);
    assert!(matches!(api.sim.add_fault(chance), Err(FaultError::Probability(_))));
}

#[tokio::test(start_paused = true)]
async fn chance_follows_from_the_seed() {
    let run = async |seed: u64| {
        let api = api_with(SimConfig { seed, ..config() }, Plan::Free);
        arm(&api, FaultSpec::new(lists(), unavailable()).probability(0.3));
        let mut statuses = Vec::new();
        for _ in 0..200 {
            statuses.push(api.list("").await.status);
        }
        statuses
    };
    let one = run(1).await;
    let failed = one.iter().filter(|status| **status == 503).count();
    assert!((30..=90).contains(&failed), "about 60 of 200, not {failed}");
    assert_eq!(one, run(1).await);
    assert_ne!(one, run(2).await);
}
