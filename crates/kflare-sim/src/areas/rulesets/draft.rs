//! From the body of a rule to the fields of a rule: everything that is checked of one rule by itself.

use serde_json::{Map, Value, json};

use super::entitlements;
use super::error;
use super::expression::{Expression, MAX_LENGTH};
use super::managed::Managed;
use super::params::{self, Takes};
use super::phase::{ACTIONS, Phase};
use super::ratelimit;
use super::references;
use super::ruleset::Fields;
use super::shape::{self, Expressions, Field, Shape, required, without_nulls};
use crate::envelope::Refusal;
use crate::plan::Plan;
use crate::state::{World, Zone};

type Body = Map<String, Value>;

/// Whether the plan of the zone limits what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limits {
    Enforced,
    Ignored,
}

/// Reads rules of one phase of one zone.
pub(super) struct Reader<'a> {
    pub(super) world: &'a World,
    pub(super) zone: &'a Zone,
    pub(super) phase: Phase,
    pub(super) limits: Limits,
}

/// A rule that is about to be written.
#[derive(Debug)]
pub(super) struct Draft {
    /// The id, where the body has one.
    pub(super) id: Option<String>,
    /// The `ref`, where the body has one.
    pub(super) reference: Option<String>,
    pub(super) fields: Fields,
}

static CREDENTIAL_CHECK: [Field; 2] = [
    required("username_expression", Shape::Expression),
    required("password_expression", Shape::Expression),
];

