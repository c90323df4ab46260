//! `CacheRule`: what Cloudflare keeps of responses, and for how long.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RuleBase, RuleStatus};
use crate::schema::{requires, tidy};

/// What the user wants of a cache rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "CacheRule",
    plural = "cacherules",
    shortname = "cfcache",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One cache rule of a zone: whether, where and for how long the responses to the requests that its expression matches are cached.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Cache", type_ = "boolean", json_path = ".spec.cache"),
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(name = "Expression", type_ = "string", json_path = ".spec.expression", priority = 1),
    printcolumn(name = "Rule ID", type_ = "string", json_path = ".status.cloudflareMetadata.ruleID"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = a_setting())]
pub struct CacheRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// Whether responses are cached: `true` makes them eligible, `false` goes past the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// How long Cloudflare keeps responses.
    #[serde(default, rename = "edgeTTL", skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = overriding_needs_a_time("spec.edgeTTL"),
        validation = one_status_each(),
        validation = ranges_go_up()
    )]
    pub edge_ttl: Option<EdgeTTL>,
    /// How long browsers keep responses.
    #[serde(default, rename = "browserTTL", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = overriding_needs_a_time("spec.browserTTL"))]
    pub browser_ttl: Option<BrowserTTL>,
    /// What tells responses apart in the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<CacheKey>,
    /// How the `Vary` header of responses tells them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Vary>,
    /// Whether old responses are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve_stale: Option<ServeStale>,
    /// Whether strong `ETag` headers are kept as the origin sent them.
    #[serde(default, rename = "respectStrongETags", skip_serializing_if = "Option::is_none")]
    pub respect_strong_etags: Option<bool>,
    /// Whether error pages of the origin are passed on instead of Cloudflare's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_error_page_passthru: Option<bool>,
    /// Whether `Cache-Control` headers of the origin are followed to the letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_cache_control: Option<bool>,
    /// Ports that are cached besides the usual ones (Enterprise plans), such as 8443.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(range(min = 1, max = 65535)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub additional_cacheable_ports: Vec<i32>,
    /// Whether responses are kept in Cache Reserve (costs money).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_reserve: Option<CacheReserve>,
}

/// How long Cloudflare keeps responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct EdgeTTL {
    /// Who says how long.
    pub mode: EdgeTTLMode,
    /// How long, in seconds (mode `override_origin` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub default: Option<i32>,
    /// How long for single HTTP statuses of the origin.
    #[serde(default, rename = "statusCodeTTL", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub status_code_ttl: Vec<StatusCodeTTL>,
}

/// Who says how long Cloudflare keeps a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeTTLMode {
    /// The origin, and Cloudflare's defaults where it says nothing.
    RespectOrigin,
    /// The origin, and nothing is kept where it says nothing.
    BypassByDefault,
    /// The rule.
    OverrideOrigin,
}

/// How long responses of a status are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct StatusCodeTTL {
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 999))]
    pub status_code: Option<i32>,
    /// A range of HTTP statuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code_range: Option<StatusCodeRange>,
    /// How long, in seconds. 0: asked for anew each time. -1: not stored.
    #[schemars(range(min = -1, max = 31_536_000))]
    pub value: i32,
}

/// A range of HTTP statuses, both ends included. An end that is not set is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct StatusCodeRange {
    /// The lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 999))]
    pub from: Option<i32>,
    /// The highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 999))]
    pub to: Option<i32>,
}

/// How long browsers keep responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct BrowserTTL {
    /// Who says how long.
    pub mode: BrowserTTLMode,
    /// How long, in seconds (mode `override_origin` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub default: Option<i32>,
}

/// Who says how long a browser keeps a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrowserTTLMode {
    /// The origin.
    RespectOrigin,
    /// The origin, and nothing is kept where it says nothing.
    BypassByDefault,
    /// The rule.
    OverrideOrigin,
    /// Nothing is kept.
    Bypass,
}

/// What tells responses apart in the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CacheKey {
    /// The kind of device: desktop, mobile or tablet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_by_device_type: Option<bool>,
    /// Protects against responses that are stored under a false name (Cache Deception Armor).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_deception_armor: Option<bool>,
    /// Whether the order of the query does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_query_strings_order: Option<bool>,
    /// A key of one's own (in Free zones only `queryString: {exclude: {all: true}}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_key: Option<CustomKey>,
}

/// A cache key of one's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CustomKey {
    /// Parameters of the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = include_xor_exclude())]
    pub query_string: Option<QueryStringKey>,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderKey>,
    /// Cookies of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<CookieKey>,
    /// What is known of the visitor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserKey>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostKey>,
}

