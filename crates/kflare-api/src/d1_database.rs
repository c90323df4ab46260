//! `D1Database`: a D1 database of an account.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    location::{Jurisdiction, LocationHint},
    schema::{immutable, immutable_optional, tidy},
};

/// What the user wants of a D1 database.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "D1Database",
    plural = "d1databases",
    shortname = "cfd1",
    category = "kflare",
    namespaced,
    status = "D1DatabaseStatus",
    derive = "PartialEq",
    doc = "A D1 database. Deleting it deletes everything that is stored in it.",
    printcolumn(name = "Database", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Database ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.databaseID"
    ),
    printcolumn(
        name = "Region",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.region",
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
pub struct D1DatabaseSpec {
    /// The `CloudflareAccount` that the database belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Name of the database, unique in its account. Cannot be changed.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// Where the database may run and store data, by law. Cannot be changed. Unset: no restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<Jurisdiction>,
    /// Where the database should be created. Cannot be changed, and has no effect beside `jurisdiction`. Unset: near to
    /// Cloudflare's data centre that the request reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_hint: Option<LocationHint>,
    /// Read replicas. Unset: kflare leaves them alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_replication: Option<ReadReplication>,
}

/// Read replicas of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct ReadReplication {
    /// `auto`: Cloudflare makes replicas round the world. `disabled`: there are none.
    pub mode: ReadReplicationMode,
}

/// Whether a database has replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadReplicationMode {
    /// Cloudflare makes replicas round the world.
    Auto,
    /// There are none.
    Disabled,
}

/// What kflare found out about the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct D1DatabaseStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The database as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<D1DatabaseMetadata>,
}

/// The database as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct D1DatabaseMetadata {
    /// Id of the database: a UUID.
    #[serde(default, rename = "databaseID", skip_serializing_if = "Option::is_none")]
    pub database_id: Option<String>,
    /// Version of the storage engine, such as `production`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The region that the database was last seen in, such as `WEUR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}
