//! A cluster with kflare's CRDs and rights, and a simulated Cloudflare.

use std::time::Duration;

use kflare_sim::{Latency, SimConfig, Simulator};
use kflare_testkit::cluster::{SERVICE_ACCOUNT, SYSTEM, install};
use kflare_testkit::control_plane::{self, Access};
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

static INSTALLED: OnceCell<Access> = OnceCell::const_new();

impl Site {
    /// A simulated Cloudflare of one's own, and the cluster that all tests of the run share.
    pub async fn shared() -> Self {
        let install_once = async || {
            let access = control_plane::shared().await.unwrap();
            install(&access, kflare_api::crds()).await.unwrap();
            access
        };
        Self::at(INSTALLED.get_or_init(install_once).await).await
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
