//! `/accounts/{account_id}/storage/kv/namespaces`. Answers as recorded from the live API, unless marked.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{list_route, route};
use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::paging::{Page, PageSizes};
use crate::route::{Call, Route};
use crate::state::{Area, KvNamespace, Permission, World};

const ALL: &str = "/accounts/{account_id}/storage/kv/namespaces";
const ONE: &str = "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}";
const READ: Access = Access::Account(Permission::read(Area::Kv));
const WRITE: Access = Access::Account(Permission::write(Area::Kv));

pub(crate) static ROUTES: [Route; 5] = [
    list_route(ALL, READ, Policy::SILENT, list),
    route("POST", ALL, WRITE, Policy::SILENT, create),
    route("GET", ONE, READ, Policy::SILENT, get),
    route("PUT", ONE, WRITE, Policy::SILENT, rename),
    route("DELETE", ONE, WRITE, Policy::SILENT, delete),
];

const SIZES: PageSizes = PageSizes {
    default: 20,
    min: 1,
    max: 1000,
};

/// Characters of a title (the API description says so).
const TITLE_LIMIT: usize = 512;

fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let page = Page::from_query(call.query, SIZES)?;
    // By id, which is drawn at random: the newest is anywhere.
    let mut all: Vec<Arc<KvNamespace>> = call.world.stored_in(call.param("account_id"), call.view);
    if call.query.get("order") == Some("title") {
        all.sort_by(|a, b| a.title.cmp(&b.title));
    }
    if call.query.get("direction") == Some("desc") {
        all.reverse();
    }
    let items = page.cut(&all).iter().map(|namespace| render(namespace)).collect();
    Ok(Reply::page(&page, all.len(), items))
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let account = call.param("account_id").to_owned();
    let jurisdiction = match body.get("jurisdiction") {
        None => None,
        Some(Value::String(name)) if ["us", "eu", "fedramp"].contains(&name.as_str()) => Some(name.clone()),
        // The code is unproven.
        Some(_) => return Err(Refusal::new(400, 10_012, "invalid jurisdiction")),
    };
    let namespace = KvNamespace {
        id: call.world.new_id(),
        title: title(&body)?,
        account_id: account,
        jurisdiction,
    };
    add(call.world, namespace, call.now).map(Reply::object)
}

/// Adds a namespace, unless its title is taken.
pub(super) fn add(world: &mut World, namespace: KvNamespace, now: Timestamp) -> Result<Value, Refusal> {
    title_is_free(world, &namespace)?;
    let shown = render(&namespace);
    world.put_stored(namespace, now);
    Ok(shown)
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    find(call, "get namespace: 'namespace not found'").map(|namespace| Reply::object(render(&namespace)))
}

fn rename(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let mut namespace = find(call, "namespace not found")?;
    let title = title(&body)?;
    if title != namespace.title {
        namespace.title = title;
        title_is_free(call.world, &namespace)?;
        call.world.put_stored(namespace.clone(), call.now);
    }
    Ok(Reply::object(render(&namespace)))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let namespace = find(call, "namespace not found")?;
    call.world.remove_stored(&namespace, call.now);
    Ok(Reply::object(Value::Null))
}

/// The text of the refusal differs between reading and deleting.
fn find(call: &Call<'_>, text: &str) -> Result<KvNamespace, Refusal> {
    let found = call
        .world
        .kv_namespace(call.param("account_id"), call.param("namespace_id"));
    found
        .map(|namespace| KvNamespace::clone(namespace))
        .ok_or_else(|| Refusal::new(404, 10_013, text))
}

/// The code is documented; its text, and what comes for a title that is too long, is unproven.
fn title(body: &Map<String, Value>) -> Result<String, Refusal> {
    let title = body.get("title").and_then(Value::as_str).unwrap_or_default();
    if title.is_empty() || title.chars().count() > TITLE_LIMIT {
        return Err(Refusal::new(400, 10_019, "a namespace title is required"));
    }
    Ok(title.to_owned())
}

fn title_is_free(world: &World, wanted: &KvNamespace) -> Result<(), Refusal> {
    let is_taken = world
        .stored::<KvNamespace>()
        .any(|other| other.account_id == wanted.account_id && other.title == wanted.title && other.id != wanted.id);
    if is_taken {
        let text = "a namespace with this account ID and title already exists";
        return Err(Refusal::new(400, 10_014, text));
    }
    Ok(())
}

/// The namespace as the API shows it: no times, and no jurisdiction where there is none.
pub(crate) fn render(namespace: &KvNamespace) -> Value {
    let mut shown = json!({ "id": namespace.id, "title": namespace.title, "supports_url_encoding": true });
    if let Some(jurisdiction) = &namespace.jurisdiction {
        shown["jurisdiction"] = json!(jurisdiction);
    }
    shown
}
