//! The simulator against Cloudflare's own description of its API.

use std::collections::{BTreeMap, BTreeSet};

use kflare_sim::{Plan, modelled_routes};
use serde_json::{Value, json};

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
    assert_eq!(modelled, described);
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

/// Puts empty texts in the place of the known nulls of an answer, and notes which there were.
fn without_known_nulls(value: &mut Value, path: &str, used: &mut BTreeSet<usize>) {
    let fits = |pattern: &str, path: &str| {
        let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
        pattern.len() == path.len()
            && pattern
                .iter()
                .zip(path)
                .all(|(want, step)| *want == "*" || *want == step)
    };
    let known = |path: &str| NULLS.iter().position(|(pattern, _)| fits(pattern, path));
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
                    // The configuration of a tunnel is an object, everything else is text.
                    *value = if path.ends_with("/config") {
                        json!({})
                    } else {
                        json!("")
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

/// The answer as far as the OpenAPI file can know it.
fn known_to_openapi(mut body: Value) -> Option<Value> {
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
    answers.extend(tunnel_answers().await);
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
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text);
        let described = &validators[&(method.to_owned(), path.to_owned())];
        checked.insert((method, path));
        let mut body = answer.body.clone();
        without_known_nulls(&mut body, "", &mut used);
        let mut judge = |source: &str, validator: &jsonschema::Validator, value: &Value| {
            for error in validator.iter_errors(value) {
                wrong.push(format!(
                    "{method} {path}, {source} at {}: {error}",
                    error.instance_path()
                ));
            }
        };
        if let Some(openapi) = &described.openapi
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
    let unused: Vec<_> = (0..NULLS.len())
        .filter(|index| !used.contains(index))
        .map(|index| NULLS[index])
        .collect();
    assert_eq!(unused, [], "deviations that are none");
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
