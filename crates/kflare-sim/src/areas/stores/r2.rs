//! `/accounts/{account_id}/r2/buckets`. Nobody recorded R2: codes are those that Cloudflare documents or that users
//! reported, unless marked.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{REGIONS, list_route, r2_rules, region_of, route};
use crate::auth::Access;
use crate::budget::Policy;
use crate::config::{LocationForm, Quirks};
use crate::envelope::{Refusal, Reply};
use crate::paging::{Page, PageSizes};
use crate::route::{Call, Route};
use crate::state::{Area, Bucket, Permission, Subscription, World};
use crate::time::millis;

const ALL: &str = "/accounts/{account_id}/r2/buckets";
const ONE: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}";
const CORS: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/cors";
const LIFECYCLE: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/lifecycle";
const READ: Access = Access::Account(Permission::read(Area::R2));
const WRITE: Access = Access::Account(Permission::write(Area::R2));

pub(crate) static ROUTES: [Route; 10] = [
    list_route(ALL, READ, Policy::DEFAULT, list),
    route("POST", ALL, WRITE, Policy::DEFAULT, create),
    route("GET", ONE, READ, Policy::DEFAULT, get),
    route("PATCH", ONE, WRITE, Policy::DEFAULT, patch),
    route("DELETE", ONE, WRITE, Policy::DEFAULT, delete),
    route("GET", CORS, READ, Policy::DEFAULT, cors),
    route("PUT", CORS, WRITE, Policy::DEFAULT, put_cors),
    route("DELETE", CORS, WRITE, Policy::DEFAULT, delete_cors),
    route("GET", LIFECYCLE, READ, Policy::DEFAULT, lifecycle),
    route("PUT", LIFECYCLE, WRITE, Policy::DEFAULT, put_lifecycle),
];

const SIZES: PageSizes = PageSizes {
    default: 20,
    min: 1,
    max: 1000,
};

const JURISDICTIONS: [&str; 5] = ["default", "us", "eu", "fedramp", "fedramp-high"];
const STORAGE_CLASSES: [&str; 2] = ["Standard", "InfrequentAccess"];

/// By name; the cursor is the last name that was shown.
fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let jurisdiction = admitted(call)?;
    let page = Page::from_query(call.query, SIZES)?;
    let mut all: Vec<Arc<Bucket>> = call.world.stored_in(call.param("account_id"), call.view);
    all.retain(|bucket| bucket.jurisdiction == jurisdiction);
    if let Some(part) = call.query.get("name_contains") {
        all.retain(|bucket| bucket.name.contains(part));
    }
    let is_descending = call.query.get("direction") == Some("desc");
    if is_descending {
        all.reverse();
    }
    let after = match call.query.get("cursor") {
        // The code is unproven.
        Some(cursor) => Some(name_of_cursor(cursor).ok_or_else(|| not_well_formed("cursor"))?),
        None => call.query.get("start_after").map(str::to_owned),
    };
    if let Some(after) = after {
        all.retain(|bucket| (bucket.name > after) != is_descending && bucket.name != after);
    }
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let mut info = Map::from_iter([("per_page".to_owned(), json!(page.size))]);
    if all.len() > size {
        info.insert("cursor".to_owned(), json!(cursor_of_name(&all[size - 1].name)));
        all.truncate(size);
    }
    // Lists say no more: Cloudflare's own client takes the rest for optional there.
    let buckets: Vec<Value> = all
        .iter()
        .map(|bucket| json!({ "name": bucket.name, "creation_date": millis(bucket.created_on) }))
        .collect();
    Ok(Reply::object(json!({ "buckets": buckets })).with_info(info))
}

fn cursor_of_name(name: &str) -> String {
    crate::ids::hex(name.as_bytes())
}

fn name_of_cursor(cursor: &str) -> Option<String> {
    let digits = |at: usize| {
        cursor
            .get(at..at + 2)
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Option<Vec<u8>> = (0..cursor.len()).step_by(2).map(digits).collect();
    String::from_utf8(bytes?).ok()
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let jurisdiction = admitted(call)?;
    let body = call.json()?;
    let name = body.get("name").and_then(Value::as_str).filter(|name| is_name(name));
    let name = name.ok_or_else(|| Refusal::new(400, 10_005, "The specified bucket name is not valid."))?;
    let hint = match body.get("locationHint") {
        None => None,
        // That case does not matter, and the code, are unproven.
        Some(hint) => {
            let region = hint.as_str().map(str::to_lowercase);
            let region = region.filter(|region| REGIONS.contains(&region.as_str()));
            Some(region.ok_or_else(|| not_well_formed("locationHint"))?)
        }
    };
    let class = match body.get("storageClass") {
        None => STORAGE_CLASSES[0],
        Some(class) => storage_class(class.as_str())?,
    };
    let bucket = Bucket {
        account_id: call.param("account_id").to_owned(),
        name: name.to_owned(),
        location: hint.unwrap_or_else(|| region_of(Some(&jurisdiction)).to_owned()),
        jurisdiction,
        storage_class: class.to_owned(),
        created_on: call.now,
        objects: 0,
        cors: None,
        lifecycle: vec![r2_rules::default_rule()],
    };
    add(call.world, bucket, call.quirks, call.now).map(Reply::object)
}

/// Adds a bucket, unless its name is taken in its jurisdiction.
pub(super) fn add(world: &mut World, bucket: Bucket, quirks: Quirks, now: Timestamp) -> Result<Value, Refusal> {
    if world
        .bucket(&bucket.account_id, &bucket.jurisdiction, &bucket.name)
        .is_some()
    {
        let text = "The bucket you tried to create already exists, and you own it.";
        return Err(Refusal::new(409, 10_004, text));
    }
    let shown = render(&bucket, quirks);
    world.put_stored(bucket, now);
    Ok(shown)
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::object(render(&find(call)?, call.quirks)))
}

