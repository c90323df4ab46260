//! Rules that rewrite requests and responses, or redirect.

use kflare_sim::Phase;
use serde_json::{Value, json};

use super::{Form, nothing, parameter, same};

pub(super) fn url_rewrite() -> Form {
    let (path, query) = (
        json!({ "value": "/b" }),
        json!({ "expression": "http.request.uri.query" }),
    );
    Form {
        kind: "TransformRule",
        plural: "transformrules",
        phase: Phase::HttpRequestTransform,
        base: json!({ "action": "rewrite" }),
        fixed: vec![(json!({ "type": "urlRewrite" }), json!({}))],
        must: vec![parameter(
            "uri",
            "uri",
            [
                same(json!({ "path": path })),
                same(json!({ "path": path, "query": query })),
                same(json!({ "query": { "value": "" } })),
            ],
        )],
        may: vec![],
    }
}

pub(super) fn headers(kind: &'static str, phase: Phase, third: &str) -> Form {
    let third = match third {
        "remove" => json!({ "operation": "remove" }),
        other => json!({ "operation": other, "expression": "cf.ray_id" }),
    };
    Form {
        kind: "TransformRule",
        plural: "transformrules",
        phase,
        base: json!({ "action": "rewrite" }),
        fixed: vec![(json!({ "type": kind }), json!({}))],
        must: vec![parameter(
            "headers",
            "headers",
            [
                same(json!({ "X-A": { "operation": "set", "value": "a" } })),
                same(json!({ "X-B": { "operation": "remove" } })),
                same(json!({ "X-A": { "operation": "set", "value": "b" }, "X-C": third })),
            ],
        )],
        may: vec![],
    }
}

pub(super) fn redirect() -> Form {
    let to = |address: Value, status: u64, keep: bool| {
        (
            json!({ "targetURL": address, "statusCode": status, "preserveQueryString": keep }),
            json!({ "target_url": address, "status_code": status, "preserve_query_string": keep }),
        )
    };
    let address = json!({ "value": "https://www.alpha.example/" });
    Form {
        kind: "RedirectRule",
        plural: "redirectrules",
        phase: Phase::HttpRequestDynamicRedirect,
        base: json!({ "action": "redirect" }),
        fixed: nothing(),
        must: vec![parameter(
            "fromValue",
            "from_value",
            [
                to(address.clone(), 301, false),
                to(address, 308, true),
                to(json!({ "expression": "concat(\"https://\", http.host)" }), 302, false),
            ],
        )],
        may: vec![],
    }
}
