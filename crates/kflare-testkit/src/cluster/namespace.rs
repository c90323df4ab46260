//! A namespace of one's own.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};

use super::wait::{WaitError, wait_for};

/// A namespace that no other test uses. It is left behind with the control plane, which is thrown away as a whole.
#[derive(Clone)]
pub struct TestNamespace {
    client: Client,
    name: String,
}

impl TestNamespace {
    /// Creates a namespace whose name is `prefix`, a dash and a part the API server chooses.
    pub async fn create(client: &Client, prefix: &str) -> Result<Self, kube::Error> {
        let namespace = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("{prefix}-")),
                ..Default::default()
            },
            ..Default::default()
        };
        let created = Api::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(Self {
            client: client.clone(),
            name: created.name_any(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The client it was created with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The API of a namespaced kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// [`wait_for`] in this namespace.
    pub async fn wait_for<T, E: std::fmt::Display>(
        &self,
        what: &str,
        probe: impl AsyncFnMut() -> Result<Option<T>, E>,
    ) -> Result<T, WaitError> {
        wait_for(&self.client, &self.name, what, probe).await
    }
}