/// Which parameters of the query are part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct QueryStringKey {
    /// Only these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = all_xor_list("include"))]
    pub include: Option<Parameters>,
    /// All but these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = all_xor_list("exclude"))]
    pub exclude: Option<Parameters>,
}

/// Parameters of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Parameters {
    /// `true`: every parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    /// Parameters by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub list: Vec<String>,
}

/// Which headers are part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct HeaderKey {
    /// Headers whose value counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub include: Vec<String>,
    /// Headers of which only counts whether they are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub check_presence: Vec<String>,
    /// `true`: the `Origin` header does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_origin: Option<bool>,
}

/// Which cookies are part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CookieKey {
    /// Cookies whose value counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub include: Vec<String>,
    /// Cookies of which only counts whether they are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub check_presence: Vec<String>,
}

/// What of a visitor is part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct UserKey {
    /// The kind of device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_type: Option<bool>,
    /// The country.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geo: Option<bool>,
    /// The first language of `Accept-Language`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<bool>,
}

/// Which host is part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct HostKey {
    /// `true`: the one that was resolved for the origin, instead of the one in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<bool>,
}

/// How the `Vary` header tells responses apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Vary {
    /// For headers that `headers` does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<VaryDefault>,
    /// For single headers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub headers: BTreeMap<String, VaryHeader>,
}

/// What happens when a response varies by a header that is not named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VaryDefault {
    /// What happens.
    pub action: VaryAction,
}

/// What happens when a response varies by a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct VaryHeader {
    /// What happens.
    pub action: VaryAction,
    /// Languages that are told apart (`Accept-Language`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub languages: Vec<String>,
    /// Media types that are told apart (`Accept`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    pub media_types: Vec<String>,
}

/// What Cloudflare does with a header that a response varies by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VaryAction {
    /// The response is not cached.
    Bypass,
    /// The header counts as it is.
    Passthrough,
    /// The header counts in a normalised form.
    Normalize,
}

/// Whether old responses are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServeStale {
    /// `true`: no old response is served while a new one is fetched.
    pub disable_stale_while_updating: bool,
}

/// Whether responses are kept in Cache Reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CacheReserve {
    /// Whether they may be.
    pub eligible: bool,
    /// The smallest response that is kept, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub minimum_file_size: Option<i32>,
}

fn a_setting() -> Rule {
    let fields = [
        "cache",
        "edgeTTL",
        "browserTTL",
        "cacheKey",
        "vary",
        "serveStale",
        "respectStrongETags",
        "originErrorPagePassthru",
        "originCacheControl",
        "additionalCacheablePorts",
        "cacheReserve",
    ];
    let any: Vec<String> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    Rule::new(any.join(" || ")).message(
        "a cache rule must set something: spec.cache, spec.edgeTTL, spec.browserTTL or another of its settings",
    )
}

fn overriding_needs_a_time(path: &str) -> Rule {
    requires(
        "(self.mode == 'override_origin') == has(self.default)".into(),
        ".default",
        &format!("{path}.default goes with {path}.mode override_origin, and only with that"),
    )
}

fn one_status_each() -> Rule {
    Rule::new(
        "!has(self.statusCodeTTL) \
         || self.statusCodeTTL.all(it, has(it.statusCode) != has(it.statusCodeRange))",
    )
    .message("each of spec.edgeTTL.statusCodeTTL must have exactly one of statusCode and statusCodeRange")
}

fn ranges_go_up() -> Rule {
    Rule::new(
        "!has(self.statusCodeTTL) || self.statusCodeTTL.all(it, !has(it.statusCodeRange) \
         || (has(it.statusCodeRange.from) && has(it.statusCodeRange.to) \
         ? it.statusCodeRange.from <= it.statusCodeRange.to \
         : has(it.statusCodeRange.from) || has(it.statusCodeRange.to)))",
    )
    .message(
        "each statusCodeRange of spec.edgeTTL.statusCodeTTL must have from, to or both, and from must not be above to",
    )
}

fn include_xor_exclude() -> Rule {
    Rule::new("has(self.include) != has(self.exclude)").message(
        "set exactly one of spec.cacheKey.customKey.queryString.include and spec.cacheKey.customKey.queryString.exclude",
    )
}

fn all_xor_list(part: &str) -> Rule {
    let path = format!("spec.cacheKey.customKey.queryString.{part}");
    Rule::new("(has(self.all) && self.all) != (has(self.list) && size(self.list) > 0)")
        .message(format!("{path} must have exactly one of {path}.all (true) and {path}.list").as_str())
}
