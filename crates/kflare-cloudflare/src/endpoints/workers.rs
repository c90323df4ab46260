//! Workers.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::{Client, Error, Form, Paging, Request};

const SCRIPTS: &str = "/accounts/{account_id}/workers/scripts";
const SCRIPT: &str = "/accounts/{account_id}/workers/scripts/{script_name}";
const SETTINGS: &str = "/accounts/{account_id}/workers/scripts/{script_name}/settings";
const SCHEDULES: &str = "/accounts/{account_id}/workers/scripts/{script_name}/schedules";
const SUBDOMAIN: &str = "/accounts/{account_id}/workers/scripts/{script_name}/subdomain";

/// A Worker, as the list and uploads show it: without bindings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Script {
    /// The name. It is the identity.
    pub id: String,
    /// An id that outlives uploads: 32 hexadecimal digits.
    #[serde(default)]
    pub tag: Option<String>,
    /// A hash of the code.
    #[serde(default)]
    pub etag: Option<String>,
    /// When it was made: RFC 3339 with six digits.
    #[serde(default)]
    pub created_on: Option<String>,
    /// When a version was last deployed, as Cloudflare writes it: the mark of the last change.
    #[serde(default)]
    pub modified_on: Option<String>,
    /// Tag of the last migration of Durable Objects that was carried out.
    #[serde(default)]
    pub migration_tag: Option<String>,
}

/// What a version of a Worker is configured with.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Settings {
    /// What it is bound to, in any order; secrets without their text.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub bindings: Vec<Map<String, Value>>,
    /// The date whose behaviour of the runtime it has.
    #[serde(default)]
    pub compatibility_date: Option<String>,
    /// Flags of the runtime.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub compatibility_flags: Vec<String>,
    /// `cpu_ms`, `subrequests`; null for none.
    #[serde(default)]
    pub limits: Value,
    /// Where it runs; `{}` or null for anywhere.
    #[serde(default)]
    pub placement: Value,
    /// Logs and traces; null for a Worker without.
    #[serde(default)]
    pub observability: Value,
    /// Whether Logpush takes its traces.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub logpush: bool,
    /// The Workers that hear of its calls.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub tail_consumers: Vec<Value>,
    /// Tags.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub tags: Vec<Value>,
}

/// One part of a Worker's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// What the metadata and other modules call it.
    pub name: String,
    /// Its content type, such as `application/javascript+module`.
    pub content_type: String,
    /// Its content.
    pub content: Bytes,
}

/// Where a Worker answers on workers.dev.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Subdomain {
    /// Under its own name.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub enabled: bool,
    /// Each version under a name of its own.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub previews_enabled: bool,
}

#[derive(Deserialize)]
struct Schedules {
    #[serde(default, deserialize_with = "super::null_as_default")]
    schedules: Vec<Schedule>,
}

#[derive(Deserialize)]
struct Schedule {
    cron: String,
}

/// Every Worker of an account.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<Script>, Error> {
    client
        .list_pages(Request::get(SCRIPTS, &[account_id]), Paging::Single)
        .await
}

/// Uploads a Worker: makes it, or a new version of it that is deployed at once. What `metadata` neither names nor keeps is as for
/// a new Worker. Bindings of type `inherit` that lead nowhere make the upload fail.
pub async fn upload(
    client: &Client,
    account_id: &str,
    name: &str,
    metadata: &Value,
    modules: &[Module],
) -> Result<Script, Error> {
    let form = Form::default().part("metadata", "application/json", metadata.to_string());
    let form = modules.iter().fold(form, |form, module| {
        form.file(&module.name, &module.content_type, module.content.clone())
    });
    let request = Request::put(SCRIPT, &[account_id, name])
        .query("bindings_inherit", "strict")
        .form(&form);
    client.call(request).await
}

/// Deletes a Worker and the routes that lead to it.
pub async fn delete(client: &Client, account_id: &str, name: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(SCRIPT, &[account_id, name]))
        .await
        .map(drop)
}

/// What the deployed version is configured with.
pub async fn settings(client: &Client, account_id: &str, name: &str) -> Result<Settings, Error> {
    client.call(Request::get(SETTINGS, &[account_id, name])).await
}

/// Changes the settings that are named, which makes a new version of the Worker. Bindings are replaced as a whole.
pub async fn patch_settings(
    client: &Client,
    account_id: &str,
    name: &str,
    settings: &Value,
) -> Result<Settings, Error> {
    let form = Form::default().part("settings", "application/json", settings.to_string());
    client
        .call(Request::patch(SETTINGS, &[account_id, name]).form(&form))
        .await
}

/// When the Worker is run by itself: cron expressions.
pub async fn schedules(client: &Client, account_id: &str, name: &str) -> Result<Vec<String>, Error> {
    let answer: Schedules = client.call(Request::get(SCHEDULES, &[account_id, name])).await?;
    Ok(answer.schedules.into_iter().map(|schedule| schedule.cron).collect())
}

/// Replaces the schedules; none clears them.
pub async fn set_schedules(client: &Client, account_id: &str, name: &str, crons: &[String]) -> Result<(), Error> {
    let body: Vec<Value> = crons.iter().map(|cron| json!({ "cron": cron })).collect();
    client
        .call::<IgnoredAny>(Request::put(SCHEDULES, &[account_id, name]).json(&body))
        .await
        .map(drop)
}

/// Where the Worker answers on workers.dev.
pub async fn subdomain(client: &Client, account_id: &str, name: &str) -> Result<Subdomain, Error> {
    client.call(Request::get(SUBDOMAIN, &[account_id, name])).await
}

/// Switches workers.dev.
pub async fn set_subdomain(client: &Client, account_id: &str, name: &str, subdomain: Subdomain) -> Result<(), Error> {
    let body = json!({ "enabled": subdomain.enabled, "previews_enabled": subdomain.previews_enabled });
    client
        .call::<IgnoredAny>(Request::post(SUBDOMAIN, &[account_id, name]).json(&body))
        .await
        .map(drop)
}
