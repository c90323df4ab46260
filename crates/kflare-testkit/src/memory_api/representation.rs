//! How much of an object a client asked for.

use kube::core::Status;
use serde_json::{Value, json};

use super::refusal;
use super::resource::ResourceType;

/// The form of objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Representation {
    Full,
    /// `PartialObjectMetadata`: what kube's `Api<PartialObjectMeta<K>>` asks for.
    MetadataOnly,
}

impl Representation {
    /// Reads the `Accept` header. `wanted` is the kind of partial answer that fits the request:
    /// `PartialObjectMetadataList` for lists, else `PartialObjectMetadata`.
    pub(super) fn negotiate(accept: Option<&str>, wanted: &str) -> Result<Self, Box<Status>> {
        let Some(accept) = accept else { return Ok(Self::Full) };
        for media_type in accept.split(',') {
            let mut parts = media_type.split(';').map(str::trim);
            if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Full),
                Some(kind) if kind == wanted => return Ok(Self::MetadataOnly),
                Some(_) => (),
            }
        }
        Err(refusal::not_acceptable(accept))
    }

    pub(super) fn object(self, object: &Value) -> Value {
        match self {
            Self::Full => object.clone(),
            Self::MetadataOnly => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        }
    }

    pub(super) fn list<'a>(
        self,
        resource: &ResourceType,
        metadata: &Value,
        items: impl Iterator<Item = &'a Value>,
    ) -> Value {
        let (kind, api_version) = match self {
            Self::Full => (format!("{}List", resource.kind), resource.api_version()),
            Self::MetadataOnly => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        let items: Vec<Value> = items.map(|item| self.object(item)).collect();
        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items})
    }

    pub(super) fn bookmark(self, resource: &ResourceType, revision: u64) -> Value {
        let (kind, api_version) = match self {
            Self::Full => (resource.kind.clone(), resource.api_version()),
            Self::MetadataOnly => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        let metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    }
}
