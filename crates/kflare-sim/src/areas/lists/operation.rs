//! Operations on the items of a list: asked for at once, done later.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Address;
use crate::config::{BulkOperations, ListWrites};
use crate::envelope::{Refusal, Reply};
use crate::plan::Plan;
use crate::route::Call;
use crate::state::{Ending, Item, ItemChange, Items, List, Operation, World};
use crate::time::seconds;

/// Takes a write of items in.
pub(super) fn submit(call: &mut Call<'_>, list: &List, change: ItemChange) -> Result<Reply, Refusal> {
    let account = list.account_id.clone();
    let operations = call.world.operations(&account);
    let open = || {
        operations
            .iter()
            .flat_map(|it| &it.all)
            .filter(|it| it.ending.is_none())
    };
    if call.quirks.list_writes == ListWrites::Refused && open().next().is_some() {
        // The status is documented; code and text are unproven.
        let text = "There is an outstanding bulk operation in progress";
        return Err(Refusal::new(429, super::UNPROVEN, text));
    }
    let turn = open().filter(|it| it.list_id == list.id).map(|it| it.ends).max();
    let BulkOperations { pending, running } = call.bulk_operations;
    let starts = later(turn.unwrap_or(call.now).max(call.now), pending);
    let operation = Operation {
        id: call.world.new_id(),
        list_id: list.id.clone(),
        starts,
        ends: later(starts, running),
        change: Some(change),
        ending: None,
    };
    let id = operation.id.clone();
    call.world
        .with_operations(&account, call.now, |all| all.all.push_back(operation));
    // Cloudflare documents 201 for these, unlike for everything else.
    Ok(Reply::object(json!({ "operation_id": id })).with_status(201))
}

pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let operations = call.world.operations(call.param("account_id"));
    let id = call.param("operation_id");
    let operation = operations.and_then(|it| it.all.iter().find(|operation| operation.id == id));
    let operation = operation.ok_or_else(|| Refusal::new(404, super::NOT_FOUND, "could not find operation"))?;
    Ok(Reply::object(render(operation, call.now)))
}

fn render(operation: &Operation, now: Timestamp) -> Value {
    match &operation.ending {
        Some(Ending { at, error: None }) => {
            json!({ "id": operation.id, "status": "completed", "completed": seconds(*at) })
        }
        Some(Ending { at, error: Some(error) }) => {
            json!({ "id": operation.id, "status": "failed", "completed": seconds(*at), "error": error })
        }
        None if operation.starts <= now => json!({ "id": operation.id, "status": "running" }),
        None => json!({ "id": operation.id, "status": "pending" }),
    }
}

/// Ends every operation whose time has come, in the order of their ends.
pub(crate) fn settle(world: &mut World, now: Timestamp) {
    for account in world.accounts_with_operations_due(now) {
        while let Some((id, list, ends, change)) = take_due(world, &account, now) {
            let failure = world.with_operations(&account, ends, |all| all.failure.take());
            let error = failure
                .map_or_else(|| apply(world, &account, &list, change, ends), Err)
                .err();
            world.with_operations(&account, ends, |all| {
                if let Some(operation) = all.all.iter_mut().find(|operation| operation.id == id) {
                    operation.ending = Some(Ending { at: ends, error });
                }
            });
        }
    }
}

/// The operation that ends first, if that is by `now`.
fn take_due(world: &mut World, account: &str, now: Timestamp) -> Option<(String, String, Timestamp, ItemChange)> {
    world.with_operations(account, now, |all| {
        let due = all.all.iter_mut().filter(|it| it.ending.is_none() && it.ends <= now);
        let first = due.min_by_key(|it| it.ends)?;
        let change = first.change.take()?;
        Some((first.id.clone(), first.list_id.clone(), first.ends, change))
    })
}

/// Does what an operation is for, or says why not; then nothing of it is done (unproven).
fn apply(world: &mut World, account: &str, list: &str, change: ItemChange, now: Timestamp) -> Result<(), String> {
    let Some(list) = world.find_list(account, list).cloned() else {
        return Err("could not find list".to_owned());
    };
    let mut list = List::clone(&list);
    change_items(world, &mut list, change, now)?;
    let elsewhere: usize = world
        .lists(account, None)
        .iter()
        .filter(|other| other.id != list.id)
        .map(|other| other.items.len())
        .sum();
    if elsewhere + list.items.len() > item_quota(world, account) {
        // The text is the example of Cloudflare's schema.
        return Err("This list is at the maximum number of items".to_owned());
    }
    world.put_list(list, now);
    Ok(())
}

/// Changes the items of a list, quotas aside.
pub(super) fn change_items(
    world: &mut World,
    list: &mut List,
    change: ItemChange,
    now: Timestamp,
) -> Result<(), String> {
    let items = Arc::make_mut(&mut list.items);
    match change {
        ItemChange::Add(added) => add(world, items, added, now),
        ItemChange::Replace(all) => {
            items.clear();
            add(world, items, all, now);
        }
        ItemChange::Remove(ids) => {
            let ids: BTreeSet<String> = ids.into_iter().collect();
            let found = items.values().filter(|item| ids.contains(&item.id)).count();
            if found < ids.len() {
                // Unproven: Cloudflare may as well pass over what is not there.
                return Err("could not find list item".to_owned());
            }
            items.retain(|_, item| !ids.contains(&item.id));
        }
    }
    list.modified_on = now;
    Ok(())
}

/// Adds items; one that is there keeps its id (unproven) and gets the comment (documented).
fn add(world: &mut World, items: &mut Items, added: Vec<(Address, String)>, now: Timestamp) {
    for (address, comment) in added {
        if let Some(item) = items.get_mut(&address) {
            item.comment = comment;
            item.modified_on = now;
        } else {
            let item = Item {
                id: world.new_id(),
                comment,
                created_on: now,
                modified_on: now,
            };
            items.insert(address, item);
        }
    }
}

/// Items in all lists of an account together (Cloudflare documents: 10,000, on Enterprise 500,000).
fn item_quota(world: &World, account: &str) -> usize {
    if super::plan(world, account) == Plan::Enterprise {
        500_000
    } else {
        10_000
    }
}

fn later(than: Timestamp, by: std::time::Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    than.saturating_add(by).unwrap_or(Timestamp::MAX)
}
