//! `DNSRecord`: one record of a zone.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    common::{CommonStatus, ResourceRef},
    record_type::RecordType,
    schema::{forbids, immutable, requires, tidy},
};

/// What the user wants of a DNS record.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "DNSRecord",
    plural = "dnsrecords",
    shortname = "cfrecord",
    category = "kflare",
    namespaced,
    status = "DNSRecordStatus",
    derive = "PartialEq",
    doc = "One DNS record of a zone. Records of one name and type that differ in their value, such as several MX records, are one resource each.",
    printcolumn(name = "DNS Name", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Content", type_ = "string", json_path = ".spec.content", priority = 1),
    printcolumn(
        name = "Record ID",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.recordID"
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
    validation = one_value(),
    validation = data_types_take_data(),
    validation = other_types_take_content(),
    validation = tunnel_needs_cname(),
    validation = a_needs_ipv4(),
    validation = aaaa_needs_ipv6(),
    validation = proxied_needs_a_proxiable_type(),
    validation = flattening_needs_cname()
)]
pub struct DNSRecordSpec {
    /// The `Zone` that the record belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.zoneRef"))]
    pub zone_ref: ResourceRef,
    /// Name of the record, such as `www`, `www.example.com`, `*` or `@` for the zone itself. Upper case, Unicode and a
    /// final dot are allowed. Cannot be changed.
    #[schemars(length(min = 1, max = 254))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// Type of the record. Cannot be changed.
    #[serde(rename = "type")]
    #[x_kube(validation = immutable("spec.type"))]
    pub record_type: RecordType,
    /// Value of A, AAAA, CNAME, MX, NS, OPENPGPKEY, PTR and TXT records. TXT that begins with a double quote is read as in
    /// a zone file, cut into strings as there; any other TXT is taken as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub content: Option<String>,
    /// Value of all other types, as Cloudflare's fields of the type: for CAA `flags`, `tag` and `value`, for SRV
    /// `priority`, `weight`, `port` and `target`, and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "data_schema")]
    pub data: Option<BTreeMap<String, Value>>,
    /// The `Tunnel` that a CNAME points to: its content becomes `<tunnel id>.cfargotunnel.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_ref: Option<ResourceRef>,
    /// Time to live in seconds: 30 to 86400, or 1 for automatic. Below 60 only in Enterprise zones. Unset: automatic.
    /// Proxied records are always automatic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ttl_in_range())]
    pub ttl: Option<i32>,
    /// Whether traffic goes through Cloudflare (A, AAAA and CNAME only). Unset: `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<bool>,
    /// Preference of MX and URI records, 0 to 65535, lower first. Cloudflare takes no new one without it; unset, that of one which
    /// exists is left alone. Other types do not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "priority_schema")]
    pub priority: Option<u16>,
    /// A note in Cloudflare: one line of at most 100 characters in Free zones and 500 in others. Unset: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    #[x_kube(validation = comment_on_one_line())]
    pub comment: Option<String>,
    /// Tags in Cloudflare, as `name:value` (not in Free zones). Unset: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 133)))]
    pub tags: Vec<String>,
    /// Settings of the single record. Those not set are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<RecordSettings>,
}

/// Settings of a single record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = one_address_family())]
pub struct RecordSettings {
    /// Answer with the addresses of the target instead of the CNAME (CNAME only, not in Free zones).
    #[serde(default, rename = "flattenCNAME", skip_serializing_if = "Option::is_none")]
    pub flatten_cname: Option<bool>,
    /// Answer proxied records with IPv4 addresses only.
    #[serde(default, rename = "ipv4Only", skip_serializing_if = "Option::is_none")]
    pub ipv4_only: Option<bool>,
    /// Answer proxied records with IPv6 addresses only.
    #[serde(default, rename = "ipv6Only", skip_serializing_if = "Option::is_none")]
    pub ipv6_only: Option<bool>,
}

/// What kflare found out about the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct DNSRecordStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The record as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<DNSRecordMetadata>,
}

