//! Workers and the routes that lead to them.

mod bindings;
mod content;
mod migrations;
pub mod route;
pub mod script;
mod settings;

use crate::json::present;
