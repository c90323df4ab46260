//! What a Worker is bound to.

use std::collections::BTreeMap;

use kube::{KubeSchema, core::Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{common::ResourceRef, schema::tidy};

/// One binding of a Worker: a name, and exactly one of the other fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = one_target())]
pub struct WorkerBinding {
    /// Name that the code uses, such as `CACHE` for `env.CACHE`.
    #[schemars(length(min = 1, max = 255), regex(pattern = "^[A-Za-z_$][A-Za-z0-9_$]*$"))]
    pub name: String,
    /// A text. Anybody who may look at the Worker can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5120))]
    pub plain_text: Option<String>,
    /// A JSON object. Anybody who may look at the Worker can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "json_object")]
    pub json: Option<BTreeMap<String, Value>>,
    /// A text that nobody can read back, from a Secret in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// A KV namespace, by its id: 32 hexadecimal digits.
    #[serde(default, rename = "kvNamespaceID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub kv_namespace_id: Option<String>,
    /// A `KVNamespace` of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_namespace_ref: Option<ResourceRef>,
    /// An R2 bucket, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub r2_bucket_name: Option<String>,
    /// An `R2Bucket` of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r2_bucket_ref: Option<ResourceRef>,
    /// A D1 database, by its id.
    #[serde(default, rename = "d1DatabaseID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub d1_database_id: Option<String>,
    /// A `D1Database` of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d1_database_ref: Option<ResourceRef>,
    /// Another Worker of the account, which this one calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceBinding>,
    /// A queue, by its name: the Worker sends to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub queue: Option<String>,
    /// A `Queue` of ours: the Worker sends to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ref: Option<ResourceRef>,
    /// A namespace of Durable Objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_object: Option<DurableObjectBinding>,
    /// A Workers VPC service, by its id.
    #[serde(default, rename = "vpcServiceID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub vpc_service_id: Option<String>,
    /// A Hyperdrive configuration, by its id.
    #[serde(default, rename = "hyperdriveID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub hyperdrive_id: Option<String>,
    /// Workers AI, as `ai: {}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nothing")]
    pub ai: Option<Nothing>,
    /// Id, tag and time of the version that runs, as `versionMetadata: {}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "nothing")]
    pub version_metadata: Option<Nothing>,
}

/// A binding that needs no more than its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

/// Names a key of a Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Another Worker that is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ServiceBinding {
    /// Name of the Worker at Cloudflare.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Class that it exports for such calls. Unset: its default handlers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub entrypoint: Option<String>,
}

/// A namespace of Durable Objects. Its class comes into being by `spec.migrations` of the Worker that exports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct DurableObjectBinding {
    /// Name of the class.
    #[schemars(length(min = 1, max = 255))]
    pub class_name: String,
    /// Name of the Worker that exports it. Unset: this Worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub script_name: Option<String>,
}

fn json_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 256, "x-kubernetes-preserve-unknown-fields": true})
}

fn nothing(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 0})
}

/// The fields of which a binding has exactly one.
const TARGETS: [&str; 17] = [
    "plainText",
    "json",
    "secretKeyRef",
    "kvNamespaceID",
    "kvNamespaceRef",
    "r2BucketName",
    "r2BucketRef",
    "d1DatabaseID",
    "d1DatabaseRef",
    "service",
    "queue",
    "queueRef",
    "durableObject",
    "vpcServiceID",
    "hyperdriveID",
    "ai",
    "versionMetadata",
];

fn one_target() -> Rule {
    let given: Vec<String> = TARGETS.iter().map(|field| format!("has(self.{field})")).collect();
    Rule::new(format!("[{}].exists_one(given, given)", given.join(", ")))
        .message("set exactly one of the fields besides name in each of spec.bindings")
}
