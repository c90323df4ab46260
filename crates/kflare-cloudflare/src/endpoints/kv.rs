//! Workers KV namespaces.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::{Client, Error, Paging, Request};

/// A namespace. Cloudflare says neither when it was made nor when it was changed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Namespace {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The title, unique in its account.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Where it may store data: `eu`, `us` or `fedramp`. Left out where there is no restriction.
    #[serde(default)]
    pub jurisdiction: Option<String>,
}

const NAMESPACES: &str = "/accounts/{account_id}/storage/kv/namespaces";
const NAMESPACE: &str = "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}";

/// Rows of a page of namespaces; Cloudflare documents 1,000 as the most.
const PER_PAGE: u32 = 1_000;

/// Every namespace of an account. They come by id, which is drawn at random: a new one can push another over the boundary
/// of two pages, which [`Client::list_pages`] notices.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<Namespace>, Error> {
    client
        .list_pages(
            Request::get(NAMESPACES, &[account_id]),
            Paging::Page { per_page: PER_PAGE },
        )
        .await
}

/// One namespace. A missing one is 404 with code 10013.
pub async fn get(client: &Client, account_id: &str, namespace_id: &str) -> Result<Namespace, Error> {
    client.call(Request::get(NAMESPACE, &[account_id, namespace_id])).await
}

/// Makes a namespace: `title`, and `jurisdiction` where it is to have one. A title that is taken is 400 with code 10014.
pub async fn create(client: &Client, account_id: &str, body: &Value) -> Result<Namespace, Error> {
    client.call(Request::post(NAMESPACES, &[account_id]).json(body)).await
}

/// Gives a namespace another title. What is stored in it stays. Answers with the renamed namespace (seen live), or with
/// nothing (documented).
pub async fn rename(
    client: &Client,
    account_id: &str,
    namespace_id: &str,
    title: &str,
) -> Result<Option<Namespace>, Error> {
    let request = Request::put(NAMESPACE, &[account_id, namespace_id]).json(&json!({ "title": title }));
    client.call(request).await
}

/// Deletes a namespace with everything in it.
pub async fn delete(client: &Client, account_id: &str, namespace_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(NAMESPACE, &[account_id, namespace_id]))
        .await
        .map(drop)
}
