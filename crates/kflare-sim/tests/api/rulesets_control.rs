//! Rules that others make: the seed, foreign edits, the state file, stale reads, lost answers.

use kflare_sim::{Delivery, Dropped, Effect, Fault, FaultMatch, FaultSpec, Phase, Plan, RulesetSeed, Seed, ZoneSeed};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::rulesets_bodies::*;
use crate::support::*;

const CUSTOM: Phase = Phase::HttpRequestFirewallCustom;

async fn control(api: &Api, method: &str, path: &str, body: Option<Value>) -> Answer {
    let request = http::Request::builder().method(method).uri(format!("/_sim{path}"));
    let request = request.header("content-type", "application/json");
    let body = body.map_or_else(axum::body::Body::empty, |body| axum::body::Body::from(body.to_string()));
    let request = request.body(body).expect("a request");
    answer(api.sim.service().oneshot(request).await.expect("an answer")).await
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_edits() {
    let api = api_on(Plan::Free);
    let add = async |body: Value| {
        let path = format!("/zones/example.com/rulesets/{}/rules", CUSTOM.name());
        control(&api, "POST", &path, Some(body)).await
    };
    // The entry point comes with the first rule, and the plan stops nobody.
    for reference in ["a", "b", "c", "d", "e"] {
        assert_eq!(add(block(reference)).await.status, 200);
    }
    let log = json!({ "ref": "f", "action": "log", "expression": "true", "position": { "before": "" } });
    let ruleset = add(log).await.body;
    assert_eq!(refs(&ruleset).concat(), "fabcde");
    assert_eq!(ruleset["version"], "7");
    assert_eq!(api.get(&entry_point(CUSTOM)).await.result(), ruleset);

    let rule = format!(
        "/zones/{ZONE}/rulesets/{}/rules/{}",
        CUSTOM.name(),
        id_of(&ruleset["rules"][1])
    );
    let changed = control(
        &api,
        "PATCH",
        &rule,
        Some(json!({ "enabled": false, "position": { "after": "" } })),
    )
    .await;
    assert_eq!(refs(&changed.body).concat(), "fbcdea");
    let last = &changed.body["rules"][5];
    assert_eq!(
        (&last["enabled"], &last["action"]),
        (&json!(false), &json!("block")),
        "merged"
    );
    let gone = control(&api, "DELETE", &rule, None).await;
    assert_eq!(refs(&gone.body).concat(), "fbcde");
    assert_eq!(control(&api, "DELETE", &rule, None).await.status, 404);
    let refused = add(json!({ "ref": "g", "action": "block", "expression": "" })).await;
    assert_eq!(
        (refused.status, &refused.body["errors"][0]["code"]),
        (400, &json!(20_125))
    );
    // A refusal leaves no empty entry point behind.
    let other = format!("/zones/{ZONE}/rulesets/http_request_origin");
    assert_eq!(
        control(&api, "POST", &format!("{other}/rules"), Some(json!({})))
            .await
            .status,
        400
    );
    assert_eq!(control(&api, "DELETE", &other, None).await.status, 404);
    let listed = control(&api, "GET", "/zones/example.com/rulesets", None).await;
    assert_eq!(listed.body, json!({ "rulesets": [gone.body] }));
    assert_eq!(
        control(&api, "GET", "/dump", None).await.body["zones"][0]["rulesets"],
        listed.body["rulesets"]
    );
    let all = format!("/zones/{ZONE}/rulesets/{}", CUSTOM.name());
    assert_eq!(control(&api, "DELETE", &all, None).await.status, 204);
    assert_eq!(api.get(&entry_point(CUSTOM)).await.status, 404);
    assert_eq!(
        control(&api, "GET", "/zones/nobody.example/rulesets", None)
            .await
            .status,
        400
    );
    let unknown = format!("/zones/{ZONE}/rulesets/nothing/rules");
    assert_eq!(control(&api, "POST", &unknown, Some(block("a"))).await.status, 400);
    assert!(
        api.sim.calls().iter().all(|call| call.method == "GET"),
        "foreign edits are not calls"
    );
}

#[tokio::test(start_paused = true)]
async fn a_seed_has_rulesets() {
    let api = api_on(Plan::Free);
    let seed: Seed = serde_json::from_value(json!({
        "zones": [{
            "name": "seeded.example", "account": "One",
            "rulesets": [
                { "id": UNKNOWN, "phase": "http_request_firewall_custom", "rules": [
                    { "id": OTHER_ACCOUNT, "action": "block", "expression": "ip.src eq 192.0.2.1" },
                    { "ref": "log", "action": "log", "expression": "true", "description": "by hand" },
                ] },
                { "phase": "http_ratelimit", "name": "limits", "description": "of mine" },
            ],
        }],
    }))
    .expect("a seed");
    let seeded = api.sim.seed(&seed).expect("a good seed");
    assert_eq!((seeded.rulesets.len(), seeded.rulesets[0].len()), (1, 2));
    assert_eq!(seeded.rulesets[0][0], UNKNOWN);
    let custom = api.sim.entry_point("seeded.example", CUSTOM).expect("an entry point");
    assert_eq!(
        (&custom["id"], &custom["version"], refs(&custom)),
        (
            &json!(UNKNOWN),
            &json!("1"),
            vec![OTHER_ACCOUNT.to_owned(), "log".to_owned()]
        )
    );
    let limits = api
        .sim
        .entry_point("seeded.example", Phase::HttpRatelimit)
        .expect("one");
    assert_eq!(
        (&limits["name"], &limits["description"]),
        (&json!("limits"), &json!("of mine"))
    );
    let again = serde_json::to_value(&seed).expect("JSON");
    assert_eq!(serde_json::from_value::<Seed>(again).expect("a seed"), seed);

    for (rules, words) in [
        (
            vec![map(json!({ "action": "block" }))],
            "ruleset 1 of zone bad.example is refused",
        ),
        (
            vec![map(block("a")), map(block("a"))],
            "ruleset 1 of zone bad.example is refused",
        ),
    ] {
        let api = api_on(Plan::Free);
        let bad = ZoneSeed {
            rulesets: vec![
                RulesetSeed::entry_point(CUSTOM, []),
                RulesetSeed::entry_point(Phase::HttpRatelimit, rules),
            ],
            ..ZoneSeed::named("bad.example", "One")
        };
        let seed = Seed {
            zones: vec![bad],
            ..Seed::default()
        };
        assert_eq!(api.sim.seed(&seed).expect_err("a bad seed").to_string(), words);
    }
}

#[tokio::test(start_paused = true)]
async fn rulesets_are_kept_and_go_with_their_zone() {
    let api = api_on(Plan::Free);
    let made = api.create_ruleset(CUSTOM, json!([block("a")])).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    api.sim.save(&path).expect("saved");
    let copy = api_on(Plan::Free);
    assert!(copy.sim.load(&path).expect("loaded"));
    assert_eq!(copy.get(&entry_point(CUSTOM)).await.result(), made);
    // A file from before there were rulesets.
    let mut old: Value = serde_json::from_slice(&std::fs::read(&path).expect("read")).expect("JSON");
    old["held"].as_object_mut().expect("held").remove("rulesets");
    std::fs::write(&path, old.to_string()).expect("written");
    assert!(copy.sim.load(&path).expect("loaded"));
    assert_eq!(copy.sim.rulesets(ZONE), Some(Vec::new()));

    assert_eq!(api.send("DELETE", &format!("/zones/{ZONE}"), None).await.status, 200);
    assert_eq!(api.sim.rulesets(ZONE), None);
    assert_eq!(api.get(&entry_point(CUSTOM)).await.refusal(), (404, 1003));
}

#[tokio::test(start_paused = true)]
async fn reads_can_be_stale() {
    let api = api_on(Plan::Free);
    api.sim.mark("none");
    let first = api.create_ruleset(CUSTOM, json!([block("a")])).await;
    api.sim.mark("one");
    api.sim.foreign_add_rule(ZONE, CUSTOM, &map(block("b"))).expect("added");
    let stale = |mark: &str| {
        api.sim.clear_faults();
        let fault = Fault::StaleList {
            seconds: None,
            mark: Some(mark.to_owned()),
        };
        let spec = FaultSpec::new(FaultMatch::default(), fault);
        api.sim.add_fault(spec).expect("a good fault");
    };
    stale("one");
    let path = format!("{RULESETS}/{}", id_of(&first));
    assert_eq!(api.get(&entry_point(CUSTOM)).await.result(), first);
    assert_eq!(api.get(&path).await.result(), first);
    // Writes are made on what is there.
    let written = api
        .send("POST", &format!("{path}/rules"), Some(&block("c")))
        .await
        .result();
    assert_eq!(refs(&written).concat(), "abc");
    stale("none");
    assert_eq!(api.get(&entry_point(CUSTOM)).await.refusal(), (404, 10_003));
    assert_eq!(api.get(RULESETS).await.result().as_array().map(Vec::len), Some(3));
    api.sim.clear_faults();
    assert_eq!(api.get(&entry_point(CUSTOM)).await.result(), written);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_has_its_effect() {
    let api = api_on(Plan::Free);
    let ruleset = api.create_ruleset(CUSTOM, json!([])).await;
    let rules = format!("{RULESETS}/{}/rules", id_of(&ruleset));
    let fault = Fault::DropAfter {
        dropped: Some(Dropped::Reset),
    };
    let wanted = FaultMatch {
        route: Some("/zones/{zone_id}/rulesets/{ruleset_id}/rules".into()),
        ..FaultMatch::default()
    };
    let mut spec = FaultSpec::new(wanted, fault);
    spec.times = Some(1);
    api.sim.add_fault(spec).expect("a good fault");
    let request = api.request("POST", &rules, Some(&block("a")));
    assert!(api.sim.service().oneshot(request).await.is_err());
    assert_eq!(refs(&api.get(&entry_point(CUSTOM)).await.result()).concat(), "a");
    let calls = api.sim.calls();
    let call = &calls[1];
    assert_eq!(
        (call.route.as_deref(), call.effect, call.delivery),
        (
            Some("/zones/{zone_id}/rulesets/{ruleset_id}/rules"),
            Effect::Applied,
            Delivery::DroppedAfter
        )
    );
    assert_eq!(call.body.as_ref().expect("a body")["ref"], "a");
    // A second one is refused, because the first one happened.
    assert_eq!(api.send("POST", &rules, Some(&block("a"))).await.status, 400);
    assert_eq!(api.sim.calls().last().expect("a call").error_code, Some(20_021));
}
