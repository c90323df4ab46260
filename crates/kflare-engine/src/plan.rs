//! What will be done about one resource, as a plain value: the executor carries it out, `kflare plan` prints it, observe
//! mode puts it into status. All three see the same value.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::reason::Reason;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Dotted path in Cloudflare's spelling.
    pub path: String,
    /// What Cloudflare has; `null` when absent.
    pub from: Value,
    /// What the spec asks for; `null` means cleared.
    pub to: Value,
    /// The values must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret {
            return write!(f, "{}: (secret) changes", self.path);
        }
        write!(f, "{}: {} -> {}", self.path, short(&self.from), short(&self.to))
    }
}

/// A value on one line, cut to 120 characters.
fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => return "(unset)".to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() <= 120 {
        text
    } else {
        format!("{}…", text.chars().take(119).collect::<String>())
    }
}

/// Names of the fields in `changes`, for messages.
pub fn field_names(changes: &[Change]) -> String {
    changes
        .iter()
        .map(|change| change.path.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// What will be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "camelCase")]
pub enum Plan {
    /// Cloudflare has what the spec asks for.
    NoOp {
        /// Cloudflare's id.
        id: String,
    },
    /// The object is missing and will be created.
    Create {
        /// Its fields, from unset.
        changes: Vec<Change>,
    },
    /// Fields differ and will be written.
    Update {
        /// Cloudflare's id.
        id: String,
        /// The fields.
        changes: Vec<Change>,
    },
    /// A field that Cloudflare cannot change in place differs: delete, then create.
    Replace {
        /// Cloudflare's id of the object that goes.
        id: String,
        /// The fields.
        changes: Vec<Change>,
    },
    /// An existing object comes under management, because the user asked for it.
    Adopt {
        /// Cloudflare's id.
        id: String,
        /// What it changes at once.
        changes: Vec<Change>,
    },
    /// An object that an interrupted create of ours left behind is found again.
    Recover {
        /// Cloudflare's id.
        id: String,
        /// What it changes at once.
        changes: Vec<Change>,
    },
    /// The object will be deleted.
    Delete {
        /// Cloudflare's id.
        id: String,
    },
    /// The resource goes, the object at Cloudflare stays or does not exist.
    Forget {
        /// Why nothing is deleted.
        why: String,
    },
    /// Nothing will be done until the user decides something.
    Blocked {
        /// Reason of the condition.
        reason: Reason,
        /// Message of the condition.
        message: String,
        /// What stands in the way or would change.
        changes: Vec<Change>,
    },
    /// Nothing can be done yet.
    Wait {
        /// Reason of the condition.
        reason: Reason,
        /// Message of the condition.
        message: String,
    },
}

impl Plan {
    /// Whether carrying it out writes to Cloudflare.
    pub fn writes(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Update { .. } | Self::Replace { .. } | Self::Delete { .. } => true,
            Self::Adopt { changes, .. } | Self::Recover { changes, .. } => !changes.is_empty(),
            Self::NoOp { .. } | Self::Forget { .. } | Self::Blocked { .. } | Self::Wait { .. } => false,
        }
    }

    /// The field changes it carries.
    pub fn changes(&self) -> &[Change] {
        match self {
            Self::Create { changes }
            | Self::Update { changes, .. }
            | Self::Replace { changes, .. }
            | Self::Adopt { changes, .. }
            | Self::Recover { changes, .. }
            | Self::Blocked { changes, .. } => changes,
            _ => &[],
        }
    }

    /// One word for tables and logs.
    pub fn action(&self) -> &'static str {
        match self {
            Self::NoOp { .. } => "unchanged",
            Self::Create { .. } => "create",
            Self::Update { .. } => "update",
            Self::Replace { .. } => "replace",
            Self::Adopt { .. } => "adopt",
            Self::Recover { .. } => "recover",
            Self::Delete { .. } => "delete",
            Self::Forget { .. } => "forget",
            Self::Blocked { .. } => "blocked",
            Self::Wait { .. } => "wait",
        }
    }

    /// The plan as short lines: the action, then a line a field. At most `limit` lines.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let head = match self {
            Self::Blocked { reason, message, .. } | Self::Wait { reason, message } => {
                format!("{}: {reason}: {message}", self.action())
            }
            Self::Forget { why } => format!("forget: {why}"),
            _ => self.action().to_owned(),
        };
        let mut lines = vec![head];
        lines.extend(self.changes().iter().map(Change::to_string));
        if lines.len() > limit {
            let left = lines.len() - limit + 1;
            lines.truncate(limit.saturating_sub(1));
            lines.push(format!("… and {left} more"));
        }
        lines
    }
}

