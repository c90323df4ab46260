//! Workers: uploads, what is read back, bindings, schedules, secrets, deletion.

use axum::body::Body;
use http::Request;
use kflare_sim::{
    BindableSeed, BindingOrder, ForeignCall, ModuleSeed, Plan, Quirks, Seed, WorkerRouteSeed, WorkerSeed,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::*;

pub const SCRIPTS: &str = "/accounts/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/workers/scripts";
const ESM: &str = "application/javascript+module";
const HELLO: &str = "export default { async fetch() { return new Response('hello') } }";

/// The body of a form, as other clients write it.
fn form(parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, content_type, content) in parts {
        let head = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {content_type}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    body
}

async fn send_form(api: &Api, method: &str, path: &str, parts: &[(&str, &str, &[u8])]) -> Answer {
    let mut request: Request<Body> = api.request(method, path, None);
    let content_type = "multipart/form-data; boundary=edge".parse().expect("a header");
    request.headers_mut().insert("content-type", content_type);
    *request.body_mut() = Body::from(form(parts));
    answer(api.sim.router().oneshot(request).await.expect("infallible")).await
}

/// Uploads modules with this metadata.
pub async fn upload(api: &Api, name: &str, metadata: &Value, modules: &[(&str, &str, &[u8])]) -> Answer {
    let metadata = metadata.to_string();
    let mut parts = vec![("metadata", "application/json", metadata.as_bytes())];
    parts.extend_from_slice(modules);
    send_form(api, "PUT", &format!("{SCRIPTS}/{name}"), &parts).await
}

/// Uploads a Worker of one module with these bindings.
pub async fn bound(api: &Api, name: &str, bindings: Value) -> Answer {
    let metadata = json!({ "main_module": "index.js", "compatibility_date": "2026-01-01", "bindings": bindings });
    upload(api, name, &metadata, &[("index.js", ESM, HELLO.as_bytes())]).await
}

/// Changes settings.
pub async fn patch_settings(api: &Api, name: &str, settings: &Value) -> Answer {
    let settings = settings.to_string();
    let parts = [("settings", "application/json", settings.as_bytes())];
    send_form(api, "PATCH", &format!("{SCRIPTS}/{name}/settings"), &parts).await
}

async fn settings(api: &Api, name: &str) -> Value {
    api.get(&format!("{SCRIPTS}/{name}/settings")).await.result()
}

fn bindable(api: &Api, kind: &str, id: &str) {
    let bindable = vec![BindableSeed {
        account: ACCOUNT.into(),
        kind: kind.into(),
        id: id.into(),
    }];
    let seed = Seed {
        bindable,
        ..Seed::default()
    };
    api.sim.seed(&seed).expect("a good seed");
}

#[tokio::test(start_paused = true)]
async fn an_upload_makes_a_worker_and_another_one_keeps_its_identity() {
    let api = api_on(Plan::Free);
    let first = bound(&api, "web", json!([])).await;
    assert_eq!(
        first.header("ratelimit-policy"),
        Some("\"workers_script_upload\";q=180000;w=300")
    );
    let first = first.result();
    assert_eq!(first["id"], "web");
    assert_eq!(first["handlers"], json!(["fetch"]));
    assert_eq!(
        (&first["tags"], &first["tail_consumers"], &first["entry_point"]),
        (&Value::Null, &Value::Null, &json!("index.js"))
    );
    assert_eq!(first["created_on"], first["modified_on"]);
    assert!(first.get("bindings").is_none() && first.get("observability").is_none());

    let code = b"export default { async fetch() { return new Response('again') } }";
    let metadata = json!({ "main_module": "index.js", "observability": { "enabled": true, "logs": { "enabled": true, "invocation_logs": true } } });
    let second = upload(&api, "web", &metadata, &[("index.js", ESM, code)])
        .await
        .result();
    assert_eq!(
        (&second["tag"], &second["created_on"]),
        (&first["tag"], &first["created_on"])
    );
    for changed in ["etag", "modified_on", "deployment_id"] {
        assert_ne!(second[changed], first[changed], "{changed}");
    }
    assert_eq!(second["observability"]["logs"]["persist"], Value::Null);
    assert_eq!(second["compatibility_date"], "2021-11-02");

    let list = api.get(SCRIPTS).await;
    assert!(list.body.get("result_info").is_none());
    let listed = list.result()[0].clone();
    assert_eq!(
        (&listed["deployment_id"], &listed["routes"], &listed["modified_on"]),
        (&json!(""), &Value::Null, &second["modified_on"])
    );
    assert_eq!(listed["observability"]["logs"]["persist"], true);
    assert!(listed.get("bindings").is_none() && listed.get("entry_point").is_none());
}

#[tokio::test(start_paused = true)]
async fn modules_of_every_type_come_back_as_they_were_sent() {
    let api = api_on(Plan::Free);
    let wasm = b"\0asm\x01\0\0\0";
    let main = b"import m from './a.wasm';\nimport t from './note.txt';\nexport default { fetch() {} }";
    let metadata = json!({ "main_module": "index.js" });
    let modules: [(&str, &str, &[u8]); 6] = [
        ("index.js", ESM, main),
        ("a.wasm", "application/wasm", wasm),
        ("note.txt", "text/plain", b"--edge\n"),
        ("data.bin", "application/octet-stream", b"\xff\xfe\r\n"),
        ("old.cjs", "application/javascript", b"module.exports = 1"),
        ("index.js.map", "application/source-map", b"{}"),
    ];
    upload(&api, "web", &metadata, &modules).await.result();
    let stored = api.sim.worker("One", "web").expect("there");
    assert_eq!(stored["syntax"], json!({ "modules": "index.js" }));
    assert_eq!(stored["modules"][3]["body"], json!({ "base64": "//4NCg==" }));
    assert_eq!(stored["modules"][2]["body"], json!({ "text": "--edge\n" }));

    let path = format!("/client/v4{SCRIPTS}/web/content/v2");
    let request = Request::get(path).header("authorization", format!("Bearer {}", token("all")));
    let response = api
        .sim
        .router()
        .oneshot(request.body(Body::empty()).expect("a request"))
        .await
        .expect("infallible");
    let content_type = response.headers()["content-type"].to_str().expect("text").to_owned();
    let boundary = content_type.split_once("boundary=").expect("a form").1.to_owned();
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .expect("whole")
        .to_bytes();
    for (name, content_type, content) in modules {
        let heading = format!("name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {content_type}\r\n\r\n");
        let part = [heading.as_bytes(), content, format!("\r\n--{boundary}").as_bytes()].concat();
        assert!(body.windows(part.len()).any(|window| window == part), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn service_workers_are_one_script() {
    let api = api_on(Plan::Free);
    let code = b"addEventListener('fetch', event => {})";
    let script = [("script", "application/javascript", code.as_slice())];
    let made = upload(&api, "old", &json!({ "body_part": "script" }), &script)
        .await
        .result();
    assert_eq!(
        (&made["has_modules"], &made["handlers"]),
        (&json!(false), &json!(["fetch"]))
    );
    let text = api.get(&format!("{SCRIPTS}/old")).await;
    assert_eq!(text.header("content-type"), Some("application/javascript"));
    assert_eq!(text.text.as_bytes(), code);
    // The bare text is taken too.
    let mut request = api.request("PUT", &format!("{SCRIPTS}/bare"), None);
    *request.body_mut() = Body::from(code.as_slice());
    let content_type = "application/javascript".parse().expect("a header");
    request.headers_mut().insert("content-type", content_type);
    answer(api.sim.router().oneshot(request).await.expect("infallible"))
        .await
        .result();
}

/// Name, content type and content of a module.
type Part<'a> = (&'a str, &'a str, &'a [u8]);
/// Name and metadata of an upload, its modules, and how it is refused.
type Case<'a> = (&'a str, Value, Vec<Part<'a>>, (u16, i64));

#[tokio::test(start_paused = true)]
async fn code_that_cannot_start_is_refused() {
    let api = api_on(Plan::Free);
    let index = ("index.js", ESM, HELLO.as_bytes());
    let main = json!({ "main_module": "index.js" });
    let cases: Vec<Case<'_>> = vec![
        ("UPPER", main.clone(), vec![index], (400, 10_016)),
        ("web", json!({}), vec![index], (400, 10_021)),
        (
            "web",
            json!({ "main_module": "index.js", "body_part": "x" }),
            vec![index],
            (400, 10_021),
        ),
        ("web", json!({ "main_module": "other.js" }), vec![index], (400, 10_021)),
        ("web", json!({ "body_part": "index.js" }), vec![index], (400, 10_021)),
        (
            "web",
            main.clone(),
            vec![("index.js", "application/javascript", HELLO.as_bytes())],
            (400, 10_021),
        ),
        (
            "web",
            main.clone(),
            vec![("index.js", ESM, b"import './x.js'\nexport default { fetch() {} }")],
            (400, 10_021),
        ),
        (
            "web",
            main.clone(),
            vec![("index.js", ESM, b"export const x = 1")],
            (400, 10_068),
        ),
        ("web", main.clone(), vec![index, ("x", "image/png", b"")], (400, 10_021)),
    ];
    for (name, metadata, modules, refusal) in cases {
        let answer = upload(&api, name, &metadata, &modules).await;
        assert_eq!(answer.refusal(), refusal, "{name} {metadata}: {}", answer.text);
    }
    let without_form = api.send("PUT", &format!("{SCRIPTS}/web"), Some(&main)).await;
    assert_eq!(without_form.refusal(), (400, 10_001));
    assert!(api.sim.workers(ACCOUNT).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_bound_has_to_exist() {
    let api = api_on(Plan::Free);
    let cases = [
        (
            json!({ "type": "queue", "queue_name": "jobs" }),
            11_000,
            ("queue", "jobs"),
        ),
        (
            json!({ "type": "hyperdrive", "id": "h1" }),
            10_157,
            ("hyperdrive", "h1"),
        ),
        (
            json!({ "type": "vpc_service", "service_id": "v1" }),
            10_180,
            ("vpc_service", "v1"),
        ),
        (
            json!({ "type": "vectorize", "index_name": "i1" }),
            10_159,
            ("vectorize", "i1"),
        ),
    ];
    for (mut binding, code, (kind, id)) in cases {
        binding["name"] = json!("IT");
        let refused = bound(&api, "web", json!([binding])).await;
        assert_eq!(refused.refusal(), (400, code), "{binding}");
        bindable(&api, kind, id);
        bound(&api, "web", json!([binding])).await.result();
    }
    let service = json!([{ "name": "API", "type": "service", "service": "api" }]);
    assert_eq!(bound(&api, "web", service.clone()).await.refusal(), (400, 10_144));
    bound(&api, "api", json!([])).await.result();
    bound(&api, "web", service).await.result();

    for (bindings, code) in [
        (json!([{ "type": "plain_text", "text": "x" }]), 10_052),
        (json!([{ "name": "A", "type": "plain_text" }]), 10_021),
        (json!([{ "name": "A", "type": "secret_text" }]), 10_021),
        (json!([{ "name": "A", "type": "queue" }]), 10_021),
        (
            json!([{ "name": "A", "type": "ai" }, { "name": "A", "type": "ai" }]),
            10_021,
        ),
        (json!([{ "name": "A", "type": "wasm_module", "part": "gone" }]), 10_021),
        (
            json!([{ "name": "A", "type": "durable_object_namespace", "class_name": "Room" }]),
            10_061,
        ),
    ] {
        assert_eq!(
            bound(&api, "web", bindings.clone()).await.refusal(),
            (400, code),
            "{bindings}"
        );
    }
    let unknown = bound(&api, "web", json!([{ "name": "A", "type": "no_such_type" }])).await;
    assert_eq!(unknown.refusal(), (501, 10_501));
}

#[tokio::test(start_paused = true)]
async fn durable_objects_need_a_migration() {
    let api = api_on(Plan::Free);
    let code = b"export class Room {}\nexport default { fetch() {} }";
    let modules = [("index.js", ESM, code.as_slice())];
    let with = |migrations: Value| {
        json!({
            "main_module": "index.js", "migrations": migrations,
            "bindings": [{ "name": "ROOM", "type": "durable_object_namespace", "class_name": "Room" }],
        })
    };
    upload(
        &api,
        "rooms",
        &with(json!({ "new_tag": "v1", "new_sqlite_classes": ["Room"] })),
        &modules,
    )
    .await
    .result();
    assert_eq!(api.sim.workers(ACCOUNT)[0]["migration_tag"], "v1");
    let other =
        json!([{ "name": "R", "type": "durable_object_namespace", "class_name": "Room", "script_name": "rooms" }]);
    bound(&api, "web", other).await.result();
    let again = upload(
        &api,
        "rooms",
        &with(json!({ "old_tag": "v0", "new_tag": "v2" })),
        &modules,
    )
    .await;
    assert_eq!(again.refusal(), (412, 10_079));
    let renamed = |from: &str| json!({ "old_tag": "v1", "new_tag": "v2", "steps": [{ "renamed_classes": [{ "from": from, "to": "Hall" }] }] });
    let unknown = upload(&api, "rooms", &with(renamed("Lobby")), &modules).await;
    assert_eq!(unknown.refusal(), (400, 10_074));
    let still_bound = upload(&api, "rooms", &with(renamed("Room")), &modules).await;
    assert_eq!(still_bound.refusal(), (400, 10_061));
    assert_eq!(api.sim.workers(ACCOUNT)[0]["migration_tag"], "v1");
}

#[tokio::test(start_paused = true)]
async fn settings_read_back_without_secrets_and_in_any_order() {
    let api = api_on(Plan::Free);
    let bindings = json!([
        { "name": "TEXT", "type": "plain_text", "text": "b" },
        { "name": "KEY", "type": "secret_text", "text": "hush" },
        { "name": "CONF", "type": "json", "json": { "a": 1 } },
    ]);
    bound(&api, "web", bindings).await.result();
    let read = settings(&api, "web").await;
    let secret = json!({ "name": "KEY", "type": "secret_text" });
    assert_eq!(read["bindings"][1], secret);
    assert_eq!(names(&read["bindings"]), ["TEXT", "KEY", "CONF"]);
    assert_eq!(
        (
            &read["placement"],
            &read["tags"],
            &read["tail_consumers"],
            &read["compatibility_flags"]
        ),
        (&json!({}), &json!([]), &json!([]), &json!([]))
    );
    for (order, expected) in [
        (BindingOrder::Sorted, ["CONF", "KEY", "TEXT"]),
        (BindingOrder::Reversed, ["TEXT", "KEY", "CONF"]),
    ] {
        api.sim.set_quirks(Quirks {
            worker_bindings: order,
            ..Quirks::default()
        });
        assert_eq!(names(&settings(&api, "web").await["bindings"]), expected);
    }
    let missing = api.get(&format!("{SCRIPTS}/gone/settings")).await;
    assert_eq!(missing.refusal(), (404, 10_007));
    assert!(!api.sim.dump().to_string().contains("hush"));
}

#[tokio::test(start_paused = true)]
async fn settings_are_merged_and_make_a_version() {
    let api = api_on(Plan::Free);
    let bindings = json!([{ "name": "KEY", "type": "secret_text", "text": "hush" }, { "name": "A", "type": "plain_text", "text": "a" }]);
    let before = bound(&api, "web", bindings).await.result();
    let change = json!({ "logpush": true, "bindings": [{ "name": "KEY", "type": "inherit" }, { "name": "B", "type": "plain_text", "text": "b" }] });
    let after = patch_settings(&api, "web", &change).await.result();
    assert_eq!(after["logpush"], true);
    assert_eq!(names(&after["bindings"]), ["KEY", "B"]);
    assert_eq!(after["compatibility_date"], "2026-01-01", "what is not named stays");
    let listed = api.get(SCRIPTS).await.result();
    assert_eq!(listed[0]["etag"], before["etag"], "the code did not change");
    assert_ne!(listed[0]["modified_on"], before["modified_on"]);
    assert_eq!(
        api.sim.worker(ACCOUNT, "web").expect("there")["bindings"][0]["text"],
        "hush"
    );
    let json = api
        .send("PATCH", &format!("{SCRIPTS}/web/settings"), Some(&change))
        .await;
    assert_eq!(json.refusal(), (400, 10_001));
}

#[tokio::test(start_paused = true)]
async fn an_upload_drops_what_it_neither_sends_nor_keeps() {
    let api = api_on(Plan::Free);
    bound(
        &api,
        "web",
        json!([{ "name": "OLD", "type": "plain_text", "text": "a" }]),
    )
    .await
    .result();
    let secret = json!({ "name": "KEY", "type": "secret_text", "text": "by hand" });
    let put = api
        .send("PUT", &format!("{SCRIPTS}/web/secrets"), Some(&secret))
        .await
        .result();
    assert_eq!(put, json!({ "name": "KEY", "type": "secret_text" }));
    let modules = [("index.js", ESM, HELLO.as_bytes())];
    let keeping = json!({ "main_module": "index.js", "keep_bindings": ["secret_text", "secret_key"] });
    upload(&api, "web", &keeping, &modules).await.result();
    assert_eq!(names(&settings(&api, "web").await["bindings"]), ["KEY"]);
    assert_eq!(
        api.sim.worker(ACCOUNT, "web").expect("there")["bindings"][0]["text"],
        "by hand"
    );

    let inheriting = json!({ "main_module": "index.js", "bindings": [{ "name": "NEW", "type": "inherit", "old_name": "KEY" }, { "name": "X", "type": "inherit" }] });
    upload(&api, "web", &inheriting, &modules).await.result();
    assert_eq!(
        names(&settings(&api, "web").await["bindings"]),
        ["NEW"],
        "others are left out"
    );
    let metadata = inheriting.to_string();
    let parts = [("metadata", "application/json", metadata.as_bytes()), modules[0]];
    let strict = send_form(&api, "PUT", &format!("{SCRIPTS}/web?bindings_inherit=strict"), &parts).await;
    assert_eq!(strict.refusal(), (400, 10_057));

    bound(&api, "web", json!([])).await.result();
    assert_eq!(settings(&api, "web").await["bindings"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn secrets_are_listed_and_deleted_by_name() {
    let api = api_on(Plan::Free);
    bound(
        &api,
        "web",
        json!([{ "name": "KEY", "type": "secret_text", "text": "hush" }]),
    )
    .await
    .result();
    let secrets = format!("{SCRIPTS}/web/secrets");
    assert_eq!(names(&api.get(&secrets).await.result()), ["KEY"]);
    assert_eq!(api.get(&format!("{secrets}/KEY")).await.result()["type"], "secret_text");
    api.send("DELETE", &format!("{secrets}/KEY"), None).await.result();
    assert_eq!(api.get(&format!("{secrets}/KEY")).await.refusal(), (404, 10_056));
    assert_eq!(
        api.send("DELETE", &format!("{secrets}/KEY"), None).await.refusal(),
        (404, 10_056)
    );
}

#[tokio::test(start_paused = true)]
async fn schedules_and_the_subdomain_outlive_uploads() {
    let api = api_on(Plan::Free);
    bound(&api, "web", json!([])).await.result();
    let (schedules, subdomain) = (format!("{SCRIPTS}/web/schedules"), format!("{SCRIPTS}/web/subdomain"));
    assert_eq!(api.get(&schedules).await.result(), json!({ "schedules": [] }));
    let crons = json!([{ "cron": "*/5 * * * *" }, { "cron": "0 3 * * MON" }]);
    let set = api.send("PUT", &schedules, Some(&crons)).await.result();
    assert_eq!(set["schedules"][1]["cron"], "0 3 * * MON");
    assert_eq!(
        api.get(&subdomain).await.result(),
        json!({ "enabled": false, "previews_enabled": false })
    );
    let on = api
        .send("POST", &subdomain, Some(&json!({ "enabled": true })))
        .await
        .result();
    assert_eq!(on, json!({ "enabled": true, "previews_enabled": true }));

    bound(&api, "web", json!([])).await.result();
    assert_eq!(
        api.get(&schedules).await.result()["schedules"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(api.get(&subdomain).await.result()["enabled"], true);
    api.send("DELETE", &subdomain, None).await.result();
    assert_eq!(api.get(&subdomain).await.result()["enabled"], false);

    let wrong = json!([{ "cron": "every day" }]);
    assert_eq!(api.send("PUT", &schedules, Some(&wrong)).await.refusal(), (400, 10_100));
    let six: Vec<Value> = (0..6).map(|n| json!({ "cron": format!("{n} * * * *") })).collect();
    assert_eq!(
        api.send("PUT", &schedules, Some(&json!(six))).await.refusal(),
        (403, 10_072)
    );
    api.send("PUT", &schedules, Some(&json!([]))).await.result();
    assert_eq!(api.get(&schedules).await.result(), json!({ "schedules": [] }));
}

#[tokio::test(start_paused = true)]
async fn deleting_takes_routes_along_but_not_what_others_call() {
    let api = api_on(Plan::Free);
    let made = bound(&api, "api", json!([])).await.result();
    bound(
        &api,
        "web",
        json!([{ "name": "API", "type": "service", "service": "api" }]),
    )
    .await
    .result();
    api.sim
        .seed(&Seed {
            worker_routes: vec![
                WorkerRouteSeed {
                    zone: "example.com".into(),
                    pattern: "example.com/api/*".into(),
                    script: Some("api".into()),
                },
                WorkerRouteSeed {
                    zone: "example.com".into(),
                    pattern: "example.com/*".into(),
                    script: Some("web".into()),
                },
            ],
            ..Seed::default()
        })
        .expect("a good seed");
    let path = format!("{SCRIPTS}/api");
    assert_eq!(api.send("DELETE", &path, None).await.refusal(), (400, 10_142));
    let gone = api.send("DELETE", &format!("{path}?force=true"), None).await.result();
    assert_eq!(gone, json!({ "id": made["tag"] }));
    assert_eq!(api.send("DELETE", &path, None).await.refusal(), (404, 10_007));
    let routes = api.get(&format!("/zones/{ZONE}/workers/routes")).await.result();
    assert_eq!(routes.as_array().map(Vec::len), Some(1));
    assert_eq!(routes[0]["script"], "web");
}

#[tokio::test(start_paused = true)]
async fn a_free_account_has_room_for_a_hundred() {
    let api = api_on(Plan::Free);
    let workers = (0..100)
        .map(|n| WorkerSeed::of_module("One", &format!("w{n}"), HELLO))
        .collect();
    let seeded = api
        .sim
        .seed(&Seed {
            workers,
            ..Seed::default()
        })
        .expect("a good seed");
    assert_eq!(seeded.workers.len(), 100);
    assert_eq!(bound(&api, "one-more", json!([])).await.refusal(), (403, 10_037));
    bound(&api, "w7", json!([])).await.result();
}

#[tokio::test(start_paused = true)]
async fn workers_are_kept_in_the_state_file() {
    let api = api_on(Plan::Free);
    let mut worker = WorkerSeed::of_module("One", "web", HELLO);
    worker.metadata.insert(
        "bindings".into(),
        json!([{ "name": "KEY", "type": "secret_text", "text": "hush" }]),
    );
    worker.modules.push(ModuleSeed {
        name: "a.wasm".into(),
        content_type: "application/wasm".into(),
        base64: Some("AGFzbQEAAAD/".into()),
        text: None,
    });
    let seed = Seed {
        workers: vec![worker],
        ..Seed::default()
    };
    api.sim.seed(&seed).expect("a good seed");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    api.sim.save(&path).expect("saved");
    let copy = kflare_sim::Simulator::new(config());
    assert!(copy.load(&path).expect("loaded"));
    assert_eq!(copy.worker("One", "web"), api.sim.worker("One", "web"));
    assert_eq!(copy.dump(), api.sim.dump());
}

#[tokio::test(start_paused = true)]
async fn lists_can_be_stale() {
    let api = api_on(Plan::Free);
    bound(&api, "old", json!([])).await.result();
    api.sim.mark("before");
    bound(&api, "new", json!([])).await.result();
    api.send("DELETE", &format!("{SCRIPTS}/old"), None).await.result();
    let fault = json!({ "match": { "route": "/accounts/{account_id}/workers/scripts" }, "times": 1, "fault": { "kind": "stale_list", "mark": "before" } });
    api.sim
        .add_fault(serde_json::from_value(fault).expect("a fault"))
        .expect("armed");
    let ids = |list: &Value| list.as_array().expect("a list").iter().map(id_of).collect::<Vec<_>>();
    assert_eq!(ids(&api.get(SCRIPTS).await.result()), ["old"]);
    assert_eq!(ids(&api.get(SCRIPTS).await.result()), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn reading_and_writing_need_their_permissions() {
    use kflare_sim::{Area, TokenSeed};
    let api = api_on(Plan::Free);
    let tokens = vec![
        TokenSeed::of_user(
            &token("reader"),
            grants(&[(Area::WorkersScripts, false), (Area::WorkersRoutes, false)]),
        ),
        TokenSeed::of_user(&token("dns"), grants(&[(Area::Dns, true)])),
    ];
    api.sim
        .seed(&Seed {
            tokens,
            ..Seed::default()
        })
        .expect("a good seed");
    let reader = api.as_token("reader");
    reader.get(SCRIPTS).await.result();
    assert_eq!(bound(&reader, "web", json!([])).await.refusal(), (403, 10_000));
    assert_eq!(api.as_token("dns").get(SCRIPTS).await.refusal(), (403, 10_000));
    let routes = format!("/zones/{ZONE}/workers/routes");
    reader.get(&routes).await.result();
    let route = json!({ "pattern": "example.com/*" });
    assert_eq!(
        reader.send("POST", &routes, Some(&route)).await.refusal(),
        (403, 10_000)
    );
    assert_eq!(api.as_token("dns").get(&routes).await.refusal(), (403, 10_000));
}

#[tokio::test(start_paused = true)]
async fn somebody_else_needs_no_token() {
    let api = api_on(Plan::Free);
    bound(&api, "web", json!([])).await.result();
    let calls = api.sim.calls().len();
    let secret = json!({ "name": "KEY", "type": "secret_text", "text": "by hand" }).to_string();
    let path = format!("{SCRIPTS}/web/secrets");
    api.sim
        .foreign_call(&ForeignCall::new("PUT", &path).raw("application/json", secret))
        .expect("taken");
    assert_eq!(names(&settings(&api, "web").await["bindings"]), ["KEY"]);
    let gone = api
        .sim
        .foreign_call(&ForeignCall::new("DELETE", format!("{SCRIPTS}/none")));
    assert_eq!(gone.map_err(|refusal| refusal.root_code()), Err(10_007));
    assert_eq!(api.sim.calls().len(), calls + 1, "only the read is logged");
}