/// The class comes in a header; there is no body.
fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let mut bucket = find(call)?;
    let class = storage_class(call.header("cf-r2-storage-class"))?;
    if bucket.storage_class != class {
        class.clone_into(&mut bucket.storage_class);
        call.world.put_stored(bucket.clone(), call.now);
    }
    Ok(Reply::object(render(&bucket, call.quirks)))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let bucket = find(call)?;
    if bucket.objects > 0 {
        let text = "The bucket you tried to delete is not empty.";
        return Err(Refusal::new(409, 10_008, text));
    }
    call.world.remove_stored(&bucket, call.now);
    Ok(Reply::object(json!({})))
}

fn cors(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let rules = find(call)?.cors;
    let none = || Refusal::new(404, 10_059, "The CORS configuration does not exist.");
    rules
        .map(|rules| Reply::object(json!({ "rules": rules })))
        .ok_or_else(none)
}

fn put_cors(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let bucket = find(call)?;
    let rules = r2_rules::cors(&call.json()?)?;
    Ok(set(
        call,
        Bucket {
            cors: Some(rules),
            ..bucket
        },
    ))
}

/// Taking away what is not there is a success (unproven).
fn delete_cors(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let bucket = find(call)?;
    Ok(set(call, Bucket { cors: None, ..bucket }))
}

fn lifecycle(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let rules = r2_rules::shown(find(call)?.lifecycle, call.quirks.r2_lifecycle);
    Ok(Reply::object(json!({ "rules": rules })))
}

fn put_lifecycle(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let bucket = find(call)?;
    let lifecycle = r2_rules::lifecycle(&call.json()?)?;
    Ok(set(call, Bucket { lifecycle, ..bucket }))
}

fn set(call: &mut Call<'_>, bucket: Bucket) -> Reply {
    call.world.put_stored(bucket, call.now);
    Reply::object(json!({}))
}

/// The jurisdiction that the call names, if the account has R2 at all.
fn admitted(call: &Call<'_>) -> Result<String, Refusal> {
    let account = call.world.held().accounts.get(call.param("account_id"));
    if account.is_some_and(|account| account.r2 == Subscription::Disabled) {
        let text = "Please enable R2 through the Cloudflare Dashboard.";
        return Err(Refusal::new(403, 10_042, text));
    }
    let named = call.header("cf-r2-jurisdiction").unwrap_or(JURISDICTIONS[0]);
    // The code is unproven.
    let known = JURISDICTIONS.into_iter().find(|known| *known == named);
    known
        .map(str::to_owned)
        .ok_or_else(|| not_well_formed("cf-r2-jurisdiction"))
}

fn find(call: &Call<'_>) -> Result<Bucket, Refusal> {
    let jurisdiction = admitted(call)?;
    let found = call
        .world
        .bucket(call.param("account_id"), &jurisdiction, call.param("bucket_name"));
    found.map(|bucket| Bucket::clone(bucket)).ok_or_else(unknown)
}

/// A bucket that is not there, or not in this jurisdiction.
pub(crate) fn unknown() -> Refusal {
    Refusal::new(404, 10_006, "The specified bucket does not exist.")
}

/// A body that is JSON and not what it should be. `what` is for people.
pub(super) fn not_well_formed(what: &str) -> Refusal {
    Refusal::new(
        400,
        10_040,
        format!("The JSON you provided was not well formed: {what}."),
    )
}

fn storage_class(given: Option<&str>) -> Result<&'static str, Refusal> {
    let class = STORAGE_CLASSES.into_iter().find(|class| Some(*class) == given);
    class.ok_or_else(|| Refusal::new(400, 10_062, "The storage class specified is not valid."))
}

fn is_name(name: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.starts_with(is_alphanumeric)
        && name.ends_with(is_alphanumeric)
        && name.chars().all(|c| is_alphanumeric(c) || c == '-')
}

/// The bucket as the API shows it alone.
pub(crate) fn render(bucket: &Bucket, quirks: Quirks) -> Value {
    let location = match quirks.r2_location {
        LocationForm::Lower => bucket.location.clone(),
        LocationForm::Upper => bucket.location.to_uppercase(),
    };
    json!({
        "name": bucket.name,
        "creation_date": millis(bucket.created_on),
        "location": location,
        "storage_class": bucket.storage_class,
        "jurisdiction": bucket.jurisdiction,
    })
}
