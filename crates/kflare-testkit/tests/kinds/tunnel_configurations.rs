//! The one document of a tunnel. Field cases 49, 50, 54, 57, 58, 67.

use kflare_api::names;
use kflare_sim::{ConfigSource, TunnelSeed};
use kflare_testkit::{
    memory_api::ObjectId,
    simulation::{NAMESPACE, User},
};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, annotated, object, zone_id};
use crate::tunnels::{foreign_tunnel, live, play_with_account, remote_id, tunnel};

const CONFIGURATIONS: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";

fn configuration(name: &str, tunnel: &str, ingress: &Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "TunnelConfiguration",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "tunnelRef": { "name": tunnel }, "ingress": ingress, "defaultService": "http_status:404" },
    })
}

fn one_host() -> Value {
    json!([{ "hostname": "a.example.com", "service": "http://web:80" }])
}

/// The document at Cloudflare, and its version.
fn document(stage: &Stage) -> (Value, i64) {
    let tunnels = live(stage);
    let configuration = &tunnels[0]["configuration"];
    (
        configuration["config"].clone(),
        configuration["version"].as_i64().unwrap_or_default(),
    )
}

fn bare() -> Value {
    json!([{ "service": "http_status:404" }])
}

/// A tunnel and its configuration, at rest.
async fn configured(stage: &Stage, ingress: &Value) -> (ObjectId, ObjectId) {
    let tunnel = stage.create(tunnel("edge"));
    let configuration = stage.create(configuration("edge", "edge", ingress));
    stage.ready(&[tunnel.clone(), configuration.clone()]).await;
    stage.rest(MINUTE).await;
    (tunnel, configuration)
}

