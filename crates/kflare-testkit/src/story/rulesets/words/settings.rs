//! Rules that set what Cloudflare does with a request.

use kflare_sim::Phase;
use serde_json::json;

use super::{Form, nothing, parameter, same};

pub(super) fn cache() -> Form {
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

pub(super) fn configuration() -> Form {
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

pub(super) fn origin() -> Form {
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
