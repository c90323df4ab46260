//! One life of the controller: a process of its own, on a wire of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kflare_testkit::cluster::WaitError;
use kflare_testkit::guarded::Guarded;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::proxy::{self, Slice};
use super::tenant::Tenant;
use super::wire::{Trap, Wire};

/// How much of a log is shown, in bytes.
const LOG_TAIL: u64 = 6_000;

/// A running controller. It dies with this value.
pub struct Life {
    /// What it hangs on.
    pub wire: Arc<Wire>,
    process: Guarded,
    health: SocketAddr,
    _servers: JoinSet<()>,
    _folder: TempDir,
}

/// What a controller is started with. The default: alone, on the wire, without a trap.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Where it gets stuck.
    pub trap: Option<Trap>,
    /// The Lease for which it contends with others.
    pub lease: Option<String>,
    /// The way to the cluster, if not by the wire.
    pub kubeconfig: Option<PathBuf>,
    /// The base URL of Cloudflare, if not by the wire.
    pub cloudflare: Option<String>,
    /// `--drift-check-interval`.
    pub drift_check: Option<String>,
}

impl Life {
    /// Starts a controller for one tenant and waits until its store is filled.
    pub async fn begin(tenant: &Tenant<'_>, setting: Setting) -> Result<Self, WaitError> {
        let folder = tempfile::tempdir().unwrap();
        let (site, mut servers) = (tenant.site, JoinSet::new());
        let wire = Arc::new(Wire::new(tenant.home(), setting.trap));
        let kubeconfig = if let Some(path) = setting.kubeconfig {
            path
        } else {
            let slice = Slice::of(tenant.home());
            let end = proxy::kubernetes(&mut servers, &wire, slice, site.controller.clone()).await;
            let path = folder.path().join("kubeconfig");
            fs::write(&path, open_door(end).to_string()).unwrap();
            path
        };
        let cloudflare = if let Some(url) = setting.cloudflare {
            url
        } else {
            let end = proxy::cloudflare(&mut servers, &wire, site.cloudflare.clone()).await;
            format!("http://{end}/client/v4")
        };
        let mut arguments = vec![
            "controller".to_owned(),
            format!("--cloudflare-url={cloudflare}"),
            "--health-addr=127.0.0.1:0".to_owned(),
            "--metrics-addr=0".to_owned(),
        ];
        arguments.push(match setting.lease {
            None => "--leader-elect=false".to_owned(),
            Some(name) => format!("--lease-name={name}"),
        });
        arguments.extend(setting.drift_check.map(|it| format!("--drift-check-interval={it}")));
        let (log, environment) = (
            folder.path().join("log"),
            format!("KUBECONFIG={}", kubeconfig.display()),
        );
        let process = start(&log, &[environment], &arguments);
        let told = until_told(tenant, &log, "probes listen").await?;
        let life = Self {
            wire,
            process,
            health: told.parse().unwrap(),
            _servers: servers,
            _folder: folder,
        };
        life.until_ready(tenant).await?;
        Ok(life)
    }

    async fn until_ready(&self, tenant: &Tenant<'_>) -> Result<(), WaitError> {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{}/readyz", self.health);
        let ready = async || {
            let status = client.get(&url).send().await?.status();
            Ok::<_, reqwest::Error>(status.is_success().then_some(()))
        };
        tenant.until("the controller ready", ready).await
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to stop, and waits until it has ended as asked.
    pub async fn stop(&mut self, tenant: &Tenant<'_>) -> Result<(), WaitError> {
        self.process.signal("TERM").unwrap();
        let status = self.ended(tenant).await?;
        assert_eq!(
            status,
            Some(0),
            "how a controller ends that is asked to\n{}",
            self.log()
        );
        Ok(())
    }

    /// Waits until it has ended. Returns its exit status.
    pub async fn ended(&mut self, tenant: &Tenant<'_>) -> Result<Option<i32>, WaitError> {
        let process = &mut self.process;
        let ended = async || process.exited();
        tenant
            .until("the end of the controller", ended)
            .await
            .map(|it| it.code())
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        self.process.exited().unwrap().is_none()
    }

    /// Sends it a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        self.process.signal(name).unwrap();
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        self.process.log_tail(LOG_TAIL)
    }

    /// What it did, for a person.
    pub fn told(&self) -> String {
        format!("its calls and writes:\n{}its log:\n{}", self.wire.told(), self.log())
    }
}

/// The kubeconfig of a server that asks for nothing.
fn open_door(server: SocketAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "wire",
        "contexts": [{ "name": "wire", "context": { "cluster": "wire", "user": "wire" } }],
        "clusters": [{ "name": "wire", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": "wire", "user": {} }],
    })
}

/// Starts `kflare` with nothing of the test's own environment. Its log goes to a file.
pub fn start(log: &Path, environment: &[String], arguments: &[String]) -> Guarded {
    let clean = ["-i".to_owned(), "HOME=/nonexistent".to_owned()];
    let program = [env!("CARGO_BIN_EXE_kflare").to_owned()];
    let all = [&clean[..], environment, &program, arguments].concat();
    Guarded::spawn("kflare", Path::new("env"), &all, log.to_owned()).unwrap()
}

/// Waits until a log has the line with this message. Returns the address in it.
pub async fn until_told(tenant: &Tenant<'_>, log: &Path, message: &str) -> Result<String, WaitError> {
    let told = async || {
        let text = fs::read_to_string(log)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut told = lines.filter(|line| line["message"] == message);
        Ok::<_, std::io::Error>(told.next().and_then(|line| Some(line["address"].as_str()?.to_owned())))
    };
    tenant.until(message, told).await
}
