//! Paths, queries and bodies of the typed endpoints.

use http::Method;
use kflare_cloudflare::endpoints::{accounts, dns, tunnels, zones};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::script::{Call, Step, client};

const BASE: &str = "https://api.example.com/client/v4";

fn sent(call: &Call) -> (Method, String, Value) {
    let body = if call.body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&call.body).unwrap()
    };
    (
        call.method.clone(),
        call.uri.strip_prefix(BASE).unwrap().to_owned(),
        body,
    )
}

fn list(rows: &Value) -> Step {
    let total = rows.as_array().unwrap().len();
    Step::json(
        200,
        &json!({"success": true, "result": rows, "result_info": {"page": 1, "total_count": total}}),
    )
}

#[tokio::test(start_paused = true)]
async fn accounts_and_tokens() {
    let (client, calls) = client(|_, call| match call.uri.strip_prefix(BASE).unwrap() {
        "/accounts/a1" => Step::ok(&json!({"id": "a1", "name": "A", "type": "standard"})),
        path if path.ends_with("/tokens/verify") => Step::ok(&json!({"id": "t1", "status": "active"})),
        _ => list(&json!([{"id": "a1"}, {"id": "a2"}])),
    });
    assert_eq!(
        accounts::get(&client, "a1").await.unwrap().kind.as_deref(),
        Some("standard")
    );
    assert_eq!(accounts::list(&client).await.unwrap().len(), 2);
    assert_eq!(accounts::verify_user_token(&client).await.unwrap().status, "active");
    assert_eq!(accounts::verify_account_token(&client, "a1").await.unwrap().id, "t1");
    let paths: Vec<String> = calls.all().iter().map(|call| sent(call).1).collect();
    assert_eq!(
        paths,
        [
            "/accounts/a1",
            "/accounts?per_page=50&page=1",
            "/user/tokens/verify",
            "/accounts/a1/tokens/verify"
        ]
    );
}

