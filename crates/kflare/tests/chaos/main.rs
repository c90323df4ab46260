//! kflare under chaos: its real process, killed with `kill -9` at every call and every write, between a real API server and
//! the simulator; API servers, etcd, watches, simulators and leases that fail while it works.
//!
//! Each story has a tenant of its own: a namespace, a simulated account and a slice of the cluster in which nobody else
//! seems to live, so that many controllers run side by side on one control plane. `make chaos` (`KFLARE_CHAOS=full`) plays
//! the long forms.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod harness;

mod crash_points;
mod leaders;
mod outages;
mod story;
mod watches;
