//! `ManagedRuleset`. A zone has one deployment of a ruleset: a second one conflicts with it, whoever made the first.

use kflare_api::rules::{
    RuleBase,
    managed_ruleset::{KnownRuleset, ManagedRulesetSpec},
};
use serde_json::{Value, json};

use super::{Action, RuleKind};

/// The kind.
pub struct Managed;

impl RuleKind for Managed {
    type Spec = ManagedRulesetSpec;
    const KIND: &'static str = "ManagedRuleset";
    const PLURAL: &'static str = "managedrulesets";
    const LAST_ONE: Option<&'static str> = Some(
        "it is the zone's last rule for managed rulesets, so Cloudflare's default is in force again: the Free Managed Ruleset, on",
    );

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_request_firewall_managed"
    }

    fn action(spec: &Self::Spec) -> Action {
        let known = spec.ruleset.map(KnownRuleset::id);
        let overrides = spec.overrides.as_ref().map_or(Value::Null, |given| {
            let categories: Vec<Value> = given
                .categories
                .iter()
                .map(|it| {
                    json!({
                        "category": it.category,
                        "action": it.action,
                        "enabled": it.enabled,
                        "sensitivity_level": it.sensitivity_level,
                    })
                })
                .collect();
            let rules: Vec<Value> = given
                .rules
                .iter()
                .map(|it| {
                    json!({
                        "id": it.id,
                        "action": it.action,
                        "enabled": it.enabled,
                        "score_threshold": it.score_threshold,
                        "sensitivity_level": it.sensitivity_level,
                    })
                })
                .collect();
            json!({
                "action": given.action,
                "enabled": given.enabled,
                "sensitivity_level": given.sensitivity_level,
                "categories": categories,
                "rules": rules,
            })
        });
        let id = known.or(spec.ruleset_id.as_deref());
        Action::new("execute", json!({ "id": id, "overrides": overrides }))
    }
}
