//! Rules that are refused: the code, and the pointer to what is wrong.

use kflare_sim::{Phase, Plan};
use serde_json::{Value, json};

use crate::rulesets_bodies::*;
use crate::support::*;

/// A valid rule of a phase with changes: paths and values, null to remove.
fn rule_with(phase: Phase, changes: &[(&str, Value)]) -> Value {
    let (_, mut rule) = rule_bodies().into_iter().find(|(of, _)| *of == phase).expect("a rule");
    for (path, value) in changes {
        let (parent, key) = path.rsplit_once('/').expect("a path");
        let parent = rule
            .pointer_mut(parent)
            .expect("a place")
            .as_object_mut()
            .expect("an object");
        if value.is_null() {
            parent.remove(key);
        } else {
            parent.insert((*key).to_owned(), value.clone());
        }
    }
    rule
}

/// Tries a rule in a PUT, in a POST and in a PATCH: each has to refuse it, each with a pointer from its own body.
async fn refused(api: &Api, phase: Phase, rule: &Value, code: i64, pointer: &str) {
    let (_, good) = rule_bodies().into_iter().find(|(of, _)| *of == phase).expect("a rule");
    let path = entry_point(phase);
    let whole = json!({ "rules": [good] });
    let before = api.send("PUT", &path, Some(&whole)).await.result();
    let answer = api.send("PUT", &path, Some(&json!({ "rules": [good, rule] }))).await;
    assert_eq!(answer.refusal(), (400, code), "{rule}: {}", answer.text);
    assert_eq!(
        answer.body["errors"][0]["source"]["pointer"],
        format!("/rules/1{pointer}"),
        "{rule}"
    );
    assert_eq!(answer.body["result"], Value::Null);
    let rules = format!("{RULESETS}/{}/rules", id_of(&before));
    let one = format!("{rules}/{}", id_of(&before["rules"][0]));
    for (method, path) in [("POST", &rules), ("PATCH", &one)] {
        let answer = api.send(method, path, Some(rule)).await;
        assert_eq!(answer.refusal(), (400, code), "{method} {rule}: {}", answer.text);
        assert_eq!(
            answer.body["errors"][0]["source"]["pointer"], pointer,
            "{method} {rule}"
        );
    }
    assert_eq!(api.get(&path).await.result(), before, "nothing happened");
}

const STAND_IN: i64 = 20_021;

