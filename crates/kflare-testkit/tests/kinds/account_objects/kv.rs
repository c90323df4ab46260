//! KV namespaces. Field cases 95, 98.

use kflare_api::names;
use kflare_sim::{Fault, FaultMatch, ForeignCall};
use kflare_testkit::memory_api::ObjectId;
use serde_json::{Value, json};

use super::{delete, foreign, lost, manifest, path, play_in_account};
use crate::stage::{HOUR, MINUTE, Stage, adopting, annotated};

const ALL: &str = "/accounts/{account_id}/storage/kv/namespaces";
const ONE: &str = "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}";

fn namespace(name: &str, title: &str) -> Value {
    manifest("KVNamespace", name, &json!({ "title": title }))
}

fn titles(stage: &Stage) -> Vec<String> {
    let mut titles: Vec<String> = stage
        .cloudflare
        .kv_namespaces()
        .iter()
        .map(|it| it["title"].as_str().unwrap().to_owned())
        .collect();
    titles.sort();
    titles
}

fn id_of(stage: &Stage, id: &ObjectId) -> String {
    let metadata = stage.status(id)["cloudflareMetadata"].clone();
    metadata["namespaceID"].as_str().unwrap_or_default().to_owned()
}

fn theirs(stage: &Stage, title: &str) -> String {
    let call = ForeignCall::new("POST", path("/storage/kv/namespaces")).body(json!({ "title": title }));
    foreign(stage, call)["id"].as_str().unwrap().to_owned()
}

fn rename(stage: &Stage, id: &str, title: &str) {
    let call = ForeignCall::new("PUT", path(&format!("/storage/kv/namespaces/{id}")));
    foreign(stage, call.body(json!({ "title": title })));
}

#[test]
fn a_namespace_is_made_once_and_left_alone() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let id = stage.create(namespace("cache", "Cache of the shop"));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "title": "Cache of the shop" })));
        assert_eq!(stage.cloudflare.kv_namespaces()[0]["id"], id_of(&stage, &id));
        assert_eq!(
            stage.metadata(&id)["labels"][names::KV_NAMESPACE_ID],
            id_of(&stage, &id)
        );
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
        assert!(stage.user.is_ready(&id));
    });
}

