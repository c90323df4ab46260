//! What the rules of stories say: in the words of specs, and in those of Cloudflare. Written against Cloudflare's documentation, not
//! with the code under test.

use kflare_sim::Phase;
use serde_json::{Value, json};

/// The ways in which a part of a spec is written: the fields of the spec, and what they mean in the body of a rule.
pub type Part = Vec<(Value, Value)>;

/// A kind of rule in one phase.
pub struct Form {
    /// The kind of its resources.
    pub kind: &'static str,
    /// The phase.
    pub phase: Phase,
    /// The plural of the kind.
    pub plural: &'static str,
    /// What every rule of the form is.
    pub base: Value,
    /// A part that is chosen once and for all.
    pub fixed: Part,
    /// Parts that every spec has.
    pub must: Vec<Part>,
    /// Parts that a spec may lack.
    pub may: Vec<Part>,
}

impl Form {
    /// Every part.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.fixed).chain(&self.must).chain(&self.may)
    }

    /// A change of a spec, as a merge patch, to one of the ways in which a part is written: what other ways have is taken out.
    pub fn patch(part: &Part, way: usize) -> Value {
        let mut patch = part[way % part.len()].0.clone();
        for (other, _) in part {
            take_out(&mut patch, other);
        }
        patch
    }

    /// The body of the rule that a spec asks for, without its mark.
    pub fn body(&self, spec: &Value) -> Value {
        let mut body = self.base.clone();
        for part in self.parts() {
            let said = part
                .iter()
                .position(|(way, _)| (0..part.len()).all(|other| agrees(spec, way, &part[other].0)));
            if let Some(said) = said {
                json_patch::merge(&mut body, &part[said].1);
            }
        }
        body["expression"] = json!(spec["expression"].as_str().unwrap_or("true").trim());
        body["description"] = json!(spec["description"].as_str().unwrap_or_default());
        body["enabled"] = json!(spec["enabled"].as_bool().unwrap_or(true));
        body
    }
}

/// `null` for every field of `other` that `patch` lacks.
fn take_out(patch: &mut Value, other: &Value) {
    let (Some(fields), Some(others)) = (patch.as_object_mut(), other.as_object()) else {
        return;
    };
    for (name, value) in others {
        match fields.get_mut(name) {
            None => drop(fields.insert(name.clone(), Value::Null)),
            Some(mine) => take_out(mine, value),
        }
    }
}

/// Whether a spec has the fields of `way`, and of those that `other` has no more than these.
fn agrees(spec: &Value, way: &Value, other: &Value) -> bool {
    let mut patch = way.clone();
    take_out(&mut patch, other);
    let mut changed = spec.clone();
    json_patch::merge(&mut changed, &patch);
    changed == *spec
}

/// Expressions. The third is for Business zones, the fourth is none.
pub const EXPRESSIONS: [&str; 4] = [
    "ip.src eq 192.0.2.1",
    " http.host eq \"a.alpha.example\" \n",
    "http.request.uri.path matches \"^/api\"",
    "ip.src eq",
];

fn same(fields: Value) -> (Value, Value) {
    (fields.clone(), fields)
}

/// A part that is one field of the action's parameters.
fn parameter(field: &str, name: &str, ways: impl IntoIterator<Item = (Value, Value)>) -> Part {
    let ways = ways.into_iter();
    ways.map(|(spec, wire)| (json!({ field: spec }), json!({ "action_parameters": { name: wire } })))
        .collect()
}

fn nothing() -> Part {
    vec![(json!({}), json!({}))]
}

/// Every form.
pub fn forms() -> Vec<Form> {
    vec![
        waf_custom(),
        rate_limit(),
        managed_ruleset(),
        url_rewrite(),
        headers("requestHeaders", Phase::HttpRequestLateTransform, "remove"),
        headers("responseHeaders", Phase::HttpResponseHeadersTransform, "add"),
        redirect(),
        cache(),
        configuration(),
        origin(),
    ]
}

