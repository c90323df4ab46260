//! How to reach a control plane, whoever started it.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};
use serde_json::json;

use super::ControlPlaneError;

/// The way to a control plane: its kubeconfig (administrator) and clients made from it.
///
/// A `kube::Client` belongs to the runtime it was made in, so every test makes its own.
#[derive(Clone, Debug)]
pub struct Access {
    kubeconfig: PathBuf,
}

impl Access {
    /// Uses the kubeconfig file of a control plane that someone else runs.
    pub fn from_kubeconfig(path: impl Into<PathBuf>) -> Self {
        Self {
            kubeconfig: path.into(),
        }
    }

    /// The kubeconfig file, whose only context is the administrator.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// The client configuration of the administrator.
    pub async fn config(&self) -> Result<Config, ControlPlaneError> {
        let kubeconfig = self.read()?;
        self.configure(kubeconfig).await
    }

    /// A client with every right (group `system:masters`).
    pub async fn client(&self) -> Result<Client, ControlPlaneError> {
        connect(self.config().await?)
    }

    /// A client that presents a bearer token: a ServiceAccount's, or that of a
    /// [`StaticUser`](super::StaticUser).
    pub async fn client_with_token(&self, token: &str) -> Result<Client, ControlPlaneError> {
        let mut kubeconfig = self.read()?;
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(kube::config::AuthInfo {
                token: Some(token.to_owned().into()),
                ..Default::default()
            });
        }
        connect(self.configure(kubeconfig).await?)
    }

    /// A client that acts as `user` in `groups`, by impersonation. Works with every control plane, and needs no token.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client, ControlPlaneError> {
        let mut config = self.config().await?;
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
        connect(config)
    }

    /// A client with a real token of a ServiceAccount, which must exist. The token lasts one hour.
    pub async fn service_account_client(&self, namespace: &str, name: &str) -> Result<Client, ControlPlaneError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(3600),
                ..Default::default()
            },
            ..Default::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        match answer.status {
            Some(status) => self.client_with_token(&status.token).await,
            None => Err(ControlPlaneError::NoToken {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
        }
    }

    fn read(&self) -> Result<Kubeconfig, ControlPlaneError> {
        Kubeconfig::read_from(&self.kubeconfig).map_err(|source| self.unusable(source))
    }

    async fn configure(&self, kubeconfig: Kubeconfig) -> Result<Config, ControlPlaneError> {
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|source| self.unusable(source))?;
        // The server is on this machine; a proxy of the environment cannot reach it.
        config.proxy_url = None;
        Ok(config)
    }

    fn unusable(&self, source: KubeconfigError) -> ControlPlaneError {
        ControlPlaneError::Kubeconfig {
            path: self.kubeconfig.clone(),
            source,
        }
    }
}

fn connect(config: Config) -> Result<Client, ControlPlaneError> {
    // Fails when a provider is installed already, and then that one will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Client::try_from(config)?)
}

/// A kubeconfig in JSON, which is YAML.
pub(super) fn kubeconfig(server: &str, authority_pem: &[u8], token: &str) -> String {
    let authority = base64::engine::general_purpose::STANDARD.encode(authority_pem);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "kflare-test",
            "cluster": {"server": server, "certificate-authority-data": authority},
        }],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "kflare-test", "context": {"cluster": "kflare-test", "user": "admin"}}],
        "current-context": "kflare-test",
    });
    format!("{config:#}\n")
}
