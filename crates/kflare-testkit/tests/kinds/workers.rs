//! Workers: uploads, drift, adoption, conflicts, deletion. Field cases 76, 80, 82, 83, 84, 87.

use kflare_sim::{BindingOrder, Fault, FaultMatch, Plan, Quirks, Seed, WorkerSeed};
use kflare_testkit::{memory_api::ObjectId, simulation::ACCOUNT_ID};
use serde_json::{Value, json};

use crate::stage::{HOUR, MINUTE, Stage, adopting, annotated, in_namespace, play_in_zone, status};
use crate::worker_stage::{CODE, SCRIPT, config_map, foreign, secret, settings, stored, text_of, uploads, worker};

/// A Worker with a bit of everything that needs no other resource.
fn full() -> Value {
    json!({
        "modules": [
            { "name": "index.js", "type": "esModule", "configMapRef": { "name": "code", "key": "index.js" } },
            { "name": "a.wasm", "type": "wasm", "configMapRef": { "name": "code", "key": "a.wasm" } },
            { "name": "note.txt", "type": "text", "content": "hi" },
        ],
        "mainModule": "index.js",
        "script": null,
        "compatibilityDate": "2026-01-31",
        "compatibilityFlags": ["nodejs_compat", "a_flag"],
        "bindings": [
            { "name": "TEXT", "plainText": "hello" },
            { "name": "CONF", "json": { "b": [1, { "c": null }] } },
            { "name": "KEY", "secretKeyRef": { "name": "keys", "key": "api" } },
            { "name": "AI", "ai": {} },
        ],
        "observability": { "enabled": true, "logs": { "enabled": true, "invocationLogs": false } },
        "placement": { "mode": "smart" },
        "limits": { "cpuMs": 50 },
        "schedules": ["0  3 * * *", "*/5 * * * *"],
        "workersDev": true,
    })
}

fn give_inputs(stage: &Stage) {
    let main = "import w from './a.wasm'\nimport t from './note.txt'\nexport default { fetch() {} }";
    stage.create(config_map(
        "code",
        json!({ "index.js": main }),
        json!({ "a.wasm": "AGFzbf8=" }),
    ));
    stage.create(secret("keys", &json!({ "api": "first" })));
}

// Create. Field case 83: the bytes are those of the ConfigMap.
#[test]
fn a_worker_is_uploaded_with_modules_secrets_and_settings() {
    play_in_zone(Plan::Free, |stage| async move {
        give_inputs(&stage);
        let mark = stage.mark();
        let id = stage.create(worker("web", full()));
        stage.ready(std::slice::from_ref(&id)).await;
        let held = stored(&stage, "web").unwrap();
        assert_eq!(held["syntax"], json!({ "modules": "index.js" }));
        assert_eq!(held["modules"][1]["content_type"], "application/wasm");
        assert_eq!(held["modules"][1]["body"], json!({ "base64": "AGFzbf8=" }));
        assert_eq!(held["modules"][2]["body"], json!({ "text": "hi" }));
        assert_eq!(text_of(&stage, "web", "KEY"), "first");
        let now = settings(&stage, "web");
        assert_eq!(now["compatibility_flags"], json!(["a_flag", "nodejs_compat"]));
        assert_eq!(
            (
                &now["observability"]["logs"]["invocation_logs"],
                &now["placement"]["mode"],
                &now["limits"]["cpu_ms"]
            ),
            (&json!(false), &json!("smart"), &json!(50))
        );
        let of = |part: &str| foreign(&stage, "GET", &format!("{SCRIPT}/web/{part}"), None);
        assert_eq!(of("schedules")["schedules"].as_array().map(Vec::len), Some(2));
        assert_eq!(of("subdomain")["enabled"], true);
        let listed = stage.cloudflare.workers(ACCOUNT_ID)[0].clone();
        let metadata = stage.status(&id)["cloudflareMetadata"].clone();
        assert_eq!(
            (&metadata["etag"], &metadata["modifiedOn"], &metadata["scriptName"]),
            (&listed["etag"], &listed["modified_on"], &json!("web"))
        );
        assert_eq!(stage.recorded(&id).as_deref(), listed["tag"].as_str());
        assert_eq!(uploads(&stage, &mark), 1, "one upload");
    });
}

