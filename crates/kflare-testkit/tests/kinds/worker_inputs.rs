//! Secrets and ConfigMaps that specs read: missing, there, changed, changed while nobody looked, and never told.

use kflare_sim::Plan;
use kflare_testkit::{
    memory_api::{ObjectId, WatchCut},
    simulation::ControllerOptions,
};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, annotated, play, play_in_zone, status, zone_id};
use crate::worker_stage::{CODE, base64, config_map, secret, stored, text_of, uploads, worker};

fn bound() -> Value {
    json!({ "bindings": [{ "name": "KEY", "secretKeyRef": { "name": "keys", "key": "api" } }] })
}

fn keys(text: &str) -> Value {
    secret("keys", &json!({ "api": text }))
}

fn edit_secret(stage: &Stage, id: &ObjectId, key: &str, text: &str) {
    stage.user.edit(id, |secret| secret["data"][key] = json!(base64(text)));
}

#[test]
fn what_is_missing_is_waited_for_and_noticed_at_once() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(worker("web", bound()));
        stage.says(&id, "False", "SecretNotFound").await;
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let calls = stage.since(&mark).calls;
        assert!(!calls.iter().any(|call| call.path.contains("/workers/")), "{calls:#?}");
        let keys = stage.create(secret("keys", &json!({ "other": "x" })));
        stage.says(&id, "False", "SecretKeyMissing").await;
        let began = stage.seconds();
        edit_secret(&stage, &keys, "api", "first");
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(stage.seconds() - began < 10, "{} s", stage.seconds() - began);
        assert_eq!(text_of(&stage, "web", "KEY"), "first");

        let code = json!({ "script": null, "scriptConfigMapRef": { "name": "code", "key": "index.js" } });
        let from_map = stage.create(worker("mapped", code));
        stage.says(&from_map, "False", "ConfigMapNotFound").await;
        let map = stage.create(config_map("code", json!({}), json!({})));
        stage.says(&from_map, "False", "ConfigMapKeyMissing").await;
        stage.user.edit(&map, |map| map["data"]["index.js"] = json!(CODE));
        stage.ready(&[from_map]).await;
        assert_eq!(stored(&stage, "mapped").unwrap()["modules"][0]["body"]["text"], CODE);
    });
}

// Found by a story: that was noticed only where kflare had seen an earlier change of it.
#[test]
fn what_was_there_first_and_goes_is_missed_also_when_no_watch_tells() {
    play_in_zone(Plan::Free, |stage| async move {
        let keys_id = stage.create(keys("first"));
        let map = stage.create(config_map("code", json!({ "index.js": CODE }), json!({})));
        let mut spec = bound();
        spec["script"] = Value::Null;
        spec["scriptConfigMapRef"] = json!({ "name": "code", "key": "index.js" });
        let id = stage.create(worker("web", spec));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.delete(&keys_id);
        stage.says(&id, "False", "SecretNotFound").await;
        stage.create(keys("first"));
        stage.ready(std::slice::from_ref(&id)).await;
        for (gone, resource, reason) in [
            (keys_id, "secrets", "SecretNotFound"),
            (map, "configmaps", "ConfigMapNotFound"),
        ] {
            stage.user.delete(&gone);
            stage.world.api.compact();
            stage.world.api.cut_watches(resource, WatchCut::Gone);
            stage.says(&id, "False", reason).await;
            stage.create(keys("first"));
            stage.rest(MINUTE).await;
        }
    });
}

