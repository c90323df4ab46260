//! Managed transforms.

use kflare_sim::{Plan, Seed, Simulator, ZoneSeed};
use serde_json::{Value, json};

use crate::support::*;

const ROUTE: &str = "/zones/{zone_id}/managed_headers";

fn path() -> String {
    format!("/zones/{ZONE}/managed_headers")
}

async fn patch(api: &Api, body: Value) -> Answer {
    api.send("PATCH", &path(), Some(&body)).await
}

/// Every modelled call, for the comparison with Cloudflare's description.
pub async fn answers(api: &Api) -> Vec<(&'static str, &'static str, Answer)> {
    let on = json!({ "managed_request_headers": [{ "id": "add_visitor_location_headers", "enabled": true }] });
    vec![
        ("PATCH", ROUTE, patch(api, on).await),
        ("GET", ROUTE, api.get(&path()).await),
        ("DELETE", ROUTE, api.send("DELETE", &path(), None).await),
    ]
}

/// The ids of the transforms that are on.
fn on(answer: &Value) -> Vec<&str> {
    ["managed_request_headers", "managed_response_headers"]
        .iter()
        .flat_map(|list| answer[list].as_array().expect("a list"))
        .filter(|transform| transform["enabled"] == true)
        .map(|transform| transform["id"].as_str().expect("an id"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_patch_merges_and_a_delete_turns_everything_off() {
    let api = api_on(Plan::Free);
    let all = api.get(&path()).await.result();
    let count = |list: &str| all[list].as_array().expect("a list").len();
    assert_eq!(
        count("managed_request_headers") + count("managed_response_headers"),
        6,
        "Free zones have six"
    );
    assert_eq!(on(&all), Vec::<&str>::new());

    let body = json!({ "managed_response_headers": [{ "id": "add_security_headers", "enabled": true }] });
    assert_eq!(on(&patch(&api, body).await.result()), ["add_security_headers"]);
    let body = json!({
        "managed_request_headers": [{ "id": "add_visitor_location_headers", "enabled": true }],
        "managed_response_headers": [],
    });
    let after = patch(&api, body).await.result();
    assert_eq!(on(&after), ["add_visitor_location_headers", "add_security_headers"]);
    let body = json!({ "managed_response_headers": [{ "id": "add_security_headers", "enabled": false }] });
    assert_eq!(on(&patch(&api, body).await.result()), ["add_visitor_location_headers"]);

    let gone = api.send("DELETE", &path(), None).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(on(&api.get(&path()).await.result()), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn what_a_zone_does_not_have_is_not_found_and_nothing_of_the_patch_is_done() {
    let api = api_on(Plan::Free);
    for id in [
        "remove_x_powered_by_headers",
        // An Enterprise zone has it.
        "add_true_client_ip_headers",
        // It is one of responses.
        "add_security_headers",
    ] {
        let body = json!({ "managed_request_headers": [
            { "id": "add_visitor_location_headers", "enabled": true },
            { "id": id, "enabled": true },
        ]});
        assert_eq!(patch(&api, body).await.status, 404, "{id}");
        assert_eq!(on(&api.get(&path()).await.result()), Vec::<&str>::new(), "{id}");
    }
    for body in [
        json!({ "managed_request_headers": [{ "id": "add_visitor_location_headers" }] }),
        json!({ "managed_request_headers": { "id": "add_visitor_location_headers", "enabled": true } }),
    ] {
        assert_eq!(patch(&api, body).await.status, 400);
    }
}

#[tokio::test(start_paused = true)]
async fn transforms_that_conflict_are_not_on_together() {
    let api = api_on(Plan::Enterprise);
    let transform = |id: &str| json!({ "managed_request_headers": [{ "id": id, "enabled": true }] });
    patch(&api, transform("remove_visitor_ip_headers")).await.result();
    let refused = patch(&api, transform("add_true_client_ip_headers")).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let all = api.get(&path()).await.result();
    let shown = all["managed_request_headers"].as_array().expect("a list");
    let other = shown
        .iter()
        .find(|it| it["id"] == "add_true_client_ip_headers")
        .expect("listed");
    assert_eq!(other["has_conflict"], true);
    assert_eq!(other["conflicts_with"], json!(["remove_visitor_ip_headers"]));
    // One for the other, in one patch.
    let body = json!({ "managed_request_headers": [
        { "id": "add_true_client_ip_headers", "enabled": true },
        { "id": "remove_visitor_ip_headers", "enabled": false },
    ]});
    assert_eq!(on(&patch(&api, body).await.result()), ["add_true_client_ip_headers"]);
}

#[tokio::test(start_paused = true)]
async fn they_are_seeded_kept_in_a_file_edited_by_others_and_gone_with_the_zone() {
    let sim = Simulator::new(config());
    let seed: Seed = serde_json::from_value(json!({
        "accounts": [{ "name": "One" }],
        "zones": [{ "name": "example.com", "account": "One", "managed_transforms": ["add_security_headers"] }],
    }))
    .expect("a seed");
    sim.seed(&seed).expect("a good seed");
    let body = json!({ "managed_request_headers": [{ "id": "add_visitor_location_headers", "enabled": true }] });
    sim.foreign_patch_managed_transforms("example.com", body.as_object().expect("an object"))
        .expect("edited");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    sim.save(&path).expect("saved");
    let copy = Simulator::new(config());
    assert!(copy.load(&path).expect("loaded"));
    let kept = copy.managed_transforms("example.com").expect("the zone");
    assert_eq!(on(&kept), ["add_visitor_location_headers", "add_security_headers"]);
    copy.foreign_delete_zone("example.com").expect("deleted");
    assert_eq!(copy.managed_transforms("example.com"), None);
    copy.seed(&Seed {
        zones: vec![ZoneSeed::named("example.com", "One")],
        ..Seed::default()
    })
    .expect("a good seed");
    assert_eq!(
        on(&copy.managed_transforms("example.com").expect("the zone")),
        Vec::<&str>::new()
    );
}
