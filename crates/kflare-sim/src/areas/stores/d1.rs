//! `/accounts/{account_id}/d1/database`. Answers as recorded from the live API, unless marked.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{REGIONS, list_route, region_of, route};
use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::ids::is_uuid;
use crate::paging::{Page, PageSizes};
use crate::route::{Call, Route};
use crate::state::{Area, Database, Permission, World};
use crate::time::millis;

const ALL: &str = "/accounts/{account_id}/d1/database";
const ONE: &str = "/accounts/{account_id}/d1/database/{database_id}";
const READ: Access = Access::Account(Permission::read(Area::D1));
const WRITE: Access = Access::Account(Permission::write(Area::D1));

pub(crate) static ROUTES: [Route; 6] = [
    list_route(ALL, READ, Policy::SILENT, list),
    route("POST", ALL, WRITE, Policy::SILENT, create),
    route("GET", ONE, READ, Policy::SILENT, get),
    route("PATCH", ONE, WRITE, Policy::SILENT, change),
    route("PUT", ONE, WRITE, Policy::SILENT, change),
    route("DELETE", ONE, WRITE, Policy::SILENT, delete),
];

/// The description says 1,000 by default, the live API took 100.
const SIZES: PageSizes = PageSizes {
    default: 100,
    min: 10,
    max: 10_000,
};

/// One database shows in three shapes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// In the answer to its creation.
    Created,
    /// Alone.
    Single,
    /// In a list.
    Listed,
}

fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let page = Page::from_query(call.query, SIZES)?;
    let mut all: Vec<Arc<Database>> = call.world.stored_in(call.param("account_id"), call.view);
    // That the filter finds parts of names is unproven; clients are told not to trust it.
    if let Some(part) = call.query.get("name") {
        all.retain(|database| database.name.contains(part));
    }
    let items = page.cut(&all).iter().map(|it| render(it, Shape::Listed)).collect();
    Ok(Reply::page(&page, all.len(), items).without_total_pages())
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let account = call.param("account_id").to_owned();
    let draft = match draft(&account, &body, call) {
        Ok(draft) => draft,
        Err(wrong) => return Ok(wrong.into_reply()),
    };
    add(call.world, draft, call.now).map(Reply::object)
}

/// A property that does not fit. It is refused in an envelope that has neither `result` nor `messages`.
struct WrongProperty(String);

impl WrongProperty {
    fn new(property: &str, why: &str) -> Self {
        Self(format!("Invalid property: {property} => {why}"))
    }

    /// For a value that is none of those that are known.
    fn none_of(property: &str, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|value| format!("'{value}'")).collect();
        let why = format!("Invalid enum value. Expected {}", known.join(" | "));
        Self::new(property, &why)
    }

    fn into_reply(self) -> Reply {
        Reply::bare_errors(Refusal::new(400, 7400, self.0))
    }
}

fn draft(account: &str, body: &Map<String, Value>, call: &mut Call<'_>) -> Result<Database, WrongProperty> {
    // The form is that of the API description; the text is unproven.
    let name = body.get("name").and_then(Value::as_str).filter(|name| is_name(name));
    let name = name.ok_or_else(|| WrongProperty::new("name", "Invalid"))?;
    let hint = match body.get("primary_location_hint") {
        None => None,
        Some(hint) => {
            let region = hint.as_str().map(str::to_lowercase);
            // Whether lower case is taken is not known for sure; clients send it.
            let region = region.filter(|region| REGIONS.contains(&region.as_str()));
            Some(region.ok_or_else(|| {
                let known = REGIONS.map(str::to_uppercase);
                WrongProperty::none_of("primary_location_hint", &known.each_ref().map(String::as_str))
            })?)
        }
    };
    let jurisdiction = match body.get("jurisdiction") {
        None => None,
        Some(Value::String(name)) if JURISDICTIONS.contains(&name.as_str()) => Some(name.clone()),
        Some(_) => return Err(WrongProperty::none_of("jurisdiction", &JURISDICTIONS)),
    };
    // A jurisdiction makes the hint void (Cloudflare documents).
    let region = hint.filter(|_| jurisdiction.is_none());
    let region = region.unwrap_or_else(|| region_of(jurisdiction.as_deref()).to_owned());
    Ok(Database {
        id: call.world.new_uuid(),
        account_id: account.to_owned(),
        name: name.to_owned(),
        region: region.to_uppercase(),
        jurisdiction,
        created_on: call.now,
        replication: replication(body)?.unwrap_or("disabled").to_owned(),
    })
}

