//! What the rulesets API refuses, with its codes.
//!
//! Codes and texts were published by users or stand in Cloudflare's documentation, except those marked unproven: there the
//! refusal is known, its code is not, and [`STAND_IN`] takes its place.

use super::phase::Phase;
use crate::envelope::{ApiError, Refusal};

/// For refusals whose code is not known.
const STAND_IN: i64 = 20_021;

/// For what the plan of the zone does not include. Cloudflare's texts are known, that they all come with this code is
/// unproven.
const NOT_ENTITLED: i64 = 50_002;

/// A refusal that points to a place in the body.
fn at(code: i64, message: impl Into<String>, pointer: &str) -> Refusal {
    Refusal {
        status: 400,
        errors: vec![ApiError::new(code, message).at(pointer)],
    }
}

/// The simulator's own answer, never Cloudflare's.
pub(super) fn not_modelled(what: &str) -> Refusal {
    Refusal::new(501, 10_501, format!("kflare-sim does not model {what}"))
}

/// The text is reported, the code unproven.
pub(super) fn unknown_phase(name: &str) -> Refusal {
    at(STAND_IN, format!("unknown phase \"{name}\""), "/phase")
}

pub(super) fn no_entry_point(phase: Phase) -> Refusal {
    let text = format!("could not find entrypoint ruleset in the {} phase", phase.name());
    Refusal::new(404, 10_003, text)
}

/// The text is unproven.
pub(super) fn no_ruleset() -> Refusal {
    Refusal::new(404, 10_003, "could not find ruleset")
}

/// Code and text are unproven; the code is that of a missing ruleset.
pub(super) fn no_rule() -> Refusal {
    Refusal::new(404, 10_003, "could not find rule")
}

pub(super) fn entry_point_exists(phase: Phase) -> Refusal {
    let text = format!(
        "'zone' is not a valid value for kind because exceeded maximum number of zone rulesets for phase {}",
        phase.name()
    );
    at(20_217, text, "/kind")
}

pub(super) fn too_many_rules(phase: Phase, count: usize, limit: usize) -> Refusal {
    let text = format!(
        "exceeded the maximum number of rules in the phase {}: {count} out of {limit}",
        phase.name()
    );
    Refusal::new(400, 50_001, text)
}

/// Code and text are unproven.
pub(super) fn too_many_custom_rulesets(count: usize, limit: usize) -> Refusal {
    let text = format!("exceeded the maximum number of custom rulesets: {count} out of {limit}");
    Refusal::new(400, 50_001, text)
}

pub(super) fn blank_expression(pointer: &str) -> Refusal {
    at(
        20_125,
        "'' is not a valid value for expression because the expression cannot be blank",
        pointer,
    )
}

/// The text is reported, the code unproven.
pub(super) fn bad_expression(expression: &str, reason: &str, pointer: &str) -> Refusal {
    let name = last(pointer);
    at(
        20_127,
        format!("'{expression}' is not a valid value for {name} because could not parse filter expression: {reason}"),
        pointer,
    )
}

pub(super) fn parameters_required(action: &str, pointer: &str) -> Refusal {
    at(
        20_113,
        format!("action parameters are required for the {action} action"),
        pointer,
    )
}

/// The text is reported, the code unproven.
pub(super) fn unknown_action(action: &str, pointer: &str) -> Refusal {
    at(STAND_IN, format!("unknown variant for action: {action}"), pointer)
}

/// The code is unproven.
pub(super) fn action_not_allowed(action: &str, phase: Phase, pointer: &str) -> Refusal {
    let text = format!(
        "'{action}' is not a valid value for action because the action is not allowed in the phase {}",
        phase.name()
    );
    at(20_016, text, pointer)
}

pub(super) fn no_colo(pointer: &str) -> Refusal {
    let text = "characteristics field is missing 'cf.colo.id', this is required as ratelimiting counting is processed at \
                colocation level only";
    at(20_155, text, pointer)
}

pub(super) fn phase_not_skippable(phase: &str, pointer: &str) -> Refusal {
    at(
        20_120,
        format!("skip action parameter phase '{phase}' is not authorized"),
        pointer,
    )
}

/// A value that does not fit. The form of the text is Cloudflare's, the code unproven.
pub(super) fn invalid(value: &str, reason: &str, pointer: &str) -> Refusal {
    let name = last(pointer);
    at(
        STAND_IN,
        format!("'{value}' is not a valid value for {name} because {reason}"),
        pointer,
    )
}

/// Something else that does not fit. The code is unproven.
pub(super) fn wrong(text: impl Into<String>, pointer: &str) -> Refusal {
    at(STAND_IN, text, pointer)
}

/// What the plan does not include; the text begins with "not entitled".
pub(super) fn not_entitled(text: impl Into<String>, pointer: &str) -> Refusal {
    at(NOT_ENTITLED, text, pointer)
}

/// The name of the field that a pointer leads to: the last step that is not a number.
fn last(pointer: &str) -> &str {
    pointer
        .rsplit('/')
        .find(|step| !step.is_empty() && !step.bytes().all(|byte| byte.is_ascii_digit()))
        .unwrap_or("body")
}
