//! How a pass ends: the condition it leaves and what happens next.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Next, Pass, Work, yields::Kept};
use crate::{
    clock::whole_seconds,
    decide::Observed,
    errors::{Class, Failure, Refused},
    inputs,
    kind::{KindDescriptor, Lifecycle, Remote},
    object::{Object, ObjectKey, Origin},
    observe::applied_hash,
    plan::{Change, Plan, diff, field_names},
    policy::DriftCheck,
    queue::Priority,
    reason::Reason,
    refusals,
    report::{self, Draft},
    status::Ready,
};

/// What waits for nothing that would wake it is looked at again after that long.
const SAFETY_NET: Duration = Duration::from_mins(10);

/// So long after its creation a resource that waits does not say so yet.
const NEW: Duration = Duration::from_secs(3);

/// How far a resource has come when it is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Just created; fields that Cloudflare does not take at creation may follow.
    Created,
    /// All that was to be written is written.
    Final,
    /// The same, and fields that were not written, because they were right, are not any more: somebody else was quick.
    Overtaken,
}

impl Pass<'_> {
    pub(super) async fn report_synced(
        &self,
        object: &Arc<Object>,
        work: &Work,
        remote: &Remote,
        origin: Option<Origin>,
        stage: Stage,
    ) -> Result<Next, Failure> {
        let descriptor = self.kind.descriptor();
        let left = diff(&work.prepared.desired.body, &remote.body, descriptor.fields);
        let kept = if left.is_empty() && stage != Stage::Created {
            match self.keep_yield(object, work, remote).await? {
                Kept::InOrder(fields) => fields,
                Kept::Contested { fields, until } => return Ok(self.report_contested(object, &fields, until).await),
            }
        } else {
            Map::new()
        };
        let mut draft = Draft::begin(self.context, object).await;
        let origin = origin.or(self.context.recorded_unproven(object).origin);
        self.record_synced(&mut draft, work, remote, origin.unwrap_or(Origin::Adopted), &left);
        draft.status.extend(kept);
        if !left.is_empty() && stage == Stage::Created {
            let message = format!("created; still to be set: {}", field_names(&left));
            let next = Next::Retry(Class::StoreConflict);
            return Ok(draft.write(&Ready::no(Reason::CREATED, message), next).await);
        }
        if !left.is_empty() && stage == Stage::Overtaken {
            let message = format!("changed by somebody else meanwhile: {}", field_names(&left));
            let next = Next::Retry(Class::Transient);
            return Ok(draft.write(&Ready::no(Reason::API_ERROR, message), next).await);
        }
        if !left.is_empty() {
            // Recorded all the same, so that the object is not lost; but it is not what the spec asks for.
            let message = format!(
                "Cloudflare did not take these fields: {}",
                left.iter().map(Change::to_string).collect::<Vec<_>>().join("; ")
            );
            let next = Next::Retry(Class::Invalid(Reason::TERMINAL_ERROR));
            return Ok(draft.write(&Ready::no(Reason::TERMINAL_ERROR, message), next).await);
        }
        if stage == Stage::Created && self.awaits_yield(object, remote) {
            let ready = Ready::no(Reason::CREATED, "its Secret is still to be written");
            return Ok(draft.write(&ready, Next::Retry(Class::StoreConflict)).await);
        }
        let reason = if descriptor.lifecycle == Lifecycle::Verified {
            Reason::VALIDATED
        } else {
            Reason::SYNCED
        };
        let next = match work.prepared.policy.drift_check {
            // Collections are swept as a whole; only what cannot be listed is checked on its own.
            DriftCheck::Every(interval) if !descriptor.listable => {
                Next::At(self.context.soon(interval), Priority::DriftCheck)
            }
            _ => Next::Settled,
        };
        let ready = Ready::yes(
            reason,
            with_notes("Cloudflare has what the spec asks for", &work.prepared.notes),
        );
        Ok(draft.write(&ready, next).await)
    }

    /// Puts down what is known of the object and of how the resource came by it.
    fn record_synced(&self, draft: &mut Draft<'_>, work: &Work, remote: &Remote, origin: Origin, left: &[Change]) {
        let descriptor = self.kind.descriptor();
        let status = &mut draft.status;
        if descriptor.lifecycle == Lifecycle::Managed {
            record(descriptor, status, work, remote, origin);
        }
        let unread = descriptor.fields.unread(&work.prepared.desired.body);
        let applied = left.is_empty() && !unread.is_empty();
        let hash = if applied {
            applied_hash(&work.client, &unread)
        } else {
            None
        };
        let revision = remote.revision.clone().filter(|_| hash.is_some());
        for (field, value) in [("appliedHash", hash), ("appliedRevision", revision)] {
            match value {
                Some(value) => status.insert(field.to_owned(), Value::String(value)),
                None => status.remove(field),
            };
        }
        match &work.prepared.inputs {
            Some(inputs) => status.insert(inputs::FIELD.to_owned(), json!(inputs)),
            None => status.remove(inputs::FIELD),
        };
        status.extend(remote.status.clone());
        if descriptor.provides_credential {
            let secret = &work.prepared.source.secret;
            status.insert(
                "protectedTokenSecret".to_owned(),
                json!({ "name": &*secret.name, "namespace": &*secret.namespace }),
            );
        }
        for field in ["plan", "contested"] {
            status.remove(field);
        }
        draft.echo();
    }

    pub(super) async fn report_blocked(&self, object: &Arc<Object>, plan: &Plan) -> Next {
        match plan {
            // Things are often applied in one go: what is about to come is not worth a status of its own.
            Plan::Wait { .. } if object.ready().status.is_empty() && self.is_new(object) => {
                Next::At(self.context.soon(NEW), Priority::Dependent)
            }
            Plan::Wait { reason, message } => {
                let next = Next::At(self.context.soon(SAFETY_NET), Priority::Dependent);
                report::ready(self.context, object, &Ready::no(reason.clone(), message), next).await
            }
            Plan::Blocked { reason, message, .. } => {
                let next = Next::Retry(Class::Blocked(reason.clone()));
                report::ready(self.context, object, &Ready::no(reason.clone(), message), next).await
            }
            _ => Next::Settled,
        }
    }

    /// Whether an object is recorded that could be created again.
    pub(super) fn lost_its_object(&self, object: &Object) -> bool {
        let managed = self.kind.descriptor().lifecycle == Lifecycle::Managed;
        managed && self.context.recorded_unproven(object).id.is_some()
    }

    /// As [`Self::report_blocked`], for a resource whose object is gone: it is no longer recorded.
    pub(super) async fn report_lost(&self, object: &Arc<Object>, plan: &Plan) -> Next {
        let Plan::Blocked { reason, message, .. } = plan else {
            return Next::Settled;
        };
        let next = Next::Retry(Class::Blocked(reason.clone()));
        let ready = Ready::no(reason.clone(), message);
        let mut draft = Draft::begin(self.context, object).await;
        draft.forget_object();
        draft.write(&ready, next).await
    }

    fn is_new(&self, object: &Object) -> bool {
        object
            .created
            .is_some_and(|created| self.context.now().duration_since(created).unsigned_abs() < NEW)
    }

    pub(super) async fn report_observed(
        &self,
        object: &Arc<Object>,
        work: &Work,
        plan: &Plan,
        observed: &Observed,
    ) -> Next {
        let mut draft = Draft::begin(self.context, object).await;
        draft.status.insert("plan".to_owned(), json!(plan.lines(20)));
        draft.echo();
        let ready = match (plan, &observed.recorded) {
            (Plan::NoOp { .. }, Some(remote)) if self.awaits_yield(object, remote) => Ready::no(
                Reason::OBSERVING,
                "kflare.dev/mode is observe; it would look after its Secret",
            ),
            (Plan::NoOp { .. }, Some(remote)) => {
                draft.status.extend(remote.status.clone());
                let verified = self.kind.descriptor().lifecycle == Lifecycle::Verified;
                let reason = if verified { Reason::VALIDATED } else { Reason::SYNCED };
                let message = "observed: Cloudflare has what the spec asks for";
                Ready::yes(reason, with_notes(message, &work.prepared.notes))
            }
            (Plan::Blocked { reason, message, .. } | Plan::Wait { reason, message }, _) => {
                Ready::no(reason.clone(), message)
            }
            _ => Ready::no(
                Reason::OBSERVING,
                format!("kflare.dev/mode is observe; it would {}", plan.lines(6).join("; ")),
            ),
        };
        let next = match work.prepared.policy.drift_check {
            DriftCheck::Every(interval) => Next::At(self.context.soon(interval), Priority::DriftCheck),
            DriftCheck::Off => Next::Settled,
        };
        draft.write(&ready, next).await
    }

    pub(super) async fn report_contested(&self, object: &Arc<Object>, fields: &[String], until: Instant) -> Next {
        let mut draft = Draft::begin(self.context, object).await;
        let wait = until.saturating_duration_since(Instant::now());
        let at = self
            .context
            .now()
            .checked_add(jiff::SignedDuration::try_from(wait).unwrap_or_default());
        let next_correction = at.map(|at| whole_seconds(at).to_string()).ok();
        let since: Value = object
            .status
            .get(&["contested", "since"])
            .unwrap_or_else(|| json!(whole_seconds(self.context.now()).to_string()));
        // The first estimate stays, so that looking again changes nothing.
        let standing: Option<String> = object.status.get(&["contested", "nextCorrection"]);
        let next_correction = match (standing, next_correction) {
            (Some(old), Some(new)) if close(&old, &new) => Some(old),
            (_, new) => new,
        };
        let mut contested = json!({ "fields": fields.iter().take(32).collect::<Vec<_>>(), "since": since });
        if let Some(at) = next_correction {
            contested["nextCorrection"] = json!(at);
        }
        draft.status.insert("contested".to_owned(), contested);
        draft.echo();
        let message = format!(
            "somebody else keeps changing {}; it is corrected ever more rarely until one side rests",
            fields.join(", ")
        );
        let next = Next::At(until, Priority::Retry);
        draft.write(&Ready::no(Reason::CONTESTED, message), next).await
    }

    /// Turns a failure into the condition, where it is to turn, and into the next step.
    pub(super) async fn fail(&self, key: &ObjectKey, failure: Failure) -> Next {
        let Some(object) = self.context.index().get(key) else {
            return Next::Settled;
        };
        let ready = object.ready();
        let works = ready.status == "True" && !object.deleting;
        let failures = self.context.queue().failures(key);
        let verified = self.kind.descriptor().lifecycle == Lifecycle::Verified;
        tracing::debug!(kind = %key.kind, namespace = key.namespace.as_deref(), name = %key.name, class = ?failure.class, detail = %failure.message, "pass failed");
        match &failure.class {
            Class::StoreConflict | Class::Stopped => return Next::Retry(failure.class),
            Class::RateLimited { until, by_cloudflare } => {
                // Our own budget is no crowd to be spread; in the order in which they were turned away, what can be written
                // together stays together.
                let spread = if *by_cloudflare {
                    self.context.chance.jitter(Duration::from_secs(2), 0.9)
                } else {
                    Duration::ZERO
                };
                // A drift check that comes back crowds out no other.
                let lane = if self.lane == Priority::DriftCheck {
                    Priority::DriftCheck
                } else {
                    Priority::Retry
                };
                let next = Next::At(*until + spread, lane);
                if works || !by_cloudflare || !ready.status.is_empty() {
                    return next;
                }
                let message = "waiting for Cloudflare's rate limit; continues by itself";
                return report::ready(self.context, &object, &Ready::no(Reason::RATE_LIMITED, message), next).await;
            }
            // A server's fault is no verdict on an account, nor on an object that works until it has lasted.
            Class::Transient if works && (verified || failures < 2) => return Next::Retry(failure.class),
            // Nor is a single refusal.
            Class::Auth if works && failures == 0 => return Next::Retry(Class::Transient),
            _ => {}
        }
        let reason = failure.class.reason();
        let told = match failure.class {
            Class::Auth | Class::Held { .. } => {
                let question = if self.kind.descriptor().provides_credential {
                    "is spec.accountID an account that this token reaches?"
                } else {
                    "does the token have the permissions that this kind needs?"
                };
                format!("{}; {question}", failure.message)
            }
            _ => failure.message,
        };
        let message = report::stable_message(&object, &reason, &told);
        if let Some(Refused {
            fingerprint,
            look_again,
        }) = failure.refused
        {
            // It was to be created, so that what is recorded is gone.
            let mut draft = Draft::begin(self.context, &object).await;
            draft.forget_object();
            if let Some(fingerprint) = fingerprint {
                draft.status.insert(refusals::FIELD.to_owned(), json!(fingerprint));
            }
            let next = Next::At(look_again, Priority::DriftCheck);
            return draft.write(&Ready::no(reason, message), next).await;
        }
        let next = match failure.class {
            Class::Held { until } => Next::At(
                until + self.context.chance.jitter(Duration::from_secs(2), 0.9),
                Priority::Retry,
            ),
            class => Next::Retry(class),
        };
        report::ready(self.context, &object, &Ready::no(reason, message), next).await
    }
}

/// Puts down which object is managed, and under what.
pub(super) fn record(
    descriptor: &KindDescriptor,
    status: &mut Map<String, Value>,
    work: &Work,
    remote: &Remote,
    origin: Origin,
) {
    let metadata = descriptor
        .fields
        .told_before(&remote.metadata, status, descriptor.id_field());
    status.insert("cloudflareMetadata".to_owned(), Value::Object(metadata));
    let ownership = json!({
        "account": &*work.prepared.account.name,
        "scope": work.prepared.scope,
        "origin": origin,
    });
    status.insert("ownership".to_owned(), ownership);
}

/// A message, with what has no effect.
fn with_notes(message: &str, notes: &[String]) -> String {
    std::iter::once(message)
        .chain(notes.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Whether two times are within two minutes of each other.
fn close(a: &str, b: &str) -> bool {
    match (a.parse::<jiff::Timestamp>(), b.parse::<jiff::Timestamp>()) {
        (Ok(a), Ok(b)) => (a.as_second() - b.as_second()).abs() <= 120,
        _ => false,
    }
}
