//! `RateLimitRule`.

use kflare_api::rules::{
    RuleBase,
    rate_limit::{RateLimitAction, RateLimitRuleSpec},
};
use serde_json::{Value, json};

use super::{Action, RuleKind, waf_custom::response};

/// The kind.
pub struct RateLimit;

impl RuleKind for RateLimit {
    type Spec = RateLimitRuleSpec;
    const KIND: &'static str = "RateLimitRule";
    const PLURAL: &'static str = "ratelimitrules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn more_expressions(spec: &Self::Spec) -> Vec<&str> {
        spec.ratelimit.counting_expression.as_deref().into_iter().collect()
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_ratelimit"
    }

    fn action(spec: &Self::Spec) -> Action {
        let given = spec.action_parameters.clone().unwrap_or_default();
        let parameters = match spec.action {
            RateLimitAction::Block => json!({ "response": response(given.response.as_ref()) }),
            _ => Value::Null,
        };
        let counted = &spec.ratelimit;
        let mut ratelimit = json!({
            "characteristics": counted.characteristics,
            "period": counted.period,
            "requests_per_period": counted.requests_per_period,
            "counting_expression": counted.counting_expression.as_deref().map(str::trim),
            "requests_to_origin": counted.requests_to_origin,
            "score_per_period": counted.score_per_period,
            "score_response_header_name": counted.score_response_header_name,
        });
        // Unset it is Cloudflare's to decide, and not compared.
        if let Some(timeout) = counted.mitigation_timeout {
            ratelimit["mitigation_timeout"] = json!(timeout);
        }
        Action {
            ratelimit: Some(ratelimit),
            ..Action::new(json!(spec.action), parameters)
        }
    }
}
