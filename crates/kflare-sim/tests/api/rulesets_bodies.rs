//! One valid rule of each action, and calls of every route with them.

use kflare_sim::Phase;
use serde_json::{Map, Value, json};

use crate::support::*;

pub const CLOUDFLARE_MANAGED: &str = "efb7b8c949ac4650a09736fc376e9aee";
pub const FREE_MANAGED: &str = "77454fe2d30c4220b5701f6fdfb893ba";
pub const RULESETS: &str = "/zones/cccccccccccccccccccccccccccccccc/rulesets";

/// A rule that blocks, of this `ref`.
pub fn block(reference: &str) -> Value {
    json!({ "ref": reference, "action": "block", "expression": "ip.src eq 192.0.2.1" })
}

/// The rule of a body, for seeds and foreign edits.
pub fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}

/// The entry point of a phase as a path.
pub fn entry_point(phase: Phase) -> String {
    format!("{RULESETS}/phases/{}/entrypoint", phase.name())
}

/// The `ref`s of a ruleset in their order.
pub fn refs(ruleset: &Value) -> Vec<String> {
    let rules = ruleset["rules"].as_array().expect("rules").iter();
    rules
        .map(|rule| rule["ref"].as_str().expect("a ref").to_owned())
        .collect()
}

impl Api {
    /// Makes the entry point of a phase with these rules.
    pub async fn create_ruleset(&self, phase: Phase, rules: Value) -> Value {
        let body = json!({ "name": "rules", "kind": "zone", "phase": phase.name(), "rules": rules });
        self.send("POST", RULESETS, Some(&body)).await.result()
    }
}

/// Rules that need the Enterprise plan here and there, by phase.
pub fn rule_bodies() -> Vec<(Phase, Value)> {
    let rule = |action: &str, parameters: Value| {
        let mut rule = json!({
            "action": action, "expression": "http.host eq \"www.example.com\"", "description": action, "enabled": false,
        });
        if !parameters.is_null() {
            rule["action_parameters"] = parameters;
        }
        rule
    };
    let response = json!({ "response": { "status_code": 403, "content": "no", "content_type": "text/plain" } });
    let mut limited = rule("block", Value::Null);
    limited["ratelimit"] = json!({
        "characteristics": ["ip.src", "cf.colo.id"], "period": 60, "requests_per_period": 100, "mitigation_timeout": 600,
        "counting_expression": "http.response.code eq 401", "requests_to_origin": true,
    });
    let custom = Phase::HttpRequestFirewallCustom;
    vec![
        (custom, rule("block", Value::Null)),
        (custom, rule("block", response)),
        (custom, rule("challenge", Value::Null)),
        (custom, rule("js_challenge", Value::Null)),
        (custom, rule("managed_challenge", json!({}))),
        (custom, rule("log", Value::Null)),
        (custom, rule("skip", json!({ "ruleset": "current" }))),
        (
            custom,
            rule(
                "skip",
                json!({ "phases": ["http_ratelimit", "http_request_firewall_managed"], "products": ["waf", "bic"] }),
            ),
        ),
        (Phase::HttpRatelimit, limited),
        (
            Phase::HttpRequestFirewallManaged,
            rule("execute", json!({ "id": CLOUDFLARE_MANAGED })),
        ),
        (
            Phase::HttpRequestFirewallManaged,
            rule(
                "execute",
                json!({ "id": CLOUDFLARE_MANAGED, "version": "latest", "overrides": {
                    "action": "log", "enabled": true, "sensitivity_level": "low",
                    "categories": [{ "category": "wordpress", "action": "block", "enabled": true }],
                    "rules": [{ "id": UNKNOWN, "action": "managed_challenge", "score_threshold": 60 }],
                } }),
            ),
        ),
        (
            Phase::HttpRequestFirewallManaged,
            rule("skip", json!({ "rules": { CLOUDFLARE_MANAGED: [UNKNOWN] } })),
        ),
        (
            Phase::HttpRequestTransform,
            rule(
                "rewrite",
                json!({ "uri": { "path": { "value": "/new" }, "query": { "value": "" } } }),
            ),
        ),
        (
            Phase::HttpRequestTransform,
            rule(
                "rewrite",
                json!({ "uri": { "path": { "expression": "concat(\"/eu\", http.request.uri.path)" } } }),
            ),
        ),
        (
            Phase::HttpRequestLateTransform,
            rule(
                "rewrite",
                json!({ "headers": {
                    "X-One": { "operation": "set", "value": "1" },
                    "X-Two": { "operation": "set", "expression": "cf.bot_management.score" },
                    "X-Three": { "operation": "remove" },
                } }),
            ),
        ),
        (
            Phase::HttpResponseHeadersTransform,
            rule(
                "rewrite",
                json!({ "headers": { "Set-Cookie": { "operation": "add", "value": "a=b" } } }),
            ),
        ),
        (
            Phase::HttpRequestDynamicRedirect,
            rule(
                "redirect",
                json!({ "from_value": { "target_url": { "value": "https://example.net/" }, "status_code": 301 } }),
            ),
        ),
        (
            Phase::HttpRequestDynamicRedirect,
            rule(
                "redirect",
                json!({ "from_value": {
                    "target_url": { "expression": "concat(\"https://example.net\", http.request.uri.path)" },
                    "status_code": 308, "preserve_query_string": true,
                } }),
            ),
        ),
        (
            Phase::HttpRequestCacheSettings,
            rule(
                "set_cache_settings",
                json!({
                    "cache": true,
                    "edge_ttl": { "mode": "override_origin", "default": 60, "status_code_ttl": [
                        { "status_code": 404, "value": 0 },
                        { "status_code_range": { "from": 500, "to": 599 }, "value": -1 },
                    ] },
                    "browser_ttl": { "mode": "respect_origin" },
                    "cache_key": {
                        "ignore_query_strings_order": true,
                        "custom_key": {
                            "query_string": { "include": { "list": ["a", "b"] }, "exclude": { "all": true } },
                            "header": { "include": ["x-a"], "contains": { "accept": ["image/webp"] } },
                            "cookie": { "check_presence": ["session"] },
                            "user": { "geo": true }, "host": { "resolved": false },
                        },
                    },
                    "serve_stale": { "disable_stale_while_updating": true },
                    "read_timeout": 900, "respect_strong_etags": true, "origin_error_page_passthru": false,
                    "origin_cache_control": true, "additional_cacheable_ports": [8443],
                    "cache_reserve": { "eligible": true, "minimum_file_size": 1024 },
                    "vary": { "default": { "action": "bypass" },
                              "headers": { "accept-language": { "action": "normalize", "languages": ["nl"] } } },
                }),
            ),
        ),
        (
            Phase::HttpConfigSettings,
            rule(
                "set_config",
                json!({
                    "ssl": "strict", "security_level": "high", "polish": "lossless", "bic": true, "disable_rum": true,
                    "request_body_buffering": "full", "autominify": { "css": true },
                }),
            ),
        ),
        (
            Phase::HttpRequestOrigin,
            rule(
                "route",
                json!({
                    "host_header": "app.example.net", "origin": { "host": "app.example.net", "port": 8443 },
                    "sni": { "value": "app.example.net" },
                }),
            ),
        ),
    ]
}

