//! The order of deletion never matters.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kflare_api::names;
use kflare_sim::ForeignCall;
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions, Controllers};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Replica, ReplicaOptions, Site, Tenant, play, scenario, site};

/// Waits until nothing is left of a tenant, in the cluster and at Cloudflare.
async fn until_nothing_is_left(tenant: &Tenant<'_>) {
    tenant.until_gone(Kind::Zone, ZONE).await;
    tenant.until_gone(Kind::Account, &tenant.account).await;
    tenant.until_secret_gone().await;
    let records = tenant.api(Kind::Record);
    let none = async || {
        let left = records.list(&ListParams::default()).await?.items;
        Ok::<_, kube::Error>(left.is_empty().then_some(()))
    };
    tenant.until("no record", none).await;
    assert_eq!(tenant.remote_zone(), None);
}

#[tokio::test]
async fn the_quickstart_is_applied_and_deleted_in_one_go() {
    scenario("one-go", async |tenant| {
        let manifests = ["account.yaml", "zone.yaml", "records.yaml"];
        let text = crate::gitops::localized(tenant, "examples/quickstart", &manifests);
        let kubectl = &tenant.site.kubectl;
        tenant.create_secret().await;
        kubectl.feed(&["apply", "-f", "-"], &text).await.unwrap();
        let records = tenant.api(Kind::Record).list(&ListParams::default()).await.unwrap();
        assert!(records.items.len() >= 5, "{}", records.items.len());
        for record in &records {
            tenant.until_ready(Kind::Record, &record.name_any()).await;
        }
        assert_eq!(tenant.remote_records().len(), records.items.len());

        // The Secret goes first, and kubectl waits for everything else.
        tenant.delete_secret().await;
        kubectl
            .feed(&["delete", "--timeout=60s", "-f", "-"], &text)
            .await
            .unwrap();
        let zone = tenant.api(Kind::Zone).list(&ListParams::default()).await.unwrap();
        assert_eq!(zone.items.len(), 0);
        until_nothing_is_left(tenant).await;
    })
    .await;
}

#[tokio::test]
async fn expose_a_service_is_applied_and_deleted_in_one_go() {
    scenario("expose", async |tenant| {
        let manifests = [
            "account.yaml",
            "zone.yaml",
            "tunnel.yaml",
            "cloudflared.yaml",
            "hello.yaml",
        ];
        let text = crate::gitops::localized(tenant, "examples/expose-a-service", &manifests);
        let kubectl = &tenant.site.kubectl;
        tenant.create_secret().await;
        kubectl.feed(&["apply", "-f", "-"], &text).await.unwrap();
        let tunnel = tenant.until_ready(Kind::Tunnel, "web").await;
        tenant.until_ready(Kind::TunnelConfiguration, "web").await;
        tenant.until_ready(Kind::Record, "hello").await;
        let id = crate::harness::tenant::id_of(&tunnel);
        let [record] = tenant.remote("hello").try_into().unwrap();
        assert_eq!(record["content"], format!("{id}.cfargotunnel.com"));
        let [remote] = tenant.site.cloudflare.tunnels(&tenant.account_id).try_into().unwrap();
        assert_eq!(
            remote["configuration"]["config"]["ingress"][0]["hostname"],
            format!("hello.{}", tenant.domain)
        );

        // The connectors find the token where the Deployment looks for it.
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = tenant.namespace.api();
        let pods = deployments
            .get("cloudflared")
            .await
            .unwrap()
            .spec
            .unwrap()
            .template
            .spec;
        let env = pods.unwrap().containers[0].env.clone().unwrap();
        let from = env[0].value_from.clone().unwrap().secret_key_ref.unwrap();
        let secret = tenant.secrets().get(&from.name).await.unwrap();
        let token = secret.data.unwrap()[&from.key].0.clone();
        assert_eq!(String::from_utf8(token).ok(), tenant.site.cloudflare.tunnel_token(&id));

        kubectl
            .feed(&["delete", "--timeout=60s", "-f", "-"], &text)
            .await
            .unwrap();
        tenant.delete_secret().await;
        until_nothing_is_left(tenant).await;
        let left = tenant.site.cloudflare.tunnels(&tenant.account_id);
        assert!(left.iter().all(|it| !it["deleted_at"].is_null()), "{left:#?}");
    })
    .await;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Secret,
    Account,
    Zone,
    First,
    Second,
}

