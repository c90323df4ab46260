//! What a pass puts on the resource itself: finalizer, intent, claim label.

use std::sync::Arc;

use kflare_api::names;
use serde_json::{Map, Value, json};

use super::{Pass, Work, store_failure};
use crate::{
    clock::whole_seconds,
    context::Try,
    errors::{Class, Failure},
    intent::Intent,
    mutation::{self, Mutation},
    object::{Object, Origin},
};

impl Pass<'_> {
    /// Our finalizer and the intent, in one write: from here on neither a crash nor a lost reply can orphan the object. If the
    /// write fails, stored or not, nothing is created by it.
    pub(super) async fn announce(&self, object: &Arc<Object>, work: &Work) -> Result<(Arc<Object>, Intent), Failure> {
        let Work { prepared, client } = work;
        let at = whole_seconds(client.server_time());
        let rules = self.kind.descriptor().fields;
        let mut intent = Intent::new(at, &prepared.scope, &prepared.account.name, &prepared.desired, rules);
        // An earlier try that may have been carried out is still ours.
        let standing = self.context.recorded(object, client).intent;
        if let Some(standing) = standing.as_ref().filter(|it| it.is_same_object(&intent)) {
            intent.from = standing.from;
        }
        intent.seal = client.seal(&intent.sealed_text(&object.uid)).unwrap_or_default();
        let text = serde_json::to_string(&intent).map_err(|error| Failure::new(Class::Bug, error.to_string()))?;
        let mut metadata =
            json!({ "finalizers": with_finalizer(object), "annotations": { names::CREATE_INTENT: text } });
        if mutation::is(Mutation::CreateWithoutIntent) {
            metadata["annotations"] = json!({});
        }
        let written = self
            .context
            .cluster
            .patch_metadata(object, metadata)
            .await
            .map_err(|error| {
                if standing.is_none() {
                    self.context.note_try(object, &intent, Some(Try::Unsent));
                }
                store_failure(error)
            })?;
        let object = self.context.wrote(written);
        // Gone all the same (see [`crate::vanished`]): nothing is to be created for it any more.
        let known = self.context.index().get(&object.key);
        if known.is_none_or(|known| known.uid != object.uid) {
            if standing.is_none() {
                // The watch may have said so after it had shown this very write.
                self.context.vanished().done(&object);
            }
            return Err(Failure::new(Class::StoreConflict, "the resource is gone"));
        }
        Ok((object, intent))
    }

    /// The announced create surely did not happen and will not be repeated as it is.
    pub(super) async fn disown_intent(&self, object: &Arc<Object>) -> Result<Arc<Object>, Failure> {
        if object.annotation(names::CREATE_INTENT).is_none() {
            return Ok(object.clone());
        }
        let metadata = json!({ "annotations": { names::CREATE_INTENT: null } });
        let written = self
            .context
            .cluster
            .patch_metadata(object, metadata)
            .await
            .map_err(store_failure)?;
        Ok(self.context.wrote(written))
    }

    /// Our finalizer.
    pub(super) async fn hold(&self, object: &Arc<Object>) -> Result<Arc<Object>, Failure> {
        if object.has_finalizer() {
            return Ok(object.clone());
        }
        let metadata = json!({ "finalizers": with_finalizer(object) });
        let written = self
            .context
            .cluster
            .patch_metadata(object, metadata)
            .await
            .map_err(store_failure)?;
        Ok(self.context.wrote(written))
    }

    /// Finalizer, claim label and, when it comes under management, how; the intent is done with. Nothing is written when all
    /// is as it should be.
    pub(super) async fn claim(
        &self,
        object: &Arc<Object>,
        id: &str,
        taken: Option<Origin>,
    ) -> Result<Arc<Object>, Failure> {
        let mut metadata = Map::new();
        if !object.has_finalizer() {
            metadata.insert("finalizers".to_owned(), with_finalizer(object));
        }
        let claim = self.kind.descriptor().claim.as_ref();
        if let Some(claim) = claim.filter(|claim| object.labels.get(&claim.label) != Some(id)) {
            metadata.insert("labels".to_owned(), json!({ claim.label.as_ref(): id }));
        }
        let mut annotations = Map::new();
        if object.annotation(names::CREATE_INTENT).is_some() {
            annotations.insert(names::CREATE_INTENT.to_owned(), Value::Null);
        }
        if taken == Some(Origin::Adopted) && object.annotation(names::ADOPTED) != Some("true") {
            annotations.insert(names::ADOPTED.to_owned(), json!("true"));
        }
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), Value::Object(annotations));
        }
        if metadata.is_empty() {
            return Ok(object.clone());
        }
        let written = self
            .context
            .cluster
            .patch_metadata(object, Value::Object(metadata))
            .await
            .map_err(store_failure)?;
        Ok(self.context.wrote(written))
    }
}

fn with_finalizer(object: &Object) -> Value {
    let mut finalizers = object.finalizers.clone();
    if !object.has_finalizer() {
        finalizers.push(names::FINALIZER.to_owned());
    }
    json!(finalizers)
}
