//! KV namespaces, R2 buckets, D1 databases.

use kflare_sim::{
    AccountSeed, Area, BucketSeed, DatabaseSeed, Fault, FaultMatch, FaultSpec, ForeignCall, KvNamespaceSeed,
    LifecycleForm, LocationForm, Plan, Quirks, Seed, Simulator, Subscription, TokenSeed, Totals,
};
use serde_json::{Value, json};

use crate::support::*;

fn kv(rest: &str) -> String {
    format!("/accounts/{ACCOUNT}/storage/kv/namespaces{rest}")
}

fn r2(rest: &str) -> String {
    format!("/accounts/{ACCOUNT}/r2/buckets{rest}")
}

fn d1(rest: &str) -> String {
    format!("/accounts/{ACCOUNT}/d1/database{rest}")
}

/// A token `stores` that may do everything here, `reader` that may look, and a second account.
fn stores() -> Api {
    let api = api_on(Plan::Free);
    let rights = |write| grants(&[(Area::Kv, write), (Area::R2, write), (Area::D1, write)]);
    api.sim
        .seed(&Seed {
            accounts: vec![AccountSeed {
                id: Some(OTHER_ACCOUNT.into()),
                r2: Subscription::Disabled,
                d1_quota: Some(1),
                ..AccountSeed::named("Two")
            }],
            tokens: vec![
                TokenSeed::of_account(&token("stores"), "One", rights(true)),
                TokenSeed::of_account(&token("reader"), "One", rights(false)),
                TokenSeed::of_account(&token("two"), "Two", rights(true)),
                TokenSeed::of_account(&token("zones"), "One", grants(&[(Area::Zone, true)])),
            ],
            ..Seed::default()
        })
        .expect("a good seed");
    api.as_token("stores")
}

async fn add_namespace(api: &Api, title: &str) -> Answer {
    api.send("POST", &kv(""), Some(&json!({ "title": title }))).await
}

