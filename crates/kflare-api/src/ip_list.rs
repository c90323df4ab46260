//! `IPList`: a custom list of addresses in an account.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{immutable, tidy},
};

/// What the user wants of a list.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "IPList",
    plural = "iplists",
    shortname = "cflist",
    category = "kflare",
    namespaced,
    status = "IPListStatus",
    derive = "PartialEq",
    doc = "A list of IP addresses and networks in an account. Rules use it as $<spec.name>. kflare owns the list with all its items: items that are not in spec.items are removed. The list is deleted once no rule uses it.",
    printcolumn(name = "List", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Items",
        type_ = "integer",
        json_path = ".status.cloudflareMetadata.itemCount"
    ),
    printcolumn(name = "List ID", type_ = "string", json_path = ".status.cloudflareMetadata.listID"),
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
pub struct IPListSpec {
    /// The `CloudflareAccount` that holds the list. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Name of the list: letters, digits and `_`. Rule expressions use it as `$<name>`. Cannot be changed.
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-zA-Z0-9_]{1,50}$"))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// What the list is for. Unset: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// The addresses and networks of the list, in any order: at most 10,000, which is what all lists of an account that has no
    /// Enterprise zone may hold together. Unset: the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["ip".into()]))]
    pub items: Vec<IPListItem>,
}

/// One address or network of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct IPListItem {
    /// An IPv4 address, an IPv4 network from /2 to /32, an IPv6 address, or an IPv6 network from /4 to /64. Cloudflare clears
    /// host bits: `192.0.2.7/24` is `192.0.2.0/24`.
    #[schemars(length(min = 2, max = 43))]
    #[x_kube(validation = is_address())]
    pub ip: String,
    /// A note in Cloudflare. Unset: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub comment: Option<String>,
}

/// What kflare found out about the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct IPListStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The list as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<IPListMetadata>,
}

/// The list as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct IPListMetadata {
    /// Id of the list: 32 hexadecimal digits.
    #[serde(default, rename = "listID", skip_serializing_if = "Option::is_none")]
    pub list_id: Option<String>,
    /// How many items the list has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_count: Option<i64>,
}

/// Cheap on purpose: it runs for each of 10,000 items.
fn is_address() -> Rule {
    Rule::new(
        "isIP(self) || (isCIDR(self) && (cidr(self).ip().family() == 4 ? cidr(self).prefixLength() >= 2 \
         : cidr(self).prefixLength() >= 4 && (cidr(self).prefixLength() <= 64 || cidr(self).prefixLength() == 128)))",
    )
    .message(
        "spec.items.ip must be an IPv4 address, an IPv4 network from /2 to /32, an IPv6 address, or an IPv6 network from /4 to \
         /64, such as 192.0.2.1 or 2001:db8::/32",
    )
}
