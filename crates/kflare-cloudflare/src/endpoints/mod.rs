//! Typed endpoints, one module for each part of the API.
//!
//! The functions only name path, query and shape; budget, retries and errors are the client's. What Cloudflare may
//! leave out or send as null is optional or has a default here, so that one odd object does not spoil a list.

pub mod accounts;
pub mod d1;
pub mod dns;
pub mod kv;
pub mod lists;
pub mod managed_headers;
pub mod queues;
pub mod r2;
pub mod rulesets;
pub mod tunnels;
pub mod worker_routes;
pub mod workers;
pub mod zones;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// Reads null as the default value.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a whole number that may be written with a point; null and anything else are `None`.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a number that is too large is none that Cloudflare sends"
)]
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let value: Option<serde_json::Value> = Option::deserialize(deserializer)?;
    Ok(value.and_then(|value| value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))))
}

/// Reads an RFC 3339 time; null, an empty text and anything that is no time are `None`.
fn lenient_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let value: Option<serde_json::Value> = Option::deserialize(deserializer)?;
    Ok(value
        .as_ref()
        .and_then(serde_json::Value::as_str)
        .and_then(|text| text.parse().ok()))
}