/// The form of the rule that a resource asks for; none if the resource is no rule.
pub fn form_of(resource: &Value) -> Option<Form> {
    let kind = resource["kind"].as_str()?;
    let is_it = |form: &Form| {
        let transform = &form.fixed[0].0["type"];
        form.kind == kind && (transform.is_null() || *transform == resource["spec"]["type"])
    };
    forms().into_iter().find(is_it)
}

fn waf_custom() -> Form {
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

fn rate_limit() -> Form {
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

fn managed_ruleset() -> Form {
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

fn url_rewrite() -> Form {
    let (path, query) = (
        json!({ "value": "/b" }),
        json!({ "expression": "http.request.uri.query" }),
    );
    Form {
        kind: "TransformRule",
        plural: "transformrules",
        phase: Phase::HttpRequestTransform,
        base: json!({ "action": "rewrite" }),
        fixed: vec![(json!({ "type": "urlRewrite" }), json!({}))],
        must: vec![parameter(
            "uri",
            "uri",
            [
                same(json!({ "path": path })),
                same(json!({ "path": path, "query": query })),
                same(json!({ "query": { "value": "" } })),
            ],
        )],
        may: vec![],
    }
}

fn headers(kind: &'static str, phase: Phase, third: &str) -> Form {
    let third = match third {
        "remove" => json!({ "operation": "remove" }),
        other => json!({ "operation": other, "expression": "cf.ray_id" }),
    };
    Form {
        kind: "TransformRule",
        plural: "transformrules",
        phase,
        base: json!({ "action": "rewrite" }),
        fixed: vec![(json!({ "type": kind }), json!({}))],
        must: vec![parameter(
            "headers",
            "headers",
            [
                same(json!({ "X-A": { "operation": "set", "value": "a" } })),
                same(json!({ "X-B": { "operation": "remove" } })),
                same(json!({ "X-A": { "operation": "set", "value": "b" }, "X-C": third })),
            ],
        )],
        may: vec![],
    }
}

fn redirect() -> Form {
    let to = |address: Value, status: u64, keep: bool| {
        (
            json!({ "targetURL": address, "statusCode": status, "preserveQueryString": keep }),
            json!({ "target_url": address, "status_code": status, "preserve_query_string": keep }),
        )
    };
    let address = json!({ "value": "https://www.alpha.example/" });
    Form {
        kind: "RedirectRule",
        plural: "redirectrules",
        phase: Phase::HttpRequestDynamicRedirect,
        base: json!({ "action": "redirect" }),
        fixed: nothing(),
        must: vec![parameter(
            "fromValue",
            "from_value",
            [
                to(address.clone(), 301, false),
                to(address, 308, true),
                to(json!({ "expression": "concat(\"https://\", http.host)" }), 302, false),
            ],
        )],
        may: vec![],
    }
}

fn cache() -> Form {
    let by_name = |name: &str| json!({ "customKey": { "header": { "include": [name] } } });
    let on_the_wire = |name: &str| json!({ "custom_key": { "header": { "include": [name] } } });
    let flag = |field: &str, name: &str| parameter(field, name, [same(json!(true)), same(json!(false))]);
    Form {
        kind: "CacheRule",
        plural: "cacherules",
        phase: Phase::HttpRequestCacheSettings,
        base: json!({ "action": "set_cache_settings" }),
        fixed: nothing(),
        must: vec![flag("cache", "cache")],
        may: vec![
            parameter(
                "edgeTTL",
                "edge_ttl",
                [
                    same(json!({ "mode": "respect_origin" })),
                    same(json!({ "mode": "override_origin", "default": 60 })),
                    (
                        json!({ "mode": "override_origin", "default": 60, "statusCodeTTL": [{ "statusCode": 404, "value": 5 }] }),
                        json!({ "mode": "override_origin", "default": 60, "status_code_ttl": [{ "status_code": 404, "value": 5 }] }),
                    ),
                ],
            ),
            parameter(
                "browserTTL",
                "browser_ttl",
                [
                    same(json!({ "mode": "bypass" })),
                    same(json!({ "mode": "override_origin", "default": 60 })),
                ],
            ),
            parameter(
                "cacheKey",
                "cache_key",
                [
                    (
                        json!({ "cacheByDeviceType": true }),
                        json!({ "cache_by_device_type": true }),
                    ),
                    (by_name("x-a"), on_the_wire("x-a")),
                    (
                        json!({ "customKey": { "queryString": { "exclude": { "all": true } } } }),
                        json!({ "custom_key": { "query_string": { "exclude": { "all": true } } } }),
                    ),
                ],
            ),
            parameter(
                "vary",
                "vary",
                [
                    same(json!({ "default": { "action": "bypass" } })),
                    same(json!({ "headers": { "x-a": { "action": "bypass" } } })),
                ],
            ),
            parameter(
                "serveStale",
                "serve_stale",
                [true, false].map(|it| {
                    (
                        json!({ "disableStaleWhileUpdating": it }),
                        json!({ "disable_stale_while_updating": it }),
                    )
                }),
            ),
            flag("respectStrongETags", "respect_strong_etags"),
            flag("originErrorPagePassthru", "origin_error_page_passthru"),
            flag("originCacheControl", "origin_cache_control"),
            parameter(
                "additionalCacheablePorts",
                "additional_cacheable_ports",
                [(json!([8443, 8080]), json!([8080, 8443])), same(json!([8443]))],
            ),
            parameter(
                "cacheReserve",
                "cache_reserve",
                [
                    same(json!({ "eligible": false })),
                    (
                        json!({ "eligible": true, "minimumFileSize": 9 }),
                        json!({ "eligible": true, "minimum_file_size": 9 }),
                    ),
                ],
            ),
        ],
    }
}

fn configuration() -> Form {
    Form {
        kind: "ConfigurationRule",
        plural: "configurationrules",
        phase: Phase::HttpConfigSettings,
        base: json!({ "action": "set_config" }),
        fixed: nothing(),
        must: vec![vec![
            (
                json!({ "settings": { "ssl": "full", "rocketLoader": false } }),
                json!({ "action_parameters": { "ssl": "full", "rocket_loader": false } }),
            ),
            (
                json!({ "settings": {
                    "securityLevel": "under_attack", "polish": "off", "browserIntegrityCheck": true, "automaticHTTPSRewrites": false,
                    "emailObfuscation": true, "fonts": false, "hotlinkProtection": true, "opportunisticEncryption": false } }),
                json!({ "action_parameters": {
                    "security_level": "under_attack", "polish": "off", "bic": true, "automatic_https_rewrites": false,
                    "email_obfuscation": true, "fonts": false, "hotlink_protection": true, "opportunistic_encryption": false } }),
            ),
            (
                json!({ "settings": { "disableRUM": true, "disableZaraz": true, "requestBodyBuffering": "full", "responseBodyBuffering": "none" } }),
                json!({ "action_parameters": {
                    "disable_rum": true, "disable_zaraz": true, "request_body_buffering": "full", "response_body_buffering": "none" } }),
            ),
            (
                json!({ "settings": { "polish": "lossless" } }),
                json!({ "action_parameters": { "polish": "lossless" } }),
            ),
        ]],
        may: vec![],
    }
}

fn origin() -> Form {
    Form {
        kind: "OriginRule",
        plural: "originrules",
        phase: Phase::HttpRequestOrigin,
        base: json!({ "action": "route" }),
        fixed: nothing(),
        must: vec![parameter(
            "origin",
            "origin",
            [
                same(json!({ "port": 8443 })),
                same(json!({ "port": 2096, "host": "b.alpha.example" })),
                same(json!({ "port": 2096 })),
            ],
        )],
        may: vec![
            parameter("hostHeader", "host_header", [same(json!("h.alpha.example"))]),
            parameter(
                "sni",
                "sni",
                [(json!("s.alpha.example"), json!({ "value": "s.alpha.example" }))],
            ),
        ],
    }
}
