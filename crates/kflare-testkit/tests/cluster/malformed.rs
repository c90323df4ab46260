//! An object that does not parse is told about on that object, and stops nothing else.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceSubresourceStatus, CustomResourceSubresources, JSONSchemaProps,
};
use kflare_testkit::cluster::apply_crds;
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions};
use serde_json::json;

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Replica, ReplicaOptions, Site, play};

/// A definition that takes anything, as an old or hand-edited one might.
fn permissive(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().unwrap();
        schema.open_api_v3_schema = Some(JSONSchemaProps {
            type_: Some("object".to_owned()),
            x_kubernetes_preserve_unknown_fields: Some(true),
            ..JSONSchemaProps::default()
        });
        version.subresources = Some(CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(json!({}))),
            scale: None,
        });
    }
    crd
}

#[tokio::test]
async fn an_object_that_no_longer_parses_says_so_and_its_kind_goes_on() {
    let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await.unwrap();
    let old = kflare_api::crds().into_iter().map(permissive).collect();
    let site = Site::prepare(control_plane.access().clone(), old).await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "malformed", async |tenant| {
        // A record whose reference is a text, one with a type nobody knows, one without any spec.
        let broken = [
            json!({ "zoneRef": ZONE, "name": "text", "type": "A", "content": "192.0.2.1" }),
            json!({ "zoneRef": { "name": ZONE }, "name": "unknown", "type": "A7", "content": "192.0.2.1" }),
            json!("nothing of the kind"),
        ];
        for (number, spec) in broken.iter().enumerate() {
            tenant
                .create(Kind::Record, &format!("broken-{number}"), &[], spec.clone())
                .await;
        }
        // Today's definitions come; what is stored stays as it is.
        apply_crds(&client, kflare_api::crds()).await.unwrap();
        let replica = Replica::start(&site, ReplicaOptions::named("strict")).await;
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let told = tenant.until_reason(Kind::Record, "broken-1", "InvalidSpec").await;
        assert!(told.status == "False" && told.message.contains("A7"), "{told:?}");
        // The API server takes no change of what has another structure than its schema, not even of its status.
        for name in ["broken-0", "broken-2"] {
            let told = tenant.until_event(Kind::Record, name, "InvalidSpec").await;
            assert!(told.contains("spec does not parse"), "{told}");
        }
        assert_eq!(tenant.remote_records().len(), 1);
        for name in ["broken-0", "broken-1", "broken-2"] {
            tenant.delete(Kind::Record, name).await;
            tenant.until_gone(Kind::Record, name).await;
        }
        tenant
            .change(Kind::Record, "www", json!({ "spec": { "ttl": 300 } }))
            .await;
        tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(tenant.remote_records().len(), 1);
        replica.stopped().await.unwrap();
    })
    .await;
}
