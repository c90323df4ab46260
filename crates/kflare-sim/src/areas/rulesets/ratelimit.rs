//! The counting of rate limiting rules, and what of it a plan includes.

use serde_json::{Map, Value, json};

use super::error;
use super::shape::{self, Expressions, Field, Shape, optional, required};
use crate::envelope::Refusal;
use crate::plan::Plan;

/// Seconds for which requests are counted.
const PERIODS: [i64; 6] = [10, 60, 120, 300, 600, 3600];

static SHAPE: [Field; 8] = [
    required("characteristics", Shape::List(1, &Shape::Text(1, 1024))),
    required("period", Shape::OneOf(&PERIODS)),
    optional("requests_per_period", Shape::Int(1, i64::MAX)),
    optional(
        "mitigation_timeout",
        Shape::OneOf(&[0, 10, 60, 120, 300, 600, 3600, 86_400]),
    ),
    optional("counting_expression", Shape::Expression),
    optional("requests_to_origin", Shape::Bool),
    optional("score_per_period", Shape::Int(1, i64::MAX)),
    optional("score_response_header_name", Shape::Text(1, 256)),
];

/// Checks the shape of `ratelimit`.
pub(super) fn check<'a>(ratelimit: &'a Value, pointer: &str, expressions: &mut Expressions<'a>) -> Result<(), Refusal> {
    shape::check(&Shape::Object(&SHAPE), ratelimit, pointer, expressions)?;
    if ratelimit.get("requests_per_period").is_none() && ratelimit.get("score_per_period").is_none() {
        let text = "one of requests_per_period and score_per_period is required";
        return Err(error::wrong(text, &format!("{pointer}/requests_per_period")));
    }
    let counts_per_colo = ratelimit["characteristics"]
        .as_array()
        .is_some_and(|list| list.contains(&json!("cf.colo.id")));
    if counts_per_colo {
        Ok(())
    } else {
        Err(error::no_colo(&format!("{pointer}/characteristics")))
    }
}

/// What a plan includes (Cloudflare's table of rate limiting rules by plan). The texts about the action, the period and the
/// timeout were reported, the others are unproven. `rule` is the pointer of the rule.
pub(super) fn entitled(ratelimit: &Map<String, Value>, action: &str, plan: Plan, rule: &str) -> Result<(), Refusal> {
    let pointer = format!("{rule}/ratelimit");
    let actions: &[&str] = match plan {
        Plan::Free => &["block"],
        Plan::Pro | Plan::Business => &["block", "challenge", "js_challenge", "managed_challenge"],
        Plan::Enterprise => return Ok(()),
    };
    if !actions.contains(&action) {
        let text = format!("not entitled to use the {action} action in ratelimiting");
        return Err(error::not_entitled(text, &format!("{rule}/action")));
    }
    let (periods, longest): (&[i64], i64) = match plan {
        Plan::Free => (&PERIODS[..1], 10),
        Plan::Pro => (&PERIODS[..2], 3600),
        _ => (&PERIODS[..5], 86_400),
    };
    let number = |key: &str| ratelimit.get(key).and_then(Value::as_i64);
    let period = number("period").unwrap_or_default();
    if !periods.contains(&period) {
        let text = format!("not entitled to use the period {period}, can only use a period among {periods:?}");
        return Err(error::not_entitled(text, &format!("{pointer}/period")));
    }
    let timeout = number("mitigation_timeout").unwrap_or_default();
    let timeout_pointer = format!("{pointer}/mitigation_timeout");
    if plan == Plan::Free && timeout != 10 {
        let text = "not entitled to use a mitigation timeout different from 10";
        return Err(error::not_entitled(text, &timeout_pointer));
    }
    if action != "block" && timeout != 0 {
        let text = format!("not entitled to use a mitigation timeout different from 0 with the {action} action");
        return Err(error::not_entitled(text, &timeout_pointer));
    }
    if timeout > longest {
        let text = format!("not entitled to use a mitigation timeout greater than {longest}");
        return Err(error::not_entitled(text, &timeout_pointer));
    }
    let own: &[&str] = if plan == Plan::Business {
        &["cf.colo.id", "ip.src", "cf.unique_visitor_id"]
    } else {
        &["cf.colo.id", "ip.src"]
    };
    let characteristics = ratelimit.get("characteristics").and_then(Value::as_array);
    for (index, characteristic) in characteristics.into_iter().flatten().enumerate() {
        let name = characteristic.as_str().unwrap_or_default();
        if !own.contains(&name) {
            let text = format!("not entitled to use the characteristic {name}");
            return Err(error::not_entitled(text, &format!("{pointer}/characteristics/{index}")));
        }
    }
    let mut beyond = vec!["score_per_period", "score_response_header_name"];
    if plan < Plan::Business {
        beyond.push("counting_expression");
    }
    match beyond.into_iter().find(|key| ratelimit.contains_key(*key)) {
        Some(key) => Err(error::not_entitled(
            format!("not entitled to use {key}, an Advanced Rate Limiting plan is required"),
            &format!("{pointer}/{key}"),
        )),
        None => Ok(()),
    }
}

/// Adds what Cloudflare adds (documented as the default).
pub(super) fn fill(ratelimit: &mut Map<String, Value>) {
    ratelimit.entry("requests_to_origin").or_insert_with(|| json!(false));
}
