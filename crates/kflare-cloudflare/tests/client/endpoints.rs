//! Paths, queries and bodies of the typed endpoints.

use http::Method;
use kflare_cloudflare::endpoints::{accounts, dns, lists, managed_headers, rulesets, tunnels, zones};
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
async fn rules_of_a_phase() {
    let (client, calls) = client(|_, call| match call.method {
        Method::DELETE if call.uri.ends_with("/r2") => Step::body(204, ""),
        _ => Step::ok(&json!({"id": "s1", "version": "2", "rules": [{"id": "r1", "ref": "mine"}]})),
    });
    let phase = "http_request_origin";
    let found = rulesets::entry_point(&client, "z1", phase).await.unwrap().unwrap();
    assert_eq!(found.rules[0].reference, "mine");
    let rule = json!({"ref": "mine", "action": "route", "expression": "true"});
    rulesets::create_ruleset(&client, "z1", phase, "default", std::slice::from_ref(&rule))
        .await
        .unwrap();
    rulesets::add_rule(&client, "z1", "s1", &rule).await.unwrap();
    let moved = json!({"position": rulesets::Position::Before(String::new())});
    rulesets::patch_rule(&client, "z1", "s1", "r1", &moved).await.unwrap();
    assert!(
        rulesets::delete_rule(&client, "z1", "s1", "r1")
            .await
            .unwrap()
            .is_some()
    );
    // Success without a body says that it is gone, not what is left.
    assert_eq!(rulesets::delete_rule(&client, "z1", "s1", "r2").await.unwrap(), None);
    let sent: Vec<_> = calls.all().iter().map(sent).collect();
    let base = "/zones/z1/rulesets";
    assert_eq!(
        sent,
        [
            (Method::GET, format!("{base}/phases/{phase}/entrypoint"), Value::Null),
            (
                Method::POST,
                base.to_owned(),
                json!({"name": "default", "kind": "zone", "phase": phase, "rules": [rule]})
            ),
            (Method::POST, format!("{base}/s1/rules"), rule),
            (
                Method::PATCH,
                format!("{base}/s1/rules/r1"),
                json!({"position": {"before": ""}})
            ),
            (Method::DELETE, format!("{base}/s1/rules/r1"), Value::Null),
            (Method::DELETE, format!("{base}/s1/rules/r2"), Value::Null),
        ]
    );
}