/// The record as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct DNSRecordMetadata {
    /// Id of the record: 32 hexadecimal digits.
    #[serde(default, rename = "recordID", skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// Id of the zone that holds the record: 32 hexadecimal digits.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// Full name of the record, in lower case and Punycode, without a final dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether Cloudflare can proxy the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxiable: Option<bool>,
}

/// `data` has other fields for each type, and some are a number or text: its fields are checked by the controller.
fn data_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 16,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn priority_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535})
}

/// The types that `wanted` picks, as a list in CEL.
fn cel_types(wanted: fn(RecordType) -> bool) -> String {
    let types: Vec<String> = RecordType::ALL
        .iter()
        .filter(|it| wanted(**it))
        .map(|it| format!("'{it}'"))
        .collect();
    format!("[{}]", types.join(", "))
}

fn one_value() -> Rule {
    Rule::new("[has(self.content), has(self.data), has(self.tunnelRef)].exists_one(given, given)")
        .message("set exactly one of spec.content, spec.data and spec.tunnelRef")
}

fn data_types_take_data() -> Rule {
    forbids(
        format!(
            "!has(self.content) || !(self.type in {})",
            cel_types(RecordType::is_data)
        ),
        ".content",
        "spec.content does not fit spec.type: give the value of this type as fields in spec.data, such as \
         data: {flags: 0, tag: issue, value: ca.example.net} for CAA",
    )
}

fn other_types_take_content() -> Rule {
    forbids(
        format!("!has(self.data) || self.type in {}", cel_types(RecordType::is_data)),
        ".data",
        "spec.data does not fit spec.type: give the value of this type as text in spec.content",
    )
}

fn tunnel_needs_cname() -> Rule {
    forbids(
        "!has(self.tunnelRef) || self.type == 'CNAME'".into(),
        ".tunnelRef",
        "spec.tunnelRef needs spec.type CNAME: a tunnel has a host name, not an address",
    )
}

fn a_needs_ipv4() -> Rule {
    requires(
        "self.type != 'A' || !has(self.content) || (isIP(self.content) && ip(self.content).family() == 4)".into(),
        ".content",
        "spec.content of an A record must be an IPv4 address such as 192.0.2.1: use type AAAA for IPv6 and type CNAME \
         for a host name",
    )
}

fn aaaa_needs_ipv6() -> Rule {
    requires(
        "self.type != 'AAAA' || !has(self.content) || (isIP(self.content) && ip(self.content).family() == 6)".into(),
        ".content",
        "spec.content of an AAAA record must be an IPv6 address such as 2001:db8::1: use type A for IPv4 and type CNAME \
         for a host name",
    )
}

fn proxied_needs_a_proxiable_type() -> Rule {
    forbids(
        format!(
            "!has(self.proxied) || !self.proxied || self.type in {}",
            cel_types(RecordType::is_proxiable)
        ),
        ".proxied",
        "spec.proxied is possible for A, AAAA and CNAME records only: leave it out or set it to false",
    )
}

fn flattening_needs_cname() -> Rule {
    forbids(
        "!has(self.settings) || !has(self.settings.flattenCNAME) || !self.settings.flattenCNAME || self.type == 'CNAME'"
            .into(),
        ".settings.flattenCNAME",
        "spec.settings.flattenCNAME is possible for CNAME records only: leave it out or set it to false",
    )
}

fn one_address_family() -> Rule {
    Rule::new("!(has(self.ipv4Only) && self.ipv4Only && has(self.ipv6Only) && self.ipv6Only)").message(
        "spec.settings.ipv4Only and spec.settings.ipv6Only exclude each other: set at most one of them to true",
    )
}

fn ttl_in_range() -> Rule {
    Rule::new("self == 1 || (self >= 30 && self <= 86400)")
        .message("spec.ttl must be 1 (automatic) or 30 to 86400 seconds")
}

fn comment_on_one_line() -> Rule {
    Rule::new(r"!self.contains('\n') && !self.contains('\r')")
        .message("spec.comment must be one line: take the line breaks out")
}
