//! A simulator of the Cloudflare v4 API.
//!
//! [`Simulator`] answers as Cloudflare does for the calls it models, says 501 to those it knows but does not model, and
//! refuses everything else as Cloudflare does. It runs as a `tower` service in one process with its callers, on the real
//! clock or on tokio's paused one, or on a socket ([`serve`]). Where Cloudflare's behaviour is not known, the code says
//! "unproven" next to the guess.
//!
//! An area of the API is one module under `areas`: a table of routes and their handlers.

mod areas;
mod auth;
mod budget;
mod calls;
mod clock;
mod config;
mod control;
mod envelope;
mod exchange;
mod fault;
mod foreign;
mod ids;
mod paging;
mod persist;
mod plan;
mod route;
mod seed;
mod serve;
mod service;
mod simulator;
mod state;
mod time;

pub use areas::dns::RecordType;
pub use areas::rulesets::{Phase, RulesetKind, RulesetSeed};
pub use areas::stores::seed::{BucketSeed, DatabaseSeed, KvNamespaceSeed, QueueSeed};
pub use areas::tunnels::TunnelSeed;
pub use budget::RateLimit;
pub use calls::{CallRecord, Delivery, Effect};
pub use clock::{Clock, SystemClock, VirtualClock};
pub use config::{
    Activation, BindingOrder, BulkOperations, CheckOutcome, DnsErrorForm, Dropped, FlagsForm, Latency, LifecycleForm,
    ListItemForm, ListWrites, LocationForm, ParamsForm, QueryStringForm, Quirks, RuleLoggingForm, SettingsForm,
    SimConfig, TxtForm,
};
pub use envelope::{ApiError, ErrorSource, Refusal};
pub use fault::{Fault, FaultError, FaultMatch, FaultSpec, FaultState, Totals};
pub use foreign::ForeignCall;
pub use persist::StateError;
pub use plan::Plan;
pub use seed::{
    AccountSeed, BindableSeed, ListItemSeed, ListSeed, ModuleSeed, RecordSeed, Seed, SeedError, Seeded, TokenSeed,
    UserSeed, WorkerRouteSeed, WorkerSeed, ZoneSeed,
};
pub use serve::{ServeOptions, SimError, SimOptions, TlsFiles, run, serve};
pub use service::{ConnectionReset, SimService};
pub use simulator::Simulator;
pub use state::{
    AccountType, Area, ConfigSource, Grant, Level, ListKind, Permission, Scope, Subscription, TokenStatus,
    UnknownPermission, ZoneStatus, ZoneType,
};

/// Method and path template of every modelled route.
pub fn modelled_routes() -> Vec<(&'static str, &'static str)> {
    route::routes()
        .iter()
        .map(|route| (route.method, route.template))
        .collect()
}
