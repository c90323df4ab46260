//! A real control plane: etcd and kube-apiserver (and kube-controller-manager on request) as child processes.
//!
//! `hack/test-control-plane` finds or builds the binaries. Every process dies with the test process, however that ends:
//! each runs under a small shell which kills it when a pipe from us closes.

mod access;
mod arguments;
mod error;
mod shared;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

pub use self::access::Access;
use self::arguments::Layout;
pub use self::error::ControlPlaneError;
pub use self::shared::{SHARED_KUBECONFIG_VARIABLE, shared};
use crate::guarded::{Guarded, WorkFolder};

/// How long a process may take to become ready. A start takes three seconds on an idle machine of two cores.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// How often readiness is asked for.
const READY_POLL: Duration = Duration::from_millis(50);
/// How much of a log goes into an error message, in bytes.
const LOG_TAIL: u64 = 4096;
/// A port found free may be taken by someone else before we use it: so many starts are tried.
const START_ATTEMPTS: u32 = 3;

/// Which controllers run next to the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// None: no garbage collection, deleted namespaces stay `Terminating`, and nobody creates default ServiceAccounts.
    #[default]
    None,
    /// kube-controller-manager with all its default controllers.
    ControllerManager,
}

/// A user the API server knows by a static bearer token. It has no rights until a binding gives it some.
#[derive(Clone, Debug)]
pub struct StaticUser {
    /// The user name. No commas or quotes.
    pub name: String,
    /// The bearer token. No commas or quotes.
    pub token: String,
    /// Groups besides `system:authenticated`. No commas or quotes.
    pub groups: Vec<String>,
}

/// What kind of control plane to start.
#[derive(Clone, Debug, Default)]
pub struct ControlPlaneOptions {
    /// Controllers besides the API server.
    pub controllers: Controllers,
    /// Users besides the administrator.
    pub users: Vec<StaticUser>,
}

/// A running control plane. Dropping it kills its processes and removes its files; when the dropping thread panics, the
/// files stay and the ends of the logs are printed.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: what depends on another goes first, the files last.
    controller_manager: Option<Guarded>,
    api_server: Option<Guarded>,
    etcd: Guarded,
    binaries: PathBuf,
    options: ControlPlaneOptions,
    layout: Layout,
    access: Access,
    folder: WorkFolder,
}

impl ControlPlane {
    /// Starts a control plane and waits until it is ready.
    pub async fn start(options: ControlPlaneOptions) -> Result<Self, ControlPlaneError> {
        let binaries = locate(options.controllers).await?;
        let mut attempt = 1;
        loop {
            match Self::start_once(&binaries, &options).await {
                Err(ControlPlaneError::Exited { log, .. })
                    if attempt < START_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_once(binaries: &Path, options: &ControlPlaneOptions) -> Result<Self, ControlPlaneError> {
        let folder = WorkFolder::create().map_err(ControlPlaneError::io("creating the folder of the control plane"))?;
        let [etcd_port, api_port] = free_ports().map_err(ControlPlaneError::io("looking for free ports"))?;
        let layout = Layout::new(folder.path(), etcd_port, api_port);
        let admin_token = write_credentials(&layout, &options.users)?;

        let etcd = launch("etcd", binaries, &layout.etcd(), &layout)?;
        let mut control_plane = Self {
            controller_manager: None,
            api_server: None,
            etcd,
            binaries: binaries.to_owned(),
            options: options.clone(),
            access: Access::from_kubeconfig(layout.kubeconfig()),
            layout,
            folder,
        };
        control_plane.launch_api_server()?;
        control_plane.write_kubeconfig(&admin_token).await?;
        control_plane.wait_ready().await?;
        if options.controllers == Controllers::ControllerManager {
            control_plane.controller_manager = Some(launch(
                "kube-controller-manager",
                binaries,
                &control_plane.layout.controller_manager(),
                &control_plane.layout,
            )?);
        }
        Ok(control_plane)
    }

    /// How to reach it.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The folder of the binaries in use (kubectl is among them).
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// A client with every right.
    pub async fn client(&self) -> Result<Client, ControlPlaneError> {
        self.access.client().await
    }

    /// Kills the API server, as a crash would. Clients see refused connections until it is started again.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server again, on the same port with the same certificate, and waits until it is ready. Does
    /// nothing when it runs.
    pub async fn start_api_server(&mut self) -> Result<(), ControlPlaneError> {
        if self.api_server.is_none() {
            self.launch_api_server()?;
        }
        self.wait_ready().await
    }

    /// Kills the API server and starts it again.
    pub async fn restart_api_server(&mut self) -> Result<(), ControlPlaneError> {
        self.stop_api_server();
        self.start_api_server().await
    }

    /// Freezes etcd: requests to the API server that need it hang, as with an overloaded disk. When this returns it stands still.
    pub fn pause_etcd(&self) -> Result<(), ControlPlaneError> {
        self.etcd.freeze().map_err(ControlPlaneError::io("pausing etcd"))
    }

    /// Lets etcd go on.
    pub fn resume_etcd(&self) -> Result<(), ControlPlaneError> {
        self.etcd.signal("CONT").map_err(ControlPlaneError::io("resuming etcd"))
    }

    /// The process ids of the control plane's processes that were started and not stopped.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes().map(Guarded::pid).collect()
    }

    /// The ends of all logs, each under the name of its process.
    pub fn log_tails(&self) -> String {
        let tails = self
            .processes()
            .map(|process| format!("--- {}\n{}\n", process.name(), process.log_tail(LOG_TAIL)));
        tails.collect::<Vec<_>>().concat()
    }

    /// Leaves the files (logs, etcd's data) where they are when the control plane goes, and says where that is.
    pub fn keep_files(&mut self) -> Result<&Path, ControlPlaneError> {
        self.folder
            .keep()
            .map_err(ControlPlaneError::io("keeping the files of the control plane"))?;
        Ok(self.folder.path())
    }

    fn processes(&self) -> impl Iterator<Item = &Guarded> {
        [&self.controller_manager, &self.api_server]
            .into_iter()
            .flatten()
            .chain([&self.etcd])
    }

    fn launch_api_server(&mut self) -> Result<(), ControlPlaneError> {
        let arguments = self.layout.api_server(self.options.controllers);
        self.api_server = Some(launch("kube-apiserver", &self.binaries, &arguments, &self.layout)?);
        Ok(())
    }

    /// Waits for the certificate the API server makes for itself, and writes the kubeconfig that trusts it.
    async fn write_kubeconfig(&mut self, admin_token: &str) -> Result<(), ControlPlaneError> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let authority = fs::read(self.layout.authority()).unwrap_or_default();
            // Leaf and authority: the file is complete when both have ended.
            let certificates = String::from_utf8_lossy(&authority)
                .matches("-----END CERTIFICATE-----")
                .count();
            if certificates >= 2 {
                let kubeconfig = access::kubeconfig(&self.layout.server(), &authority, admin_token);
                return fs::write(self.layout.kubeconfig(), kubeconfig)
                    .map_err(ControlPlaneError::io("writing the kubeconfig"));
            }
            self.check_progress(deadline, "no certificate yet")?;
            sleep(READY_POLL).await;
        }
    }

