//! Why a control plane did not start or did not obey.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A failure to start or to steer a control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// `hack/test-control-plane` could not be run.
    #[error("{script} could not be run", script = script.display())]
    Locate {
        /// The script.
        script: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// `hack/test-control-plane` found no binaries and could not build them.
    #[error("no control plane binaries: {script} ended with {status}\n{output}", script = script.display())]
    NoBinaries {
        /// The script.
        script: PathBuf,
        /// Its exit status.
        status: ExitStatus,
        /// What it said on stderr.
        output: String,
    },
    /// Files, ports, processes or signals of this machine.
    #[error("{doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The ServiceAccount signing key could not be made.
    #[error("generating the ServiceAccount signing key")]
    SigningKey(#[from] rcgen::Error),
    /// A process ended by itself.
    #[error("{name} ended with {status}; the end of its log:\n{log}")]
    Exited {
        /// Which process.
        name: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// The API server did not become ready.
    #[error("{name} was not ready within {within:?} (last answer: {last}); the end of its log:\n{log}")]
    NotReady {
        /// Which process.
        name: &'static str,
        /// How long we waited.
        within: Duration,
        /// The last answer to the readiness question.
        last: String,
        /// The end of its log.
        log: String,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {path} cannot be used", path = path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// A request to the API server failed.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// The API server gave no token for a ServiceAccount.
    #[error("no token for ServiceAccount {namespace}/{name}")]
    NoToken {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl ControlPlaneError {
    pub(super) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
