//! `TunnelConfiguration`: which hosts a tunnel serves, and where their requests go.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, requires, tidy},
};

/// What the user wants of the configuration of a tunnel.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "TunnelConfiguration",
    plural = "tunnelconfigurations",
    shortname = "cftunnelconfig",
    category = "kflare",
    namespaced,
    status = "TunnelConfigurationStatus",
    derive = "PartialEq",
    doc = "The whole configuration of a tunnel: which hosts it serves and where their requests go. A tunnel has one configuration; deleting it leaves a tunnel that answers every request with 404.",
    printcolumn(name = "Tunnel", type_ = "string", json_path = ".spec.tunnelRef.name"),
    printcolumn(
        name = "Tunnel ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.tunnelID"
    ),
    printcolumn(
        name = "Version",
        type_ = "integer",
        json_path = ".status.cloudflareMetadata.version"
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
pub struct TunnelConfigurationSpec {
    /// The `Tunnel` that is configured. Cannot be changed.
    #[x_kube(validation = immutable("spec.tunnelRef"))]
    pub tunnel_ref: ResourceRef,
    /// The rules, in order: the first whose host and path match a request serves it. A rule for everything else follows
    /// by itself, see `defaultService`.
    #[schemars(length(max = 1000))]
    pub ingress: Vec<IngressRule>,
    /// What serves the requests that no rule matches.
    #[serde(default = "not_found")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = a_service("spec.defaultService"))]
    pub default_service: String,
    /// How the connectors reach the services of all rules, unless a rule says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_request: Option<OriginRequest>,
    /// Private networks through this tunnel. Unset: kflare leaves the setting alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warp_routing: Option<WarpRouting>,
}

impl Default for TunnelConfigurationSpec {
    fn default() -> Self {
        Self {
            tunnel_ref: ResourceRef::default(),
            ingress: Vec::new(),
            default_service: not_found(),
            origin_request: None,
            warp_routing: None,
        }
    }
}

fn not_found() -> String {
    "http_status:404".to_owned()
}

/// One rule: requests for a host, and for a path if one is given, go to a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct IngressRule {
    /// The host, such as `www.example.com`, or `*.example.com` for every host below a domain.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = a_host())]
    pub hostname: String,
    /// A regular expression (Go syntax) that the path of the request has to match. Unset: every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// What serves the requests: `http://web.demo.svc:8080`, `https://`, `tcp://`, `ssh://`, `rdp://` or `smb://` with a
    /// host and no path, `unix:/path` or `unix+tls:/path`, `http_status:404`, `hello_world`, `bastion` or `socks-proxy`.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = a_service("spec.ingress[].service"))]
    pub service: String,
    /// How the connectors reach the service. What is not set here follows the configuration's own `originRequest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_request: Option<OriginRequest>,
}

/// How connectors reach a service. What is not set is cloudflared's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct OriginRequest {
    /// `Host` header of the requests to the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub http_host_header: Option<String>,
    /// Name that the certificate of the service has to be for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub origin_server_name: Option<String>,
    /// Accept any certificate of the service.
    #[serde(default, rename = "noTLSVerify", skip_serializing_if = "Option::is_none")]
    pub no_tls_verify: Option<bool>,
    /// Take the name for TLS (SNI) from the `Host` header.
    #[serde(default, rename = "matchSNItoHost", skip_serializing_if = "Option::is_none")]
    pub match_sni_to_host: Option<bool>,
    /// File, where the connector runs, with the certificate authority of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub ca_pool: Option<String>,
    /// Speak HTTP/2 with the service. It has to offer HTTPS.
    #[serde(default, rename = "http2Origin", skip_serializing_if = "Option::is_none")]
    pub http2_origin: Option<bool>,
    /// Send no chunked bodies: for services that speak WSGI, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_chunked_encoding: Option<bool>,
    /// How long a TCP connection to the service may take, in whole seconds, such as `30s` or `1m30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = a_duration("connectTimeout"))]
    pub connect_timeout: Option<String>,
    /// How long a TLS handshake with the service may take, in whole seconds, such as `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = a_duration("tlsTimeout"))]
    pub tls_timeout: Option<String>,
    /// Time between TCP keep-alive packets, in whole seconds, such as `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = a_duration("tcpKeepAlive"))]
    pub tcp_keep_alive: Option<String>,
    /// How long an idle connection to the service is kept, in whole seconds, such as `1m30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = a_duration("keepAliveTimeout"))]
    pub keep_alive_timeout: Option<String>,
    /// How many idle connections to the service are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_schema")]
    pub keep_alive_connections: Option<i32>,
    /// Use only one address family at a time instead of trying IPv4 and IPv6 side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_happy_eyeballs: Option<bool>,
    /// `socks`: the connector serves as a SOCKS5 proxy. Empty: as an ordinary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_type: Option<ProxyType>,
    /// Let only requests through that Cloudflare Access has admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
}

