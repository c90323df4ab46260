//! Resources that the API server removes although it has just acknowledged our finalizer (kubernetes/kubernetes#77988): what is
//! being made for them goes as well, by the deletion policy, and nothing else does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kflare_api::names;
use kflare_sim::{Dropped, Fault, FaultMatch, Plan, Totals};
use kflare_testkit::memory_api::{Fault as ApiFault, FaultRule, ObjectId, RequestInfo, WatchCut};
use kflare_testkit::simulation::{ACCOUNT_ID, NAMESPACE, User};
use kflare_testkit::story::Holdings;
use serde_json::{Value, json};

use crate::stage::{MINUTE, Mark, RECORDS, Stage, adopting, annotated, play_in_zone, record, status, zone};
use crate::worker_stage::worker;

fn spec() -> Value {
    json!({ "name": "x", "type": "A", "content": "192.0.2.1" })
}

/// A delete that read the resource `name` before its first finalizer takes effect right after it.
fn overtake(stage: &Stage, name: &'static str) {
    let announces = move |request: &RequestInfo| request.writes() && request.name.as_deref() == Some(name);
    stage
        .world
        .api
        .inject(FaultRule::new(ApiFault::Overtake(Duration::from_millis(500)), announces).times(1));
}

async fn vanishes(stage: &Stage, manifest: Value) -> ObjectId {
    overtake(stage, "x");
    let id = stage.create(manifest);
    stage.gone(std::slice::from_ref(&id)).await;
    assert_eq!(stage.world.api.overtaken().len(), 1, "by the race and by nothing else");
    id
}

/// Calls that create records.
fn creates(stage: &Stage, since: &Mark) -> usize {
    let writes = stage.since(since).calls;
    writes.iter().filter(|call| call.method == "POST").count()
}

#[test]
fn what_was_being_made_for_it_goes() {
    play_in_zone(Plan::Pro, |stage| async move {
        // The create takes so long that the watch says first that the resource is gone.
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        let mark = stage.mark();
        let id = vanishes(&stage, record("x", spec())).await;
        stage.rest(MINUTE).await;
        assert_eq!(creates(&stage, &mark), 1, "the case was met");
        assert!(stage.records().is_empty(), "{:#?}", stage.records());
        assert!(stage.told(&id, "Deleted", &[]), "{:?}", stage.user.events(&id));
        // One of the same name is no worse off.
        let again = stage.record("x", spec());
        stage.ready(&[again]).await;
        assert_eq!(stage.records().len(), 1);
    });
}

#[test]
fn nothing_is_made_for_it_once_it_is_known_to_be_gone() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mark = stage.mark();
        let writes = |request: &RequestInfo| request.writes() && request.name.as_deref() == Some("x");
        // Already gone when our own write is answered.
        let rule = FaultRule::new(ApiFault::Overtake(Duration::ZERO), writes);
        stage.world.api.inject(rule.times(1));
        let id = stage.record("x", spec());
        stage.gone(std::slice::from_ref(&id)).await;
        stage.rest(MINUTE).await;
        assert_eq!(stage.world.api.overtaken().len(), 1);
        assert_eq!(creates(&stage, &mark), 0);
        // What is made after it, and just the same, is not its.
        stage.foreign(&spec());
        stage.rest(10 * MINUTE).await;
        assert_eq!(stage.records().len(), 1);
    });
}

/// What it needs to be cleared up stays as long: its zone, and its account.
#[test]
fn an_account_that_is_deleted_meanwhile_waits_for_it() {
    play_in_zone(Plan::Pro, |stage| async move {
        let namespaces = "/accounts/{account_id}/storage/kv/namespaces";
        stage.fault_times(FaultMatch::route("POST", namespaces), Fault::Delay { ms: 5000 }, 1);
        let manifest = json!({
            "apiVersion": names::API_VERSION, "kind": "KVNamespace",
            "metadata": { "name": "x", "namespace": NAMESPACE },
            "spec": { "accountRef": { "name": "main" }, "title": "sessions" },
        });
        vanishes(&stage, manifest).await;
        stage.user.delete_all();
        stage.gone(&[User::account_id(), User::secret_id()]).await;
        let left = Holdings::of(&stage.cloudflare);
        assert_eq!(left.stores.len() + left.zones.len(), 0, "{left:#?}");
    });
}

/// All that a new list tells is that another has its name now.
#[test]
fn it_goes_when_another_has_taken_its_name_before_anybody_said_so() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        let first = AtomicBool::new(true);
        stage.world.api.before_each(move |api, request| {
            let writes = request.writes() && request.name.as_deref() == Some("x");
            if writes && first.swap(false, Ordering::Relaxed) {
                api.cut_watches("dnsrecords.kflare.dev", WatchCut::Gone);
            }
        });
        vanishes(&stage, record("x", spec())).await;
        let other = json!({ "name": "other", "type": "A", "content": "192.0.2.2" });
        let again = stage.record("x", other);
        stage.ready(std::slice::from_ref(&again)).await;
        stage.until("taken back", |stage| stage.records().len() == 1).await;
        assert_eq!(stage.records()[0]["name"], "other.example.com");
    });
}

