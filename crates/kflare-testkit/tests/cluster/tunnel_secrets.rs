//! The Secret of a Tunnel, from its creation to its end, on a real API server.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions, Controllers};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::harness::tenant::id_of;
use crate::harness::{Kind, Replica, ReplicaOptions, Site, Tenant, play, scenario};

const KEY: &str = "TUNNEL_TOKEN";

async fn create_tunnel(tenant: &Tenant<'_>, name: &str, secret: &str) {
    let spec = json!({
        "accountRef": { "name": tenant.account },
        "name": format!("{name}-{}", tenant.home()),
        "credentialsSecretRef": { "name": secret },
    });
    tenant.create(Kind::Tunnel, name, &[], spec).await;
}

async fn value(tenant: &Tenant<'_>, secret: &str) -> Option<String> {
    let found = tenant.secrets().get_opt(secret).await.unwrap()?;
    let bytes = found.data?.remove(KEY)?.0;
    String::from_utf8(bytes).ok()
}

/// Waits until the Secret holds the token of the tunnel.
async fn until_in_order(tenant: &Tenant<'_>, tunnel: &str, secret: &str) {
    let probe = async || {
        let tunnel = tenant.get(Kind::Tunnel, tunnel).await;
        let token = tenant.site.cloudflare.tunnel_token(&id_of(&tunnel));
        let there = value(tenant, secret).await;
        Ok::<_, String>((there.is_some() && there == token).then_some(()))
    };
    tenant.until(&format!("Secret {secret} in order"), probe).await;
}

fn theirs(name: &str) -> Secret {
    let data = [(KEY.to_owned(), ByteString(b"theirs".to_vec()))];
    let mut secret = Secret {
        data: Some(data.into()),
        ..Secret::default()
    };
    secret.metadata.name = Some(name.to_owned());
    secret
}

#[tokio::test]
async fn the_secret_of_a_tunnel_is_made_put_right_and_moved() {
    scenario("yields", async |tenant| {
        tenant.connect().await;
        create_tunnel(tenant, "edge", "edge-token").await;
        let tunnel = tenant.until_ready(Kind::Tunnel, "edge").await;
        until_in_order(tenant, "edge", "edge-token").await;
        let secret = tenant.secrets().get("edge-token").await.unwrap();
        let [owner] = secret.owner_references() else {
            panic!("{:?}", secret.metadata)
        };
        assert_eq!((&owner.uid, owner.controller), (&tunnel.uid().unwrap(), Some(true)));
        assert_eq!(tunnel.data["status"]["credentialsSecretName"], "edge-token");

        let spoilt = json!({ "data": { KEY: ByteString(b"spoilt".to_vec()) } });
        let params = PatchParams::default();
        tenant
            .secrets()
            .patch("edge-token", &params, &Patch::Merge(&spoilt))
            .await
            .unwrap();
        until_in_order(tenant, "edge", "edge-token").await;
        tenant.until_event(Kind::Tunnel, "edge", "DriftCorrected").await;
        tenant
            .secrets()
            .delete("edge-token", &DeleteParams::default())
            .await
            .unwrap();
        until_in_order(tenant, "edge", "edge-token").await;

        let moved = json!({ "spec": { "credentialsSecretRef": { "name": "moved" } } });
        tenant.change(Kind::Tunnel, "edge", moved).await;
        until_in_order(tenant, "edge", "moved").await;
        let gone = async || {
            tenant
                .secrets()
                .get_opt("edge-token")
                .await
                .map(|it| it.is_none().then_some(()))
        };
        tenant.until("the old Secret gone", gone).await;
        let tunnel = tenant.until_ready(Kind::Tunnel, "edge").await;
        assert_eq!(tunnel.data["status"]["credentialsSecretName"], "moved");
        let token = value(tenant, "moved").await.unwrap();
        assert!(!serde_json::to_string(&tunnel).unwrap().contains(&token));
        tenant.delete(Kind::Tunnel, "edge").await;
        tenant.until_gone(Kind::Tunnel, "edge").await;
    })
    .await;
}

#[tokio::test]
async fn a_secret_of_somebody_else_stops_the_tunnel_and_stays_as_it_is() {
    scenario("conflict", async |tenant| {
        tenant.connect().await;
        tenant.until_ready(Kind::Account, &tenant.account).await;
        let before = tenant
            .secrets()
            .create(&PostParams::default(), &theirs("edge-token"))
            .await
            .unwrap();
        create_tunnel(tenant, "edge", "edge-token").await;
        let ready = tenant.until_reason(Kind::Tunnel, "edge", "SecretConflict").await;
        assert!(ready.message.contains("edge-token"), "{}", ready.message);
        assert!(tenant.site.cloudflare.tunnels(&tenant.account_id).is_empty());
        let after = tenant.secrets().get("edge-token").await.unwrap();
        assert_eq!(after.resource_version(), before.resource_version());
        tenant
            .secrets()
            .delete("edge-token", &DeleteParams::default())
            .await
            .unwrap();
        tenant.until_ready(Kind::Tunnel, "edge").await;
        until_in_order(tenant, "edge", "edge-token").await;
    })
    .await;
}

/// Kubernetes collects the Secret with its Tunnel, and only that.
#[tokio::test]
async fn the_secret_goes_with_its_tunnel() {
    let options = ControlPlaneOptions {
        controllers: Controllers::ControllerManager,
        ..Default::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let site = Site::prepare(control_plane.access().clone(), kflare_api::crds()).await;
    let client = site.access.client().await.unwrap();
    let replica = Replica::start(&site, ReplicaOptions::named("collects")).await;
    play(&site, &client, "collected", async |tenant| {
        tenant.connect().await;
        tenant
            .secrets()
            .create(&PostParams::default(), &theirs("theirs"))
            .await
            .unwrap();
        create_tunnel(tenant, "edge", "edge-token").await;
        tenant.until_ready(Kind::Tunnel, "edge").await;
        tenant.delete(Kind::Tunnel, "edge").await;
        tenant.until_gone(Kind::Tunnel, "edge").await;
        let gone = async || {
            tenant
                .secrets()
                .get_opt("edge-token")
                .await
                .map(|it| it.is_none().then_some(()))
        };
        tenant.until("the Secret gone", gone).await;
        assert_eq!(value(tenant, "theirs").await.as_deref(), Some("theirs"));
    })
    .await;
    replica.stopped().await.unwrap();
}
