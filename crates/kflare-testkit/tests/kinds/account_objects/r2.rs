//! R2 buckets. Field cases 88, 89, 90, 92, 93.

use kflare_api::names;
use kflare_sim::{AccountSeed, FaultMatch, ForeignCall, LifecycleForm, LocationForm, Quirks, Seed, Subscription};
use kflare_testkit::{memory_api::ObjectId, simulation::ACCOUNT_ID};
use serde_json::{Value, json};

use super::{delete, foreign, lost, manifest, path, play_in_account};
use crate::stage::{HOUR, MINUTE, Stage, adopting, annotated, status};

const ALL: &str = "/accounts/{account_id}/r2/buckets";
const ONE: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}";
const CORS: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/cors";

fn bucket(name: &str, spec: &Value) -> Value {
    let mut whole = json!({ "name": name });
    json_patch::merge(&mut whole, spec);
    manifest("R2Bucket", name, &whole)
}

fn remote(stage: &Stage) -> Value {
    let mut all = stage.cloudflare.r2_buckets();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn theirs(jurisdiction: &str, method: &str, rest: &str) -> ForeignCall {
    ForeignCall::new(method, path(&format!("/r2/buckets{rest}"))).header("cf-r2-jurisdiction", jurisdiction)
}

/// Writes since a mark: method, route and body.
fn writes(stage: &Stage, mark: &crate::stage::Mark) -> Vec<(String, String, Option<Value>)> {
    let since = stage.since(mark);
    let writes = since.cloudflare_writes();
    writes
        .iter()
        .map(|call| {
            (
                call.method.clone(),
                call.route.clone().unwrap_or_default(),
                call.body.clone(),
            )
        })
        .collect()
}

fn written(method: &str, route: &str, body: Option<Value>) -> (String, String, Option<Value>) {
    (method.to_owned(), route.to_owned(), body)
}

#[test]
fn a_bucket_is_made_once_and_left_alone() {
    for form in [LocationForm::Lower, LocationForm::Upper] {
        play_in_account(|stage| async move {
            stage.cloudflare.set_quirks(Quirks {
                r2_location: form,
                ..Quirks::default()
            });
            let mark = stage.mark();
            let spec = json!({ "locationHint": "apac", "storageClass": "InfrequentAccess" });
            let id = stage.create(bucket("assets", &spec));
            stage.ready(std::slice::from_ref(&id)).await;
            let body = json!({ "name": "assets", "locationHint": "apac", "storageClass": "InfrequentAccess" });
            assert_eq!(writes(&stage, &mark), [written("POST", ALL, Some(body))]);
            let metadata = stage.status(&id)["cloudflareMetadata"].clone();
            assert_eq!(
                (&metadata["name"], &metadata["location"]),
                (&json!("assets"), &json!("APAC"))
            );
            assert!(metadata["creationDate"].is_string(), "{metadata}");
            assert_eq!(stage.metadata(&id)["labels"][names::R2_BUCKET_NAME], "assets");
            let mark = stage.mark();
            stage.rest(24 * HOUR).await;
            stage.since(&mark).assert_no_write();
            assert!(stage.user.is_ready(&id));
        });
    }
}

/// What no list tells stays in status, however the bucket is looked at.
#[test]
fn buckets_in_numbers_are_listed_and_keep_their_location() {
    play_in_account(|stage| async move {
        let ids: Vec<ObjectId> = (0..20)
            .map(|n| stage.create(bucket(&format!("bucket-{n}"), &json!({}))))
            .collect();
        stage.ready(&ids).await;
        stage.reconcile(&ids, "1").await;
        for id in &ids {
            assert_eq!(stage.status(id)["cloudflareMetadata"]["location"], "ENAM");
        }
        stage.rest(30 * MINUTE).await;
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let calls = since.calls.iter().filter(|call| call.path.contains("/r2/")).count();
        assert!((4..=8).contains(&calls), "{calls} calls in an hour");
    });
}

// Field case 88.
#[test]
fn a_bucket_of_a_jurisdiction_lives_and_goes_there() {
    play_in_account(|stage| async move {
        let spec = json!({
            "jurisdiction": "eu",
            "cors": [{ "allowedOrigins": ["*"], "allowedMethods": ["GET"] }],
            "lifecycle": [{ "id": "logs", "deleteAfter": "30d" }],
        });
        let id = stage.create(bucket("eu-data", &spec));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = remote(&stage);
        assert_eq!(
            (&remote["jurisdiction"], remote["lifecycle"].as_array().map(Vec::len)),
            (&json!("eu"), Some(2))
        );
        stage
            .user
            .edit_spec(&id, &json!({ "storageClass": "InfrequentAccess" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
        delete(&stage, &id).await;
        assert_eq!(stage.cloudflare.r2_buckets(), Vec::<Value>::new());
    });
}

/// A name means another bucket in each jurisdiction.
#[test]
fn buckets_of_one_name_are_told_apart() {
    play_in_account(|stage| async move {
        let mut plain = bucket("data", &json!({}));
        plain["metadata"]["name"] = json!("plain");
        let ids = [
            stage.create(bucket("data", &json!({ "jurisdiction": "eu" }))),
            stage.create(plain),
        ];
        stage.ready(&ids).await;
        let mut jurisdictions: Vec<Value> = stage
            .cloudflare
            .r2_buckets()
            .iter()
            .map(|it| it["jurisdiction"].clone())
            .collect();
        jurisdictions.sort_by_key(Value::to_string);
        assert_eq!(jurisdictions, [json!("default"), json!("eu")]);
        delete(&stage, &ids[0]).await;
        assert_eq!(remote(&stage)["jurisdiction"], "default");
        let mut twin = bucket("data", &json!({}));
        twin["metadata"]["name"] = json!("twin");
        let twin = stage.create(adopting(twin, "adopt"));
        stage.says(&twin, "False", "AlreadyClaimed").await;
    });
}

// Field case 89.
#[test]
fn cors_rules_are_written_once_in_the_form_of_the_wire() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let rule = json!({
            "allowedOrigins": ["https://map.example.com"], "allowedMethods": ["GET", "HEAD"],
            "allowedHeaders": ["range"], "exposeHeaders": ["etag"], "maxAgeSeconds": 3600,
        });
        let id = stage.create(bucket("assets", &json!({ "cors": [rule] })));
        stage.ready(std::slice::from_ref(&id)).await;
        let wire = json!({
            "allowed": { "origins": ["https://map.example.com"], "methods": ["GET", "HEAD"], "headers": ["range"] },
            "exposeHeaders": ["etag"], "maxAgeSeconds": 3600,
        });
        assert_eq!(
            writes(&stage, &mark),
            [
                written("POST", ALL, Some(json!({ "name": "assets" }))),
                written("PUT", CORS, Some(json!({ "rules": [wire] }))),
            ]
        );
        // The same in another order and case.
        let same = json!({
            "id": "x", "allowed": { "methods": ["HEAD", "GET"], "origins": ["https://map.example.com"], "headers": ["Range"] },
            "exposeHeaders": ["ETag"], "maxAgeSeconds": 3600,
        });
        let reorder = theirs("default", "PUT", "/assets/cors").body(json!({ "rules": [same] }));
        foreign(&stage, reorder);
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
        // Taken away by others they are put back; taken out of the spec they are nobody's.
        foreign(&stage, theirs("default", "DELETE", "/assets/cors"));
        stage
            .until("put back", |stage| remote(stage)["cors"] == json!([wire]))
            .await;
        stage.rest(MINUTE).await;
        assert!(
            stage.told(&id, "DriftCorrected", &["cors"]),
            "{:?}",
            stage.user.events(&id)
        );
        stage.user.edit_spec(&id, &json!({ "cors": null }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(remote(&stage)["cors"], json!([wire]));
        let mark = stage.mark();
        stage.user.edit_spec(&id, &json!({ "cors": [] }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(writes(&stage, &mark), [written("DELETE", CORS, None)]);
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

// Field case 89. No rules asked for and none there: nothing is written.
#[test]
fn a_bucket_without_rules_needs_none_taken_away() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let id = stage.create(bucket("assets", &json!({ "cors": [], "lifecycle": [] })));
        stage.ready(&[id]).await;
        assert_eq!(
            writes(&stage, &mark),
            [written("POST", ALL, Some(json!({ "name": "assets" })))]
        );
        stage.rest(3 * HOUR).await;
        assert_eq!(writes(&stage, &mark).len(), 1);
    });
}

fn ids_of(rules: &Value) -> Vec<&str> {
    let rules = rules.as_array().unwrap().iter();
    rules.map(|rule| rule["id"].as_str().unwrap()).collect()
}

const DEFAULT: &str = "Default Multipart Abort Rule";

// Field case 92.
#[test]
fn lifecycle_rules_keep_the_one_that_cloudflare_gave() {
    for form in [LifecycleForm::AsSent, LifecycleForm::Padded] {
        play_in_account(|stage| async move {
            stage.cloudflare.set_quirks(Quirks {
                r2_lifecycle: form,
                ..Quirks::default()
            });
            let logs = json!({ "id": "logs", "prefix": "logs/", "deleteAfter": "30d" });
            let id = stage.create(bucket("assets", &json!({ "lifecycle": [logs] })));
            stage.ready(std::slice::from_ref(&id)).await;
            let rules = remote(&stage)["lifecycle"].clone();
            assert_eq!(ids_of(&rules), ["logs", DEFAULT]);
            assert_eq!(
                rules[0]["deleteObjectsTransition"]["condition"],
                json!({ "type": "Age", "maxAge": 2_592_000 })
            );
            assert_eq!(
                rules[1]["abortMultipartUploadsTransition"]["condition"]["maxAge"],
                604_800
            );
            let mark = stage.mark();
            stage.rest(3 * HOUR).await;
            stage.since(&mark).assert_no_write();
            // A rule of somebody else's in our list goes; the default stays as they changed it.
            let changed = json!({
                "id": DEFAULT, "enabled": false, "conditions": { "prefix": "" },
                "abortMultipartUploadsTransition": { "condition": { "type": "Age", "maxAge": 60 } },
            });
            let by_hand = json!({
                "id": "by hand", "enabled": true, "conditions": { "prefix": "" },
                "deleteObjectsTransition": { "condition": { "type": "Age", "maxAge": 60 } },
            });
            let put =
                theirs("default", "PUT", "/assets/lifecycle").body(json!({ "rules": [changed, by_hand, rules[0]] }));
            foreign(&stage, put);
            stage
                .until("put right", |stage| {
                    ids_of(&remote(stage)["lifecycle"]) == ["logs", DEFAULT]
                })
                .await;
            assert_eq!(remote(&stage)["lifecycle"][1]["enabled"], false);
            // Our rule is taken away, the default is left.
            stage.user.edit_spec(&id, &json!({ "lifecycle": [] }));
            stage.ready(std::slice::from_ref(&id)).await;
            assert_eq!(ids_of(&remote(&stage)["lifecycle"]), [DEFAULT]);
        });
    }
}

// Field case 92.
#[test]
fn the_default_lifecycle_rule_is_overridden_by_its_id() {
    play_in_account(|stage| async move {
        let rule = json!({ "id": DEFAULT, "abortMultipartUploadsAfter": "1d" });
        let id = stage.create(bucket("assets", &json!({ "lifecycle": [rule] })));
        stage.ready(&[id]).await;
        let rules = remote(&stage)["lifecycle"].clone();
        assert_eq!(ids_of(&rules), [DEFAULT]);
        assert_eq!(
            rules[0]["abortMultipartUploadsTransition"]["condition"]["maxAge"],
            86_400
        );
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

// Field case 90.
#[test]
fn a_bucket_with_objects_stays_until_somebody_empties_it() {
    play_in_account(|stage| async move {
        let id = stage.create(bucket("full", &json!({ "jurisdiction": "eu" })));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.cloudflare.set_objects(ACCOUNT_ID, "eu", "full", 2500).unwrap();
        let mark = stage.mark();
        stage.user.delete(&id);
        stage
            .until("said", |stage| stage.user.ready(&id).1 == "BucketNotEmpty")
            .await;
        stage.rest(3 * HOUR).await;
        let since = stage.since(&mark);
        assert!(
            since
                .cloudflare_writes()
                .iter()
                .all(|call| call.method == "DELETE" && call.route.as_deref() == Some(ONE)),
            "objects are nobody's business: {:#?}",
            since.cloudflare_writes()
        );
        let tries = since.cloudflare_writes().len();
        assert!((2..20).contains(&tries), "{tries} tries in three hours");
        assert_eq!(remote(&stage)["objects"], 2500);
        stage.cloudflare.set_objects(ACCOUNT_ID, "eu", "full", 0).unwrap();
        stage.reconcile_no_wait(&id, "emptied");
        stage.gone(&[id]).await;
        assert_eq!(stage.cloudflare.r2_buckets(), Vec::<Value>::new());
    });
}

#[test]
fn a_bucket_that_exists_is_left_alone_and_adopted_only_when_asked() {
    play_in_account(|stage| async move {
        foreign(&stage, theirs("default", "POST", "").body(json!({ "name": "assets" })));
        let mark = stage.mark();
        let spec = json!({ "storageClass": "InfrequentAccess" });
        let id = stage.create(bucket("assets", &spec));
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&id).contains("storageClass"),
            "{}",
            stage.user.message(&id)
        );
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(remote(&stage)["storage_class"], "InfrequentAccess");
        assert_eq!(stage.status(&id)["cloudflareMetadata"]["location"], "ENAM");
        delete(&stage, &id).await;
        assert_eq!(remote(&stage)["name"], "assets", "what was adopted stays");
    });
}

#[test]
fn a_storage_class_is_changed_and_put_back() {
    play_in_account(|stage| async move {
        let id = stage.create(annotated(
            bucket("assets", &json!({ "storageClass": "Standard" })),
            names::DELETION_POLICY,
            "retain",
        ));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "storageClass": "InfrequentAccess" }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(writes(&stage, &mark), [written("PATCH", ONE, None)]);
        let change = theirs("default", "PATCH", "/assets").header("cf-r2-storage-class", "Standard");
        foreign(&stage, change);
        stage
            .until("put back", |stage| remote(stage)["storage_class"] == "InfrequentAccess")
            .await;
        stage.rest(MINUTE).await;
        let words = ["storageClass", "Standard", "InfrequentAccess"];
        assert!(
            stage.told(&id, "DriftCorrected", &words),
            "{:?}",
            stage.user.events(&id)
        );
        delete(&stage, &id).await;
        assert_eq!(remote(&stage)["name"], "assets", "retained");
    });
}

// Field case 93.
#[test]
fn a_bucket_whose_creation_seemed_to_fail_is_found_again() {
    play_in_account(|stage| async move {
        stage.fault_times(FaultMatch::route("POST", ALL), lost(), 1);
        let mark = stage.mark();
        let id = stage.create(bucket("assets", &json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(writes(&stage, &mark).len(), 1, "no second POST");
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
        delete(&stage, &id).await;
        assert_eq!(stage.cloudflare.r2_buckets(), Vec::<Value>::new(), "ours, so it goes");
    });
}

// Field case 93.
#[test]
fn a_class_that_cannot_be_changed_is_no_loop() {
    play_in_account(|stage| async move {
        let id = stage.create(bucket("assets", &json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.fault(FaultMatch::route("PATCH", ONE), status(405, 7001));
        let mark = stage.mark();
        let rule = json!({ "allowedOrigins": ["*"], "allowedMethods": ["GET"] });
        let spec = json!({ "storageClass": "InfrequentAccess", "cors": [rule] });
        stage.user.edit_spec(&id, &spec);
        stage.says(&id, "False", "StorageClassNotChangeable").await;
        assert!(remote(&stage)["cors"].is_array(), "what can be done is done");
        stage.rest(12 * HOUR).await;
        let tries = writes(&stage, &mark).iter().filter(|it| it.0 == "PATCH").count();
        assert!(tries <= 2, "{tries} tries in twelve hours");
        stage.user.edit_spec(&id, &json!({ "storageClass": null }));
        stage.ready(&[id]).await;
    });
}

/// Somebody has to switch R2 on in the dashboard. That is no fault of the token, and holds up nobody else.
#[test]
fn an_account_without_r2_says_so() {
    play_in_account(|stage| async move {
        let switch = |r2| Seed {
            accounts: vec![AccountSeed {
                id: Some(ACCOUNT_ID.to_owned()),
                r2,
                ..AccountSeed::named("Example")
            }],
            ..Seed::default()
        };
        stage.cloudflare.seed(&switch(Subscription::Disabled)).unwrap();
        let id = stage.create(bucket("assets", &json!({})));
        stage.says(&id, "False", "R2NotEnabled").await;
        let other = stage.create(manifest("KVNamespace", "cache", &json!({ "title": "cache" })));
        stage.ready(&[other]).await;
        stage.cloudflare.seed(&switch(Subscription::Enabled)).unwrap();
        stage.reconcile_no_wait(&id, "switched on");
        stage.ready(&[id]).await;
    });
}

#[test]
fn rules_that_make_no_sense_are_named_without_a_call() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let rule = json!({ "id": "end", "deleteOn": "2027-02-30" });
        let id = stage.create(bucket("assets", &json!({ "lifecycle": [rule] })));
        stage.says(&id, "False", "InvalidSpec").await;
        assert!(
            stage.user.message(&id).contains("spec.lifecycle[0].deleteOn"),
            "{}",
            stage.user.message(&id)
        );
        assert!(stage.since(&mark).calls.is_empty());
    });
}
