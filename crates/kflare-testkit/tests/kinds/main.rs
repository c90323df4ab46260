//! What the kinds do, with the whole engine on a virtual clock: every test is one world with its own API server and its
//! own Cloudflare, and rules out one kind of fault.

#![allow(
    clippy::needless_pass_by_value,
    reason = "manifests are made where they are handed over"
)]

#[cfg(test)]
mod absence;
#[cfg(test)]
mod account_objects;
#[cfg(test)]
mod adoption;
#[cfg(test)]
mod annotations;
#[cfg(test)]
mod batches;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod contests;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod deletion_order;
#[cfg(test)]
mod drift;
#[cfg(test)]
mod first_install;
mod found_by_stories;
#[cfg(test)]
mod interrupted_creates;
#[cfg(test)]
mod ip_lists;
#[cfg(test)]
mod leadership;
#[cfg(test)]
mod list_stories;
#[cfg(test)]
mod lost_replies;
#[cfg(test)]
mod managed_transforms;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod namespaces;
#[cfg(test)]
mod observing;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod pausing;
#[cfg(test)]
mod reasons;
#[cfg(test)]
mod record_types;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod rules_entry_points;
#[cfg(test)]
mod rules_lists;
#[cfg(test)]
mod rules_order;
#[cfg(test)]
mod rules_refusals;
#[cfg(test)]
mod rules_stage;
#[cfg(test)]
mod secrecy;
#[cfg(test)]
mod single_fields;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod status_writes;
#[cfg(test)]
mod throttling;
#[cfg(test)]
mod tunnel_configurations;
#[cfg(test)]
mod tunnel_secrets;
#[cfg(test)]
mod tunnels;
#[cfg(test)]
mod two_clusters;
#[cfg(test)]
mod vanished;
#[cfg(test)]
mod watches;
#[cfg(test)]
mod worker_inputs;
#[cfg(test)]
mod worker_routes;
#[cfg(test)]
mod worker_stage;
#[cfg(test)]
mod workers;
#[cfg(test)]
mod zone_adoption;
#[cfg(test)]
mod zones;
