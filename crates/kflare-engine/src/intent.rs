//! The create intent: written with the finalizer before a create, so that an object whose creation was not seen to the end is
//! found again, and nothing else is ever taken for it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    digest::fingerprint,
    kind::{Desired, NaturalKey, Nature, Remote},
    mutation::{self, Mutation},
    plan::FieldRules,
};

/// A create that was not answered takes effect within that long after its intent, or never. Also: so long after an intent an
/// object without a creation time, equal to what was announced and unique by its name, is taken for ours.
const ARRIVES_WITHIN: Duration = Duration::from_mins(5);

/// Whole seconds of Cloudflare's `Date` header, rounded up, and the time an answer takes.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// What was about to be created, where and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Cloudflare's clock, whole seconds, before the first try that may have been carried out.
    pub from: Timestamp,
    /// The same before the latest try.
    pub at: Timestamp,
    /// The container it is created in.
    pub scope: String,
    /// Group of the natural key.
    pub group: String,
    /// Member of the natural key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub member: String,
    /// Name of the CloudflareAccount resource whose token is used.
    pub account: String,
    /// The fields that are sent. Of an object that Cloudflare fills up, each member, as `field/member`.
    pub fields: Vec<String>,
    /// Hash of their values.
    pub print: String,
    /// Made with the UID of the token Secret, over all of this and the UID of the resource: an intent that somebody else
    /// wrote, or that was copied with a manifest, has no effect.
    #[serde(default)]
    pub seal: String,
    /// When the latest try was over, if that was seen: nothing made later is ours.
    #[serde(skip)]
    pub over: Option<Timestamp>,
    /// The id that Cloudflare answered the latest try with, if that was seen: that object is ours, and no other.
    #[serde(skip)]
    pub id: Option<String>,
}

impl Intent {
    /// An intent to create `desired`. Fields that are not sent with the create, and fields that Cloudflare does not always
    /// tell, are no part of it.
    pub fn new(at: Timestamp, scope: &str, account: &str, desired: &Desired, rules: FieldRules) -> Self {
        let sent = desired.body.iter().filter(|(name, _)| {
            let left_out = [rules.after_create, rules.untold, rules.write_only];
            !left_out.iter().any(|fields| fields.contains(&name.as_str()))
        });
        let mut fields = Vec::new();
        for (name, value) in sent {
            if rules.filled.contains(&name.as_str()) {
                members(name, value, &mut fields);
            } else {
                fields.push(name.clone());
            }
        }
        Self {
            from: at,
            at,
            scope: scope.to_owned(),
            group: desired.key.group.clone(),
            member: desired.key.member.clone(),
            account: account.to_owned(),
            print: print(&desired.body, &fields),
            fields,
            seal: String::new(),
            over: None,
            id: None,
        }
    }

    /// The identity of what is created.
    pub fn key(&self) -> NaturalKey {
        NaturalKey {
            group: self.group.clone(),
            member: self.member.clone(),
        }
    }

    /// After that, what was not answered has not happened.
    pub fn latest_arrival(&self) -> Timestamp {
        self.at.saturating_add(ARRIVES_WITHIN).unwrap_or(Timestamp::MAX)
    }

    /// Whether `other` means the same object.
    pub fn is_same_object(&self, other: &Self) -> bool {
        (&self.scope, &self.group, &self.member, &self.print)
            == (&other.scope, &other.group, &other.member, &other.print)
    }

    /// What the seal is made over.
    pub fn sealed_text(&self, uid: &str) -> String {
        let Self {
            from,
            at,
            scope,
            group,
            member,
            account,
            fields,
            print,
            ..
        } = self;
        serde_json::json!([uid, from, at, scope, group, member, account, fields, print]).to_string()
    }

    /// Whether `remote` is what this intent announced: of that identity, with every field as it was to be sent, and made
    /// while the create was under way. Where Cloudflare does not say when it made an object, a key that is only ours tells;
    /// where the key is not, the object is ours only `now`, shortly after the intent: there was none of that name before it, and
    /// Cloudflare makes no second one.
    pub fn made(&self, remote: &Remote, nature: Nature, now: Timestamp) -> bool {
        let until = self.over.unwrap_or_else(|| self.latest_arrival());
        if mutation::is(Mutation::LookalikeTakenForOwn) {
            return remote.key.group == self.group;
        }
        if let Some(id) = &self.id {
            return remote.id == *id;
        }
        remote.key.group == self.group
            && remote.key.member == self.member
            && remote.locked.is_none()
            && match remote.created {
                Some(created) => created >= self.from && created <= until,
                None => nature.key_is_ours || (now >= self.from && now <= until),
            }
            && print(&remote.body, &self.fields) == self.print
    }
}

/// Hash of the named fields and members. Absent, null, false and empty are one, as in comparisons.
fn print(body: &Map<String, Value>, fields: &[String]) -> String {
    let named: Map<String, Value> = fields
        .iter()
        .filter_map(|field| Some((field.clone(), pruned(member(body, field)?)?)))
        .collect();
    fingerprint(&Value::Object(named))
}

/// The paths of all values within `value`, which is at `path`.
fn members(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                members(&format!("{path}/{name}"), value, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

fn member<'a>(body: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut steps = path.split('/');
    let top = body.get(steps.next()?)?;
    steps.try_fold(top, |value, step| value.get(step))
}

fn pruned(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(items) => (!items.is_empty()).then(|| value.clone()),
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), pruned(value)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn of_what_cloudflare_fills_up_an_intent_covers_what_is_sent() {
        let rules = FieldRules {
            filled: &["logs"],
            ..FieldRules::default()
        };
        let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let desired = Desired {
            body: object(&json!({ "flags": { "a": true }, "logs": { "enabled": true, "to": { "depth": 3 } } })),
            ..Desired::default()
        };
        let intent = Intent::new(at, "scope", "main", &desired, rules);
        assert_eq!(intent.fields, ["flags", "logs/enabled", "logs/to/depth"]);
        let made = |body: &Value| {
            let remote = Remote {
                body: object(body),
                created: Some(at),
                ..Remote::default()
            };
            intent.made(&remote, Nature::default(), at)
        };
        let filled = json!({ "enabled": true, "to": { "depth": 3, "rate": 1 }, "traces": { "rate": 1 } });
        assert!(made(&json!({ "flags": { "a": true }, "logs": filled })));
        assert!(
            !made(&json!({ "flags": { "a": true, "b": true }, "logs": filled })),
            "not filled up"
        );
        assert!(!made(
            &json!({ "flags": { "a": true }, "logs": { "enabled": true, "to": { "depth": 4 } } })
        ));
        assert!(!made(&json!({ "flags": { "a": true } })));
    }
}
