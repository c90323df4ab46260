//! The named objects of an account: KV namespaces, R2 buckets, D1 databases, queues. There is one of a name at most, and the
//! name is what they are found by.

pub mod d1;
pub mod kv;
pub mod queue;
pub mod r2;
mod r2_rules;

use kflare_api::common::ResourceRef;
use kflare_cloudflare::Error;
use kflare_engine::{Deleted, NaturalKey, Reference};

use crate::json::present;

/// The identity of the object of this name.
fn key(name: &str) -> NaturalKey {
    NaturalKey {
        group: name.to_owned(),
        ..NaturalKey::default()
    }
}

fn references(account: &ResourceRef) -> Vec<Reference> {
    vec![Reference::new("accountRef", "CloudflareAccount", &account.name)]
}

/// Whether Cloudflare says that the object does not exist: 404 with the code of the product. Another 404 may be about the
/// account, or the way there.
fn is_missing(error: &Error, code: i64) -> bool {
    error.status() == Some(404) && error.has_code(code)
}

/// The answer to a read; none where the object does not exist.
fn found<T>(answer: Result<T, Error>, missing: i64) -> Result<Option<T>, Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if is_missing(&error, missing) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The answer to a deletion; that the object did not exist is a success.
fn deleted(answer: Result<(), Error>, missing: i64) -> Result<Deleted, Error> {
    found(answer, missing).map(|_| Deleted::default())
}