/// Lists that are behind do not hide it (found by a story).
#[test]
fn it_goes_by_the_id_that_the_create_was_answered_with() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        let empty = Fault::EmptyList { totals: Totals::Zero };
        stage.fault(FaultMatch::route("GET", RECORDS), empty);
        vanishes(&stage, record("x", spec())).await;
        stage.until("taken back", |stage| stage.records().is_empty()).await;
    });
}

/// Workers are known by their list only, which may be behind as well (found by a story).
#[test]
fn it_is_looked_for_as_long_as_it_may_come_to_light() {
    play_in_zone(Plan::Pro, |stage| async move {
        let script = "/accounts/{account_id}/workers/scripts/{script_name}";
        stage.fault_times(FaultMatch::route("PUT", script), Fault::Delay { ms: 5000 }, 1);
        let empty = Fault::EmptyList { totals: Totals::Zero };
        let empty = stage.fault(
            FaultMatch::route("GET", "/accounts/{account_id}/workers/scripts"),
            empty,
        );
        vanishes(&stage, worker("x", json!({}))).await;
        stage.rest(MINUTE).await;
        assert_eq!(stage.cloudflare.workers(ACCOUNT_ID).len(), 1, "the case is met");
        stage.cloudflare.remove_fault(empty);
        stage.rest(MINUTE).await;
        assert!(stage.cloudflare.workers(ACCOUNT_ID).is_empty());
    });
}

#[test]
fn it_goes_although_nobody_heard_that_it_was_made() {
    for dropped in [Dropped::Hang, Dropped::Reset] {
        play_in_zone(Plan::Pro, |stage| async move {
            let lost = Fault::DropAfter { dropped: Some(dropped) };
            stage.fault_times(FaultMatch::route("POST", RECORDS), lost, 1);
            vanishes(&stage, record("x", spec())).await;
            stage.until("taken back", |stage| stage.records().is_empty()).await;
        });
    }
}

#[test]
fn it_goes_when_cloudflare_lets_it_go_and_one_of_the_same_name_does_not_wait() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        stage.fault_times(FaultMatch::path("DELETE", "."), status(500, 10_000), 3);
        vanishes(&stage, record("x", spec())).await;
        let other = json!({ "name": "other", "type": "A", "content": "192.0.2.2" });
        let again = stage.record("x", other);
        stage.ready(std::slice::from_ref(&again)).await;
        stage.until("taken back", |stage| stage.records().len() == 1).await;
        assert_eq!(stage.records()[0]["name"], "other.example.com");
    });
}

#[test]
fn it_goes_when_a_watch_was_cut_and_only_a_list_tells() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        stage.world.api.before_each(|api, request| {
            if request.writes() && request.name.as_deref() == Some("x") {
                api.cut_watches("dnsrecords.kflare.dev", WatchCut::Gone);
            }
        });
        vanishes(&stage, record("x", spec())).await;
        stage.until("taken back", |stage| stage.records().is_empty()).await;
    });
}

#[test]
fn what_the_policy_keeps_is_kept() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        let manifest = annotated(record("x", spec()), names::DELETION_POLICY, "retain");
        let id = vanishes(&stage, manifest).await;
        stage.rest(5 * MINUTE).await;
        assert_eq!(stage.records().len(), 1);
        assert!(stage.told(&id, "Kept", &[]), "{:?}", stage.user.events(&id));
    });
}

#[test]
fn what_others_made_meanwhile_stays() {
    play_in_zone(Plan::Pro, |stage| async move {
        let lost = Fault::DropBefore {
            dropped: Some(Dropped::Hang),
        };
        stage.fault_times(FaultMatch::route("POST", RECORDS), lost, 1);
        let mark = stage.mark();
        vanishes(&stage, record("x", spec())).await;
        stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.77" }));
        stage.rest(10 * MINUTE).await;
        assert_eq!(creates(&stage, &mark), 1, "one that never arrived");
        assert_eq!(stage.records().len(), 1);
    });
}

#[test]
fn a_zone_goes_too() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", "/zones"), Fault::Delay { ms: 5000 }, 1);
        vanishes(&stage, zone("x", json!({ "name": "example.org" }))).await;
        stage
            .until("taken back", |stage| stage.cloudflare.zones().len() == 1)
            .await;
    });
}

/// Who would adopt it waits until it is gone (found by a story).
#[test]
fn nobody_takes_over_what_is_still_to_go() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", RECORDS), Fault::Delay { ms: 5000 }, 1);
        stage.fault_times(FaultMatch::path("DELETE", "."), status(500, 10_000), 1);
        vanishes(&stage, record("x", spec())).await;
        stage.until("made", |stage| stage.records().len() == 1).await;
        let other = stage.create(adopting(record("y", spec()), "adopt"));
        stage.says(&other, "False", "AlreadyClaimed").await;
        stage.says(&other, "False", "NothingToAdopt").await;
        assert!(stage.records().is_empty());
        assert_eq!(stage.recorded(&other), None);
    });
}
