//! A cluster with kflare's CRDs, and a simulated Cloudflare on a socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kflare_api::{CloudflareAccount, names};
use kflare_sim::{AccountSeed, Latency, Seed, ServeOptions, SimConfig, Simulator, TokenSeed, ZoneSeed};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::ProcessError;
use super::controller::Controller;
use crate::cluster::apply_crds;
use crate::control_plane::{ControlPlane, ControlPlaneOptions};
use crate::simulation::{ACCOUNT_ID, everything};

/// Where the controller and its token are.
const SYSTEM: &str = "kflare-system";
/// Where the resources are.
pub(super) const TENANT: &str = "tenant";
/// Where other people's Secrets are.
pub(super) const STRANGERS: &str = "strangers";
const LATENCY: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_millis(5);
const SWEEPS_WITHIN: Duration = Duration::from_mins(3);

/// See the module.
pub(super) struct Site {
    /// A client with every right.
    pub client: Client,
    /// Cloudflare.
    pub cloudflare: Simulator,
    control_plane: ControlPlane,
    folder: PathBuf,
    url: String,
    /// The simulator is served until this is dropped.
    _serving: oneshot::Sender<()>,
}

impl Site {
    /// Starts everything but the controller, with these zones in the account.
    pub async fn prepare(zones: Vec<ZoneSeed>) -> Result<Self, ProcessError> {
        let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
        let client = control_plane.client().await?;
        apply_crds(&client, kflare_api::crds()).await?;
        let cloudflare = Simulator::new(SimConfig {
            latency: Latency::fixed(LATENCY),
            ..SimConfig::default()
        });
        let seed = Seed {
            accounts: vec![AccountSeed {
                id: Some(ACCOUNT_ID.to_owned()),
                ..AccountSeed::named("Example")
            }],
            tokens: vec![TokenSeed::of_user(&token(), everything())],
            zones,
            ..Seed::default()
        };
        cloudflare
            .seed(&seed)
            .map_err(|error| ProcessError::Simulator(error.to_string()))?;
        let (address, serving) = serve(cloudflare.clone()).await?;
        let folder = control_plane
            .access()
            .kubeconfig_path()
            .parent()
            .map(Path::to_owned)
            .unwrap_or_default();
        let site = Self {
            client,
            cloudflare,
            control_plane,
            folder,
            url: format!("http://{address}/client/v4"),
            _serving: serving,
        };
        for name in [SYSTEM, TENANT, STRANGERS] {
            let manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            create(&Api::<Namespace>::all(site.client.clone()), manifest).await?;
        }
        Ok(site)
    }

    /// Applies the account with its token.
    pub async fn connect(&self) -> Result<(), ProcessError> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "token", "namespace": SYSTEM },
            "stringData": { "CF_API_TOKEN": token() },
        });
        create(&Api::<Secret>::namespaced(self.client.clone(), SYSTEM), secret).await?;
        let account = json!({
            "apiVersion": names::API_VERSION, "kind": "CloudflareAccount",
            "metadata": { "name": "main" },
            "spec": {
                "accountID": ACCOUNT_ID,
                "tokenSecretRef": { "name": "token", "namespace": SYSTEM, "key": "CF_API_TOKEN" },
            },
        });
        create(&Api::<CloudflareAccount>::all(self.client.clone()), account).await
    }

    /// The kubeconfig of the cluster, with every right.
    pub fn kubeconfig(&self) -> &Path {
        self.control_plane.access().kubeconfig_path()
    }

    /// Where files may be written; it goes with the control plane.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What to give to `--cloudflare-url`.
    pub fn cloudflare_url(&self) -> &str {
        &self.url
    }

    /// The number of the last call to Cloudflare.
    pub fn last_call(&self) -> u64 {
        self.cloudflare.calls().last().map_or(0, |call| call.sequence)
    }

    /// How many sweeps of the zone's records have begun after a call.
    pub fn sweeps_since(&self, call: u64) -> usize {
        let calls = self.cloudflare.calls_since(call);
        let first_page = |path: &str| !path.contains("page=") || path.contains("&page=1&") || path.ends_with("page=1");
        calls
            .iter()
            .filter(|it| {
                it.method == "GET"
                    && it.route.as_deref() == Some("/zones/{zone_id}/dns_records")
                    && first_page(&it.path.replace("per_page", "size"))
            })
            .count()
    }

    /// Waits until so many sweeps have begun from now on.
    pub async fn wait_for_sweeps(&self, controller: &Controller, sweeps: usize) -> Result<(), ProcessError> {
        let (call, deadline) = (self.last_call(), Instant::now() + SWEEPS_WITHIN);
        while self.sweeps_since(call) < sweeps {
            if Instant::now() > deadline {
                return Err(controller.not_in_time(format!("{sweeps} drift checks"), SWEEPS_WITHIN));
            }
            sleep(POLL).await;
        }
        Ok(())
    }
}

fn token() -> String {
    crate::simulation::token(1)
}

/// Serves a simulator on a thread of its own until the sender is dropped.
async fn serve(simulator: Simulator) -> Result<(std::net::SocketAddr, oneshot::Sender<()>), ProcessError> {
    let (bound, address) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let options = ServeOptions {
        listen: std::net::SocketAddr::from(([127, 0, 0, 1], 0)),
        tls: None,
        state_file: None,
        bound: Some(bound),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ProcessError::io("making a runtime for the simulator"))?;
    std::thread::spawn(move || {
        let served = runtime.block_on(kflare_sim::serve(simulator, options, stopped.map(drop)));
        if let Err(error) = served {
            eprintln!("bench: {error}");
        }
    });
    let address = address
        .await
        .map_err(|_| ProcessError::Simulator("it has not started".to_owned()))?;
    Ok((address, stop))
}

/// Creates an object from a manifest.
pub(super) async fn create<K>(api: &Api<K>, manifest: Value) -> Result<(), ProcessError>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(manifest)
        .map_err(|source| ProcessError::cluster("making an object")(kube::Error::SerdeError(source)))?;
    let created = api.create(&PostParams::default(), &object).await;
    created.map(drop).map_err(ProcessError::cluster("creating an object"))
}