// Field case 76: one upload for one change, none for none.
#[test]
fn a_changed_value_is_one_upload_and_a_changed_label_is_none() {
    play_in_zone(Plan::Free, |stage| async move {
        let keys = stage.create(keys("first"));
        let id = stage.create(worker("web", bound()));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        edit_secret(&stage, &keys, "api", "second");
        stage
            .until("sent", |stage| text_of(stage, "web", "KEY") == "second")
            .await;
        stage.rest(HOUR).await;
        assert_eq!(uploads(&stage, &mark), 1);
        assert!(stage.told(&id, "Updated", &["content"]) || stage.told(&id, "DriftCorrected", &["content"]));
        let mark = stage.mark();
        stage
            .user
            .edit(&keys, |secret| secret["metadata"]["labels"]["a"] = json!("b"));
        edit_secret(&stage, &keys, "unrelated", "x");
        stage.rest(HOUR).await;
        assert_eq!(uploads(&stage, &mark), 0);
        assert!(stage.user.is_ready(&id));
        // Gone, it is missed; back, nothing has to be sent.
        let mark = stage.mark();
        stage.user.delete(&keys);
        stage.says(&id, "False", "SecretNotFound").await;
        stage.create(self::keys("second"));
        stage.ready(&[id]).await;
        assert_eq!(uploads(&stage, &mark), 0);
        assert_eq!(text_of(&stage, "web", "KEY"), "second");
    });
}

#[test]
fn what_changed_while_no_controller_ran_is_noticed_at_start() {
    play(31, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        let life = stage.start();
        let keys = stage.create(keys("first"));
        let code = stage.create(config_map("code", json!({ "index.js": CODE }), json!({})));
        let mut spec = bound();
        spec["script"] = Value::Null;
        spec["scriptConfigMapRef"] = json!({ "name": "code", "key": "index.js" });
        let id = stage.create(worker("web", spec));
        let plain = stage.create(worker("plain", json!({})));
        stage.ready(&[zone_id(), id.clone(), plain]).await;
        stage.rest(MINUTE).await;

        // Nothing has changed: nothing is read, nothing written.
        life.kill();
        let (mark, reads) = (stage.mark(), reads_by_name(&stage));
        let life = stage.start();
        stage.rest(5 * MINUTE).await;
        stage.since(&mark).assert_no_write();
        assert_eq!(reads_by_name(&stage), reads);

        life.kill();
        edit_secret(&stage, &keys, "api", "second");
        let life = stage.start();
        stage
            .until("sent", |stage| text_of(stage, "web", "KEY") == "second")
            .await;
        life.kill();
        let new = "export default { fetch() { return 7 } }";
        stage.user.edit(&code, |map| map["data"]["index.js"] = json!(new));
        stage.start();
        stage
            .until("sent", |stage| {
                stored(stage, "web").unwrap()["modules"][0]["body"]["text"] == new
            })
            .await;
        assert_eq!(uploads(&stage, &mark), 2);
    });
}

/// Reads of Secrets and ConfigMaps of tenants by their name.
fn reads_by_name(stage: &Stage) -> usize {
    let requests = stage.world.api.requests();
    let reads = requests.iter().filter(|it| {
        ["secrets", "configmaps"].contains(&it.request.resource.as_str())
            && it.request.name.is_some()
            && it.request.namespace.as_deref() == Some(kflare_testkit::simulation::NAMESPACE)
    });
    reads.filter(|it| !it.request.writes()).count()
}

// Field case 132: the text of a secret goes to Cloudflare and nowhere else.
#[test]
fn a_secret_shows_nowhere() {
    play_in_zone(Plan::Free, |stage| async move {
        let hush = format!("hush-{}", 12345);
        let keys = stage.create(keys(&hush));
        let id = stage.create(worker("web", bound()));
        stage.ready(std::slice::from_ref(&id)).await;
        let observed = annotated(worker("seen", bound()), "kflare.dev/mode", "observe");
        let observed = stage.create(observed);
        stage.says(&observed, "False", "Observing").await;
        assert!(stage.status(&observed)["plan"].to_string().contains("(secret)"));
        let second = format!("{hush}-2");
        edit_secret(&stage, &keys, "api", &second);
        stage
            .until("sent", |stage| text_of(stage, "web", "KEY") == second)
            .await;
        // Refused, it is remembered without its text too.
        let route = "/accounts/{account_id}/workers/scripts/{script_name}";
        stage.fault(kflare_sim::FaultMatch::route("PUT", route), status(400, 10_021));
        let refused = stage.create(worker("refused", bound()));
        stage.says(&refused, "False", "TerminalError").await;
        stage.rest(MINUTE).await;
        for id in [&id, &observed, &refused] {
            let object = stage.world.api.get(id).unwrap().to_string();
            assert!(!object.contains(&hush), "{object}");
            let events = format!("{:?}", stage.user.events(id));
            assert!(!events.contains(&hush), "{events}");
        }
        let encoded = base64(&hush);
        let told = |line: &String| line.contains(&hush) || line.contains(&encoded);
        // But for the Secret on its way to who reads it, and the uploads.
        let lines = stage.world.api.trace().lines();
        let mut elsewhere = lines
            .iter()
            .filter(|line| told(line) && !line.contains("secrets") && !line.contains(" PUT https://"));
        assert_eq!(elsewhere.next(), None);
        assert!(!format!("{:?}", stage.cloudflare.calls()).contains(&hush));
    });
}