/// Path of a change of place, in collections whose order means something.
pub const POSITION: &str = "position";

/// How fields that need more than plain comparison are treated. Paths are dotted, in Cloudflare's spelling.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldRules {
    /// Fields that Cloudflare cannot change in place.
    pub immutable: &'static [&'static str],
    /// Fields whose values must not be shown.
    pub secret: &'static [&'static str],
    /// Top-level fields that Cloudflare does not take at creation; they are set afterwards.
    pub after_create: &'static [&'static str],
    /// Fields that Cloudflare does not always tell: where an answer leaves one out, it is no difference.
    pub untold: &'static [&'static str],
    /// Top-level fields, also of the metadata, that lists and look-ups by name leave out; only a read of the one object tells
    /// them.
    pub unlisted: &'static [&'static str],
    /// Top-level fields that no read tells (secret values). They count as they should be while Cloudflare's mark of the last
    /// change ([`crate::Remote::revision`]) is the one that our own write left, and what we wrote is what the spec asks for.
    pub write_only: &'static [&'static str],
    /// Top-level fields within which absence is a value of its own: there `false`, empty text and an empty list are not the same
    /// as a member that is not there.
    pub exact: &'static [&'static str],
    /// Fields among `unlisted` whose change leaves that mark as it was: whether they are as the spec asks for, only a read tells.
    pub unmarked: &'static [&'static str],
    /// Top-level objects to which Cloudflare adds members of its own when it makes the object: an intent covers the members that
    /// are sent, and not those.
    pub filled: &'static [&'static str],
}

impl FieldRules {
    /// Every field is compared as it stands.
    pub const PLAIN: Self = Self {
        immutable: &[],
        secret: &[],
        after_create: &[],
        untold: &[],
        unlisted: &[],
        write_only: &[],
        exact: &[],
        unmarked: &[],
        filled: &[],
    };

    /// Whether the value that is wanted at `path` is what is there.
    fn same(&self, path: &str, want: &Value, have: &Value) -> bool {
        let top = path.split('.').next().unwrap_or(path);
        let absent = want.is_null() != have.is_null();
        same(want, have) && !(absent && self.exact.contains(&top))
    }

    /// Whether Cloudflare's mark of the last change stands for every field of `desired` that a list does not tell.
    pub fn mark_covers(&self, desired: &Map<String, Value>) -> bool {
        !self.unmarked.iter().any(|field| desired.contains_key(*field))
    }

    /// The fields of `desired` that a list does not tell.
    pub fn unread(&self, desired: &Map<String, Value>) -> Map<String, Value> {
        let unread = self.unlisted.iter().chain(self.write_only);
        unread
            .filter_map(|field| Some(((*field).to_owned(), desired.get(*field)?.clone())))
            .collect()
    }

    /// The fields that no read tells and that are still to be filled in: of an object that kflare has never written, they are
    /// written in any case.
    pub(crate) fn never_told(&self, desired: &Map<String, Value>) -> Vec<Change> {
        let unfilled = |field: &&&str| desired.get(**field).is_none_or(Value::is_null);
        let written = self.write_only.iter().filter(unfilled).map(|field| Change {
            path: (*field).to_owned(),
            from: Value::Null,
            to: Value::Null,
            secret: true,
        });
        written.collect()
    }

    /// `metadata` with what a list does not tell of it as `status` has it already, if that is of the same object.
    pub(crate) fn told_before(
        &self,
        metadata: &Map<String, Value>,
        status: &Map<String, Value>,
        id_field: Option<&str>,
    ) -> Map<String, Value> {
        let mut whole = metadata.clone();
        let before = status.get("cloudflareMetadata").and_then(Value::as_object);
        let same = |before: &&Map<String, Value>| {
            id_field.is_some_and(|field| before.get(field).is_some() && before.get(field) == metadata.get(field))
        };
        for (field, value) in before.filter(same).into_iter().flatten() {
            if self.unlisted.contains(&field.as_str()) && !whole.contains_key(field) {
                whole.insert(field.clone(), value.clone());
            }
        }
        whole
    }
}

/// The fields set in `desired` that `remote` has otherwise. Both are in canonical form. Fields that `desired` leaves out
/// are not ours and are not compared; a `null`, empty text, empty list or `false` in `desired` equals an absent field.
pub fn diff(desired: &Map<String, Value>, remote: &Map<String, Value>, rules: FieldRules) -> Vec<Change> {
    let mut changes = Vec::new();
    walk("", desired, remote, rules, &mut changes);
    changes
}

