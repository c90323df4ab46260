//! `TransformRule`. Its type picks the phase.

use kflare_api::rules::{
    RuleBase, ValueOrExpression,
    transform::{TransformRuleSpec, TransformType},
};
use serde_json::{Map, Value, json};

use super::{Action, RuleKind};

/// The kind.
pub struct Transform;

/// A text, or what computes it.
pub(super) fn value_or_expression(given: &ValueOrExpression) -> Value {
    json!({ "value": given.value, "expression": given.expression.as_deref().map(str::trim) })
}

impl RuleKind for Transform {
    type Spec = TransformRuleSpec;
    const KIND: &'static str = "TransformRule";
    const PLURAL: &'static str = "transformrules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn more_expressions(spec: &Self::Spec) -> Vec<&str> {
        let uri = spec.uri.iter().flat_map(|uri| [&uri.path, &uri.query]).flatten();
        let uri = uri.filter_map(|part| part.expression.as_deref());
        let headers = spec.headers.values().filter_map(|header| header.expression.as_deref());
        uri.chain(headers).collect()
    }

    fn phase(spec: &Self::Spec) -> &'static str {
        match spec.transform_type {
            TransformType::UrlRewrite => "http_request_transform",
            TransformType::RequestHeaders => "http_request_late_transform",
            TransformType::ResponseHeaders => "http_response_headers_transform",
        }
    }

    fn action(spec: &Self::Spec) -> Action {
        let parameters = if let Some(uri) = &spec.uri {
            json!({
                "uri": {
                    "path": uri.path.as_ref().map(value_or_expression),
                    "query": uri.query.as_ref().map(value_or_expression),
                },
            })
        } else {
            let headers: Map<String, Value> = spec
                .headers
                .iter()
                .map(|(name, header)| {
                    let header = json!({
                        "operation": header.operation,
                        "value": header.value,
                        "expression": header.expression.as_deref().map(str::trim),
                    });
                    (name.clone(), header)
                })
                .collect();
            json!({ "headers": headers })
        };
        Action::new("rewrite", parameters)
    }
}
