//! D1 databases.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{Client, Error, Paging, Request};

/// A database. Cloudflare shows it in three shapes: as created, alone, and in a list, which has neither region nor
/// replication. The size is left out: it lags and differs between the three (seen live).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Database {
    /// The id: a UUID.
    pub uuid: String,
    /// The name, unique in its account.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_at: Option<Timestamp>,
    /// The version of the storage engine, such as `production`.
    #[serde(default)]
    pub version: Option<String>,
    /// Where it was made; in the answer to a create.
    #[serde(default)]
    pub created_in_region: Option<String>,
    /// Where it runs; in an answer about it alone.
    #[serde(default)]
    pub running_in_region: Option<String>,
    /// Where it may run: `eu`, `us` or `fedramp`; null where there is no restriction.
    #[serde(default)]
    pub jurisdiction: Option<String>,
    /// Its replicas; not in lists.
    #[serde(default)]
    pub read_replication: Option<ReadReplication>,
}

impl Database {
    /// The region that the answer names, whichever shape it has.
    pub fn region(&self) -> Option<&str> {
        self.running_in_region.as_deref().or(self.created_in_region.as_deref())
    }
}

/// The replicas of a database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadReplication {
    /// `auto` or `disabled`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub mode: String,
}

const DATABASES: &str = "/accounts/{account_id}/d1/database";
const DATABASE: &str = "/accounts/{account_id}/d1/database/{database_id}";

/// Rows of a page of databases. Cloudflare documents up to 10,000, and takes 100 for none.
const PER_PAGE: u32 = 1_000;

/// Every database of an account, in the shape of lists.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<Database>, Error> {
    client
        .list_pages(
            Request::get(DATABASES, &[account_id]),
            Paging::Page { per_page: PER_PAGE },
        )
        .await
}

/// The databases of exactly this name, in the shape of lists: Cloudflare's filter finds longer names too.
pub async fn find_by_name(client: &Client, account_id: &str, name: &str) -> Result<Vec<Database>, Error> {
    let request = Request::get(DATABASES, &[account_id]).query("name", name);
    let mut found: Vec<Database> = client.list_pages(request, Paging::Page { per_page: PER_PAGE }).await?;
    found.retain(|database| database.name == name);
    Ok(found)
}

/// One database. A missing one is 404 with code 7404.
pub async fn get(client: &Client, account_id: &str, database_id: &str) -> Result<Database, Error> {
    client.call(Request::get(DATABASE, &[account_id, database_id])).await
}

/// Makes a database: `name`, and what else it is to have of `jurisdiction`, `primary_location_hint` and `read_replication`.
/// What it is not to have is left out: Cloudflare refuses null. A name that is taken is 400 with code 7502.
pub async fn create(client: &Client, account_id: &str, body: &Value) -> Result<Database, Error> {
    client.call(Request::post(DATABASES, &[account_id]).json(body)).await
}

/// Changes a database: only `read_replication` can be changed.
pub async fn patch(client: &Client, account_id: &str, database_id: &str, body: &Value) -> Result<Database, Error> {
    client
        .call(Request::patch(DATABASE, &[account_id, database_id]).json(body))
        .await
}

/// Deletes a database with everything in it.
pub async fn delete(client: &Client, account_id: &str, database_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(DATABASE, &[account_id, database_id]))
        .await
        .map(drop)
}