// No-op, also after a restart. Field case 76: the text of a secret is never told, and never asked for again.
#[test]
fn at_rest_nothing_is_written_and_no_secret_is_read() {
    play_in_zone(Plan::Free, |stage| async move {
        give_inputs(&stage);
        let id = stage.create(worker("web", full()));
        let plain = stage.create(worker("plain", json!({})));
        stage.ready(&[id.clone(), plain.clone()]).await;
        for order in [BindingOrder::AsSent, BindingOrder::Sorted, BindingOrder::Reversed] {
            stage.cloudflare.set_quirks(Quirks {
                worker_bindings: order,
                ..Quirks::default()
            });
            let mark = stage.mark();
            stage.rest(24 * HOUR).await;
            stage.since(&mark).assert_no_write();
        }
        assert!(stage.user.is_ready(&id) && stage.user.is_ready(&plain));
    });
}

#[test]
fn a_plain_worker_costs_a_list_at_a_drift_check_and_reads_no_input() {
    play_in_zone(Plan::Free, |stage| async move {
        stage.create(secret("keys", &json!({ "api": "first" })));
        let bindings = json!([{ "name": "KEY", "secretKeyRef": { "name": "keys", "key": "api" } }]);
        let ids: Vec<ObjectId> = (0..5)
            .map(|n| stage.create(worker(&format!("w{n}"), json!({ "bindings": bindings }))))
            .collect();
        stage.ready(&ids).await;
        stage.rest(HOUR).await;
        let (mark, reads) = (stage.mark(), secret_reads(&stage));
        stage.rest(10 * HOUR).await;
        let calls = stage.since(&mark).calls;
        let scripts = calls.iter().filter(|call| call.path.contains("/workers/scripts"));
        let scripts: Vec<_> = scripts.map(|call| call.path.clone()).collect();
        assert!(
            scripts.iter().all(|path| path.ends_with("/workers/scripts")) && scripts.len() <= 66,
            "{scripts:#?}"
        );
        assert_eq!(secret_reads(&stage), reads);
    });
}

/// Reads of the Secret `keys` by its name.
fn secret_reads(stage: &Stage) -> usize {
    let requests = stage.world.api.requests();
    let reads = requests
        .iter()
        .filter(|it| it.request.resource == "secrets" && it.request.name.as_deref() == Some("keys"));
    reads.filter(|it| !it.request.writes()).count()
}

