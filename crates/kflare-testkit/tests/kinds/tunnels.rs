//! Tunnels: made, found, renamed back, taken over, deleted with what stands in the way. Field cases 44, 46, 62, 63, 67.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{Dropped, Fault, FaultMatch, Seed, TunnelSeed};
use kflare_testkit::{
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, NAMESPACE, User},
};
use serde_json::{Value, json};

use crate::stage::{HOUR, MINUTE, Stage, adopting, annotated, play};

pub const TUNNELS: &str = "/accounts/{account_id}/cfd_tunnel";
pub const TOKEN: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/token";

/// An account and a controller, at rest.
pub fn play_with_account<F: Future<Output = ()>>(seed: u64, scenario: impl FnOnce(Stage) -> F) {
    play(seed, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.start();
        stage.ready(&[User::account_id()]).await;
        stage.rest(MINUTE).await;
        scenario(stage).await;
    });
}

/// A tunnel manifest. Resource and tunnel have the same name, and the Secret the name with `-token` behind it.
pub fn tunnel(name: &str) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "Tunnel",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "accountRef": { "name": "main" }, "name": name,
            "credentialsSecretRef": { "name": format!("{name}-token") },
        },
    })
}

/// The tunnels at Cloudflare that are not deleted.
pub fn live(stage: &Stage) -> Vec<Value> {
    let mut tunnels = stage.cloudflare.tunnels(ACCOUNT_ID);
    tunnels.retain(|tunnel| tunnel["deleted_at"].is_null());
    tunnels
}

pub fn remote_id(stage: &Stage, id: &ObjectId) -> String {
    stage.recorded(id).expect("an id is recorded")
}

/// Makes a tunnel at Cloudflare as somebody else would; its id.
pub fn foreign_tunnel(stage: &Stage, seed: TunnelSeed) -> String {
    let seeded = stage.cloudflare.seed(&Seed {
        tunnels: vec![seed],
        ..Seed::default()
    });
    seeded.unwrap().tunnels.remove(0)
}

#[test]
fn a_tunnel_is_made_and_then_left_alone() {
    play_with_account(61, |stage| async move {
        let mark = stage.mark();
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let [remote] = live(&stage).try_into().unwrap();
        assert_eq!(
            (&remote["name"], &remote["config_src"]),
            (&json!("edge"), &json!("cloudflare"))
        );
        let status = stage.status(&id);
        assert_eq!(
            status["cloudflareMetadata"],
            json!({ "tunnelID": remote["id"], "status": "inactive" })
        );
        assert_eq!(stage.metadata(&id)["labels"][names::TUNNEL_ID], remote["id"]);
        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.calls);
        // Finalizer with intent, status with the id, claim, the Secret, status with the Secret.
        assert!(since.kubernetes_writes.len() <= 5, "{:#?}", since.kubernetes_writes);
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        stage.rest(6 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        assert!(
            since.calls.iter().all(|call| call.route.as_deref() != Some(TOKEN)),
            "drift checks do not ask for the token"
        );
    });
}

#[test]
fn a_tunnel_that_was_renamed_gets_its_name_back() {
    play_with_account(62, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = remote_id(&stage, &id);
        stage.cloudflare.foreign_rename_tunnel(&remote, "other").unwrap();
        stage.until("put right", |stage| live(stage)[0]["name"] == "edge").await;
        stage.rest(MINUTE).await;
        assert!(stage.told(&id, "DriftCorrected", &["name", "other", "edge"]));
        assert_eq!(live(&stage).len(), 1);
    });
}

