//! The custom resource types of `kflare.dev/v1alpha1`: data and schema, no I/O and no Kubernetes client.
//!
//! One module a kind. What the kinds have in common is in [`common`]; the names that kflare puts on objects are in
//! [`names`]. The doc comments of the fields are the descriptions that `kubectl explain` shows.

#![allow(clippy::duplicated_attributes, reason = "each printer column has the same keys")]

pub mod account;
pub mod common;
pub mod d1_database;
pub mod dns_record;
pub mod ip_list;
pub mod kv_namespace;
pub mod location;
pub mod managed_transform;
pub mod names;
pub mod queue;
pub mod r2_bucket;
pub mod r2_rules;
pub mod record_type;
pub mod rules;
mod schema;
pub mod tunnel;
pub mod tunnel_configuration;
pub mod worker_binding;
pub mod worker_migration;
pub mod worker_module;
pub mod worker_route;
pub mod worker_script;
pub mod worker_settings;
pub mod zone;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use account::CloudflareAccount;
pub use d1_database::D1Database;
pub use dns_record::DNSRecord;
pub use ip_list::IPList;
pub use kv_namespace::KVNamespace;
pub use managed_transform::ManagedTransform;
pub use queue::Queue;
pub use r2_bucket::R2Bucket;
pub use record_type::RecordType;
pub use rules::{
    cache::CacheRule, configuration::ConfigurationRule, managed_ruleset::ManagedRuleset, origin::OriginRule,
    rate_limit::RateLimitRule, redirect::RedirectRule, transform::TransformRule, waf_custom::WAFCustomRule,
};
pub use tunnel::Tunnel;
pub use tunnel_configuration::TunnelConfiguration;
pub use worker_route::WorkerRoute;
pub use worker_script::WorkerScript;
pub use zone::Zone;

/// The definition of every kind, parents before children. The order does not change from run to run.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        CloudflareAccount::crd(),
        Zone::crd(),
        DNSRecord::crd(),
        KVNamespace::crd(),
        R2Bucket::crd(),
        D1Database::crd(),
        Queue::crd(),
        WAFCustomRule::crd(),
        RateLimitRule::crd(),
        ManagedRuleset::crd(),
        TransformRule::crd(),
        RedirectRule::crd(),
        CacheRule::crd(),
        ConfigurationRule::crd(),
        OriginRule::crd(),
        ManagedTransform::crd(),
        IPList::crd(),
        WorkerScript::crd(),
        WorkerRoute::crd(),
        Tunnel::crd(),
        TunnelConfiguration::crd(),
    ]
}
