//! The Cloudflare v4 API client.
//!
//! A [`Pool`] is made once per process. It hands out a [`Client`] for each API token and holds what all of them
//! share: one call [budget](PoolOptions::budget_share) per credential, the order in which waiting calls leave
//! ([`Lane`]), the gate that closes after a 429, and the number of calls in flight. Below the pool is one seam, the
//! [`Transport`]: a `tower` service that makes a single HTTP exchange. Production uses [`reqwest_transport`]; tests
//! and the simulation plug in a service of their own.
//!
//! What leaves through a [`Client`], in order:
//!
//! 1. the write gates are asked (anything but a GET);
//! 2. the call waits for its turn in the budget of its credential, by lane;
//! 3. the write gates are asked again, the token is attached, the exchange is made and timed;
//! 4. the answer is read into the `result` of Cloudflare's envelope or into an [`Error`];
//! 5. a GET that failed for a passing reason is tried again, at most three times in all.
//!
//! Everything that measures time uses `tokio::time`, so the whole client runs on tokio's paused clock.
//!
//! ```
//! use kflare_cloudflare::{Client, Error, Lane, endpoints::dns};
//!
//! async fn count_records(client: &Client, zone_id: &str) -> Result<usize, Error> {
//!     let client = client.in_lane(Lane::DriftCheck);
//!     Ok(dns::list(&client, zone_id).await?.len())
//! }
//! ```

mod answer;
mod api_error;
mod bucket;
mod client;
mod clock;
mod credential;
pub mod endpoints;
mod error;
mod exchange;
mod form;
mod lane;
mod message;
mod metrics;
mod options;
mod paging;
mod pool;
mod registry;
mod request;
mod reqwest_transport;
mod retry;
mod scheduler;
mod text;
mod transport;
mod write_gate;

pub use api_error::ApiError;
pub use client::{Client, Reply, Writes};
pub use clock::{SystemWallClock, WallClock};
pub use credential::{CredentialId, TokenFault};
pub use error::{DecodeError, DecodeFault, Error, Incompleteness, Limit, Outcome};
pub use form::Form;
pub use lane::Lane;
pub use message::Message;
pub use metrics::Metrics;
pub use options::{BaseUrl, InvalidBaseUrl, InvalidShare, PoolOptions, Share};
pub use paging::Paging;
pub use pool::Pool;
pub use request::{Request, RequestFault};
pub use reqwest_transport::{BuildError, MAX_BODY_BYTES, TransportOptions, reqwest_transport};
pub use transport::{BoxError, Transport, TransportError, TransportErrorKind};
pub use write_gate::WriteGate;
