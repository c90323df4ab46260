//! The modelled areas of the API, one module each. An area is a table of routes and their handlers.

pub(crate) mod accounts;
pub(crate) mod dns;
pub(crate) mod lists;
pub(crate) mod managed_headers;
pub(crate) mod rulesets;
pub(crate) mod stores;
pub(crate) mod tokens;
pub(crate) mod tunnels;
pub(crate) mod worker_routes;
pub(crate) mod workers;
pub(crate) mod zones;