const JURISDICTIONS: [&str; 3] = ["us", "eu", "fedramp"];
const MODES: [&str; 2] = ["auto", "disabled"];

/// The mode in `read_replication`; null is refused (reported by users).
fn replication(body: &Map<String, Value>) -> Result<Option<&'static str>, WrongProperty> {
    let Some(given) = body.get("read_replication") else {
        return Ok(None);
    };
    let given = given
        .as_object()
        .ok_or_else(|| WrongProperty::new("read_replication", "Expected object"))?;
    let mode = given.get("mode").and_then(Value::as_str);
    let mode = MODES.into_iter().find(|known| Some(*known) == mode);
    mode.map(Some)
        .ok_or_else(|| WrongProperty::none_of("read_replication.mode", &MODES))
}

fn is_name(name: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(is_alphanumeric) && name.chars().all(|c| is_alphanumeric(c) || matches!(c, '-' | '_'))
}

/// Adds a database, unless its name is taken or the account holds as many as it may.
pub(super) fn add(world: &mut World, database: Database, now: Timestamp) -> Result<Value, Refusal> {
    let siblings: Vec<_> = world
        .stored::<Database>()
        .filter(|other| other.account_id == database.account_id)
        .collect();
    if siblings.iter().any(|other| other.name == database.name) {
        let text = format!("Database with name: '{}' already exists", database.name);
        return Err(Refusal::new(400, 7502, text));
    }
    let account = world.held().accounts.get(&database.account_id);
    if account.is_some_and(|account| siblings.len() >= account.d1_quota()) {
        // The code is that of Cloudflare's own client; status and text are unproven.
        return Err(Refusal::new(
            400,
            7406,
            "The account has reached its limit of databases",
        ));
    }
    let shown = render(&database, Shape::Created);
    world.put_stored(database, now);
    Ok(shown)
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let mut shown = render(&find(call)?, Shape::Single);
    let wanted: Vec<&str> = call.query.all("fields").collect();
    if !wanted.is_empty()
        && let Some(fields) = shown.as_object_mut()
    {
        fields.retain(|field, _| wanted.contains(&field.as_str()));
    }
    Ok(Reply::object(shown))
}

/// PATCH and PUT: replication is all that can be changed.
fn change(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let mut database = find(call)?;
    match replication(&body) {
        Ok(Some(mode)) if mode != database.replication => {
            mode.clone_into(&mut database.replication);
            call.world.put_stored(database.clone(), call.now);
        }
        Ok(_) => {}
        Err(wrong) => return Ok(wrong.into_reply()),
    }
    Ok(Reply::object(render(&database, Shape::Single)))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let database = find(call)?;
    call.world.remove_stored(&database, call.now);
    Ok(Reply::object(Value::Null))
}

/// By id; Cloudflare's own client also asks by name.
fn find(call: &Call<'_>) -> Result<Database, Refusal> {
    let (account, wanted) = (call.param("account_id"), call.param("database_id"));
    let found = if is_uuid(wanted) {
        call.world.database(account, wanted)
    } else {
        call.world
            .stored::<Database>()
            .find(|database| database.account_id == account && database.name == wanted)
    };
    found.map(|database| Database::clone(database)).ok_or_else(|| {
        if is_uuid(wanted) {
            Refusal::new(404, 7404, format!("The database {wanted} could not be found"))
        } else {
            Refusal::new(404, 7003, "Could not route, perhaps your object identifier is invalid?")
        }
    })
}

/// The database as the API shows it. The size is larger when it is asked for alone, and lists lag behind (seen live).
pub(crate) fn render(database: &Database, shape: Shape) -> Value {
    let mut shown = json!({
        "uuid": database.id,
        "name": database.name,
        "created_at": millis(database.created_on),
        "version": "production",
        "num_tables": 0,
        "file_size": if shape == Shape::Single { 12_288 } else { 8192 },
        "jurisdiction": database.jurisdiction,
    });
    let region = match shape {
        Shape::Created => "created_in_region",
        Shape::Single => "running_in_region",
        Shape::Listed => return shown,
    };
    shown[region] = json!(database.region);
    shown["read_replication"] = json!({ "mode": database.replication });
    shown
}
