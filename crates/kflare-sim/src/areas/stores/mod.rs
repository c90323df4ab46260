//! What an account stores data in: KV namespaces, R2 buckets, D1 databases, queues.

pub(crate) mod d1;
pub(crate) mod kv;
pub(crate) mod queues;
pub(crate) mod r2;
mod r2_rules;
pub(crate) mod seed;

use crate::auth::Access;
use crate::budget::Policy;
use crate::route::{Answers, Handler, Route};

/// A route that answers with something other than a list.
const fn route(
    method: &'static str,
    template: &'static str,
    access: Access,
    policy: Policy,
    handler: Handler,
) -> Route {
    Route {
        method,
        template,
        access,
        answers: Answers::Other,
        policy,
        handler,
    }
}

/// A route that answers with a list.
const fn list_route(template: &'static str, access: Access, policy: Policy, handler: Handler) -> Route {
    Route {
        answers: Answers::List,
        ..route("GET", template, access, policy, handler)
    }
}

/// The regions that can be asked for, in lower case.
const REGIONS: [&str; 6] = ["wnam", "enam", "weur", "eeur", "apac", "oc"];

/// Where something is made that names a jurisdiction or nothing. Which region Cloudflare takes is not known; the choice here
/// is always the same.
fn region_of(jurisdiction: Option<&str>) -> &'static str {
    match jurisdiction {
        Some("eu") => "weur",
        _ => "enam",
    }
}
