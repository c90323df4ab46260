//! Values in as little memory as can be. There are tens of thousands of them, they stay for as long as the process does, and
//! they are looked at rarely: a tree of JSON values takes six times as much as its text.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// A JSON value, kept as its text and read on demand. Equal values are equal: fields are in order.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Json(Box<str>);

impl Json {
    /// The whole value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The fields of an object; none of anything else.
    pub fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// What is at the end of a path of field names. None if there is nothing, or nothing of that type.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Option<T> {
        if self.0.is_empty() {
            return None;
        }
        let mut text = serde_json::Deserializer::from_str(&self.0);
        At::new(path).deserialize(&mut text).ok().flatten()
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            // The usual status of a new resource takes no memory.
            Value::Null => Self::default(),
            value => Self(value.to_string().into()),
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<Map<String, Value>> for Json {
    fn from(fields: Map<String, Value>) -> Self {
        Self::from(Value::Object(fields))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "null" } else { &self.0 })
    }
}

/// Reads what is at a path and passes over the rest.
struct At<'a, T> {
    path: &'a [&'a str],
    found: std::marker::PhantomData<fn() -> T>,
}

impl<'a, T> At<'a, T> {
    fn new(path: &'a [&'a str]) -> Self {
        Self {
            path,
            found: std::marker::PhantomData,
        }
    }
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for At<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.path.is_empty() {
            T::deserialize(deserializer).map(Some)
        } else {
            deserializer.deserialize_map(self)
        }
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for At<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((first, rest)) = self.path.split_first() else {
            return Err(A::Error::custom("a path is followed to its end only"));
        };
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(Is(first))? {
            if is_it {
                found = map.next_value_seed(At::new(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a name is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// A few texts by name, such as labels.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TextMap(Box<[(Box<str>, Box<str>)]>);

impl TextMap {
    /// The text of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, text)| text)
    }

    /// All, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_ref(), text.as_ref()))
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }
}

impl FromIterator<(String, String)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> Self {
        let all = all.into_iter().map(|(name, text)| (name.into(), text.into()));
        Self(all.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c\"\\\\é\n]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"]{1,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_comes_back_as_it_was(value in any_value()) {
            prop_assert_eq!(Json::from(&value).value(), value);
        }

        #[test]
        fn a_path_finds_what_it_finds_in_the_tree(value in any_value(), path in prop::collection::vec("[a-c]", 0..4)) {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            let expected = names.iter().try_fold(&value, |at, name| at.get(name)).filter(|_| !value.is_null());
            let found = Json::from(&value).get::<Value>(&names);
            prop_assert_eq!(found.as_ref(), expected);
        }
    }

    #[test]
    fn another_type_is_not_found() {
        let json = Json::from(json!({ "a": { "b": 7 } }));
        assert_eq!(json.get::<i64>(&["a", "b"]), Some(7));
        assert_eq!(json.get::<String>(&["a", "b"]), None);
        assert_eq!(json.get::<String>(&["a", "b", "c"]), None);
    }
}