fn column(list: &Value, member: &str) -> Vec<String> {
    let rows = list.as_array().expect("a list").iter();
    rows.map(|row| row[member].as_str().expect("text").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_lives() {
    let api = stores();
    let made = add_namespace(&api, "cache").await;
    assert_eq!(made.header("ratelimit"), None, "KV names no policy");
    let made = made.result();
    let id = id_of(&made);
    assert_eq!(
        made,
        json!({ "id": id, "title": "cache", "supports_url_encoding": true })
    );
    let again = add_namespace(&api, "cache").await;
    assert_eq!(again.refusal(), (400, 10014));
    let other = id_of(&add_namespace(&api, "other").await.result());
    let path = kv(&format!("/{id}"));
    let rename = |title: &str| json!({ "title": title });
    assert_eq!(
        api.send("PUT", &path, Some(&rename("other"))).await.refusal(),
        (400, 10014)
    );
    let renamed = api.send("PUT", &path, Some(&rename("new"))).await.result();
    assert_eq!((&renamed["id"], &renamed["title"]), (&json!(id), &json!("new")));
    assert_eq!(
        api.send("PUT", &path, Some(&rename("new"))).await.result(),
        renamed,
        "its own title is not taken"
    );
    assert_eq!(api.get(&path).await.result(), renamed);
    assert_eq!(api.send("DELETE", &path, None).await.result(), Value::Null);
    let (read, deleted) = (api.get(&path).await, api.send("DELETE", &path, None).await);
    assert_eq!((read.refusal(), deleted.refusal()), ((404, 10013), (404, 10013)));
    assert_ne!(
        read.body["errors"][0]["message"], deleted.body["errors"][0]["message"],
        "one code, two texts"
    );
    assert_eq!(
        column(&Value::Array(api.sim.kv_namespaces()), "id"),
        [other],
        "the other is left"
    );
    assert_eq!(add_namespace(&api, "").await.refusal(), (400, 10019));
    assert_eq!(api.get(&kv("/none")).await.refusal(), (404, 7003));
}

#[tokio::test(start_paused = true)]
async fn namespaces_come_by_id_page_by_page() {
    let api = stores();
    for number in 0..25 {
        add_namespace(&api, &format!("n{number:02}")).await.result();
    }
    let first = api.get(&kv("")).await;
    assert_eq!(
        first.body["result_info"],
        json!({ "page": 1, "per_page": 20, "count": 20, "total_count": 25, "total_pages": 2 })
    );
    let mut ids = column(&first.result(), "id");
    ids.extend(column(&api.get(&kv("?page=2")).await.result(), "id"));
    assert!(ids.is_sorted() && ids.len() == 25, "{ids:?}");
    let titles = column(
        &api.get(&kv("?order=title&direction=desc&per_page=1000")).await.result(),
        "title",
    );
    assert!(titles.is_sorted_by(|a, b| a > b) && titles.len() == 25, "{titles:?}");
}

async fn add_bucket(api: &Api, name: &str, jurisdiction: &str) -> Answer {
    let headers = [("cf-r2-jurisdiction", jurisdiction)];
    api.send_with("POST", &r2(""), &headers, Some(&json!({ "name": name })))
        .await
}

#[tokio::test(start_paused = true)]
async fn a_bucket_lives() {
    let api = stores();
    let body = json!({ "name": "assets", "locationHint": "WEUR", "storageClass": "InfrequentAccess" });
    let made = api.send("POST", &r2(""), Some(&body)).await.result();
    let shown = json!({
        "name": "assets", "creation_date": "2026-11-29T12:00:00.000Z", "location": "weur",
        "storage_class": "InfrequentAccess", "jurisdiction": "default",
    });
    assert_eq!(made, shown);
    assert_eq!(api.get(&r2("/assets")).await.result(), shown);
    assert_eq!(add_bucket(&api, "assets", "default").await.refusal(), (409, 10004));
    for (body, refusal) in [
        (json!({ "name": "Assets" }), (400, 10005)),
        (json!({ "name": "ab" }), (400, 10005)),
        (json!({ "name": "assets-" }), (400, 10005)),
        (json!({ "name": "media", "storageClass": "Glacier" }), (400, 10062)),
        (json!({ "name": "media", "locationHint": "mars" }), (400, 10040)),
    ] {
        assert_eq!(
            api.send("POST", &r2(""), Some(&body)).await.refusal(),
            refusal,
            "{body}"
        );
    }
    let class = [("cf-r2-storage-class", "Standard")];
    let changed = api.send_with("PATCH", &r2("/assets"), &class, None).await.result();
    assert_eq!(changed["storage_class"], "Standard");
    assert_eq!(
        api.send("PATCH", &r2("/assets"), None).await.refusal(),
        (400, 10062),
        "the class is a header"
    );
    api.sim.set_quirks(Quirks {
        r2_location: LocationForm::Upper,
        ..Quirks::default()
    });
    assert_eq!(api.get(&r2("/assets")).await.result()["location"], "WEUR");
    assert_eq!(api.send("DELETE", &r2("/assets"), None).await.result(), json!({}));
    assert_eq!(api.get(&r2("/assets")).await.refusal(), (404, 10006));
    assert_eq!(api.send("DELETE", &r2("/assets"), None).await.refusal(), (404, 10006));
}

// Field case 88.
#[tokio::test(start_paused = true)]
async fn a_bucket_is_not_seen_from_another_jurisdiction() {
    let api = stores();
    let eu = [("cf-r2-jurisdiction", "eu")];
    let made = add_bucket(&api, "data", "eu").await.result();
    assert_eq!(
        (&made["jurisdiction"], &made["location"]),
        (&json!("eu"), &json!("weur"))
    );
    let cors = json!({ "rules": [{ "allowed": { "methods": ["GET"], "origins": ["*"] } }] });
    for (method, path, body) in [
        ("GET", r2("/data"), None),
        ("PATCH", r2("/data"), None),
        ("GET", r2("/data/cors"), None),
        ("PUT", r2("/data/cors"), Some(&cors)),
        ("DELETE", r2("/data/cors"), None),
        ("GET", r2("/data/lifecycle"), None),
        ("PUT", r2("/data/lifecycle"), Some(&cors)),
        ("DELETE", r2("/data"), None),
    ] {
        assert_eq!(
            api.send(method, &path, body).await.refusal(),
            (404, 10006),
            "{method} {path}"
        );
    }
    assert_eq!(api.get(&r2("")).await.result(), json!({ "buckets": [] }));
    let listed = api.send_with("GET", &r2(""), &eu, None).await.result();
    assert_eq!(column(&listed["buckets"], "name"), ["data"]);
    add_bucket(&api, "data", "default").await.result();
    api.send_with("DELETE", &r2("/data"), &eu, None).await.result();
    assert_eq!(
        api.sim.r2_buckets()[0]["jurisdiction"],
        "default",
        "the other one is left"
    );
    let wrong = [("cf-r2-jurisdiction", "mars")];
    assert_eq!(
        api.send_with("GET", &r2(""), &wrong, None).await.refusal(),
        (400, 10040)
    );
}

#[tokio::test(start_paused = true)]
async fn buckets_come_by_name_with_a_cursor() {
    let api = stores();
    for number in (0..25).rev() {
        add_bucket(&api, &format!("b{number:02}"), "default").await.result();
    }
    let first = api.get(&r2("?per_page=10")).await;
    assert_eq!(first.body["result_info"]["per_page"], 10);
    assert_eq!(
        first.body["result"]["buckets"][0],
        json!({ "name": "b00", "creation_date": "2026-11-29T12:00:00.024Z" }),
        "lists say no more"
    );
    let mut names = Vec::new();
    let mut answer = first;
    loop {
        names.extend(column(&answer.body["result"]["buckets"], "name"));
        let Some(cursor) = answer.body["result_info"]["cursor"].as_str() else {
            break;
        };
        answer = api.get(&r2(&format!("?per_page=10&cursor={cursor}"))).await;
    }
    assert_eq!(names, (0..25).map(|it| format!("b{it:02}")).collect::<Vec<_>>());
    let some = api
        .get(&r2("?name_contains=2&direction=desc&start_after=b21"))
        .await
        .result();
    assert_eq!(column(&some["buckets"], "name"), ["b20", "b12", "b02"]);
    assert_eq!(api.get(&r2("?cursor=x")).await.refusal(), (400, 10040));
}

// Field case 90.
#[tokio::test(start_paused = true)]
async fn a_bucket_with_objects_stays() {
    let api = stores();
    add_bucket(&api, "full", "eu").await.result();
    api.sim.set_objects(ACCOUNT, "eu", "full", 2500).expect("the bucket");
    let eu = [("cf-r2-jurisdiction", "eu")];
    assert_eq!(
        api.send_with("DELETE", &r2("/full"), &eu, None).await.refusal(),
        (409, 10008)
    );
    assert_eq!(api.sim.r2_buckets()[0]["objects"], 2500);
    api.sim.set_objects(ACCOUNT, "eu", "full", 0).expect("the bucket");
    api.send_with("DELETE", &r2("/full"), &eu, None).await.result();
    assert!(api.sim.set_objects(ACCOUNT, "eu", "full", 1).is_err());
}

// Field case 89.
#[tokio::test(start_paused = true)]
async fn cors_rules_are_none_before_they_are_set() {
    let api = stores();
    add_bucket(&api, "assets", "default").await.result();
    let path = r2("/assets/cors");
    assert_eq!(api.get(&path).await.refusal(), (404, 10059));
    let rules = json!({ "rules": [{
        "id": "map", "maxAgeSeconds": 3600, "exposeHeaders": ["etag"],
        "allowed": { "methods": ["GET", "HEAD"], "origins": ["https://map.example.com"], "headers": ["range"] },
    }] });
    assert_eq!(api.send("PUT", &path, Some(&rules)).await.result(), json!({}));
    assert_eq!(api.get(&path).await.result(), rules);
    for wrong in [
        json!({ "rules": [{ "AllowedOrigins": ["*"], "AllowedMethods": ["GET"] }] }),
        json!({ "rules": [{ "allowed": { "methods": [], "origins": ["*"] } }] }),
        json!({ "rules": [{ "allowed": { "methods": ["PATCH"], "origins": ["*"] } }] }),
        json!({ "rules": [{ "maxAgeSeconds": 86401, "allowed": { "methods": ["GET"], "origins": ["*"] } }] }),
        json!({}),
    ] {
        assert_eq!(
            api.send("PUT", &path, Some(&wrong)).await.refusal(),
            (400, 10040),
            "{wrong}"
        );
    }
    assert_eq!(api.get(&path).await.result(), rules);
    assert_eq!(api.send("DELETE", &path, None).await.result(), json!({}));
    assert_eq!(api.get(&path).await.refusal(), (404, 10059));
}

// Field case 92.
#[tokio::test(start_paused = true)]
async fn lifecycle_rules_are_replaced_as_a_whole() {
    let api = stores();
    add_bucket(&api, "assets", "default").await.result();
    let path = r2("/assets/lifecycle");
    let default = api.get(&path).await.result()["rules"][0].clone();
    assert_eq!(
        (&default["id"], &default["conditions"]),
        (&json!("Default Multipart Abort Rule"), &json!({}))
    );
    let rule = json!({
        "id": "logs", "enabled": true, "conditions": { "prefix": "logs/" },
        "deleteObjectsTransition": { "condition": { "type": "Age", "maxAge": 2_592_000 } },
        "storageClassTransitions": [
            { "condition": { "type": "Date", "date": "2027-01-01T00:00:00Z" }, "storageClass": "InfrequentAccess" },
        ],
    });
    let both = json!({ "rules": [default, rule] });
    api.send("PUT", &path, Some(&both)).await.result();
    assert_eq!(api.get(&path).await.result(), both);
    api.sim.set_quirks(Quirks {
        r2_lifecycle: LifecycleForm::Padded,
        ..Quirks::default()
    });
    let padded = api.get(&path).await.result();
    assert_eq!(padded["rules"][1]["abortMultipartUploadsTransition"], json!({}));
    assert_eq!(padded["rules"][0]["storageClassTransitions"], json!([]));
    for wrong in [
        json!({ "rules": [rule, rule] }),
        json!({ "rules": [{ "id": "x", "conditions": {} }] }),
        json!({ "rules": [{ "id": "x", "enabled": true, "conditions": {}, "deleteObjectsTransition": { "condition": { "maxAge": 1 } } }] }),
        json!({ "rules": [{ "id": "x", "enabled": true, "conditions": {}, "abortMultipartUploadsTransition": { "condition": { "type": "Date", "date": "2027-01-01T00:00:00Z" } } }] }),
    ] {
        assert_eq!(
            api.send("PUT", &path, Some(&wrong)).await.refusal(),
            (400, 10040),
            "{wrong}"
        );
    }
    api.send("PUT", &path, Some(&json!({ "rules": [] }))).await.result();
    assert_eq!(api.get(&path).await.result(), json!({ "rules": [] }));
}

#[tokio::test(start_paused = true)]
async fn an_account_without_r2_is_told_so() {
    let two = stores().as_token("two");
    let path = format!("/accounts/{OTHER_ACCOUNT}/r2/buckets");
    assert_eq!(two.get(&path).await.refusal(), (403, 10042));
    let body = json!({ "name": "assets" });
    assert_eq!(two.send("POST", &path, Some(&body)).await.refusal(), (403, 10042));
}

async fn add_database(api: &Api, body: Value) -> Answer {
    api.send("POST", &d1(""), Some(&body)).await
}

#[tokio::test(start_paused = true)]
async fn a_database_shows_in_three_shapes() {
    let api = stores();
    let body = json!({ "name": "app", "primary_location_hint": "apac" });
    let made = add_database(&api, body.clone()).await.result();
    let id = made["uuid"].as_str().expect("a uuid").to_owned();
    assert_eq!(
        made,
        json!({
            "uuid": id, "name": "app", "created_at": "2026-11-29T12:00:00.000Z", "version": "production",
            "file_size": 8192, "num_tables": 0, "created_in_region": "APAC", "jurisdiction": null,
            "read_replication": { "mode": "disabled" },
        })
    );
    let single = api.get(&d1(&format!("/{id}"))).await.result();
    assert_eq!(
        (&single["running_in_region"], &single["created_in_region"]),
        (&json!("APAC"), &Value::Null)
    );
    let list = api.get(&d1("")).await;
    assert_eq!(
        list.body["result_info"],
        json!({ "page": 1, "per_page": 100, "count": 1, "total_count": 1 })
    );
    let row = list.result()[0].clone();
    assert_eq!(
        (row.get("read_replication"), row.get("running_in_region")),
        (None, None)
    );
    assert_eq!(row["file_size"], 8192, "lists lag behind");
    assert_eq!(
        api.get(&d1("/app?fields=uuid,name")).await.result(),
        json!({ "uuid": id, "name": "app" })
    );
    assert_eq!(add_database(&api, body).await.refusal(), (400, 7502));
}

#[tokio::test(start_paused = true)]
async fn databases_take_and_refuse_properties() {
    let api = stores();
    let eu = json!({ "name": "eu", "jurisdiction": "eu", "primary_location_hint": "APAC", "read_replication": { "mode": "auto" } });
    let made = add_database(&api, eu).await.result();
    assert_eq!(
        (&made["jurisdiction"], &made["created_in_region"]),
        (&json!("eu"), &json!("WEUR")),
        "a jurisdiction makes the hint void"
    );
    let path = d1(&format!("/{}", made["uuid"].as_str().expect("a uuid")));
    for (method, mode) in [("PATCH", "disabled"), ("PUT", "auto")] {
        let body = json!({ "read_replication": { "mode": mode } });
        let changed = api.send(method, &path, Some(&body)).await.result();
        assert_eq!(changed["read_replication"]["mode"], mode);
        assert_eq!(changed["running_in_region"], "WEUR");
    }
    for wrong in [
        json!({ "name": "Has Space" }),
        json!({}),
        json!({ "name": "x", "primary_location_hint": "mars" }),
        json!({ "name": "x", "jurisdiction": null }),
        json!({ "name": "x", "read_replication": null }),
    ] {
        let answer = add_database(&api, wrong.clone()).await;
        assert_eq!(answer.refusal(), (400, 7400), "{wrong}");
        let members: Vec<_> = answer.body.as_object().expect("an envelope").keys().collect();
        assert_eq!(members, ["errors", "success"], "a bare envelope");
    }
    assert_eq!(api.sim.calls().last().and_then(|call| call.error_code), Some(7400));
    assert_eq!(api.send("DELETE", &path, None).await.result(), Value::Null);
    assert_eq!(api.get(&path).await.refusal(), (404, 7404));
    assert_eq!(api.get(&d1("/nothing")).await.refusal(), (404, 7003));
}

#[tokio::test(start_paused = true)]
async fn databases_are_found_by_parts_of_their_names_and_have_a_quota() {
    let api = stores();
    for number in 0..10 {
        add_database(&api, json!({ "name": format!("app-{number}") }))
            .await
            .result();
    }
    assert_eq!(
        add_database(&api, json!({ "name": "one-more" })).await.refusal(),
        (400, 7406)
    );
    let found = api.get(&d1("?name=app-1")).await.result();
    assert_eq!(names(&found), ["app-1"]);
    assert_eq!(
        api.get(&d1("?name=app")).await.result().as_array().map(Vec::len),
        Some(10)
    );
    let path = format!("/accounts/{OTHER_ACCOUNT}/d1/database");
    let two = api.as_token("two");
    two.send("POST", &path, Some(&json!({ "name": "app-1" })))
        .await
        .result();
    assert_eq!(
        two.send("POST", &path, Some(&json!({ "name": "app-2" })))
            .await
            .refusal(),
        (400, 7406)
    );
}

#[tokio::test(start_paused = true)]
async fn permissions_are_those_of_the_product_and_the_account() {
    let api = stores();
    add_namespace(&api, "cache").await.result();
    let reader = api.as_token("reader");
    for path in [kv(""), r2(""), d1("")] {
        reader.get(&path).await.result();
        let body = json!({ "title": "new", "name": "new" });
        assert_eq!(
            reader.send("POST", &path, Some(&body)).await.refusal(),
            (403, 10000),
            "{path}"
        );
        assert_eq!(api.as_token("zones").get(&path).await.refusal(), (403, 10000), "{path}");
        assert_eq!(api.as_token("two").get(&path).await.refusal(), (403, 10000), "{path}");
    }
    let elsewhere = format!("/accounts/{OTHER_ACCOUNT}/storage/kv/namespaces");
    assert_eq!(api.as_token("two").get(&elsewhere).await.result(), json!([]));
}

#[tokio::test(start_paused = true)]
async fn lists_can_be_stale_or_empty() {
    let api = stores();
    add_namespace(&api, "cache").await.result();
    add_bucket(&api, "assets", "default").await.result();
    add_database(&api, json!({ "name": "app" })).await.result();
    api.sim.mark("before");
    let namespace = id_of(&api.get(&kv("")).await.result()[0]);
    api.send("DELETE", &kv(&format!("/{namespace}")), None).await.result();
    api.send("DELETE", &r2("/assets"), None).await.result();
    add_database(&api, json!({ "name": "new" })).await.result();
    let fault = |fault: Fault| {
        api.sim
            .add_fault(FaultSpec::new(FaultMatch::any(), fault))
            .expect("a fault")
    };
    let stale = fault(Fault::StaleList {
        seconds: None,
        mark: Some("before".to_owned()),
    });
    assert_eq!(column(&api.get(&kv("")).await.result(), "title"), ["cache"]);
    assert_eq!(column(&api.get(&r2("")).await.result()["buckets"], "name"), ["assets"]);
    assert_eq!(names(&api.get(&d1("")).await.result()), ["app"]);
    api.sim.remove_fault(stale);
    add_bucket(&api, "assets", "default").await.result();
    fault(Fault::EmptyList { totals: Totals::Zero });
    assert_eq!(api.get(&r2("")).await.result(), json!({ "buckets": [] }));
    let empty = api.get(&d1("")).await;
    assert_eq!(empty.body["result_info"]["total_count"], 0);
    assert_eq!(empty.result(), json!([]));
}

#[tokio::test(start_paused = true)]
async fn stores_are_seeded_kept_and_edited_by_others() {
    let api = stores();
    let seeded = api
        .sim
        .seed(&Seed {
            kv_namespaces: vec![KvNamespaceSeed {
                id: Some(UNKNOWN.into()),
                account: "One".into(),
                title: "cache".into(),
            }],
            r2_buckets: vec![BucketSeed {
                account: "One".into(),
                name: "data".into(),
                jurisdiction: Some("eu".into()),
                objects: 3,
                ..BucketSeed::default()
            }],
            d1_databases: vec![DatabaseSeed {
                account: ACCOUNT.into(),
                name: "app".into(),
                ..DatabaseSeed::default()
            }],
            ..Seed::default()
        })
        .expect("a good seed");
    assert_eq!(seeded.kv_namespaces, [UNKNOWN]);
    let twice = api.sim.seed(&Seed {
        d1_databases: vec![DatabaseSeed {
            account: ACCOUNT.into(),
            name: "app".into(),
            ..DatabaseSeed::default()
        }],
        ..Seed::default()
    });
    assert!(twice.is_err());

    let rename = ForeignCall::new("PUT", kv(&format!("/{UNKNOWN}"))).body(json!({ "title": "theirs" }));
    assert_eq!(api.sim.foreign_call(&rename).expect("renamed")["title"], "theirs");
    let clear = ForeignCall::new("PUT", r2("/data/lifecycle"))
        .header("cf-r2-jurisdiction", "eu")
        .body(json!({ "rules": [] }));
    api.sim.foreign_call(&clear).expect("cleared");
    let hidden = ForeignCall::new("GET", r2("/data"));
    assert_eq!(api.sim.foreign_call(&hidden).expect_err("hidden").root_code(), 10006);
    let none = ForeignCall::new("GET", "/accounts/x/nothing");
    assert_eq!(api.sim.foreign_call(&none).expect_err("no route").root_code(), 7003);
    assert_eq!(api.sim.calls(), [], "nobody saw it");

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    api.sim.save(&path).expect("saved");
    let copy = Simulator::new(config());
    assert!(copy.load(&path).expect("loaded"));
    assert_eq!(copy.dump(), api.sim.dump());
    assert_eq!(copy.r2_buckets()[0]["objects"], 3);
    assert_eq!(copy.r2_buckets()[0]["lifecycle"], json!([]));
    assert_eq!(copy.kv_namespaces()[0]["title"], "theirs");
}
