//! `WAFCustomRule`.

use kflare_api::rules::{
    BlockResponse, RuleBase,
    waf_custom::{WAFAction, WAFCustomRuleSpec},
};
use serde_json::{Value, json};

use super::{Action, RuleKind};

/// The kind.
pub struct WafCustom;

/// The answer to a blocked request.
pub(super) fn response(response: Option<&BlockResponse>) -> Value {
    match response {
        None => Value::Null,
        Some(response) => json!({
            "status_code": response.status_code,
            "content_type": response.content_type,
            "content": response.content,
        }),
    }
}

impl RuleKind for WafCustom {
    type Spec = WAFCustomRuleSpec;
    const KIND: &'static str = "WAFCustomRule";
    const PLURAL: &'static str = "wafcustomrules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_request_firewall_custom"
    }

    fn action(spec: &Self::Spec) -> Action {
        let given = spec.action_parameters.clone().unwrap_or_default();
        let parameters = match spec.action {
            WAFAction::Block => json!({ "response": response(given.response.as_ref()) }),
            WAFAction::Skip => json!({
                "ruleset": given.ruleset,
                "phases": given.phases,
                "products": given.products,
            }),
            _ => Value::Null,
        };
        Action {
            logging: spec.logging.map(|logging| logging.enabled),
            ..Action::new(json!(spec.action), parameters)
        }
    }
}
