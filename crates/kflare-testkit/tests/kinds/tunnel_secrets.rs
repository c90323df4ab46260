//! The Secret that a Tunnel yields: made, put right, moved, never taken from anybody, and never told about.

use std::{sync::Arc, time::Duration};

use kflare_api::names;
use kflare_testkit::{memory_api::ObjectId, simulation::ControllerOptions};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::stage::{HOUR, MINUTE, Stage, play};
use crate::tunnels::{TOKEN, live, play_with_account, remote_id, secret_id, token_in, tunnel};

fn in_order(stage: &Stage, id: &ObjectId, secret: &str) -> bool {
    let there = stage
        .world
        .api
        .get(&secret_id(secret))
        .is_some_and(|it| it["data"]["TUNNEL_TOKEN"].is_string());
    let token = stage
        .recorded(id)
        .and_then(|remote| stage.cloudflare.tunnel_token(&remote));
    there && Some(token_in(stage, secret)) == token
}

fn token_reads(stage: &Stage, mark: &crate::stage::Mark) -> usize {
    let calls = stage.since(mark).calls;
    calls.iter().filter(|call| call.route.as_deref() == Some(TOKEN)).count()
}

fn spoil(stage: &Stage, secret: &str) {
    stage.user.edit(&secret_id(secret), |object| {
        object["data"]["TUNNEL_TOKEN"] = json!("c3BvaWx0");
    });
}

#[test]
fn the_secret_belongs_to_its_tunnel() {
    play_with_account(81, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(in_order(&stage, &id, "edge-token"));
        let secret = stage.world.api.get(&secret_id("edge-token")).unwrap();
        let [owner] = serde_json::from_value::<[Value; 1]>(secret["metadata"]["ownerReferences"].clone()).unwrap();
        assert_eq!(
            owner,
            json!({
                "apiVersion": names::API_VERSION, "kind": "Tunnel", "name": "edge",
                "uid": stage.metadata(&id)["uid"], "controller": true,
            })
        );
        assert_eq!(secret["type"], "Opaque");
        let status = stage.status(&id);
        assert_eq!(status["credentialsSecretName"], "edge-token");
        assert_eq!(status["credentialsSecret"]["uid"], secret["metadata"]["uid"]);
        assert_eq!(
            status["credentialsSecret"]["resourceVersion"],
            secret["metadata"]["resourceVersion"]
        );
    });
}

#[test]
fn an_edit_is_put_right_at_once_and_what_else_is_in_it_stays() {
    play_with_account(82, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage.user.edit(&secret_id("edge-token"), |object| {
            object["data"] = json!({ "TUNNEL_TOKEN": "c3BvaWx0", "OTHER": "eA==" });
        });
        stage
            .until_within("put right", Duration::from_secs(5), |stage| {
                in_order(stage, &id, "edge-token")
            })
            .await;
        let secret = stage.world.api.get(&secret_id("edge-token")).unwrap();
        assert_eq!(secret["data"]["OTHER"], "eA==");
        assert_eq!(token_reads(&stage, &mark), 1);
        stage.rest(Duration::from_secs(5)).await;
        assert!(stage.told(&id, "DriftCorrected", &["Secret edge-token"]));
        let mark = stage.mark();
        stage.rest(2 * HOUR).await;
        stage.since(&mark).assert_no_write();
        assert_eq!(token_reads(&stage, &mark), 0);
    });
}

#[test]
fn a_secret_that_was_deleted_is_made_again() {
    play_with_account(83, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.delete(&secret_id("edge-token"));
        stage
            .until_within("made again", Duration::from_secs(5), |stage| {
                in_order(stage, &id, "edge-token")
            })
            .await;
    });
}

/// A change that does not touch the value costs one read at Kubernetes, and nothing at Cloudflare but the look at the tunnel.
#[test]
fn a_label_on_the_secret_is_nobodys_business() {
    play_with_account(84, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage.user.edit(&secret_id("edge-token"), |object| {
            object["metadata"]["labels"]["team"] = json!("edge");
        });
        stage.rest(HOUR).await;
        assert_eq!(token_reads(&stage, &mark), 0);
        let secret = stage.world.api.get(&secret_id("edge-token")).unwrap();
        assert_eq!(secret["metadata"]["labels"]["team"], "edge");
        assert!(stage.since(&mark).kubernetes_writes.len() <= 1);
    });
}

