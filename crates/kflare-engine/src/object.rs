//! What the engine keeps of a Kubernetes object: identity, our own metadata, spec and status. The rest is dropped on
//! entry, so memory follows the number of resources and not what other tools write into them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use kflare_api::names;
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    compact::{Json, TextMap},
    intent::Intent,
};

/// Names a resource: kind, namespace (none for cluster-scoped kinds) and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// CamelCase kind.
    pub kind: Arc<str>,
    /// Namespace, none for cluster-scoped kinds.
    pub namespace: Option<Arc<str>>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretKey {
    /// Namespace of the Secret.
    pub namespace: Arc<str>,
    /// Name of the Secret.
    pub name: Arc<str>,
}

impl fmt::Display for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How an object came under management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// kflare created it.
    Created,
    /// It existed, and the user asked kflare to take it.
    Adopted,
}

/// What status remembers of the remote object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Cloudflare's id.
    pub id: Option<String>,
    /// The container it lives in (account id, zone id).
    pub scope: Option<String>,
    /// Name of the CloudflareAccount resource.
    pub account: Option<String>,
    /// How it came under management.
    pub origin: Option<Origin>,
    /// A create that may have happened.
    pub intent: Option<Intent>,
    /// What was written of the fields that lists do not tell.
    pub applied: Applied,
}

/// What our last write of an object left, for the fields that lists, or all reads, do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Keyed hash of those fields.
    pub hash: Option<String>,
    /// Cloudflare's mark of the change.
    pub revision: Option<String>,
}

/// The `Ready` condition as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadyView {
    /// `True`, `False`, `Unknown`; empty when there is no condition yet.
    pub status: String,
    /// CamelCase reason.
    pub reason: String,
    /// Generation that the condition speaks of.
    pub observed_generation: Option<i64>,
}

/// A pruned resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its name.
    pub key: ObjectKey,
    /// UID; a re-created object of the same name has another.
    pub uid: String,
    /// resourceVersion.
    pub resource_version: String,
    /// Generation: moves with the spec.
    pub generation: i64,
    /// When the API server made it.
    pub created: Option<Timestamp>,
    /// Deletion has been asked for.
    pub deleting: bool,
    /// Finalizers, all of them.
    pub finalizers: Vec<String>,
    /// Labels under `kflare.dev/`.
    pub labels: TextMap,
    /// Annotations under `kflare.dev/`.
    pub annotations: TextMap,
    /// Spec as the user wrote it.
    pub spec: Json,
    /// Status as stored.
    pub status: Json,
}

impl Object {
    /// Prunes what the API server sent. Objects of our kinds always carry a name and a UID; one without is refused.
    pub fn from_dynamic(kind: &str, object: DynamicObject) -> Option<Self> {
        let meta = object.metadata;
        let name = meta.name?;
        let ours = |map: Option<BTreeMap<String, String>>| -> TextMap {
            let all = map.unwrap_or_default().into_iter();
            all.filter(|(key, _)| key.starts_with("kflare.dev/")).collect()
        };
        let part = |field: &str| object.data.get(field).map(Json::from).unwrap_or_default();
        let mut finalizers = meta.finalizers.unwrap_or_default();
        finalizers.shrink_to_fit();
        Some(Self {
            key: ObjectKey::new(kind, meta.namespace.as_deref(), &name),
            uid: meta.uid.unwrap_or_default(),
            resource_version: meta.resource_version.unwrap_or_default(),
            generation: meta.generation.unwrap_or(0),
            created: meta.creation_timestamp.map(|time| time.0),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers,
            labels: ours(meta.labels),
            annotations: ours(meta.annotations),
            spec: part("spec"),
            status: part("status"),
        })
    }

