//! KV namespaces, R2 buckets, D1 databases and queues: paths, queries, headers and bodies.

use http::Method;
use kflare_cloudflare::endpoints::{d1, kv, queues, r2};
use serde_json::{Value, json};

use crate::script::{Call, Step, client};

const BASE: &str = "https://api.example.com/client/v4/accounts/a1";

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

#[tokio::test(start_paused = true)]
async fn kv_namespaces() {
    let namespace = json!({"id": "n1", "title": "t", "supports_url_encoding": true});
    let (client, calls) = client(move |_, call| match call.method {
        Method::GET if call.uri.contains('?') => Step::json(
            200,
            &json!({"success": true, "result": [namespace],
                "result_info": {"page": 1, "per_page": 1000, "count": 1, "total_count": 1, "total_pages": 1}}),
        ),
        Method::DELETE => Step::ok(&Value::Null),
        _ => Step::ok(&namespace),
    });
    assert_eq!(kv::list(&client, "a1").await.unwrap()[0].title, "t");
    assert_eq!(kv::get(&client, "a1", "n1").await.unwrap().jurisdiction, None);
    kv::create(&client, "a1", &json!({"title": "t"})).await.unwrap();
    assert_eq!(kv::rename(&client, "a1", "n1", "u").await.unwrap().unwrap().id, "n1");
    kv::delete(&client, "a1", "n1").await.unwrap();
    let all = "/storage/kv/namespaces";
    let one = format!("{all}/n1");
    assert_eq!(
        calls.all().iter().map(sent).collect::<Vec<_>>(),
        [
            (Method::GET, format!("{all}?per_page=1000&page=1"), Value::Null),
            (Method::GET, one.clone(), Value::Null),
            (Method::POST, all.to_owned(), json!({"title": "t"})),
            (Method::PUT, one.clone(), json!({"title": "u"})),
            (Method::DELETE, one, Value::Null),
        ]
    );
}

