//! `Zone`: a domain in Cloudflare.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// What the user wants of a zone.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "Zone",
    plural = "zones",
    shortname = "cfzone",
    category = "kflare",
    namespaced,
    status = "ZoneStatus",
    derive = "PartialEq",
    doc = "A domain in Cloudflare. A new zone is Ready at once, and pending at Cloudflare until its name servers are set at the registrar. Deleting a zone deletes every record in it.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "Plan", type_ = "string", json_path = ".status.cloudflareMetadata.plan"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.cloudflareMetadata.status"),
    printcolumn(name = "Zone ID", type_ = "string", json_path = ".status.cloudflareMetadata.zoneID"),
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
pub struct ZoneSpec {
    /// The domain, such as `example.com`. Upper case, Unicode and a final dot are allowed. Cannot be changed.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// The `CloudflareAccount` that the zone belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// `full`: Cloudflare serves the DNS of the domain. `partial`: another provider does, and sends single hosts to
    /// Cloudflare by CNAME (Business and Enterprise plans).
    #[serde(default, rename = "type")]
    pub zone_type: ZoneType,
    /// The plan of the zone. Changing it costs or refunds money. Unset: kflare leaves the plan alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<ZonePlan>,
    /// `true`: Cloudflare answers DNS only and proxies nothing. Unset: kflare leaves the setting alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// How a zone gets its traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ZoneType {
    /// Cloudflare serves the DNS of the domain.
    #[default]
    Full,
    /// Another provider serves the DNS, and sends single hosts to Cloudflare by CNAME.
    Partial,
}

/// What a zone costs and may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ZonePlan {
    /// No charge.
    Free,
    /// Pro.
    Pro,
    /// Business.
    Business,
    /// Enterprise, by contract.
    Enterprise,
}

/// What kflare found out about the zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ZoneStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The zone as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<ZoneMetadata>,
}

/// The zone as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ZoneMetadata {
    /// Id of the zone: 32 hexadecimal digits.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// The name servers to set at the registrar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub name_servers: Vec<String>,
    /// The plan of today, such as `free`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The plan that a scheduled change leads to, at the end of the paid period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_plan: Option<String>,
    /// `initializing`, `pending`, `active` or `moved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
