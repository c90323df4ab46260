//! Settings and values of cache and configuration rules that a plan does not include. That Cloudflare refuses them on Free
//! zones was reported; from which plan on it takes them, and its words, are unproven.

use serde_json::{Map, Value, json};

use crate::plan::Plan;

/// A setting that takes a plan: what it is called, where it is, and whether these parameters have it.
struct Gate {
    from: Plan,
    name: &'static str,
    path: &'static str,
    applies: fn(&Value) -> bool,
}

const CACHE: [Gate; 7] = [
    gate(
        Plan::Enterprise,
        "additional cacheable ports",
        "additional_cacheable_ports",
        any,
    ),
    gate(
        Plan::Pro,
        "the custom cache key",
        "cache_key/custom_key",
        is_more_than_no_query,
    ),
    gate(Plan::Pro, "an extended read timeout", "read_timeout", any),
    gate(Plan::Pro, "shared dictionaries", "shared_dictionary", any),
    gate(Plan::Pro, "the stripping of ETags", "strip_etags", any),
    gate(Plan::Pro, "the stripping of Last-Modified", "strip_last_modified", any),
    gate(Plan::Pro, "the stripping of Set-Cookie", "strip_set_cookie", any),
];

const CONFIG: [Gate; 3] = [
    gate(Plan::Pro, "Polish", "polish", |value| value != "off"),
    gate(Plan::Enterprise, "the SSL mode origin_pull", "ssl", |value| {
        value == "origin_pull"
    }),
    gate(Plan::Enterprise, "the security level off", "security_level", |value| {
        value == "off"
    }),
];

const fn gate(from: Plan, name: &'static str, path: &'static str, applies: fn(&Value) -> bool) -> Gate {
    Gate {
        from,
        name,
        path,
        applies,
    }
}

fn any(_: &Value) -> bool {
    true
}

/// Of a custom key, every plan may leave out the whole query string.
fn is_more_than_no_query(key: &Value) -> bool {
    *key != json!({ "query_string": { "exclude": { "all": true } } })
}

/// The first thing that the plan does not include: its name, and where it is.
pub(super) fn missing(
    action: &str,
    parameters: &Map<String, Value>,
    plan: Plan,
) -> Option<(&'static str, &'static str)> {
    let gates: &'static [Gate] = if action == "set_config" { &CONFIG } else { &CACHE };
    let applies = |gate: &&Gate| {
        let mut steps = gate.path.split('/');
        let first = steps.next().and_then(|step| parameters.get(step));
        let value = first.and_then(|first| steps.try_fold(first, |value, step| value.get(step)));
        plan < gate.from && value.is_some_and(gate.applies)
    };
    gates.iter().find(applies).map(|gate| (gate.name, gate.path))
}
