//! The simulator against Cloudflare's own description of its API.

use std::collections::{BTreeMap, BTreeSet};

use kflare_sim::{Plan, modelled_routes};
use serde_json::{Value, json};

use crate::rulesets_bodies;
use crate::support::*;

/// Texts that are null in answers although the description does not allow it, and why. `*` stands for one step of the path.
/// Where it is not null, the field has to fit.
const NULLS: &[(&str, &str)] = &[
    ("/result/comment", "a record without a comment"),
    ("/result/*/comment", "the same in lists"),
    ("/result/*/*/comment", "the same in batches"),
    ("/result/owner/id", "zones in answers that users published"),
    ("/result/*/owner/id", "the same in lists"),
    (
        "/result/tenant/id",
        "zones of accounts that nobody resells, in answers that users published",
    ),
    ("/result/*/tenant/id", "the same in lists"),
    ("/result/tenant/name", "the same"),
    ("/result/*/tenant/name", "the same in lists"),
    ("/result/tenant_unit/id", "the same"),
    ("/result/*/tenant_unit/id", "the same in lists"),
    (
        "/result/settings/abuse_contact_email",
        "accounts without such an address",
    ),
    ("/result/*/settings/abuse_contact_email", "the same in lists"),
    ("/result/conns_active_at", "tunnels without a connection, seen live"),
    ("/result/*/conns_active_at", "the same in lists"),
    ("/result/conns_inactive_at", "tunnels with a connection, seen live"),
    ("/result/deleted_at", "tunnels that live, seen live"),
    ("/result/config", "a tunnel that was never configured, seen live"),
];

/// Routes whose answers the OpenAPI file describes as something that nobody has seen, and why.
const WRONG_IN_OPENAPI: &[(&str, &str, &str)] = &[
    (
        "GET",
        "/accounts/{account_id}/d1/database",
        "a list that is to be an object",
    ),
    (
        "DELETE",
        "/accounts/{account_id}/d1/database/{database_id}",
        "null that is to be an object",
    ),
    (
        "DELETE",
        "/accounts/{account_id}/queues/{queue_id}",
        "null that is to be a list or an object",
    ),
    (
        "GET",
        "/accounts/{account_id}/r2/buckets",
        "an object that is to be a list",
    ),
];

/// Lists that are null in the same way.
const NULL_LISTS: &[(&str, &str)] = &[
    ("/result/tags", "an upload without tags (seen live)"),
    ("/result/*/tags", "the same in lists"),
    ("/result/tail_consumers", "an upload without tail consumers (seen live)"),
    ("/result/*/tail_consumers", "the same in lists"),
    ("/result/*/routes", "the list of Workers (seen live)"),
];
/// Fields that are absent although the description demands them: where, which, and why.
const ABSENT: &[(&str, &str, &str)] = &[(
    "/result/config/ingress/*",
    "hostname",
    "the rule of a tunnel that matches everything, seen live",
)];

/// Types of records that the OpenAPI file of 2024 does not have; the schemas of the newer SDK do.
const TYPES_UNKNOWN_TO_OPENAPI: [&str; 1] = ["OPENPGPKEY"];

fn description() -> Value {
    serde_json::from_str(include_str!("../../api/description.json")).expect("JSON")
}

