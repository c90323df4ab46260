//! Queues.

use kflare_api::names;
use kflare_sim::{FaultMatch, ForeignCall};
use kflare_testkit::memory_api::ObjectId;
use serde_json::{Value, json};

use super::{delete, foreign, lost, manifest, path, play_in_account};
use crate::stage::{HOUR, MINUTE, Stage, adopting, annotated, status};
use crate::worker_stage::{settings as worker_settings, worker};

const ALL: &str = "/accounts/{account_id}/queues";
const ONE: &str = "/accounts/{account_id}/queues/{queue_id}";

fn queue(name: &str, spec: &Value) -> Value {
    let mut whole = json!({ "name": name });
    json_patch::merge(&mut whole, spec);
    manifest("Queue", name, &whole)
}

fn remote(stage: &Stage) -> Value {
    let mut all = stage.cloudflare.queues();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn id_of(stage: &Stage, id: &ObjectId) -> Value {
    stage.status(id)["cloudflareMetadata"]["queueID"].clone()
}

fn theirs(stage: &Stage, body: Value) -> Value {
    foreign(stage, ForeignCall::new("POST", path("/queues")).body(body))
}

fn meddle(stage: &Stage, body: Value) {
    let one = format!("/queues/{}", remote(stage)["queue_id"].as_str().unwrap());
    foreign(stage, ForeignCall::new("PATCH", path(&one)).body(body));
}

#[test]
fn a_queue_is_made_from_what_is_set_and_left_alone() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let id = stage.create(queue("jobs", &json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "queue_name": "jobs" })));
        assert_eq!(id_of(&stage, &id), remote(&stage)["queue_id"]);
        assert_eq!(stage.metadata(&id)["labels"][names::QUEUE_ID], id_of(&stage, &id));
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
        // What the spec leaves out is not ours.
        meddle(
            &stage,
            json!({ "settings": { "delivery_delay": 7, "delivery_paused": true } }),
        );
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

/// The law: what was written, read back, needs no change.
#[test]
fn all_fields_are_sent_and_need_no_change() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let spec = json!({
            "jurisdiction": "eu", "deliveryDelaySeconds": 5, "messageRetentionSeconds": 600, "deliveryPaused": true,
        });
        let id = stage.create(queue("jobs", &spec));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let bodies: Vec<_> = since.cloudflare_writes().iter().map(|it| it.body.clone()).collect();
        let settings = json!({ "delivery_delay": 5, "message_retention_period": 600 });
        let whole = json!({ "delivery_delay": 5, "message_retention_period": 600, "delivery_paused": true });
        assert_eq!(
            bodies,
            [
                Some(json!({ "queue_name": "jobs", "jurisdiction": "eu", "settings": settings })),
                Some(json!({ "settings": whole })),
            ],
            "a queue cannot be made paused"
        );
        assert_eq!(remote(&stage)["settings"], whole);
        let mark = stage.mark();
        stage.reconcile(std::slice::from_ref(&id), "now").await;
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

#[test]
fn what_is_the_default_need_not_be_written() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let spec = json!({ "deliveryDelaySeconds": 0, "messageRetentionSeconds": 86400, "deliveryPaused": false });
        let id = stage.create(queue("jobs", &spec));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(24 * HOUR).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
    });
}

