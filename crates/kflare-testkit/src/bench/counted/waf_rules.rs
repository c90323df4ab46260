//! A hundred rules in one phase of a zone: one edit of the ruleset each, and no read between two edits.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{Phase, Plan, ZoneSeed};
use serde_json::{Value, json};

use super::stand::{BenchError, Place, Stand, account_id};
use crate::bench::figure::{self, Figure};
use crate::simulation::{ACCOUNT_ID, ControllerOptions, World, WorldOptions, simulate_with};

const MINUTE: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_mins(30);

/// As many as a business zone takes.
const RULES: usize = 100;

/// Applies a hundred WAF custom rules at once, in a zone that is Ready and has none.
pub fn hundred_waf_rules() -> Result<Vec<Figure>, BenchError> {
    simulate_with(WorldOptions::seeded(40), make_a_hundred).0
}

async fn make_a_hundred(world: World) -> Result<Vec<Figure>, BenchError> {
    let stand = Stand::new(world);
    let place = Place {
        namespace: "team".to_owned(),
        zone: "example".to_owned(),
        domain: "example.com".to_owned(),
    };
    let zone = ZoneSeed::named(&place.domain, ACCOUNT_ID).on(Plan::Business);
    stand.user.open_account(vec![zone]);
    stand.user.connect();
    let parents = [account_id(), stand.apply(place.zone_manifest())?];
    stand.start("controller", ControllerOptions::default());
    stand.ready(&parents, STEP, PATIENCE).await?;
    stand.world.pass_time(MINUTE).await;

    let mark = stand.mark();
    let ids = (0..RULES)
        .map(|n| stand.apply(rule_manifest(&place, n)))
        .collect::<Result<Vec<_>, _>>()?;
    stand.ready(&ids, STEP, PATIENCE).await?;
    stand.world.pass_time(MINUTE).await;
    let calls = stand.since(&mark).calls.len();

    let entry_point = stand
        .world
        .cloudflare
        .entry_point(&place.domain, Phase::HttpRequestFirewallCustom)
        .unwrap_or_default();
    let rules = entry_point["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let in_order = rules
        .iter()
        .enumerate()
        .all(|(n, rule)| rule["expression"] == expression(n));
    if rules.len() != RULES || !in_order {
        return Err(BenchError::NotAsMeant(format!(
            "{} rules instead of {RULES}, or not by their priority",
            rules.len()
        )));
    }
    Ok(vec![figure::CALLS_CREATE_RULES.counted(calls)])
}

/// The rule that comes `n`th by its priority.
fn rule_manifest(place: &Place, n: usize) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "WAFCustomRule",
        "metadata": { "name": format!("rule-{n}"), "namespace": place.namespace },
        "spec": {
            "zoneRef": { "name": place.zone }, "priority": n, "expression": expression(n), "action": "block",
        },
    })
}

fn expression(n: usize) -> String {
    format!("ip.src eq 192.0.2.{n}")
}