#[test]
fn every_modelled_route_is_described_and_published() {
    let description = description();
    let described: BTreeSet<(String, String)> = description["routes"]
        .as_array()
        .expect("routes")
        .iter()
        .map(|route| (text(&route["method"]), text(&route["path"])))
        .collect();
    let modelled: BTreeSet<(String, String)> = modelled_routes()
        .into_iter()
        .map(|(method, path)| (method.to_owned(), path.to_owned()))
        .collect();
    assert_eq!(
        modelled, described,
        "the routes modelled, and those in description.json: MODELLED in hack/sim-api-description.py, which writes that file"
    );
    let published = include_str!("../../api/routes.tsv");
    for (method, path) in &modelled {
        assert!(
            published.lines().any(|line| line == format!("{method}\t{path}")),
            "{method} {path}"
        );
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// The schemas of one route.
struct Described {
    openapi: Option<jsonschema::Validator>,
    sdk: Option<jsonschema::Validator>,
    sdk_list: bool,
}

fn validators() -> BTreeMap<(String, String), Described> {
    let description = description();
    let compile = |schema: Option<&Value>| {
        schema.map(|schema| {
            let root = json!({ "allOf": [schema], "$defs": description["$defs"] });
            jsonschema::draft202012::new(&root).expect("a schema")
        })
    };
    let routes = description["routes"].as_array().expect("routes");
    routes
        .iter()
        .map(|route| {
            let described = Described {
                openapi: compile(route.get("openapi")),
                sdk: compile(route.get("sdk")),
                sdk_list: route["sdk_list"] == true,
            };
            ((text(&route["method"]), text(&route["path"])), described)
        })
        .collect()
}

/// Puts empty texts and lists in the place of the known nulls of an answer, and notes which there were.
fn without_known_nulls(value: &mut Value, path: &str, used: &mut BTreeSet<usize>) {
    let fits = |pattern: &str, path: &str| {
        let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
        pattern.len() == path.len()
            && pattern
                .iter()
                .zip(path)
                .all(|(want, step)| *want == "*" || *want == step)
    };
    let known = |path: &str| {
        let all = NULLS.iter().chain(NULL_LISTS);
        all.into_iter().position(|(pattern, _)| fits(pattern, path))
    };
    match value {
        Value::Object(fields) => {
            for (pattern, field, _) in ABSENT {
                if fits(pattern, path) {
                    fields.entry(*field).or_insert_with(|| json!(""));
                }
            }
            for (key, value) in fields {
                let path = format!("{path}/{key}");
                if value.is_null()
                    && let Some(index) = known(&path)
                {
                    used.insert(index);
                    // The configuration of a tunnel is an object, everything else is text or a list.
                    *value = match () {
                        () if path.ends_with("/config") => json!({}),
                        () if index < NULLS.len() => json!(""),
                        () => json!([]),
                    };
                }
                without_known_nulls(value, &path, used);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                without_known_nulls(item, &format!("{path}/{index}"), used);
            }
        }
        _ => {}
    }
}

/// Types of bindings that the OpenAPI file of 2024 has.
const BINDINGS_KNOWN_TO_OPENAPI: [&str; 3] = ["kv_namespace", "r2_bucket", "d1"];

/// The Workers in a result.
fn workers(result: &mut Value) -> impl Iterator<Item = &mut Value> {
    let entries = match result {
        Value::Array(list) => list.iter_mut(),
        one => std::slice::from_mut(one).iter_mut(),
    };
    entries.filter(|entry| entry.get("usage_model").is_some())
}

/// The answer as far as the OpenAPI file can know it.
fn known_to_openapi(mut body: Value) -> Option<Value> {
    for worker in workers(&mut body["result"]) {
        // Newer than the file: the only usage model, and all types of bindings but these.
        if worker["usage_model"] == "standard" {
            worker["usage_model"] = json!("bundled");
        }
        if let Some(bindings) = worker.get_mut("bindings").and_then(Value::as_array_mut) {
            bindings.retain(|binding| BINDINGS_KNOWN_TO_OPENAPI.iter().any(|kind| binding["type"] == *kind));
        }
    }
    let is_unknown = |record: &Value| TYPES_UNKNOWN_TO_OPENAPI.iter().any(|kind| record["type"] == *kind);
    match &mut body["result"] {
        Value::Array(records) => records.retain(|record| !is_unknown(record)),
        record if is_unknown(record) => return None,
        _ => {}
    }
    Some(body)
}

/// Makes every modelled call, on records of every type.
async fn all_answers(api: &Api) -> Vec<(&'static str, &'static str, Answer)> {
    const RECORDS: &str = "/zones/{zone_id}/dns_records";
    const RECORD: &str = "/zones/{zone_id}/dns_records/{dns_record_id}";
    let mut answers = Vec::new();
    let records = format!("/zones/{ZONE}/dns_records");
    for body in bodies() {
        let made = api.create(body.clone()).await;
        let path = format!("{records}/{}", id_of(&made.body["result"]));
        answers.push(("POST", RECORDS, made));
        answers.push(("GET", RECORD, api.get(&path).await));
        answers.push(("PUT", RECORD, api.send("PUT", &path, Some(&body)).await));
        let comment = json!({ "comment": "why", "tags": ["a:b"] });
        answers.push(("PATCH", RECORD, api.send("PATCH", &path, Some(&comment)).await));
    }
    answers.push(("GET", RECORDS, api.list("").await));
    answers.push((
        "GET",
        "/zones/{zone_id}/dns_records/export",
        api.get(&format!("{records}/export")).await,
    ));
    let all = api.list("").await.result();
    let deletes: Vec<_> = all
        .as_array()
        .expect("a list")
        .iter()
        .skip(1)
        .map(|record| json!({ "id": record["id"] }))
        .collect();
    let batch = json!({ "deletes": deletes, "posts": [address("again", "192.0.2.1")] });
    answers.push(("POST", "/zones/{zone_id}/dns_records/batch", api.batch(batch).await));
    let list = api.list("").await;
    let left = id_of(&list.body["result"][0]);
    answers.push(("GET", RECORDS, list));
    answers.push((
        "DELETE",
        RECORD,
        api.send("DELETE", &format!("{records}/{left}"), None).await,
    ));
    answers.extend(rulesets_bodies::all_answers(api).await);
    answers.extend(crate::ip_lists::answers(api).await);
    answers.extend(crate::managed_headers::answers(api).await);
    answers.extend(worker_answers(api).await);
    let zone = format!("/zones/{ZONE}");
    answers.push(("GET", "/zones", api.get("/zones").await));
    let new = json!({ "name": "new.example", "account": { "id": ACCOUNT } });
    answers.push(("POST", "/zones", api.send("POST", "/zones", Some(&new)).await));
    answers.push(("GET", "/zones/{zone_id}", api.get(&zone).await));
    let cheaper = json!({ "plan": { "id": "free" } });
    answers.push((
        "PATCH",
        "/zones/{zone_id}",
        api.send("PATCH", &zone, Some(&cheaper)).await,
    ));
    let check = api.send("PUT", &format!("{zone}/activation_check"), None).await;
    answers.push(("PUT", "/zones/{zone_id}/activation_check", check));
    answers.push(("DELETE", "/zones/{zone_id}", api.send("DELETE", &zone, None).await));
    answers.push(("GET", "/accounts", api.get("/accounts").await));
    answers.push((
        "GET",
        "/accounts/{account_id}",
        api.get(&format!("/accounts/{ACCOUNT}")).await,
    ));
    answers.push(("GET", "/user/tokens/verify", api.get("/user/tokens/verify").await));
    let own = kflare_sim::TokenSeed::of_account(&token("own"), "One", vec![]);
    api.sim
        .seed(&kflare_sim::Seed {
            tokens: vec![own],
            ..Default::default()
        })
        .expect("a good seed");
    let verified = api
        .as_token("own")
        .get(&format!("/accounts/{ACCOUNT}/tokens/verify"))
        .await;
    answers.push(("GET", "/accounts/{account_id}/tokens/verify", verified));
    answers.extend(answers_of_stores(api).await);
    answers.extend(tunnel_answers().await);
    answers
}

async fn answers_of_stores(api: &Api) -> Vec<(&'static str, &'static str, Answer)> {
    const KV: &str = "/accounts/{account_id}/storage/kv/namespaces";
    const KV_ONE: &str = "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}";
    const D1: &str = "/accounts/{account_id}/d1/database";
    const D1_ONE: &str = "/accounts/{account_id}/d1/database/{database_id}";
    const QUEUES: &str = "/accounts/{account_id}/queues";
    const QUEUE: &str = "/accounts/{account_id}/queues/{queue_id}";
    const R2: &str = "/accounts/{account_id}/r2/buckets";
    const R2_ONE: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}";
    const CORS: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/cors";
    const LIFECYCLE: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/lifecycle";
    let rights = grants(&[
        (kflare_sim::Area::Kv, true),
        (kflare_sim::Area::R2, true),
        (kflare_sim::Area::D1, true),
        (kflare_sim::Area::Queues, true),
    ]);
    let own = kflare_sim::TokenSeed::of_account(&token("stores"), "One", rights);
    api.sim
        .seed(&kflare_sim::Seed {
            tokens: vec![own],
            ..Default::default()
        })
        .expect("a good seed");
    let api = api.as_token("stores");
    let cors = json!({ "rules": [{ "id": "x", "allowed": { "methods": ["GET"], "origins": ["*"], "headers": ["a"] },
        "exposeHeaders": ["etag"], "maxAgeSeconds": 60 }] });
    // The rule that a new bucket has lacks the prefix that is described.
    let lifecycle = json!({ "rules": [{ "id": "x", "enabled": true, "conditions": { "prefix": "a/" },
        "deleteObjectsTransition": { "condition": { "type": "Age", "maxAge": 60 } } }] });
    let replication = json!({ "read_replication": { "mode": "auto" } });
    let class = [("cf-r2-storage-class", "InfrequentAccess")];
    let title = json!({ "title": "cache" });
    let path = |template: &str, id: &str| {
        let path = template.replace("{account_id}", ACCOUNT);
        ["{namespace_id}", "{database_id}", "{queue_id}", "{bucket_name}"]
            .iter()
            .fold(path, |path, parameter| path.replace(parameter, id))
    };
    let mut answers = Vec::new();
    let made = api.send("POST", &path(KV, ""), Some(&title)).await;
    let namespace = id_of(&made.body["result"]);
    answers.push(("POST", KV, made));
    let name = json!({ "name": "app" });
    let made = api.send("POST", &path(D1, ""), Some(&name)).await;
    let database = text(&made.body["result"]["uuid"]);
    answers.push(("POST", D1, made));
    let jobs = json!({ "queue_name": "jobs", "jurisdiction": "eu", "settings": { "delivery_delay": 5 } });
    let made = api.send("POST", &path(QUEUES, ""), Some(&jobs)).await;
    let queue = text(&made.body["result"]["queue_id"]);
    answers.push(("POST", QUEUES, made));
    let paused = json!({ "settings": { "delivery_paused": true } });
    answers.push(("POST", R2, api.send("POST", &path(R2, ""), Some(&name)).await));
    answers.push((
        "PATCH",
        R2_ONE,
        api.send_with("PATCH", &path(R2_ONE, "app"), &class, None).await,
    ));
    for (method, template, id, body) in [
        ("GET", KV, "", None),
        ("GET", KV_ONE, namespace.as_str(), None),
        ("PUT", KV_ONE, &namespace, Some(&title)),
        ("DELETE", KV_ONE, &namespace, None),
        ("GET", D1, "", None),
        ("GET", D1_ONE, &database, None),
        ("PUT", D1_ONE, &database, Some(&replication)),
        ("PATCH", D1_ONE, &database, Some(&replication)),
        ("DELETE", D1_ONE, &database, None),
        ("GET", QUEUES, "", None),
        ("PUT", QUEUE, &queue, Some(&jobs)),
        ("PATCH", QUEUE, &queue, Some(&paused)),
        ("GET", QUEUE, &queue, None),
        ("DELETE", QUEUE, &queue, None),
        ("GET", R2, "", None),
        ("GET", R2_ONE, "app", None),
        ("PUT", CORS, "app", Some(&cors)),
        ("GET", CORS, "app", None),
        ("DELETE", CORS, "app", None),
        ("PUT", LIFECYCLE, "app", Some(&lifecycle)),
        ("GET", LIFECYCLE, "app", None),
        ("DELETE", R2_ONE, "app", None),
    ] {
        answers.push((method, template, api.send(method, &path(template, id), body).await));
    }
    answers
}

/// The same for Workers and their routes.
async fn worker_answers(api: &Api) -> Vec<(&'static str, &'static str, Answer)> {
    use crate::workers::{SCRIPTS, bound, patch_settings};
    const SCRIPT: &str = "/accounts/{account_id}/workers/scripts/{script_name}";
    const ROUTES: &str = "/zones/{zone_id}/workers/routes";
    const ROUTE: &str = "/zones/{zone_id}/workers/routes/{route_id}";
    let web = format!("{SCRIPTS}/web");
    let bindings = json!([
        { "name": "TEXT", "type": "plain_text", "text": "b" },
        { "name": "KEY", "type": "secret_text", "text": "hush" },
        { "name": "CONF", "type": "json", "json": { "a": 1 } },
        { "name": "AI", "type": "ai" },
        { "name": "VERSION", "type": "version_metadata" },
    ]);
    let mut answers = vec![("PUT", SCRIPT, bound(api, "web", bindings).await)];
    let observed =
        json!({ "observability": { "enabled": true, "logs": { "enabled": true, "invocation_logs": true } } });
    let patched = patch_settings(api, "web", &observed).await;
    answers.push((
        "PATCH",
        "/accounts/{account_id}/workers/scripts/{script_name}/settings",
        patched,
    ));
    let crons = json!([{ "cron": "0 * * * *" }]);
    let (on, secret) = (
        json!({ "enabled": true }),
        json!({ "name": "NEW", "type": "secret_text", "text": "hush" }),
    );
    for (method, part, template, body) in [
        ("GET", "", SCRIPT, None),
        (
            "GET",
            "/content/v2",
            "/accounts/{account_id}/workers/scripts/{script_name}/content/v2",
            None,
        ),
        (
            "GET",
            "/settings",
            "/accounts/{account_id}/workers/scripts/{script_name}/settings",
            None,
        ),
        (
            "PUT",
            "/schedules",
            "/accounts/{account_id}/workers/scripts/{script_name}/schedules",
            Some(&crons),
        ),
        (
            "GET",
            "/schedules",
            "/accounts/{account_id}/workers/scripts/{script_name}/schedules",
            None,
        ),
        (
            "POST",
            "/subdomain",
            "/accounts/{account_id}/workers/scripts/{script_name}/subdomain",
            Some(&on),
        ),
        (
            "GET",
            "/subdomain",
            "/accounts/{account_id}/workers/scripts/{script_name}/subdomain",
            None,
        ),
        (
            "DELETE",
            "/subdomain",
            "/accounts/{account_id}/workers/scripts/{script_name}/subdomain",
            None,
        ),
        (
            "PUT",
            "/secrets",
            "/accounts/{account_id}/workers/scripts/{script_name}/secrets",
            Some(&secret),
        ),
        (
            "GET",
            "/secrets",
            "/accounts/{account_id}/workers/scripts/{script_name}/secrets",
            None,
        ),
        (
            "GET",
            "/secrets/NEW",
            "/accounts/{account_id}/workers/scripts/{script_name}/secrets/{secret_name}",
            None,
        ),
        (
            "DELETE",
            "/secrets/NEW",
            "/accounts/{account_id}/workers/scripts/{script_name}/secrets/{secret_name}",
            None,
        ),
    ] {
        answers.push((method, template, api.send(method, &format!("{web}{part}"), body).await));
    }
    answers.push(("GET", "/accounts/{account_id}/workers/scripts", api.get(SCRIPTS).await));
    let routes = format!("/zones/{ZONE}/workers/routes");
    let body = json!({ "pattern": "example.com/*", "script": "web" });
    let made = api.send("POST", &routes, Some(&body)).await;
    let route = format!("{routes}/{}", id_of(&made.body["result"]));
    answers.push(("POST", ROUTES, made));
    answers.push(("GET", ROUTES, api.get(&routes).await));
    answers.push(("GET", ROUTE, api.get(&route).await));
    answers.push(("PUT", ROUTE, api.send("PUT", &route, Some(&body)).await));
    answers.push(("DELETE", ROUTE, api.send("DELETE", &route, None).await));
    answers.push(("DELETE", SCRIPT, api.send("DELETE", &web, None).await));
    answers
}

/// Makes every call on tunnels: one that is connected, one that is deleted.
async fn tunnel_answers() -> Vec<(&'static str, &'static str, Answer)> {
    const TUNNELS: &str = "/accounts/{account_id}/cfd_tunnel";
    const TUNNEL: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}";
    const TOKEN: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/token";
    const CONFIGURATIONS: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";
    const CONNECTIONS: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/connections";
    let api = crate::tunnels::api();
    let tunnels = crate::tunnels::tunnels();
    let mut answers = Vec::new();
    let made = api
        .send(
            "POST",
            &tunnels,
            Some(&json!({ "name": "edge", "config_src": "cloudflare" })),
        )
        .await;
    let id = id_of(&made.body["result"]);
    let tunnel = format!("{tunnels}/{id}");
    answers.push(("POST", TUNNELS, made));
    let configurations = format!("{tunnel}/configurations");
    answers.push(("GET", CONFIGURATIONS, api.get(&configurations).await));
    let config = json!({ "config": { "ingress": [
        { "hostname": "a.example.com", "path": "/a", "service": "http://web", "originRequest": {
            "connectTimeout": 10, "noTLSVerify": true, "access": { "required": true, "teamName": "t", "audTag": ["a"] },
        } },
        { "service": "http_status:404" },
    ] } });
    answers.push((
        "PUT",
        CONFIGURATIONS,
        api.send("PUT", &configurations, Some(&config)).await,
    ));
    answers.push(("GET", CONFIGURATIONS, api.get(&configurations).await));
    let connector = api.sim.connect_tunnel(&id).expect("a live tunnel");
    let connections = format!("{tunnel}/connections");
    answers.push(("GET", CONNECTIONS, api.get(&connections).await));
    answers.push(("GET", TUNNEL, api.get(&tunnel).await));
    let renamed = json!({ "name": "edge-2" });
    answers.push(("PATCH", TUNNEL, api.send("PATCH", &tunnel, Some(&renamed)).await));
    api.sim.disconnect_tunnel(&id, &connector).expect("a live tunnel");
    answers.push(("DELETE", CONNECTIONS, api.send("DELETE", &connections, None).await));
    answers.push(("GET", TOKEN, api.get(&format!("{tunnel}/token")).await));
    answers.push(("DELETE", TUNNEL, api.send("DELETE", &tunnel, None).await));
    answers.push(("GET", TUNNEL, api.get(&tunnel).await));
    answers.push(("GET", TUNNELS, api.get(&tunnels).await));
    answers
}

