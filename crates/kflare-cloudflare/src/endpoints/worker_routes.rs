//! Routes of a zone to Workers.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::{Client, Error, Paging, Request};

const ROUTES: &str = "/zones/{zone_id}/workers/routes";
const ROUTE: &str = "/zones/{zone_id}/workers/routes/{route_id}";

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Route {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// Which URLs.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub pattern: String,
    /// The name of the Worker that answers them. None: no Worker does.
    #[serde(default)]
    pub script: Option<String>,
}

/// What a route is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WantedRoute {
    /// Which URLs.
    pub pattern: String,
    /// The name of the Worker that answers them. None: no Worker does, though a wider route may say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

/// Every route of a zone.
pub async fn list(client: &Client, zone_id: &str) -> Result<Vec<Route>, Error> {
    client
        .list_pages(Request::get(ROUTES, &[zone_id]), Paging::Single)
        .await
}

/// One route.
pub async fn get(client: &Client, zone_id: &str, id: &str) -> Result<Route, Error> {
    client.call(Request::get(ROUTE, &[zone_id, id])).await
}

/// Makes a route.
pub async fn create(client: &Client, zone_id: &str, route: &WantedRoute) -> Result<Route, Error> {
    client.call(Request::post(ROUTES, &[zone_id]).json(route)).await
}

/// Replaces a route.
pub async fn update(client: &Client, zone_id: &str, id: &str, route: &WantedRoute) -> Result<Route, Error> {
    client.call(Request::put(ROUTE, &[zone_id, id]).json(route)).await
}

/// Deletes a route.
pub async fn delete(client: &Client, zone_id: &str, id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(ROUTE, &[zone_id, id]))
        .await
        .map(drop)
}
