//! `Queue`: a queue of an account.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    location::Jurisdiction,
    schema::{immutable, immutable_optional, tidy},
};

/// What the user wants of a queue.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "Queue",
    plural = "queues",
    shortname = "cfqueue",
    category = "kflare",
    namespaced,
    status = "QueueStatus",
    derive = "PartialEq",
    doc = "A queue of Cloudflare Queues. Deleting it deletes every message in it. Who takes messages from it is configured elsewhere.",
    printcolumn(name = "Queue", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Queue ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.queueID"
    ),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.deliveryPaused", priority = 1),
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
#[x_kube(validation = immutable_optional("jurisdiction"))]
pub struct QueueSpec {
    /// The `CloudflareAccount` that the queue belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Name of the queue, unique in its account: lower-case letters, digits and inner hyphens. Workers are bound to it by this
    /// name. Cannot be changed.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// Where the queue may keep messages, by law. Cannot be changed. Unset: no restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<Jurisdiction>,
    /// Seconds that a message waits before it is delivered, unless its sender says otherwise. Unset: kflare leaves the
    /// setting alone; a new queue has 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub delivery_delay_seconds: Option<i32>,
    /// Seconds that an undelivered message is kept, up to 86,400 on the free Workers plan. Unset: kflare leaves the setting
    /// alone; a new queue has 86,400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 1_209_600))]
    pub message_retention_seconds: Option<i32>,
    /// `true`: messages are taken in and not delivered. Unset: kflare leaves the setting alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_paused: Option<bool>,
}

/// What kflare found out about the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct QueueStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The queue as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<QueueMetadata>,
}

/// The queue as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct QueueMetadata {
    /// Id of the queue: 32 hexadecimal digits.
    #[serde(default, rename = "queueID", skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<String>,
}
