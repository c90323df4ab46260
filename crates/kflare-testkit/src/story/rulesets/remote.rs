//! Rules as an account holds them: by id, in their order, and what others do to them.

use std::collections::BTreeMap;

use kflare_sim::{Phase, Simulator};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::wanted::list_of;
use super::words::{form_of, forms};
use crate::simulation::NAMESPACE;
use crate::story::act::RuleEdit;
use crate::story::identity::{domain_of, text};

/// The rules of an account, and in which order they stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// By id. Each says its zone and its phase.
    pub all: BTreeMap<String, Value>,
    /// The ids of each entry point, by zone and phase.
    pub order: BTreeMap<(String, String), Vec<String>>,
}

impl Rules {
    /// Adds those of a zone, as a dump shows it.
    pub fn add(&mut self, zone: &Value, rulesets: &Value) {
        for ruleset in rulesets.as_array().into_iter().flatten() {
            let place = (text(&zone["id"]), text(&ruleset["phase"]));
            for rule in ruleset["rules"].as_array().into_iter().flatten() {
                let mut rule = rule.clone();
                // Cloudflare counts them.
                for field in ["version", "last_updated"] {
                    rule.as_object_mut().map(|it| it.remove(field));
                }
                rule["zone_id"] = zone["id"].clone();
                rule["zone_name"] = zone["name"].clone();
                rule["phase"] = ruleset["phase"].clone();
                let id = text(&rule["id"]);
                self.order.entry(place.clone()).or_default().push(id.clone());
                self.all.insert(id, rule);
            }
        }
    }

    /// Where the rule of an id stands in its entry point.
    pub fn place(&self, id: &str) -> Option<usize> {
        let rule = self.all.get(id)?;
        let order = self.order.get(&(text(&rule["zone_id"]), text(&rule["phase"])))?;
        order.iter().position(|it| it == id)
    }

    /// For each entry point whose rules stand in another order than before, those of them one of which was moved: whoever is
    /// taken out of both orders leaves them equal. Empty where it takes more than one.
    pub fn moved(&self, before: &Self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for (place, order) in &self.order {
            let old = before.order.get(place).map_or(&[][..], Vec::as_slice);
            let old: Vec<&String> = old.iter().filter(|id| order.contains(id)).collect();
            let new: Vec<&String> = order.iter().filter(|id| old.contains(id)).collect();
            if old == new {
                continue;
            }
            let without = |all: &[&String], id: &String| -> Vec<String> {
                all.iter().filter(|it| **it != id).map(|it| (*it).clone()).collect()
            };
            let movers = new.iter().filter(|id| without(&old, id) == without(&new, id));
            found.push(movers.map(|id| (*id).clone()).collect());
        }
        found
    }
}

/// The mark of the rule that a resource manages (docs/adding-a-kind.md, "Families").
pub fn mark(kind: &str, name: &str) -> String {
    let hash: [u8; 32] = Sha256::digest(format!("{kind}/{NAMESPACE}/{name}")).into();
    let half = u128::from_be_bytes(hash.first_chunk().copied().unwrap_or_default());
    format!("kflare_{half:032x}")
}

/// What tells a rule from others: of a resource its mark, in a zone and phase; of a rule the same.
pub fn identity(named: &Value) -> Option<(String, String)> {
    let (zone, phase, mark) = if named["spec"].is_object() {
        let form = form_of(named)?;
        let mark = mark(form.kind, named["metadata"]["name"].as_str()?);
        (domain_of(named), json!(form.phase), json!(mark))
    } else {
        // No other object has a phase.
        named["phase"].as_str()?;
        (text(&named["zone_name"]), named["phase"].clone(), named["ref"].clone())
    };
    Some(("Rule".to_owned(), format!("{zone} {} {}", text(&phase), text(&mark))))
}

/// Somebody changes the rules of a phase of a zone.
pub fn meddle(cloudflare: &Simulator, zone: &str, phase: Phase, edit: &RuleEdit) {
    let entry_point = cloudflare.entry_point(zone, phase).unwrap_or_default();
    let rules = entry_point["rules"].as_array().cloned().unwrap_or_default();
    let ids: Vec<String> = rules.iter().map(|rule| text(&rule["id"])).collect();
    let picked = |pick: usize| (!ids.is_empty()).then(|| ids[pick % ids.len()].clone());
    let object = |body: &Value| body.as_object().cloned().unwrap_or_default();
    let beside = |before: Option<usize>, but: Option<&String>| -> Option<Value> {
        let others: Vec<&String> = ids.iter().filter(|id| Some(*id) != but).collect();
        match before {
            _ if others.is_empty() => None,
            Some(before) => Some(json!({ "before": others[before % others.len()] })),
            None => Some(json!({ "after": others.last() })),
        }
    };
    match edit {
        RuleEdit::Add { body, before } => {
            let mut body: Map<String, Value> = object(body);
            if let Some(position) = beside(*before, None) {
                body.insert("position".to_owned(), position);
            }
            drop(cloudflare.foreign_add_rule(zone, phase, &body));
        }
        RuleEdit::Change { pick, body } => {
            if let Some(id) = picked(*pick) {
                drop(cloudflare.foreign_patch_rule(zone, phase, &id, &object(body)));
            }
        }
        RuleEdit::Move { pick, before } => {
            if let Some(id) = picked(*pick)
                && let Some(position) = beside(*before, Some(&id))
            {
                let body = object(&json!({ "position": position }));
                drop(cloudflare.foreign_patch_rule(zone, phase, &id, &body));
            }
        }
        RuleEdit::Delete { pick } => {
            if let Some(id) = picked(*pick) {
                drop(cloudflare.foreign_delete_rule(zone, phase, &id));
            }
        }
        RuleEdit::DeleteAll => drop(cloudflare.foreign_delete_entry_point(zone, phase)),
    }
}

/// Whether there is a rule that names a list.
pub fn name_lists(rules: &Rules) -> bool {
    rules.all.values().any(|rule| list_of(rule).is_some())
}

/// Somebody deletes all rules that name lists.
pub fn delete_those_that_name_lists(cloudflare: &Simulator) {
    for zone in cloudflare.zones() {
        let zone = text(&zone["name"]);
        for form in forms() {
            let entry_point = cloudflare.entry_point(&zone, form.phase).unwrap_or_default();
            for rule in entry_point["rules"].as_array().into_iter().flatten() {
                if list_of(rule).is_some() {
                    drop(cloudflare.foreign_delete_rule(&zone, form.phase, &text(&rule["id"])));
                }
            }
        }
    }
}