// Drift.
#[test]
fn what_others_change_is_put_right_and_what_the_spec_leaves_out_stays() {
    play_in_zone(Plan::Free, |stage| async move {
        give_inputs(&stage);
        let id = stage.create(worker("web", full()));
        stage.ready(std::slice::from_ref(&id)).await;
        let path = format!("{SCRIPT}/web");
        let change = json!({
            "logpush": true, "tags": ["theirs"], "compatibility_date": "2020-01-01",
            "observability": { "enabled": true, "redact_query_string": true, "logs": { "enabled": false, "invocation_logs": false } },
            "bindings": [{ "name": "TEXT", "type": "plain_text", "text": "theirs" }],
        });
        stage.rest(MINUTE).await;
        crate::worker_stage::foreign_settings(&stage, "web", &change);
        stage
            .until("put right", |stage| {
                settings(stage, "web")["compatibility_date"] == "2026-01-31"
            })
            .await;
        stage.rest(MINUTE).await;
        assert!(
            stage.told(&id, "DriftCorrected", &["compatibility_date", "bindings"]),
            "{:?}",
            stage.user.events(&id)
        );
        let now = settings(&stage, "web");
        assert_eq!((&now["logpush"], &now["tags"]), (&json!(true), &json!(["theirs"])));
        assert_eq!(now["observability"]["redact_query_string"], true);
        assert_eq!(now["observability"]["logs"]["enabled"], true);
        assert_eq!(now["bindings"].as_array().map(Vec::len), Some(4));
        assert_eq!(text_of(&stage, "web", "KEY"), "first");
        // Schedules and the workers.dev switch leave no mark at Cloudflare.
        foreign(&stage, "PUT", &format!("{path}/schedules"), Some(json!([])));
        foreign(
            &stage,
            "POST",
            &format!("{path}/subdomain"),
            Some(json!({ "enabled": false })),
        );
        let mark = stage.mark();
        stage
            .until("put right", |stage| {
                foreign(stage, "GET", &format!("{path}/subdomain"), None)["enabled"] == true
            })
            .await;
        let schedules = foreign(&stage, "GET", &format!("{path}/schedules"), None);
        assert_eq!(schedules["schedules"].as_array().map(Vec::len), Some(2));
        assert_eq!(uploads(&stage, &mark), 0, "no code is sent for that");
        stage.ready(&[id]).await;
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

#[test]
fn a_worker_that_somebody_deleted_comes_back() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(worker("web", json!({ "schedules": ["0 3 * * *"] })));
        stage.ready(std::slice::from_ref(&id)).await;
        let tag = stage.recorded(&id);
        stage.rest(MINUTE).await;
        foreign(&stage, "DELETE", &format!("{SCRIPT}/web"), None);
        stage
            .until("made anew", |stage| {
                stage.recorded(&id).is_some_and(|new| Some(new) != tag)
            })
            .await;
        stage.ready(std::slice::from_ref(&id)).await;
        let schedules = foreign(&stage, "GET", &format!("{SCRIPT}/web/schedules"), None);
        assert_eq!(schedules["schedules"][0]["cron"], "0 3 * * *");
    });
}

fn seed_worker(stage: &Stage, name: &str) {
    let mut seed = WorkerSeed::of_module(ACCOUNT_ID, name, "export default { fetch() { return 1 } }");
    let bindings = json!([
        { "name": "THEIRS", "type": "secret_text", "text": "by hand" },
        { "name": "OLD", "type": "plain_text", "text": "old" },
    ]);
    seed.metadata.insert("bindings".into(), bindings);
    let seed = Seed {
        workers: vec![seed],
        ..Seed::default()
    };
    stage.cloudflare.seed(&seed).unwrap();
}

// Adoption. Field case 78: the bindings that the spec does not mention at all stay.
#[test]
fn an_existing_worker_is_left_alone_and_adopted_on_request() {
    play_in_zone(Plan::Free, |stage| async move {
        seed_worker(&stage, "web");
        let before = stored(&stage, "web");
        let id = stage.create(worker("web", json!({})));
        stage.says(&id, "False", "AlreadyExists").await;
        stage.rest(HOUR).await;
        assert_eq!(stored(&stage, "web"), before);
        stage
            .user
            .annotate(&id, "kflare.dev/adoption-policy", Some("adopt-if-matching"));
        stage.says(&id, "False", "AdoptionBlocked").await;
        assert_eq!(stored(&stage, "web"), before);
        let tag = stage.cloudflare.workers(ACCOUNT_ID)[0]["tag"].clone();
        stage.user.annotate(&id, "kflare.dev/adoption-policy", Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.recorded(&id).as_deref(), tag.as_str());
        assert_eq!(stored(&stage, "web").unwrap()["modules"][0]["body"]["text"], CODE);
        assert_eq!(text_of(&stage, "web", "THEIRS"), "by hand");
        assert_eq!(text_of(&stage, "web", "OLD"), "old");
        // Adopted, so it stays.
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(stage.cloudflare.workers(ACCOUNT_ID).len(), 1);
        let none = stage.create(adopting(worker("none", json!({})), "adopt"));
        stage.says(&none, "False", "NothingToAdopt").await;
    });
}