    /// The value of one of our annotations.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name)
    }

    /// Whether our finalizer is on it.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == names::FINALIZER)
    }

    /// The `Ready` condition.
    pub fn ready(&self) -> ReadyView {
        let all: Vec<Value> = self.status.get(&["conditions"]).unwrap_or_default();
        let condition = all.iter().find(|condition| condition["type"] == "Ready");
        let text = |field: &str| {
            let text = condition.and_then(|it| it.get(field)).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        ReadyView {
            status: text("status"),
            reason: text("reason"),
            observed_generation: condition.and_then(|it| it["observedGeneration"].as_i64()),
        }
    }

    /// `Ready=True`, whatever generation it speaks of.
    pub fn is_ready(&self) -> bool {
        self.ready().status == "True"
    }

    /// `Ready=True` for the spec as it stands.
    pub fn is_ready_at_generation(&self) -> bool {
        let ready = self.ready();
        ready.status == "True" && ready.observed_generation == Some(self.generation)
    }

    /// What status and the intent annotation remember. `id_field` is the field of `status.cloudflareMetadata` that holds
    /// the remote id; kinds without one record nothing.
    pub fn recorded(&self, id_field: Option<&str>) -> Recorded {
        let text_of = |field: &str| self.status.get::<String>(&[field]);
        let id: Option<String> = id_field.and_then(|field| self.status.get(&["cloudflareMetadata", field]));
        let id = id.filter(|id| !id.is_empty());
        let ownership: Option<Map<String, Value>> = self.status.get(&["ownership"]);
        // The kflare before this one recorded no more than the id, and marked what it had adopted.
        let unmarked = ownership.is_none() && id.is_some();
        let origin_before = unmarked.then(|| match self.annotation(names::ADOPTED) {
            Some("true") => Origin::Adopted,
            _ => Origin::Created,
        });
        let mut ownership = ownership.unwrap_or_default();
        let mut text = |field: &str| match ownership.remove(field) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Recorded {
            id,
            scope: text("scope"),
            account: text("account"),
            origin: match text("origin") {
                Some(origin) => serde_json::from_value(Value::String(origin)).ok(),
                None => origin_before,
            },
            intent: self
                .annotation(names::CREATE_INTENT)
                .and_then(|text| serde_json::from_str(text).ok()),
            applied: Applied {
                hash: text_of("appliedHash"),
                revision: text_of("appliedRevision"),
            },
        }
    }

    /// `status.cloudflareMetadata`, empty when absent.
    pub fn cloudflare_metadata(&self) -> Map<String, Value> {
        self.status.get(&["cloudflareMetadata"]).unwrap_or_default()
    }

    /// What a user (or another program) can change to make the engine look again. What the engine itself writes (status,
    /// claim label, finalizer, intent) is no part of it, so own writes never start another pass.
    pub fn trigger(&self) -> (i64, bool, Vec<(&str, &str)>) {
        let annotations = self
            .annotations
            .iter()
            .filter(|(name, _)| !matches!(*name, names::CREATE_INTENT | names::ADOPTED))
            .collect();
        (self.generation, self.deleting, annotations)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn origin(annotations: &Value, status: &Value) -> Option<Origin> {
        let object = json!({ "metadata": { "name": "a", "uid": "u", "annotations": annotations }, "status": status });
        let object = Object::from_dynamic("Thing", serde_json::from_value(object).unwrap()).unwrap();
        object.recorded(Some("thingID")).origin
    }

    #[test]
    fn what_an_earlier_kflare_recorded_was_made_by_it_unless_it_is_marked_as_adopted() {
        let recorded = json!({ "cloudflareMetadata": { "thingID": "1" } });
        let marked = json!({ names::ADOPTED: "true" });
        assert_eq!(origin(&json!({}), &recorded), Some(Origin::Created));
        assert_eq!(origin(&marked, &recorded), Some(Origin::Adopted));
        // The mark alone says nothing of an object.
        assert_eq!(origin(&marked, &json!({})), None);
        // What is recorded now is recorded in full; a mark that somebody set changes nothing.
        let ownership = json!({ "cloudflareMetadata": { "thingID": "1" }, "ownership": { "origin": Origin::Created } });
        assert_eq!(origin(&marked, &ownership), Some(Origin::Created));
        // Where that cannot be told, deleting the resource keeps the object.
        let unknown = json!({ "cloudflareMetadata": { "thingID": "1" }, "ownership": { "origin": "found" } });
        assert_eq!(origin(&marked, &unknown), None);
    }
}