#[tokio::test(start_paused = true)]
async fn rules_that_are_wrong_anywhere() {
    let api = api_on(Plan::Enterprise);
    let custom = Phase::HttpRequestFirewallCustom;
    let expression = |text: &str| [("/expression", json!(text))];
    for (changes, code, pointer) in [
        (&expression("")[..], 20_125, "/expression"),
        (&expression("  ")[..], 20_125, "/expression"),
        (&[("/expression", Value::Null)][..], 20_125, "/expression"),
        (&expression("(ip.src eq 192.0.2.1")[..], 20_127, "/expression"),
        (&expression("URI Path contains /")[..], 20_127, "/expression"),
        (&expression("http.host eq \"a\" and")[..], 20_127, "/expression"),
        (&expression("nothing.known eq 1")[..], 20_127, "/expression"),
        (&expression("http.host in {\"a\", \"b\"}")[..], 20_127, "/expression"),
        (&expression("ip.src in $nobody")[..], 20_127, "/expression"),
        (&[("/expression", json!(7))][..], STAND_IN, "/expression"),
        (&[("/action", Value::Null)][..], STAND_IN, "/action"),
        (&[("/action", json!("allow"))][..], STAND_IN, "/action"),
        (&[("/action", json!("rewrite"))][..], 20_016, "/action"),
        (&[("/enabled", json!("yes"))][..], STAND_IN, "/enabled"),
        (&[("/description", json!([]))][..], STAND_IN, "/description"),
        (&[("/logging", json!({ "enabled": true }))][..], STAND_IN, "/logging"),
        (&[("/ratelimit", json!({ "period": 10 }))][..], STAND_IN, "/ratelimit"),
        (&[("/action_parameters", json!([]))][..], STAND_IN, "/action_parameters"),
        (
            &[
                ("/action", json!("challenge")),
                ("/action_parameters", json!({ "response": {} })),
            ][..],
            STAND_IN,
            "/action_parameters",
        ),
        (
            &[(
                "/action_parameters",
                json!({ "response": { "status_code": 403, "content": "x" } }),
            )][..],
            STAND_IN,
            "/action_parameters/response/content_type",
        ),
        (
            &[(
                "/action_parameters",
                json!({ "response": { "status_code": 500, "content": "x", "content_type": "y" } }),
            )][..],
            STAND_IN,
            "/action_parameters/response/status_code",
        ),
        (&[("/action", json!("skip"))][..], 20_113, "/action_parameters"),
        (
            &[
                ("/action", json!("skip")),
                ("/action_parameters", json!({ "phases": ["http_request_origin"] })),
            ][..],
            20_120,
            "/action_parameters/phases/0",
        ),
        (
            &[
                ("/action", json!("skip")),
                ("/action_parameters", json!({ "phases": ["nope"] })),
            ][..],
            STAND_IN,
            "/action_parameters/phases/0",
        ),
        (
            &[
                ("/action", json!("skip")),
                (
                    "/action_parameters",
                    json!({ "phases": ["http_ratelimit"], "ruleset": "current" }),
                ),
            ][..],
            STAND_IN,
            "/action_parameters/phases",
        ),
        (
            &[
                ("/action", json!("skip")),
                ("/action_parameters", json!({ "products": ["waf", "waf"] })),
            ][..],
            STAND_IN,
            "/action_parameters/products/1",
        ),
    ] {
        refused(&api, custom, &rule_with(custom, changes), code, pointer).await;
    }
    let long = format!("http.host eq \"{}\"", "a".repeat(4096));
    refused(
        &api,
        custom,
        &rule_with(custom, &expression(&long)),
        STAND_IN,
        "/expression",
    )
    .await;
    for whole in [
        json!({ "rules": {} }),
        json!({ "rules": ["x"] }),
        json!({ "description": 1 }),
    ] {
        let answer = api.send("PUT", &entry_point(custom), Some(&whole)).await;
        assert_eq!(answer.refusal(), (400, STAND_IN), "{whole}");
    }
    let broken = api.request("PUT", &entry_point(custom), None);
    let answer = answer(
        tower::ServiceExt::oneshot(api.sim.router(), broken)
            .await
            .expect("infallible"),
    )
    .await;
    assert_eq!(answer.refusal(), (400, 6007));
}

