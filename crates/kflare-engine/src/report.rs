//! The one place where status is written and Events are told.

use std::sync::Arc;

use kflare_api::names;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    cluster::{ClusterError, Event, Severity},
    context::Context,
    errors::Class,
    mutation::{self, Mutation},
    object::Object,
    occurrence::Occurrence,
    operations::FIELD,
    pass::{Next, drop_ended},
    reason::Reason,
    refusals,
    status::{Ready, merge_patch, set_ready},
};

/// How many statuses are put together and written at a time. The batches of many collections may be answered at once; what then
/// has to wait for the API server waits here, before its status takes up memory several times over.
const DRAFTS: usize = 32;

/// Turns for putting together a status.
pub(crate) struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(DRAFTS))
    }
}

/// A status that is being put together. Its turn ends when it is written or dropped: nothing else than writing it may be waited
/// for meanwhile, another draft least of all.
pub(crate) struct Draft<'a> {
    context: &'a Context,
    object: Arc<Object>,
    /// Starts as the status that the object has. That something was refused is true only until something else is said.
    pub status: Map<String, Value>,
    _turn: Option<SemaphorePermit<'a>>,
}

impl<'a> Draft<'a> {
    /// Waits for a turn.
    pub async fn begin(context: &'a Context, object: &Arc<Object>) -> Self {
        // It is never closed.
        let turn = context.report_turns.0.acquire().await.ok();
        let mut status = object.status.fields();
        status.remove(refusals::FIELD);
        Self {
            context,
            object: object.clone(),
            status,
            _turn: turn,
        }
    }

    /// Notes that a request to reconcile now was served.
    pub fn echo(&mut self) {
        match self.object.annotation(names::RECONCILE_AT) {
            Some(at) => self.status.insert("lastReconcileAt".to_owned(), json!(at)),
            None => self.status.remove("lastReconcileAt"),
        };
    }

    /// Takes away what is said of an object at Cloudflare: it is gone.
    pub fn forget_object(&mut self) {
        for field in ["cloudflareMetadata", "ownership", "appliedHash", "appliedRevision"] {
            self.status.remove(field);
        }
    }

    /// Writes the status with `ready`, if it differs from what is stored, and tells of a change of the condition.
    pub async fn write(self, ready: &Ready, next: Next) -> Next {
        let Self {
            context,
            object,
            mut status,
            _turn,
        } = self;
        drop_ended(context, &object, &mut status);
        set_ready(&mut status, &object, ready, context.now());
        let old = Value::Object(object.status.fields());
        let patch = match merge_patch(&old, &Value::Object(status)) {
            Some(patch) => patch,
            None if mutation::is(Mutation::StatusAlwaysWritten) => json!({ "lastChecked": context.now().to_string() }),
            None => return next,
        };
        drop(old);
        match context.cluster.patch_status(&object, &patch).await {
            Ok(written) => {
                tell_transition(context, &object, &written, ready);
                if written.status.get::<Value>(&[FIELD]).is_none() {
                    context.operations().cleared(&object.uid);
                }
                context.wrote(written);
                next
            }
            // The object is gone, or another of the same name has taken its place.
            Err(ClusterError::NotFound | ClusterError::Conflict) => Next::Retry(Class::StoreConflict),
            Err(ClusterError::Stopped(_)) => Next::Retry(Class::Stopped),
            // Status cannot be written on an object that the API server itself no longer takes: an Event has to do.
            Err(ClusterError::Invalid(_)) => {
                let (severity, reason) = (Severity::Warning, ready.reason.as_str());
                tell(context, &object, severity, reason, "Reconcile", ready.message.clone());
                Next::Retry(Class::Invalid(ready.reason.clone()))
            }
            Err(error) => {
                tracing::warn!(%error, "status not written");
                Next::Retry(Class::Transient)
            }
        }
    }
}

/// Writes the `Ready` condition and nothing else.
pub(crate) async fn ready(context: &Context, object: &Arc<Object>, ready: &Ready, next: Next) -> Next {
    Draft::begin(context, object).await.write(ready, next).await
}

fn tell_transition(context: &Context, before: &Object, after: &Object, ready: &Ready) {
    let (old, new) = (before.ready(), after.ready());
    if old.status == new.status && old.reason == new.reason {
        return;
    }
    let on_its_way = [Reason::PAUSED, Reason::UPDATING, Reason::CREATED].contains(&ready.reason);
    let good = new.status == "True" || on_its_way;
    let severity = if good { Severity::Normal } else { Severity::Warning };
    tracing::info!(ready = %new.status, reason = %new.reason, detail = %ready.message, "condition");
    tell(
        context,
        after,
        severity,
        ready.reason.as_str(),
        "Reconcile",
        ready.message.clone(),
    );
}

/// Tells of something that happened to a resource.
pub(crate) fn event(context: &Context, object: &Object, occurrence: Occurrence, note: String) {
    let Occurrence {
        reason,
        action,
        severity,
    } = occurrence;
    tracing::info!(reason, %note, "event");
    tell(context, object, severity, reason, action, note);
}

fn tell(context: &Context, object: &Object, severity: Severity, reason: &str, action: &'static str, note: String) {
    context.tell(Event {
        about: object.key.clone(),
        uid: object.uid.clone(),
        severity,
        reason: reason.to_owned(),
        action,
        note,
    });
}

/// The message to show for a failure. A failure that only repeats keeps the message it has: ray ids differ from try to try,
/// and a status that changes on every try would be written on every try.
pub(crate) fn stable_message(object: &Object, reason: &Reason, message: &str) -> String {
    let conditions: Vec<Value> = object.status.get(&["conditions"]).unwrap_or_default();
    let standing = conditions
        .iter()
        .find(|it| it["type"] == "Ready" && it["reason"] == reason.as_str());
    match standing.and_then(|it| it["message"].as_str()) {
        Some(old) if without_ray(old) == without_ray(message) => old.to_owned(),
        _ => message.to_owned(),
    }
}

/// `message` without the words that follow `ray`.
fn without_ray(message: &str) -> String {
    let mut words = Vec::new();
    let mut skip = false;
    for word in message.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if skip {
            skip = false;
            continue;
        }
        skip = bare == "ray";
        words.push(word);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ray_id_alone_is_no_new_message() {
        assert_eq!(
            without_ray("HTTP 500: oops (ray 8a1b-AMS)"),
            without_ray("HTTP 500: oops (ray 9c2d-FRA)")
        );
        assert_ne!(
            without_ray("HTTP 500: oops (ray 1)"),
            without_ray("HTTP 502: oops (ray 1)")
        );
    }
}
