//! `CloudflareAccount`: a Cloudflare account and the token that kflare uses for it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, DeletionPolicy, SecretName},
    names::DEFAULT_TOKEN_KEY,
    schema::{immutable, tidy},
};

/// What the user wants of a Cloudflare account.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "CloudflareAccount",
    plural = "cloudflareaccounts",
    shortname = "cfaccount",
    category = "kflare",
    status = "CloudflareAccountStatus",
    derive = "PartialEq",
    doc = "A Cloudflare account, and the API token that kflare uses for it. Ready means that the token is valid and reaches the account.",
    printcolumn(name = "Account ID", type_ = "string", json_path = ".spec.accountID"),
    printcolumn(name = "Account Name", type_ = "string", json_path = ".status.accountName"),
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
pub struct CloudflareAccountSpec {
    /// Id of the account: 32 lower-case hexadecimal digits, as the dashboard shows it. Cannot be changed.
    #[serde(rename = "accountID")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9a-f]{32}$"))]
    #[x_kube(validation = immutable("spec.accountID"))]
    pub account_id: String,
    /// The Secret that holds the API token. May be changed; the Secret may be changed too.
    pub token_secret_ref: TokenSecretRef,
    /// Namespaces whose resources may use this account, by label. Unset: every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// What happens to the objects in Cloudflare when resources of this account are deleted, unless a resource says
    /// otherwise by the annotation `kflare.dev/deletion-policy`. Unset: what the operator is set to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_deletion_policy: Option<DeletionPolicy>,
}

/// The key of a Secret that holds an API token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Key of the token in the Secret.
    #[serde(default = "default_token_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn default_token_key() -> String {
    DEFAULT_TOKEN_KEY.to_owned()
}

/// What kflare found out about the account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CloudflareAccountStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Name of the account in Cloudflare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    /// The token Secret that carries the finalizer `kflare.dev/token-protection` for this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_token_secret: Option<SecretName>,
    /// What Cloudflare says about the token. Never the token itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenStatus>,
}

/// What Cloudflare says about a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct TokenStatus {
    /// Id of the token. Not a secret.
    pub id: String,
    /// Who owns the token.
    pub kind: TokenKind,
    /// When the token ends. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_on: Option<Time>,
}

/// Who owns a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TokenKind {
    /// A user: it goes when the user leaves.
    User,
    /// The account.
    Account,
}
