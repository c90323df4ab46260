//! `RedirectRule`.

use kflare_api::rules::{RuleBase, redirect::RedirectRuleSpec};
use serde_json::json;

use super::{Action, RuleKind, transform::value_or_expression};

/// The kind.
pub struct Redirect;

impl RuleKind for Redirect {
    type Spec = RedirectRuleSpec;
    const KIND: &'static str = "RedirectRule";
    const PLURAL: &'static str = "redirectrules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn more_expressions(spec: &Self::Spec) -> Vec<&str> {
        spec.from_value.target_url.expression.as_deref().into_iter().collect()
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_request_dynamic_redirect"
    }

    fn action(spec: &Self::Spec) -> Action {
        let target = &spec.from_value;
        let from_value = json!({
            "target_url": value_or_expression(&target.target_url),
            "status_code": target.status_code,
            "preserve_query_string": target.preserve_query_string,
        });
        Action::new("redirect", json!({ "from_value": from_value }))
    }
}
