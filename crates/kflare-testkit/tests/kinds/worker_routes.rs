//! Worker routes. Field case 85.

use kflare_api::names;
use kflare_sim::{Plan, Seed, WorkerRouteSeed, WorkerSeed};
use kflare_testkit::{
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, NAMESPACE},
};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, annotated, play_in_zone, zone_id};
use crate::worker_stage::{CODE, SCRIPT, foreign, worker};

fn route(name: &str, spec: Value) -> Value {
    let mut whole =
        json!({ "zoneRef": { "name": ZONE }, "pattern": "example.com/*", "workerScriptRef": { "name": "web" } });
    json_patch::merge(&mut whole, &spec);
    json!({
        "apiVersion": names::API_VERSION, "kind": "WorkerRoute",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

fn routes(stage: &Stage) -> Vec<Value> {
    foreign(stage, "GET", &path(stage, ""), None)
        .as_array()
        .cloned()
        .unwrap()
}

fn path(stage: &Stage, below: &str) -> String {
    let zone = stage.cloudflare.zones()[0]["id"].as_str().unwrap().to_owned();
    format!("/zones/{zone}/workers/routes{below}")
}

/// Pattern and Worker of every route.
fn shown(stage: &Stage) -> Vec<(String, Option<String>)> {
    let mut all: Vec<_> = routes(stage)
        .iter()
        .map(|it| {
            (
                it["pattern"].as_str().unwrap().to_owned(),
                it["script"].as_str().map(str::to_owned),
            )
        })
        .collect();
    all.sort();
    all
}

fn leads(pattern: &str, script: Option<&str>) -> (String, Option<String>) {
    (pattern.to_owned(), script.map(str::to_owned))
}

async fn with_worker(stage: &Stage) -> ObjectId {
    let id = stage.create(worker("web", json!({})));
    stage.ready(std::slice::from_ref(&id)).await;
    id
}

fn seed(stage: &Stage, pattern: &str, script: Option<&str>) {
    let route = WorkerRouteSeed {
        zone: DOMAIN.into(),
        pattern: pattern.into(),
        script: script.map(str::to_owned),
    };
    let seed = Seed {
        worker_routes: vec![route],
        ..Seed::default()
    };
    stage.cloudflare.seed(&seed).unwrap();
}

// Create, no-op.
#[test]
fn a_route_leads_to_its_worker_or_to_none() {
    play_in_zone(Plan::Free, |stage| async move {
        let all = stage.create(route("all", json!({})));
        stage.says(&all, "False", "WorkerScriptNotFound").await;
        with_worker(&stage).await;
        let none = json!({ "pattern": "example.com/static/*", "workerScriptRef": null });
        let none = stage.create(route("none", none));
        stage.ready(&[all.clone(), none.clone()]).await;
        assert_eq!(
            shown(&stage),
            [leads("example.com/*", Some("web")), leads("example.com/static/*", None)]
        );
        let metadata = stage.status(&all)["cloudflareMetadata"].clone();
        assert_eq!(
            (&metadata["script"], metadata["zoneID"].as_str()),
            (&json!("web"), stage.recorded(&zone_id()).as_deref())
        );
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

// Update: the pattern may change, and so may the Worker.
#[test]
fn pattern_and_worker_change_in_place() {
    play_in_zone(Plan::Free, |stage| async move {
        with_worker(&stage).await;
        let other = stage.create(worker("other", json!({})));
        let id = stage.create(route("all", json!({})));
        stage.ready(&[id.clone(), other]).await;
        let recorded = stage.recorded(&id);
        let mark = stage.mark();
        stage.user.edit_spec(
            &id,
            &json!({ "pattern": "*.example.com/*", "workerScriptRef": { "name": "other" } }),
        );
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(shown(&stage), [leads("*.example.com/*", Some("other"))]);
        stage.user.edit_spec(&id, &json!({ "workerScriptRef": null }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(shown(&stage), [leads("*.example.com/*", None)]);
        assert_eq!(stage.recorded(&id), recorded);
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 2);
    });
}

// Drift.
#[test]
fn what_others_change_is_put_right() {
    play_in_zone(Plan::Free, |stage| async move {
        with_worker(&stage).await;
        let id = stage.create(route("all", json!({})));
        let none = stage.create(route(
            "none",
            json!({ "pattern": "example.com/s/*", "workerScriptRef": null }),
        ));
        stage.ready(&[id.clone(), none.clone()]).await;
        stage.rest(MINUTE).await;
        let at = |id| path(&stage, &format!("/{}", stage.recorded(id).unwrap()));
        foreign(
            &stage,
            "PUT",
            &at(&id),
            Some(json!({ "pattern": "example.com/theirs" })),
        );
        foreign(
            &stage,
            "PUT",
            &at(&none),
            Some(json!({ "pattern": "example.com/s/*", "script": "web" })),
        );
        let wanted = [leads("example.com/*", Some("web")), leads("example.com/s/*", None)];
        stage.until("put right", |stage| shown(stage) == wanted).await;
        stage.rest(MINUTE).await;
        assert!(
            stage.told(&id, "DriftCorrected", &["pattern", "script"]),
            "{:?}",
            stage.user.events(&id)
        );
        foreign(&stage, "DELETE", &at(&id), None);
        stage.until("made anew", |stage| shown(stage) == wanted).await;
    });
}

// Adoption and conflict. Field case 85: no loop between duplicate and not found.
#[test]
fn a_route_that_exists_is_left_alone_and_adopted_on_request() {
    play_in_zone(Plan::Free, |stage| async move {
        with_worker(&stage).await;
        let old = WorkerSeed::of_module(ACCOUNT_ID, "old", CODE);
        let workers = Seed {
            workers: vec![old],
            ..Seed::default()
        };
        stage.cloudflare.seed(&workers).unwrap();
        seed(&stage, "example.com/*", Some("old"));
        let before = routes(&stage);
        let mark = stage.mark();
        let id = stage.create(route("all", json!({})));
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&id).contains("script"),
            "{}",
            stage.user.message(&id)
        );
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(routes(&stage), before);
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(shown(&stage), [leads("example.com/*", Some("web"))]);
        assert_eq!(stage.recorded(&id).as_deref(), before[0]["id"].as_str());
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(routes(&stage).len(), 1, "adopted, so it stays");
        let none = json!({ "pattern": "example.com/none" });
        let none = stage.create(adopting(route("none", none), "adopt"));
        stage.says(&none, "False", "NothingToAdopt").await;
    });
}

#[test]
fn a_pattern_that_another_route_has_is_a_conflict() {
    play_in_zone(Plan::Free, |stage| async move {
        with_worker(&stage).await;
        let id = stage.create(route("all", json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        let twice = stage.create(route("twice", json!({})));
        stage.says(&twice, "False", "AlreadyClaimed").await;
        seed(&stage, "example.com/taken", None);
        let mark = stage.mark();
        stage.user.edit_spec(&id, &json!({ "pattern": "example.com/taken" }));
        stage.says(&id, "False", "PatternConflict").await;
        assert!(
            stage.user.message(&id).contains("no Worker"),
            "{}",
            stage.user.message(&id)
        );
        stage.rest(6 * HOUR).await;
        assert!(stage.since(&mark).cloudflare_writes().len() <= 3);
        stage.user.edit_spec(&id, &json!({ "pattern": "example.com/free" }));
        stage.ready(&[id]).await;
    });
}

#[test]
fn a_pattern_outside_of_the_zone_is_said() {
    play_in_zone(Plan::Free, |stage| async move {
        with_worker(&stage).await;
        let id = stage.create(route("all", json!({ "pattern": "example.org/*" })));
        stage.says(&id, "False", "InvalidSpec").await;
        assert!(
            stage.user.message(&id).contains("zone name"),
            "{}",
            stage.user.message(&id)
        );
        stage.user.edit_spec(&id, &json!({ "pattern": "example.com/*" }));
        stage.ready(&[id]).await;
    });
}

// Deletion and retention; a Worker and a zone wait for their routes.
#[test]
fn routes_go_before_what_they_belong_to() {
    play_in_zone(Plan::Free, |stage| async move {
        let worker = with_worker(&stage).await;
        let id = stage.create(route("all", json!({})));
        let stays = annotated(
            route("stays", json!({ "pattern": "example.com/s" })),
            names::DELETION_POLICY,
            "retain",
        );
        let stays = stage.create(stays);
        stage.ready(&[id.clone(), stays.clone()]).await;
        stage.user.delete(&worker);
        stage
            .until("in use", |stage| stage.user.ready(&worker).1 == "InUse")
            .await;
        stage.user.delete(&stays);
        stage.gone(&[stays]).await;
        assert_eq!(routes(&stage).len(), 2);
        stage.user.delete(&id);
        stage.gone(&[id, worker]).await;
        assert!(stage.cloudflare.workers(ACCOUNT_ID).is_empty());
        assert!(routes(&stage).is_empty(), "a Worker takes its routes along");
    });
}

/// Cloudflare deletes the routes of a Worker with it: they come back when it does.
#[test]
fn routes_come_back_with_their_worker() {
    play_in_zone(Plan::Free, |stage| async move {
        let worker = with_worker(&stage).await;
        let id = stage.create(route("all", json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(MINUTE).await;
        foreign(&stage, "DELETE", &format!("{SCRIPT}/web"), None);
        assert!(routes(&stage).is_empty());
        stage
            .until("back", |stage| shown(stage) == [leads("example.com/*", Some("web"))])
            .await;
        stage.ready(&[worker, id]).await;
    });
}
