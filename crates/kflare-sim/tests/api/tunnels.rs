//! Tunnels: their states as recorded, tokens, configurations and connectors.

use base64::Engine;
use kflare_sim::{Area, Plan, Seed, TokenSeed, TunnelSeed};
use serde_json::{Value, json};

use crate::support::*;

/// An account that may do everything with tunnels.
pub fn api() -> Api {
    let api = api_on(Plan::Free);
    let seed = Seed {
        tokens: vec![
            TokenSeed::of_user(&token("tunnels"), grants(&[(Area::Tunnel, true)])),
            TokenSeed::of_user(&token("reader"), grants(&[(Area::Tunnel, false)])),
            TokenSeed::of_user(&token("zones"), grants(&[(Area::Zone, true)])),
        ],
        ..Seed::default()
    };
    api.sim.seed(&seed).expect("a good seed");
    api.as_token("tunnels")
}

pub fn tunnels() -> String {
    format!("/accounts/{ACCOUNT}/cfd_tunnel")
}

fn tunnel(id: &str) -> String {
    format!("{}/{id}", tunnels())
}

async fn create(api: &Api, name: &str) -> Answer {
    let body = json!({ "name": name, "config_src": "cloudflare" });
    api.send("POST", &tunnels(), Some(&body)).await
}

async fn made(api: &Api, name: &str) -> String {
    id_of(&create(api, name).await.result())
}