#[test]
fn a_changed_setting_is_one_write_that_carries_the_others_along() {
    play_in_account(|stage| async move {
        let id = stage.create(queue("jobs", &json!({ "deliveryDelaySeconds": 5 })));
        stage.ready(std::slice::from_ref(&id)).await;
        meddle(&stage, json!({ "settings": { "message_retention_period": 600 } }));
        let mark = stage.mark();
        stage.user.edit_spec(&id, &json!({ "deliveryDelaySeconds": 6 }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        let all = json!({ "delivery_delay": 6, "message_retention_period": 600 });
        assert_eq!(
            (writes[0].method.as_str(), writes[0].body.clone()),
            ("PATCH", Some(json!({ "settings": all })))
        );
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

#[test]
fn what_others_change_is_put_back_and_named() {
    play_in_account(|stage| async move {
        let id = stage.create(queue("jobs", &json!({ "deliveryPaused": false })));
        stage.ready(std::slice::from_ref(&id)).await;
        meddle(&stage, json!({ "settings": { "delivery_paused": true } }));
        stage
            .until("delivered again", |stage| {
                remote(stage)["settings"]["delivery_paused"] == false
            })
            .await;
        stage.rest(MINUTE).await;
        let words = ["delivery_paused", "true", "false"];
        assert!(
            stage.told(&id, "DriftCorrected", &words),
            "{:?}",
            stage.user.events(&id)
        );
        meddle(&stage, json!({ "queue_name": "theirs" }));
        stage
            .until("named as before", |stage| remote(stage)["queue_name"] == "jobs")
            .await;
        stage.rest(MINUTE).await;
        let words = ["queue_name", "theirs", "jobs"];
        assert!(
            stage.told(&id, "DriftCorrected", &words),
            "{:?}",
            stage.user.events(&id)
        );
        assert_eq!(remote(&stage)["queue_id"], id_of(&stage, &id));
    });
}

#[test]
fn a_queue_of_that_name_is_left_alone_and_adopted_only_when_asked() {
    play_in_account(|stage| async move {
        let existing = theirs(&stage, json!({ "queue_name": "jobs" }))["queue_id"].clone();
        let mark = stage.mark();
        let id = stage.create(queue("jobs", &json!({ "messageRetentionSeconds": 600 })));
        stage.says(&id, "False", "AlreadyExists").await;
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
        assert_eq!(remote(&stage)["settings"]["message_retention_period"], 600);
        assert_eq!(id_of(&stage, &id), existing);
        let second = stage.create(adopting(
            manifest("Queue", "second", &json!({ "name": "jobs" })),
            "adopt",
        ));
        stage.says(&second, "False", "AlreadyClaimed").await;
        delete(&stage, &second).await;
        delete(&stage, &id).await;
        assert_eq!(remote(&stage)["queue_id"], existing, "what was adopted stays");
    });
}

/// It cannot be moved, and is never replaced: that would destroy what is in it.
#[test]
fn a_queue_of_another_jurisdiction_is_not_replaced() {
    play_in_account(|stage| async move {
        let existing = theirs(&stage, json!({ "queue_name": "jobs", "jurisdiction": "us" }))["queue_id"].clone();
        let mark = stage.mark();
        let id = stage.create(adopting(queue("jobs", &json!({ "jurisdiction": "eu" })), "adopt"));
        stage.says(&id, "False", "TerminalError").await;
        let message = stage.user.message(&id);
        assert!(message.contains("jurisdiction"), "{message}");
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(remote(&stage)["queue_id"], existing);
    });
}

#[test]
fn deletion_says_that_messages_go_and_retain_keeps_them() {
    play_in_account(|stage| async move {
        let kept = stage.create(annotated(queue("kept", &json!({})), names::DELETION_POLICY, "retain"));
        let id = stage.create(queue("jobs", &json!({})));
        stage.ready(&[kept.clone(), id.clone()]).await;
        delete(&stage, &kept).await;
        delete(&stage, &id).await;
        assert!(
            stage.told(&id, "DeletingMore", &["message"]),
            "{:?}",
            stage.user.events(&id)
        );
        assert_eq!(remote(&stage)["queue_name"], "kept");
    });
}

#[test]
fn a_queue_that_gets_the_events_of_a_bucket_stays_and_says_so() {
    play_in_account(|stage| async move {
        let id = stage.create(queue("jobs", &json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        let fault = stage.fault(FaultMatch::route("DELETE", ONE), status(400, 11_017));
        stage.user.delete(&id);
        stage.says(&id, "False", "InUse").await;
        stage.cloudflare.remove_fault(fault);
        stage.gone(std::slice::from_ref(&id)).await;
        assert_eq!(stage.cloudflare.queues(), Vec::<Value>::new());
    });
}

#[test]
fn a_created_queue_whose_answer_was_lost_is_found_again() {
    play_in_account(|stage| async move {
        stage.fault_times(FaultMatch::route("POST", ALL), lost(), 1);
        let mark = stage.mark();
        let spec = json!({ "jurisdiction": "us", "deliveryDelaySeconds": 5, "deliveryPaused": true });
        let id = stage.create(queue("jobs", &spec));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let methods: Vec<_> = since.cloudflare_writes().iter().map(|it| it.method.clone()).collect();
        assert_eq!(methods, ["POST", "PATCH"], "no second POST");
        assert_eq!(id_of(&stage, &id), remote(&stage)["queue_id"]);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Created");
        assert_eq!(remote(&stage)["settings"]["delivery_paused"], true);
    });
}

#[test]
fn a_queue_deleted_by_hand_is_made_again_once() {
    play_in_account(|stage| async move {
        let id = stage.create(queue("jobs", &json!({ "deliveryDelaySeconds": 5 })));
        stage.ready(std::slice::from_ref(&id)).await;
        let before = id_of(&stage, &id);
        let one = |id: &Value| path(&format!("/queues/{}", id.as_str().unwrap()));
        foreign(&stage, ForeignCall::new("DELETE", one(&before)));
        stage
            .until("made again", |stage| {
                id_of(stage, &id) != before && !stage.cloudflare.queues().is_empty() && stage.user.is_ready(&id)
            })
            .await;
        assert!(stage.told(&id, "RemoteObjectGone", &[]), "{:?}", stage.user.events(&id));
        assert_eq!(remote(&stage)["settings"]["delivery_delay"], 5);
        // Gone before its resource, it is no obstacle.
        foreign(&stage, ForeignCall::new("DELETE", one(&id_of(&stage, &id))));
        delete(&stage, &id).await;
    });
}

#[test]
fn what_the_plan_does_not_allow_is_said_and_not_asked_again_and_again() {
    play_in_account(|stage| async move {
        let mark = stage.mark();
        let id = stage.create(queue("jobs", &json!({ "messageRetentionSeconds": 1_209_600 })));
        stage.says(&id, "False", "InvalidSpec").await;
        let message = stage.user.message(&id);
        assert!(message.contains("100128"), "{message}");
        stage.rest(6 * HOUR).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
        stage.user.edit_spec(&id, &json!({ "messageRetentionSeconds": 86400 }));
        stage.ready(std::slice::from_ref(&id)).await;
    });
}

/// Lists do not tell the settings. Cloudflare's time of the last change says whether they have to be read.
#[test]
fn many_queues_cost_a_list_a_check_and_a_changed_one_a_look() {
    play_in_account(|stage| async move {
        let ids: Vec<ObjectId> = (0..50)
            .map(|n| stage.create(queue(&format!("q{n}"), &json!({ "deliveryDelaySeconds": n }))))
            .collect();
        stage.ready(&ids).await;
        stage.rest(30 * MINUTE).await;
        let count = |mark: &crate::stage::Mark, route: &str| {
            let calls = stage.since(mark).calls;
            calls.iter().filter(|call| call.route.as_deref() == Some(route)).count()
        };
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();
        let (lists, alone) = (count(&mark, ALL), count(&mark, ONE));
        assert!(
            (4..=8).contains(&lists),
            "{lists} lists in an hour of checks every ten minutes"
        );
        assert_eq!(alone, 0);
        let one = path(&format!("/queues/{}", id_of(&stage, &ids[7]).as_str().unwrap()));
        let change = ForeignCall::new("PATCH", one).body(json!({ "settings": { "delivery_delay": 99 } }));
        let mark = stage.mark();
        foreign(&stage, change);
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.cloudflare_writes());
        assert!(count(&mark, ONE) <= 4, "{} looks", count(&mark, ONE));
    });
}

#[test]
fn a_worker_waits_for_the_queue_it_sends_to_and_the_queue_for_the_worker_that_sends() {
    play_in_account(|stage| async move {
        let spec = json!({ "bindings": [{ "name": "JOBS", "queueRef": { "name": "jobs" } }] });
        let web = stage.create(worker("web", spec));
        stage.says(&web, "False", "QueueNotFound").await;
        let mark = stage.mark();
        let jobs = stage.create(queue("jobs", &json!({})));
        stage.ready(&[web.clone(), jobs.clone()]).await;
        let bindings = worker_settings(&stage, "web")["bindings"].clone();
        assert_eq!(
            bindings,
            json!([{ "name": "JOBS", "type": "queue", "queue_name": "jobs" }])
        );
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 2, "one each");
        stage.user.delete(&jobs);
        stage.says(&jobs, "False", "InUse").await;
        assert!(stage.user.message(&jobs).contains("web"));
        delete(&stage, &web).await;
        stage.gone(&[jobs]).await;
        assert_eq!(stage.cloudflare.queues(), Vec::<Value>::new());
    });
}
