//! Blocks that every kind shares: references, and the part of status that the engine writes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::tidy;

/// Refers to another kflare resource by name. In namespaced kinds: in the same namespace, except for accounts, which
/// are cluster-scoped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// Name of the resource.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl<T: Into<String>> From<T> for ResourceRef {
    fn from(name: T) -> Self {
        Self { name: name.into() }
    }
}

/// Names a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretName {
    /// Name of the Secret.
    pub name: String,
    /// Namespace of the Secret.
    pub namespace: String,
}

/// What happens to the object in Cloudflare when its resource is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeletionPolicy {
    /// The object is deleted.
    Delete,
    /// The object stays in Cloudflare.
    Retain,
}

/// How an object came under management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Origin {
    /// kflare created it.
    Created,
    /// It existed, and the user asked kflare to take it.
    Adopted,
}

/// Under which account, and how, the object in Cloudflare is managed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Ownership {
    /// Name of the `CloudflareAccount` whose token manages the object, also when references change later.
    pub account: String,
    /// Cloudflare id of the account or zone that contains the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// How the object came under management. Unless a deletion policy says otherwise, `Created` objects are deleted with
    /// their resource and `Adopted` ones stay.
    pub origin: Origin,
}

/// Fields that something else changes back again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Contested {
    /// The fields in question.
    #[schemars(length(max = 32))]
    pub fields: Vec<String>,
    /// When the first of the changes was seen.
    pub since: Time,
    /// When kflare corrects them next. The pauses grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_correction: Option<Time>,
}

/// A change that Cloudflare has accepted and is carrying out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Cloudflare's id of the operation.
    pub id: String,
    /// When it was accepted.
    pub since: Time,
}

/// The part of status that every kind has. Flattened into the status of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CommonStatus {
    /// The state of the resource. `Ready` is on every kind; its reason and message say what kflare waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[schemars(length(max = 8))]
    pub conditions: Vec<Condition>,
    /// Under which account, and how, the object in Cloudflare is managed. Absent until there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ownership: Option<Ownership>,
    /// What kflare would change, one line a change. Written in observe mode only (annotation `kflare.dev/mode`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub plan: Vec<String>,
    /// Fields that something else changes back again and again. kflare corrects them ever more rarely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contested: Option<Contested>,
    /// Fingerprint of what Cloudflare refused to create. kflare does not ask for the same again before something changes, or
    /// hours have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// A change that Cloudflare has accepted and is carrying out. kflare looks at it until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Keyed hash of what kflare wrote of the fields that Cloudflare's lists do not tell (contents, secret values). While it and
    /// `appliedRevision` are as they should be, nothing has to be read or written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_hash: Option<String>,
    /// Cloudflare's mark of the change that wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_revision: Option<String>,
    /// Fingerprint of the versions of the Secrets and ConfigMaps that the spec names, as the object was last brought into line
    /// with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// The value of the annotation `kflare.dev/reconcile-at` that was last acted upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconcile_at: Option<String>,
}

/// The part of status of kinds that write a Secret. Flattened into their status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CredentialsStatus {
    /// Name of the Secret that holds the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_name: Option<String>,
    /// What kflare remembers of that Secret, so that it notices edits without reading it again. Never what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<CredentialsSecret>,
}

/// A Secret as kflare last saw it in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CredentialsSecret {
    /// UID of the Secret.
    pub uid: String,
    /// `resourceVersion` of the Secret.
    pub resource_version: String,
    /// Id of the object at Cloudflare whose credentials it holds.
    #[serde(rename = "objectID")]
    pub object_id: String,
    /// Keyed hash of the value. Nobody who cannot read the API token's Secret can tell the value by it.
    pub fingerprint: String,
}