/// Field case 44.
#[test]
fn a_name_that_is_taken_is_left_alone_until_adoption_is_asked_for() {
    play_with_account(63, |stage| async move {
        let theirs = foreign_tunnel(&stage, TunnelSeed::named("edge", "Example"));
        let mark = stage.mark();
        let id = stage.create(tunnel("edge"));
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(stage.user.message(&id).contains(&theirs), "{}", stage.user.message(&id));
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert!(stage.world.api.get(&secret_id("edge-token")).is_none());
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(remote_id(&stage, &id), theirs);
        assert_eq!(stage.metadata(&id)["annotations"][names::ADOPTED], "true");
        stage.since(&mark).assert_no_cloudflare_write();
        assert!(stage.world.api.get(&secret_id("edge-token")).is_some());
        // What was adopted stays, and so does its token; the Secret goes with its owner.
        stage.user.delete(&id);
        stage.gone(std::slice::from_ref(&id)).await;
        assert_eq!(live(&stage).len(), 1);
        assert!(stage.world.api.get(&secret_id("edge-token")).is_none());
    });
}

pub fn secret_id(name: &str) -> ObjectId {
    ObjectId::namespaced::<k8s_openapi::api::core::v1::Secret>(NAMESPACE, name)
}

/// A name is free again once its tunnel is deleted, although Cloudflare still shows that.
#[test]
fn deleted_tunnels_do_not_count() {
    play_with_account(64, |stage| async move {
        let gone = foreign_tunnel(&stage, TunnelSeed::named("edge", "Example"));
        stage.cloudflare.foreign_delete_tunnel(&gone).unwrap();
        let id = stage.create(adopting(tunnel("edge"), "adopt-or-create"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_ne!(remote_id(&stage, &id), gone);
        assert_eq!(stage.cloudflare.tunnels(ACCOUNT_ID).len(), 2);
    });
}

/// Field case 62.
#[test]
fn a_tunnel_deleted_behind_our_back_is_made_again_with_a_new_token() {
    play_with_account(65, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let first = remote_id(&stage, &id);
        let token = token_in(&stage, "edge-token");
        stage.cloudflare.foreign_delete_tunnel(&first).unwrap();
        stage
            .until("made again", |stage| {
                stage.user.is_ready(&id) && stage.recorded(&id).is_some_and(|now| now != first)
            })
            .await;
        assert!(stage.told(&id, "RemoteObjectGone", &[&first]));
        let second = remote_id(&stage, &id);
        assert_ne!(token_in(&stage, "edge-token"), token);
        assert_eq!(
            Some(token_in(&stage, "edge-token")),
            stage.cloudflare.tunnel_token(&second)
        );
        stage.rest(HOUR).await;
        assert_eq!(live(&stage).len(), 1);
    });
}

/// The value in a Secret.
pub fn token_in(stage: &Stage, secret: &str) -> String {
    use base64::Engine;
    let object = stage.world.api.get(&secret_id(secret)).expect("the Secret is there");
    let text = object["data"]["TUNNEL_TOKEN"].as_str().expect("a token");
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Field case 63. The answer to the create is lost, again and again, and so are the next writes to Kubernetes.
#[test]
fn a_create_whose_answer_is_lost_makes_one_tunnel() {
    play_with_account(66, |stage| async move {
        let lost = Fault::DropAfter {
            dropped: Some(Dropped::Reset),
        };
        stage.fault_times(FaultMatch::route("POST", TUNNELS), lost, 3);
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.cloudflare.tunnels(ACCOUNT_ID).len(), 1);
        let remote = remote_id(&stage, &id);
        assert_eq!(
            Some(token_in(&stage, "edge-token")),
            stage.cloudflare.tunnel_token(&remote)
        );
    });
}

/// The tunnel is recorded before its token is read: that the token may not be read loses nothing.
#[test]
fn a_token_that_cannot_be_read_leaves_a_recorded_tunnel() {
    play_with_account(67, |stage| async move {
        let fault = stage.fault(FaultMatch::route("GET", TOKEN), crate::stage::status(403, 10_000));
        let id = stage.create(tunnel("edge"));
        stage.until("recorded", |stage| stage.recorded(&id).is_some()).await;
        stage.rest(MINUTE).await;
        assert_eq!(stage.user.ready(&id).0, "False");
        assert_eq!(live(&stage).len(), 1);
        stage.cloudflare.remove_fault(fault);
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(stage.cloudflare.tunnels(ACCOUNT_ID).len(), 1);
    });
}

/// Field case 46.
#[test]
fn deletion_cleans_up_first_and_waits_for_connectors_that_run() {
    play_with_account(68, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = remote_id(&stage, &id);
        let running = stage.cloudflare.connect_tunnel(&remote).unwrap();
        let lost = stage.cloudflare.connect_tunnel(&remote).unwrap();
        stage.cloudflare.lose_connector(&remote, &lost).unwrap();
        let mark = stage.mark();
        stage.user.delete(&id);
        stage.says(&id, "False", "ActiveConnections").await;
        stage.rest(Duration::from_secs(30)).await;
        assert_eq!(live(&stage).len(), 1);
        assert!(stage.cloudflare.disconnect_tunnel(&remote, &running).unwrap());
        let gone = |stage: &Stage| stage.world.api.get(&id).is_none();
        stage.until_within("deleted", 2 * MINUTE, gone).await;
        assert!(live(&stage).is_empty());
        let calls = stage.since(&mark).calls.len();
        assert!(calls <= 10, "{calls} calls");
        assert!(stage.world.api.get(&secret_id("edge-token")).is_none());
    });
}