fn walk(
    prefix: &str,
    desired: &Map<String, Value>,
    remote: &Map<String, Value>,
    rules: FieldRules,
    changes: &mut Vec<Change>,
) {
    for (name, want) in desired {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        let have = remote.get(name).unwrap_or(&Value::Null);
        match (want, have) {
            (Value::Object(want), Value::Object(have)) => walk(&path, want, have, rules, changes),
            (Value::Object(inner), Value::Null) if !inner.is_empty() => walk(&path, inner, &Map::new(), rules, changes),
            _ if rules.same(&path, want, have) => {}
            (_, Value::Null) if rules.untold.contains(&path.as_str()) => {}
            _ => {
                let secret = rules.secret.contains(&path.as_str());
                changes.push(Change {
                    path,
                    from: have.clone(),
                    to: want.clone(),
                    secret,
                });
            }
        }
    }
}

/// Whether a wanted value equals what is there, absence counting as the type's zero.
fn same(want: &Value, have: &Value) -> bool {
    if want == have {
        return true;
    }
    match (want, have) {
        (Value::Null, other) | (other, Value::Null) => match other {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Number(_) => false,
        },
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else {
            panic!("no object: {value}")
        };
        fields
    }

    #[test]
    fn only_fields_the_spec_sets_are_compared() {
        let changes = diff(
            &map(json!({"ttl": 1, "data": {"port": 5222}})),
            &map(json!({"ttl": 300, "proxied": true, "data": {"port": 5222, "weight": 3}})),
            FieldRules::default(),
        );
        assert_eq!(
            changes,
            vec![Change {
                path: "ttl".into(),
                from: json!(300),
                to: json!(1),
                secret: false
            }]
        );
    }

    #[test]
    fn absent_null_false_and_empty_are_one() {
        for have in [
            json!({}),
            json!({"a": null, "b": null, "c": null, "d": null}),
            json!({"a": false, "b": "", "c": [], "d": {}}),
        ] {
            for want in [
                json!({"a": null, "b": null, "c": null, "d": null}),
                json!({"a": false, "b": "", "c": [], "d": {}}),
            ] {
                assert_eq!(
                    diff(&map(want.clone()), &map(have.clone()), FieldRules::default()),
                    vec![],
                    "{want} {have}"
                );
            }
        }
        assert_eq!(
            diff(&map(json!({"n": 0})), &map(json!({})), FieldRules::default()).len(),
            1,
            "a number 0 is a value"
        );
    }

    #[test]
    fn where_it_matters_what_is_off_is_not_what_is_absent() {
        let rules = FieldRules {
            exact: &["parameters"],
            ..FieldRules::default()
        };
        let absent = map(json!({"parameters": {"on": true}}));
        for off in [json!(false), json!(""), json!([])] {
            let want = map(json!({"parameters": {"on": true, "off": off}, "other": off}));
            let changes = diff(&want, &absent, rules);
            assert_eq!(field_names(&changes), "parameters.off");
            let unset = map(json!({"parameters": {"on": true, "off": null}}));
            assert_eq!(field_names(&diff(&unset, &want, rules)), "parameters.off");
        }
        let nothing = map(json!({"parameters": {"on": null}}));
        assert_eq!(diff(&nothing, &map(json!({})), rules), vec![]);
        assert_eq!(diff(&absent, &absent, rules), vec![]);
    }

    #[test]
    fn a_field_that_is_not_always_told_differs_only_when_it_is() {
        let rules = FieldRules {
            untold: &["parts"],
            ..FieldRules::default()
        };
        let want = map(json!({"parts": ["a", "b"]}));
        assert_eq!(diff(&want, &map(json!({})), rules), vec![]);
        assert_eq!(diff(&want, &map(json!({"parts": null})), rules), vec![]);
        assert_eq!(diff(&want, &map(json!({"parts": ["ab"]})), rules).len(), 1);
        assert_eq!(diff(&want, &map(json!({})), FieldRules::default()).len(), 1);
    }

    #[test]
    fn a_secret_change_shows_no_value() {
        let rules = FieldRules {
            secret: &["text"],
            ..FieldRules::default()
        };
        let changes = diff(&map(json!({"text": "hush"})), &map(json!({"text": "old"})), rules);
        assert_eq!(changes[0].to_string(), "text: (secret) changes");
    }

    #[test]
    fn lines_are_capped() {
        let changes = (0..30).map(|n| Change {
            path: format!("f{n}"),
            from: Value::Null,
            to: json!(n),
            secret: false,
        });
        let lines = Plan::Update {
            id: "x".into(),
            changes: changes.collect(),
        }
        .lines(10);
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[9], "… and 22 more");
    }
}
