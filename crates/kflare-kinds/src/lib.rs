//! One adapter a kind, and the registry that lists them.
//!
//! A new kind is one module here and one line in [`kinds`]; `docs/adding-a-kind.md` walks through it.

pub mod account;
pub mod account_objects;
pub mod dns;
pub mod dns_record;
pub mod ip_list;
mod json;
pub mod managed_transform;
pub mod network;
pub mod reasons;
pub mod rules;
pub mod tunnel;
pub mod tunnel_configuration;
pub mod workers;
pub mod zone;

use kflare_engine::{Kinds, erase, kind::Kind};

use rules::{
    RuleAdapter, cache::Cache, configuration::Configuration, managed_ruleset::Managed, origin::Origin,
    rate_limit::RateLimit, redirect::Redirect, transform::Transform, waf_custom::WafCustom,
};

/// All kinds.
pub fn kinds() -> Kinds {
    Kinds::new(all())
}

/// The kinds of these names only (`--kinds`), with a clear error for a name that is none.
pub fn some_kinds(names: &[String]) -> Result<Kinds, UnknownKind> {
    let known: Vec<String> = all().map(|kind| kind.descriptor().kind.to_string()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(UnknownKind {
            name: name.clone(),
            known: known.join(", "),
        });
    }
    Ok(Kinds::new(all().filter(|kind| {
        names.iter().any(|name| *name == kind.descriptor().kind)
    })))
}

/// A name that is no kind.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is not a kind of kflare; the kinds are {known}")]
pub struct UnknownKind {
    name: String,
    known: String,
}

fn all() -> impl Iterator<Item = Box<dyn Kind>> {
    [
        erase(account::AccountAdapter::new()),
        erase(zone::ZoneAdapter::new()),
        erase(dns_record::RecordAdapter::new()),
        erase(account_objects::kv::NamespaceAdapter::new()),
        erase(account_objects::r2::BucketAdapter::new()),
        erase(account_objects::d1::DatabaseAdapter::new()),
        erase(account_objects::queue::QueueAdapter::new()),
        erase(RuleAdapter::<WafCustom>::new()),
        erase(RuleAdapter::<RateLimit>::new()),
        erase(RuleAdapter::<Managed>::new().with_conflicts(reasons::RULESET_CONFLICT)),
        erase(RuleAdapter::<Transform>::new()),
        erase(RuleAdapter::<Redirect>::new()),
        erase(RuleAdapter::<Cache>::new()),
        erase(RuleAdapter::<Configuration>::new()),
        erase(RuleAdapter::<Origin>::new()),
        erase(managed_transform::ManagedTransformAdapter::new()),
        erase(ip_list::IPListAdapter::new()),
        erase(workers::script::ScriptAdapter::new()),
        erase(workers::route::RouteAdapter::new()),
        erase(tunnel::TunnelAdapter::new()),
        erase(tunnel_configuration::ConfigurationAdapter::new()),
    ]
    .into_iter()
}
