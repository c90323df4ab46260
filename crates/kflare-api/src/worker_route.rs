//! `WorkerRoute`: which URLs of a zone a Worker answers.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// What the user wants of a route.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "WorkerRoute",
    plural = "workerroutes",
    shortname = "cfroute",
    category = "kflare",
    namespaced,
    status = "WorkerRouteStatus",
    derive = "PartialEq",
    doc = "A pattern of URLs of a zone, and the Worker that answers them. Where patterns overlap, Cloudflare takes the most specific one.",
    printcolumn(name = "Pattern", type_ = "string", json_path = ".spec.pattern"),
    printcolumn(name = "Worker", type_ = "string", json_path = ".status.cloudflareMetadata.script"),
    printcolumn(
        name = "Route ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.routeID",
        priority = 1
    ),
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
pub struct WorkerRouteSpec {
    /// The `Zone` that the route belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.zoneRef"))]
    pub zone_ref: ResourceRef,
    /// Which URLs, such as `example.com/api/*` or `*.example.com/*`. The host must be in the zone; `*` stands at the start of the
    /// host and at the end of the path only.
    #[schemars(length(min = 1, max = 1024))]
    pub pattern: String,
    /// The `WorkerScript` that answers them. Unset: no Worker does, also where a wider pattern would send them to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_script_ref: Option<ResourceRef>,
}

/// What kflare found out about the route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerRouteStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The route as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<WorkerRouteMetadata>,
}

/// The route as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerRouteMetadata {
    /// Id of the route: 32 hexadecimal digits.
    #[serde(default, rename = "routeID", skip_serializing_if = "Option::is_none")]
    pub route_id: Option<String>,
    /// Id of the zone that holds the route: 32 hexadecimal digits.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// Name of the Worker that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}
