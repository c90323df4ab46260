//! Every read and write that the engine makes at the API server, apart from the watches.

mod secrets;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kflare_api::names;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    inputs::{InputKey, InputKind},
    kind::ResourceScope,
    kinds::Kinds,
    object::{Object, ObjectKey, SecretKey},
};

pub use secrets::ReadSecret;

/// Field manager of our writes.
pub const MANAGER: &str = "kflare";

/// How many calls to the API server are under way at once, watches not counted.
const CALLS_IN_FLIGHT: usize = 32;

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What failed at the API server.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The object changed since we saw it.
    #[error("the object has changed meanwhile")]
    Conflict,
    /// The object does not exist.
    #[error("not found")]
    NotFound,
    /// No answer in time.
    #[error("the API server did not answer in time")]
    Timeout,
    /// This replica may not write.
    #[error("this replica may not write: {0}")]
    Stopped(String),
    /// The object as it is stored does not fit its schema, so that no part of it can be changed.
    #[error("the object does not fit its schema: {0}")]
    Invalid(#[source] Box<kube::Error>),
    /// Anything else.
    #[error("the API server refused: {0}")]
    Api(#[source] Box<kube::Error>),
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            kube::Error::Api(status) if status.code == 404 => Self::NotFound,
            kube::Error::Api(status) if status.code == 422 => Self::Invalid(Box::new(error)),
            _ => Self::Api(Box::new(error)),
        }
    }
}

/// Asked before every write: is this replica still the leader?
pub type MayWrite = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A Secret, as much of it as is needed.
pub struct SecretView {
    /// The value of the key asked for.
    pub value: Option<SecretString>,
    /// Its UID. It stays when the token is replaced, and only those who may read Secrets there know it.
    pub uid: String,
    /// Whether our protection is on it.
    pub protected: bool,
}

/// A new status for the object of that UID.
#[derive(Debug, Serialize)]
struct StatusPatch<'a> {
    metadata: Uid<'a>,
    status: &'a Value,
}

#[derive(Debug, Serialize)]
struct Uid<'a> {
    uid: &'a str,
}

/// A Secret or ConfigMap that a spec reads.
pub struct InputView {
    /// Its resourceVersion.
    pub version: String,
    /// Its values by key.
    pub values: BTreeMap<String, Vec<u8>>,
}

/// See the module.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    kinds: Kinds,
    slots: Arc<Semaphore>,
    may_write: MayWrite,
}

/// How a kind is addressed at the API server.
pub fn api_resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(names::GROUP, names::VERSION, kind), plural)
}

impl Cluster {
    /// Writes through `client`, as long as `may_write` allows it.
    pub fn new(client: Client, kinds: Kinds, may_write: MayWrite) -> Self {
        Self {
            client,
            kinds,
            slots: Arc::new(Semaphore::new(CALLS_IN_FLIGHT)),
            may_write,
        }
    }

