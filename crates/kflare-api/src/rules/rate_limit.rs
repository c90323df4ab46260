//! `RateLimitRule`: what happens to visitors who ask too often.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BlockResponse, RuleBase, RuleStatus};
use crate::schema::{forbids, requires, tidy};

/// What the user wants of a rate limiting rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "RateLimitRule",
    plural = "ratelimitrules",
    shortname = "cfratelimit",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One rate limiting rule of a zone: counts the requests that its expression matches, and acts on those that come too often.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(
        name = "Requests",
        type_ = "integer",
        json_path = ".spec.ratelimit.requestsPerPeriod"
    ),
    printcolumn(name = "Period", type_ = "integer", json_path = ".spec.ratelimit.period"),
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
#[x_kube(validation = response_needs_block())]
pub struct RateLimitRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// What happens to requests that come too often.
    pub action: RateLimitAction,
    /// How it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_parameters: Option<RateLimitActionParameters>,
    /// What is counted, and how much of it is too much.
    #[x_kube(validation = one_measure(), validation = score_needs_header())]
    pub ratelimit: RateLimit,
}

/// What happens to a request that comes too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateLimitAction {
    /// Refused. The only one in Free zones.
    Block,
    /// The visitor solves an interactive challenge.
    Challenge,
    /// The browser solves a challenge in JavaScript.
    JsChallenge,
    /// Cloudflare picks the challenge.
    ManagedChallenge,
    /// Only logged (Enterprise plans).
    Log,
}

/// How the action happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RateLimitActionParameters {
    /// The answer to a blocked request (action `block` only). Unset: Cloudflare's own page, with status 429.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<BlockResponse>,
}

/// What is counted, and how much of it is too much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RateLimit {
    /// What requests are counted by: `cf.colo.id` (Cloudflare counts in each data center, and wants it said) and others, such
    /// as `ip.src` or `http.request.headers["x-api-key"]`.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = counts_per_data_center())]
    pub characteristics: Vec<String>,
    /// How long is counted, in seconds: 10, 60, 120, 300, 600 or 3600, by plan (Free: 10). Enterprise plans have more.
    #[schemars(range(min = 10, max = 86400))]
    pub period: i32,
    /// How many requests a period are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub requests_per_period: Option<i32>,
    /// How long the action lasts, in seconds, by plan (Free: 10). 0: it acts on what is above the rate. Challenges need 0 on
    /// all plans but Enterprise. Unset: left alone, and for a new rule Cloudflare decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub mitigation_timeout: Option<i32>,
    /// The requests that are counted, if not those of `spec.expression` (Business and Enterprise plans). It may look at the
    /// response, such as `http.response.code eq 401`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub counting_expression: Option<String>,
    /// `true`: only requests that reach the origin are counted. Unset: `false`, those answered from the cache count too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_to_origin: Option<bool>,
    /// The score that a period allows, instead of a number of requests (Enterprise with Advanced Rate Limiting).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub score_per_period: Option<i32>,
    /// The response header in which the origin says the score of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub score_response_header_name: Option<String>,
}

fn response_needs_block() -> Rule {
    forbids(
        "!has(self.actionParameters) || !has(self.actionParameters.response) || self.action == 'block'".into(),
        ".actionParameters.response",
        "spec.actionParameters.response is possible for spec.action block only: leave it out",
    )
}

fn counts_per_data_center() -> Rule {
    Rule::new("'cf.colo.id' in self").message(
        "spec.ratelimit.characteristics must contain cf.colo.id, next to what requests are counted by, such as ip.src: \
         Cloudflare counts in each data center",
    )
}

fn one_measure() -> Rule {
    Rule::new("has(self.requestsPerPeriod) != has(self.scorePerPeriod)")
        .message("set exactly one of spec.ratelimit.requestsPerPeriod and spec.ratelimit.scorePerPeriod")
}

fn score_needs_header() -> Rule {
    requires(
        "has(self.scorePerPeriod) == has(self.scoreResponseHeaderName)".into(),
        ".scoreResponseHeaderName",
        "spec.ratelimit.scorePerPeriod and spec.ratelimit.scoreResponseHeaderName go together: set both or neither",
    )
}