// Field case 36: no entry point is a state of the zone, not a failure.
#[tokio::test(start_paused = true)]
async fn a_missing_entry_point_is_none_and_nothing_else_is() {
    for (status, code, missing) in [
        (404, 10_003, true),
        (404, 10_001, true),
        (200, 10_003, true),
        (403, 10_001, false),
        (404, 7_003, false),
        (400, 50_002, false),
    ] {
        let (client, _) = client(move |_, _| {
            Step::json(
                status,
                &json!({"success": false, "errors": [{"code": code, "message": "could not find it"}], "messages": null}),
            )
        });
        let found = rulesets::entry_point(&client, "z1", "http_ratelimit").await;
        assert_eq!(matches!(found, Ok(None)), missing, "{status}/{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_their_items() {
    let list = json!({"id": "l1", "name": "office", "kind": "ip", "num_items": 3, "num_referencing_filters": 0,
        "created_on": "2026-01-01T08:00:00Z", "modified_on": "2026-01-10T14:00:00Z"});
    let (client, calls) = client(
        move |_, call| match (&call.method, call.uri.strip_prefix(BASE).unwrap()) {
            (&Method::GET, "/accounts/a1/rules/lists") => Step::ok(&json!([list])),
            (&Method::GET, path) if path.contains("/bulk_operations/") => {
                Step::ok(&json!({"id": "o1", "status": "failed", "error": "full"}))
            }
            (&Method::GET, path) if path.contains("cursor=") => Step::json(
                200,
                &json!({"success": true, "result": [{"id": "i3", "ip": "192.0.2.3"}], "result_info": {"cursors": {"before": "b"}}}),
            ),
            (&Method::GET, path) if path.contains("/items") => Step::json(
                200,
                &json!({"success": true, "result": [{"id": "i1", "ip": "192.0.2.1", "comment": "one"}, {"id": "i2", "ip": "192.0.2.2"}],
                "result_info": {"cursors": {"after": "c"}}}),
            ),
            (_, path) if path.ends_with("/items") => {
                Step::json(201, &json!({"success": true, "result": {"operation_id": "o1"}}))
            }
            (&Method::DELETE, _) => Step::ok(&json!({"id": "l1"})),
            _ => Step::ok(&list),
        },
    );
    let found = lists::list(&client, "a1").await.unwrap();
    assert_eq!((found[0].num_items, found[0].description.as_str()), (3, ""));
    assert!(found[0].modified_on > found[0].created_on);
    let body = json!({"name": "office", "kind": "ip"});
    lists::create(&client, "a1", &body).await.unwrap();
    assert_eq!(lists::get(&client, "a1", "l1").await.unwrap().name, "office");
    lists::describe(&client, "a1", "l1", "ours").await.unwrap();
    let items = lists::items_into(&client, "a1", "l1", |item| (item.ip, item.comment))
        .await
        .unwrap();
    assert_eq!(
        (items.len(), &items[0]),
        (3, &("192.0.2.1".to_owned(), "one".to_owned()))
    );
    let new = [lists::NewItem {
        ip: "192.0.2.4".to_owned(),
        comment: String::new(),
    }];
    assert_eq!(lists::add_items(&client, "a1", "l1", &new).await.unwrap(), "o1");
    lists::replace_items(&client, "a1", "l1", &new).await.unwrap();
    lists::remove_items(&client, "a1", "l1", &["i1".to_owned()])
        .await
        .unwrap();
    let operation = lists::operation(&client, "a1", "o1").await.unwrap();
    assert_eq!(
        (operation.status, operation.error.as_deref()),
        (lists::OperationStatus::Failed, Some("full"))
    );
    lists::delete(&client, "a1", "l1").await.unwrap();
    let sent: Vec<_> = calls.all().iter().map(sent).collect();
    let (lists, list) = ("/accounts/a1/rules/lists", "/accounts/a1/rules/lists/l1");
    let call = |method, path: String, body| (method, path, body);
    assert_eq!(
        sent,
        [
            call(Method::GET, lists.to_owned(), Value::Null),
            call(Method::POST, lists.to_owned(), body),
            call(Method::GET, list.to_owned(), Value::Null),
            call(Method::PUT, list.to_owned(), json!({"description": "ours"})),
            call(Method::GET, format!("{list}/items?per_page=500"), Value::Null),
            call(Method::GET, format!("{list}/items?per_page=500&cursor=c"), Value::Null),
            call(Method::POST, format!("{list}/items"), json!([{"ip": "192.0.2.4"}])),
            call(Method::PUT, format!("{list}/items"), json!([{"ip": "192.0.2.4"}])),
            call(
                Method::DELETE,
                format!("{list}/items"),
                json!({"items": [{"id": "i1"}]})
            ),
            call(Method::GET, format!("{lists}/bulk_operations/o1"), Value::Null),
            call(Method::DELETE, list.to_owned(), Value::Null),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_busy_list_does_not_make_the_credential_wait_and_a_real_limit_does() {
    let (client, _) = client(|n, call| match (n, &call.method) {
        (0, _) => Step::refused(429, 10_004),
        (1, _) => Step::ok(&json!([])),
        _ => Step::refused(429, 10_004).header("retry-after", "60"),
    });
    let ids = ["i1".to_owned()];
    let busy = lists::remove_items(&client, "a1", "l1", &ids).await.unwrap_err();
    assert_eq!(busy.status(), Some(429));
    assert_eq!(client.gate_closed_until(), None);
    lists::list(&client, "a1").await.unwrap();
    lists::remove_items(&client, "a1", "l1", &ids).await.unwrap_err();
    assert!(client.gate_closed_until().is_some());
}

#[tokio::test(start_paused = true)]
async fn managed_transforms() {
    let (client, calls) = client(|_, call| match call.method {
        Method::DELETE => Step::body(204, ""),
        _ => Step::ok(&json!({
            "managed_request_headers": [{"id": "a", "enabled": true, "has_conflict": true, "conflicts_with": ["b"]}],
            "managed_response_headers": null
        })),
    });
    let all = managed_headers::get(&client, "z1").await.unwrap();
    assert_eq!(all.managed_request_headers[0].conflicts_with, ["b"]);
    assert!(all.managed_response_headers.is_empty());
    let changes = managed_headers::Changes {
        managed_request_headers: vec![managed_headers::Change {
            id: "a".to_owned(),
            enabled: false,
        }],
        ..managed_headers::Changes::default()
    };
    managed_headers::patch(&client, "z1", &changes).await.unwrap();
    managed_headers::delete(&client, "z1").await.unwrap();
    let sent: Vec<_> = calls.all().iter().map(sent).collect();
    let path = || "/zones/z1/managed_headers".to_owned();
    let body = json!({"managed_request_headers": [{"id": "a", "enabled": false}], "managed_response_headers": []});
    assert_eq!(
        sent,
        [
            (Method::GET, path(), Value::Null),
            (Method::PATCH, path(), body),
            (Method::DELETE, path(), Value::Null),
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
