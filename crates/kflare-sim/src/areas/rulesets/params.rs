//! The parameters of actions: their shapes, what goes together, and what Cloudflare adds to them.

use serde_json::{Map, Value, json};

use super::error;
use super::managed::Managed;
use super::phase::{Phase, is_known};
use super::shape::{Field, Shape, optional, required};
use crate::envelope::Refusal;

type Parameters = Map<String, Value>;

/// Whether an action has parameters.
pub(super) enum Takes {
    /// It must have them.
    Required(&'static [Field]),
    /// It may have them.
    Optional(&'static [Field]),
    /// It has none.
    Nothing,
}

/// The parameters of an action in a phase. From Cloudflare's SDK for TypeScript 7.3.0; ranges from its documentation.
pub(super) fn of(action: &str, phase: Phase) -> Takes {
    match (action, phase) {
        ("block", _) => Takes::Optional(&BLOCK),
        ("skip", _) => Takes::Required(&SKIP),
        ("execute", _) => Takes::Required(&EXECUTE),
        ("rewrite", Phase::HttpRequestTransform) => Takes::Required(&REWRITE_URI),
        ("rewrite", Phase::HttpRequestLateTransform) => Takes::Required(&REWRITE_REQUEST_HEADERS),
        ("rewrite", _) => Takes::Required(&REWRITE_RESPONSE_HEADERS),
        ("redirect", _) => Takes::Required(&REDIRECT),
        ("set_cache_settings", _) => Takes::Required(&CACHE),
        ("set_config", _) => Takes::Required(&CONFIG),
        ("route", _) => Takes::Required(&ROUTE),
        _ => Takes::Nothing,
    }
}

const ANY_TEXT: Shape = Shape::Text(1, 65_536);
const TEXTS: Shape = Shape::List(1, &ANY_TEXT);
const ID: Shape = Shape::Text(32, 32);
const IDS: Shape = Shape::List(1, &ID);
const SECONDS: Shape = Shape::Int(0, i64::MAX);

static BLOCK: [Field; 1] = [optional(
    "response",
    Shape::Object(&[
        required("status_code", Shape::Int(400, 499)),
        required("content", ANY_TEXT),
        required("content_type", ANY_TEXT),
    ]),
)];

static SKIP: [Field; 6] = [
    optional("ruleset", Shape::Word(&["current"])),
    optional("phase", Shape::Word(&["current"])),
    optional("phases", TEXTS),
    optional(
        "products",
        Shape::List(
            1,
            &Shape::Word(&[
                "zoneLockdown",
                "uaBlock",
                "bic",
                "hot",
                "securityLevel",
                "rateLimit",
                "waf",
            ]),
        ),
    ),
    optional("rulesets", IDS),
    optional("rules", Shape::Map(&IDS)),
];

const SENSITIVITY: Shape = Shape::Word(&["default", "medium", "low", "eoff"]);
const OVERRIDE_ACTION: Shape = Shape::Word(&[
    "block",
    "challenge",
    "js_challenge",
    "managed_challenge",
    "log",
    "score",
    "ddos_dynamic",
]);

static EXECUTE: [Field; 4] = [
    required("id", ID),
    optional("version", Shape::Word(&["latest"])),
    optional("matched_data", Shape::Object(&[required("public_key", ANY_TEXT)])),
    optional(
        "overrides",
        Shape::Object(&[
            optional("action", OVERRIDE_ACTION),
            optional("enabled", Shape::Bool),
            optional("sensitivity_level", SENSITIVITY),
            optional(
                "categories",
                Shape::List(
                    1,
                    &Shape::Object(&[
                        required("category", ANY_TEXT),
                        optional("action", OVERRIDE_ACTION),
                        optional("enabled", Shape::Bool),
                        optional("sensitivity_level", SENSITIVITY),
                    ]),
                ),
            ),
            optional(
                "rules",
                Shape::List(
                    1,
                    &Shape::Object(&[
                        required("id", ID),
                        optional("action", OVERRIDE_ACTION),
                        optional("enabled", Shape::Bool),
                        optional("score_threshold", Shape::Int(0, i64::MAX)),
                        optional("sensitivity_level", SENSITIVITY),
                    ]),
                ),
            ),
        ]),
    ),
];

/// A value or an expression. Only a query may be rewritten to nothing.
const PATH: Shape = Shape::Object(&[optional("value", ANY_TEXT), optional("expression", Shape::Expression)]);
const QUERY: Shape = Shape::Object(&[
    optional("value", Shape::Text(0, 65_536)),
    optional("expression", Shape::Expression),
]);

static REWRITE_URI: [Field; 1] = [required(
    "uri",
    Shape::Object(&[
        optional("path", PATH),
        optional("query", QUERY),
        optional("origin", Shape::Bool),
    ]),
)];

/// Request headers are set or removed.
static REWRITE_REQUEST_HEADERS: [Field; 1] = [required(
    "headers",
    Shape::Map(&Shape::Object(&[
        required("operation", Shape::Word(&["set", "remove"])),
        optional("value", ANY_TEXT),
        optional("expression", Shape::Expression),
    ])),
)];

static REWRITE_RESPONSE_HEADERS: [Field; 1] = [required(
    "headers",
    Shape::Map(&Shape::Object(&[
        required("operation", Shape::Word(&["set", "add", "remove"])),
        optional("value", ANY_TEXT),
        optional("expression", Shape::Expression),
    ])),
)];

static REDIRECT: [Field; 1] = [required(
    "from_value",
    Shape::Object(&[
        required(
            "target_url",
            Shape::Object(&[optional("value", ANY_TEXT), optional("expression", Shape::Expression)]),
        ),
        optional("status_code", Shape::OneOf(&[301, 302, 303, 307, 308])),
        optional("preserve_query_string", Shape::Bool),
    ]),
)];

const QUERY_STRINGS: Shape = Shape::Object(&[optional("list", TEXTS), optional("all", Shape::True)]);
const VARY: &[&str] = &["bypass", "passthrough", "normalize"];

static CACHE: [Field; 17] = [
    optional("cache", Shape::Bool),
    optional(
        "edge_ttl",
        Shape::Object(&[
            required(
                "mode",
                Shape::Word(&["respect_origin", "bypass_by_default", "override_origin"]),
            ),
            optional("default", SECONDS),
            optional(
                "status_code_ttl",
                Shape::List(
                    1,
                    &Shape::Object(&[
                        required("value", Shape::Int(-1, i64::MAX)),
                        optional("status_code", Shape::Int(100, 999)),
                        optional(
                            "status_code_range",
                            Shape::Object(&[
                                optional("from", Shape::Int(100, 999)),
                                optional("to", Shape::Int(100, 999)),
                            ]),
                        ),
                    ]),
                ),
            ),
        ]),
    ),
    optional(
        "browser_ttl",
        Shape::Object(&[
            required(
                "mode",
                Shape::Word(&["bypass", "respect_origin", "bypass_by_default", "override_origin"]),
            ),
            optional("default", SECONDS),
        ]),
    ),
    optional(
        "cache_key",
        Shape::Object(&[
            optional("cache_by_device_type", Shape::Bool),
            optional("cache_deception_armor", Shape::Bool),
            optional("ignore_query_strings_order", Shape::Bool),
            optional(
                "custom_key",
                Shape::Object(&[
                    optional(
                        "cookie",
                        Shape::Object(&[optional("check_presence", TEXTS), optional("include", TEXTS)]),
                    ),
                    optional(
                        "header",
                        Shape::Object(&[
                            optional("check_presence", TEXTS),
                            optional("contains", Shape::Map(&TEXTS)),
                            optional("exclude_origin", Shape::Bool),
                            optional("include", TEXTS),
                        ]),
                    ),
                    optional("host", Shape::Object(&[optional("resolved", Shape::Bool)])),
                    optional(
                        "query_string",
                        Shape::Object(&[optional("include", QUERY_STRINGS), optional("exclude", QUERY_STRINGS)]),
                    ),
                    optional(
                        "user",
                        Shape::Object(&[
                            optional("device_type", Shape::Bool),
                            optional("geo", Shape::Bool),
                            optional("lang", Shape::Bool),
                        ]),
                    ),
                ]),
            ),
        ]),
    ),
    optional(
        "serve_stale",
        Shape::Object(&[optional("disable_stale_while_updating", Shape::Bool)]),
    ),
    optional("read_timeout", Shape::Int(100, 6000)),
    optional("respect_strong_etags", Shape::Bool),
    optional("origin_error_page_passthru", Shape::Bool),
    optional("origin_cache_control", Shape::Bool),
    optional("additional_cacheable_ports", Shape::List(1, &Shape::Int(1, 65_535))),
    optional(
        "cache_reserve",
        Shape::Object(&[
            required("eligible", Shape::Bool),
            optional("minimum_file_size", Shape::Int(0, i64::MAX)),
        ]),
    ),
    optional(
        "vary",
        Shape::Object(&[
            optional("default", Shape::Object(&[required("action", Shape::Word(VARY))])),
            optional(
                "headers",
                Shape::Map(&Shape::Object(&[
                    required("action", Shape::Word(VARY)),
                    optional("languages", TEXTS),
                    optional("media_types", TEXTS),
                ])),
            ),
        ]),
    ),
    optional("strip_etags", Shape::Bool),
    optional("strip_last_modified", Shape::Bool),
    optional("strip_set_cookie", Shape::Bool),
    optional(
        "origin_range_requests",
        Shape::Object(&[required("mode", Shape::Word(&["on", "off", "default"]))]),
    ),
    optional(
        "shared_dictionary",
        Shape::Object(&[required("match_pattern", ANY_TEXT)]),
    ),
];

static CONFIG: [Field; 24] = [
    optional("automatic_https_rewrites", Shape::Bool),
    optional(
        "autominify",
        Shape::Object(&[
            optional("css", Shape::Bool),
            optional("html", Shape::Bool),
            optional("js", Shape::Bool),
        ]),
    ),
    optional("bic", Shape::Bool),
    optional("content_converter", Shape::Bool),
    optional("disable_apps", Shape::True),
    optional("disable_pay_per_crawl", Shape::True),
    optional("disable_rum", Shape::True),
    optional("disable_zaraz", Shape::True),
    optional("email_obfuscation", Shape::Bool),
    optional("fonts", Shape::Bool),
    optional("hotlink_protection", Shape::Bool),
    optional("mirage", Shape::Bool),
    optional("opportunistic_encryption", Shape::Bool),
    optional("polish", Shape::Word(&["off", "lossless", "lossy", "webp"])),
    optional("redirects_for_ai_training", Shape::Bool),
    optional("request_body_buffering", Shape::Word(&["none", "standard", "full"])),
    optional("response_body_buffering", Shape::Word(&["none", "standard"])),
    optional("rocket_loader", Shape::Bool),
    optional(
        "security_level",
        Shape::Word(&["off", "essentially_off", "low", "medium", "high", "under_attack"]),
    ),
    optional("server_side_excludes", Shape::Bool),
    optional(
        "ssl",
        Shape::Word(&["off", "flexible", "full", "strict", "origin_pull"]),
    ),
    optional("sxg", Shape::Bool),
    optional("webmcp_enabled", Shape::Bool),
    optional("webmcp_packs", TEXTS),
];

static ROUTE: [Field; 3] = [
    optional("host_header", ANY_TEXT),
    optional(
        "origin",
        Shape::Object(&[optional("host", ANY_TEXT), optional("port", Shape::Int(1, 65_535))]),
    ),
    optional("sni", Shape::Object(&[required("value", ANY_TEXT)])),
];

/// What the shapes cannot say: which parts exclude or demand each other.
pub(super) fn check_parts(action: &str, parameters: &Parameters, pointer: &str) -> Result<(), Refusal> {
    let object = |path: &[&str]| {
        path.iter()
            .try_fold(parameters, |object, key| object.get(*key)?.as_object())
    };
    let either = |part: Option<&Parameters>, path: &str| match part {
        Some(part) if part.contains_key("value") == part.contains_key("expression") => Err(error::wrong(
            "exactly one of value and expression is required",
            &format!("{pointer}/{path}"),
        )),
        _ => Ok(()),
    };
    match action {
        "rewrite" => {
            either(object(&["uri", "path"]), "uri/path")?;
            either(object(&["uri", "query"]), "uri/query")?;
            if let Some(uri) = object(&["uri"])
                && !uri.contains_key("path")
                && !uri.contains_key("query")
            {
                return Err(error::wrong("path or query is required", &format!("{pointer}/uri")));
            }
            let headers = object(&["headers"]).into_iter().flatten();
            for (name, header) in headers.filter_map(|(name, header)| Some((name, header.as_object()?))) {
                let path = format!("headers/{name}");
                if header.get("operation") != Some(&json!("remove")) {
                    either(Some(header), &path)?;
                } else if header.len() > 1 {
                    let text = "a header that is removed has neither value nor expression";
                    return Err(error::wrong(text, &format!("{pointer}/{path}")));
                }
            }
            Ok(())
        }
        "redirect" => either(object(&["from_value", "target_url"]), "from_value/target_url"),
        "set_cache_settings" => check_cache(parameters, pointer),
        "skip" => check_skip(parameters, pointer),
        _ => Ok(()),
    }
}

/// A time to live goes with the mode that overrides the origin, and only with it (Cloudflare documents).
fn check_cache(parameters: &Parameters, pointer: &str) -> Result<(), Refusal> {
    for name in ["edge_ttl", "browser_ttl"] {
        let Some(ttl) = parameters.get(name).and_then(Value::as_object) else {
            continue;
        };
        let overrides = ttl.get("mode") == Some(&json!("override_origin"));
        if overrides != ttl.contains_key("default") {
            let text = "default is required with the mode override_origin, and not allowed with any other";
            return Err(error::wrong(text, &format!("{pointer}/{name}/default")));
        }
        let codes = ttl
            .get("status_code_ttl")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for (index, code) in codes.enumerate() {
            if code.get("status_code").is_some() == code.get("status_code_range").is_some() {
                let pointer = format!("{pointer}/{name}/status_code_ttl/{index}");
                return Err(error::wrong(
                    "exactly one of status_code and status_code_range is required",
                    &pointer,
                ));
            }
        }
    }
    Ok(())
}

/// Phases that rules may skip (Cloudflare documents).
const SKIPPABLE: [&str; 3] = ["http_ratelimit", "http_request_sbfm", "http_request_firewall_managed"];

fn check_skip(parameters: &Parameters, pointer: &str) -> Result<(), Refusal> {
    let phases = parameters.get("phases").and_then(Value::as_array).into_iter().flatten();
    for (index, phase) in phases.enumerate() {
        let pointer = format!("{pointer}/phases/{index}");
        match phase.as_str() {
            Some(phase) if SKIPPABLE.contains(&phase) => {}
            Some(phase) if is_known(phase) => return Err(error::phase_not_skippable(phase, &pointer)),
            other => {
                return Err(error::invalid(
                    other.unwrap_or_default(),
                    "there is no such phase",
                    &pointer,
                ));
            }
        }
    }
    // Cloudflare's API description says so.
    let excludes = ["ruleset", "rulesets"]
        .into_iter()
        .find(|key| parameters.contains_key(*key));
    if let Some(key) = excludes
        && parameters.contains_key("phases")
    {
        return Err(error::wrong(
            format!("phases and {key} exclude each other"),
            &format!("{pointer}/phases"),
        ));
    }
    Ok(())
}

/// Adds what Cloudflare adds. The version of a managed ruleset and `preserve_query_string` were seen.
pub(super) fn fill(action: &str, parameters: &mut Parameters) {
    match action {
        "execute"
            if parameters
                .get("id")
                .and_then(Value::as_str)
                .is_some_and(|id| Managed::find(id).is_some()) =>
        {
            parameters.entry("version").or_insert_with(|| json!("latest"));
        }
        "redirect" => {
            if let Some(Value::Object(from)) = parameters.get_mut("from_value") {
                from.entry("preserve_query_string").or_insert_with(|| json!(false));
            }
        }
        _ => {}
    }
}
