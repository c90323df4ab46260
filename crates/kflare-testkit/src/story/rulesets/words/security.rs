//! Rules that block, challenge or limit.

use kflare_sim::Phase;
use serde_json::{Value, json};

use super::{Form, nothing, parameter, same};

pub(super) fn waf_custom() -> Form {
    let (spec, wire) = response();
    let phases = ["http_ratelimit", "http_request_firewall_managed"];
    Form {
        kind: "WAFCustomRule",
        plural: "wafcustomrules",
        phase: Phase::HttpRequestFirewallCustom,
        base: json!({}),
        fixed: nothing(),
        must: vec![vec![
            same(json!({ "action": "block" })),
            (
                json!({ "action": "block", "actionParameters": spec }),
                json!({ "action": "block", "action_parameters": wire }),
            ),
            same(json!({ "action": "managed_challenge" })),
            same(json!({ "action": "log" })),
            (
                json!({ "action": "skip", "actionParameters": { "phases": [phases[1], phases[0]] }, "logging": { "enabled": false } }),
                json!({ "action": "skip", "action_parameters": { "phases": phases }, "logging": { "enabled": false } }),
            ),
            (
                json!({ "action": "skip", "actionParameters": { "ruleset": "current" } }),
                json!({ "action": "skip", "action_parameters": { "ruleset": "current" } }),
            ),
        ]],
        may: vec![],
    }
}

fn response() -> (Value, Value) {
    (
        json!({ "response": { "statusCode": 403, "contentType": "text/plain", "content": "no" } }),
        json!({ "response": { "status_code": 403, "content_type": "text/plain", "content": "no" } }),
    )
}

pub(super) fn rate_limit() -> Form {
    let (spec, wire) = response();
    let counted = |spec: Value, wire: Value| (json!({ "ratelimit": spec }), json!({ "ratelimit": wire }));
    Form {
        kind: "RateLimitRule",
        plural: "ratelimitrules",
        phase: Phase::HttpRatelimit,
        base: json!({}),
        fixed: nothing(),
        must: vec![
            vec![
                same(json!({ "action": "block" })),
                (
                    json!({ "action": "block", "actionParameters": spec }),
                    json!({ "action": "block", "action_parameters": wire }),
                ),
                same(json!({ "action": "log" })),
            ],
            vec![
                counted(
                    json!({ "characteristics": ["ip.src", "cf.colo.id"], "period": 10, "requestsPerPeriod": 20, "mitigationTimeout": 10 }),
                    json!({ "characteristics": ["cf.colo.id", "ip.src"], "period": 10, "requests_per_period": 20, "mitigation_timeout": 10 }),
                ),
                counted(
                    json!({ "characteristics": ["cf.colo.id"], "period": 10, "requestsPerPeriod": 7, "mitigationTimeout": 10, "requestsToOrigin": true }),
                    json!({ "characteristics": ["cf.colo.id"], "period": 10, "requests_per_period": 7, "mitigation_timeout": 10, "requests_to_origin": true }),
                ),
                counted(
                    json!({ "characteristics": ["cf.colo.id", "ip.src"], "period": 60, "requestsPerPeriod": 20, "mitigationTimeout": 0,
                        "countingExpression": "http.response.code eq 401" }),
                    json!({ "characteristics": ["cf.colo.id", "ip.src"], "period": 60, "requests_per_period": 20, "mitigation_timeout": 0,
                        "counting_expression": "http.response.code eq 401" }),
                ),
            ],
        ],
        may: vec![],
    }
}

/// The last is in no Free zone's plan.
const MANAGED: [&str; 2] = ["77454fe2d30c4220b5701f6fdfb893ba", "efb7b8c949ac4650a09736fc376e9aee"];

pub(super) fn managed_ruleset() -> Form {
    let named = |spec: Value, id: &str| (spec, json!({ "action_parameters": { "id": id } }));
    Form {
        kind: "ManagedRuleset",
        plural: "managedrulesets",
        phase: Phase::HttpRequestFirewallManaged,
        base: json!({ "action": "execute" }),
        fixed: vec![
            named(json!({ "ruleset": "cloudflare-managed-free" }), MANAGED[0]),
            named(json!({ "ruleset": "cloudflare-managed" }), MANAGED[1]),
            named(json!({ "rulesetID": MANAGED[1] }), MANAGED[1]),
        ],
        must: vec![],
        may: vec![parameter(
            "overrides",
            "overrides",
            [
                same(json!({ "action": "log" })),
                same(json!({ "enabled": false })),
                same(json!({ "categories": [{ "category": "wordpress", "enabled": false }] })),
            ],
        )],
    }
}
