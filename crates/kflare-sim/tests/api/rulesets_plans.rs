//! What plans limit: the number of rules, and what they may do. Field case 105.

use kflare_sim::{Phase, Plan};
use serde_json::{Value, json};

use crate::rulesets_bodies::*;
use crate::support::*;

const CUSTOM: Phase = Phase::HttpRequestFirewallCustom;

/// A rule of a phase that every plan may have.
fn simple(phase: Phase) -> Value {
    match phase {
        Phase::HttpRatelimit => json!({
            "action": "block", "expression": "true",
            "ratelimit": { "characteristics": ["cf.colo.id", "ip.src"], "period": 10, "requests_per_period": 1, "mitigation_timeout": 10 },
        }),
        Phase::HttpRequestFirewallManaged => json!({
            "action": "execute", "expression": "true", "action_parameters": { "id": FREE_MANAGED },
        }),
        Phase::HttpRequestCacheSettings => json!({
            "action": "set_cache_settings", "expression": "true", "action_parameters": { "cache": true },
        }),
        Phase::HttpConfigSettings => json!({
            "action": "set_config", "expression": "true", "action_parameters": { "ssl": "strict" },
        }),
        Phase::HttpRequestOrigin => json!({
            "action": "route", "expression": "true", "action_parameters": { "origin": { "port": 8080 } },
        }),
        phase => {
            rule_bodies()
                .into_iter()
                .find(|(of, _)| *of == phase)
                .expect("a rule")
                .1
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_rules_in_a_phase() {
    for (plan, custom, limits, others) in [
        (Plan::Free, 5, 1, 10),
        (Plan::Pro, 20, 2, 25),
        (Plan::Business, 100, 5, 50),
        (Plan::Enterprise, 1000, 100, 300),
    ] {
        let api = api_on(plan);
        for phase in Phase::ALL {
            let limit = match phase {
                Phase::HttpRequestFirewallCustom | Phase::HttpRequestFirewallManaged => custom,
                Phase::HttpRatelimit => limits,
                _ => others,
            };
            let path = entry_point(phase);
            let full = json!({ "rules": vec![simple(phase); limit] });
            let before = api.send("PUT", &path, Some(&full)).await.result();
            let text = format!(
                "exceeded the maximum number of rules in the phase {}: {} out of {limit}",
                phase.name(),
                limit + 1
            );
            let more = json!({ "rules": vec![simple(phase); limit + 1] });
            let rules = format!("{RULESETS}/{}/rules", id_of(&before));
            for (method, path, body) in [("PUT", &path, &more), ("POST", &rules, &simple(phase))] {
                let answer = api.send(method, path, Some(body)).await;
                assert_eq!(answer.refusal(), (400, 50_001), "{plan:?} {phase:?}");
                assert_eq!(answer.body["errors"][0]["message"], json!(text));
            }
            assert_eq!(api.get(&path).await.result(), before, "the whole update is refused");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_leaves_the_rules_and_lets_none_come() {
    let api = api_on(Plan::Pro);
    let ruleset = api.create_ruleset(CUSTOM, Value::Array(vec![simple(CUSTOM); 20])).await;
    api.sim.set_zone_plan(ZONE, Plan::Free).expect("a zone");
    let rules = format!("{RULESETS}/{}/rules", id_of(&ruleset));
    assert_eq!(
        api.send("POST", &rules, Some(&simple(CUSTOM))).await.refusal(),
        (400, 50_001)
    );
    let one = format!("{rules}/{}", id_of(&ruleset["rules"][0]));
    assert_eq!(api.send("PATCH", &one, Some(&simple(CUSTOM))).await.status, 200);
    assert_eq!(api.send("DELETE", &one, None).await.status, 200);
    assert_eq!(
        api.get(&entry_point(CUSTOM)).await.result()["rules"]
            .as_array()
            .map(Vec::len),
        Some(19)
    );
}

/// Tries rules on every plan; they have to be taken from `from` on, and refused before with a text that holds `text`.
async fn from_plan_on(phase: Phase, rule: &Value, from: Plan, text: &str, pointer: &str) {
    for plan in Plan::ALL {
        let api = api_on(plan);
        let answer = api
            .send("PUT", &entry_point(phase), Some(&json!({ "rules": [rule] })))
            .await;
        if plan >= from {
            assert_eq!(answer.status, 200, "{plan:?} {rule}: {}", answer.text);
            continue;
        }
        assert_eq!(answer.refusal(), (400, 50_002), "{plan:?} {rule}: {}", answer.text);
        let error = &answer.body["errors"][0];
        let message = error["message"].as_str().expect("a message");
        assert!(
            message.starts_with("not entitled") && message.contains(text),
            "{message}"
        );
        assert_eq!(error["source"]["pointer"], format!("/rules/0{pointer}"), "{rule}");
        assert_eq!(api.get(&entry_point(phase)).await.status, 404, "nothing was made");
    }
}

#[tokio::test(start_paused = true)]
async fn what_takes_a_better_plan() {
    let block = |expression: &str| json!({ "action": "block", "expression": expression });
    let matches = "http.user_agent matches \"(?i)bot\"";
    from_plan_on(
        CUSTOM,
        &block(matches),
        Plan::Business,
        "operator Matches",
        "/expression",
    )
    .await;
    let replaces = "regex_replace(http.host, \"a\", \"b\") eq \"b\"";
    from_plan_on(
        CUSTOM,
        &block(replaces),
        Plan::Business,
        "function regex_replace",
        "/expression",
    )
    .await;
    let log = json!({ "action": "log", "expression": "true" });
    from_plan_on(CUSTOM, &log, Plan::Enterprise, "log action", "/action").await;

    let rewrite = json!({ "action": "rewrite", "expression": "true", "action_parameters": { "uri": { "path": {
        "expression": "regex_replace(http.request.uri.path, \"^/a\", \"/b\")" } } } });
    let pointer = "/action_parameters/uri/path/expression";
    from_plan_on(
        Phase::HttpRequestTransform,
        &rewrite,
        Plan::Business,
        "regex_replace",
        pointer,
    )
    .await;

    let execute =
        json!({ "action": "execute", "expression": "true", "action_parameters": { "id": CLOUDFLARE_MANAGED } });
    let phase = Phase::HttpRequestFirewallManaged;
    from_plan_on(
        phase,
        &execute,
        Plan::Pro,
        "this managed ruleset",
        "/action_parameters/id",
    )
    .await;

    for (parameters, text, pointer) in [
        (
            json!({ "host_header": "a.example.net" }),
            "HostHeader override",
            "/host_header",
        ),
        (
            json!({ "origin": { "host": "a.example.net", "port": 443 } }),
            "DNS override",
            "/origin/host",
        ),
        (json!({ "sni": { "value": "a.example.net" } }), "SNI override", "/sni"),
    ] {
        let route = json!({ "action": "route", "expression": "true", "action_parameters": parameters });
        let pointer = format!("/action_parameters{pointer}");
        from_plan_on(Phase::HttpRequestOrigin, &route, Plan::Enterprise, text, &pointer).await;
    }
}

fn phase_action(phase: Phase) -> Value {
    simple(phase)["action"].clone()
}

#[tokio::test(start_paused = true)]
async fn settings_that_take_a_better_plan() {
    let cache = Phase::HttpRequestCacheSettings;
    let config = Phase::HttpConfigSettings;
    for (phase, parameters, from, text, pointer) in [
        (
            cache,
            json!({ "additional_cacheable_ports": [8443] }),
            Plan::Enterprise,
            "ports",
            "/additional_cacheable_ports",
        ),
        (
            cache,
            json!({ "read_timeout": 900 }),
            Plan::Pro,
            "read timeout",
            "/read_timeout",
        ),
        (
            cache,
            json!({ "strip_etags": true }),
            Plan::Pro,
            "ETags",
            "/strip_etags",
        ),
        (
            cache,
            json!({ "cache_key": { "custom_key": { "header": { "include": ["x-a"] } } } }),
            Plan::Pro,
            "cache key",
            "/cache_key/custom_key",
        ),
        (
            cache,
            json!({ "cache_key": { "custom_key": { "query_string": { "exclude": { "all": true } } } } }),
            Plan::Free,
            "",
            "",
        ),
        (config, json!({ "polish": "lossy" }), Plan::Pro, "Polish", "/polish"),
        (config, json!({ "polish": "off" }), Plan::Free, "", ""),
        (
            config,
            json!({ "ssl": "origin_pull" }),
            Plan::Enterprise,
            "origin_pull",
            "/ssl",
        ),
        (
            config,
            json!({ "security_level": "off" }),
            Plan::Enterprise,
            "security level",
            "/security_level",
        ),
        (
            config,
            json!({ "security_level": "essentially_off" }),
            Plan::Free,
            "",
            "",
        ),
    ] {
        let action = phase_action(phase);
        let rule = json!({ "action": action, "expression": "true", "action_parameters": parameters });
        from_plan_on(phase, &rule, from, text, &format!("/action_parameters{pointer}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limiting_by_plan() {
    let limit = |action: &str, changes: Value| {
        let mut rule = simple(Phase::HttpRatelimit);
        rule["action"] = json!(action);
        let ratelimit = rule["ratelimit"].as_object_mut().expect("an object");
        ratelimit.extend(map(changes));
        rule
    };
    let phase = Phase::HttpRatelimit;
    for (action, changes, from, text, pointer) in [
        (
            "block",
            json!({ "period": 60, "mitigation_timeout": 60 }),
            Plan::Pro,
            "period 60, can only use a period among [10]",
            "/ratelimit/period",
        ),
        (
            "block",
            json!({ "period": 600 }),
            Plan::Business,
            "period 600",
            "/ratelimit/period",
        ),
        (
            "block",
            json!({ "period": 3600 }),
            Plan::Enterprise,
            "period 3600",
            "/ratelimit/period",
        ),
        (
            "block",
            json!({ "mitigation_timeout": 60 }),
            Plan::Pro,
            "mitigation timeout different from 10",
            "/ratelimit/mitigation_timeout",
        ),
        (
            "block",
            json!({ "mitigation_timeout": 86_400 }),
            Plan::Business,
            "mitigation timeout",
            "/ratelimit/mitigation_timeout",
        ),
        (
            "managed_challenge",
            json!({ "mitigation_timeout": 0 }),
            Plan::Pro,
            "managed_challenge action in ratelimiting",
            "/action",
        ),
        (
            "log",
            json!({}),
            Plan::Enterprise,
            "log action in ratelimiting",
            "/action",
        ),
        (
            "block",
            json!({ "characteristics": ["cf.colo.id", "cf.unique_visitor_id"] }),
            Plan::Business,
            "characteristic",
            "/ratelimit/characteristics/1",
        ),
        (
            "block",
            json!({ "characteristics": ["cf.colo.id", "http.request.headers[\"x\"]"] }),
            Plan::Enterprise,
            "characteristic",
            "/ratelimit/characteristics/1",
        ),
        (
            "block",
            json!({ "counting_expression": "http.response.code eq 401" }),
            Plan::Business,
            "Advanced Rate Limiting",
            "/ratelimit/counting_expression",
        ),
        (
            "block",
            json!({ "score_per_period": 5, "score_response_header_name": "x" }),
            Plan::Enterprise,
            "Advanced Rate Limiting",
            "/ratelimit/score_per_period",
        ),
    ] {
        from_plan_on(phase, &limit(action, changes), from, text, pointer).await;
    }
    let timed = limit("js_challenge", json!({ "mitigation_timeout": 60 }));
    let api = api_on(Plan::Business);
    let answer = api
        .send("PUT", &entry_point(phase), Some(&json!({ "rules": [timed] })))
        .await;
    assert_eq!(
        answer.refusal(),
        (400, 50_002),
        "challenges have no timeout below Enterprise"
    );
}
