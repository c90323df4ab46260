//! The generic reconcile engine. It knows no kind by name and no Cloudflare path.
//!
//! | module | holds |
//! | --- | --- |
//! | [`kind`], [`adapter`], `kinds` | what the engine asks of a kind, and the registry of them |
//! | [`plan`], [`decide`], [`policy`], [`annotations`], [`reason`], [`occurrence`], [`errors`] | the pure core: values in, values out |
//! | [`object`], [`compact`], [`intent`], [`inputs`], [`index`], [`resolve`] | what is known of the cluster, and what follows from it |
//! | [`collections`], [`observe`], [`batch`] | reading and writing Cloudflare |
//! | [`queue`], [`contest`], [`refusals`], [`clock`] | order, restraint, time |
//! | `pass`, `deletion`, `sweep`, `report` | one pass over one resource; drift checks; status and Events |
//! | [`cluster`], [`credentials`], [`lease`], `watch`, `limits` | the API server |
//! | [`yields`] | Secrets that resources yield |
//! | [`engine`] | the run loop |
//! | [`offline`] | plans for manifests, without a cluster |
//! | [`mutation`] | engines broken on purpose, for tests of the tests |

pub mod adapter;
mod aliases;
pub mod annotations;
pub mod batch;
pub mod clock;
pub mod cluster;
pub mod collections;
pub mod compact;
pub mod contest;
mod context;
pub mod credentials;
pub mod decide;
mod deletion;
pub mod digest;
pub mod engine;
pub mod errors;
pub mod index;
pub mod inputs;
pub mod intent;
pub mod kind;
mod kinds;
pub mod lease;
mod limits;
pub mod metrics;
pub mod mutation;
pub mod object;
pub mod observe;
pub mod occurrence;
pub mod offline;
pub mod operations;
pub mod order;
mod pass;
pub mod plan;
pub mod policy;
pub mod queue;
pub mod reason;
pub mod refusals;
mod report;
pub mod resolve;
mod status;
mod sweep;
pub mod vanished;
mod watch;
mod yields;

pub use adapter::{Adapter, erase};
pub use context::Settings;
pub use engine::{Engine, EngineError, EngineOptions, Readiness};
pub use inputs::{Input, Inputs};
pub use kind::{
    Deleted, Desired, Kind, KindDescriptor, Listing, NaturalKey, Packed, Parents, Position, Reference, Remote, Site,
    SpecError, Stored,
};
pub use kinds::Kinds;
pub use occurrence::Occurrence;
pub use plan::{Change, Plan};
pub use reason::Reason;
pub use watch::WATCH_TIMEOUT;
pub use yields::Yield;
