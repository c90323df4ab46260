//! The command lines of the control plane's processes.

use std::path::{Path, PathBuf};

/// Where the files of one control plane are, and its ports (on 127.0.0.1).
#[derive(Clone, Debug)]
pub(super) struct Layout {
    folder: PathBuf,
    pub(super) etcd_port: u16,
    pub(super) api_port: u16,
}

impl Layout {
    pub(super) fn new(folder: &Path, etcd_port: u16, api_port: u16) -> Self {
        Self {
            folder: folder.to_owned(),
            etcd_port,
            api_port,
        }
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig.yaml")
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    pub(super) fn signing_key(&self) -> PathBuf {
        self.folder.join("service-account.key")
    }

    pub(super) fn verifying_key(&self) -> PathBuf {
        self.folder.join("service-account.pub")
    }

    /// The API server signs its own certificate on its first start; the file ends with the authority.
    pub(super) fn authority(&self) -> PathBuf {
        self.certificates().join("apiserver.crt")
    }

    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port)
    }

    fn certificates(&self) -> PathBuf {
        self.folder.join("certificates")
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    pub(super) fn etcd(&self) -> Vec<String> {
        vec![
            format!("--data-dir={}", self.folder.join("etcd").display()),
            format!("--listen-client-urls={}", self.etcd_url()),
            format!("--advertise-client-urls={}", self.etcd_url()),
            // No peers: whichever port is free.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // The data is thrown away after the run, so it need not survive the machine.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    pub(super) fn api_server(&self, controllers: super::Controllers) -> Vec<String> {
        let mut arguments = vec![
            format!("--etcd-servers={}", self.etcd_url()),
            format!("--cert-dir={}", self.certificates().display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.api_port),
            format!("--service-account-key-file={}", self.verifying_key().display()),
            format!("--service-account-signing-key-file={}", self.signing_key().display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", self.tokens().display()),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ];
        if controllers == super::Controllers::None {
            // Nobody makes the ServiceAccounts this plugin would ask for.
            arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        arguments
    }

    pub(super) fn controller_manager(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!("--service-account-private-key-file={}", self.signing_key().display()),
            format!("--root-ca-file={}", self.authority().display()),
            "--leader-elect=false".to_owned(),
            // No port at all: nobody asks it anything.
            "--secure-port=0".to_owned(),
        ]
    }
}
