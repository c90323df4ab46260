//! kflare's promises, kept against a real API server: the engine with its generated rights on one side of the resources,
//! users, kubectl and other tools on the other, the simulator instead of Cloudflare.
//!
//! All tests but a few share one control plane, one engine and one simulated cloud; each has a namespace, an account and a
//! domain of its own. Tests that stop or restart things start a control plane of their own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, wherever it does"
)]

mod harness;

mod absent_crd;
mod adoption;
mod caution;
mod conditions;
mod deletion;
mod drift;
mod everything_goes;
mod gitops;
mod in_use;
mod leaders;
mod malformed;
mod outages;
mod ownership;
mod references;
mod restart;
mod restraint;
mod rights;
mod schema;
mod tokens;
mod tunnel_secrets;
mod view;
