//! kubectl, in the version of the control plane: what users type, and what they read.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::control_plane::{Access, ControlPlaneError, Controllers, locate};

/// kubectl as the administrator of one cluster.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// Why kubectl did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// It cannot be started, or not be talked to.
    #[error("running {program}", program = program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It failed.
    #[error("kubectl {arguments} ended with {status}: {said}")]
    Failed {
        /// What it was told.
        arguments: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to stderr.
        said: String,
    },
}

impl Kubectl {
    /// The kubectl that belongs to the control plane's binaries.
    pub async fn of(access: &Access) -> Result<Self, ControlPlaneError> {
        Ok(Self {
            program: locate(Controllers::None).await?.join("kubectl"),
            kubeconfig: access.kubeconfig_path().to_owned(),
        })
    }

    /// Runs a command and returns what it printed.
    pub async fn run(&self, arguments: &[&str]) -> Result<String, KubectlError> {
        self.feed(arguments, "").await
    }

    /// Runs a command that reads `input` from its standard input (`-f -`).
    pub async fn feed(&self, arguments: &[&str], input: &str) -> Result<String, KubectlError> {
        let broken = |source| KubectlError::Run {
            program: self.program.clone(),
            source,
        };
        let mut child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            // What it knows of other clusters on the same port is of no use here.
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(broken)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read its input may have ended already.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(broken)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(KubectlError::Failed {
            arguments: arguments.join(" "),
            status: output.status,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
