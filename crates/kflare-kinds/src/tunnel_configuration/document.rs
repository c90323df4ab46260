//! The document of a tunnel: rules in order, the last of which matches everything, and settings for all of them.

use kflare_api::tunnel_configuration::{Access, IngressRule, OriginRequest, TunnelConfigurationSpec};
use kflare_engine::{SpecError, policy::parse_duration};
use serde_json::{Map, Value, json};

use crate::json::present;

/// What answers where nothing else does.
const NOT_FOUND: &str = "http_status:404";

/// The settings of `originRequest` that a spec can name.
const SETTINGS: [&str; 15] = [
    "access",
    "caPool",
    "connectTimeout",
    "disableChunkedEncoding",
    "http2Origin",
    "httpHostHeader",
    "keepAliveConnections",
    "keepAliveTimeout",
    "matchSNItoHost",
    "noHappyEyeballs",
    "noTLSVerify",
    "originServerName",
    "proxyType",
    "tcpKeepAlive",
    "tlsTimeout",
];

/// The settings of `access`.
const ACCESS: [&str; 3] = ["audTag", "required", "teamName"];

/// What the spec asks for, in canonical form: the rules and the one for everything else; every setting, those not set as null,
/// so that one that was taken out of the spec is cleared; `warp-routing` only where the spec says something about it.
pub(super) fn wanted(spec: &TunnelConfigurationSpec) -> Result<Map<String, Value>, SpecError> {
    let mut rules = Vec::with_capacity(spec.ingress.len() + 1);
    for (index, rule) in spec.ingress.iter().enumerate() {
        rules.push(Value::Object(wanted_rule(rule, index)?));
    }
    rules.push(json!({ "service": spec.default_service }));
    let set = match &spec.origin_request {
        Some(request) => wanted_request(request, "spec.originRequest")?,
        None => Map::new(),
    };
    let mut all: Map<String, Value> = SETTINGS
        .into_iter()
        .map(|name| (name.to_owned(), set.get(name).cloned().unwrap_or_default()))
        .collect();
    if let Some(Value::Object(access)) = all.get_mut("access") {
        for name in ACCESS {
            access.entry(name).or_insert(Value::Null);
        }
    }
    let mut document = Map::new();
    document.insert("ingress".to_owned(), Value::Array(rules));
    document.insert("originRequest".to_owned(), Value::Object(all));
    if let Some(routing) = spec.warp_routing {
        document.insert("warp-routing".to_owned(), json!({ "enabled": routing.enabled }));
    }
    Ok(document)
}

fn wanted_rule(rule: &IngressRule, index: usize) -> Result<Map<String, Value>, SpecError> {
    let mut wanted = Map::new();
    wanted.insert("hostname".to_owned(), json!(rule.hostname));
    if let Some(path) = &rule.path {
        wanted.insert("path".to_owned(), json!(path));
    }
    wanted.insert("service".to_owned(), json!(rule.service));
    if let Some(request) = &rule.origin_request {
        let request = wanted_request(request, &format!("spec.ingress[{index}].originRequest"))?;
        if !request.is_empty() {
            wanted.insert("originRequest".to_owned(), Value::Object(request));
        }
    }
    Ok(wanted)
}

/// Only what is set: a default that is written out can change what a connector does.
fn wanted_request(request: &OriginRequest, path: &str) -> Result<Map<String, Value>, SpecError> {
    let seconds = |name: &str, text: &Option<String>| -> Result<Value, SpecError> {
        let Some(text) = text else { return Ok(Value::Null) };
        match parse_duration(text).filter(|duration| duration.subsec_nanos() == 0) {
            Some(duration) => Ok(json!(duration.as_secs())),
            None => Err(SpecError::new(
                format!("{path}.{name}"),
                format!("{text:?} is no duration in whole seconds, such as 30s or 1m30s"),
            )),
        }
    };
    let all = json!({
        "access": request.access.as_ref().map(wanted_access),
        "caPool": request.ca_pool,
        "connectTimeout": seconds("connectTimeout", &request.connect_timeout)?,
        "disableChunkedEncoding": request.disable_chunked_encoding,
        "http2Origin": request.http2_origin,
        "httpHostHeader": request.http_host_header,
        "keepAliveConnections": request.keep_alive_connections,
        "keepAliveTimeout": seconds("keepAliveTimeout", &request.keep_alive_timeout)?,
        "matchSNItoHost": request.match_sni_to_host,
        "noHappyEyeballs": request.no_happy_eyeballs,
        "noTLSVerify": request.no_tls_verify,
        "originServerName": request.origin_server_name,
        "proxyType": request.proxy_type,
        "tcpKeepAlive": seconds("tcpKeepAlive", &request.tcp_keep_alive)?,
        "tlsTimeout": seconds("tlsTimeout", &request.tls_timeout)?,
    });
    Ok(present(all))
}

