//! Rulesets and rules: order, `ref`, versions, and what is read back.

use kflare_sim::{Effect, Phase, Plan, QueryStringForm, Quirks, RuleLoggingForm};
use serde_json::{Value, json};

use crate::rulesets_bodies::*;
use crate::support::*;

const CUSTOM: Phase = Phase::HttpRequestFirewallCustom;

/// A pro zone with the rules a, b and c in the custom phase: the API, the path of the ruleset, the ids of the rules.
async fn three_rules() -> (Api, String, Vec<String>) {
    let api = api_on(Plan::Pro);
    let ruleset = api
        .create_ruleset(CUSTOM, json!([block("a"), block("b"), block("c")]))
        .await;
    let ids = ruleset["rules"].as_array().expect("rules").iter().map(id_of).collect();
    (api, format!("{RULESETS}/{}", id_of(&ruleset)), ids)
}

#[tokio::test(start_paused = true)]
async fn an_entry_point_is_missing_made_once_and_deleted() {
    let api = api_on(Plan::Free);
    for phase in Phase::ALL {
        let path = entry_point(phase);
        let missing = api.get(&path).await;
        assert_eq!(missing.refusal(), (404, 10_003));
        let text = format!("could not find entrypoint ruleset in the {} phase", phase.name());
        assert_eq!(missing.body["errors"][0]["message"], json!(text));
        assert_eq!(missing.body["messages"], json!([]));
        let made = api.create_ruleset(phase, json!([])).await;
        assert_eq!(
            (
                &made["kind"],
                &made["phase"],
                &made["version"],
                &made["rules"],
                &made["description"]
            ),
            (
                &json!("zone"),
                &json!(phase.name()),
                &json!("1"),
                &json!([]),
                &json!("")
            )
        );
        assert_eq!(api.get(&path).await.result(), made);

        // Field case 36: it looks like a quota.
        let body = json!({ "name": "again", "kind": "zone", "phase": phase.name(), "rules": [] });
        let again = api.send("POST", RULESETS, Some(&body)).await;
        assert_eq!(again.refusal(), (400, 20_217));
        assert_eq!(again.body["errors"][0]["source"]["pointer"], "/kind");
        assert_eq!(again.body["messages"], Value::Null);

        let path = format!("{RULESETS}/{}", id_of(&made));
        let gone = api.send("DELETE", &path, None).await;
        assert_eq!((gone.status, gone.text.as_str()), (204, ""));
        assert_eq!(api.send("DELETE", &path, None).await.refusal(), (404, 10_003));
        assert_eq!(api.get(&path).await.refusal(), (404, 10_003));
    }
    // An entry point is kept when its last rule goes.
    let put = api
        .send("PUT", &entry_point(CUSTOM), Some(&json!({ "rules": [block("a")] })))
        .await
        .result();
    assert_eq!((&put["name"], &put["version"]), (&json!("default"), &json!("1")));
    let rule = format!("{RULESETS}/{}/rules/{}", id_of(&put), id_of(&put["rules"][0]));
    let left = api.send("DELETE", &rule, None).await.result();
    assert_eq!((&left["rules"], &left["version"]), (&json!([]), &json!("2")));
    assert_eq!(api.get(&entry_point(CUSTOM)).await.result(), left);
}

