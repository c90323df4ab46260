//! The Secrets that resources yield: see [`crate::yields`].

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kflare_api::names;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{Cluster, ClusterError, MANAGER};
use crate::{
    object::{Object, SecretKey},
    yields::{SecretMark, owner_of},
};

/// A Secret that was read.
pub struct ReadSecret {
    /// Its metadata.
    pub mark: SecretMark,
    /// The value under the key asked for.
    pub value: Option<SecretString>,
}

fn mark_of(meta: &ObjectMeta) -> SecretMark {
    SecretMark {
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        owner: owner_of(meta),
    }
}

impl Cluster {
    fn secrets(&self, secret: &SecretKey) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &secret.namespace)
    }

    /// The metadata of a Secret; none if there is no Secret of that name.
    pub async fn look_at_secret(&self, secret: &SecretKey) -> Result<Option<SecretMark>, ClusterError> {
        match self.bounded(self.secrets(secret).get_metadata(&secret.name)).await {
            Ok(found) => Ok(Some(mark_of(&found.metadata))),
            Err(ClusterError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Metadata and one value of a Secret; none if there is no Secret of that name.
    pub async fn read_whole_secret(&self, secret: &SecretKey, key: &str) -> Result<Option<ReadSecret>, ClusterError> {
        match self.bounded(self.secrets(secret).get(&secret.name)).await {
            Ok(found) => Ok(Some(ReadSecret {
                mark: mark_of(&found.metadata),
                value: found
                    .data
                    .and_then(|mut data| data.remove(key))
                    .and_then(|bytes| String::from_utf8(bytes.0).ok())
                    .map(SecretString::from),
            })),
            Err(ClusterError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a Secret with one value, whose controller is `owner`: it goes when the owner goes. [`ClusterError::Conflict`] if
    /// there is one of that name.
    pub async fn create_secret(
        &self,
        secret: &SecretKey,
        owner: &Object,
        key: &str,
        value: &SecretString,
    ) -> Result<SecretMark, ClusterError> {
        let label = ("app.kubernetes.io/managed-by".to_owned(), MANAGER.to_owned());
        let new = Secret {
            metadata: ObjectMeta {
                name: Some(secret.name.to_string()),
                namespace: Some(secret.namespace.to_string()),
                labels: Some(BTreeMap::from([label])),
                owner_references: Some(vec![OwnerReference {
                    api_version: names::API_VERSION.to_owned(),
                    kind: owner.key.kind.to_string(),
                    name: owner.key.name.to_string(),
                    uid: owner.uid.clone(),
                    controller: Some(true),
                    block_owner_deletion: None,
                }]),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(key.to_owned(), bytes(value))])),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        };
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        let made = self.writing(self.secrets(secret).create(&params, &new)).await?;
        Ok(mark_of(&made.metadata))
    }

    /// Sets one value in a Secret, provided that the Secret is still as in `seen`. What else is in it stays.
    pub async fn set_secret(
        &self,
        secret: &SecretKey,
        seen: &SecretMark,
        key: &str,
        value: &SecretString,
    ) -> Result<SecretMark, ClusterError> {
        let patch = json!({
            "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version },
            "data": { key: bytes(value) },
        });
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(&patch);
        let written = self
            .writing(self.secrets(secret).patch(&secret.name, &params, &patch))
            .await?;
        Ok(mark_of(&written.metadata))
    }

    /// Deletes a Secret, provided that it is still as in `seen`. One that is gone is a success.
    pub async fn delete_secret(&self, secret: &SecretKey, seen: &SecretMark) -> Result<(), ClusterError> {
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(seen.uid.clone()),
            resource_version: Some(seen.resource_version.clone()),
        });
        match self.writing(self.secrets(secret).delete(&secret.name, &params)).await {
            Ok(_) | Err(ClusterError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn bytes(value: &SecretString) -> ByteString {
    ByteString(value.expose_secret().as_bytes().to_vec())
}