/// Field case 58.
#[test]
fn a_configuration_is_written_once_with_its_last_rule() {
    play_with_account(101, |stage| async move {
        let mark = stage.mark();
        let (tunnel, id) = configured(&stage, &one_host()).await;
        let (config, version) = document(&stage);
        assert_eq!(
            config,
            json!({
                "ingress": [{ "hostname": "a.example.com", "service": "http://web:80" }, { "service": "http_status:404" }],
                "warp-routing": { "enabled": false },
            })
        );
        assert_eq!(version, 1);
        assert_eq!(
            stage.status(&id)["cloudflareMetadata"],
            json!({ "tunnelID": remote_id(&stage, &tunnel), "version": 1 })
        );
        let since = stage.since(&mark);
        let puts = since.calls.iter().filter(|call| call.method == "PUT").count();
        assert_eq!(puts, 1, "{:#?}", since.calls);
        let mark = stage.mark();
        stage.rest(6 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

/// What Cloudflare and the dashboard add to a document is nobody's drift.
#[test]
fn additions_are_no_drift_and_stay() {
    play_with_account(102, |stage| async move {
        let (tunnel, _) = configured(&stage, &one_host()).await;
        let config = json!({
            "ingress": [
                { "id": "1", "hostname": "a.example.com", "service": "http://web:80", "originRequest": {} },
                { "service": "http_status:404" },
            ],
            "warp-routing": { "enabled": true },
        });
        let remote = remote_id(&stage, &tunnel);
        stage
            .cloudflare
            .foreign_configure_tunnel(&remote, object(&config))
            .unwrap();
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        let id = ObjectId::namespaced::<kflare_api::TunnelConfiguration>(NAMESPACE, "edge");
        stage
            .user
            .edit_spec(&id, &json!({ "defaultService": "http_status:503" }));
        stage.ready(&[id]).await;
        let (config, _) = document(&stage);
        assert_eq!(
            config["warp-routing"],
            json!({ "enabled": true }),
            "not for this spec to say"
        );
    });
}

#[test]
fn foreign_edits_are_put_right_and_the_fields_named() {
    play_with_account(103, |stage| async move {
        let (tunnel, id) = configured(&stage, &one_host()).await;
        let config = json!({ "ingress": [{ "service": "hello_world" }], "originRequest": { "connectTimeout": 3 } });
        let remote = remote_id(&stage, &tunnel);
        stage
            .cloudflare
            .foreign_configure_tunnel(&remote, object(&config))
            .unwrap();
        stage
            .until("put right", |stage| {
                document(stage).0["ingress"][0]["hostname"] == "a.example.com"
            })
            .await;
        stage.rest(MINUTE).await;
        assert!(stage.told(&id, "DriftCorrected", &["ingress", "originRequest.connectTimeout"]));
        assert!(document(&stage).0.get("originRequest").is_none());
    });
}

/// Field case 54: another order is another configuration, the same order never a write.
#[test]
fn the_order_of_rules_is_kept() {
    play_with_account(104, |stage| async move {
        let rule = |host: &str| json!({ "hostname": host, "service": "http://web:80" });
        let (_, id) = configured(&stage, &json!([rule("b.example.com"), rule("a.example.com")])).await;
        let hosts = |stage: &Stage| -> Vec<Value> {
            let (config, _) = document(stage);
            config["ingress"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["hostname"].clone())
                .collect()
        };
        assert_eq!(
            hosts(&stage),
            [json!("b.example.com"), json!("a.example.com"), Value::Null]
        );
        stage.user.edit_spec(
            &id,
            &json!({ "ingress": [rule("a.example.com"), rule("b.example.com")] }),
        );
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(
            hosts(&stage),
            [json!("a.example.com"), json!("b.example.com"), Value::Null]
        );
        assert_eq!(document(&stage).1, 2);
    });
}

/// Field case 57, through the whole engine; and a setting that the spec gives up is cleared.
#[test]
fn settings_are_sent_as_set_and_cleared_when_given_up() {
    play_with_account(105, |stage| async move {
        let (_, id) = configured(&stage, &one_host()).await;
        let change = json!({
            "originRequest": { "connectTimeout": "1m30s", "access": { "required": true, "teamName": "t", "audTag": ["a"] } },
            "warpRouting": { "enabled": true },
        });
        stage.user.edit_spec(&id, &change);
        stage.ready(std::slice::from_ref(&id)).await;
        let (config, _) = document(&stage);
        assert_eq!(
            config["originRequest"],
            json!({ "connectTimeout": 90, "access": { "required": true, "teamName": "t", "audTag": ["a"] } })
        );
        assert_eq!(config["warp-routing"], json!({ "enabled": true }));
        stage.user.edit_spec(
            &id,
            &json!({ "originRequest": { "connectTimeout": null, "access": { "audTag": null, "teamName": null } } }),
        );
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(
            document(&stage).0["originRequest"],
            json!({ "access": { "required": true } })
        );
        stage.user.edit_spec(&id, &json!({ "originRequest": null }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(document(&stage).0.get("originRequest").is_none());
    });
}

/// Field case 49.
#[test]
fn deletion_sets_the_document_back_and_keeps_the_tunnel() {
    play_with_account(106, |stage| async move {
        let (tunnel, id) = configured(&stage, &one_host()).await;
        stage.user.delete(&id);
        stage.gone(std::slice::from_ref(&id)).await;
        assert_eq!(document(&stage).0["ingress"], bare());
        assert!(stage.user.is_ready(&tunnel));
        // What is left is free for the next.
        let again = stage.create(configuration("again", "edge", &one_host()));
        stage.ready(&[again]).await;
    });
}

#[test]
fn what_is_retained_or_was_adopted_stays() {
    play_with_account(107, |stage| async move {
        let theirs = json!({ "ingress": [{ "hostname": "b.example.com", "service": "http://b" }, { "service": "http_status:404" }] });
        foreign_tunnel(
            &stage,
            TunnelSeed {
                config: theirs.as_object().cloned(),
                ..TunnelSeed::named("edge", "Example")
            },
        );
        let tunnel = stage.create(adopting(tunnel("edge"), "adopt"));
        let id = stage.create(configuration("edge", "edge", &one_host()));
        stage.ready(&[tunnel]).await;
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&id).contains("ingress"),
            "{}",
            stage.user.message(&id)
        );
        assert_eq!(document(&stage).1, 1);
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(document(&stage).0["ingress"][0]["hostname"], "a.example.com");
        stage.user.delete(&id);
        stage.gone(std::slice::from_ref(&id)).await;
        assert_eq!(
            document(&stage).0["ingress"][0]["hostname"],
            "a.example.com",
            "adopted, so kept"
        );
        let kept = configuration("kept", "edge", &one_host());
        let kept = stage.create(annotated(adopting(kept, "adopt"), names::DELETION_POLICY, "delete"));
        stage.ready(std::slice::from_ref(&kept)).await;
        stage.user.delete(&kept);
        stage.gone(std::slice::from_ref(&kept)).await;
        assert_eq!(document(&stage).0["ingress"], bare());
    });
}

/// Field case 50: one writer of the document, whatever is applied.
#[test]
fn the_oldest_configuration_has_the_tunnel_and_the_others_say_so() {
    play_with_account(108, |stage| async move {
        let (_, first) = configured(&stage, &one_host()).await;
        stage.rest(MINUTE).await;
        let other = json!([{ "hostname": "other.example.com", "service": "http://web:80" }]);
        let second = stage.create(adopting(configuration("another", "edge", &other), "adopt-or-create"));
        stage.says(&second, "False", "TunnelAlreadyConfigured").await;
        assert!(stage.user.message(&second).contains("edge"));
        let mark = stage.mark();
        stage.rest(6 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(document(&stage).1, 1);
        stage.user.delete(&first);
        stage.ready(std::slice::from_ref(&second)).await;
        assert_eq!(document(&stage).0["ingress"][0]["hostname"], "other.example.com");
        stage.gone(&[first]).await;
        stage.rest(HOUR).await;
        assert_eq!(document(&stage).0["ingress"][0]["hostname"], "other.example.com");
    });
}

/// Field case 67: a document that the connectors do not look at is not written.
#[test]
fn a_tunnel_that_is_configured_locally_is_left_alone() {
    play_with_account(109, |stage| async move {
        let local = TunnelSeed {
            config_src: ConfigSource::Local,
            ..TunnelSeed::named("edge", "Example")
        };
        foreign_tunnel(&stage, local);
        let tunnel = stage.create(adopting(tunnel("edge"), "adopt"));
        let id = stage.create(adopting(configuration("edge", "edge", &one_host()), "adopt-or-create"));
        stage.ready(&[tunnel]).await;
        stage.says(&id, "False", "LocallyManaged").await;
        stage.rest(HOUR).await;
        assert!(stage.cloudflare.calls().iter().all(|call| call.method != "PUT"));
    });
}

/// Field case 62. Applied in the wrong order and deleted in the wrong order; the record follows the tunnel.
#[test]
fn a_record_points_at_the_tunnel_and_keeps_it_in_use() {
    play_with_account(110, |stage| async move {
        let record = stage.record(
            "app",
            json!({ "name": "app", "type": "CNAME", "tunnelRef": { "name": "edge" }, "proxied": true }),
        );
        let config = stage.create(configuration("edge", "edge", &one_host()));
        stage.user.zone(ZONE, DOMAIN);
        stage.says(&record, "False", "TunnelNotFound").await;
        stage.says(&config, "False", "TunnelNotFound").await;
        let tunnel = stage.create(tunnel("edge"));
        stage.ready(&[tunnel.clone(), record.clone(), config.clone()]).await;
        let first = remote_id(&stage, &tunnel);
        let content = |stage: &Stage| stage.records()[0]["content"].clone();
        assert_eq!(content(&stage), json!(format!("{first}.cfargotunnel.com")));
        // Another tunnel under the same name: everything follows.
        stage.cloudflare.foreign_delete_tunnel(&first).unwrap();
        let followed = |stage: &Stage| {
            let now = stage.recorded(&tunnel).unwrap_or_default();
            now != first && content(stage) == json!(format!("{now}.cfargotunnel.com")) && stage.user.is_ready(&config)
        };
        stage.until("followed", followed).await;
        stage
            .until("the document follows", |stage| {
                document(stage).0["ingress"][0]["hostname"] == "a.example.com"
            })
            .await;
        stage.user.delete(&tunnel);
        stage.says(&tunnel, "False", "InUse").await;
        let message = stage.user.message(&tunnel);
        assert!(
            message.contains("app") && message.contains("TunnelConfiguration"),
            "{message}"
        );
        stage.user.delete(&zone_id());
        stage.user.delete(&User::account_id());
        stage.user.delete(&record);
        stage.user.delete(&config);
        stage.gone(&[tunnel, record, config, zone_id()]).await;
        assert!(live(&stage).is_empty());
    });
}

#[test]
fn a_document_that_cloudflare_refuses_is_said_and_not_sent_again() {
    play_with_account(111, |stage| async move {
        let tunnel = stage.create(tunnel("edge"));
        let bad = json!([{ "hostname": "a.example.com", "path": "(", "service": "http://web:80" }]);
        let id = stage.create(configuration("edge", "edge", &bad));
        stage.ready(&[tunnel]).await;
        stage.says(&id, "False", "InvalidSpec").await;
        assert!(
            stage.user.message(&id).contains("invalid regex"),
            "{}",
            stage.user.message(&id)
        );
        let mark = stage.mark();
        stage.rest(6 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.edit_spec(&id, &json!({ "ingress": one_host() }));
        stage.ready(&[id]).await;
    });
}

/// Drift checks of configurations cost one read each and no more.
#[test]
fn a_check_is_one_read() {
    play_with_account(112, |stage| async move {
        configured(&stage, &one_host()).await;
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        let calls = stage.since(&mark).calls;
        let reads = calls
            .iter()
            .filter(|call| call.route.as_deref() == Some(CONFIGURATIONS))
            .count();
        assert!((25..=35).contains(&reads), "{reads} reads in thirty checks");
    });
}