impl Reader<'_> {
    /// Reads a rule; `pointer` is its place in the body of the call, empty where it is the body.
    pub(super) fn rule(&self, body: &Body, pointer: &str) -> Result<Draft, Refusal> {
        let body = without_nulls(body);
        let action = self.action(&body, pointer)?;
        let expression = text(&body, "expression", pointer)?.unwrap_or_default();
        self.expression(&expression, &format!("{pointer}/expression"))?;
        let parameters = self.parameters(&action, &body, pointer)?;
        let ratelimit = self.ratelimit(&action, &body, pointer)?;
        let reference = text(&body, "ref", pointer)?;
        if reference.as_deref() == Some("") {
            return Err(error::invalid("", "it must not be empty", &format!("{pointer}/ref")));
        }
        let fields = Fields {
            logging: logging(&action, &body, pointer)?,
            description: text(&body, "description", pointer)?.unwrap_or_default(),
            enabled: match body.get("enabled") {
                None => true,
                Some(Value::Bool(enabled)) => *enabled,
                Some(other) => {
                    let pointer = format!("{pointer}/enabled");
                    return Err(error::invalid(&other.to_string(), "it must be true or false", &pointer));
                }
            },
            exposed_credential_check: self.credential_check(&body, pointer)?,
            action,
            action_parameters: parameters,
            expression,
            ratelimit,
        };
        Ok(Draft {
            id: text(&body, "id", pointer)?,
            reference,
            fields,
        })
    }

    fn is_limited(&self, includes: impl Fn(Plan) -> bool) -> bool {
        self.limits == Limits::Enforced && !includes(self.zone.plan)
    }

    fn action(&self, body: &Body, pointer: &str) -> Result<String, Refusal> {
        let pointer = format!("{pointer}/action");
        let Some(action) = text(body, "action", &pointer)?.filter(|action| !action.is_empty()) else {
            // The text was reported for a body with parameters.
            let text = if body.contains_key("action_parameters") {
                "action is required for action parameters"
            } else {
                "action is required"
            };
            return Err(error::wrong(text, &pointer));
        };
        if !ACTIONS.contains(&action.as_str()) {
            return Err(error::unknown_action(&action, &pointer));
        }
        if !self.phase.actions().contains(&action.as_str()) {
            return Err(error::action_not_allowed(&action, self.phase, &pointer));
        }
        if action == "log" && self.phase != Phase::HttpRatelimit && self.is_limited(|plan| plan == Plan::Enterprise) {
            return Err(error::not_entitled("not entitled to use the log action", &pointer));
        }
        Ok(action)
    }

    fn expression(&self, text: &str, pointer: &str) -> Result<(), Refusal> {
        if text.trim().is_empty() {
            return Err(error::blank_expression(pointer));
        }
        let length = text.chars().count();
        if length > MAX_LENGTH {
            let text = format!("the expression has {length} characters, exceeding the limit of {MAX_LENGTH}");
            return Err(error::wrong(text, pointer));
        }
        let found = Expression::parse(text).map_err(|reason| error::bad_expression(text, &reason, pointer))?;
        for list in &found.lists {
            if !references::is_known(self.world, &self.zone.account_id, list) {
                // The refusal is known, its words are not.
                return Err(error::bad_expression(
                    text,
                    &format!("unknown list \"${list}\""),
                    pointer,
                ));
            }
        }
        match found.regex {
            Some(part) if self.is_limited(|plan| plan >= Plan::Business) => {
                let plan = if self.phase == Phase::HttpRatelimit {
                    "an Advanced Rate Limiting plan is required"
                } else {
                    "a Business plan or a WAF Advanced plan is required"
                };
                let text = format!("not entitled: the use of {part} is not allowed, {plan}");
                Err(error::not_entitled(text, pointer))
            }
            _ => Ok(()),
        }
    }

    fn each_expression(&self, expressions: Expressions<'_>) -> Result<(), Refusal> {
        expressions
            .into_iter()
            .try_for_each(|(text, pointer)| self.expression(text, &pointer))
    }

    fn parameters(&self, action: &str, body: &Body, pointer: &str) -> Result<Option<Body>, Refusal> {
        let pointer = format!("{pointer}/action_parameters");
        let given = match body.get("action_parameters") {
            None => None,
            Some(Value::Object(object)) if object.is_empty() => None,
            given => given,
        };
        let (fields, given) = match (params::of(action, self.phase), given) {
            (Takes::Required(_), None) => return Err(error::parameters_required(action, &pointer)),
            (Takes::Optional(_) | Takes::Nothing, None) => return Ok(None),
            (Takes::Nothing, Some(_)) => {
                let text = format!("action parameters are not allowed for the {action} action");
                return Err(error::wrong(text, &pointer));
            }
            (Takes::Required(fields) | Takes::Optional(fields), Some(given)) => (fields, given),
        };
        let mut expressions = Expressions::new();
        // Overrides that override nothing are none.
        let given = without_empty_overrides(given);
        shape::check(&Shape::Object(fields), &given, &pointer, &mut expressions)?;
        self.each_expression(expressions)?;
        let Value::Object(mut parameters) = given else {
            return Ok(None);
        };
        params::check_parts(action, &parameters, &pointer)?;
        self.entitled(action, &parameters, &pointer)?;
        params::fill(action, &mut parameters);
        Ok(Some(parameters))
    }

    /// Whether the ruleset to execute is there, and whether the plan includes what the parameters ask for.
    fn entitled(&self, action: &str, parameters: &Body, pointer: &str) -> Result<(), Refusal> {
        let refuse = |text: &str, path: &str| Err(error::not_entitled(text, &format!("{pointer}/{path}")));
        let is_enterprise = |plan| plan == Plan::Enterprise;
        match action {
            "execute" => {
                let id = parameters.get("id").and_then(Value::as_str).unwrap_or_default();
                self.executable(id, &format!("{pointer}/id"))
            }
            "route" if self.is_limited(is_enterprise) => {
                if parameters.contains_key("host_header") {
                    refuse("not entitled to use the HostHeader override", "host_header")
                } else if parameters
                    .get("origin")
                    .is_some_and(|origin| origin.get("host").is_some())
                {
                    // The text is unproven, as is the next.
                    refuse("not entitled to use the DNS override", "origin/host")
                } else if parameters.contains_key("sni") {
                    refuse("not entitled to use the SNI override", "sni")
                } else {
                    Ok(())
                }
            }
            "set_cache_settings" | "set_config" if self.limits == Limits::Enforced => {
                match entitlements::missing(action, parameters, self.zone.plan) {
                    Some((name, path)) => refuse(&format!("not entitled to use {name}"), path),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn executable(&self, id: &str, pointer: &str) -> Result<(), Refusal> {
        if self.phase == Phase::HttpRequestFirewallManaged
            && let Some(managed) = Managed::find(id).filter(|managed| managed.from.is_some())
        {
            if self.is_limited(|plan| managed.is_in(plan)) {
                return Err(error::not_entitled(
                    "not entitled to execute this managed ruleset",
                    pointer,
                ));
            }
            return Ok(());
        }
        let custom = self.world.ruleset(&self.zone.id, id);
        if custom.is_some_and(|custom| custom.phase == self.phase && custom.kind == super::RulesetKind::Custom) {
            return Ok(());
        }
        Err(error::invalid(id, "could not find the ruleset to execute", pointer))
    }

    fn ratelimit(&self, action: &str, body: &Body, pointer: &str) -> Result<Option<Body>, Refusal> {
        let field = format!("{pointer}/ratelimit");
        match (self.phase, body.get("ratelimit")) {
            (Phase::HttpRatelimit, None) => Err(error::wrong("ratelimit is required", &field)),
            (_, None) => Ok(None),
            (Phase::HttpRatelimit, Some(given)) => {
                let mut expressions = Expressions::new();
                ratelimit::check(given, &field, &mut expressions)?;
                // Without an expression of its own, counting follows that of the rule.
                expressions.retain(|(text, _)| !text.is_empty());
                self.each_expression(expressions)?;
                let mut given = given.as_object().cloned().unwrap_or_default();
                if self.limits == Limits::Enforced {
                    ratelimit::entitled(&given, action, self.zone.plan, pointer)?;
                }
                ratelimit::fill(&mut given);
                Ok(Some(given))
            }
            (phase, Some(_)) => {
                let text = format!("ratelimit is not allowed in the phase {}", phase.name());
                Err(error::wrong(text, &field))
            }
        }
    }

    fn credential_check(&self, body: &Body, pointer: &str) -> Result<Option<Body>, Refusal> {
        let Some(given) = body.get("exposed_credential_check") else {
            return Ok(None);
        };
        let pointer = format!("{pointer}/exposed_credential_check");
        let mut expressions = Expressions::new();
        shape::check(&Shape::Object(&CREDENTIAL_CHECK), given, &pointer, &mut expressions)?;
        self.each_expression(expressions)?;
        Ok(given.as_object().cloned())
    }
}

fn text(body: &Body, key: &str, pointer: &str) -> Result<Option<String>, Refusal> {
    match body.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let pointer = format!("{pointer}/{key}");
            Err(error::invalid(&other.to_string(), "it must be a text", &pointer))
        }
    }
}

/// `logging` is for rules that skip (Cloudflare documents; the code is unproven).
fn logging(action: &str, body: &Body, pointer: &str) -> Result<Option<bool>, Refusal> {
    let Some(given) = body.get("logging") else {
        return Ok(None);
    };
    let pointer = format!("{pointer}/logging");
    let enabled = given.get("enabled").and_then(Value::as_bool);
    match enabled {
        None => Err(error::invalid(
            &given.to_string(),
            "it must be an object with enabled",
            &pointer,
        )),
        Some(_) if action != "skip" => {
            let text = format!("logging is not allowed for the {action} action");
            Err(error::wrong(text, &pointer))
        }
        enabled => Ok(enabled),
    }
}

fn without_empty_overrides(parameters: &Value) -> Value {
    let mut parameters = parameters.clone();
    if let Value::Object(object) = &mut parameters
        && object.get("overrides") == Some(&json!({}))
    {
        object.remove("overrides");
    }
    parameters
}
