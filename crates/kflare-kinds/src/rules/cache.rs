//! `CacheRule`.

use kflare_api::rules::{
    RuleBase,
    cache::{CacheKey, CacheRuleSpec, CustomKey, EdgeTTL, Parameters, Vary},
};
use serde_json::{Map, Value, json};

use super::{Action, RuleKind};

/// The kind.
pub struct Cache;

impl RuleKind for Cache {
    type Spec = CacheRuleSpec;
    const KIND: &'static str = "CacheRule";
    const PLURAL: &'static str = "cacherules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_request_cache_settings"
    }

    fn action(spec: &Self::Spec) -> Action {
        let browser = spec.browser_ttl.as_ref();
        let reserve = spec.cache_reserve.as_ref();
        let parameters = json!({
            "cache": spec.cache,
            "edge_ttl": spec.edge_ttl.as_ref().map(edge_ttl),
            "browser_ttl": browser.map(|ttl| json!({ "mode": ttl.mode, "default": ttl.default })),
            "cache_key": spec.cache_key.as_ref().map(cache_key),
            "vary": spec.vary.as_ref().map(vary),
            "serve_stale": spec.serve_stale.map(|stale| {
                json!({ "disable_stale_while_updating": stale.disable_stale_while_updating })
            }),
            "respect_strong_etags": spec.respect_strong_etags,
            "origin_error_page_passthru": spec.origin_error_page_passthru,
            "origin_cache_control": spec.origin_cache_control,
            "additional_cacheable_ports": spec.additional_cacheable_ports,
            "cache_reserve": reserve.map(|reserve| {
                json!({ "eligible": reserve.eligible, "minimum_file_size": reserve.minimum_file_size })
            }),
        });
        Action::new("set_cache_settings", parameters)
    }
}

fn edge_ttl(ttl: &EdgeTTL) -> Value {
    let by_status: Vec<Value> = ttl
        .status_code_ttl
        .iter()
        .map(|it| {
            let range = it.status_code_range.as_ref();
            json!({
                "status_code": it.status_code,
                "status_code_range": range.map(|range| json!({ "from": range.from, "to": range.to })),
                "value": it.value,
            })
        })
        .collect();
    json!({ "mode": ttl.mode, "default": ttl.default, "status_code_ttl": by_status })
}

fn cache_key(key: &CacheKey) -> Value {
    json!({
        "cache_by_device_type": key.cache_by_device_type,
        "cache_deception_armor": key.cache_deception_armor,
        "ignore_query_strings_order": key.ignore_query_strings_order,
        "custom_key": key.custom_key.as_ref().map(custom_key),
    })
}

fn custom_key(key: &CustomKey) -> Value {
    let query = key.query_string.as_ref();
    let header = key.header.as_ref();
    let cookie = key.cookie.as_ref();
    json!({
        "query_string": query.map(|query| json!({
            "include": query.include.as_ref().map(parameters),
            "exclude": query.exclude.as_ref().map(parameters),
        })),
        "header": header.map(|header| json!({
            "include": header.include,
            "check_presence": header.check_presence,
            "exclude_origin": header.exclude_origin,
        })),
        "cookie": cookie.map(|cookie| json!({
            "include": cookie.include,
            "check_presence": cookie.check_presence,
        })),
        "user": key.user.as_ref().map(|user| json!({
            "device_type": user.device_type,
            "geo": user.geo,
            "lang": user.lang,
        })),
        "host": key.host.as_ref().map(|host| json!({ "resolved": host.resolved })),
    })
}

fn parameters(parameters: &Parameters) -> Value {
    json!({ "all": parameters.all, "list": parameters.list })
}

fn vary(vary: &Vary) -> Value {
    let headers: Map<String, Value> = vary
        .headers
        .iter()
        .map(|(name, header)| {
            let header = json!({
                "action": header.action,
                "languages": header.languages,
                "media_types": header.media_types,
            });
            (name.clone(), header)
        })
        .collect();
    let default = vary.default.as_ref();
    json!({
        "default": default.map(|default| json!({ "action": default.action })),
        "headers": headers,
    })
}
