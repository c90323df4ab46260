//! A server, its kinds, and short words for answers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kflare_testkit::life::Life;
use kflare_testkit::memory_api::{MemoryApi, MemoryApiConfig, ResourceType};
use kube::api::ObjectMeta;
use kube::{Api, Client, CustomResource, CustomResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kflare.dev",
    version = "v1",
    kind = "Gadget",
    namespaced,
    status = "GadgetStatus",
    derive = "PartialEq",
    schema = "disabled"
)]
pub(super) struct GadgetSpec {
    pub(super) size: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GadgetStatus {
    pub(super) phase: String,
}

/// A server with gadgets (custom), secrets and config maps (built in), and a client of the life "user".
pub(super) fn server(configure: impl FnOnce(&mut MemoryApiConfig)) -> (MemoryApi, Client) {
    let mut config = MemoryApiConfig::new(7);
    configure(&mut config);
    let server = MemoryApi::new(config);
    server.register(ResourceType::from_crd(&Gadget::crd()));
    server.register(ResourceType::builtin::<Secret>());
    server.register(ResourceType::builtin::<ConfigMap>());
    let client = server.client(&Life::new("user"));
    (server, client)
}

pub(super) fn gadgets(client: &Client) -> Api<Gadget> {
    Api::namespaced(client.clone(), "default")
}

pub(super) fn gadget(name: &str, size: u32) -> Gadget {
    Gadget::new(name, GadgetSpec { size })
}

pub(super) fn manifest(name: &str, size: u32) -> Value {
    json!({
        "apiVersion": "kflare.dev/v1", "kind": "Gadget",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"size": size},
    })
}

pub(super) fn secret(name: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..Default::default()
        },
        string_data: Some(BTreeMap::from([("key".to_owned(), "hidden".to_owned())])),
        ..Default::default()
    }
}

/// The code and reason of an error answer.
pub(super) fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason),
        other => panic!("expected an error answer, got {other:?}"),
    }
}
