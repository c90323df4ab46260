//! Zones: creation, activation, plans, deletion.

use crate::support::*;
use kflare_sim::{AccountSeed, AccountType, Activation, CheckOutcome, Plan, Seed, SimConfig, ZoneSeed, ZoneStatus};
use serde_json::{Value, json};

async fn make(api: &Api, name: &str) -> Answer {
    api.send(
        "POST",
        "/zones",
        Some(&json!({ "name": name, "account": { "id": ACCOUNT } })),
    )
    .await
}

async fn edit(api: &Api, zone: &str, change: Value) -> Answer {
    api.send("PATCH", &format!("/zones/{zone}"), Some(&change)).await
}

async fn status(api: &Api, zone: &str) -> String {
    api.get(&format!("/zones/{zone}")).await.result()["status"]
        .as_str()
        .expect("a status")
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_new_zone_is_pending_and_takes_records() {
    let api = api_on(Plan::Free);
    let zone = make(&api, "Bücher.Example.").await.result();
    assert_eq!(zone["name"], "xn--bcher-kva.example");
    assert_eq!(
        (&zone["status"], &zone["activated_on"]),
        (&json!("pending"), &Value::Null)
    );
    assert_eq!(zone["created_on"], "2026-11-29T12:00:00.000000Z");
    assert_eq!(zone["plan"]["legacy_id"], "free");
    let again = make(&api, "second.example").await.result();
    assert_eq!(zone["name_servers"], again["name_servers"], "an account has one pair");
    assert_eq!(zone["name_servers"].as_array().map(Vec::len), Some(2));
    let path = format!("/zones/{}/dns_records", id_of(&zone));
    api.send("POST", &path, Some(&address("www", "192.0.2.1")))
        .await
        .result();
}

#[tokio::test(start_paused = true)]
async fn refused_zones() {
    let api = api_on(Plan::Free);
    for (name, refusal) in [
        ("com", (400, 1002)),
        ("a b.example", (400, 1002)),
        ("", (400, 1002)),
        ("EXAMPLE.com", (400, 1061)),
        ("dev.example.com", (400, 1116)),
    ] {
        assert_eq!(make(&api, name).await.refusal(), refusal, "{name}");
    }
    let no_account = api
        .send("POST", "/zones", Some(&json!({ "name": "new.example" })))
        .await;
    assert_eq!(no_account.refusal(), (400, 1003));
    let foreign = json!({ "name": "new.example", "account": { "id": OTHER_ACCOUNT } });
    assert_eq!(api.send("POST", "/zones", Some(&foreign)).await.refusal(), (403, 9109));
    let partial = json!({ "name": "new.example", "account": { "id": ACCOUNT }, "type": "partial" });
    assert_eq!(api.send("POST", "/zones", Some(&partial)).await.refusal(), (403, 1016));
    assert_eq!(api.sim.zones().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn enterprise_accounts_may_have_subdomains_and_partial_zones() {
    let api = api_on(Plan::Free);
    let account = AccountSeed {
        id: Some(OTHER_ACCOUNT.into()),
        kind: AccountType::Enterprise,
        ..AccountSeed::named("Big")
    };
    let rights = grants(&[(kflare_sim::Area::Zone, true)]);
    let big = kflare_sim::TokenSeed::of_account(&token("big"), OTHER_ACCOUNT, rights);
    api.sim
        .seed(&Seed {
            accounts: vec![account],
            tokens: vec![big],
            ..Seed::default()
        })
        .expect("a good seed");
    let body = json!({ "name": "dev.example.com", "account": { "id": OTHER_ACCOUNT }, "type": "partial" });
    let zone = api.as_token("big").send("POST", "/zones", Some(&body)).await.result();
    assert_eq!((&zone["type"], &zone["name_servers"]), (&json!("partial"), &json!([])));
    assert!(zone["verification_key"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_check_activates_but_not_too_often() {
    let api = api_on(Plan::Free);
    let zone = id_of(&make(&api, "new.example").await.result());
    let path = format!("/zones/{zone}/activation_check");
    let check = || api.send("PUT", &path, None);
    assert_eq!(check().await.result(), json!({ "id": zone }));
    assert_eq!(status(&api, &zone).await, "active");
    assert_eq!(check().await.refusal(), (400, 1224));
    tokio::time::advance(hours(1)).await;
    check().await.result();
    api.sim.set_zone_plan(&zone, Plan::Pro).expect("there");
    tokio::time::advance(std::time::Duration::from_mins(5)).await;
    check().await.result();
}

#[tokio::test(start_paused = true)]
async fn time_and_the_registrar_activate() {
    let activation = Activation {
        after: Some(hours(24)),
        on_check: CheckOutcome::StaysPending,
    };
    let api = api_with(SimConfig { activation, ..config() }, Plan::Free);
    let first = id_of(&make(&api, "first.example").await.result());
    let second = id_of(&make(&api, "second.example").await.result());
    api.send("PUT", &format!("/zones/{first}/activation_check"), None)
        .await
        .result();
    assert_eq!(status(&api, &first).await, "pending");
    api.sim.activate_zone("second.example").expect("there");
    assert_eq!(status(&api, &second).await, "active");
    tokio::time::advance(hours(23)).await;
    assert_eq!(status(&api, &first).await, "pending");
    // The other way to let time pass.
    api.sim.advance(hours(1));
    let zone = api.get(&format!("/zones/{first}")).await.result();
    assert_eq!(zone["status"], "active");
    assert!(
        zone["activated_on"]
            .as_str()
            .expect("a time")
            .starts_with("2026-11-30T12:00:00.")
    );
}

#[tokio::test(start_paused = true)]
async fn plans_go_up_at_once_and_down_later() {
    let api = api_on(Plan::Free);
    let plan = |id: &str| json!({ "plan": { "id": id } });
    let up = edit(&api, ZONE, plan("business")).await.result();
    assert_eq!(
        (&up["plan"]["legacy_id"], up.get("plan_pending")),
        (&json!("business"), None)
    );
    let down = edit(&api, ZONE, plan(Plan::Free.id())).await.result();
    assert_eq!(down["plan"]["legacy_id"], "business");
    assert_eq!(down["plan_pending"]["legacy_id"], "free");
    let called_off = edit(&api, ZONE, plan("business")).await.result();
    assert_eq!(called_off.get("plan_pending"), None);
    edit(&api, ZONE, plan("free")).await.result();
    tokio::time::advance(hours(30 * 24)).await;
    let after = api.get(&format!("/zones/{ZONE}")).await.result();
    assert_eq!(
        (&after["plan"]["legacy_id"], after.get("plan_pending")),
        (&json!("free"), None)
    );
    assert_eq!(edit(&api, ZONE, plan("gold")).await.refusal(), (400, 1016));
}

#[tokio::test(start_paused = true)]
async fn one_property_at_a_time() {
    let api = api_on(Plan::Free);
    assert_eq!(
        edit(&api, ZONE, json!({ "paused": true, "type": "full" }))
            .await
            .refusal(),
        (400, 1016)
    );
    assert_eq!(edit(&api, ZONE, json!({})).await.refusal(), (400, 1016));
    let before = api.get(&format!("/zones/{ZONE}")).await.result();
    tokio::time::advance(hours(1)).await;
    let same = edit(&api, ZONE, json!({ "paused": false })).await.result();
    assert_eq!(same["modified_on"], before["modified_on"]);
    let paused = edit(&api, ZONE, json!({ "paused": true })).await.result();
    assert_eq!(paused["paused"], true);
    assert_ne!(paused["modified_on"], before["modified_on"]);
}

#[tokio::test(start_paused = true)]
async fn partial_needs_business() {
    let api = api_on(Plan::Pro);
    assert_eq!(
        edit(&api, ZONE, json!({ "type": "partial" })).await.refusal(),
        (403, 1016)
    );
    api.sim.set_zone_plan(ZONE, Plan::Business).expect("there");
    let partial = edit(&api, ZONE, json!({ "type": "partial" })).await.result();
    assert!(partial["verification_key"].is_string() && partial["cname_suffix"].is_string());
    let full = edit(&api, ZONE, json!({ "type": "full" })).await.result();
    assert_eq!(full.get("verification_key"), None);
    assert_eq!(full["name_servers"].as_array().map(Vec::len), Some(2));
    let vanity = edit(&api, ZONE, json!({ "vanity_name_servers": ["NS1.example.com"] }))
        .await
        .result();
    assert_eq!(vanity["vanity_name_servers"], json!(["ns1.example.com"]));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_zone_takes_its_records_along() {
    let api = api_on(Plan::Free);
    let record = id_of(&api.create(address("www", "192.0.2.1")).await.result());
    assert_eq!(
        api.send("DELETE", &format!("/zones/{ZONE}"), None).await.result(),
        json!({ "id": ZONE })
    );
    assert_eq!(api.get(&format!("/zones/{ZONE}")).await.refusal(), (400, 9109));
    assert_eq!(
        api.get(&format!("/zones/{ZONE}/dns_records/{record}")).await.refusal(),
        (404, 1003)
    );
    let again = make(&api, "example.com").await.result();
    let path = format!("/zones/{}/dns_records", id_of(&again));
    assert_eq!(api.get(&path).await.result(), json!([]));
}

#[tokio::test(start_paused = true)]
async fn seeds_refuse_nonsense() {
    let api = api_on(Plan::Free);
    let seed = |zone: ZoneSeed| {
        api.sim.seed(&Seed {
            zones: vec![zone],
            ..Seed::default()
        })
    };
    assert!(seed(ZoneSeed::named("example.com", "One")).is_err(), "taken");
    assert!(
        seed(ZoneSeed::named("new.example", "Nobody")).is_err(),
        "no such account"
    );
    assert!(
        seed(ZoneSeed {
            id: Some("x".into()),
            ..ZoneSeed::named("new.example", "One")
        })
        .is_err(),
        "no id"
    );
    let record = serde_json::from_value(json!({ "type": "A", "name": "x", "content": "x" })).expect("a record");
    let error = seed(ZoneSeed {
        records: vec![record],
        ..ZoneSeed::named("new.example", "One")
    })
    .expect_err("no address");
    assert_eq!(error.to_string(), "record 0 of zone new.example is refused");
    let moved = ZoneSeed {
        status: ZoneStatus::Moved,
        ..ZoneSeed::named("moved.example", "One")
    };
    let id = seed(moved).expect("a good seed").zones.remove(0);
    assert_eq!(status(&api, &id).await, "moved");
}
