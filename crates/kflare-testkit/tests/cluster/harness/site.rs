//! A cluster with kflare's CRDs and rights, and a simulated Cloudflare.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kflare_sim::{Latency, SimConfig, Simulator};
use kflare_testkit::clock::VirtualClock;
use kflare_testkit::cluster::{Kubectl, install};
pub use kflare_testkit::cluster::{SERVICE_ACCOUNT, SYSTEM};
use kflare_testkit::control_plane::{self, Access, ControlPlane, ControlPlaneOptions};
use kflare_testkit::sim_transport::SimTransport;
use kflare_testkit::trace::{Trace, TraceDetail};
use tokio::sync::OnceCell;

use super::replica::{Replica, ReplicaOptions};

/// See the module.
pub struct Site {
    /// The way to the cluster.
    pub access: Access,
    /// The cluster's kubectl, as administrator.
    pub kubectl: Kubectl,
    /// Cloudflare.
    pub cloudflare: Simulator,
    /// The way to it. Its trace names the replica of each call.
    pub way: SimTransport,
    /// The calls on that way, one line when made and one when answered.
    pub trace: Trace,
}

static SHARED: OnceCell<(Site, Replica)> = OnceCell::const_new();

async fn shared_parts() -> &'static (Site, Replica) {
    let make = async || {
        let site = Site::prepare(control_plane::shared().await.unwrap(), kflare_api::crds()).await;
        let replica = Replica::start(&site, ReplicaOptions::named("shared")).await;
        (site, replica)
    };
    SHARED.get_or_init(make).await
}

/// The site of most tests. Its controller runs, without scheduled drift checks.
pub async fn shared() -> &'static Site {
    &shared_parts().await.0
}

/// The controller of the shared site.
pub async fn shared_replica() -> &'static Replica {
    &shared_parts().await.1
}

impl Site {
    /// A site of one's own, whose control plane may be stopped, with all CRDs.
    pub async fn fresh() -> (ControlPlane, Self) {
        let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await.unwrap();
        let site = Self::prepare(control_plane.access().clone(), kflare_api::crds()).await;
        (control_plane, site)
    }

    /// Makes a cluster ready for kflare: these CRDs, the generated rights, the ServiceAccount. No controller runs yet.
    pub async fn prepare(access: Access, crds: Vec<CustomResourceDefinition>) -> Self {
        let kubectl = install(&access, crds).await.unwrap();
        let cloudflare = Simulator::new(SimConfig {
            latency: Latency::between(Duration::from_millis(1), Duration::from_millis(5)),
            ..SimConfig::default()
        });
        let trace = Trace::new(TraceDetail::Lines);
        let clock = VirtualClock::new(Timestamp::now());
        Self {
            access,
            kubectl,
            way: SimTransport::new(cloudflare.clone(), trace.clone(), clock),
            cloudflare,
            trace,
        }
    }
}