async fn delete(tenant: &Tenant<'_>, piece: Piece) {
    // What has gone meanwhile is gone.
    let (kind, name) = match piece {
        Piece::Secret => return drop(tenant.secrets().delete("token", &DeleteParams::default()).await),
        Piece::Account => (Kind::Account, &*tenant.account),
        Piece::Zone => (Kind::Zone, ZONE),
        Piece::First => (Kind::Record, "first"),
        Piece::Second => (Kind::Record, "second"),
    };
    tenant.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn account_zone_records_and_secret_may_be_deleted_in_any_order() {
    use Piece::{Account, First, Second, Secret, Zone};
    let orders = [
        [Secret, Account, Zone, First, Second],
        [Second, First, Zone, Account, Secret],
        [Zone, Secret, First, Account, Second],
        [Account, First, Secret, Second, Zone],
        [First, Zone, Second, Secret, Account],
        [Secret, Second, Account, Zone, First],
        [Zone, Account, Second, First, Secret],
        [First, Secret, Zone, Account, Second],
    ];
    let site = site::shared().await;
    let client = site.access.client().await.unwrap();
    let stories = orders.map(|order| {
        play(site, &client, "shuffle", async move |tenant| {
            tenant.open().await;
            for name in ["first", "second"] {
                tenant.create_a(name, &[]).await;
                tenant.until_ready(Kind::Record, name).await;
            }
            for piece in order {
                delete(tenant, piece).await;
            }
            until_nothing_is_left(tenant).await;
        })
    });
    join_all(stories).await;
}

#[tokio::test]
async fn what_is_deleted_while_it_is_being_created_leaves_nothing_behind() {
    scenario("race", async |tenant| {
        tenant.connect().await;
        tenant.create_zone(&[]).await;
        for name in ["first", "second"] {
            tenant.create_a(name, &[]).await;
        }
        for piece in [Piece::Zone, Piece::Account, Piece::Secret, Piece::First, Piece::Second] {
            delete(tenant, piece).await;
        }
        until_nothing_is_left(tenant).await;
    })
    .await;
}

// Field case 124.
#[tokio::test]
async fn a_whole_namespace_is_deleted_with_everything_in_it() {
    let options = ControlPlaneOptions {
        controllers: Controllers::ControllerManager,
        ..Default::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let site = Site::prepare(control_plane.access().clone(), kflare_api::crds()).await;
    let client = site.access.client().await.unwrap();
    let replica = Replica::start(&site, ReplicaOptions::named("sweeps")).await;
    play(&site, &client, "whole", async |tenant| {
        tenant.open().await;
        for name in ["first", "second", "third"] {
            tenant.create_a(name, &[]).await;
            tenant.until_ready(Kind::Record, name).await;
        }
        // The namespace controller deletes in no order, the Secret with the token too.
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .delete(tenant.home(), &DeleteParams::default())
            .await
            .unwrap();
        tenant.delete(Kind::Account, &tenant.account).await;
        until_nothing_is_left(tenant).await;
        let gone = async || {
            namespaces
                .get_opt(tenant.home())
                .await
                .map(|it| it.is_none().then_some(()))
        };
        tenant.until("the namespace gone", gone).await;
        assert!(replica.is_running());
    })
    .await;
    replica.stopped().await.unwrap();
}

/// Applies an example, its documents last first, waits for everything in it, and deletes it in one go.
async fn come_and_go(tenant: &Tenant<'_>, example: &str, files: &[&str]) {
    let folder = format!("examples/{example}");
    let text = crate::gitops::localized(tenant, &folder, files);
    let mut documents: Vec<&str> = text.split("---\n").filter(|it| !it.trim().is_empty()).collect();
    documents.reverse();
    let text = documents.join("---\n");
    let kubectl = &tenant.site.kubectl;
    tenant.create_secret().await;
    kubectl.feed(&["apply", "-f", "-"], &text).await.unwrap();
    for document in &documents {
        let object: Value = serde_json::from_str(document).unwrap();
        let kind = object["kind"].as_str().unwrap();
        if object["apiVersion"] == names::API_VERSION {
            let name = object["metadata"]["name"].as_str().unwrap();
            tenant.until_ready(Kind::named(kind), name).await;
        }
    }
    kubectl
        .feed(&["delete", "--timeout=60s", "-f", "-"], &text)
        .await
        .unwrap();
    tenant.delete_secret().await;
    until_nothing_is_left(tenant).await;
}

/// What the account holds at a path of the API.
fn held(tenant: &Tenant<'_>, path: &str) -> Value {
    let call = ForeignCall::new("GET", format!("/accounts/{}/{path}", tenant.account_id));
    tenant.site.cloudflare.foreign_call(&call).unwrap()
}

#[tokio::test]
async fn waf_and_redirects_come_and_go_in_any_order() {
    scenario("waf", async |tenant| {
        come_and_go(
            tenant,
            "waf-and-redirects",
            &["account.yaml", "zone.yaml", "rules.yaml"],
        )
        .await;
        assert_eq!(held(tenant, "rules/lists"), json!([]));
    })
    .await;
}

#[tokio::test]
async fn a_worker_with_kv_comes_and_goes_in_any_order() {
    scenario("worker", async |tenant| {
        come_and_go(tenant, "worker-with-kv", &["account.yaml", "zone.yaml", "worker.yaml"]).await;
        assert_eq!(held(tenant, "workers/scripts"), json!([]));
        assert_eq!(held(tenant, "storage/kv/namespaces"), json!([]));
    })
    .await;
}

#[tokio::test]
async fn r2_and_d1_come_and_go_and_the_database_that_is_to_stay_stays() {
    scenario("storage", async |tenant| {
        come_and_go(tenant, "r2-and-d1", &["account.yaml", "storage.yaml"]).await;
        assert_eq!(held(tenant, "storage/kv/namespaces"), json!([]));
        let left = held(tenant, "d1/database");
        assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
        let buckets = ForeignCall::new("GET", format!("/accounts/{}/r2/buckets", tenant.account_id));
        let buckets = tenant
            .site
            .cloudflare
            .foreign_call(&buckets.header("cf-r2-jurisdiction", "eu"));
        assert_eq!(buckets.unwrap()["buckets"], json!([]));
    })
    .await;
}