fn catch_all() -> Value {
    json!({ "config": { "ingress": [{ "service": "http_status:404" }] } })
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_from_its_creation_to_its_end() {
    let api = api();
    let new = create(&api, "edge").await.result();
    let id = id_of(&new);
    assert_eq!(
        (&new["status"], &new["connections"], &new["conns_active_at"]),
        (&json!("inactive"), &json!([]), &Value::Null)
    );
    assert_eq!(new["conns_inactive_at"], new["created_at"]);
    assert_eq!(
        (&new["remote_config"], &new["config_src"], &new["deleted_at"]),
        (&json!(true), &json!("cloudflare"), &Value::Null)
    );
    assert!(new["token"].is_string() && new["credentials_file"]["TunnelSecret"].is_string());
    let later = api.get(&tunnel(&id)).await.result();
    assert!(later.get("token").is_none() && later.get("credentials_file").is_none());
    assert!(later.get("connections").is_none(), "left out since October 2026");

    let connector = api.sim.connect_tunnel(&id).expect("a live tunnel");
    let connected = api.get(&tunnel(&id)).await.result();
    assert_eq!(
        (&connected["status"], &connected["conns_inactive_at"]),
        (&json!("healthy"), &Value::Null)
    );
    assert!(connected["conns_active_at"].is_string());
    let connectors = api.get(&format!("{}/connections", tunnel(&id))).await;
    assert!(connectors.body.get("result_info").is_none());
    let connectors = connectors.result();
    assert_eq!(connectors[0]["id"], connector);
    assert_eq!(connectors[0]["conns"].as_array().map(Vec::len), Some(4));
    assert_eq!(api.send("DELETE", &tunnel(&id), None).await.refusal(), (400, 1022));

    assert!(api.sim.disconnect_tunnel(&id, &connector).expect("a live tunnel"));
    let down = api.get(&tunnel(&id)).await.result();
    assert_eq!(
        (&down["status"], &down["conns_active_at"]),
        (&json!("down"), &Value::Null)
    );
    assert!(down["conns_inactive_at"].is_string() && down["conns_inactive_at"] != down["created_at"]);

    let gone = api.send("DELETE", &tunnel(&id), None).await.result();
    assert!(gone["deleted_at"].is_string(), "the whole tunnel comes back");
    let gone = api.get(&tunnel(&id)).await.result();
    assert!(gone["deleted_at"].is_string());
    assert_eq!(
        (&gone["status"], &gone["remote_config"], gone.get("config_src")),
        (&json!("down"), &json!(false), None)
    );
    for (path, refusal) in [("token", (404, 1054)), ("configurations", (404, 1055))] {
        assert_eq!(api.get(&format!("{}/{path}", tunnel(&id))).await.refusal(), refusal);
    }
    let connectors = api.get(&format!("{}/connections", tunnel(&id))).await.result();
    assert_eq!(connectors, json!([]));
    let unknown = tunnel("00000000-0000-4000-8000-000000000000");
    assert_eq!(api.get(&unknown).await.refusal(), (404, 1002));
    assert_eq!(api.get(&tunnel("edge")).await.refusal(), (404, 7003));
}

#[tokio::test(start_paused = true)]
async fn lists_hold_deleted_tunnels_unless_told_otherwise() {
    let api = api();
    let first = made(&api, "edge").await;
    assert_eq!(create(&api, "edge").await.refusal(), (409, 1013));
    api.send("DELETE", &tunnel(&first), None).await.result();
    let second = made(&api, "edge").await;
    assert_ne!(first, second);
    made(&api, "other").await;
    let ids = |list: &Value| list.as_array().expect("a list").iter().map(id_of).collect::<Vec<_>>();
    let all = api.get(&format!("{}?name=edge", tunnels())).await;
    let info = &all.body["result_info"];
    assert_eq!(
        (&info["total_count"], &info["per_page"], info.get("total_pages")),
        (&json!(2), &json!(1000), None)
    );
    assert_eq!(ids(&all.result()).len(), 2);
    let live = api
        .get(&format!("{}?name=edge&is_deleted=false", tunnels()))
        .await
        .result();
    assert_eq!(ids(&live), std::slice::from_ref(&second));
    let prefixed = api
        .get(&format!(
            "{}?include_prefix=ed&is_deleted=false&status=inactive&uuid={second}",
            tunnels()
        ))
        .await
        .result();
    assert_eq!(ids(&prefixed), [second]);
    let excluded = api.get(&format!("{}?exclude_prefix=ed", tunnels())).await.result();
    assert_eq!(names(&excluded), ["other"]);
    let past = api.get(&format!("{}?existed_at=2026-01-01T00:00:00Z", tunnels())).await;
    assert_eq!(past.refusal(), (501, 10_501));
}

#[tokio::test(start_paused = true)]
async fn renames_and_new_secrets() {
    let api = api();
    let id = made(&api, "edge").await;
    made(&api, "taken").await;
    let token = || async { api.get(&format!("{}/token", tunnel(&id))).await.result() };
    let first = token().await;
    assert_eq!(first, token().await, "it can be read again");
    let other_name = api
        .send("PATCH", &tunnel(&id), Some(&json!({ "name": "edge-2" })))
        .await
        .result();
    assert_eq!(other_name["name"], "edge-2");
    assert_eq!(first, token().await);
    let refused = api.send("PATCH", &tunnel(&id), Some(&json!({ "name": "taken" }))).await;
    assert_eq!(refused.refusal(), (409, 1013));
    let secret = base64::engine::general_purpose::STANDARD.encode([7; 32]);
    let reply = api
        .send("PATCH", &tunnel(&id), Some(&json!({ "tunnel_secret": secret })))
        .await;
    assert!(reply.result().get("token").is_none());
    assert_ne!(first, token().await);
    let short = api
        .send("PATCH", &tunnel(&id), Some(&json!({ "tunnel_secret": "c2hvcnQ=" })))
        .await;
    assert_eq!(short.status, 400);
    let before = token().await;
    api.sim.foreign_rotate_tunnel(&id).expect("a live tunnel");
    assert_ne!(before, token().await);
    assert_eq!(api.sim.tunnel_token(&id).map(Value::String), Some(token().await));
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_replaced_as_a_whole() {
    let api = api();
    let id = made(&api, "edge").await;
    let path = format!("{}/configurations", tunnel(&id));
    let first = api.get(&path).await.result();
    assert_eq!(
        (&first["version"], &first["config"], &first["source"]),
        (&json!(0), &Value::Null, &json!("cloudflare"))
    );
    assert_eq!(first["created_at"], api.get(&tunnel(&id)).await.result()["created_at"]);
    api.sim.advance(hours(1));
    let rule =
        json!({ "hostname": "a.example.com", "service": "http://web:80", "originRequest": { "connectTimeout": 10 } });
    let config = json!({ "config": { "ingress": [rule, { "service": "http_status:404" }] } });
    let second = api.send("PUT", &path, Some(&config)).await.result();
    assert_eq!(second["version"], 1);
    assert_ne!(second["created_at"], first["created_at"], "the time of this version");
    assert_eq!(second["config"]["ingress"], config["config"]["ingress"]);
    assert_eq!(second["config"]["warp-routing"], json!({ "enabled": false }));
    let third = api.send("PUT", &path, Some(&catch_all())).await.result();
    assert_eq!(
        (&third["version"], third["config"]["ingress"].as_array().map(Vec::len)),
        (&json!(2), Some(1))
    );
}

#[tokio::test(start_paused = true)]
async fn bad_configurations_are_refused_and_change_nothing() {
    let api = api();
    let id = made(&api, "edge").await;
    let path = format!("{}/configurations", tunnel(&id));
    let rule = |host: &str, service: &str| json!({ "hostname": host, "service": service });
    let last = || json!({ "service": "http_status:404" });
    let cases = [
        (json!([]), "doesn't contain any ingress rules\n"),
        (
            json!([rule("a.example.com", "http://web")]),
            "The last ingress rule must match all URLs",
        ),
        (json!([rule("*", "http://web"), last()]), "will match every hostname"),
        (
            json!([{ "service": "http://web" }, last()]),
            "will match every hostname",
        ),
        (json!([rule("a.*.example.com", "http://web"), last()]), "wildcard"),
        (json!([rule("a.example.com:80", "http://web"), last()]), "port"),
        (
            json!([rule("a.example.com", "web:80"), last()]),
            "scheme and a hostname",
        ),
        (
            json!([rule("a.example.com", "http://web/app"), last()]),
            "different path",
        ),
        (json!([rule("a.example.com", "http_status:99"), last()]), "status code"),
        (
            json!([{ "hostname": "a.example.com", "path": "(", "service": "http://web" }, last()]),
            "invalid regex",
        ),
        (
            json!([{ "hostname": "a.example.com", "service": "http://web", "originRequest": { "tlsTimeout": "10s" } }, last()]),
            "tlsTimeout",
        ),
        (
            json!([{ "service": "hello_world", "originRequest": { "access": { "required": true, "audTag": ["a"] } } }]),
            "TeamName",
        ),
    ];
    for (ingress, text) in cases {
        let config = json!({ "config": { "ingress": ingress } });
        let refused = api.send("PUT", &path, Some(&config)).await;
        assert_eq!(refused.refusal(), (400, 1056), "{ingress}");
        let message = refused.body["errors"][0]["message"].as_str().expect("a text");
        assert!(message.starts_with("Bad Configuration: Validation failed: ") && message.ends_with('\n'));
        assert!(message.contains(text), "{message:?} for {ingress}");
    }
    assert_eq!(api.get(&path).await.result()["version"], 0);
    let fine = json!({ "config": { "ingress": [
        rule("*.example.com", "unix:/run/app.sock"), rule("b.example.com", "tcp://db:5432"), rule("c.example.com", "bastion"), last(),
    ] } });
    assert_eq!(api.send("PUT", &path, Some(&fine)).await.result()["version"], 1);
}

#[tokio::test(start_paused = true)]
async fn connectors_that_vanish_linger_until_they_are_cleaned_up() {
    let api = api();
    let id = made(&api, "edge").await;
    let connections = format!("{}/connections", tunnel(&id));
    let running = api.sim.connect_tunnel(&id).expect("a live tunnel");
    let lost = api.sim.connect_tunnel(&id).expect("a live tunnel");
    assert!(api.sim.lose_connector(&id, &lost).expect("a live tunnel"));
    assert_eq!(api.get(&connections).await.result().as_array().map(Vec::len), Some(2));
    api.send("DELETE", &connections, None).await.result();
    let left = api.get(&connections).await.result();
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    assert_eq!(left[0]["id"], running, "one that runs comes back");
    assert_eq!(api.send("DELETE", &tunnel(&id), None).await.refusal(), (400, 1022));
    assert!(api.sim.lose_connector(&id, &running).expect("a live tunnel"));
    assert_eq!(api.send("DELETE", &tunnel(&id), None).await.refusal(), (400, 1022));
    api.sim.advance(hours(1));
    assert_eq!(api.get(&tunnel(&id)).await.result()["status"], "down");
    api.send("DELETE", &tunnel(&id), None).await.result();
}

#[tokio::test(start_paused = true)]
async fn permissions() {
    let api = api();
    let id = made(&api, "edge").await;
    let reader = api.as_token("reader");
    reader.get(&tunnels()).await.result();
    reader.get(&tunnel(&id)).await.result();
    reader.get(&format!("{}/configurations", tunnel(&id))).await.result();
    // The token runs the tunnel: it takes the right to write.
    assert_eq!(
        reader.get(&format!("{}/token", tunnel(&id))).await.refusal(),
        (403, 10_000)
    );
    assert_eq!(create(&reader, "other").await.refusal(), (403, 10_000));
    let zones_only = api.as_token("zones");
    assert_eq!(zones_only.get(&tunnels()).await.refusal(), (403, 10_000));
}

#[tokio::test(start_paused = true)]
async fn seeds_state_files_and_stale_lists() {
    let api = api();
    let config = json!({ "ingress": [{ "service": "http_status:404" }] });
    let seeded = api
        .sim
        .seed(&Seed {
            tunnels: vec![
                TunnelSeed {
                    config: config.as_object().cloned(),
                    ..TunnelSeed::named("seeded", "One")
                },
                TunnelSeed {
                    config_src: kflare_sim::ConfigSource::Local,
                    ..TunnelSeed::named("local", "One")
                },
            ],
            ..Seed::default()
        })
        .expect("a good seed");
    let [seeded, local] = seeded.tunnels.try_into().expect("two tunnels");
    let configuration = |id: &str| format!("{}/configurations", tunnel(id));
    assert_eq!(api.get(&configuration(&seeded)).await.result()["version"], 1);
    assert_eq!(api.get(&configuration(&local)).await.result()["source"], "local");
    let refused = api.send("PUT", &configuration(&local), Some(&catch_all())).await;
    assert_eq!(refused.refusal(), (501, 10_501));

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.json");
    api.sim.save(&file).expect("saved");
    let again = kflare_sim::Simulator::new(config_of_tests());
    again.load(&file).expect("loaded");
    assert_eq!(again.tunnels(ACCOUNT), api.sim.tunnels(ACCOUNT));
    assert_eq!(again.tunnel_token(&seeded), api.sim.tunnel_token(&seeded));
    let dump = api.sim.dump();
    assert_eq!(dump["tunnels"].as_array().map(Vec::len), Some(2));
    let token = api.sim.tunnel_token(&seeded).expect("a live tunnel");
    assert!(!dump.to_string().contains(&token));

    api.sim.mark("before");
    api.sim.foreign_delete_tunnel(&seeded).expect("a live tunnel");
    let fault = json!({
        "match": { "route": "/accounts/{account_id}/cfd_tunnel" }, "fault": { "kind": "stale_list", "mark": "before" },
    });
    let fault = api
        .sim
        .add_fault(serde_json::from_value(fault).expect("a fault"))
        .expect("a good fault");
    let live = format!("{}?is_deleted=false", tunnels());
    assert_eq!(api.get(&live).await.result().as_array().map(Vec::len), Some(2));
    api.sim.remove_fault(fault);
    assert_eq!(api.get(&live).await.result().as_array().map(Vec::len), Some(1));
}

fn config_of_tests() -> kflare_sim::SimConfig {
    crate::support::config()
}

/// What other people do, over HTTP.
#[tokio::test(start_paused = true)]
async fn the_control_api_connects_and_edits() {
    use tower::ServiceExt;
    let api = api();
    let id = made(&api, "edge").await;
    let control = async |method: &str, path: String, body: Value| {
        let request = http::Request::builder().method(method).uri(format!("/_sim{path}"));
        let request = request.header("content-type", "application/json");
        let request = request
            .body(axum::body::Body::from(body.to_string()))
            .expect("a request");
        answer(api.sim.service().oneshot(request).await.expect("an answer")).await
    };
    let connectors = format!("/tunnels/{id}/connectors");
    let connected = control("POST", connectors.clone(), Value::Null).await;
    let connector = id_of(&connected.body);
    let vanish = format!("{connectors}/{connector}/vanish");
    assert_eq!(control("POST", vanish, Value::Null).await.status, 204);
    let stop = format!("{connectors}/{connector}");
    assert_eq!(control("DELETE", stop.clone(), Value::Null).await.status, 204);
    assert_eq!(control("DELETE", stop, Value::Null).await.status, 404);
    let config = json!({ "ingress": [{ "service": "hello_world" }] });
    let configure = format!("/tunnels/{id}/configuration");
    assert_eq!(control("PUT", configure.clone(), config).await.status, 204);
    assert_eq!(control("PUT", configure, json!({ "ingress": [] })).await.status, 400);
    let shown = control("GET", format!("/accounts/{ACCOUNT}/tunnels"), Value::Null)
        .await
        .body;
    assert_eq!(
        (
            &shown["tunnels"][0]["name"],
            &shown["tunnels"][0]["configuration"]["version"]
        ),
        (&json!("edge"), &json!(1))
    );
    assert_eq!(
        control("DELETE", format!("/tunnels/{id}"), Value::Null).await.status,
        204
    );
    assert_eq!(control("POST", connectors, Value::Null).await.status, 404);
    assert!(api.get(&tunnel(&id)).await.result()["deleted_at"].is_string());
}
