//! Managed transforms of a zone: changes of headers that Cloudflare offers ready made.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::{Client, Error, Request};

/// The managed transforms that a zone has, those that are off too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Transforms {
    /// Those of requests to the origin.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub managed_request_headers: Vec<Transform>,
    /// Those of responses to visitors.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub managed_response_headers: Vec<Transform>,
}

/// A managed transform.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Transform {
    /// The id, such as `add_security_headers`.
    pub id: String,
    /// Whether it is on.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub enabled: bool,
    /// Whether one that is on keeps it from being turned on.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub has_conflict: bool,
    /// Which ones.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub conflicts_with: Vec<String>,
}

/// Transforms to turn on or off. What is not named keeps its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Those of requests to the origin.
    pub managed_request_headers: Vec<Change>,
    /// Those of responses to visitors.
    pub managed_response_headers: Vec<Change>,
}

/// Turns a transform on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The id.
    pub id: String,
    /// Whether it is to be on.
    pub enabled: bool,
}

/// The managed transforms of a zone.
pub const TRANSFORMS: &str = "/zones/{zone_id}/managed_headers";

/// Every managed transform of a zone.
pub async fn get(client: &Client, zone_id: &str) -> Result<Transforms, Error> {
    client.call(Request::get(TRANSFORMS, &[zone_id])).await
}

/// Turns some on or off, all or none of them, and gives what is then. An id that the zone does not have is 404.
pub async fn patch(client: &Client, zone_id: &str, changes: &Changes) -> Result<Transforms, Error> {
    client.call(Request::patch(TRANSFORMS, &[zone_id]).json(changes)).await
}

/// Turns all of them off.
pub async fn delete(client: &Client, zone_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(TRANSFORMS, &[zone_id]))
        .await
        .map(drop)
}
