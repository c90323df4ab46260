//! The plan as text.

use std::fmt::Write;

use kflare_engine::{
    Plan,
    offline::{Planned, PlannedOutcome},
};

/// One line a resource, one a field below it, and a sum at the end.
pub fn table(planned: &[Planned]) -> String {
    let names: Vec<String> = planned.iter().map(|it| it.resource.to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let (mut changes, mut stuck, mut unchanged) = (0, 0, 0);
    for (it, name) in planned.iter().zip(&names) {
        let (action, rest) = match &it.outcome {
            PlannedOutcome::Error(message) => ("error", message.clone()),
            PlannedOutcome::Plan(plan) => (plan.action(), explanation(plan)),
        };
        match &it.outcome {
            PlannedOutcome::Error(_) | PlannedOutcome::Plan(Plan::Blocked { .. } | Plan::Wait { .. }) => stuck += 1,
            PlannedOutcome::Plan(plan) if plan.writes() => changes += 1,
            PlannedOutcome::Plan(_) => unchanged += 1,
        }
        let _ = writeln!(text, "{name:width$}  {action:9} {rest}");
        if let PlannedOutcome::Plan(plan) = &it.outcome {
            for change in plan.changes() {
                let _ = writeln!(text, "{:width$}    {change}", "");
            }
        }
        if !it.not_compared.is_empty() {
            let _ = writeln!(
                text,
                "{:width$}    not compared: what it reads from {}",
                "",
                it.not_compared.join(", ")
            );
        }
    }
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    format!(
        "{}\n\n{changes} to change, {unchanged} unchanged, {stuck} that cannot be carried out as they stand\n",
        lines.join("\n")
    )
}

fn explanation(plan: &Plan) -> String {
    match plan {
        Plan::Blocked { reason, message, .. } | Plan::Wait { reason, message } => format!("{reason}: {message}"),
        Plan::Forget { why } => why.clone(),
        Plan::NoOp { id }
        | Plan::Delete { id }
        | Plan::Adopt { id, .. }
        | Plan::Recover { id, .. }
        | Plan::Update { id, .. }
        | Plan::Replace { id, .. } => id.clone(),
        Plan::Create { .. } => String::new(),
    }
}