#[tokio::test(start_paused = true)]
async fn every_answer_fits_the_description() {
    let api = api_on(Plan::Pro);
    let validators = validators();
    let mut checked = BTreeSet::new();
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for (method, path, answer) in all_answers(&api).await {
        checked.insert((method, path));
        assert!(
            matches!(answer.status, 200 | 201 | 204),
            "{method} {path}: {}",
            answer.text
        );
        let described = &validators[&(method.to_owned(), path.to_owned())];
        let mut body = answer.body.clone();
        without_known_nulls(&mut body, "", &mut used);
        for worker in workers(&mut body["result"]) {
            // No placement is an empty object (seen live), which no schema has.
            if worker.get("placement") == Some(&json!({})) {
                worker["placement"] = json!({ "mode": "smart" });
            }
        }
        let mut judge = |source: &str, validator: &jsonschema::Validator, value: &Value| {
            for error in validator.iter_errors(value) {
                wrong.push(format!(
                    "{method} {path}, {source} at {}: {error}",
                    error.instance_path()
                ));
            }
        };
        let is_wrong = WRONG_IN_OPENAPI
            .iter()
            .any(|(of, template, _)| (*of, *template) == (method, path));
        if let Some(openapi) = described.openapi.as_ref().filter(|_| is_wrong) {
            assert!(!openapi.is_valid(&body), "{method} {path} fits after all");
        } else if let Some(openapi) = &described.openapi
            && let Some(body) = known_to_openapi(body.clone())
        {
            judge("openapi", openapi, &body);
        }
        if let Some(sdk) = &described.sdk {
            match &body["result"] {
                Value::Array(list) if described.sdk_list => list.iter().for_each(|entry| judge("sdk", sdk, entry)),
                result => judge("sdk", sdk, result),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let modelled: BTreeSet<_> = modelled_routes().into_iter().collect();
    assert_eq!(checked, modelled, "every route was called");
    let known = NULLS.iter().chain(NULL_LISTS).enumerate();
    let unused: Vec<_> = known.filter(|(index, _)| !used.contains(index)).collect();
    assert_eq!(unused, [], "deviations that are none");
}

/// The schemas tie the parameters of a rule to its action.
#[tokio::test(start_paused = true)]
async fn the_schemas_of_rules_refuse_what_is_wrong() {
    let api = api_on(Plan::Enterprise);
    let validators = validators();
    let mut wrong = 0;
    for (method, path, answer) in rulesets_bodies::all_answers(&api).await {
        let Some(sdk) = &validators[&(method.to_owned(), path.to_owned())].sdk else {
            continue;
        };
        for field in [
            "id",
            "ref",
            "version",
            "action",
            "expression",
            "enabled",
            "action_parameters",
        ] {
            let mut result = answer.body["result"].clone();
            if let Some(value) = result.pointer_mut(&format!("/rules/0/{field}")) {
                *value = json!(7);
                assert!(!sdk.is_valid(&result), "{method} {path} {field}");
                wrong += 1;
            }
        }
    }
    assert!(wrong > 100, "{wrong}");
}

/// The check above would be worth nothing if the schemas accepted anything.
#[tokio::test(start_paused = true)]
async fn the_schemas_refuse_what_is_wrong() {
    let api = api_on(Plan::Pro);
    let record = api.create(address("www", "192.0.2.1")).await;
    let zone = api.get(&format!("/zones/{ZONE}")).await;
    let validators = validators();
    let cases = [
        (
            ("POST", "/zones/{zone_id}/dns_records"),
            record,
            ["ttl", "id", "type", "created_on"],
        ),
        (
            ("GET", "/zones/{zone_id}"),
            zone,
            ["name", "id", "account", "name_servers"],
        ),
    ];
    for ((method, path), answer, fields) in cases {
        let described = &validators[&(method.to_owned(), path.to_owned())];
        for field in fields {
            let mut body = answer.body.clone();
            without_known_nulls(&mut body, "", &mut BTreeSet::new());
            body["result"][field] = json!(false);
            let sdk = described.sdk.as_ref().expect("described");
            let openapi = described.openapi.as_ref().expect("described");
            assert!(!sdk.is_valid(&body["result"]), "sdk {path} {field}");
            assert!(!openapi.is_valid(&body), "openapi {path} {field}");
        }
    }
}
