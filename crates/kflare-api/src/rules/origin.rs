//! `OriginRule`: another origin for requests that an expression matches.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RuleBase, RuleStatus};
use crate::schema::tidy;

/// What the user wants of an origin rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "OriginRule",
    plural = "originrules",
    shortname = "cforigin",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One origin rule of a zone: the requests that its expression matches reach the origin on another port, or another origin. All but the port needs an Enterprise plan.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".spec.origin.port"),
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
#[x_kube(validation = something_else())]
pub struct OriginRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// Where they go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = a_port_or_a_host())]
    pub origin: Option<Origin>,
    /// The `Host` header that the origin sees (Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub host_header: Option<String>,
    /// The name that Cloudflare asks the origin for in TLS (SNI; Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub sni: Option<String>,
}

/// Where requests go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Origin {
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The host name that is looked up instead of the request's (Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
}

fn something_else() -> Rule {
    Rule::new("has(self.origin) || has(self.hostHeader) || has(self.sni)")
        .message("an origin rule must change something: set spec.origin, spec.hostHeader or spec.sni")
}

fn a_port_or_a_host() -> Rule {
    Rule::new("has(self.port) || has(self.host)").message("set spec.origin.port, spec.origin.host or both")
}
