//! The simulator through its router, in process, on a paused clock.

#[cfg(test)]
mod access;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod control;
#[cfg(test)]
mod description;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod ip_lists;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod managed_headers;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod records;
#[cfg(test)]
mod rulesets;
#[cfg(test)]
mod rulesets_access;
#[cfg(test)]
mod rulesets_bodies;
#[cfg(test)]
mod rulesets_control;
#[cfg(test)]
mod rulesets_plans;
#[cfg(test)]
mod rulesets_refusals;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod stores;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tunnels;
#[cfg(test)]
mod worker_routes;
#[cfg(test)]
mod workers;
#[cfg(test)]
mod zones;
