//! `ManagedTransform`: the managed transforms of a zone.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// What the user wants of the managed transforms of a zone.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "ManagedTransform",
    plural = "managedtransforms",
    shortname = "cfmt",
    category = "kflare",
    namespaced,
    status = "ManagedTransformStatus",
    derive = "PartialEq",
    doc = "Turns the managed transforms of a zone on and off: changes of headers that Cloudflare offers ready made. One ManagedTransform configures a zone. Transforms that it does not list keep their state. Deleting it turns all of them off, unless it adopted them.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
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
pub struct ManagedTransformSpec {
    /// The `Zone` whose managed transforms are configured. Cannot be changed.
    #[x_kube(validation = immutable("spec.zoneRef"))]
    pub zone_ref: ResourceRef,
    /// Transforms of the headers of requests to the origin, such as `add_visitor_location_headers`. Those not listed keep their
    /// state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub managed_request_headers: Vec<ManagedHeader>,
    /// Transforms of the headers of responses to visitors, such as `add_security_headers`. Those not listed keep their state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub managed_response_headers: Vec<ManagedHeader>,
}

/// One managed transform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ManagedHeader {
    /// Id of the transform. `GET /zones/{zone_id}/managed_headers` lists those that a zone has.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// Whether it is on.
    pub enabled: bool,
}

/// What kflare found out about the managed transforms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ManagedTransformStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The managed transforms as Cloudflare reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<ManagedTransformMetadata>,
}

/// The managed transforms as Cloudflare reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ManagedTransformMetadata {
    /// Id of the zone: 32 hexadecimal digits.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}
