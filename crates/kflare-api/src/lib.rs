//! The custom resource types of `kflare.dev/v1alpha1`: data and schema, no I/O and no Kubernetes client.
//!
//! One module a kind. What the kinds have in common is in [`common`]; the names that kflare puts on objects are in
//! [`names`]. The doc comments of the fields are the descriptions that `kubectl explain` shows.

#![allow(clippy::duplicated_attributes, reason = "each printer column has the same keys")]

pub mod account;
pub mod common;
pub mod dns_record;
pub mod names;
pub mod record_type;
mod schema;
pub mod tunnel;
pub mod tunnel_configuration;
pub mod zone;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use account::CloudflareAccount;
pub use dns_record::DNSRecord;
pub use record_type::RecordType;
pub use tunnel::Tunnel;
pub use tunnel_configuration::TunnelConfiguration;
pub use zone::Zone;

/// The definition of every kind, parents before children. The order does not change from run to run.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        CloudflareAccount::crd(),
        Zone::crd(),
        DNSRecord::crd(),
        Tunnel::crd(),
        TunnelConfiguration::crd(),
    ]
}