#[test]
fn a_changed_title_renames_in_place() {
    play_in_account(|stage| async move {
        let id = stage.create(namespace("cache", "old"));
        stage.ready(std::slice::from_ref(&id)).await;
        let before = id_of(&stage, &id);
        let mark = stage.mark();
        stage.user.edit_spec(&id, &json!({ "title": "new" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(
            (writes[0].method.as_str(), writes[0].body.clone()),
            ("PUT", Some(json!({ "title": "new" })))
        );
        assert_eq!((titles(&stage), id_of(&stage, &id)), (vec!["new".to_owned()], before));
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

#[test]
fn a_title_that_others_changed_is_put_back_and_named() {
    play_in_account(|stage| async move {
        let id = stage.create(namespace("cache", "ours"));
        stage.ready(std::slice::from_ref(&id)).await;
        rename(&stage, &id_of(&stage, &id), "theirs");
        stage.until("put back", |stage| titles(stage) == ["ours"]).await;
        stage.rest(MINUTE).await;
        assert!(
            stage.told(&id, "DriftCorrected", &["title", "theirs", "ours"]),
            "{:?}",
            stage.user.events(&id)
        );
    });
}

// Field case 98.
#[test]
fn a_namespace_of_that_title_is_left_alone_and_adopted_only_when_asked() {
    play_in_account(|stage| async move {
        let existing = theirs(&stage, "app-cache");
        let mark = stage.mark();
        let id = stage.create(namespace("cache", "app-cache"));
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(stage.status(&id)["cloudflareMetadata"].is_null());
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(id_of(&stage, &id), existing);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Adopted");
        stage.since(&mark).assert_no_cloudflare_write();
        delete(&stage, &id).await;
        assert_eq!(titles(&stage), ["app-cache"], "what was adopted stays");
    });
}

#[test]
fn a_title_belongs_to_one_resource() {
    play_in_account(|stage| async move {
        let first = stage.create(namespace("first", "cache"));
        stage.ready(std::slice::from_ref(&first)).await;
        let second = stage.create(adopting(namespace("second", "cache"), "adopt"));
        stage.says(&second, "False", "AlreadyClaimed").await;
        assert!(stage.user.message(&second).contains("first"));
        delete(&stage, &second).await;
        assert_eq!(titles(&stage), ["cache"]);
        // Nor is it taken by a rename.
        let other = stage.create(namespace("other", "other"));
        stage.ready(std::slice::from_ref(&other)).await;
        stage.user.edit_spec(&other, &json!({ "title": "cache" }));
        stage.says(&other, "False", "AlreadyExists").await;
        assert_eq!(titles(&stage), ["cache", "other"]);
        assert!(stage.user.is_ready(&first));
        // The title is free again.
        delete(&stage, &first).await;
        stage.reconcile_no_wait(&other, "now");
        stage.ready(std::slice::from_ref(&other)).await;
        assert_eq!(titles(&stage), ["cache"]);
    });
}

#[test]
fn deletion_says_that_what_is_stored_goes_and_retain_keeps_it() {
    play_in_account(|stage| async move {
        let kept = stage.create(annotated(namespace("kept", "kept"), names::DELETION_POLICY, "retain"));
        let id = stage.create(namespace("cache", "cache"));
        stage.ready(&[kept.clone(), id.clone()]).await;
        delete(&stage, &kept).await;
        assert!(!stage.told(&kept, "DeletingMore", &[]), "nothing is destroyed");
        delete(&stage, &id).await;
        assert!(
            stage.told(&id, "DeletingMore", &["stored"]),
            "{:?}",
            stage.user.events(&id)
        );
        assert_eq!(titles(&stage), ["kept"]);
    });
}

/// Cloudflare does not say when a namespace was made.
#[test]
fn a_created_namespace_whose_answer_was_lost_is_found_again() {
    play_in_account(|stage| async move {
        stage.fault_times(FaultMatch::route("POST", ALL), lost(), 1);
        let id = stage.create(namespace("cache", "cache"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(titles(&stage), ["cache"]);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
        delete(&stage, &id).await;
        assert_eq!(titles(&stage), Vec::<String>::new(), "ours, so it goes");
    });
}

// Field case 95.
#[test]
fn a_namespace_that_lists_do_not_show_yet_is_not_made_twice() {
    play_in_account(|stage| async move {
        stage.cloudflare.mark("before");
        let stale = Fault::StaleList {
            seconds: None,
            mark: Some("before".to_owned()),
        };
        let fault = stage.fault(FaultMatch::route("GET", ALL), stale);
        let ids: Vec<ObjectId> = (0..4)
            .map(|n| stage.create(namespace(&format!("n{n}"), &format!("title {n}"))))
            .collect();
        stage.ready(&ids).await;
        let before: Vec<String> = ids.iter().map(|id| id_of(&stage, id)).collect();
        stage.rest(HOUR).await;
        assert_eq!(titles(&stage).len(), 4);
        stage.cloudflare.remove_fault(fault);
        stage.rest(HOUR).await;
        let after: Vec<String> = ids.iter().map(|id| id_of(&stage, id)).collect();
        assert_eq!((titles(&stage).len(), before), (4, after));
        assert!(ids.iter().all(|id| stage.times_told(id, "RemoteObjectGone") == 0));
    });
}

#[test]
fn a_namespace_deleted_by_hand_is_made_again_once() {
    play_in_account(|stage| async move {
        let id = stage.create(namespace("cache", "cache"));
        stage.ready(std::slice::from_ref(&id)).await;
        let before = id_of(&stage, &id);
        let gone = ForeignCall::new("DELETE", path(&format!("/storage/kv/namespaces/{before}")));
        foreign(&stage, gone);
        stage
            .until("made again", |stage| {
                titles(stage) == ["cache"] && id_of(stage, &id) != before && stage.user.is_ready(&id)
            })
            .await;
        assert!(stage.told(&id, "RemoteObjectGone", &[]), "{:?}", stage.user.events(&id));
        // Gone before its resource, it is no obstacle.
        let now = id_of(&stage, &id);
        foreign(
            &stage,
            ForeignCall::new("DELETE", path(&format!("/storage/kv/namespaces/{now}"))),
        );
        delete(&stage, &id).await;
    });
}

#[test]
fn many_namespaces_cost_a_list_a_check() {
    play_in_account(|stage| async move {
        let ids: Vec<ObjectId> = (0..50)
            .map(|n| stage.create(namespace(&format!("n{n}"), &format!("title {n}"))))
            .collect();
        stage.ready(&ids).await;
        stage.rest(30 * MINUTE).await;
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let alone = since
            .calls
            .iter()
            .filter(|call| call.route.as_deref() == Some(ONE))
            .count();
        let lists = since
            .calls
            .iter()
            .filter(|call| call.route.as_deref() == Some(ALL))
            .count();
        assert_eq!(alone, 0);
        assert!(
            (4..=8).contains(&lists),
            "{lists} lists in an hour of checks every ten minutes"
        );
    });
}
