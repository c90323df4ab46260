//! The law of normalisation, for rules made at random: what was written, read back, needs no change; and what somebody else
//! changed does.

use kflare_cloudflare::endpoints::rulesets::Ruleset;
use kflare_engine::{Change, Desired, Remote, plan::diff};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    configuration::Configuration,
    rule::{self, FIELDS},
    specs::{any_body, body},
    transform::Transform,
    waf_custom::WafCustom,
};

/// The ways in which Cloudflare answers otherwise than it was told.
#[derive(Clone, Copy, Debug, Default)]
struct Echo {
    numbers_as_fractions: bool,
    sets_turned_round: bool,
    bare_query_strings: bool,
    defaults_filled: bool,
    nothing_said_of_what_is_off: bool,
}

fn any_echo() -> impl Strategy<Value = Echo> {
    any::<[bool; 5]>().prop_map(|it| Echo {
        numbers_as_fractions: it[0],
        sets_turned_round: it[1],
        bare_query_strings: it[2],
        defaults_filled: it[3],
        nothing_said_of_what_is_off: it[4],
    })
}

const SETS: [&str; 7] = [
    "characteristics",
    "phases",
    "products",
    "additional_cacheable_ports",
    "include",
    "check_presence",
    "list",
];

fn reworded(name: &str, value: &Value, echo: Echo) -> Value {
    match value {
        Value::Number(number) if echo.numbers_as_fractions => json!(number.as_f64()),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| reworded("", item, echo)).collect();
            if echo.sets_turned_round && SETS.contains(&name) {
                items.reverse();
            }
            items.into()
        }
        Value::Object(fields) if name == "query_string" && echo.bare_query_strings => fields
            .iter()
            .map(|(name, form)| {
                let all = form.get("all") == Some(&json!(true));
                (name.clone(), if all { json!(["*"]) } else { form["list"].clone() })
            })
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), reworded(name, value, echo)))
            .collect(),
        other => other.clone(),
    }
}

/// What Cloudflare answers after `request`.
fn answer(request: &Value, echo: Echo) -> Remote {
    let mut rule = reworded("", request, echo);
    let fields = rule.as_object_mut().unwrap();
    fields.extend([
        ("id".to_owned(), json!("r1")),
        ("version".to_owned(), json!("3")),
        ("last_updated".to_owned(), json!("2026-11-01T10:00:00.123456Z")),
    ]);
    if echo.defaults_filled {
        fields.entry("categories").or_insert(json!(["x"]));
        fields.entry("description").or_insert(json!(""));
        if let Some(Value::Object(ratelimit)) = fields.get_mut("ratelimit") {
            ratelimit.entry("requests_to_origin").or_insert(json!(false));
            ratelimit.entry("counting_expression").or_insert(json!(""));
        }
        if fields["action"] == "execute" {
            fields["action_parameters"]["version"] = json!("latest");
        }
        if fields["action"] == "skip" {
            fields.entry("logging").or_insert(json!({ "enabled": true }));
        }
    }
    if echo.nothing_said_of_what_is_off {
        if fields.get("logging") == Some(&json!({ "enabled": false })) {
            fields.remove("logging");
        }
        if fields.get("description") == Some(&json!("")) {
            fields.remove("description");
        }
    }
    let ruleset: Ruleset = serde_json::from_value(json!({ "id": "s1", "version": "9", "rules": [rule] })).unwrap();
    rule::remote(&ruleset, &ruleset.rules[0])
}

fn desired(body: &Map<String, Value>) -> Desired {
    Desired {
        key: rule::key(body),
        body: body.clone(),
        ..Desired::default()
    }
}

fn differences(wanted: &Map<String, Value>, found: &Remote) -> Vec<Change> {
    diff(wanted, &found.body, FIELDS)
}

