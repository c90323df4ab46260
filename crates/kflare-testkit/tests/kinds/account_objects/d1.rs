//! D1 databases. Field cases 96, 98, 105.

use kflare_api::names;
use kflare_sim::{FaultMatch, ForeignCall};
use kflare_testkit::memory_api::ObjectId;
use serde_json::{Value, json};

use super::{delete, foreign, lost, manifest, path, play_in_account};
use crate::stage::{HOUR, MINUTE, Stage, annotated};

const ALL: &str = "/accounts/{account_id}/d1/database";
const ONE: &str = "/accounts/{account_id}/d1/database/{database_id}";

fn database(name: &str, spec: &Value) -> Value {
    let mut whole = json!({ "name": name });
    json_patch::merge(&mut whole, spec);
    manifest("D1Database", name, &whole)
}

fn remote(stage: &Stage) -> Value {
    let mut all = stage.cloudflare.d1_databases();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn metadata(stage: &Stage, id: &ObjectId) -> Value {
    stage.status(id)["cloudflareMetadata"].clone()
}

fn theirs(stage: &Stage, body: Value) -> Value {
    foreign(stage, ForeignCall::new("POST", path("/d1/database")).body(body))
}

// Field case 96.
#[test]
fn a_database_is_made_from_what_is_set_and_left_alone() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let id = stage.create(database("app", &json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "name": "app" })));
        let told = metadata(&stage, &id);
        assert_eq!(told["databaseID"], remote(&stage)["uuid"]);
        assert_eq!(
            (&told["version"], &told["region"]),
            (&json!("production"), &json!("ENAM"))
        );
        assert_eq!(stage.metadata(&id)["labels"][names::D1_DATABASE_ID], told["databaseID"]);
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

#[test]
fn all_fields_are_sent_and_need_no_change() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let spec = json!({ "jurisdiction": "eu", "locationHint": "apac", "readReplication": { "mode": "auto" } });
        let id = stage.create(database("app", &spec));
        stage.ready(&[id]).await;
        let body = json!({
            "name": "app", "jurisdiction": "eu", "primary_location_hint": "apac", "read_replication": { "mode": "auto" },
        });
        assert_eq!(stage.since(&mark).cloudflare_writes()[0].body, Some(body));
        stage.rest(24 * HOUR).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
    });
}

#[test]
fn replicas_are_changed_and_put_back() {
    play_in_account(|stage| async move {
        let id = stage.create(database("app", &json!({ "readReplication": { "mode": "disabled" } })));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "readReplication": { "mode": "auto" } }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "read_replication": { "mode": "auto" } })));
        let one = format!("/d1/database/{}", remote(&stage)["uuid"].as_str().unwrap());
        let disable = ForeignCall::new("PATCH", path(&one)).body(json!({ "read_replication": { "mode": "disabled" } }));
        foreign(&stage, disable);
        stage
            .until("put back", |stage| remote(stage)["read_replication"]["mode"] == "auto")
            .await;
        stage.rest(MINUTE).await;
        let words = ["read_replication", "disabled", "auto"];
        assert!(
            stage.told(&id, "DriftCorrected", &words),
            "{:?}",
            stage.user.events(&id)
        );
    });
}

// Field case 98.
#[test]
fn a_database_of_that_name_is_left_alone_and_adopted_only_when_asked() {
    play_in_account(|stage| async move {
        theirs(&stage, json!({ "name": "app-2" }));
        let existing = theirs(&stage, json!({ "name": "app" }))["uuid"].clone();
        let mark = stage.mark();
        let id = stage.create(database("app", &json!({})));
        stage.says(&id, "False", "AlreadyExists").await;
        stage.rest(3 * HOUR).await;
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(metadata(&stage, &id)["databaseID"], existing);
        assert_eq!(metadata(&stage, &id)["region"], "ENAM");
        delete(&stage, &id).await;
        assert_eq!(stage.cloudflare.d1_databases().len(), 2, "what was adopted stays");
    });
}

