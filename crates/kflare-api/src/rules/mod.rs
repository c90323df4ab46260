//! What the rule kinds share. One resource is one rule in the ruleset of its zone and phase.

pub mod cache;
pub mod configuration;
pub mod managed_ruleset;
pub mod origin;
pub mod rate_limit;
pub mod redirect;
pub mod transform;
pub mod waf_custom;

use kube::{KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// What every rule says, whatever it does. Flattened into the spec of each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RuleBase {
    /// The `Zone` that the rule is in. Cannot be changed.
    #[x_kube(validation = immutable("spec.zoneRef"))]
    pub zone_ref: ResourceRef,
    /// Where the rule stands among the kflare rules of its zone and phase: lower first, equal ones by namespace and name.
    /// Unset: 0. Rules that kflare did not create keep their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// A note, shown in Cloudflare's dashboard. Unset: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// Whether the rule is in force.
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

/// A text, or an expression that computes it for each request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ValueOrExpression {
    /// The text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub value: Option<String>,
    /// An expression in Cloudflare's Rules language that computes the text, such as `concat("/new", http.request.uri.path)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub expression: Option<String>,
}

/// What Cloudflare answers instead of the page that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct BlockResponse {
    /// HTTP status: 400 to 499.
    #[schemars(range(min = 400, max = 499))]
    pub status_code: i32,
    /// Type of the content, such as `text/html`, `text/plain`, `text/xml` or `application/json`.
    #[schemars(length(min = 1, max = 100))]
    pub content_type: String,
    /// The content: at most 30 KB.
    #[schemars(length(min = 1, max = 30720))]
    pub content: String,
}

/// What kflare found out about a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RuleStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The rule as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<RuleMetadata>,
}

/// The rule as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RuleMetadata {
    /// Id of the ruleset that holds the rule, the entry point of its phase: 32 hexadecimal digits.
    #[serde(default, rename = "rulesetID", skip_serializing_if = "Option::is_none")]
    pub ruleset_id: Option<String>,
    /// Id of the rule: 32 hexadecimal digits.
    #[serde(default, rename = "ruleID", skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    /// The mark by which kflare knows its rule, made from kind, namespace and name.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Version of the rule: Cloudflare counts its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The rule of a [`ValueOrExpression`] at `path`, such as `spec.uri.path`.
pub(crate) fn value_xor_expression(path: &str) -> Rule {
    Rule::new("has(self.value) != has(self.expression)")
        .message(format!("{path} must have exactly one of {path}.value and {path}.expression").as_str())
}
