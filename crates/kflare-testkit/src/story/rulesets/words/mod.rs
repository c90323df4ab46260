//! What the rules of stories say: in the words of specs, and in those of Cloudflare. Written against Cloudflare's documentation, not
//! with the code under test.

mod rewriting;
mod security;
mod settings;

use std::sync::LazyLock;

use kflare_sim::Phase;
use serde_json::{Value, json};

use rewriting::{headers, redirect, url_rewrite};
use security::{managed_ruleset, rate_limit, waf_custom};
use settings::{cache, configuration, origin};

/// The ways in which a part of a spec is written: the fields of the spec, and what they mean in the body of a rule.
pub type Part = Vec<(Value, Value)>;

/// A kind of rule in one phase.
pub struct Form {
    /// The kind of its resources.
    pub kind: &'static str,
    /// The phase.
    pub phase: Phase,
    /// The plural of the kind.
    pub plural: &'static str,
    /// What every rule of the form is.
    pub base: Value,
    /// A part that is chosen once and for all.
    pub fixed: Part,
    /// Parts that every spec has.
    pub must: Vec<Part>,
    /// Parts that a spec may lack.
    pub may: Vec<Part>,
}

impl Form {
    /// Every part.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.fixed).chain(&self.must).chain(&self.may)
    }

    /// A change of a spec, as a merge patch, to one of the ways in which a part is written: what other ways have is taken out.
    pub fn patch(part: &Part, way: usize) -> Value {
        let mut patch = part[way % part.len()].0.clone();
        for (other, _) in part {
            take_out(&mut patch, other);
        }
        patch
    }

    /// The body of the rule that a spec asks for, without its mark.
    pub fn body(&self, spec: &Value) -> Value {
        let mut body = self.base.clone();
        for part in self.parts() {
            let said = part
                .iter()
                .position(|(way, _)| (0..part.len()).all(|other| agrees(spec, way, &part[other].0)));
            if let Some(said) = said {
                json_patch::merge(&mut body, &part[said].1);
            }
        }
        body["expression"] = json!(spec["expression"].as_str().unwrap_or("true").trim());
        body["description"] = json!(spec["description"].as_str().unwrap_or_default());
        body["enabled"] = json!(spec["enabled"].as_bool().unwrap_or(true));
        body
    }
}

/// `null` for every field of `other` that `patch` lacks.
fn take_out(patch: &mut Value, other: &Value) {
    let (Some(fields), Some(others)) = (patch.as_object_mut(), other.as_object()) else {
        return;
    };
    for (name, value) in others {
        match fields.get_mut(name) {
            None => drop(fields.insert(name.clone(), Value::Null)),
            Some(mine) => take_out(mine, value),
        }
    }
}

/// Whether a spec has the fields of `way`, and of those that `other` has no more than these.
fn agrees(spec: &Value, way: &Value, other: &Value) -> bool {
    let mut patch = way.clone();
    take_out(&mut patch, other);
    let mut changed = spec.clone();
    json_patch::merge(&mut changed, &patch);
    changed == *spec
}

/// Expressions. The third is for Business zones, the fourth is none.
pub const EXPRESSIONS: [&str; 4] = [
    "ip.src eq 192.0.2.1",
    " http.host eq \"a.alpha.example\" \n",
    "http.request.uri.path matches \"^/api\"",
    "ip.src eq",
];

fn same(fields: Value) -> (Value, Value) {
    (fields.clone(), fields)
}

/// A part that is one field of the action's parameters.
fn parameter(field: &str, name: &str, ways: impl IntoIterator<Item = (Value, Value)>) -> Part {
    let ways = ways.into_iter();
    ways.map(|(spec, wire)| (json!({ field: spec }), json!({ "action_parameters": { name: wire } })))
        .collect()
}

fn nothing() -> Part {
    vec![(json!({}), json!({}))]
}

/// Every form. They are asked for at every write of every story.
static FORMS: LazyLock<[Form; 10]> = LazyLock::new(|| {
    [
        waf_custom(),
        rate_limit(),
        managed_ruleset(),
        url_rewrite(),
        headers("requestHeaders", Phase::HttpRequestLateTransform, "remove"),
        headers("responseHeaders", Phase::HttpResponseHeadersTransform, "add"),
        redirect(),
        cache(),
        configuration(),
        origin(),
    ]
});

/// Every form.
pub fn forms() -> &'static [Form] {
    &*FORMS
}

/// The form of the rule that a resource asks for; none if the resource is no rule.
pub fn form_of(resource: &Value) -> Option<&'static Form> {
    let kind = resource["kind"].as_str()?;
    let is_it = |form: &&Form| {
        let transform = &form.fixed[0].0["type"];
        form.kind == kind && (transform.is_null() || *transform == resource["spec"]["type"])
    };
    forms().iter().find(is_it)
}
