//! `Tunnel`: a Cloudflare Tunnel, and the Secret with the token that its connectors use.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// Key of the connector token in its Secret: what cloudflared reads from its environment.
pub const TUNNEL_TOKEN_KEY: &str = "TUNNEL_TOKEN";

/// What the user wants of a tunnel.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "Tunnel",
    plural = "tunnels",
    shortname = "cftunnel",
    category = "kflare",
    namespaced,
    status = "TunnelStatus",
    derive = "PartialEq",
    doc = "A Cloudflare Tunnel whose configuration is kept at Cloudflare. kflare writes the token for its connectors (cloudflared) into a Secret. Ready means that tunnel and Secret are there, not that a connector is connected: see Status.",
    printcolumn(name = "Tunnel", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.cloudflareMetadata.status"),
    printcolumn(
        name = "Tunnel ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.tunnelID"
    ),
    printcolumn(
        name = "Secret",
        type_ = "string",
        json_path = ".status.credentialsSecretName",
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
pub struct TunnelSpec {
    /// The `CloudflareAccount` that the tunnel belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Name of the tunnel in Cloudflare. An account has one tunnel of a name. Cannot be changed.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// The Secret that kflare creates for the connectors of the tunnel. It holds their token under the key `TUNNEL_TOKEN`
    /// and goes with this resource. A Secret of that name that kflare did not make for this tunnel is never touched. A
    /// changed name moves the token: the new Secret is made first, then the old one is deleted.
    pub credentials_secret_ref: ResourceRef,
}

/// What kflare found out about the tunnel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct TunnelStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// What every kind reports that writes a Secret.
    #[serde(flatten)]
    pub credentials: crate::common::CredentialsStatus,
    /// The tunnel as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<TunnelMetadata>,
}

/// The tunnel as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct TunnelMetadata {
    /// Id of the tunnel, a UUID. DNS records point to `<tunnel id>.cfargotunnel.com`.
    #[serde(default, rename = "tunnelID", skip_serializing_if = "Option::is_none")]
    pub tunnel_id: Option<String>,
    /// `inactive` (never connected), `healthy`, `degraded` or `down`, as of the last look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
