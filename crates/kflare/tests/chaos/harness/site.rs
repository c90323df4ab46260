//! A cluster with kflare's CRDs and rights, and a simulated Cloudflare.

use std::time::Duration;

use kflare_sim::{Latency, SimConfig, Simulator};
use kflare_testkit::cluster::{SERVICE_ACCOUNT, SYSTEM, install};
use kflare_testkit::control_plane::{Access, ControlPlane, ControlPlaneOptions};
use kube::Client;
use tokio::sync::OnceCell;

/// See the module.
pub struct Site {
    /// A client with every right.
    pub admin: Client,
    /// A client with the rights of the controller's ServiceAccount.
    pub controller: Client,
    /// Cloudflare.
    pub cloudflare: Simulator,
}

/// Ends with the process.
static CONTROL_PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

impl Site {
    /// A simulated Cloudflare of one's own, and the cluster that the tests here share: with nobody else, because what is left
    /// behind when a story ends would be work for the controllers of other tests.
    pub async fn shared() -> Self {
        let start = async || {
            let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await.unwrap();
            install(control_plane.access(), kflare_api::crds()).await.unwrap();
            control_plane
        };
        Self::at(CONTROL_PLANE.get_or_init(start).await.access()).await
    }

    /// On a cluster of one's own.
    pub async fn on(access: &Access) -> Self {
        install(access, kflare_api::crds()).await.unwrap();
        Self::at(access).await
    }

    async fn at(access: &Access) -> Self {
        Self {
            admin: access.client().await.unwrap(),
            controller: access.service_account_client(SYSTEM, SERVICE_ACCOUNT).await.unwrap(),
            cloudflare: Simulator::new(SimConfig {
                latency: Latency::between(Duration::from_millis(1), Duration::from_millis(5)),
                ..SimConfig::default()
            }),
        }
    }
}
