//! Seeding rulesets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::draft::Limits;
use super::phase::Phase;
use super::ruleset::RulesetKind;
use super::write::{Ids, RulesetWriter};
use crate::envelope::Refusal;
use crate::state::{World, Zone};

/// A ruleset: the body that would create it, with ids. It is checked as the API would, except for what the plan allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesetSeed {
    /// 32 lower-case hex digits; unset: drawn from the simulator's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The phase.
    pub phase: Phase,
    /// Entry point or custom ruleset.
    #[serde(default)]
    pub kind: RulesetKind,
    /// The name; unset: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The rules, as request bodies; `id` is the id that a rule gets, drawn if left out.
    #[serde(default)]
    pub rules: Vec<Map<String, Value>>,
}

impl RulesetSeed {
    /// The entry point of a phase with these rules.
    pub fn entry_point(phase: Phase, rules: impl IntoIterator<Item = Map<String, Value>>) -> Self {
        Self {
            id: None,
            phase,
            kind: RulesetKind::Zone,
            name: None,
            description: String::new(),
            rules: rules.into_iter().collect(),
        }
    }

    /// Makes the ruleset, of this id.
    pub(crate) fn apply(&self, world: &mut World, zone: &Zone, id: String, now: Timestamp) -> Result<(), Refusal> {
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
        set("name", self.name.as_deref().unwrap_or("default").into());
        set("kind", self.kind.name().into());
        set("phase", self.phase.name().into());
        set("description", self.description.as_str().into());
        set("rules", self.rules.iter().cloned().map(Value::Object).collect());
        let mut writer = RulesetWriter {
            world,
            zone,
            now,
            limits: Limits::Ignored,
        };
        writer.create(Some(id), &body, Ids::Give).map(drop)
    }
}
