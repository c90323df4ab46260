//! `POST .../batch`: many changes in one transaction.

use serde_json::{Map, Value, json};

use super::error;
use super::write::{Change, Quota, Writer};
use super::{Record, render_all, with_writer};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;

/// The changed records, in the order in which the changes are made: deletes, patches, puts, posts.
#[derive(Default)]
struct Outcome {
    deletes: Vec<Record>,
    patches: Vec<Record>,
    puts: Vec<Record>,
    posts: Vec<Record>,
}

/// Deletes, then patches, then puts, then posts. The first failure undoes everything and is the answer.
pub(super) fn batch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let entries = |key: &str| entries(&body, key);
    let (deletes, patches, puts, posts) = (
        entries("deletes")?,
        entries("patches")?,
        entries("puts")?,
        entries("posts")?,
    );
    let limit = call.zone()?.plan.batch_limit();
    let count = deletes.len() + patches.len() + puts.len() + posts.len();
    if count > limit {
        return Err(error::batch_too_large(count, limit));
    }
    let start = call.world.version();
    let outcome = with_writer(call, |writer| apply(writer, &deletes, &patches, &puts, &posts));
    let outcome = outcome.inspect_err(|_| call.world.roll_back(start))?;
    Ok(Reply::object(json!({
        "deletes": render_all(&outcome.deletes, call),
        "patches": render_all(&outcome.patches, call),
        "puts": render_all(&outcome.puts, call),
        "posts": render_all(&outcome.posts, call),
    })))
}

type Entry = Map<String, Value>;

fn apply(
    writer: &mut Writer<'_>,
    deletes: &[Entry],
    patches: &[Entry],
    puts: &[Entry],
    posts: &[Entry],
) -> Result<Outcome, Refusal> {
    let mut outcome = Outcome::default();
    for entry in deletes {
        outcome.deletes.push(writer.delete(id(entry)?)?);
    }
    for entry in patches {
        outcome.patches.push(writer.change(id(entry)?, entry, Change::Merge)?);
    }
    for entry in puts {
        outcome.puts.push(writer.change(id(entry)?, entry, Change::Overwrite)?);
    }
    for entry in posts {
        outcome.posts.push(writer.create(entry, Quota::Enforced)?);
    }
    Ok(outcome)
}

fn entries(body: &Entry, key: &str) -> Result<Vec<Entry>, Refusal> {
    let malformed = || {
        Refusal::new(
            400,
            6007,
            format!("Malformed JSON in request body: {key} must be a list of objects"),
        )
    };
    match body.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| entry.as_object().cloned().ok_or_else(malformed))
            .collect(),
        Some(_) => Err(malformed()),
    }
}

fn id(entry: &Entry) -> Result<&str, Refusal> {
    entry.get("id").and_then(Value::as_str).ok_or_else(error::no_record)
}