/// Makes every call of this area, on rules of every action. The zone is left without rulesets.
pub async fn all_answers(api: &Api) -> Vec<(&'static str, &'static str, Answer)> {
    const ALL: &str = "/zones/{zone_id}/rulesets";
    const ENTRY: &str = "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint";
    const ONE: &str = "/zones/{zone_id}/rulesets/{ruleset_id}";
    const RULES: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";
    const RULE: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}";
    let mut answers = Vec::new();
    let plan = api.sim.zones()[0]["plan"]["legacy_id"].clone();
    api.sim
        .set_zone_plan(ZONE, kflare_sim::Plan::Enterprise)
        .expect("a zone");
    for (phase, body) in rule_bodies() {
        let path = entry_point(phase);
        let whole = json!({ "rules": [body] });
        let made = api.send("PUT", &path, Some(&whole)).await;
        let id = id_of(&made.body["result"]);
        let rule = id_of(&made.body["result"]["rules"][0]);
        answers.push(("PUT", ENTRY, made));
        answers.push(("GET", ENTRY, api.get(&path).await));
        let path = format!("{RULESETS}/{id}");
        answers.push(("GET", ONE, api.get(&path).await));
        answers.push(("PUT", ONE, api.send("PUT", &path, Some(&whole)).await));
        let rules = api.get(&path).await.body["result"]["rules"].clone();
        answers.push((
            "POST",
            RULES,
            api.send("POST", &format!("{path}/rules"), Some(&body)).await,
        ));
        assert_ne!(id_of(&rules[0]), rule, "a rule without ref is a new one in each PUT");
        let rule = format!("{path}/rules/{}", id_of(&rules[0]));
        answers.push(("PATCH", RULE, api.send("PATCH", &rule, Some(&body)).await));
        answers.push(("GET", ALL, api.get(RULESETS).await));
        answers.push(("DELETE", RULE, api.send("DELETE", &rule, None).await));
        answers.push(("DELETE", ONE, api.send("DELETE", &path, None).await));
        let new = json!({ "name": "new", "kind": "zone", "phase": phase.name(), "rules": [body] });
        let made = api.send("POST", RULESETS, Some(&new)).await;
        let path = format!("{RULESETS}/{}", id_of(&made.body["result"]));
        answers.push(("POST", ALL, made));
        answers.push(("DELETE", ONE, api.send("DELETE", &path, None).await));
    }
    let plan = serde_json::from_value(plan).expect("a plan");
    api.sim.set_zone_plan(ZONE, plan).expect("a zone");
    answers
}