#[test]
fn a_secret_that_is_no_text_is_said() {
    play_in_zone(Plan::Free, |stage| async move {
        let keys = stage.create(keys("first"));
        stage.user.edit(&keys, |secret| secret["data"]["api"] = json!("//79"));
        let id = stage.create(worker("web", bound()));
        stage.says(&id, "False", "InvalidSpec").await;
        let message = stage.user.message(&id);
        assert!(
            message.contains("holds no text") && message.contains("KEY"),
            "{message}"
        );
        edit_secret(&stage, &keys, "api", "first");
        stage.ready(&[id]).await;
    });
}

/// Code that was refused is tried again when the ConfigMap that holds it changes.
#[test]
fn code_that_was_refused_is_tried_again_when_its_config_map_changes() {
    play_in_zone(Plan::Free, |stage| async move {
        let map = stage.create(config_map("code", json!({ "index.js": "const x = 1" }), json!({})));
        let code = json!({ "script": null, "scriptConfigMapRef": { "name": "code", "key": "index.js" } });
        let id = stage.create(worker("web", code));
        stage.says(&id, "False", "TerminalError").await;
        stage.user.edit(&map, |map| map["data"]["index.js"] = json!(CODE));
        stage.ready(&[id]).await;
    });
}

#[test]
fn a_paused_worker_reads_nothing() {
    play_in_zone(Plan::Free, |stage| async move {
        let keys = stage.create(keys("first"));
        let id = stage.create(worker("web", bound()));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.annotate(&id, "kflare.dev/paused", Some("true"));
        stage.until("paused", |stage| stage.user.ready(&id).1 == "Paused").await;
        let (mark, reads) = (stage.mark(), reads_by_name(&stage));
        edit_secret(&stage, &keys, "api", "second");
        stage.rest(HOUR).await;
        assert_eq!((uploads(&stage, &mark), reads_by_name(&stage)), (0, reads));
        stage.user.annotate(&id, "kflare.dev/paused", None);
        stage
            .until("sent", |stage| text_of(stage, "web", "KEY") == "second")
            .await;
    });
}

#[test]
fn what_is_not_read_any_more_is_forgotten() {
    let registry = prometheus::Registry::new();
    let options = ControllerOptions {
        registry: Some(registry.clone()),
        ..ControllerOptions::default()
    };
    play(33, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        stage.start_with("controller", options);
        stage.ready(&[zone_id()]).await;
        stage.rest(HOUR).await;
        let before = crate::memory::entries(&registry);
        let keys = stage.create(keys("first"));
        let id = stage.create(worker("web", bound()));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.delete(&id);
        stage.user.delete(&keys);
        stage.gone(&[id]).await;
        crate::memory::as_before(&stage, &registry, &before).await;
    });
}

/// A secret that is rotated often is not somebody else's doing.
#[test]
fn what_the_spec_reads_may_change_as_often_as_it_likes() {
    play_in_zone(Plan::Free, |stage| async move {
        let keys = stage.create(keys("0"));
        let id = stage.create(worker("web", bound()));
        stage.ready(std::slice::from_ref(&id)).await;
        for round in 1..8 {
            edit_secret(&stage, &keys, "api", &round.to_string());
            let there = |stage: &Stage| text_of(stage, "web", "KEY") == round.to_string();
            stage.until_within("carried out", MINUTE, there).await;
        }
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(
            stage.times_told(&id, "DriftCorrected"),
            0,
            "{:?}",
            stage.user.events(&id)
        );
    });
}
