//! What Cloudflare refuses of rules, and how often it is asked: plan limits, features a plan does not have, expressions that are
//! none, and rulesets that are in force already.

use kflare_sim::{Phase, Plan};
use kflare_testkit::memory_api::ObjectId;
use serde_json::json;

use crate::{
    rules_stage::{block, rule, their_block},
    stage::{HOUR, MINUTE, Stage, adopting, play_in_zone},
};

const WAF: Phase = Phase::HttpRequestFirewallCustom;
const MANAGED: Phase = Phase::HttpRequestFirewallManaged;

// Field case 105.
#[test]
fn a_full_phase_refuses_the_surplus_rarely_tries_again_and_serves_it_when_there_is_room() {
    play_in_zone(Plan::Free, |stage| async move {
        stage.foreign_rule(WAF, &their_block("198.51.100.1"));
        let mut ids: Vec<ObjectId> = (0..5)
            .map(|n| stage.create(block(&format!("rule-{n}"), "192.0.2.1", n)))
            .collect();
        let refused = |stage: &Stage| ids.iter().position(|id| stage.user.ready(id).1 == "TerminalError");
        stage.until("one is refused", |stage| refused(stage).is_some()).await;
        let refused = refused(&stage).unwrap();
        let refused = ids.swap_remove(refused);
        stage.ready(&ids).await;
        let message = stage.user.message(&refused);
        assert!(
            message
                .contains("exceeded the maximum number of rules in the phase http_request_firewall_custom: 6 out of 5"),
            "{message}"
        );
        let mark = stage.mark();
        stage.rest(2 * HOUR).await;
        let tries = stage.since(&mark).cloudflare_writes().len();
        assert!(tries <= 4, "{tries} tries in two hours");
        stage.user.delete(&ids[0]);
        stage.gone(&ids[..1]).await;
        // A quota is asked about again after half an hour to six hours.
        stage
            .until_within("the last one is served", 7 * HOUR, |stage| {
                stage.user.is_ready(&refused)
            })
            .await;
        assert_eq!(stage.rules(WAF).len(), 5);
    });
}

#[test]
fn what_a_plan_does_not_have_is_said_in_cloudflares_words_and_not_asked_again() {
    play_in_zone(Plan::Free, |stage| async move {
        let refused = [
            rule(
                "WAFCustomRule",
                "regex",
                &json!({ "expression": "http.request.uri.path matches \"^/a\"", "action": "block" }),
            ),
            rule(
                "WAFCustomRule",
                "log",
                &json!({ "expression": "true", "action": "log" }),
            ),
            rule("ManagedRuleset", "owasp", &json!({ "ruleset": "owasp" })),
            rule(
                "OriginRule",
                "host",
                &json!({ "expression": "true", "hostHeader": "other.example" }),
            ),
            rule(
                "ConfigurationRule",
                "polish",
                &json!({ "expression": "true", "settings": { "polish": "lossy" } }),
            ),
        ];
        let ids = refused.map(|it| stage.create(it));
        for id in &ids {
            stage.says(id, "False", "TerminalError").await;
            let message = stage.user.message(id);
            assert!(message.contains("not entitled"), "{id}: {message}");
        }
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let writes = stage.since(&mark).cloudflare_writes().len();
        assert!(writes <= 2 * ids.len(), "{writes} tries in an hour");
    });
}

#[test]
fn an_expression_that_is_none_is_shown_with_the_place_of_the_fault() {
    play_in_zone(Plan::Pro, |stage| async move {
        let spec = json!({ "expression": "ip.src equals 192.0.2.1", "action": "block" });
        let id = stage.create(rule("WAFCustomRule", "broken", &spec));
        stage.says(&id, "False", "InvalidSpec").await;
        let message = stage.user.message(&id);
        for part in ["Filter parsing error (1:8)", "/expression"] {
            assert!(message.contains(part), "{message}");
        }
        let mark = stage.mark();
        stage.rest(2 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage
            .user
            .edit_spec(&id, &json!({ "expression": "ip.src eq 192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
    });
}

fn managed(name: &str, ruleset: &str) -> serde_json::Value {
    rule("ManagedRuleset", name, &json!({ "ruleset": ruleset }))
}

#[test]
fn a_ruleset_that_somebody_has_put_in_force_is_a_conflict_and_never_adopted() {
    play_in_zone(Plan::Pro, |stage| async move {
        let body = json!({
            "expression": "true", "action": "execute",
            "action_parameters": { "id": "efb7b8c949ac4650a09736fc376e9aee" },
        });
        let theirs = stage.foreign_rule(MANAGED, &body);
        let ids = [
            stage.create(managed("plain", "cloudflare-managed")),
            stage.create(adopting(managed("adopting", "cloudflare-managed"), "adopt-or-create")),
        ];
        for id in &ids {
            stage.says(id, "False", "RulesetConflict").await;
            assert!(stage.user.message(id).contains(&theirs), "{}", stage.user.message(id));
        }
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage
            .cloudflare
            .foreign_delete_rule(crate::stage::DOMAIN, MANAGED, &theirs)
            .unwrap();
        // The first that looks has it, the other does not.
        stage
            .until("one of them is in force", |stage| {
                stage.rules(MANAGED).len() == 1 && ids.iter().any(|id| stage.user.is_ready(id))
            })
            .await;
        stage.rest(HOUR).await;
        assert_eq!(stage.rules(MANAGED).len(), 1);
    });
}

#[test]
fn two_resources_for_one_ruleset_are_one_deployment_and_a_conflict() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = [
            stage.create(managed("one", "owasp")),
            stage.create(managed("two", "owasp")),
            stage.create(managed("three", "cloudflare-managed")),
        ];
        stage.ready(&ids[2..]).await;
        let said = |stage: &Stage| {
            let mut states: Vec<_> = ids[..2].iter().map(|id| stage.user.ready(id).1).collect();
            states.sort();
            states == ["RulesetConflict", "Synced"]
        };
        stage.until("one of the two has it", said).await;
        stage.rest(HOUR).await;
        assert!(said(&stage));
        assert_eq!(stage.rules(MANAGED).len(), 2);
    });
}

#[test]
fn the_last_managed_ruleset_hands_the_zone_back_and_says_so() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = [
            stage.create(managed("one", "owasp")),
            stage.create(managed("two", "cloudflare-managed")),
        ];
        stage.ready(&ids).await;
        for (nth, id) in ids.iter().enumerate() {
            stage.user.delete(id);
            stage.gone(std::slice::from_ref(id)).await;
            stage.rest(MINUTE).await;
            let told = stage.told(id, "DeletingMore", &["Free Managed Ruleset"]);
            assert_eq!(told, nth == 1, "{:?}", stage.user.events(id));
        }
    });
}