/// A connector that vanished stands in nobody's way.
#[test]
fn stale_connections_are_cleaned_up() {
    play_with_account(69, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = remote_id(&stage, &id);
        let lost = stage.cloudflare.connect_tunnel(&remote).unwrap();
        stage.cloudflare.lose_connector(&remote, &lost).unwrap();
        stage.user.delete(&id);
        let gone = |stage: &Stage| stage.world.api.get(&id).is_none();
        stage.until_within("deleted", Duration::from_secs(10), gone).await;
    });
}

#[test]
fn a_tunnel_that_is_gone_already_is_deleted_and_one_that_is_retained_stays() {
    play_with_account(70, |stage| async move {
        let gone = stage.create(tunnel("gone"));
        let kept = stage.create(annotated(tunnel("kept"), names::DELETION_POLICY, "retain"));
        stage.ready(&[gone.clone(), kept.clone()]).await;
        stage
            .cloudflare
            .foreign_delete_tunnel(&remote_id(&stage, &gone))
            .unwrap();
        stage.user.delete(&gone);
        stage.user.delete(&kept);
        stage.gone(&[gone, kept]).await;
        let [left] = live(&stage).try_into().unwrap();
        assert_eq!(left["name"], "kept");
    });
}

/// With more than a few tunnels a check is one list.
#[test]
fn many_tunnels_cost_one_list_a_check() {
    play_with_account(71, |stage| async move {
        let ids: Vec<_> = (0..8).map(|n| stage.create(tunnel(&format!("edge-{n}")))).collect();
        stage.ready(&ids).await;
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let of_tunnels = since.calls.iter().filter(|call| call.path.contains("cfd_tunnel"));
        let count = of_tunnels.count();
        assert!((25..=35).contains(&count), "{count} calls in thirty checks");
    });
}

#[test]
fn the_status_of_the_connectors_is_shown() {
    play_with_account(72, |stage| async move {
        let id = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.cloudflare.connect_tunnel(&remote_id(&stage, &id)).unwrap();
        stage
            .until("shown", |stage| {
                stage.status(&id)["cloudflareMetadata"]["status"] == "healthy"
            })
            .await;
        assert!(stage.user.is_ready(&id));
    });
}

#[test]
fn two_resources_never_manage_one_tunnel() {
    play_with_account(73, |stage| async move {
        let first = stage.create(tunnel("edge"));
        stage.ready(std::slice::from_ref(&first)).await;
        let mut copy = tunnel("copy");
        copy["spec"]["name"] = json!("edge");
        let second = stage.create(adopting(copy, "adopt-or-create"));
        stage.says(&second, "False", "AlreadyClaimed").await;
        assert!(stage.world.api.get(&secret_id("copy-token")).is_none());
        stage.user.delete(&first);
        stage.ready(std::slice::from_ref(&second)).await;
        assert_eq!(live(&stage).len(), 1);
    });
}
