//! Lists as somebody else changes them, and as tests look at them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Address, items, new_list, not_found, operation, render, unproven};
use crate::config::Quirks;
use crate::envelope::Refusal;
use crate::seed::ListSeed;
use crate::simulator::Simulator;
use crate::state::{ItemChange, List, ListKind, World};

impl Simulator {
    /// The lists of an account (by id), as the API shows them, each with its `items`, by name.
    pub fn lists(&self, account: &str) -> Vec<Value> {
        self.with(|core| {
            let now = core.config.clock.now();
            operation::settle(&mut core.world, now);
            let lists = core.world.lists(account, None);
            lists
                .iter()
                .map(|list| with_items(list, &core.world, core.config.quirks))
                .collect()
        })
    }

    /// Makes a list in an account (by id) as somebody else would: the body that would create it, and `items`.
    pub fn foreign_create_list(&self, account: &str, body: &Map<String, Value>) -> Result<Value, Refusal> {
        self.with(|core| {
            let now = core.config.clock.now();
            let mut list = new_list(&mut core.world, account, None, body, now)?;
            let items = body.get("items").and_then(Value::as_array);
            let items = items::read_items(items.map_or(&[], Vec::as_slice))?;
            change(&mut core.world, &mut list, ItemChange::Add(items), now)?;
            core.world.put_list(list.clone(), now);
            Ok(with_items(&list, &core.world, core.config.quirks))
        })
    }

    /// Adds items to a list (by id or name), at once, as somebody else would. Those that are there get the comment.
    pub fn foreign_add_list_items(&self, account: &str, list: &str, items: &[Value]) -> Result<(), Refusal> {
        let items = items::read_items(items)?;
        self.edit_list(account, list, |world, list, now| {
            change(world, list, ItemChange::Add(items), now)
        })
    }

    /// Removes an item of a list (by id or name), at once, as somebody else would.
    pub fn foreign_remove_list_item(&self, account: &str, list: &str, ip: &str) -> Result<(), Refusal> {
        let address = Address::parse(ip).map_err(|error| unproven(&error.to_string()))?;
        self.edit_list(account, list, |world, list, now| {
            let id = list.items.get(&address).map(|item| item.id.clone());
            let id = id.ok_or_else(|| unproven("could not find list item"))?;
            change(world, list, ItemChange::Remove(vec![id]), now)
        })
    }

    /// Describes a list (by id or name) as somebody else would.
    pub fn foreign_describe_list(&self, account: &str, list: &str, description: &str) -> Result<(), Refusal> {
        self.edit_list(account, list, |_, list, now| {
            list.description = Some(description.to_owned()).filter(|text| !text.is_empty());
            list.modified_on = now;
            Ok(())
        })
    }

    /// Deletes a list (by id or name) as somebody else would, used or not.
    pub fn foreign_delete_list(&self, account: &str, list: &str) -> Result<(), Refusal> {
        self.with(|core| {
            let now = core.config.clock.now();
            operation::settle(&mut core.world, now);
            let id = core.world.find_list(account, list).map(|list| list.id.clone());
            core.world.remove_list(&id.ok_or_else(not_found)?, now);
            Ok(())
        })
    }

    /// Sets the expressions of the rules of an account (by id) that are not modelled: lists that they name are in use.
    pub fn set_other_expressions(&self, account: &str, expressions: &[&str]) {
        self.with(|core| {
            let now = core.config.clock.now();
            let expressions = expressions.iter().map(|&text| text.to_owned()).collect();
            core.world.set_other_expressions(account, expressions, now);
        });
    }

    /// The next operation of an account on list items fails with this text.
    pub fn fail_next_bulk_operation(&self, account: &str, error: &str) {
        self.with(|core| {
            let now = core.config.clock.now();
            core.world
                .with_operations(account, now, |all| all.failure = Some(error.to_owned()));
        });
    }

