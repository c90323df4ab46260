//! `TransformRule`: another URL, or other headers, for requests that an expression matches.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RuleBase, RuleStatus, ValueOrExpression, value_xor_expression};
use crate::schema::{forbids, immutable, requires, tidy};

/// What the user wants of a transform rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "TransformRule",
    plural = "transformrules",
    shortname = "cftransform",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One transform rule of a zone: rewrites the URL or the headers of the requests that its expression matches, or the headers of the responses to them.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
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
#[x_kube(
    validation = rewrites_need_uri(),
    validation = header_types_need_headers(),
    validation = only_responses_add()
)]
pub struct TransformRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// What is transformed. Cannot be changed.
    #[serde(rename = "type")]
    #[x_kube(validation = immutable("spec.type"))]
    pub transform_type: TransformType,
    /// The URL that the origin sees (type `urlRewrite` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = a_part_of_the_url())]
    pub uri: Option<UriRewrite>,
    /// What happens to headers, by name (types `requestHeaders` and `responseHeaders` only).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = header_values())]
    pub headers: BTreeMap<String, HeaderTransform>,
}

/// What is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TransformType {
    /// Path and query of the request to the origin.
    UrlRewrite,
    /// Headers of the request to the origin.
    RequestHeaders,
    /// Headers of the response to the visitor.
    ResponseHeaders,
}

/// The URL that the origin sees. What is not set stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct UriRewrite {
    /// The path, such as `/new`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = value_xor_expression("spec.uri.path"), validation = a_path_is_not_empty())]
    pub path: Option<ValueOrExpression>,
    /// The query, without a question mark. An empty value takes the query away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = value_xor_expression("spec.uri.query"))]
    pub query: Option<ValueOrExpression>,
}

/// What happens to a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct HeaderTransform {
    /// What is done with it.
    pub operation: HeaderOperation,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub value: Option<String>,
    /// An expression in Cloudflare's Rules language that computes its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub expression: Option<String>,
}

/// What is done with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HeaderOperation {
    /// Set, in place of one that is there.
    Set,
    /// Added, beside one that is there (type `responseHeaders` only).
    Add,
    /// Removed.
    Remove,
}

fn rewrites_need_uri() -> Rule {
    requires(
        "(self.type == 'urlRewrite') == has(self.uri)".into(),
        ".uri",
        "spec.uri goes with spec.type urlRewrite, and only with that",
    )
}

fn header_types_need_headers() -> Rule {
    requires(
        "(self.type != 'urlRewrite') == (has(self.headers) && size(self.headers) > 0)".into(),
        ".headers",
        "spec.headers goes with spec.type requestHeaders and responseHeaders, and only with those",
    )
}

fn only_responses_add() -> Rule {
    forbids(
        "self.type == 'responseHeaders' || !has(self.headers) \
         || self.headers.all(name, self.headers[name].operation != 'add')"
            .into(),
        ".headers",
        "spec.headers: the operation add is possible for spec.type responseHeaders only: use set",
    )
}

fn a_part_of_the_url() -> Rule {
    Rule::new("has(self.path) || has(self.query)").message("set spec.uri.path, spec.uri.query or both")
}

fn a_path_is_not_empty() -> Rule {
    requires(
        "!has(self.value) || size(self.value) > 0".into(),
        ".value",
        "spec.uri.path.value must not be empty: the shortest path is /",
    )
}

fn header_values() -> Rule {
    Rule::new(
        "self.all(name, self[name].operation == 'remove' ? !has(self[name].value) && !has(self[name].expression) \
         : has(self[name].value) != has(self[name].expression))",
    )
    .message(
        "each of spec.headers with the operation set or add must have exactly one of value and expression, and with remove \
         none of them",
    )
}