/// What a connector is for a service that is reached by TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProxyType {
    /// An ordinary proxy.
    #[serde(rename = "")]
    Regular,
    /// A SOCKS5 proxy.
    #[serde(rename = "socks")]
    Socks,
}

/// Whose requests Cloudflare Access has to have admitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = audiences_need_a_team())]
pub struct Access {
    /// Whether a request without a valid token of Access is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The team whose Access applications are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub team_name: Option<String>,
    /// Audience tags of the Access applications whose tokens are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 64)))]
    pub aud_tag: Vec<String>,
}

/// Private networks through a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WarpRouting {
    /// Whether devices with the WARP client reach the private networks that are routed through the tunnel.
    pub enabled: bool,
}

/// What kflare found out about the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct TunnelConfigurationStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The configuration as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<TunnelConfigurationMetadata>,
}

/// The configuration as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct TunnelConfigurationMetadata {
    /// Id of the tunnel, a UUID.
    #[serde(default, rename = "tunnelID", skip_serializing_if = "Option::is_none")]
    pub tunnel_id: Option<String>,
    /// Version of the document at Cloudflare: it grows with every change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

fn count_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0})
}

/// As cloudflared and Cloudflare check it: one wildcard at most, as the first label, and no port.
fn a_host() -> Rule {
    Rule::new(r"self.matches('^([*][.])?[^*:/\\s]+$')").message(
        "spec.ingress[].hostname must be a host such as www.example.com or *.example.com, without scheme, port and path; \
         requests that no rule matches go to spec.defaultService",
    )
}

/// As cloudflared and Cloudflare check it. A path is refused, because requests keep theirs.
fn a_service(field: &str) -> Rule {
    Rule::new(
        r"self.matches('^(http_status:[1-9][0-9][0-9]|hello[_-]world|bastion|socks-proxy|unix([+]tls)?:.+|[a-z][a-z0-9+.-]*://[^/?#\\s]+)$')",
    )
    .message(
        format!(
            "{field} must be a scheme and a host without a path, such as http://web.demo.svc:8080, or one of unix:/path, \
             unix+tls:/path, http_status:404, hello_world, bastion, socks-proxy"
        )
        .as_str(),
    )
}

/// Cloudflare takes whole seconds.
fn a_duration(field: &str) -> Rule {
    Rule::new("self.matches('^([0-9]+h)?([0-9]+m)?([0-9]+s)?$')").message(
        format!(
            "{field} (of spec.originRequest or spec.ingress[].originRequest) must be a duration in whole seconds, such as \
             30s, 1m30s or 2h"
        )
        .as_str(),
    )
}

fn audiences_need_a_team() -> Rule {
    requires(
        "!has(self.audTag) || size(self.audTag) == 0 || has(self.teamName)".into(),
        ".teamName",
        "access.teamName (of spec.originRequest or spec.ingress[].originRequest) is needed where access.audTag is set: it \
         names the team of the applications",
    )
}