#[test]
fn a_changed_name_moves_the_token() {
    play_with_account(85, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "credentialsSecretRef": { "name": "moved" } }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(in_order(&stage, &id, "moved"));
        assert!(stage.world.api.get(&secret_id("edge-token")).is_none());
        assert_eq!(stage.status(&id)["credentialsSecretName"], "moved");
        let since = stage.since(&mark);
        since.assert_no_cloudflare_write();
        let secrets: Vec<_> = since
            .kubernetes_writes
            .iter()
            .filter(|it| it.request.resource == "secrets")
            .map(|it| it.request.verb.as_str())
            .collect();
        assert_eq!(secrets, ["create", "delete"], "the new one first");
    });
}

/// Whatever is in it, whoever made it.
#[test]
fn a_secret_of_somebody_else_is_never_touched() {
    play_with_account(86, |stage| async move {
        let theirs = stage.create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "edge-token", "namespace": "team" },
            "data": { "TUNNEL_TOKEN": "dGhlaXJz" },
        }));
        let before = stage.world.api.get(&theirs);
        let mark = stage.mark();
        let id = stage.create(tunnel("edge"));
        stage.says(&id, "False", "SecretConflict").await;
        stage.rest(6 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert!(live(&stage).is_empty(), "no tunnel before the Secret");
        assert_eq!(stage.world.api.get(&theirs), before);
        let tries = stage.since(&mark).calls.len();
        assert!(tries < 120, "{tries} calls in six hours");
        // Once it is out of the way things go on at once.
        stage.user.delete(&theirs);
        let ready = |stage: &Stage| stage.user.is_ready(&id);
        stage.until_within("ready", Duration::from_secs(10), ready).await;
        assert!(in_order(&stage, &id, "edge-token"));
    });
}

#[test]
fn a_move_onto_a_secret_of_somebody_else_keeps_the_old_one() {
    play_with_account(87, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let theirs = stage.create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "theirs", "namespace": "team" }, "data": {},
        }));
        let before = stage.world.api.get(&theirs);
        stage
            .user
            .edit_spec(&id, &json!({ "credentialsSecretRef": { "name": "theirs" } }));
        stage.says(&id, "False", "SecretConflict").await;
        stage.rest(HOUR).await;
        assert_eq!(stage.world.api.get(&theirs), before);
        assert!(in_order(&stage, &id, "edge-token"), "connectors go on");
        stage
            .user
            .edit_spec(&id, &json!({ "credentialsSecretRef": { "name": "edge-token" } }));
        stage.ready(std::slice::from_ref(&id)).await;
    });
}

/// An owner reference that somebody took off says that the Secret is no longer the tunnel's.
#[test]
fn a_secret_that_was_taken_away_stays_as_it_is() {
    play_with_account(88, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.edit(&secret_id("edge-token"), |object| {
            object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            object["data"]["TUNNEL_TOKEN"] = json!("dGhlaXJz");
        });
        stage.says(&id, "False", "SecretConflict").await;
        let secret = stage.world.api.get(&secret_id("edge-token")).unwrap();
        assert_eq!(secret["data"]["TUNNEL_TOKEN"], "dGhlaXJz");
        stage.user.delete(&id);
        stage.gone(std::slice::from_ref(&id)).await;
        assert!(stage.world.api.get(&secret_id("edge-token")).is_some());
    });
}

/// Two tunnels, one name for their Secrets.
#[test]
fn the_secret_of_another_tunnel_is_somebody_elses() {
    play_with_account(89, |stage| async move {
        let first = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&first)).await;
        let mut second = tunnel("second");
        second["spec"]["credentialsSecretRef"]["name"] = json!("edge-token");
        let second = stage.create(second);
        stage.says(&second, "False", "SecretConflict").await;
        assert_eq!(live(&stage).len(), 1);
        assert!(in_order(&stage, &first, "edge-token"));
        stage.user.delete(&first);
        stage.ready(std::slice::from_ref(&second)).await;
        assert!(in_order(&stage, &second, "edge-token"));
    });
}

#[test]
fn a_fight_over_the_secret_is_named_and_not_fought_out() {
    play_with_account(90, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        for _ in 0..3 {
            spoil(&stage, "edge-token");
            let put_right = |stage: &Stage| in_order(stage, &id, "edge-token");
            stage.until_within("put right", Duration::from_secs(5), put_right).await;
            stage.rest(Duration::from_secs(5)).await;
        }
        spoil(&stage, "edge-token");
        stage.says(&id, "False", "Contested").await;
        assert_eq!(stage.status(&id)["contested"]["fields"], json!(["Secret edge-token"]));
        let mark = stage.mark();
        stage.rest(10 * MINUTE).await;
        let writes = stage.since(&mark).kubernetes_writes;
        assert!(writes.iter().all(|it| it.request.resource != "secrets"), "{writes:#?}");
        stage.rest(30 * MINUTE).await;
        assert!(
            in_order(&stage, &id, "edge-token"),
            "corrected ever more rarely, but corrected"
        );
    });
}

