//! Queues.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::{Client, Error, Paging, Request};

/// A queue. What sends to it and takes from it is left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Queue {
    /// The id: 32 hexadecimal digits.
    pub queue_id: String,
    /// The name, unique in its account.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub queue_name: String,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_on: Option<Timestamp>,
    /// When it was changed last, to the microsecond, as Cloudflare writes it.
    #[serde(default)]
    pub modified_on: Option<String>,
    /// Where it may keep messages: `eu`, `us` or `fedramp`. Left out where there is no restriction.
    #[serde(default)]
    pub jurisdiction: Option<String>,
    /// `delivery_delay` and `message_retention_period` in seconds, `delivery_paused`, and what Cloudflare adds one day. Left out
    /// by lists, as far as anybody has seen.
    #[serde(default, deserialize_with = "settings")]
    pub settings: Map<String, Value>,
}

/// Reads settings. Cloudflare's description lets numbers have a point; here whole ones are whole. Null is none.
fn settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let settings: Map<String, Value> = super::null_as_default(deserializer)?;
    let settings = settings.into_iter().filter(|(_, value)| !value.is_null());
    Ok(settings.map(|(name, value)| (name, whole(value))).collect())
}

fn whole(value: Value) -> Value {
    match super::whole_number(&value) {
        Ok(Some(number)) if value.as_f64().is_some_and(|it| it.fract() == 0.0) => json!(number),
        _ => value,
    }
}

const QUEUES: &str = "/accounts/{account_id}/queues";
const QUEUE: &str = "/accounts/{account_id}/queues/{queue_id}";

/// Rows of a page of queues; that is what the live API gives unasked.
const PER_PAGE: u32 = 100;

/// Every queue of an account.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<Queue>, Error> {
    client
        .list_pages(Request::get(QUEUES, &[account_id]), Paging::Page { per_page: PER_PAGE })
        .await
}

/// The queue of exactly this name, in the shape of lists. Cloudflare's own client filters by name; whether longer names fit is
/// not known.
pub async fn find_by_name(client: &Client, account_id: &str, name: &str) -> Result<Vec<Queue>, Error> {
    let request = Request::get(QUEUES, &[account_id]).query("name", name);
    let mut found: Vec<Queue> = client.list_pages(request, Paging::Page { per_page: PER_PAGE }).await?;
    found.retain(|queue| queue.queue_name == name);
    Ok(found)
}

/// One queue. A missing one is 404 with code 11000.
pub async fn get(client: &Client, account_id: &str, queue_id: &str) -> Result<Queue, Error> {
    client.call(Request::get(QUEUE, &[account_id, queue_id])).await
}

/// Makes a queue: `queue_name`, and `jurisdiction` and `settings` where it is to have some. Cloudflare documents no
/// `delivery_paused` here. A name that is taken is 409 with code 11009.
pub async fn create(client: &Client, account_id: &str, body: &Value) -> Result<Queue, Error> {
    client.call(Request::post(QUEUES, &[account_id]).json(body)).await
}

/// Changes a queue: `queue_name` and `settings`, one of them or both. Send all settings: that others stay as they are is not
/// proven.
pub async fn patch(client: &Client, account_id: &str, queue_id: &str, body: &Value) -> Result<Queue, Error> {
    client
        .call(Request::patch(QUEUE, &[account_id, queue_id]).json(body))
        .await
}

/// Deletes a queue with every message in it.
pub async fn delete(client: &Client, account_id: &str, queue_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(QUEUE, &[account_id, queue_id]))
        .await
        .map(drop)
}