    async fn wait_ready(&mut self) -> Result<(), ControlPlaneError> {
        let client = self.access.client().await?;
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let question = http::Request::get("/readyz")
                .body(Vec::new())
                .map_err(kube::Error::HttpError)?;
            let answer = tokio::time::timeout(Duration::from_secs(5), client.request_text(question)).await;
            let last = match answer {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "none within five seconds".to_owned(),
            };
            self.check_progress(deadline, &last)?;
            sleep(READY_POLL).await;
        }
    }

    /// Fails when a process has ended or the deadline has passed.
    fn check_progress(&mut self, deadline: Instant, last: &str) -> Result<(), ControlPlaneError> {
        for process in [Some(&mut self.etcd), self.api_server.as_mut()].into_iter().flatten() {
            let ended = process
                .exited()
                .map_err(ControlPlaneError::io("looking after a process"))?;
            if let Some(status) = ended {
                let (name, log) = (process.name(), process.log_tail(LOG_TAIL));
                return Err(ControlPlaneError::Exited { name, status, log });
            }
        }
        if Instant::now() < deadline {
            return Ok(());
        }
        let name = "kube-apiserver";
        let log = self
            .api_server
            .as_ref()
            .map(|process| process.log_tail(LOG_TAIL))
            .unwrap_or_default();
        Err(ControlPlaneError::NotReady {
            name,
            within: READY_WITHIN,
            last: last.to_owned(),
            log,
        })
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tails());
            match self.keep_files() {
                Ok(path) => eprintln!("the files of the control plane are kept in {}", path.display()),
                Err(error) => eprintln!("{error}"),
            }
        }
    }
}

fn launch(
    name: &'static str,
    binaries: &Path,
    arguments: &[String],
    layout: &Layout,
) -> Result<Guarded, ControlPlaneError> {
    Guarded::spawn(name, &binaries.join(name), arguments, layout.log(name))
        .map_err(ControlPlaneError::io("starting a process of the control plane"))
}

/// Writes the files the API server authenticates with and returns the administrator's token.
fn write_credentials(layout: &Layout, users: &[StaticUser]) -> Result<String, ControlPlaneError> {
    let pair = rcgen::KeyPair::generate()?;
    let key = pair.serialize_pem();
    // As random and as secret as the key.
    let admin_token = format!("admin-{:x}", Sha256::digest(&key));
    let mut tokens = format!("{admin_token},admin,admin,\"system:masters\"\n");
    for StaticUser { name, token, groups } in users {
        let groups = groups.join(",");
        tokens += &[token, ",", name, ",", name, ",\"", &groups, "\"\n"].concat();
    }
    fs::write(layout.tokens(), tokens).map_err(ControlPlaneError::io("writing the token file"))?;
    fs::write(layout.signing_key(), key)
        .and_then(|()| fs::write(layout.verifying_key(), pair.public_key_pem()))
        .map_err(ControlPlaneError::io("writing the ServiceAccount keys"))?;
    Ok(admin_token)
}

/// Free ports on 127.0.0.1, all different.
pub(crate) fn free_ports<const N: usize>() -> std::io::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// The folder with the binaries, as `hack/test-control-plane` tells it. May build them first, which takes minutes.
pub async fn locate(controllers: Controllers) -> Result<PathBuf, ControlPlaneError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/test-control-plane");
    let mut command = tokio::process::Command::new(&script);
    if controllers == Controllers::ControllerManager {
        command.arg("--with-controller-manager");
    }
    let output = command.output().await.map_err(|source| ControlPlaneError::Locate {
        script: script.clone(),
        source,
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(ControlPlaneError::NoBinaries {
            script,
            status: output.status,
            output: said,
        });
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()))
}
