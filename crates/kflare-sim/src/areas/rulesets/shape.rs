//! The shapes of objects in rules, and the check against them.
//!
//! Fields that a shape does not have are refused. Whether Cloudflare does so or ignores them is unproven; a misspelt field
//! must not go unseen.

use serde_json::{Map, Value};

use super::error;
use crate::envelope::Refusal;

/// What a value has to look like.
pub(super) enum Shape {
    Bool,
    /// `true`, never `false`.
    True,
    /// A whole number in a range, both ends included.
    Int(i64, i64),
    /// One of these numbers.
    OneOf(&'static [i64]),
    /// A text of so many characters.
    Text(usize, usize),
    /// One of these words.
    Word(&'static [&'static str]),
    /// An expression; see `expression`.
    Expression,
    /// At least so many entries, none twice.
    List(usize, &'static Shape),
    /// At least one entry, keys at will.
    Map(&'static Shape),
    /// Only these fields, and at least one of them.
    Object(&'static [Field]),
}

/// A field of an object.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) need: Need,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Optional,
}

pub(super) const fn required(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        need: Need::Required,
    }
}

pub(super) const fn optional(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        need: Need::Optional,
    }
}

/// Collects the expressions of what it checks, each with its pointer: they are checked by those who know the plan.
pub(super) type Expressions<'a> = Vec<(&'a str, String)>;

/// Checks a value. Nulls in objects have been taken out before.
pub(super) fn check<'a>(
    shape: &Shape,
    value: &'a Value,
    pointer: &str,
    expressions: &mut Expressions<'a>,
) -> Result<(), Refusal> {
    let wrong = |reason: &str| Err(error::invalid(&plain(value), reason, pointer));
    match (shape, value) {
        (Shape::Bool, Value::Bool(_)) | (Shape::True, Value::Bool(true)) => Ok(()),
        (Shape::Bool, _) => wrong("it must be true or false"),
        (Shape::True, _) => wrong("it can only be true"),
        (Shape::Int(min, max), _) => match value.as_i64() {
            Some(number) if (*min..=*max).contains(&number) => Ok(()),
            _ => wrong(&format!("it must be a whole number from {min} to {max}")),
        },
        (Shape::OneOf(numbers), _) => match value.as_i64() {
            Some(number) if numbers.contains(&number) => Ok(()),
            _ => wrong(&format!("it must be one of {numbers:?}")),
        },
        (Shape::Text(min, max), Value::String(text)) if (*min..=*max).contains(&text.chars().count()) => Ok(()),
        (Shape::Text(min, max), _) => wrong(&format!("it must be a text of {min} to {max} characters")),
        (Shape::Word(words), Value::String(text)) if words.contains(&text.as_str()) => Ok(()),
        (Shape::Word(words), _) => wrong(&format!("it must be one of {words:?}")),
        (Shape::Expression, Value::String(text)) => {
            expressions.push((text, pointer.to_owned()));
            Ok(())
        }
        (Shape::Expression, _) => wrong("it must be a text"),
        (Shape::List(min, of), Value::Array(list)) => {
            if list.len() < *min {
                return wrong(&format!("it must have at least {min} entries"));
            }
            for (index, entry) in list.iter().enumerate() {
                let pointer = format!("{pointer}/{index}");
                if list[..index].contains(entry) {
                    return Err(error::invalid(&plain(entry), "it is in the list twice", &pointer));
                }
                check(of, entry, &pointer, expressions)?;
            }
            Ok(())
        }
        (Shape::List(..), _) => wrong("it must be a list"),
        (Shape::Map(of), Value::Object(entries)) if !entries.is_empty() => entries
            .iter()
            .try_for_each(|(key, entry)| check(of, entry, &format!("{pointer}/{key}"), expressions)),
        (Shape::Object(fields), Value::Object(entries)) if !entries.is_empty() => {
            check_object(fields, entries, pointer, expressions)
        }
        (Shape::Map(_) | Shape::Object(_), _) => wrong("it must be an object that is not empty"),
    }
}

fn check_object<'a>(
    fields: &[Field],
    entries: &'a Map<String, Value>,
    pointer: &str,
    expressions: &mut Expressions<'a>,
) -> Result<(), Refusal> {
    for (key, value) in entries {
        let pointer = format!("{pointer}/{key}");
        match fields.iter().find(|field| field.name == key) {
            Some(field) => check(&field.shape, value, &pointer, expressions)?,
            None => return Err(error::wrong(format!("unknown field \"{key}\""), &pointer)),
        }
    }
    for field in fields.iter().filter(|field| field.need == Need::Required) {
        if !entries.contains_key(field.name) {
            let pointer = format!("{pointer}/{}", field.name);
            return Err(error::wrong(format!("{} is required", field.name), &pointer));
        }
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An object without the fields that are null, at any depth: null means absent.
pub(super) fn without_nulls(object: &Map<String, Value>) -> Map<String, Value> {
    object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            let value = match value {
                Value::Object(inner) => Value::Object(without_nulls(inner)),
                Value::Array(list) => list
                    .iter()
                    .map(|entry| match entry {
                        Value::Object(inner) => Value::Object(without_nulls(inner)),
                        other => other.clone(),
                    })
                    .collect(),
                other => other.clone(),
            };
            (key.clone(), value)
        })
        .collect()
}