// Field case 29.
#[tokio::test(start_paused = true)]
async fn finding_a_zone_leaves_other_accounts_and_names_out() {
    let (client, calls) = client(|_, _| {
        list(&json!([
            {"id": "z1", "name": "Example.com", "account": {"id": "a1"}},
            {"id": "z2", "name": "example.com", "account": {"id": "a2"}},
            {"id": "z3", "name": "sub.example.com", "account": {"id": "a1"}},
        ]))
    });
    let found = zones::find(&client, "a1", "example.com").await.unwrap();
    assert_eq!(found.iter().map(|zone| zone.id.as_str()).collect::<Vec<_>>(), ["z1"]);
    assert_eq!(zones::list(&client, "a1").await.unwrap().len(), 3);
    let paths: Vec<String> = calls.all().iter().map(|call| sent(call).1).collect();
    assert_eq!(
        paths,
        [
            "/zones?name=example.com&account.id=a1&per_page=50&page=1",
            "/zones?account.id=a1&per_page=50&page=1"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn writing_zones() {
    let (client, calls) = client(|_, _| Step::ok(&json!({"id": "z1", "name": "example.com"})));
    let body = json!({"name": "example.com", "account": {"id": "a1"}, "type": "full"});
    zones::create(&client, &body).await.unwrap();
    zones::edit(&client, "z1", &zones::ZoneEdit::Paused(true))
        .await
        .unwrap();
    zones::activation_check(&client, "z1").await.unwrap();
    zones::delete(&client, "z1").await.unwrap();
    assert_eq!(zones::get(&client, "z1").await.unwrap().name, "example.com");
    let sent: Vec<_> = calls.all().iter().map(sent).collect();
    assert_eq!(
        sent,
        [
            (Method::POST, "/zones".to_owned(), body),
            (Method::PATCH, "/zones/z1".to_owned(), json!({"paused": true})),
            (Method::PUT, "/zones/z1/activation_check".to_owned(), Value::Null),
            (Method::DELETE, "/zones/z1".to_owned(), Value::Null),
            (Method::GET, "/zones/z1".to_owned(), Value::Null),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn dns_records() {
    let record = json!({"id": "r1", "name": "www.example.com", "type": "A", "content": "192.0.2.1", "ttl": 1});
    let other = json!({"id": "r2", "name": "www.example.com.evil.example.com", "type": "A", "content": "192.0.2.2"});
    let (client, calls) = client(move |_, call| match call.method {
        Method::GET if call.uri.contains('?') => list(&json!([record, other])),
        Method::POST if call.uri.ends_with("/batch") => Step::ok(&json!({"deletes": null, "posts": [record]})),
        Method::DELETE => Step::ok(&json!({"id": "r1"})),
        _ => Step::ok(&record),
    });
    assert_eq!(dns::list(&client, "z1").await.unwrap().len(), 2);
    assert_eq!(
        dns::find_by_name(&client, "z1", "WWW.example.com").await.unwrap().len(),
        1
    );
    assert_eq!(
        dns::get(&client, "z1", "r1").await.unwrap().content.as_deref(),
        Some("192.0.2.1")
    );
    dns::create(&client, "z1", &json!({"name": "www"})).await.unwrap();
    dns::patch(&client, "z1", "r1", &json!({"ttl": 60})).await.unwrap();
    dns::delete(&client, "z1", "r1").await.unwrap();
    let batch = dns::Batch {
        posts: vec![json!({"name": "www"})],
        ..dns::Batch::default()
    };
    assert_eq!(dns::batch(&client, "z1", &batch).await.unwrap().posts[0].id, "r1");
    let sent: Vec<_> = calls.all().iter().map(sent).collect();
    let records = "/zones/z1/dns_records";
    assert_eq!(
        sent,
        [
            (Method::GET, format!("{records}?per_page=5000&page=1"), Value::Null),
            (
                Method::GET,
                format!("{records}?name=WWW.example.com&per_page=5000&page=1"),
                Value::Null
            ),
            (Method::GET, format!("{records}/r1"), Value::Null),
            (Method::POST, records.to_owned(), json!({"name": "www"})),
            (Method::PATCH, format!("{records}/r1"), json!({"ttl": 60})),
            (Method::DELETE, format!("{records}/r1"), Value::Null),
            (
                Method::POST,
                format!("{records}/batch"),
                json!({"posts": [{"name": "www"}]})
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn tunnels_that_are_deleted_or_of_another_name_are_left_out() {
    let (client, calls) = client(|_, _| {
        list(&json!([
            {"id": "t1", "name": "edge", "deleted_at": null},
            {"id": "t2", "name": "edge", "deleted_at": "2026-09-29T11:00:00.000000Z"},
            {"id": "t3", "name": "edge-2"},
        ]))
    });
    let found = tunnels::find(&client, "a1", "edge").await.unwrap();
    assert_eq!(found.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["t1"]);
    assert_eq!(tunnels::list(&client, "a1").await.unwrap().len(), 2);
    let paths: Vec<String> = calls.all().iter().map(|call| sent(call).1).collect();
    assert_eq!(
        paths,
        [
            "/accounts/a1/cfd_tunnel?is_deleted=false&name=edge&per_page=1000&page=1",
            "/accounts/a1/cfd_tunnel?is_deleted=false&per_page=1000&page=1"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_its_token_and_its_configuration() {
    let (client, calls) = client(|_, call| {
        if call.uri.ends_with("/token") {
            Step::ok(&json!("what a connector needs"))
        } else if call.uri.ends_with("/connections") {
            Step::ok(&Value::Null)
        } else {
            Step::ok(&json!({"id": "t1", "tunnel_id": "t1", "name": "edge", "version": 3, "config": {"ingress": []}}))
        }
    });
    assert_eq!(tunnels::create(&client, "a1", "edge").await.unwrap().id, "t1");
    assert_eq!(tunnels::get(&client, "a1", "t1").await.unwrap().name, "edge");
    tunnels::rename(&client, "a1", "t1", "edge-2").await.unwrap();
    let token = tunnels::token(&client, "a1", "t1").await.unwrap();
    assert_eq!(token.expose_secret(), "what a connector needs");
    assert!(!format!("{token:?}").contains("connector"));
    assert_eq!(tunnels::configuration(&client, "a1", "t1").await.unwrap().version, 3);
    let config = json!({"ingress": [{"service": "http_status:404"}]});
    tunnels::put_configuration(&client, "a1", "t1", &config).await.unwrap();
    tunnels::clean_up_connections(&client, "a1", "t1").await.unwrap();
    tunnels::delete(&client, "a1", "t1").await.unwrap();
    let tunnel = "/accounts/a1/cfd_tunnel/t1";
    let sent: Vec<_> = calls.all().iter().map(sent).collect();
    assert_eq!(
        sent,
        [
            (
                Method::POST,
                "/accounts/a1/cfd_tunnel".to_owned(),
                json!({"name": "edge", "config_src": "cloudflare"})
            ),
            (Method::GET, tunnel.to_owned(), Value::Null),
            (Method::PATCH, tunnel.to_owned(), json!({"name": "edge-2"})),
            (Method::GET, format!("{tunnel}/token"), Value::Null),
            (Method::GET, format!("{tunnel}/configurations"), Value::Null),
            (
                Method::PUT,
                format!("{tunnel}/configurations"),
                json!({"config": config})
            ),
            (Method::DELETE, format!("{tunnel}/connections"), Value::Null),
            (Method::DELETE, tunnel.to_owned(), Value::Null),
        ]
    );
}
