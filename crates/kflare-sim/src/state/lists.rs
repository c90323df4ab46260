//! Lists of an account: the lists, their items, and the operations that write items.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::journal::Undo;
use super::{Point, World};
use crate::areas::lists::Address;

/// What a list holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListKind {
    /// Addresses and networks.
    #[default]
    Ip,
    /// Bulk redirects.
    Redirect,
    /// Host names.
    Hostname,
    /// Numbers of autonomous systems.
    Asn,
}

impl ListKind {
    pub(crate) fn find(name: &str) -> Option<Self> {
        [Self::Ip, Self::Redirect, Self::Hostname, Self::Asn]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Redirect => "redirect",
            Self::Hostname => "hostname",
            Self::Asn => "asn",
        }
    }
}

/// The items of a list of addresses, in the order in which they are listed.
pub(crate) type Items = BTreeMap<Address, Item>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) comment: String,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct List {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) name: String,
    pub(crate) kind: ListKind,
    pub(crate) description: Option<String>,
    pub(crate) items: Arc<Items>,
    pub(crate) created_on: Timestamp,
    pub(crate) modified_on: Timestamp,
}

/// What an operation does to the items of its list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemChange {
    /// Adds items; those that are there get the comment.
    Add(Vec<(Address, String)>),
    /// Puts these in the place of all there are.
    Replace(Vec<(Address, String)>),
    /// Removes items by id.
    Remove(Vec<String>),
}

/// How an operation ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) at: Timestamp,
    /// Why it failed, if it did.
    pub(crate) error: Option<String>,
}

/// An operation on the items of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) list_id: String,
    /// From then on it runs.
    pub(crate) starts: Timestamp,
    /// Then it is done.
    pub(crate) ends: Timestamp,
    /// None once it has ended.
    pub(crate) change: Option<ItemChange>,
    pub(crate) ending: Option<Ending>,
}

/// The operations of one account, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Operations {
    pub(crate) all: VecDeque<Operation>,
    /// How the next operation is to fail.
    pub(crate) failure: Option<String>,
}

/// How many operations of an account are remembered.
const REMEMBERED: usize = 1_000;

/// Everything about lists that a state file keeps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ListState {
    /// By id.
    pub(super) lists: BTreeMap<String, Arc<List>>,
    /// By account id.
    pub(super) operations: BTreeMap<String, Operations>,
    /// Expressions of rules that are not modelled, by account id.
    pub(super) expressions: BTreeMap<String, Vec<String>>,
}

impl ListState {
    pub(super) fn restore(&mut self, id: &str, before: Option<Arc<List>>) {
        match before {
            Some(list) => drop(self.lists.insert(id.to_owned(), list)),
            None => drop(self.lists.remove(id)),
        }
    }
}

impl World {
    /// The lists of an account by name, as they are or as they were.
    pub(crate) fn lists(&self, account: &str, at: Option<Point>) -> Vec<Arc<List>> {
        let mut lists = self.held.lists.lists.clone();
        if let Some(point) = at {
            for undo in self.journal.undone_since(point) {
                if let Undo::List { id, before } = undo {
                    match before {
                        Some(list) => drop(lists.insert(id.clone(), Arc::clone(list))),
                        None => drop(lists.remove(id)),
                    }
                }
            }
        }
        let mut lists: Vec<_> = lists.into_values().filter(|list| list.account_id == account).collect();
        lists.sort_by(|a, b| a.name.cmp(&b.name));
        lists
    }

    /// A list of an account, by id or name.
    pub(crate) fn find_list(&self, account: &str, id_or_name: &str) -> Option<&Arc<List>> {
        let of_account = |list: &&Arc<List>| list.account_id == account;
        let lists = &self.held.lists.lists;
        lists
            .get(id_or_name)
            .filter(of_account)
            .or_else(|| lists.values().filter(of_account).find(|list| list.name == id_or_name))
    }

    pub(crate) fn put_list(&mut self, list: List, now: Timestamp) {
        let id = list.id.clone();
        let before = self.held.lists.lists.insert(id.clone(), Arc::new(list));
        self.journal.push(now, Undo::List { id, before });
    }

    pub(crate) fn remove_list(&mut self, id: &str, now: Timestamp) {
        if let Some(before) = self.held.lists.lists.remove(id) {
            let (id, before) = (id.to_owned(), Some(before));
            self.journal.push(now, Undo::List { id, before });
        }
    }

    pub(crate) fn operations(&self, account: &str) -> Option<&Operations> {
        self.held.lists.operations.get(account)
    }

    /// The expressions of the rules of an account that are not modelled.
    pub(crate) fn other_expressions(&self, account: &str) -> impl Iterator<Item = &str> {
        let others = self.held.lists.expressions.get(account);
        others.into_iter().flatten().map(String::as_str)
    }

    /// Sets the expressions of the rules of an account that are not modelled.
    pub(crate) fn set_other_expressions(&mut self, account: &str, expressions: Vec<String>, now: Timestamp) {
        self.held.lists.expressions.insert(account.to_owned(), expressions);
        self.journal.push(now, Undo::Other);
    }

    /// Changes the operations of an account.
    pub(crate) fn with_operations<T>(
        &mut self,
        account: &str,
        now: Timestamp,
        work: impl FnOnce(&mut Operations) -> T,
    ) -> T {
        let operations = self.held.lists.operations.entry(account.to_owned()).or_default();
        let result = work(operations);
        while operations.all.len() > REMEMBERED && operations.all.front().is_some_and(|it| it.ending.is_some()) {
            operations.all.pop_front();
        }
        self.journal.push(now, Undo::Other);
        result
    }

    /// The accounts with an operation that should have ended by now.
    pub(crate) fn accounts_with_operations_due(&self, now: Timestamp) -> Vec<String> {
        let due = |operations: &Operations| operations.all.iter().any(|it| it.ending.is_none() && it.ends <= now);
        let all = self.held.lists.operations.iter();
        all.filter(|(_, operations)| due(operations))
            .map(|(account, _)| account.clone())
            .collect()
    }
}