/// A token that was rotated at Cloudflare is read again when the user asks.
#[test]
fn reconcile_at_reads_the_token_again() {
    play_with_account(91, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.cloudflare.foreign_rotate_tunnel(&remote_id(&stage, &id)).unwrap();
        assert!(!in_order(&stage, &id, "edge-token"));
        stage.reconcile(std::slice::from_ref(&id), "now").await;
        assert!(in_order(&stage, &id, "edge-token"));
        assert_eq!(stage.times_told(&id, "DriftCorrected"), 0, "nobody has edited anything");
    });
}

#[test]
fn neither_paused_nor_observed_tunnels_have_their_secret_written() {
    play_with_account(92, |stage| async move {
        let paused = stage.create(tunnel("paused"));
        let observed = stage.create(tunnel("observed"));
        stage.ready(&[paused.clone(), observed.clone()]).await;
        stage.user.annotate(&paused, names::PAUSED, Some("true"));
        stage.user.annotate(&observed, names::MODE, Some("observe"));
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        spoil(&stage, "paused-token");
        spoil(&stage, "observed-token");
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        assert_eq!(token_reads(&stage, &mark), 0);
        let of_kflare = since
            .kubernetes_writes
            .iter()
            .filter(|it| it.request.resource == "secrets");
        assert_eq!(of_kflare.count(), 0, "{:#?}", since.kubernetes_writes);
        assert_eq!(stage.user.ready(&observed).1, "Observing");
        stage.user.annotate(&paused, names::PAUSED, None);
        stage.user.annotate(&observed, names::MODE, None);
        stage
            .until("put right", |stage| {
                in_order(stage, &paused, "paused-token") && in_order(stage, &observed, "observed-token")
            })
            .await;
        stage.ready(&[paused, observed]).await;
    });
}

/// What changed while kflare was down is noticed at its start, and only that is asked for.
#[test]
fn an_edit_while_kflare_was_down_is_noticed_without_a_call_for_each_tunnel() {
    play(93, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        let stop = Arc::new(Notify::new());
        let life = kflare_testkit::life::Life::new("first");
        let (world, running, stopping) = (stage.world.clone(), life.clone(), stop.clone());
        let first = tokio::spawn(async move {
            let options = ControllerOptions::default();
            world.run_controller_until(&running, options, stopping).await
        });
        let ids: Vec<_> = (0..10).map(|n| stage.create(tunnel(&format!("edge-{n}")))).collect();
        stage.ready(&ids).await;
        stage.rest(MINUTE).await;
        stop.notify_one();
        drop(first.await);
        spoil(&stage, "edge-3-token");
        stage.user.delete(&secret_id("edge-7-token"));
        let mark = stage.mark();
        stage.start();
        stage
            .until("put right", |stage| {
                in_order(stage, &ids[3], "edge-3-token") && in_order(stage, &ids[7], "edge-7-token")
            })
            .await;
        stage.rest(MINUTE).await;
        assert_eq!(token_reads(&stage, &mark), 2);
        let since = stage.since(&mark);
        assert!(since.calls.len() <= 12, "{:#?}", since.calls);
        let reads = stage.world.api.requests();
        let read = |name: &str| {
            reads
                .iter()
                .any(|it| it.request.uri.ends_with(&format!("/secrets/{name}")))
        };
        assert!(read("edge-3-token"));
    });
}

/// The value is in the Secret and nowhere else.
#[test]
fn the_token_is_told_nowhere() {
    play_with_account(94, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        spoil(&stage, "edge-token");
        stage
            .until("put right", |stage| in_order(stage, &id, "edge-token"))
            .await;
        stage
            .user
            .edit_spec(&id, &json!({ "credentialsSecretRef": { "name": "moved" } }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(MINUTE).await;
        let token = token_in(&stage, "moved");
        let object = stage.world.api.get(&id).unwrap().to_string();
        let events = format!("{:?}", stage.user.events(&id));
        for text in [object, events, stage.world.api.trace().lines().join("\n")] {
            assert!(!text.contains(&token), "{text}");
        }
    });
}
