//! `RedirectRule`: another URL for visitors whose request an expression matches.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{RuleBase, RuleStatus, ValueOrExpression, value_xor_expression};
use crate::schema::{requires, tidy};

/// What the user wants of a redirect rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "RedirectRule",
    plural = "redirectrules",
    shortname = "cfredirect",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One single redirect of a zone: sends the visitors whose request its expression matches to another URL.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Status", type_ = "integer", json_path = ".spec.fromValue.statusCode"),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.fromValue.targetURL.value",
        priority = 1
    ),
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
pub struct RedirectRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// Where they are sent.
    pub from_value: FromValue,
}

/// Where visitors are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct FromValue {
    /// The URL: as it stands, or computed from the request.
    #[serde(rename = "targetURL")]
    #[x_kube(validation = value_xor_expression("spec.fromValue.targetURL"), validation = a_url_is_not_empty())]
    pub target_url: ValueOrExpression,
    /// HTTP status of the redirect: 301, 302, 303, 307 or 308.
    #[serde(default = "moved_permanently")]
    #[schemars(schema_with = "status_codes")]
    pub status_code: i32,
    /// Whether the query of the request is kept.
    #[serde(default)]
    pub preserve_query_string: bool,
}

fn moved_permanently() -> i32 {
    301
}

fn status_codes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "enum": [301, 302, 303, 307, 308]})
}

fn a_url_is_not_empty() -> Rule {
    requires(
        "!has(self.value) || size(self.value) > 0".into(),
        ".value",
        "spec.fromValue.targetURL.value must not be empty: give a URL such as https://www.example.com/",
    )
}