fn wanted_access(access: &Access) -> Value {
    let mut wanted = present(json!({ "required": access.required, "teamName": access.team_name }));
    if !access.aud_tag.is_empty() {
        wanted.insert("audTag".to_owned(), json!(access.aud_tag));
    }
    Value::Object(wanted)
}

/// A document of Cloudflare's in the form of [`wanted`]: what a spec cannot name is left out, and so is what says nothing.
pub(super) fn canonical(config: &Map<String, Value>) -> Map<String, Value> {
    let rules = config.get("ingress").and_then(Value::as_array);
    let rules: Vec<Value> = rules.into_iter().flatten().map(canonical_rule).collect();
    let mut document = Map::new();
    document.insert("ingress".to_owned(), Value::Array(rules));
    document.insert(
        "originRequest".to_owned(),
        Value::Object(canonical_request(config.get("originRequest"))),
    );
    if let Some(routing) = config.get("warp-routing").filter(|routing| routing.is_object()) {
        document.insert("warp-routing".to_owned(), routing.clone());
    }
    document
}

fn canonical_rule(rule: &Value) -> Value {
    let mut canonical = Map::new();
    for name in ["hostname", "path", "service"] {
        let text = rule.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(text) = text {
            canonical.insert(name.to_owned(), json!(text));
        }
    }
    let request = canonical_request(rule.get("originRequest"));
    if !request.is_empty() {
        canonical.insert("originRequest".to_owned(), Value::Object(request));
    }
    Value::Object(canonical)
}

fn canonical_request(request: Option<&Value>) -> Map<String, Value> {
    let mut canonical = Map::new();
    for name in SETTINGS {
        let value = request.and_then(|request| request.get(name));
        match value {
            None | Some(Value::Null) => {}
            Some(access @ Value::Object(_)) => {
                let mut access = present(access.clone());
                if access.get("audTag").is_some_and(|tags| *tags == json!([])) {
                    access.remove("audTag");
                }
                canonical.insert(name.to_owned(), Value::Object(access));
            }
            // A JSON number may come back as 30.0.
            Some(Value::Number(number)) => {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "whole numbers of seconds and connections"
                )]
                let whole = number.as_f64().filter(|it| it.fract() == 0.0).map(|it| it as i64);
                canonical.insert(
                    name.to_owned(),
                    whole.map_or_else(|| json!(number), |whole| json!(whole)),
                );
            }
            Some(value) => {
                canonical.insert(name.to_owned(), value.clone());
            }
        }
    }
    canonical
}

/// What to send: the rules and settings of `wanted`, and beside them what stands in the document that a spec cannot name, or
/// does not.
pub(super) fn written(mut standing: Map<String, Value>, wanted: &Map<String, Value>) -> Map<String, Value> {
    let mut request = match standing.remove("originRequest") {
        Some(Value::Object(request)) => request,
        _ => Map::new(),
    };
    request.retain(|name, _| !SETTINGS.contains(&name.as_str()));
    let mut set = present(wanted.get("originRequest").cloned().unwrap_or_default());
    if let Some(access) = set.remove("access") {
        set.insert("access".to_owned(), Value::Object(present(access)));
    }
    request.extend(set);
    if !request.is_empty() {
        standing.insert("originRequest".to_owned(), Value::Object(request));
    }
    for name in ["ingress", "warp-routing"] {
        if let Some(value) = wanted.get(name) {
            standing.insert(name.to_owned(), value.clone());
        }
    }
    standing
}

/// The document that serves nothing.
pub(super) fn bare() -> Map<String, Value> {
    present(json!({ "ingress": [{ "service": NOT_FOUND }] }))
}

/// Whether a document, in canonical form, serves nothing and sets nothing.
pub(super) fn is_bare(canonical: &Map<String, Value>) -> bool {
    let serves_nothing = canonical.get("ingress") == bare().get("ingress");
    let sets_nothing = canonical
        .get("originRequest")
        .and_then(Value::as_object)
        .is_none_or(Map::is_empty);
    let routes = canonical.get("warp-routing").is_some_and(|it| it["enabled"] == true);
    serves_nothing && sets_nothing && !routes
}
