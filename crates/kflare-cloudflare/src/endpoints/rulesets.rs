//! Rulesets of zones: the entry point of a phase, and the rules in it.
//!
//! A zone has at most one entry point for each phase, and all who want rules in that phase share it. Everything that
//! changes a rule answers with the whole ruleset as it then is, so no read is needed after a write. Cloudflare has no
//! `If-Match` here and limits concurrent edits of one ruleset: the caller makes them one after the other.
//! (Cloudflare's documentation of the Rulesets API; shapes from its SDK for TypeScript 7.3.0.)

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Client, Error, Request};

/// A ruleset, with its rules in the order in which they run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ruleset {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The version, a number written as text; one more with every change of the ruleset. It grows past what a list
    /// shows when others write too.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub version: String,
    /// The name. It cannot be changed.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// What a person wrote about it; empty for nothing.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub description: String,
    /// The phase, such as `http_request_firewall_custom`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub phase: String,
    /// `zone` for the entry point of a zone, `root` for that of an account, `custom` or `managed` for one that an
    /// entry point executes.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub kind: String,
    /// The rules. Lists of rulesets come without them.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub rules: Vec<Rule>,
    /// When it was last changed.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub last_updated: Option<Timestamp>,
}

/// A rule. Its place is its index in [`Ruleset::rules`]: Cloudflare does not send a position.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rule {
    /// The id: 32 hexadecimal digits. A replacement of the whole ruleset gives a rule without a `ref` of its own a new
    /// one.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub id: String,
    /// The stable name within its ruleset that whoever wrote the rule chose; Cloudflare's choice is the id of the rule.
    #[serde(rename = "ref", default, deserialize_with = "super::null_as_default")]
    pub reference: String,
    /// The version, a number written as text.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub version: String,
    /// What the rule does, such as `block`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub action: String,
    /// How it does it; null when the action needs nothing.
    #[serde(default)]
    pub action_parameters: Value,
    /// To which requests.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub expression: String,
    /// What a person wrote about it; empty for nothing.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub description: String,
    /// Whether it runs; what no value means.
    #[serde(default = "enabled", deserialize_with = "enabled_unless_said")]
    pub enabled: bool,
    /// `{"enabled": bool}` of a `skip` rule and some others; null when Cloudflare leaves it out.
    #[serde(default)]
    pub logging: Value,
    /// The counting of a rate limiting rule; null for all others.
    #[serde(default)]
    pub ratelimit: Value,
    /// When it was last changed.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub last_updated: Option<Timestamp>,
}

/// Where a rule is to stand. Goes into the body of [`add_rule`] and [`patch_rule`] as `position`; a body with nothing but
/// a position moves a rule and leaves the rest of it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// Just before the rule with this id; an empty id means before all.
    Before(String),
    /// Just after the rule with this id; an empty id means after all.
    After(String),
    /// At this place, counted from 1.
    Index(usize),
}

const RULESETS: &str = "/zones/{zone_id}/rulesets";
/// The route of an entry point.
pub const ENTRY_POINT: &str = "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint";
const RULES: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";
const RULE: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}";

/// What Cloudflare calls a missing ruleset or entry point, and what it used to.
const NOT_FOUND: i64 = 10_003;
const NOT_FOUND_FORMERLY: i64 = 10_001;

/// Whether an error says that the ruleset, the entry point or the rule is not there. Code 10003 comes with status 404,
/// and was seen with 200; 10001 also means that a token may not do something, so only a 404 makes it this.
pub fn is_not_found(error: &Error) -> bool {
    error.has_code(NOT_FOUND) || (error.status() == Some(404) && error.has_code(NOT_FOUND_FORMERLY))
}

/// The entry point of a phase; `None` when the zone has none yet, because nobody made a rule in that phase.
pub async fn entry_point(client: &Client, zone_id: &str, phase: &str) -> Result<Option<Ruleset>, Error> {
    match client.call(Request::get(ENTRY_POINT, &[zone_id, phase])).await {
        Ok(ruleset) => Ok(Some(ruleset)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the entry point of a phase, with `rules` in it. Refused with code 20217 when there is one already; unlike a PUT
/// to the entry point, it can therefore never replace rules that somebody else made meanwhile.
pub async fn create_ruleset(
    client: &Client,
    zone_id: &str,
    phase: &str,
    name: &str,
    rules: &[Value],
) -> Result<Ruleset, Error> {
    let body = json!({"name": name, "kind": "zone", "phase": phase, "rules": rules});
    client.call(Request::post(RULESETS, &[zone_id]).json(&body)).await
}

/// Adds a rule: at the end, unless the body has a `position` (see [`Position`]). Code 50001 is the plan's limit on the
/// number of rules in the phase.
pub async fn add_rule(client: &Client, zone_id: &str, ruleset_id: &str, body: &Value) -> Result<Ruleset, Error> {
    client
        .call(Request::post(RULES, &[zone_id, ruleset_id]).json(body))
        .await
}

/// Changes a rule. The body is the whole rule: what it leaves out is dropped, its `ref` too. Only a body with nothing but
/// `position` leaves the rest alone.
pub async fn patch_rule(
    client: &Client,
    zone_id: &str,
    ruleset_id: &str,
    rule_id: &str,
    body: &Value,
) -> Result<Ruleset, Error> {
    client
        .call(Request::patch(RULE, &[zone_id, ruleset_id, rule_id]).json(body))
        .await
}

/// Deletes a rule. `None` when Cloudflare says that it is done but sends no ruleset (other deletes of this API answer 204
/// without a body): what the ruleset then holds is not known.
pub async fn delete_rule(
    client: &Client,
    zone_id: &str,
    ruleset_id: &str,
    rule_id: &str,
) -> Result<Option<Ruleset>, Error> {
    client
        .call(Request::delete(RULE, &[zone_id, ruleset_id, rule_id]))
        .await
}

fn enabled() -> bool {
    true
}

fn enabled_unless_said<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(enabled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_ruleset_without_rules_and_rules_with_hardly_anything() {
        let ruleset: Ruleset = serde_json::from_value(json!({"id": "s1", "version": "3", "rules": null})).unwrap();
        assert_eq!((ruleset.version.as_str(), ruleset.rules.len()), ("3", 0));
        let ruleset: Ruleset = serde_json::from_value(json!({
            "id": "s1", "kind": "zone", "phase": "http_ratelimit", "description": null,
            "last_updated": "2026-09-29T10:00:00.123456Z",
            "rules": [
                {"id": "r1", "ref": "mine", "version": "2", "action": "block", "expression": "true", "enabled": false,
                 "ratelimit": {"period": 60}, "categories": ["x"]},
                {"id": "r2", "enabled": null, "description": null, "action_parameters": null},
            ],
        }))
        .unwrap();
        assert!(ruleset.last_updated.is_some());
        let [first, second] = &ruleset.rules[..] else {
            panic!("two rules")
        };
        assert_eq!((first.reference.as_str(), first.enabled), ("mine", false));
        assert_eq!(first.ratelimit["period"], 60);
        assert!(second.enabled && second.action_parameters.is_null() && second.logging.is_null());
    }

    #[test]
    fn a_position_is_one_of_three() {
        for (position, written) in [
            (Position::Before(String::new()), json!({"before": ""})),
            (Position::After("r1".to_owned()), json!({"after": "r1"})),
            (Position::Index(2), json!({"index": 2})),
        ] {
            assert_eq!(serde_json::to_value(position).unwrap(), written);
        }
    }
}