/// A database in another jurisdiction cannot be moved, and is never replaced: that would destroy what is in it.
#[test]
fn a_database_of_another_jurisdiction_is_not_replaced() {
    play_in_account(|stage| async move {
        let existing = theirs(&stage, json!({ "name": "app", "jurisdiction": "us" }))["uuid"].clone();
        let mark = stage.mark();
        let manifest = database("app", &json!({ "jurisdiction": "eu" }));
        let id = stage.create(crate::stage::adopting(manifest, "adopt"));
        stage.says(&id, "False", "TerminalError").await;
        assert!(
            stage.user.message(&id).contains("jurisdiction"),
            "{}",
            stage.user.message(&id)
        );
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(remote(&stage)["uuid"], existing);
    });
}

#[test]
fn deletion_says_that_what_is_stored_goes_and_retain_keeps_it() {
    play_in_account(|stage| async move {
        let kept = stage.create(annotated(
            database("kept", &json!({})),
            names::DELETION_POLICY,
            "retain",
        ));
        let id = stage.create(database("app", &json!({})));
        stage.ready(&[kept.clone(), id.clone()]).await;
        delete(&stage, &kept).await;
        delete(&stage, &id).await;
        assert!(
            stage.told(&id, "DeletingMore", &["stored"]),
            "{:?}",
            stage.user.events(&id)
        );
        assert_eq!(remote(&stage)["name"], "kept");
    });
}

#[test]
fn a_created_database_whose_answer_was_lost_is_found_again() {
    play_in_account(|stage| async move {
        stage.fault_times(FaultMatch::route("POST", ALL), lost(), 1);
        let mark = stage.mark();
        let id = stage.create(database("app", &json!({ "readReplication": { "mode": "auto" } })));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1, "no second POST");
        assert_eq!(metadata(&stage, &id)["databaseID"], remote(&stage)["uuid"]);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
    });
}

// Field case 105.
#[test]
fn an_account_that_is_full_is_not_asked_again_and_again() {
    play_in_account(|stage| async move {
        let ids: Vec<ObjectId> = (0..10)
            .map(|n| stage.create(database(&format!("d{n}"), &json!({}))))
            .collect();
        stage.ready(&ids).await;
        let mark = stage.mark();
        let surplus = stage.create(database("surplus", &json!({})));
        stage.says(&surplus, "False", "TerminalError").await;
        assert!(
            stage.user.message(&surplus).contains("7406"),
            "{}",
            stage.user.message(&surplus)
        );
        stage.rest(6 * HOUR).await;
        let tries = stage.since(&mark).cloudflare_writes().len();
        assert!(tries <= 6, "{tries} tries in six hours");
        assert!(ids.iter().all(|id| stage.user.is_ready(id)));
        delete(&stage, &ids[0]).await;
        stage.reconcile_no_wait(&surplus, "room");
        stage.ready(&[surplus]).await;
    });
}

/// Lists do not tell the replicas: only those databases are asked for alone whose spec sets them.
#[test]
fn databases_in_numbers_are_listed_and_keep_their_region() {
    play_in_account(|stage| async move {
        let mut ids: Vec<ObjectId> = (0..8)
            .map(|n| stage.create(database(&format!("d{n}"), &json!({}))))
            .collect();
        ids.push(stage.create(database(
            "replicated",
            &json!({ "readReplication": { "mode": "auto" } }),
        )));
        stage.ready(&ids).await;
        stage.reconcile(&ids, "1").await;
        for id in &ids {
            assert_eq!(metadata(&stage, id)["region"], "ENAM");
        }
        stage.rest(30 * MINUTE).await;
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let count = |route: &str| {
            since
                .calls
                .iter()
                .filter(|call| call.route.as_deref() == Some(route))
                .count()
        };
        assert!((4..=8).contains(&count(ALL)), "{} lists in an hour", count(ALL));
        assert!((4..=8).contains(&count(ONE)), "{} single looks in an hour", count(ONE));
    });
}
