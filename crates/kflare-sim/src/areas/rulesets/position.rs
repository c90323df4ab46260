//! Where a rule is to stand.

use serde_json::{Map, Value};

use super::error;
use super::ruleset::Rule;
use crate::envelope::Refusal;

/// A place in the list of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    First,
    Last,
    Before(String),
    After(String),
    /// From 1.
    Index(usize),
    /// Where it would stand without being told, from 0.
    Kept(usize),
}

/// The `position` of a body.
pub(super) fn read(body: &Map<String, Value>) -> Result<Option<Position>, Refusal> {
    const POINTER: &str = "/position";
    let position = match body.get("position") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(position)) => position,
        Some(other) => return Err(error::invalid(&other.to_string(), "it must be an object", POINTER)),
    };
    let given: Vec<(&str, &Value)> = position.iter().map(|(key, value)| (key.as_str(), value)).collect();
    match given[..] {
        [("before", Value::String(id))] if id.is_empty() => Ok(Some(Position::First)),
        [("before", Value::String(id))] => Ok(Some(Position::Before(id.clone()))),
        [("after", Value::String(id))] if id.is_empty() => Ok(Some(Position::Last)),
        [("after", Value::String(id))] => Ok(Some(Position::After(id.clone()))),
        [("index", Value::Number(index))] => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            index
                .filter(|index| *index > 0)
                .map(|index| Some(Position::Index(index)))
                .ok_or_else(out_of_range)
        }
        _ => Err(error::wrong(
            "position must have exactly one of before, after and index",
            POINTER,
        )),
    }
}

fn out_of_range() -> Refusal {
    error::wrong("the index of the position is out of range", "/position/index")
}

/// Puts a rule among the others.
pub(super) fn place(others: &mut Vec<Rule>, rule: Rule, position: &Position) -> Result<(), Refusal> {
    let index_of = |id: &str, pointer: &str| {
        let found = others.iter().position(|other| other.id == id);
        found.ok_or_else(|| error::invalid(id, "there is no such rule in the ruleset", pointer))
    };
    let index = match position {
        Position::First => 0,
        Position::Last => others.len(),
        Position::Before(id) => index_of(id, "/position/before")?,
        Position::After(id) => index_of(id, "/position/after")? + 1,
        Position::Index(index) if *index <= others.len() + 1 => index - 1,
        Position::Index(_) => return Err(out_of_range()),
        Position::Kept(index) => (*index).min(others.len()),
    };
    others.insert(index, rule);
    Ok(())
}
