//! One rule of each kind, and what the tests of rules have in common.

use kflare_api::names;
use kflare_sim::Phase;
use kflare_testkit::{memory_api::ObjectId, simulation::NAMESPACE};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, Stage, ZONE, object};

pub const ENTRY_POINT: &str = "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint";
pub const RULES: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";

/// A rule of one kind and phase.
pub struct Sample {
    pub kind: &'static str,
    pub name: &'static str,
    pub phase: Phase,
    /// The spec, without its zone.
    pub spec: Value,
    /// A merge patch for the spec, and what it makes of the rule: a pointer and the value there.
    pub edit: (Value, &'static str, Value),
    /// What somebody else makes of the rule.
    pub drift: Value,
    /// A rule of somebody else's in the same phase.
    pub foreign: Value,
}

/// One of each; of transform rules one of each type.
#[allow(clippy::too_many_lines)] // a table
pub fn samples() -> Vec<Sample> {
    vec![
        Sample {
            kind: "WAFCustomRule",
            name: "waf",
            phase: Phase::HttpRequestFirewallCustom,
            spec: json!({ "expression": "ip.src eq 192.0.2.1", "action": "block", "description": "ours" }),
            edit: (
                json!({ "action": "managed_challenge" }),
                "/action",
                json!("managed_challenge"),
            ),
            drift: json!({ "enabled": false, "expression": "ip.src eq 192.0.2.66" }),
            foreign: json!({ "expression": "ip.src eq 198.51.100.1", "action": "block" }),
        },
        Sample {
            kind: "RateLimitRule",
            name: "limit",
            phase: Phase::HttpRatelimit,
            spec: json!({
                "expression": "http.request.uri.path eq \"/login\"", "action": "block",
                "ratelimit": {
                    "characteristics": ["ip.src", "cf.colo.id"], "period": 10, "requestsPerPeriod": 20,
                    "mitigationTimeout": 10,
                },
            }),
            edit: (
                json!({ "ratelimit": { "requestsPerPeriod": 30 } }),
                "/ratelimit/requests_per_period",
                json!(30),
            ),
            drift: json!({
                "ratelimit": {
                    "characteristics": ["cf.colo.id"], "period": 10, "requests_per_period": 1000,
                    "mitigation_timeout": 10,
                },
            }),
            foreign: json!({
                "expression": "http.request.uri.path eq \"/other\"", "action": "block",
                "ratelimit": {
                    "characteristics": ["cf.colo.id", "ip.src"], "period": 10, "requests_per_period": 5,
                    "mitigation_timeout": 10,
                },
            }),
        },
        Sample {
            kind: "ManagedRuleset",
            name: "managed",
            phase: Phase::HttpRequestFirewallManaged,
            spec: json!({ "ruleset": "cloudflare-managed", "overrides": { "action": "log" } }),
            edit: (
                json!({ "overrides": { "enabled": true } }),
                "/action_parameters/overrides/enabled",
                json!(true),
            ),
            drift: json!({ "action_parameters": { "id": "efb7b8c949ac4650a09736fc376e9aee" } }),
            foreign: json!({
                "expression": "true", "action": "execute",
                "action_parameters": { "id": "4814384a9e5d4991b9815dcfc25d2f1f" },
            }),
        },
        Sample {
            kind: "TransformRule",
            name: "rewrite",
            phase: Phase::HttpRequestTransform,
            spec: json!({
                "expression": "http.request.uri.path eq \"/a\"", "type": "urlRewrite",
                "uri": { "path": { "value": "/b" }, "query": { "value": "" } },
            }),
            edit: (
                json!({ "uri": { "path": { "value": "/c" } } }),
                "/action_parameters/uri/path/value",
                json!("/c"),
            ),
            // The query stays as it came then, which is not what the spec asks for.
            drift: json!({ "action_parameters": { "uri": { "path": { "value": "/b" } } } }),
            foreign: json!({
                "expression": "http.request.uri.path eq \"/x\"", "action": "rewrite",
                "action_parameters": { "uri": { "path": { "value": "/y" } } },
            }),
        },
        Sample {
            kind: "TransformRule",
            name: "request-headers",
            phase: Phase::HttpRequestLateTransform,
            spec: json!({
                "expression": "true", "type": "requestHeaders",
                "headers": { "X-A": { "operation": "set", "value": "a" }, "X-B": { "operation": "remove" } },
            }),
            edit: (
                json!({ "headers": { "X-B": null } }),
                "/action_parameters/headers",
                json!({ "X-A": { "operation": "set", "value": "a" } }),
            ),
            drift: json!({
                "action_parameters": {
                    "headers": {
                        "X-A": { "operation": "set", "value": "a" }, "X-B": { "operation": "remove" },
                        "X-C": { "operation": "remove" },
                    },
                },
            }),
            foreign: json!({
                "expression": "true", "action": "rewrite",
                "action_parameters": { "headers": { "X-Theirs": { "operation": "remove" } } },
            }),
        },
        Sample {
            kind: "TransformRule",
            name: "response-headers",
            phase: Phase::HttpResponseHeadersTransform,
            spec: json!({
                "expression": "true", "type": "responseHeaders",
                "headers": { "X-Ray": { "operation": "add", "expression": "cf.ray_id" } },
            }),
            edit: (
                json!({ "headers": { "X-Ray": { "operation": "set" } } }),
                "/action_parameters/headers/X-Ray/operation",
                json!("set"),
            ),
            drift: json!({ "description": "theirs" }),
            foreign: json!({
                "expression": "true", "action": "rewrite",
                "action_parameters": { "headers": { "X-Theirs": { "operation": "remove" } } },
            }),
        },
        Sample {
            kind: "RedirectRule",
            name: "redirect",
            phase: Phase::HttpRequestDynamicRedirect,
            spec: json!({
                "expression": "http.host eq \"example.com\"",
                "fromValue": { "targetURL": { "value": "https://www.example.com/" }, "statusCode": 301, "preserveQueryString": false },
            }),
            edit: (
                json!({ "fromValue": { "statusCode": 308 } }),
                "/action_parameters/from_value/status_code",
                json!(308),
            ),
            drift: json!({
                "action_parameters": {
                    "from_value": { "target_url": { "value": "https://evil.example/" }, "status_code": 301 },
                },
            }),
            foreign: json!({
                "expression": "http.host eq \"other.example.com\"", "action": "redirect",
                "action_parameters": { "from_value": { "target_url": { "value": "https://other.example/" }, "status_code": 302 } },
            }),
        },
        Sample {
            kind: "CacheRule",
            name: "cache",
            phase: Phase::HttpRequestCacheSettings,
            spec: json!({
                "expression": "true", "cache": true, "respectStrongETags": false,
                "edgeTTL": { "mode": "override_origin", "default": 60 },
                "cacheKey": { "customKey": { "queryString": { "exclude": { "all": true } } } },
            }),
            edit: (
                json!({ "edgeTTL": { "default": 3600 } }),
                "/action_parameters/edge_ttl/default",
                json!(3600),
            ),
            drift: json!({
                "action_parameters": {
                    "cache": true, "respect_strong_etags": false,
                    "edge_ttl": { "mode": "override_origin", "default": 60 }, "browser_ttl": { "mode": "bypass" },
                    "cache_key": { "custom_key": { "query_string": { "exclude": { "all": true } } } },
                },
            }),
            foreign: json!({
                "expression": "true", "action": "set_cache_settings", "action_parameters": { "cache": false },
            }),
        },
        Sample {
            kind: "ConfigurationRule",
            name: "configuration",
            phase: Phase::HttpConfigSettings,
            spec: json!({ "expression": "true", "settings": { "ssl": "full", "rocketLoader": false } }),
            edit: (
                json!({ "settings": { "rocketLoader": null, "fonts": false } }),
                "/action_parameters",
                json!({ "ssl": "full", "fonts": false }),
            ),
            // What is off in the spec is not what nobody speaks of.
            drift: json!({ "action_parameters": { "ssl": "full" } }),
            foreign: json!({
                "expression": "true", "action": "set_config", "action_parameters": { "bic": false },
            }),
        },
        Sample {
            kind: "OriginRule",
            name: "origin",
            phase: Phase::HttpRequestOrigin,
            spec: json!({ "expression": "true", "origin": { "port": 8443 } }),
            edit: (
                json!({ "origin": { "port": 2096 } }),
                "/action_parameters/origin/port",
                json!(2096),
            ),
            drift: json!({ "action_parameters": { "origin": { "port": 8443 }, "host_header": "theirs.example" } }),
            foreign: json!({
                "expression": "false", "action": "route", "action_parameters": { "origin": { "port": 8080 } },
            }),
        },
    ]
}

/// A manifest of a rule in the zone of the tests.
pub fn rule(kind: &str, name: &str, spec: &Value) -> Value {
    let mut whole = json!({ "zoneRef": { "name": ZONE }, "enabled": true });
    if kind == "ManagedRuleset" {
        whole["expression"] = json!("true");
    }
    for (field, value) in object(spec) {
        whole[field] = value.clone();
    }
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

/// A WAF custom rule that blocks an address.
pub fn block(name: &str, address: &str, priority: i32) -> Value {
    let spec = json!({ "expression": format!("ip.src eq {address}"), "action": "block", "priority": priority });
    rule("WAFCustomRule", name, &spec)
}

/// A WAF custom rule of somebody else's.
pub fn their_block(address: &str) -> Value {
    json!({ "expression": format!("ip.src eq {address}"), "action": "block", "description": "theirs" })
}

impl Sample {
    pub fn manifest(&self) -> Value {
        rule(self.kind, self.name, &self.spec)
    }
}

impl Stage {
    /// The rules of a phase, in order.
    pub fn rules(&self, phase: Phase) -> Vec<Value> {
        let entry_point = self.cloudflare.entry_point(DOMAIN, phase);
        let rules = entry_point.and_then(|it| it["rules"].as_array().cloned());
        rules.unwrap_or_default()
    }

    /// Their descriptions, in order: the tests give each rule one.
    pub fn rule_ids(&self, phase: Phase) -> Vec<String> {
        let rules = self.rules(phase);
        rules.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    }

    /// A rule that somebody else makes; its id.
    pub fn foreign_rule(&self, phase: Phase, body: &Value) -> String {
        let before = self.rule_ids(phase);
        self.cloudflare.foreign_add_rule(DOMAIN, phase, object(body)).unwrap();
        let after = self.rule_ids(phase);
        after.into_iter().find(|id| !before.contains(id)).unwrap()
    }

    /// Somebody else's change of a rule, or of its place.
    pub fn foreign_rule_patch(&self, phase: Phase, id: &str, body: &Value) {
        self.cloudflare
            .foreign_patch_rule(DOMAIN, phase, id, object(body))
            .unwrap();
    }

    /// The id of the rule that a resource has recorded.
    pub fn rule_id(&self, id: &ObjectId) -> Option<String> {
        self.status(id)["cloudflareMetadata"]["ruleID"]
            .as_str()
            .map(str::to_owned)
    }

    /// The rule of a resource, as Cloudflare has it.
    #[track_caller]
    pub fn rule_of(&self, phase: Phase, id: &ObjectId) -> Value {
        let rule_id = self.rule_id(id).unwrap_or_default();
        let found = self.rules(phase).into_iter().find(|it| it["id"] == rule_id.as_str());
        found.unwrap_or_else(|| panic!("{id} has no rule; {}", self.explain(id)))
    }
}

/// A rule without what Cloudflare counts.
pub fn without_versions(mut rule: Value) -> Value {
    for field in ["version", "last_updated"] {
        rule.as_object_mut().unwrap().remove(field);
    }
    rule
}
