//! One adapter a kind, and the registry that lists them.
//!
//! A new kind is one module here and one line in [`kinds`]; `docs/adding-a-kind.md` walks through it.

pub mod account;
pub mod dns;
pub mod dns_record;
pub mod tunnel;
pub mod tunnel_configuration;
pub mod zone;

use kflare_engine::{Kinds, erase, kind::Kind};

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
        erase(tunnel::TunnelAdapter::new()),
        erase(tunnel_configuration::ConfigurationAdapter::new()),
    ]
    .into_iter()
}
