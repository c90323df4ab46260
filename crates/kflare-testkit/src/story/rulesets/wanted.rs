//! What a rule is to be at Cloudflare, and where it is to stand: found out by asking an empty simulator, not the code under test.

use kflare_sim::{AccountSeed, ForeignCall, Phase, Plan, Seed, SimConfig, Simulator, ZoneSeed};
use serde_json::{Map, Value, json};

use super::remote::{Rules, mark};
use super::words::form_of;
use crate::simulation::ACCOUNT_ID;
use crate::story::act::Setting;
use crate::story::holdings::Holdings;
use crate::story::identity::{domain_of, recorded_id, text};

/// What a client writes of a rule.
const FIELDS: [&str; 7] = [
    "action",
    "action_parameters",
    "expression",
    "description",
    "enabled",
    "logging",
    "ratelimit",
];

/// A Cloudflare with one zone and these lists in it.
fn simulator(setting: &Setting, zone: &str, plan: Plan, lists: impl IntoIterator<Item = String>) -> Option<Simulator> {
    let simulator = Simulator::new(SimConfig {
        quirks: setting.quirks(),
        ..SimConfig::default()
    });
    let account = AccountSeed {
        id: Some(ACCOUNT_ID.to_owned()),
        ..AccountSeed::named("one")
    };
    let seed = Seed {
        accounts: vec![account],
        zones: vec![ZoneSeed::named(zone, ACCOUNT_ID).on(plan)],
        ..Seed::default()
    };
    simulator.seed(&seed).ok()?;
    for name in lists {
        let list = Map::from_iter([("name".to_owned(), json!(name)), ("kind".to_owned(), json!("ip"))]);
        simulator.foreign_create_list(ACCOUNT_ID, &list).ok()?;
    }
    Some(simulator)
}

/// The body that asks for the rule of a resource.
fn body(resource: &Value) -> Option<(Phase, Map<String, Value>)> {
    let form = form_of(resource)?;
    let mut body = form.body(&resource["spec"]);
    body["ref"] = json!(mark(form.kind, resource["metadata"]["name"].as_str()?));
    Some((form.phase, body.as_object().cloned()?))
}

/// The lists that the expression of a rule names; stories name at most one.
pub fn list_of(rule: &Value) -> Option<String> {
    let (_, name) = rule["expression"].as_str()?.split_once('$')?;
    Some(name.trim().to_owned())
}

/// The fields in which a rule is not what its resource asks for. What is logged is left alone where a spec does not say it.
pub fn differences(setting: &Setting, resource: &Value, rule: &Value) -> Vec<String> {
    let wanted = || -> Option<Value> {
        let (phase, body) = body(resource)?;
        let zone = domain_of(resource);
        let simulator = simulator(setting, &zone, Plan::Enterprise, list_of(&resource["spec"]))?;
        let ruleset = simulator.foreign_add_rule(&zone, phase, &body).ok()?;
        Some(ruleset["rules"][0].clone())
    };
    let Some(wanted) = wanted() else {
        return vec!["Cloudflare refuses it".to_owned()];
    };
    let mut found = Vec::new();
    for field in FIELDS.into_iter().chain(["ref"]) {
        let unsaid = field == "logging" && resource["spec"][field].is_null();
        if !unsaid && wanted[field] != rule[field] {
            found.push(format!("{field}: wanted {}, is {}", wanted[field], rule[field]));
        }
    }
    found
}

/// Whether Cloudflare refuses the rule of a resource where it would stand now, if there were these lists and no others.
pub fn is_refused(setting: &Setting, holdings: &Holdings, resource: &Value, lists: Vec<String>) -> bool {
    let Some((phase, body)) = body(resource) else {
        return false;
    };
    let domain = domain_of(resource);
    let zone = holdings.zones.values().find(|zone| text(&zone["name"]) == domain);
    let plan = zone.map_or(Plan::Free, crate::story::wanted::plan_of);
    let Some(simulator) = simulator(setting, &domain, plan, lists) else {
        return false;
    };
    let others = holdings.rules.all.iter().filter(|(id, rule)| {
        rule["zone_name"] == *domain && rule["phase"] == json!(phase) && recorded_id(resource).as_ref() != Some(*id)
    });
    for (_, other) in others {
        let mut fields = other.as_object().cloned().unwrap_or_default();
        fields.retain(|field, _| FIELDS.contains(&field.as_str()));
        // Whatever lists they name need not be there.
        fields.insert("expression".to_owned(), json!("true"));
        drop(simulator.foreign_add_rule(&domain, phase, &fields));
    }
    let zone_id = simulator
        .zones()
        .first()
        .map(|zone| text(&zone["id"]))
        .unwrap_or_default();
    let path = format!("/zones/{zone_id}/rulesets");
    let call = match simulator.entry_point(&domain, phase) {
        Some(ruleset) => {
            ForeignCall::new("POST", format!("{path}/{}/rules", text(&ruleset["id"]))).body(Value::Object(body))
        }
        None => ForeignCall::new("POST", path)
            .body(json!({ "name": "default", "kind": "zone", "phase": phase, "rules": [body] })),
    };
    simulator.foreign_call(&call).is_err()
}

/// Whether another rule of the zone puts the ruleset of a ManagedRuleset in force.
pub fn conflicts(holdings: &Holdings, resource: &Value) -> bool {
    let Some((phase, body)) = body(resource) else {
        return false;
    };
    let domain = domain_of(resource);
    holdings.rules.all.iter().any(|(id, rule)| {
        recorded_id(resource).as_ref() != Some(id)
            && rule["zone_name"] == *domain
            && rule["phase"] == json!(phase)
            && rule["action_parameters"]["id"] == body["action_parameters"]["id"]
    })
}

/// The first two of these resources whose rules do not stand as their priorities and names say, by what they are called.
pub fn out_of_order<'a>(rules: &Rules, resources: impl Iterator<Item = &'a Value>) -> Option<(&'a Value, &'a Value)> {
    let mut all: Vec<_> = resources
        .filter_map(|resource| {
            let id = recorded_id(resource)?;
            let rule = rules.all.get(&id)?;
            let entry_point = (text(&rule["zone_id"]), text(&rule["phase"]));
            let rank = resource["spec"]["priority"].as_i64().unwrap_or_default();
            let name = text(&resource["metadata"]["name"]);
            Some(((entry_point, rank, name), rules.place(&id)?, resource))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let wrong = all
        .windows(2)
        .find(|pair| pair[0].0.0 == pair[1].0.0 && pair[0].1 > pair[1].1)?;
    Some((wrong[0].2, wrong[1].2))
}