// Field cases 76 and 78: with bindings in the spec, others go, but for secrets that are to be kept.
#[test]
fn secrets_of_others_stay_when_the_spec_says_so() {
    play_in_zone(Plan::Free, |stage| async move {
        seed_worker(&stage, "keeping");
        seed_worker(&stage, "dropping");
        let bindings = json!([{ "name": "NEW", "plainText": "new" }]);
        let keeping = json!({ "bindings": bindings, "keepSecrets": true });
        let keeping = stage.create(adopting(worker("keeping", keeping), "adopt"));
        let dropping = stage.create(adopting(worker("dropping", json!({ "bindings": bindings })), "adopt"));
        stage.ready(&[keeping.clone(), dropping]).await;
        let names = |name: &str| {
            let bindings = settings(&stage, name)["bindings"].clone();
            let all = bindings
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned());
            all.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(names("keeping"), ["NEW", "THEIRS"].map(str::to_owned).into());
        assert_eq!(text_of(&stage, "keeping", "THEIRS"), "by hand");
        assert_eq!(names("dropping"), ["NEW"].map(str::to_owned).into());
        // One that is put there later stays too, and goes from the other.
        let late = json!({ "name": "LATE", "type": "secret_text", "text": "later" });
        for name in ["keeping", "dropping"] {
            foreign(&stage, "PUT", &format!("{SCRIPT}/{name}/secrets"), Some(late.clone()));
        }
        stage.until("gone", |_| names("dropping").len() == 1).await;
        assert_eq!(names("keeping").len(), 3);
        stage.ready(&[keeping]).await;
    });
}

// Conflict.
#[test]
fn two_resources_never_manage_one_worker() {
    play_in_zone(Plan::Free, |stage| async move {
        let first = stage.create(worker("web", json!({})));
        stage.ready(std::slice::from_ref(&first)).await;
        let mut second = in_namespace(adopting(worker("web", json!({})), "adopt-or-create"), "other");
        second["metadata"]["name"] = json!("again");
        let second = stage.create(second);
        stage.says(&second, "False", "AlreadyClaimed").await;
        stage.user.delete(&first);
        stage.gone(&[first]).await;
        stage.ready(&[second]).await;
    });
}

