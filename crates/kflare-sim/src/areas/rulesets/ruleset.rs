//! A ruleset as it is held, and as the API shows it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::phase::Phase;
use crate::config::{QueryStringForm, Quirks, RuleLoggingForm};
use crate::time::micros;

/// What a ruleset is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RulesetKind {
    /// The entry point of a phase.
    #[default]
    Zone,
    /// Rules that an entry point executes.
    Custom,
}

impl RulesetKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::Custom => "custom",
        }
    }
}

/// A ruleset as it is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ruleset {
    pub(crate) id: String,
    pub(crate) zone_id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) kind: RulesetKind,
    pub(crate) phase: Phase,
    /// From 1, one more with every write.
    pub(crate) version: u64,
    pub(crate) rules: Vec<Rule>,
    pub(crate) last_updated: Timestamp,
}

/// A rule as it is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(crate) id: String,
    /// The id, unless the client chose another one.
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    /// From 1, one more with every change of the rule; moving it is no change of it (unproven).
    pub(crate) version: u64,
    pub(crate) fields: Fields,
    pub(crate) last_updated: Timestamp,
}

/// What a client sets of a rule, normalised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fields {
    pub(crate) action: String,
    pub(crate) action_parameters: Option<Map<String, Value>>,
    pub(crate) expression: String,
    pub(crate) description: String,
    pub(crate) enabled: bool,
    pub(crate) logging: Option<bool>,
    pub(crate) ratelimit: Option<Map<String, Value>>,
    pub(crate) exposed_credential_check: Option<Map<String, Value>>,
}

impl Ruleset {
    /// The entry of a list: no rules.
    pub(super) fn summary(&self) -> Map<String, Value> {
        let mut shown = Map::new();
        let mut set = |key: &str, value: Value| drop(shown.insert(key.to_owned(), value));
        set("id", json!(self.id));
        set("name", json!(self.name));
        set("description", json!(self.description));
        set("kind", json!(self.kind.name()));
        set("version", json!(self.version.to_string()));
        set("last_updated", json!(micros(self.last_updated)));
        set("phase", json!(self.phase.name()));
        shown
    }

    /// The ruleset as the API shows it.
    pub(crate) fn render(&self, quirks: Quirks) -> Value {
        let mut shown = self.summary();
        let rules: Vec<Value> = self.rules.iter().map(|rule| rule.render(quirks)).collect();
        shown.insert("rules".to_owned(), Value::Array(rules));
        Value::Object(shown)
    }
}

impl Rule {
    fn render(&self, quirks: Quirks) -> Value {
        let mut shown = Map::new();
        let mut set = |key: &str, value: Value| drop(shown.insert(key.to_owned(), value));
        let fields = &self.fields;
        set("id", json!(self.id));
        set("version", json!(self.version.to_string()));
        set("action", json!(fields.action));
        if let Some(parameters) = &fields.action_parameters {
            let mut parameters = parameters.clone();
            if quirks.query_strings == QueryStringForm::Bare {
                make_query_strings_bare(&mut parameters);
            }
            set("action_parameters", Value::Object(parameters));
        }
        set("expression", json!(fields.expression));
        // Cloudflare's documented answers have no description where none was sent.
        if !fields.description.is_empty() {
            set("description", json!(fields.description));
        }
        set("last_updated", json!(micros(self.last_updated)));
        set("ref", json!(self.reference));
        set("enabled", json!(fields.enabled));
        let logging = match quirks.rule_logging {
            RuleLoggingForm::Filled if fields.action == "skip" => Some(fields.logging.unwrap_or(true)),
            RuleLoggingForm::Filled => fields.logging,
            RuleLoggingForm::Sparse => fields.logging.filter(|enabled| *enabled),
        };
        if let Some(enabled) = logging {
            set("logging", json!({ "enabled": enabled }));
        }
        if let Some(ratelimit) = &fields.ratelimit {
            set("ratelimit", Value::Object(ratelimit.clone()));
        }
        if let Some(check) = &fields.exposed_credential_check {
            set("exposed_credential_check", Value::Object(check.clone()));
        }
        Value::Object(shown)
    }

    /// The body that would write this rule.
    pub(super) fn as_body(&self) -> Map<String, Value> {
        let mut body = match self.render(Quirks::default()) {
            Value::Object(body) => body,
            _ => Map::new(),
        };
        for read_only in ["id", "version", "last_updated"] {
            body.remove(read_only);
        }
        body
    }
}

impl Fields {
    /// Every expression of the rule: its own, that of its counting, and those in its parameters.
    pub(super) fn expressions(&self) -> Vec<&str> {
        let mut found = vec![self.expression.as_str()];
        let parts = [&self.action_parameters, &self.ratelimit, &self.exposed_credential_check];
        for part in parts.into_iter().flatten() {
            collect_expressions(part, &mut found);
        }
        found
    }
}

fn collect_expressions<'a>(object: &'a Map<String, Value>, found: &mut Vec<&'a str>) {
    for (key, value) in object {
        match value {
            Value::String(text) if key.ends_with("expression") => found.push(text),
            Value::Object(inner) => collect_expressions(inner, found),
            _ => {}
        }
    }
}

/// `{"list": ["a"]}` becomes `["a"]`, `{"all": true}` becomes `["*"]`.
fn make_query_strings_bare(parameters: &mut Map<String, Value>) {
    let parameters = parameters
        .get_mut("cache_key")
        .and_then(|key| key.get_mut("custom_key"))
        .and_then(|key| key.get_mut("query_string"))
        .and_then(Value::as_object_mut);
    for form in parameters.into_iter().flat_map(|object| object.values_mut()) {
        if form.get("all") == Some(&Value::Bool(true)) {
            *form = json!(["*"]);
        } else if let Some(list) = form.get_mut("list") {
            *form = list.take();
        }
    }
}