/// Cloudflare documents that nothing comes back; the live API sends the namespace.
#[tokio::test(start_paused = true)]
async fn a_rename_without_an_answer_is_a_success() {
    let (client, _) = client(|_, _| Step::ok(&Value::Null));
    assert_eq!(kv::rename(&client, "a1", "n1", "u").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn d1_databases() {
    let row = json!({"uuid": "d1", "name": "app", "created_at": "2026-09-29T10:00:00.123Z", "version": "production",
        "file_size": 8192, "num_tables": 0, "jurisdiction": null});
    let (client, calls) = client(move |_, call| match call.method {
        Method::GET if call.uri.contains('?') => {
            let longer = json!({"uuid": "d2", "name": "app-2"});
            Step::json(
                200,
                &json!({"success": true, "result": [row, longer],
                    "result_info": {"page": 1, "per_page": 100, "count": 2, "total_count": 2}}),
            )
        }
        Method::DELETE => Step::ok(&Value::Null),
        Method::POST => {
            Step::ok(&json!({"uuid": "d1", "created_in_region": "WEUR", "read_replication": {"mode": "disabled"}}))
        }
        _ => Step::ok(&json!({"uuid": "d1", "running_in_region": "ENAM", "read_replication": {"mode": "auto"}})),
    });
    assert_eq!(d1::list(&client, "a1").await.unwrap().len(), 2);
    let found = d1::find_by_name(&client, "a1", "app").await.unwrap();
    assert_eq!((found.len(), found[0].read_replication.as_ref()), (1, None));
    let made = d1::create(&client, "a1", &json!({"name": "app"})).await.unwrap();
    assert_eq!(made.region(), Some("WEUR"));
    let got = d1::get(&client, "a1", "d1").await.unwrap();
    assert_eq!(
        (got.region(), got.read_replication.as_ref().map(|it| it.mode.as_str())),
        (Some("ENAM"), Some("auto"))
    );
    let change = json!({"read_replication": {"mode": "auto"}});
    d1::patch(&client, "a1", "d1", &change).await.unwrap();
    d1::delete(&client, "a1", "d1").await.unwrap();
    let all = "/d1/database";
    assert_eq!(
        calls.all().iter().map(sent).collect::<Vec<_>>(),
        [
            (Method::GET, format!("{all}?per_page=1000&page=1"), Value::Null),
            (Method::GET, format!("{all}?name=app&per_page=1000&page=1"), Value::Null),
            (Method::POST, all.to_owned(), json!({"name": "app"})),
            (Method::GET, format!("{all}/d1"), Value::Null),
            (Method::PATCH, format!("{all}/d1"), change),
            (Method::DELETE, format!("{all}/d1"), Value::Null),
        ]
    );
}

fn rule() -> Value {
    json!(r2::CorsRule {
        allowed: r2::Allowed {
            origins: vec!["*".to_owned()],
            methods: vec!["GET".to_owned()],
            headers: Vec::new(),
        },
        ..r2::CorsRule::default()
    })
}

#[test]
fn a_cors_rule_is_read_in_every_form() {
    let rule: r2::CorsRule = serde_json::from_value(json!({
        "id": "x", "allowed": {"origins": ["*"], "methods": null}, "exposeHeaders": null, "maxAgeSeconds": 3600.0
    }))
    .unwrap();
    assert_eq!((rule.max_age_seconds, rule.allowed.methods.len()), (Some(3600), 0));
    assert_eq!(
        json!(rule),
        json!({"allowed": {"origins": ["*"], "methods": []}, "maxAgeSeconds": 3600})
    );
}

// Field case 88.
#[tokio::test(start_paused = true)]
async fn every_call_about_buckets_names_the_jurisdiction() {
    let (client, calls) = client(
        |index, call| match (call.uri.strip_prefix(BASE).unwrap(), &call.method) {
            ("/r2/buckets?per_page=1000", _) => Step::json(
                200,
                &json!({"success": true, "result": {"buckets": [{"name": "one"}]}, "result_info": {"cursor": "next"}}),
            ),
            ("/r2/buckets?per_page=1000&cursor=next", _) => Step::json(
                200,
                &json!({"success": true, "result": {"buckets": [{"name": "two"}]}, "result_info": {"cursor": ""}}),
            ),
            (path, &Method::GET) if path.ends_with("/cors") => Step::refused(404, 10_059),
            (path, &Method::GET) if path.ends_with("/lifecycle") => {
                Step::ok(&json!({"rules": [{"id": "a", "new": 1}]}))
            }
            _ if index < 20 => Step::ok(&json!({"name": "one", "location": "WNAM", "storage_class": "Standard"})),
            _ => Step::ok(&json!({})),
        },
    );
    let buckets = r2::Buckets::new(&client, "a1", "eu");
    let names: Vec<String> = buckets.list().await.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(buckets.get("one").await.unwrap().location.as_deref(), Some("WNAM"));
    buckets.create(&json!({"name": "one"})).await.unwrap();
    buckets.set_storage_class("one", "InfrequentAccess").await.unwrap();
    assert_eq!(buckets.cors("one").await.unwrap(), []);
    buckets.put_cors("one", &[rule()]).await.unwrap();
    buckets.delete_cors("one").await.unwrap();
    let lifecycle = buckets.lifecycle("one").await.unwrap();
    buckets.put_lifecycle("one", &lifecycle).await.unwrap();
    buckets.delete("one").await.unwrap();

    let calls = calls.all();
    for call in &calls {
        assert_eq!(call.headers["cf-r2-jurisdiction"], "eu", "{} {}", call.method, call.uri);
        let changes_class = call.method == Method::PATCH;
        assert_eq!(call.headers.contains_key("cf-r2-storage-class"), changes_class);
    }
    let one = "/r2/buckets/one";
    assert_eq!(
        calls.iter().map(sent).skip(2).collect::<Vec<_>>(),
        [
            (Method::GET, one.to_owned(), Value::Null),
            (Method::POST, "/r2/buckets".to_owned(), json!({"name": "one"})),
            (Method::PATCH, one.to_owned(), Value::Null),
            (Method::GET, format!("{one}/cors"), Value::Null),
            (
                Method::PUT,
                format!("{one}/cors"),
                json!({"rules": [{"allowed": {"origins": ["*"], "methods": ["GET"]}}]})
            ),
            (Method::DELETE, format!("{one}/cors"), Value::Null),
            (Method::GET, format!("{one}/lifecycle"), Value::Null),
            (
                Method::PUT,
                format!("{one}/lifecycle"),
                json!({"rules": [{"id": "a", "new": 1}]})
            ),
            (Method::DELETE, one.to_owned(), Value::Null),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_not_there_is_no_bucket_without_rules() {
    let (client, _) = client(|_, _| Step::refused(404, 10_006));
    let buckets = r2::Buckets::new(&client, "a1", r2::DEFAULT_JURISDICTION);
    assert!(buckets.cors("one").await.unwrap_err().has_code(10_006));
}

#[tokio::test(start_paused = true)]
async fn queues() {
    // Seen live: the list of queues says null where others have empty lists.
    let row = json!({"queue_id": "q1", "queue_name": "jobs", "created_on": "2026-09-29T10:00:00.497020Z",
        "modified_on": "2026-09-29T10:00:00.497020Z", "producers_total_count": 0, "consumers_total_count": 0});
    let mut whole = row.clone();
    whole["settings"] =
        json!({"delivery_delay": 5.0, "message_retention_period": 86_400, "delivery_paused": null, "later": "x"});
    let (client, calls) = client(move |_, call| match call.method {
        Method::GET if call.uri.contains('?') => {
            let longer = json!({"queue_id": "q2", "queue_name": "jobs-2", "settings": null});
            Step::json(
                200,
                &json!({"success": true, "errors": null, "messages": null, "result": [row, longer],
                    "result_info": {"page": 1, "per_page": 100, "count": 2, "total_count": 2, "total_pages": 1}}),
            )
        }
        Method::DELETE => Step::ok(&Value::Null),
        _ => Step::ok(&whole),
    });
    let all = queues::list(&client, "a1").await.unwrap();
    assert!(all.iter().all(|queue| queue.settings.is_empty()), "{all:?}");
    assert_eq!(queues::find_by_name(&client, "a1", "jobs").await.unwrap(), all[..1]);
    let got = queues::get(&client, "a1", "q1").await.unwrap();
    assert_eq!(
        Value::Object(got.settings),
        json!({"delivery_delay": 5, "message_retention_period": 86_400, "later": "x"})
    );
    assert_eq!(
        (got.created_on.is_some(), got.modified_on),
        (true, all[0].modified_on.clone())
    );
    queues::create(&client, "a1", &json!({"queue_name": "jobs"}))
        .await
        .unwrap();
    let change = json!({"settings": {"delivery_paused": true}});
    queues::patch(&client, "a1", "q1", &change).await.unwrap();
    queues::delete(&client, "a1", "q1").await.unwrap();
    assert_eq!(
        calls.all().iter().map(sent).collect::<Vec<_>>(),
        [
            (Method::GET, "/queues?per_page=100&page=1".to_owned(), Value::Null),
            (
                Method::GET,
                "/queues?name=jobs&per_page=100&page=1".to_owned(),
                Value::Null
            ),
            (Method::GET, "/queues/q1".to_owned(), Value::Null),
            (Method::POST, "/queues".to_owned(), json!({"queue_name": "jobs"})),
            (Method::PATCH, "/queues/q1".to_owned(), change),
            (Method::DELETE, "/queues/q1".to_owned(), Value::Null),
        ]
    );
}