// Update.
#[test]
fn a_change_is_one_upload() {
    play_in_zone(Plan::Free, |stage| async move {
        let bindings = |text: &str| json!({ "bindings": [{ "name": "TEXT", "plainText": text }] });
        let id = stage.create(worker("web", bindings("a")));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage.user.edit_spec(&id, &bindings("b"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(text_of(&stage, "web", "TEXT"), "b");
        let code = "export default { fetch() { return 2 } }";
        stage.user.edit_spec(&id, &json!({ "script": code }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stored(&stage, "web").unwrap()["modules"][0]["body"]["text"], code);
        assert_eq!(uploads(&stage, &mark), 2);
        let old = "addEventListener('fetch', event => {})";
        stage
            .user
            .edit_spec(&id, &json!({ "script": old, "format": "serviceWorker" }));
        stage.ready(&[id]).await;
        let held = stored(&stage, "web").unwrap();
        assert_eq!(held["syntax"], json!({ "service_worker": "script" }));
        assert_eq!(held["modules"][0]["content_type"], "application/javascript");
    });
}

// Deletion and retention.
#[test]
fn a_worker_goes_with_its_resource_unless_it_is_to_stay() {
    play_in_zone(Plan::Free, |stage| async move {
        let goes = stage.create(worker("goes", json!({})));
        let stays = stage.create(annotated(
            worker("stays", json!({})),
            "kflare.dev/deletion-policy",
            "retain",
        ));
        stage.ready(&[goes.clone(), stays.clone()]).await;
        stage.user.delete(&goes);
        stage.user.delete(&stays);
        stage.gone(&[goes, stays]).await;
        let left = stage.cloudflare.workers(ACCOUNT_ID);
        assert_eq!(
            left.iter().map(|it| it["id"].clone()).collect::<Vec<_>>(),
            [json!("stays")]
        );
    });
}

/// Another Worker of the name, which somebody has made in the place of ours, is not ours to delete.
#[test]
fn a_later_worker_of_the_same_name_is_not_deleted() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(worker("web", json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        foreign(&stage, "DELETE", &format!("{SCRIPT}/web"), None);
        seed_worker(&stage, "web");
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(stage.cloudflare.workers(ACCOUNT_ID).len(), 1);
    });
}

#[test]
fn a_worker_that_others_call_says_so_and_waits() {
    play_in_zone(Plan::Free, |stage| async move {
        let api = stage.create(worker("api", json!({})));
        stage.ready(std::slice::from_ref(&api)).await;
        let calls = json!({ "bindings": [{ "name": "API", "service": { "name": "api" } }] });
        let web = stage.create(worker("web", calls));
        stage.ready(std::slice::from_ref(&web)).await;
        stage.user.delete(&api);
        stage.until("in use", |stage| stage.user.ready(&api).1 == "InUse").await;
        stage.user.delete(&web);
        stage
            .until_within("gone", 2 * HOUR, |stage| stage.world.api.get(&api).is_none())
            .await;
        assert!(stage.cloudflare.workers(ACCOUNT_ID).is_empty());
    });
}

/// A reference that is taken out of a spec sets free what waits for it (found by a story).
#[test]
fn what_a_worker_does_not_name_any_more_may_go() {
    play_in_zone(Plan::Free, |stage| async move {
        let api = stage.create(worker("api", json!({})));
        stage.ready(std::slice::from_ref(&api)).await;
        let calls = json!({ "bindings": [{ "name": "API", "service": { "name": "api" } }] });
        let web = stage.create(worker("web", calls));
        stage.ready(std::slice::from_ref(&web)).await;
        stage.user.delete(&api);
        stage.until("in use", |stage| stage.user.ready(&api).1 == "InUse").await;
        stage.user.edit_spec(&web, &json!({ "bindings": [] }));
        stage
            .until_within("gone", 2 * MINUTE, |stage| stage.world.api.get(&api).is_none())
            .await;
    });
}

// Plan limits. Field case 84: code that is too large is sent once.
#[test]
fn what_the_plan_does_not_allow_is_said_and_not_tried_all_the_time() {
    play_in_zone(Plan::Free, |stage| async move {
        let route = "/accounts/{account_id}/workers/scripts/{script_name}";
        stage.fault(FaultMatch::route("PUT", route), status(413, 10_027));
        let large = stage.create(worker("large", json!({})));
        stage.says(&large, "False", "TerminalError").await;
        assert!(
            stage.user.message(&large).contains("10027"),
            "{}",
            stage.user.message(&large)
        );
        let mark = stage.mark();
        stage.rest(6 * HOUR).await;
        assert!(uploads(&stage, &mark) <= 7, "{} uploads", uploads(&stage, &mark));
        stage.cloudflare.clear_faults();
        stage
            .user
            .edit_spec(&large, &json!({ "script": "export default { fetch() { return 3 } }" }));
        stage.ready(&[large]).await;

        let workers = (0..99)
            .map(|n| WorkerSeed::of_module(ACCOUNT_ID, &format!("w{n}"), CODE))
            .collect();
        let seed = Seed {
            workers,
            ..Seed::default()
        };
        stage.cloudflare.seed(&seed).unwrap();
        let more = stage.create(worker("more", json!({})));
        stage.says(&more, "False", "TerminalError").await;
        assert!(
            stage.user.message(&more).contains("limit of 100"),
            "{}",
            stage.user.message(&more)
        );
        let mark = stage.mark();
        stage.rest(HOUR).await;
        assert!(uploads(&stage, &mark) <= 3, "{} uploads", uploads(&stage, &mark));
    });
}

// Field case 82: code that does not start says why, and is not sent again and again.
#[test]
fn code_that_does_not_start_says_why() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(worker("web", json!({ "script": "const x = 1" })));
        stage.says(&id, "False", "TerminalError").await;
        assert!(stage.user.message(&id).contains("10068"), "{}", stage.user.message(&id));
        stage.user.edit_spec(&id, &json!({ "script": CODE }));
        stage.ready(&[id]).await;
    });
}

// Field case 87: without a date Cloudflare's oldest is taken, and stays.
#[test]
fn a_worker_without_a_date_is_not_uploaded_because_time_passes() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(worker("web", json!({})));
        stage.ready(&[id]).await;
        assert_eq!(settings(&stage, "web")["compatibility_date"], "2021-11-02");
        let mark = stage.mark();
        stage.rest(4 * 24 * HOUR).await;
        assert_eq!(uploads(&stage, &mark), 0);
    });
}

