//! `.../items`: reading the items of a list, and asking for changes.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Address, operation, unproven};
use crate::config::{ListItemForm, Quirks};
use crate::envelope::{Refusal, Reply};
use crate::paging::{Page, PageSizes};
use crate::route::Call;
use crate::state::{Item, ItemChange, List, ListKind};
use crate::time::seconds;

/// The default is unproven.
const SIZES: PageSizes = PageSizes {
    default: 25,
    min: 1,
    max: 500,
};

/// Characters of a comment (Cloudflare documents).
const COMMENT_LIMIT: usize = 500;

pub(super) fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = ip_list(call)?;
    let size = usize::try_from(Page::from_query(call.query, SIZES)?.size).unwrap_or(usize::MAX);
    // The cursor is the last address of the page before.
    let after = call.query.get("cursor").map(Address::parse).transpose();
    let after = after.map_err(|_| unproven("invalid cursor"))?;
    let search = call.query.get("search").unwrap_or_default();
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut found = list
        .items
        .range((start, Bound::Unbounded))
        .filter(|(address, _)| search.is_empty() || address.to_string().starts_with(search));
    let page: Vec<(&Address, &Item)> = found.by_ref().take(size).collect();
    let mut cursors = Map::new();
    if let (Some(_), Some((last, _))) = (found.next(), page.last()) {
        cursors.insert("after".into(), json!(last.to_string()));
    }
    if let (Some(_), Some((first, _))) = (after, page.first()) {
        cursors.insert("before".into(), json!(first.to_string()));
    }
    let items = page.iter().map(|(address, item)| render(address, item, call.quirks));
    Ok(Reply::cursor_page(items.collect(), cursors))
}

pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = ip_list(call)?;
    let id = call.param("item_id");
    let item = list.items.iter().find(|(_, item)| item.id == id);
    let (address, item) = item.ok_or_else(|| Refusal::new(404, super::NOT_FOUND, "could not find list item"))?;
    Ok(Reply::object(render(address, item, call.quirks)))
}

pub(super) fn post(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = ip_list(call)?;
    let items = read_items(&body(call)?)?;
    if items.is_empty() {
        return Err(unproven("no items to add"));
    }
    operation::submit(call, &list, ItemChange::Add(items))
}

pub(super) fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = ip_list(call)?;
    let items = read_items(&body(call)?)?;
    operation::submit(call, &list, ItemChange::Replace(items))
}

pub(super) fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let list = ip_list(call)?;
    let body = call.json()?;
    let ids = body.get("items").and_then(Value::as_array).map(Vec::as_slice);
    let ids: Option<Vec<String>> = ids
        .unwrap_or_default()
        .iter()
        .map(|item| item.get("id").and_then(Value::as_str).map(str::to_owned))
        .collect();
    match ids {
        Some(ids) if !ids.is_empty() => operation::submit(call, &list, ItemChange::Remove(ids)),
        _ => Err(unproven("items: at least one, each with an id")),
    }
}

/// The list of the call, as it is or, for stale lists, as it was.
fn ip_list(call: &Call<'_>) -> Result<Arc<List>, Refusal> {
    let list = if call.view.is_none() {
        super::list_of(call)?
    } else {
        let id = call.param("list_id");
        let lists = call.world.lists(call.param("account_id"), call.view);
        let list = lists.into_iter().find(|list| list.id == id);
        list.ok_or_else(super::not_found)?
    };
    match list.kind {
        ListKind::Ip => Ok(list),
        kind => Err(Refusal::new(
            501,
            10_501,
            format!("kflare-sim does not model the items of {} lists", kind.name()),
        )),
    }
}

/// The body as a JSON array.
fn body(call: &Call<'_>) -> Result<Vec<Value>, Refusal> {
    serde_json::from_slice(call.body).map_err(|_| Refusal::new(400, 6007, "Malformed JSON in request body"))
}

/// Reads the items of a request. An address that comes twice is refused (unproven).
pub(super) fn read_items(items: &[Value]) -> Result<Vec<(Address, String)>, Refusal> {
    let mut seen = BTreeSet::new();
    let mut read = Vec::with_capacity(items.len());
    for item in items {
        let ip = item.get("ip").and_then(Value::as_str);
        let ip = ip.ok_or_else(|| unproven("an item of an ip list needs an ip"))?;
        let address = Address::parse(ip).map_err(|error| unproven(&error.to_string()))?;
        let comment = item.get("comment").and_then(Value::as_str).unwrap_or_default();
        if comment.chars().count() > COMMENT_LIMIT {
            return Err(unproven("comment is too long"));
        }
        if !seen.insert(address) {
            return Err(unproven(&format!("duplicate item {address}")));
        }
        read.push((address, comment.to_owned()));
    }
    Ok(read)
}

pub(super) fn render(address: &Address, item: &Item, quirks: Quirks) -> Value {
    let mut shown = Map::new();
    shown.insert("id".into(), json!(item.id));
    shown.insert("ip".into(), json!(address.to_string()));
    let padded = quirks.list_items == ListItemForm::Padded;
    if padded {
        shown.insert("hostname".into(), json!({}));
        shown.insert("redirect".into(), json!({}));
    }
    if padded || !item.comment.is_empty() {
        shown.insert("comment".into(), json!(item.comment));
    }
    shown.insert("created_on".into(), json!(seconds(item.created_on)));
    shown.insert("modified_on".into(), json!(seconds(item.modified_on)));
    Value::Object(shown)
}
