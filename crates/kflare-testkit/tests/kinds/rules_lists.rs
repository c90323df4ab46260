//! Rules that name lists: they wait for those of ours, and keep them in use.

use kflare_api::names;
use kflare_sim::{Phase, Plan};
use kflare_testkit::{
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, NAMESPACE},
};
use serde_json::{Value, json};

use crate::{
    rules_stage::rule,
    stage::{HOUR, MINUTE, Stage, in_namespace, object, play_in_zone},
};

const WAF: Phase = Phase::HttpRequestFirewallCustom;

fn list(name: &str) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "IPList",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "accountRef": { "name": "main" }, "name": "office", "items": [{ "ip": "192.0.2.1" }] },
    })
}

fn office(stage: &Stage, name: &str) -> ObjectId {
    let spec = json!({ "expression": "ip.src in $office and http.host ne \"$nothing\"", "action": "block" });
    stage.create(rule("WAFCustomRule", name, &spec))
}

#[test]
fn a_rule_comes_after_its_list_and_goes_before_it() {
    // Whichever is applied first, and in whatever namespace the list is.
    for (list_first, namespace) in [(true, NAMESPACE), (false, NAMESPACE), (false, "lists")] {
        play_in_zone(Plan::Pro, |stage| async move {
            let list = in_namespace(list("office"), namespace);
            let (list, rule) = if list_first {
                (stage.create(list), office(&stage, "rule"))
            } else {
                let rule = office(&stage, "rule");
                stage.rest(MINUTE).await;
                assert_ne!(
                    stage.user.ready(&rule).0,
                    "True",
                    "Cloudflare takes no rule without its list"
                );
                (stage.create(list), rule)
            };
            stage.ready(&[list.clone(), rule.clone()]).await;
            assert_eq!(stage.rules(WAF).len(), 1);

            stage.user.delete(&list);
            stage.says(&list, "False", "ListInUse").await;
            assert!(
                stage.user.message(&list).contains("rule"),
                "{}",
                stage.user.message(&list)
            );
            stage.rest(HOUR).await;
            assert_eq!(stage.cloudflare.lists(ACCOUNT_ID).len(), 1);
            stage.user.delete(&rule);
            stage.gone(&[rule, list]).await;
            assert_eq!(stage.rules(WAF).len(), 0);
            assert_eq!(stage.cloudflare.lists(ACCOUNT_ID).len(), 0);
        });
    }
}

#[test]
fn a_list_that_nobody_manages_is_waited_for_by_nobody() {
    play_in_zone(Plan::Pro, |stage| async move {
        let body = json!({ "name": "office", "kind": "ip" });
        stage.cloudflare.foreign_create_list(ACCOUNT_ID, object(&body)).unwrap();
        let rule = office(&stage, "rule");
        stage.ready(std::slice::from_ref(&rule)).await;
    });
}