/// A reply that was lost does not make a second Worker, nor one that somebody made meanwhile ours.
#[test]
fn a_lost_reply_is_found_again() {
    play_in_zone(Plan::Free, |stage| async move {
        let route = "/accounts/{account_id}/workers/scripts/{script_name}";
        let lost = Fault::DropAfter { dropped: None };
        stage.fault_times(FaultMatch::route("PUT", route), lost, 1);
        let mark = stage.mark();
        // Of what is observed Cloudflare says more than it was told (found by a story).
        let spec = json!({ "compatibilityDate": "2026-01-31", "observability": { "enabled": true } });
        let id = stage.create(worker("web", spec));
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(uploads(&stage, &mark) <= 2);
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert!(stage.cloudflare.workers(ACCOUNT_ID).is_empty());
    });
}

/// A Worker that is uploaded and could then not be read is ours all the same: found by the count of mixed resources.
#[test]
fn a_create_of_several_calls_that_fails_halfway_is_found_again() {
    play_in_zone(Plan::Free, |stage| async move {
        for (code_of_http, code, times) in [(403, 10_000, 5), (500, 10_001, 5), (400, 10_021, 1)] {
            let route = "/accounts/{account_id}/workers/scripts/{script_name}/subdomain";
            stage.fault_times(FaultMatch::route("GET", route), status(code_of_http, code), times);
            let mark = stage.mark();
            let spec = json!({ "compatibilityDate": "2026-01-31", "schedules": ["0 3 * * *"] });
            let id = stage.create(worker("web", spec));
            stage.ready(std::slice::from_ref(&id)).await;
            // Its code cannot be read back, so it may be sent once more.
            assert!(uploads(&stage, &mark) <= 2, "{code_of_http}");
            stage.cloudflare.clear_faults();
            stage.user.delete(&id);
            stage.gone(&[id]).await;
            assert!(stage.cloudflare.workers(ACCOUNT_ID).is_empty());
        }
    });
}

// Field case 80.
#[test]
fn migrations_are_carried_out_once_and_go_on_from_where_the_worker_is() {
    play_in_zone(Plan::Free, |stage| async move {
        let room = |class: &str| json!([{ "name": "ROOM", "durableObject": { "className": class } }]);
        let first = json!({ "tag": "v1", "newSqliteClasses": ["Room"] });
        let code = "export class Room {}\nexport class Hall {}\nexport default { fetch() {} }";
        let spec = json!({ "script": code, "bindings": room("Room"), "migrations": [first] });
        let id = stage.create(worker("rooms", spec));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();

        // A change of the code carries out nothing again.
        stage.user.edit_spec(&id, &json!({ "script": format!("{code} // 2") }));
        stage.ready(std::slice::from_ref(&id)).await;
        // Nor does a second step carry out the first again: the class is there already.
        let second = json!({ "tag": "v2", "renamedClasses": [{ "from": "Room", "to": "Hall" }] });
        let change = json!({ "bindings": room("Hall"), "migrations": [first, second] });
        stage.user.edit_spec(&id, &change);
        stage.ready(std::slice::from_ref(&id)).await;
        let uploaded = |stage: &Stage| stage.cloudflare.workers(ACCOUNT_ID)[0]["etag"].clone();
        let before = uploaded(&stage);

        // Who has forgotten what was carried out is told, and nothing is uploaded.
        let third = json!({ "tag": "v3", "deletedClasses": ["Hall"] });
        let change = json!({ "script": code, "bindings": [], "migrations": [third] });
        stage.user.edit_spec(&id, &change);
        stage.says(&id, "False", "MigrationTagUnknown").await;
        assert!(stage.user.message(&id).contains("'v2'"), "{}", stage.user.message(&id));
        assert_eq!(uploaded(&stage), before);
        stage
            .user
            .edit_spec(&id, &json!({ "migrations": [first, second, third] }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_ne!(uploaded(&stage), before);
    });
}