#[tokio::test(start_paused = true)]
async fn actions_and_parameters_of_each_phase() {
    let api = api_on(Plan::Enterprise);
    for phase in Phase::ALL {
        let (_, good) = rule_bodies().into_iter().find(|(of, _)| *of == phase).expect("a rule");
        if good["action"] != "block" {
            let bare = rule_with(phase, &[("/action_parameters", Value::Null)]);
            refused(&api, phase, &bare, 20_113, "/action_parameters").await;
            let empty = rule_with(phase, &[("/action_parameters", json!({}))]);
            refused(&api, phase, &empty, 20_113, "/action_parameters").await;
            let unknown = rule_with(phase, &[("/action_parameters/nothing", json!(1))]);
            refused(&api, phase, &unknown, STAND_IN, "/action_parameters/nothing").await;
            let blocks = rule_with(
                phase,
                &[("/action", json!("block")), ("/action_parameters", Value::Null)],
            );
            refused(&api, phase, &blocks, 20_016, "/action").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_that_do_not_fit() {
    let api = api_on(Plan::Enterprise);
    let of = |path: &str, value: Value| (format!("/action_parameters{path}"), value);
    for (phase, (path, value), pointer) in [
        (Phase::HttpRequestFirewallManaged, of("/id", json!("short")), "/id"),
        (Phase::HttpRequestFirewallManaged, of("/id", json!(UNKNOWN)), "/id"),
        (
            Phase::HttpRequestFirewallManaged,
            of("/version", json!("1")),
            "/version",
        ),
        (
            Phase::HttpRequestFirewallManaged,
            of("/overrides", json!({ "sensitivity_level": "high" })),
            "/overrides/sensitivity_level",
        ),
        (
            Phase::HttpRequestFirewallManaged,
            of("/overrides", json!({ "categories": [{ "action": "log" }] })),
            "/overrides/categories/0/category",
        ),
        (
            Phase::HttpRequestTransform,
            of(
                "/uri/path",
                json!({ "value": "/a", "expression": "http.request.uri.path" }),
            ),
            "/uri/path",
        ),
        (
            Phase::HttpRequestTransform,
            of("/uri/path", json!({ "value": "" })),
            "/uri/path/value",
        ),
        (
            Phase::HttpRequestTransform,
            of("/uri", json!({ "origin": true })),
            "/uri",
        ),
        (
            Phase::HttpRequestLateTransform,
            of("/headers/X-A", json!({ "operation": "add", "value": "1" })),
            "/headers/X-A/operation",
        ),
        (
            Phase::HttpRequestLateTransform,
            of("/headers/X-A", json!({ "operation": "set" })),
            "/headers/X-A",
        ),
        (
            Phase::HttpResponseHeadersTransform,
            of("/headers/X-A", json!({ "operation": "remove", "value": "1" })),
            "/headers/X-A",
        ),
        (
            Phase::HttpRequestDynamicRedirect,
            of("/from_value/target_url", json!({ "value": "a", "expression": "true" })),
            "/from_value/target_url",
        ),
        (
            Phase::HttpRequestDynamicRedirect,
            of("/from_value/status_code", json!(304)),
            "/from_value/status_code",
        ),
        (
            Phase::HttpRequestCacheSettings,
            of("/edge_ttl", json!({ "mode": "override_origin" })),
            "/edge_ttl/default",
        ),
        (
            Phase::HttpRequestCacheSettings,
            of("/browser_ttl", json!({ "mode": "bypass", "default": 1 })),
            "/browser_ttl/default",
        ),
        (
            Phase::HttpRequestCacheSettings,
            of(
                "/edge_ttl",
                json!({ "mode": "respect_origin", "status_code_ttl": [{ "value": 1 }] }),
            ),
            "/edge_ttl/status_code_ttl/0",
        ),
        (
            Phase::HttpRequestCacheSettings,
            of("/read_timeout", json!(99)),
            "/read_timeout",
        ),
        (
            Phase::HttpConfigSettings,
            of("/disable_rum", json!(false)),
            "/disable_rum",
        ),
        (Phase::HttpConfigSettings, of("/ssl", json!("off!")), "/ssl"),
        (
            Phase::HttpRequestOrigin,
            of("/origin/port", json!(70_000)),
            "/origin/port",
        ),
        (
            Phase::HttpRequestOrigin,
            of("/origin/port", json!("80")),
            "/origin/port",
        ),
    ] {
        let rule = rule_with(phase, &[(&path, value)]);
        refused(&api, phase, &rule, STAND_IN, &format!("/action_parameters{pointer}")).await;
    }
    // Expressions inside of parameters are looked at too.
    let phase = Phase::HttpRequestTransform;
    let rule = rule_with(
        phase,
        &[(
            "/action_parameters/uri/path",
            json!({ "expression": "concat(\"/a\", " }),
        )],
    );
    refused(&api, phase, &rule, 20_127, "/action_parameters/uri/path/expression").await;
}

#[tokio::test(start_paused = true)]
async fn counting_that_does_not_fit() {
    let api = api_on(Plan::Enterprise);
    let phase = Phase::HttpRatelimit;
    for (path, value, code, pointer) in [
        ("/ratelimit", Value::Null, STAND_IN, ""),
        (
            "/ratelimit/characteristics",
            json!(["ip.src"]),
            20_155,
            "/characteristics",
        ),
        ("/ratelimit/characteristics", json!([]), STAND_IN, "/characteristics"),
        ("/ratelimit/characteristics", Value::Null, STAND_IN, "/characteristics"),
        ("/ratelimit/period", json!(61), STAND_IN, "/period"),
        ("/ratelimit/period", Value::Null, STAND_IN, "/period"),
        (
            "/ratelimit/requests_per_period",
            json!(0),
            STAND_IN,
            "/requests_per_period",
        ),
        (
            "/ratelimit/requests_per_period",
            Value::Null,
            STAND_IN,
            "/requests_per_period",
        ),
        (
            "/ratelimit/mitigation_timeout",
            json!(11),
            STAND_IN,
            "/mitigation_timeout",
        ),
        (
            "/ratelimit/counting_expression",
            json!("x y"),
            20_127,
            "/counting_expression",
        ),
        ("/ratelimit/typo", json!(1), STAND_IN, "/typo"),
    ] {
        let rule = rule_with(phase, &[(path, value)]);
        refused(&api, phase, &rule, code, &format!("/ratelimit{pointer}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn expressions_may_name_cloudflares_lists() {
    let api = api_on(Plan::Enterprise);
    let rule = json!({ "action": "block", "expression": "ip.src in $cf.open_proxies" });
    let ruleset = api
        .create_ruleset(Phase::HttpRequestFirewallCustom, json!([rule]))
        .await;
    assert_eq!(ruleset["rules"][0]["expression"], rule["expression"]);
}

#[tokio::test(start_paused = true)]
async fn expressions_name_lists_of_the_account_which_are_then_in_use() {
    let api = api_on(Plan::Enterprise);
    let lists = format!("/accounts/{ACCOUNT}/rules/lists");
    let body = json!({ "name": "office", "kind": "ip" });
    let list = api.send("POST", &lists, Some(&body)).await.result();
    let path = format!("{lists}/{}", id_of(&list));
    let used = async || api.get(&path).await.result()["num_referencing_filters"].clone();
    assert_eq!(used().await, 0);
    let phase = Phase::HttpRequestFirewallCustom;
    let rule = |text: &str| json!({ "action": "block", "expression": text });
    let rules = json!([
        rule("ip.src in $office and not ip.src in $office"),
        rule("http.host eq \"$office\""),
        rule("not ip.src in $office"),
    ]);
    let ruleset = api.create_ruleset(phase, rules).await;
    // Parameters have expressions too.
    let (_, mut rewrite) = rule_bodies()
        .into_iter()
        .find(|(of, _)| *of == Phase::HttpRequestTransform)
        .expect("a rule");
    rewrite["expression"] = json!("ip.src in $office");
    api.create_ruleset(Phase::HttpRequestTransform, json!([rewrite])).await;
    assert_eq!(used().await, 3, "rules, not mentions");
    assert_eq!(api.send("DELETE", &path, None).await.status, 400);
    let gone = api
        .send("DELETE", &format!("{RULESETS}/{}", id_of(&ruleset)), None)
        .await;
    assert_eq!((gone.status, used().await), (204, json!(1)));
    api.sim
        .foreign_delete_entry_point(ZONE, Phase::HttpRequestTransform)
        .expect("deleted");
    assert_eq!(api.send("DELETE", &path, None).await.status, 200);
    let unknown = json!({ "rules": [rule("ip.src in $office")] });
    let answer = api.send("PUT", &entry_point(phase), Some(&unknown)).await;
    assert_eq!(answer.refusal(), (400, 20_127), "a list that is gone");
}

#[tokio::test(start_paused = true)]
async fn rulesets_that_are_refused() {
    let api = api_on(Plan::Enterprise);
    for (body, code, pointer) in [
        (
            json!({ "name": "a", "kind": "zone", "phase": "http_request_later" }),
            STAND_IN,
            "/phase",
        ),
        (json!({ "name": "a", "kind": "zone" }), STAND_IN, "/phase"),
        (
            json!({ "name": "a", "kind": "x", "phase": "http_ratelimit" }),
            STAND_IN,
            "/kind",
        ),
        (json!({ "kind": "zone", "phase": "http_ratelimit" }), STAND_IN, "/name"),
        (
            json!({ "name": "a", "kind": "zone", "phase": "http_ratelimit", "rules": [{}] }),
            STAND_IN,
            "/rules/0/action",
        ),
    ] {
        // A token for everything: what is wrong is the body.
        let answer = api.send("POST", RULESETS, Some(&body)).await;
        assert_eq!(answer.refusal(), (400, code), "{body}");
        assert_eq!(answer.body["errors"][0]["source"]["pointer"], pointer, "{body}");
    }
    for phase in ["http_request_sbfm", "http_custom_errors", "ddos_l7"] {
        let answer = api.get(&format!("{RULESETS}/phases/{phase}/entrypoint")).await;
        assert_eq!(answer.refusal(), (501, 10_501), "{phase}");
    }
    assert_eq!(
        api.get(&format!("{RULESETS}/phases/nothing/entrypoint")).await.status,
        400
    );
    assert_eq!(api.sim.rulesets(ZONE), Some(Vec::new()));
}