    fn edit_list(
        &self,
        account: &str,
        list: &str,
        edit: impl FnOnce(&mut World, &mut List, Timestamp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.with(|core| {
            let now = core.config.clock.now();
            operation::settle(&mut core.world, now);
            let list = core.world.find_list(account, list).cloned().ok_or_else(not_found)?;
            let mut list = Arc::unwrap_or_clone(list);
            edit(&mut core.world, &mut list, now)?;
            core.world.put_list(list, now);
            Ok(())
        })
    }
}

fn change(world: &mut World, list: &mut List, change: ItemChange, now: Timestamp) -> Result<(), Refusal> {
    operation::change_items(world, list, change, now).map_err(|text| unproven(&text))
}

fn with_items(list: &List, world: &World, quirks: Quirks) -> Value {
    let mut shown = render(list, world);
    let items = list.items.iter();
    shown["items"] = items
        .map(|(address, item)| items::render(address, item, quirks))
        .collect();
    shown
}

/// Every list, by account and name.
pub(crate) fn dump(world: &World) -> Value {
    let accounts = world.held().accounts.keys();
    let lists = accounts.flat_map(|account| world.lists(account, None));
    lists
        .map(|list| {
            let mut shown = with_items(&list, world, Quirks::default());
            shown["account_id"] = json!(list.account_id);
            shown
        })
        .collect()
}

impl ListSeed {
    /// Adds the list to an account. Quotas do not count.
    pub(crate) fn add_to(&self, world: &mut World, account: &str, id: String, now: Timestamp) -> Result<(), Refusal> {
        let mut body = Map::new();
        body.insert("name".into(), json!(self.name));
        body.insert("kind".into(), json!(ListKind::name(self.kind)));
        body.insert("description".into(), json!(self.description));
        let mut list = new_list(world, account, Some(id), &body, now)?;
        let items: Vec<Value> = self.items.iter().map(|item| json!(item)).collect();
        change(world, &mut list, ItemChange::Add(items::read_items(&items)?), now)?;
        world.put_list(list, now);
        Ok(())
    }
}

/// The part of the control API that is about lists.
pub(crate) fn control() -> Router<Simulator> {
    Router::new()
        .route("/accounts/{account}/lists", get(show).post(create))
        .route("/accounts/{account}/lists/{list}", axum::routing::delete(delete))
        .route("/accounts/{account}/lists/{list}/items", post(add))
        .route("/accounts/{account}/expressions", put(refer))
        .route("/accounts/{account}/bulk_operations/failure", put(fail))
}

type Sim = State<Simulator>;

async fn show(State(sim): Sim, Path(account): Path<String>) -> Json<Value> {
    Json(json!({ "lists": sim.lists(&account) }))
}

async fn create(
    State(sim): Sim,
    Path(account): Path<String>,
    Json(body): Json<Map<String, Value>>,
) -> Result<Json<Value>, Refusal> {
    sim.foreign_create_list(&account, &body).map(Json)
}

async fn delete(State(sim): Sim, Path((account, list)): Path<(String, String)>) -> Result<StatusCode, Refusal> {
    sim.foreign_delete_list(&account, &list)
        .map(|()| StatusCode::NO_CONTENT)
}

async fn add(
    State(sim): Sim,
    Path((account, list)): Path<(String, String)>,
    Json(items): Json<Vec<Value>>,
) -> Result<StatusCode, Refusal> {
    sim.foreign_add_list_items(&account, &list, &items)
        .map(|()| StatusCode::NO_CONTENT)
}

async fn refer(State(sim): Sim, Path(account): Path<String>, Json(expressions): Json<Vec<String>>) -> StatusCode {
    let expressions: Vec<&str> = expressions.iter().map(String::as_str).collect();
    sim.set_other_expressions(&account, &expressions);
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    error: String,
}

async fn fail(State(sim): Sim, Path(account): Path<String>, Json(failure): Json<Failure>) -> StatusCode {
    sim.fail_next_bulk_operation(&account, &failure.error);
    StatusCode::NO_CONTENT
}
