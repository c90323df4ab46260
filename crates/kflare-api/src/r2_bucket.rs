//! `R2Bucket`: an R2 bucket of an account.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    location::LocationHint,
    r2_rules::{CorsRule, LifecycleRule},
    schema::{immutable, immutable_optional, tidy},
};

/// What the user wants of a bucket.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "R2Bucket",
    plural = "r2buckets",
    shortname = "cfr2",
    category = "kflare",
    namespaced,
    status = "R2BucketStatus",
    derive = "PartialEq",
    doc = "An R2 bucket. Objects are never deleted: a bucket that holds some is not deleted either (BucketNotEmpty).",
    printcolumn(name = "Bucket", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Jurisdiction",
        type_ = "string",
        json_path = ".spec.jurisdiction",
        priority = 1
    ),
    printcolumn(
        name = "Location",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.location"
    ),
    printcolumn(
        name = "Bucket Name",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.name",
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
#[x_kube(
    validation = immutable_optional("jurisdiction"),
    validation = immutable_optional("locationHint")
)]
pub struct R2BucketSpec {
    /// The `CloudflareAccount` that the bucket belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Name of the bucket, unique in its account and jurisdiction: 3 to 63 lower-case letters, digits and dashes, with a
    /// letter or digit at either end. Cannot be changed.
    #[schemars(length(min = 3, max = 63), regex(pattern = "^[a-z0-9][a-z0-9-]*[a-z0-9]$"))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// Where objects are guaranteed to be stored, by law. Buckets of one jurisdiction cannot be seen from another. Cannot be
    /// changed. Unset: no guarantee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<R2Jurisdiction>,
    /// Where the bucket should be created. Cloudflare may choose another place. Cannot be changed. Unset: near to
    /// Cloudflare's data centre that the request reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_hint: Option<LocationHint>,
    /// Storage class of objects that are uploaded without one. Objects that are there keep theirs. Unset: `Standard` for a new
    /// bucket, and left alone afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<StorageClass>,
    /// What browsers may do from other origins, as in S3. An empty list takes all rules away. Unset: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub cors: Option<Vec<CorsRule>>,
    /// What happens to objects and uploads as time passes. All rules of the bucket; others are taken away, but for
    /// Cloudflare's `Default Multipart Abort Rule`, which stays unless a rule of that id is given. Unset: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub lifecycle: Option<Vec<LifecycleRule>>,
}

/// Where objects of a bucket are guaranteed to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum R2Jurisdiction {
    /// The European Union.
    Eu,
    /// The United States.
    Us,
    /// Data centres that comply with `FedRAMP`.
    Fedramp,
    /// Data centres that comply with `FedRAMP` High.
    FedrampHigh,
}

impl R2Jurisdiction {
    /// As it is written in specs, and in Cloudflare's header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eu => "eu",
            Self::Us => "us",
            Self::Fedramp => "fedramp",
            Self::FedrampHigh => "fedramp-high",
        }
    }
}

/// What storing an object costs, and reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StorageClass {
    /// For objects that are read often.
    Standard,
    /// Cheaper to store and dearer to read; kept for 30 days at least.
    InfrequentAccess,
}

/// What kflare found out about the bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct R2BucketStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The bucket as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<R2BucketMetadata>,
}

/// The bucket as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct R2BucketMetadata {
    /// Name of the bucket. Buckets have no other id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the bucket is, such as `WEUR`. It can differ from the hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// When the bucket was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_date: Option<String>,
}
