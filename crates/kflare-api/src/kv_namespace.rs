//! `KVNamespace`: a Workers KV namespace of an account.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// What the user wants of a KV namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "KVNamespace",
    plural = "kvnamespaces",
    shortname = "cfkv",
    category = "kflare",
    namespaced,
    status = "KVNamespaceStatus",
    derive = "PartialEq",
    doc = "A Workers KV namespace. Deleting it deletes everything that is stored in it.",
    printcolumn(name = "Title", type_ = "string", json_path = ".spec.title"),
    printcolumn(
        name = "Namespace ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.namespaceID"
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
pub struct KVNamespaceSpec {
    /// The `CloudflareAccount` that the namespace belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Title of the namespace, unique in its account. Changing it renames the namespace and keeps what is stored in it.
    #[schemars(length(min = 1, max = 512))]
    pub title: String,
}

/// What kflare found out about the namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct KVNamespaceStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The namespace as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<KVNamespaceMetadata>,
}

/// The namespace as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct KVNamespaceMetadata {
    /// Id of the namespace: 32 hexadecimal digits.
    #[serde(default, rename = "namespaceID", skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
}