/// The values below `value`, by their path.
fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(&format!("{path}/{name}"), value, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                leaves(&format!("{path}/{at}"), item, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

fn altered(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        other => json!(format!("{}x", other.as_str().unwrap())),
    }
}

proptest! {
    #[test]
    fn what_was_written_read_back_needs_no_change(body in any_body(), echo in any_echo()) {
        let wanted = desired(&body);
        let found = answer(&rule::request(&wanted), echo);
        prop_assert_eq!(differences(&body, &found), vec![]);
        prop_assert_eq!(found.key, wanted.key);
        prop_assert_eq!(found.locked, None);
    }

    #[test]
    fn what_somebody_else_changed_is_seen(
        body in any_body(), echo in any_echo(), at in any::<prop::sample::Index>(), removes in any::<bool>(),
    ) {
        let mut request = rule::request(&desired(&body));
        let mut paths = Vec::new();
        leaves("/action_parameters", request.get("action_parameters").unwrap_or(&json!({})), &mut paths);
        // Left out, it is off.
        paths.retain(|path| !path.ends_with("/preserve_query_string"));
        if paths.is_empty() {
            return Ok(());
        }
        let path = at.get(&paths);
        let (parent, name) = path.rsplit_once('/').unwrap();
        let (from, to) = (request.clone(), request.pointer_mut(path).unwrap());
        *to = altered(to);
        if removes && let Some(Value::Object(fields)) = request.pointer_mut(parent) {
            fields.remove(name);
        }
        let found = answer(&request, echo);
        prop_assert!(!differences(&body, &found).is_empty(), "{from} and {request} are no different");
    }
}

// Field case 39.
#[test]
fn what_cloudflare_counts_and_adds_is_no_difference() {
    let spec = json!({ "zoneRef": { "name": "z" }, "ruleset": "cloudflare-managed" });
    let body = body::<super::managed_ruleset::Managed>(spec);
    let echo = Echo {
        defaults_filled: true,
        ..Echo::default()
    };
    assert_eq!(
        differences(&body, &answer(&rule::request(&desired(&body)), echo)),
        vec![]
    );
}

#[test]
fn a_parameter_that_is_taken_out_of_the_spec_is_a_difference() {
    let rule = |settings: Value| {
        body::<Configuration>(json!({ "zoneRef": { "name": "z" }, "expression": "true", "settings": settings }))
    };
    let both = answer(
        &rule::request(&desired(&rule(json!({ "ssl": "full", "fonts": false })))),
        Echo::default(),
    );
    let paths = |wanted: Value| -> Vec<String> {
        let changes = differences(&rule(wanted), &both);
        changes.into_iter().map(|change| change.path).collect()
    };
    assert_eq!(paths(json!({ "ssl": "full" })), ["action_parameters.fonts"]);
    assert_eq!(paths(json!({ "fonts": false })), ["action_parameters.ssl"]);
    assert_eq!(
        paths(json!({ "ssl": "full", "fonts": false, "bic": 1, "rocketLoader": false })),
        ["action_parameters.rocket_loader"]
    );
}

#[test]
fn a_header_that_only_cloudflare_has_is_a_difference() {
    let rule = |headers: Value| {
        body::<Transform>(
            json!({ "zoneRef": { "name": "z" }, "expression": "true", "type": "requestHeaders", "headers": headers }),
        )
    };
    let a = json!({ "operation": "remove" });
    let two = answer(
        &rule::request(&desired(&rule(json!({ "A": a, "B": a })))),
        Echo::default(),
    );
    assert_eq!(differences(&rule(json!({ "A": a, "B": a })), &two), vec![]);
    assert_eq!(differences(&rule(json!({ "A": a })), &two).len(), 1);
}

#[test]
fn the_request_is_what_cloudflare_documents() {
    let spec = json!({
        "zoneRef": { "name": "z" }, "priority": 3, "expression": "true\n", "action": "skip",
        "actionParameters": { "ruleset": "current", "products": ["waf", "bic"] }, "logging": { "enabled": true },
    });
    let body = body::<WafCustom>(spec);
    let mut request = rule::request(&desired(&body));
    let mark = request.as_object_mut().unwrap().remove("ref");
    assert!(mark.unwrap().as_str().unwrap().starts_with("kflare_"));
    let expected = json!({
        "action": "skip", "action_parameters": { "ruleset": "current", "products": ["bic", "waf"] },
        "expression": "true", "description": "", "enabled": true, "logging": { "enabled": true },
    });
    assert_eq!(request, expected);
}
