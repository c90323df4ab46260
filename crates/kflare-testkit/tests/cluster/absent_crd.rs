//! A kind whose CRD is not installed is left out, and picked up when it appears.

use kflare_testkit::cluster::apply_crds;
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions};

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Replica, ReplicaOptions, Site, play};

#[tokio::test]
async fn a_missing_crd_stops_no_other_kind_and_is_taken_up_when_it_comes() {
    let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await.unwrap();
    let (now, later): (Vec<_>, Vec<_>) = kflare_api::crds()
        .into_iter()
        .partition(|crd| crd.spec.names.kind != "DNSRecord");
    assert_eq!((now.len(), later.len()), (kflare_api::crds().len() - 1, 1));
    let site = Site::prepare(control_plane.access().clone(), now).await;
    let client = site.access.client().await.unwrap();
    let replica = Replica::start(&site, ReplicaOptions::named("early")).await;
    play(&site, &client, "absent", async |tenant| {
        tenant.open().await;
        assert!(replica.is_ready());
        apply_crds(&client, later).await.unwrap();
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        // From now on deletion waits for it like for any other.
        tenant.delete(Kind::Zone, ZONE).await;
        tenant.delete(Kind::Record, "www").await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        assert!(replica.is_running());
    })
    .await;
    replica.stopped().await.unwrap();
}
