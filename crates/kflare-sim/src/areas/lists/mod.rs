//! `/accounts/{account_id}/rules/lists`: lists of addresses that rules use as `$name`.

mod address;
mod foreign;
mod items;
mod operation;
mod references;

pub(crate) use address::Address;
pub(crate) use foreign::{control, dump};
pub(crate) use operation::settle;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::plan::Plan;
use crate::route::{Answers, Call, Route};
use crate::state::{Area, Items, List, ListKind, Permission, World};
use crate::time::seconds;

const READ: Access = Access::Account(Permission::read(Area::Lists));
const WRITE: Access = Access::Account(Permission::write(Area::Lists));

/// No such list, operation or item (the code is known from other clients, the status is not).
const NOT_FOUND: i64 = 10_001;
/// A list of this name exists (known from other clients).
const EXISTS: i64 = 10_021;
/// Rules use the list (reported by users, with its text).
const IN_USE: i64 = 10_031;
/// Stands in where nothing is known about the code.
const UNPROVEN: i64 = 10_004;

const LISTS: &str = "/accounts/{account_id}/rules/lists";
const LIST: &str = "/accounts/{account_id}/rules/lists/{list_id}";
const ITEMS: &str = "/accounts/{account_id}/rules/lists/{list_id}/items";
const ITEM: &str = "/accounts/{account_id}/rules/lists/{list_id}/items/{item_id}";
const OPERATION: &str = "/accounts/{account_id}/rules/lists/bulk_operations/{operation_id}";

pub(crate) static ROUTES: [Route; 11] = [
    route("GET", LISTS, READ, Answers::List, list),
    route("POST", LISTS, WRITE, Answers::Other, create),
    route("GET", LIST, READ, Answers::Other, get),
    route("PUT", LIST, WRITE, Answers::Other, put),
    route("DELETE", LIST, WRITE, Answers::Other, delete),
    route("GET", ITEMS, READ, Answers::List, items::list),
    route("POST", ITEMS, WRITE, Answers::Other, items::post),
    route("PUT", ITEMS, WRITE, Answers::Other, items::put),
    route("DELETE", ITEMS, WRITE, Answers::Other, items::delete),
    route("GET", ITEM, READ, Answers::Other, items::get),
    route("GET", OPERATION, READ, Answers::Other, operation::get),
];

const fn route(
    method: &'static str,
    template: &'static str,
    access: Access,
    answers: Answers,
    handler: crate::route::Handler,
) -> Route {
    Route {
        method,
        template,
        access,
        answers,
        policy: Policy::DEFAULT,
        handler,
    }
}

fn not_found() -> Refusal {
    Refusal::new(404, NOT_FOUND, "could not find list")
}

/// A refusal whose status and code are unproven.
fn unproven(text: &str) -> Refusal {
    Refusal::new(400, UNPROVEN, text)
}

/// The list in the path.
fn list_of(call: &Call<'_>) -> Result<Arc<List>, Refusal> {
    let id = call.param("list_id");
    let list = call.world.find_list(call.param("account_id"), id);
    list.filter(|list| list.id == id).cloned().ok_or_else(not_found)
}

/// Every list of the account at once; not paged. Ordered by name (unproven).
#[allow(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let lists = call.world.lists(call.param("account_id"), call.view);
    let shown = lists.iter().map(|list| render(list, call.world)).collect();
    Ok(Reply::object(shown))
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let account = call.param("account_id").to_owned();
    let list = new_list(call.world, &account, None, &body, call.now)?;
    if call.world.lists(&account, None).len() >= list_quota(plan(call.world, &account)) {
        return Err(unproven("the account has the maximum number of lists"));
    }
    let shown = render(&list, call.world);
    call.world.put_list(list, call.now);
    Ok(Reply::object(shown))
}

/// The empty list that a body asks for, quotas aside.
fn new_list(
    world: &mut World,
    account: &str,
    id: Option<String>,
    body: &Map<String, Value>,
    now: Timestamp,
) -> Result<List, Refusal> {
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let is_part_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let name = text("name").filter(|name| (1..=50).contains(&name.len()) && name.bytes().all(is_part_of_name));
    let name = name.ok_or_else(|| unproven("name: letters, digits and _, at most 50"))?;
    let kind = text("kind").and_then(ListKind::find);
    let kind = kind.ok_or_else(|| unproven("kind: ip, redirect, hostname or asn"))?;
    let description = description(body)?;
    if world.find_list(account, name).is_some() {
        return Err(Refusal::new(400, EXISTS, "list already exists"));
    }
    Ok(List {
        id: id.unwrap_or_else(|| world.new_id()),
        account_id: account.to_owned(),
        name: name.to_owned(),
        kind,
        description,
        items: Arc::new(Items::new()),
        created_on: now,
        modified_on: now,
    })
}

fn description(body: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    match body.get("description") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().count() <= 500 => Ok(Some(text.clone()).filter(|it| !it.is_empty())),
        Some(_) => Err(unproven("description: a text of at most 500 characters")),
    }
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = list_of(call)?;
    Ok(Reply::object(render(&list, call.world)))
}

/// Changes the description, and nothing else (Cloudflare documents). One that is left out is cleared (unproven).
fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let mut list = List::clone(&*list_of(call)?);
    list.description = description(&body)?;
    list.modified_on = call.now;
    let shown = render(&list, call.world);
    call.world.put_list(list, call.now);
    Ok(Reply::object(shown))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = list_of(call)?;
    if references::count(call.world, &list) > 0 {
        return Err(Refusal::new(400, IN_USE, "filters.api.ip_list_in_use"));
    }
    call.world.remove_list(&list.id, call.now);
    Ok(Reply::object(json!({ "id": list.id })))
}

/// The list as the API shows it: no items, and no description if there is none.
fn render(list: &List, world: &World) -> Value {
    let mut shown = Map::new();
    shown.insert("id".into(), json!(list.id));
    shown.insert("name".into(), json!(list.name));
    if let Some(description) = &list.description {
        shown.insert("description".into(), json!(description));
    }
    shown.insert("kind".into(), json!(list.kind.name()));
    shown.insert("num_items".into(), json!(list.items.len()));
    shown.insert("num_referencing_filters".into(), json!(references::count(world, list)));
    shown.insert("created_on".into(), json!(seconds(list.created_on)));
    shown.insert("modified_on".into(), json!(seconds(list.modified_on)));
    Value::Object(shown)
}

/// The plan that counts for an account's lists: the highest of its zones.
fn plan(world: &World, account: &str) -> Plan {
    let zones = world.held().zones.values().filter(|zone| zone.account_id == account);
    zones.map(|zone| zone.plan).max().unwrap_or_default()
}

/// Lists of an account (Cloudflare documents).
fn list_quota(plan: Plan) -> usize {
    match plan {
        Plan::Free => 1,
        Plan::Pro | Plan::Business => 10,
        Plan::Enterprise => 1_000,
    }
}
