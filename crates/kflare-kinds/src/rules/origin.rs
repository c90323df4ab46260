//! `OriginRule`.

use kflare_api::rules::{RuleBase, origin::OriginRuleSpec};
use serde_json::json;

use super::{Action, RuleKind};

/// The kind.
pub struct Origin;

impl RuleKind for Origin {
    type Spec = OriginRuleSpec;
    const KIND: &'static str = "OriginRule";
    const PLURAL: &'static str = "originrules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_request_origin"
    }

    fn action(spec: &Self::Spec) -> Action {
        let origin = spec.origin.as_ref();
        let parameters = json!({
            "origin": origin.map(|origin| json!({ "port": origin.port, "host": origin.host })),
            "host_header": spec.host_header,
            "sni": spec.sni.as_ref().map(|name| json!({ "value": name })),
        });
        Action::new("route", parameters)
    }
}