    fn api(&self, key: &ObjectKey) -> Option<Api<DynamicObject>> {
        let descriptor = self.kinds.get(&key.kind)?.descriptor();
        let resource = api_resource(&descriptor.kind, &descriptor.plural);
        Some(match (descriptor.resource_scope, &key.namespace) {
            (ResourceScope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
            _ => Api::all_with(self.client.clone(), &resource),
        })
    }

    /// Makes a call when there is a slot for it. What it needs is on the heap and only as long as it is under way: hundreds of passes
    /// wait at a time, each with room for the largest of all that it may come to wait for.
    fn bounded<'a, T: 'a>(
        &'a self,
        call: impl Future<Output = Result<T, kube::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, ClusterError>> {
        self.permitted(call, || Ok(()))
    }

    /// As [`Self::bounded`]; the right to write is asked for when the call really leaves.
    fn writing<'a, T: 'a>(
        &'a self,
        call: impl Future<Output = Result<T, kube::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, ClusterError>> {
        self.permitted(call, || (self.may_write)().map_err(ClusterError::Stopped))
    }

    fn permitted<'a, T: 'a>(
        &'a self,
        call: impl Future<Output = Result<T, kube::Error>> + Send + 'a,
        permission: impl FnOnce() -> Result<(), ClusterError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, ClusterError>> {
        async move {
            let _slot = self
                .slots
                .acquire()
                .await
                .map_err(|_| ClusterError::Stopped("shutting down".to_owned()))?;
            permission()?;
            match tokio::time::timeout(CALL_TIMEOUT, call).await {
                Ok(result) => Ok(result?),
                Err(_) => Err(ClusterError::Timeout),
            }
        }
        .boxed()
    }

    /// Changes metadata, provided that the object is still at the state in `object`.
    pub async fn patch_metadata(&self, object: &Object, mut metadata: Value) -> Result<Object, ClusterError> {
        let api = self.api(&object.key).ok_or(ClusterError::NotFound)?;
        metadata["resourceVersion"] = json!(object.resource_version);
        metadata["uid"] = json!(object.uid);
        let patch = json!({ "metadata": metadata });
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let written = self
            .writing(api.patch(&object.key.name, &params, &Patch::Merge(&patch)))
            .await?;
        Object::from_dynamic(&object.key.kind, written).ok_or(ClusterError::NotFound)
    }

    /// Changes status. We are its only writer, so there is no condition but the UID.
    pub async fn patch_status(&self, object: &Object, status: &Value) -> Result<Object, ClusterError> {
        let api = self.api(&object.key).ok_or(ClusterError::NotFound)?;
        let patch = StatusPatch {
            metadata: Uid { uid: &object.uid },
            status,
        };
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let written = self
            .writing(api.patch_status(&object.key.name, &params, &Patch::Merge(&patch)))
            .await?;
        Object::from_dynamic(&object.key.kind, written).ok_or(ClusterError::NotFound)
    }

    /// Reads one key of a Secret.
    pub async fn read_secret(&self, secret: &SecretKey, key: &str) -> Result<SecretView, ClusterError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &secret.namespace);
        let found = self.bounded(api.get(&secret.name)).await?;
        let value = found
            .data
            .and_then(|mut data| data.remove(key))
            .and_then(|bytes| String::from_utf8(bytes.0).ok());
        Ok(SecretView {
            value: value
                .map(|text| SecretString::from(text.trim().to_owned()))
                .filter(|text| !is_empty(text)),
            uid: found.metadata.uid.unwrap_or_default(),
            protected: found
                .metadata
                .finalizers
                .unwrap_or_default()
                .iter()
                .any(|it| it == names::TOKEN_PROTECTION),
        })
    }

    /// Reads a Secret or ConfigMap.
    pub async fn read_input(&self, input: &InputKey) -> Result<InputView, ClusterError> {
        let (metadata, values) = match input.kind {
            InputKind::Secret => {
                let api: Api<Secret> = Api::namespaced(self.client.clone(), &input.namespace);
                let found = self.bounded(api.get(&input.name)).await?;
                let data = found.data.unwrap_or_default();
                (
                    found.metadata,
                    data.into_iter().map(|(key, bytes)| (key, bytes.0)).collect(),
                )
            }
            InputKind::ConfigMap => {
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &input.namespace);
                let found = self.bounded(api.get(&input.name)).await?;
                let text = found.data.unwrap_or_default().into_iter();
                let bytes = found.binary_data.unwrap_or_default().into_iter();
                let text = text.map(|(key, text)| (key, text.into_bytes()));
                let all = text.chain(bytes.map(|(key, bytes)| (key, bytes.0)));
                (found.metadata, all.collect())
            }
        };
        Ok(InputView {
            version: metadata.resource_version.unwrap_or_default(),
            values,
        })
    }

    /// Puts our protection on a Secret, or takes it off. Other finalizers stay.
    pub async fn protect_secret(&self, secret: &SecretKey, protection: Protection) -> Result<(), ClusterError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &secret.namespace);
        let found = self.bounded(api.get_metadata(&secret.name)).await?;
        let mut finalizers = found.metadata.finalizers.unwrap_or_default();
        let before = finalizers.len();
        match protection {
            Protection::On if finalizers.iter().all(|it| it != names::TOKEN_PROTECTION) => {
                finalizers.push(names::TOKEN_PROTECTION.to_owned());
            }
            Protection::On => {}
            Protection::Off => finalizers.retain(|it| it != names::TOKEN_PROTECTION),
        }
        if finalizers.len() == before {
            return Ok(());
        }
        let patch = json!({ "metadata": {
            "resourceVersion": found.metadata.resource_version,
            "finalizers": finalizers,
        }});
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        self.writing(api.patch_metadata(&secret.name, &params, &Patch::Merge(&patch)))
            .await?;
        Ok(())
    }

    /// Records an Event. Namespaced resources have theirs beside them, cluster-scoped ones in `default`.
    pub async fn create_event(&self, event: &Event, now: Timestamp, serial: u64) -> Result<(), ClusterError> {
        let namespace = event.about.namespace.as_deref().unwrap_or("default");
        let api: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(self.client.clone(), namespace);
        let body = serde_json::from_value(json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": event_name(event, now, serial), "namespace": namespace },
            "eventTime": format!("{now:.6}"),
            "reportingController": "kflare.dev/controller",
            "reportingInstance": "kflare",
            "action": event.action,
            "reason": event.reason,
            "type": match event.severity { Severity::Normal => "Normal", Severity::Warning => "Warning" },
            "note": event.note.chars().take(1000).collect::<String>(),
            "regarding": {
                "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
                "kind": &*event.about.kind,
                "name": &*event.about.name,
                "namespace": event.about.namespace.as_deref(),
                "uid": event.uid,
            },
        }))
        .map_err(|error| ClusterError::Api(Box::new(kube::Error::SerdeError(error))))?;
        self.writing(api.create(&PostParams::default(), &body)).await?;
        Ok(())
    }
}

fn is_empty(secret: &SecretString) -> bool {
    secrecy::ExposeSecret::expose_secret(secret).is_empty()
}

/// A name that is unique within the process and, by the time, beyond it. At most 253 characters.
fn event_name(event: &Event, now: Timestamp, serial: u64) -> String {
    let suffix = format!(".{:x}{serial:04x}", now.as_microsecond());
    let room = 253 - suffix.len();
    format!("{}{suffix}", event.about.name.get(..room).unwrap_or(&event.about.name))
}

/// Whether a Secret is to be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A resource reads it.
    On,
    /// None does.
    Off,
}

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something went as asked for.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something to tell about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The resource.
    pub about: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Normal or Warning.
    pub severity: Severity,
    /// CamelCase reason.
    pub reason: String,
    /// CamelCase verb.
    pub action: &'static str,
    /// What happened. No secret, no request body.
    pub note: String,
}