#[tokio::test(start_paused = true)]
async fn lists_show_cloudflares_rulesets_and_ones_own_without_rules() {
    let api = api_on(Plan::Free);
    let list = api.get(RULESETS).await;
    assert_eq!(list.body["result_info"], json!({ "count": 3, "cursors": {} }));
    let managed: Vec<_> = names(&list.result());
    assert_eq!(
        managed,
        [
            "DDoS L7 ruleset",
            "Cloudflare Managed Free Ruleset",
            "Cloudflare Normalization Ruleset"
        ]
    );
    api.sim.set_zone_plan(ZONE, Plan::Pro).expect("a zone");
    for phase in Phase::ALL {
        api.create_ruleset(phase, json!([])).await;
    }
    let mut seen = Vec::new();
    let mut path = format!("{RULESETS}?per_page=5");
    loop {
        let page = api.get(&path).await;
        let cursor = page.body["result_info"]["cursors"]["after"].clone();
        let rows = page.result();
        assert!(
            rows.as_array()
                .expect("rows")
                .iter()
                .all(|row| row.get("rules").is_none())
        );
        seen.extend(rows.as_array().expect("rows").iter().map(id_of));
        match cursor.as_str() {
            Some(cursor) => path = format!("{RULESETS}?per_page=5&cursor={cursor}"),
            None => break,
        }
    }
    let ids: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(
        (seen.len(), ids.len()),
        (16, 16),
        "six of Cloudflare's, ten of the zone"
    );
    assert_eq!(api.get(&format!("{RULESETS}?cursor=x")).await.status, 400);
    // What is in a managed ruleset is not modelled, and not made up.
    let managed = api.get(&format!("{RULESETS}/{CLOUDFLARE_MANAGED}")).await;
    assert_eq!(managed.refusal(), (501, 10_501));
    assert_eq!(api.get(&format!("{RULESETS}/{UNKNOWN}/versions")).await.status, 501);
    assert_eq!(api.get(&format!("{RULESETS}/not-an-id")).await.refusal(), (404, 7003));
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_read_back_with_what_cloudflare_adds() {
    let api = api_on(Plan::Enterprise);
    for (phase, body) in rule_bodies() {
        let ruleset = api.create_ruleset(phase, json!([body])).await;
        let rule = &ruleset["rules"][0];
        assert_eq!(rule["ref"], rule["id"], "the ref is the id by default");
        assert_eq!(rule["version"], "1");
        assert_eq!(rule["last_updated"], ruleset["last_updated"]);
        let updated = rule["last_updated"].as_str().expect("a time");
        assert_eq!(updated.len(), "2026-11-29T12:00:00.000000Z".len(), "microseconds");
        let mut expected = body.clone();
        let object = expected.as_object_mut().expect("a rule");
        match body["action"].as_str().expect("an action") {
            "execute" => object["action_parameters"]["version"] = json!("latest"),
            "redirect"
                if body
                    .pointer("/action_parameters/from_value/preserve_query_string")
                    .is_none() =>
            {
                object["action_parameters"]["from_value"]["preserve_query_string"] = json!(false);
            }
            "skip" => drop(object.insert("logging".into(), json!({ "enabled": true }))),
            "managed_challenge" => drop(object.remove("action_parameters")),
            _ => {}
        }
        for key in ["id", "ref", "version", "last_updated"] {
            object.insert(key.into(), rule[key].clone());
        }
        assert_eq!(rule, &expected);
        let path = format!("{RULESETS}/{}", id_of(&ruleset));
        assert_eq!(api.send("DELETE", &path, None).await.status, 204);
    }
    // Nulls are absent, defaults are filled in, empty texts left out.
    let bare = json!({
        "action": "block", "expression": "true", "action_parameters": null, "description": "", "enabled": null, "ref": null,
    });
    let ruleset = api.create_ruleset(CUSTOM, json!([bare])).await;
    let rule = ruleset["rules"][0].as_object().expect("a rule");
    let keys: Vec<_> = rule.keys().map(String::as_str).collect();
    assert_eq!(
        keys.iter().copied().collect::<std::collections::BTreeSet<_>>(),
        [
            "action",
            "enabled",
            "expression",
            "id",
            "last_updated",
            "ref",
            "version"
        ]
        .into()
    );
    assert_eq!(rule["enabled"], true);
    let limit = json!({
        "action": "block", "expression": "true",
        "ratelimit": { "characteristics": ["cf.colo.id"], "period": 10, "requests_per_period": 1 },
    });
    let ruleset = api.create_ruleset(Phase::HttpRatelimit, json!([limit])).await;
    assert_eq!(ruleset["rules"][0]["ratelimit"]["requests_to_origin"], false);
}

#[tokio::test(start_paused = true)]
async fn forms_of_logging_and_query_strings() {
    let api = api_on(Plan::Enterprise);
    let skip = |logging: Value| json!({ "action": "skip", "expression": "true", "action_parameters": { "ruleset": "current" }, "logging": logging });
    let on = json!({ "enabled": true });
    let off = json!({ "enabled": false });
    api.create_ruleset(CUSTOM, json!([skip(Value::Null), skip(on.clone()), skip(off.clone())]))
        .await;
    let cache = json!([rule_bodies()
        .into_iter()
        .find(|(phase, _)| *phase == Phase::HttpRequestCacheSettings)
        .expect("one")
        .1]);
    api.create_ruleset(Phase::HttpRequestCacheSettings, cache).await;
    let logging = async || {
        let rules = api.get(&entry_point(CUSTOM)).await.result()["rules"].clone();
        let rules = rules.as_array().expect("rules").iter();
        rules.map(|rule| rule.get("logging").cloned()).collect::<Vec<_>>()
    };
    let query = async || {
        let ruleset = api.get(&entry_point(Phase::HttpRequestCacheSettings)).await.result();
        ruleset["rules"][0]["action_parameters"]["cache_key"]["custom_key"]["query_string"].clone()
    };
    assert_eq!(logging().await, [Some(on.clone()), Some(on.clone()), Some(off)]);
    assert_eq!(
        query().await,
        json!({ "include": { "list": ["a", "b"] }, "exclude": { "all": true } })
    );
    api.sim.set_quirks(Quirks {
        rule_logging: RuleLoggingForm::Sparse,
        query_strings: QueryStringForm::Bare,
        ..Quirks::default()
    });
    assert_eq!(logging().await, [None, Some(on), None]);
    assert_eq!(query().await, json!({ "include": ["a", "b"], "exclude": ["*"] }));
}

#[tokio::test(start_paused = true)]
async fn rules_are_put_where_the_position_says() {
    let (api, path, ids) = three_rules().await;
    let rules = format!("{path}/rules");
    let add = async |reference: &str, position: Value| {
        let mut body = block(reference);
        body["position"] = position;
        let answer = api.send("POST", &rules, Some(&body)).await.result();
        assert!(answer["rules"][0].get("position").is_none(), "write only");
        refs(&answer).concat()
    };
    assert_eq!(add("d", Value::Null).await, "abcd");
    assert_eq!(add("e", json!({ "before": "" })).await, "eabcd");
    assert_eq!(add("f", json!({ "after": "" })).await, "eabcdf");
    assert_eq!(add("g", json!({ "before": ids[1] })).await, "eagbcdf");
    assert_eq!(add("h", json!({ "after": ids[1] })).await, "eagbhcdf");
    assert_eq!(add("i", json!({ "index": 2 })).await, "eiagbhcdf");
    assert_eq!(add("j", json!({ "index": 10 })).await, "eiagbhcdfj");
    let first = format!("{rules}/{}", ids[0]);
    let move_to = async |position: Value| {
        let answer = api.send("PATCH", &first, Some(&json!({ "position": position }))).await;
        refs(&answer.result()).concat()
    };
    assert_eq!(move_to(json!({ "index": 1 })).await, "aeigbhcdfj");
    assert_eq!(move_to(json!({ "index": 10 })).await, "eigbhcdfja");
    assert_eq!(move_to(json!({ "before": ids[2] })).await, "eigbhacdfj");
    assert_eq!(move_to(json!({ "after": ids[2] })).await, "eigbhcadfj");
    assert_eq!(move_to(json!({ "before": "" })).await, "aeigbhcdfj");
    for (position, pointer) in [
        (json!({ "index": 0 }), "/position/index"),
        (json!({ "index": 11 }), "/position/index"),
        (json!({ "index": -1 }), "/position/index"),
        (json!({ "before": UNKNOWN }), "/position/before"),
        (json!({ "after": UNKNOWN }), "/position/after"),
        (json!({ "before": ids[0] }), "/position/before"),
        (json!({ "before": "", "after": "" }), "/position"),
        (json!({}), "/position"),
        (json!(1), "/position"),
    ] {
        let answer = api.send("PATCH", &first, Some(&json!({ "position": position }))).await;
        assert_eq!(answer.status, 400, "{position}");
        assert_eq!(answer.body["errors"][0]["source"]["pointer"], pointer, "{position}");
    }
    let moved = api.get(&path).await.result();
    assert_eq!(refs(&moved).concat(), "aeigbhcdfj", "refused moves move nothing");
    assert_eq!(moved["version"], "13", "one for each write");
    assert_eq!(moved["rules"][0]["version"], "1", "a move is no change of the rule");
}

#[tokio::test(start_paused = true)]
async fn a_patch_is_the_whole_rule() {
    let (api, path, ids) = three_rules().await;
    let rule = format!("{path}/rules/{}", ids[1]);
    let body =
        json!({ "ref": "b", "action": "log", "expression": "true", "description": "why", "position": { "index": 1 } });
    api.sim.set_zone_plan(ZONE, Plan::Enterprise).expect("a zone");
    let answer = api.send("PATCH", &rule, Some(&body)).await.result();
    assert_eq!(
        (refs(&answer).concat().as_str(), &answer["version"]),
        ("bac", &json!("2"))
    );
    let changed = &answer["rules"][0];
    assert_eq!(
        (&changed["id"], &changed["version"], &changed["action"]),
        (&json!(ids[1]), &json!("2"), &json!("log"))
    );
    assert_eq!(changed["last_updated"], answer["last_updated"]);
    assert_ne!(answer["rules"][1]["last_updated"], answer["last_updated"]);
    // What it leaves out is dropped, the ref too.
    let body = json!({ "action": "block", "expression": "true" });
    let answer = api.send("PATCH", &rule, Some(&body)).await.result();
    let changed = &answer["rules"][0];
    assert_eq!((&changed["ref"], changed.get("description")), (&json!(ids[1]), None));
    // Every write makes a version of the ruleset, one of the rule only if it changed.
    let again = api.send("PATCH", &rule, Some(&body)).await.result();
    assert_eq!((&again["version"], &again["rules"][0]), (&json!("4"), changed));
    for body in [json!({}), json!({ "enabled": false }), json!({ "action": "block" })] {
        assert_eq!(api.send("PATCH", &rule, Some(&body)).await.status, 400, "{body}");
    }
    let other = format!("{path}/rules/{UNKNOWN}");
    assert_eq!(api.send("PATCH", &other, Some(&body)).await.refusal(), (404, 10_003));
    assert_eq!(api.send("DELETE", &other, None).await.refusal(), (404, 10_003));
}

// Field case 38: rules keep their ids through their ref.
#[tokio::test(start_paused = true)]
async fn a_put_keeps_the_ids_of_rules_with_the_same_ref() {
    let (api, path, ids) = three_rules().await;
    let put = async |rules: Value| {
        let answer = api.send("PUT", &path, Some(&json!({ "rules": rules }))).await.result();
        let rules = answer["rules"].as_array().expect("rules").clone();
        rules.iter().map(id_of).collect::<Vec<_>>()
    };
    let now = put(json!([block("new"), block("c"), block("b")])).await;
    assert_eq!(now[1..], [ids[2].clone(), ids[1].clone()]);
    assert!(!ids.contains(&now[0]));
    let mut changed = block("c");
    changed["description"] = json!("changed");
    assert_eq!(put(json!([changed])).await, [ids[2].clone()]);
    // A ref that is the id of a rule is that rule's.
    let anonymous = json!({ "action": "block", "expression": "true" });
    let first = put(json!([anonymous])).await;
    let mut named = anonymous.clone();
    named["ref"] = json!(first[0]);
    assert_eq!(put(json!([named])).await, first);
    assert_ne!(put(json!([anonymous])).await, first, "without a ref it is another rule");
    let twice = json!({ "rules": [block("a"), block("a")] });
    let answer = api.send("PUT", &path, Some(&twice)).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.body["errors"][0]["source"]["pointer"], "/rules/1/ref");
    // The description changes, name, kind and phase do not; rules that are not sent stay.
    let described = api
        .send("PUT", &path, Some(&json!({ "description": "mine" })))
        .await
        .result();
    assert_eq!(
        (&described["description"], described["rules"].as_array().map(Vec::len)),
        (&json!("mine"), Some(1))
    );
    for (key, value) in [("name", "other"), ("kind", "custom"), ("phase", "http_ratelimit")] {
        let answer = api.send("PUT", &path, Some(&json!({ key: value, "rules": [] }))).await;
        assert_eq!(answer.status, 400, "{key}");
        assert_eq!(answer.body["errors"][0]["source"]["pointer"], format!("/{key}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_ref_is_one_rules_in_a_ruleset() {
    let (api, path, ids) = three_rules().await;
    let answer = api.send("POST", &format!("{path}/rules"), Some(&block("a"))).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.body["errors"][0]["source"]["pointer"], "/ref");
    let answer = api
        .send("PATCH", &format!("{path}/rules/{}", ids[1]), Some(&block("a")))
        .await;
    assert_eq!(answer.status, 400);
    let answer = api
        .send("PATCH", &format!("{path}/rules/{}", ids[1]), Some(&block("")))
        .await;
    assert_eq!(answer.status, 400);
    assert_eq!(refs(&api.get(&path).await.result()).concat(), "abc");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_changes_nothing() {
    let (api, path, _) = three_rules().await;
    let before = api.get(&path).await.result();
    api.sim.clear_calls();
    let answer = api
        .send("POST", &format!("{path}/rules?dry_run=true"), Some(&block("d")))
        .await;
    assert_eq!(refs(&answer.result()).concat(), "abcd");
    let refused = api
        .send("POST", &format!("{path}/rules?dry_run=true"), Some(&block("a")))
        .await;
    assert_eq!(refused.status, 400);
    let deleted = api.send("DELETE", &format!("{path}?dry_run=true"), None).await;
    assert_eq!(deleted.status, 204);
    assert!(api.sim.calls().iter().all(|call| call.effect == Effect::None));
    assert_eq!(api.get(&path).await.result(), before);
}

#[tokio::test(start_paused = true)]
async fn custom_rulesets_are_executed_by_the_entry_point() {
    let api = api_on(Plan::Free);
    let body = json!({ "name": "mine", "kind": "custom", "phase": CUSTOM.name(), "rules": [block("a")] });
    let custom = api.send("POST", RULESETS, Some(&body)).await.result();
    let execute = |id: &str| json!([{ "action": "execute", "expression": "true", "action_parameters": { "id": id } }]);
    let entry = api.create_ruleset(CUSTOM, execute(&id_of(&custom))).await;
    assert_eq!(
        entry["rules"][0]["action_parameters"],
        json!({ "id": custom["id"] }),
        "no version"
    );
    let unknown = json!({ "rules": execute(UNKNOWN) });
    let answer = api.send("PUT", &entry_point(CUSTOM), Some(&unknown)).await;
    assert_eq!(
        answer.body["errors"][0]["source"]["pointer"],
        "/rules/0/action_parameters/id"
    );
    assert_eq!(api.send("POST", RULESETS, Some(&body)).await.refusal(), (400, 50_001));
    let other = json!({ "name": "x", "kind": "custom", "phase": "http_ratelimit", "rules": [] });
    assert_eq!(api.send("POST", RULESETS, Some(&other)).await.refusal(), (501, 10_501));
}
