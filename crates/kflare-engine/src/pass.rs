//! One pass over one resource that is to exist: prepare, observe, decide, execute, report.

use std::{sync::Arc, time::Duration};

use kflare_api::names;
use kflare_cloudflare::Client;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::{
    clock::whole_seconds,
    cluster::{ClusterError, Severity},
    contest::Ruling,
    context::{ClaimsFor, Context},
    decide::{Observed, Situation, decide},
    deletion,
    errors::{Class, Failure, WriteError, classify},
    kind::{Kind, Lifecycle, Remote, Write, Written},
    object::{Intent, Object, ObjectKey, Origin, Recorded},
    observe::{FEW, FRESH, Look, observe},
    plan::{Change, Plan, diff, field_names},
    policy::{DriftCheck, Mode, is_paused},
    queue::Priority,
    reason::Reason,
    report,
    resolve::Prepared,
    status::Ready,
};

/// What waits for nothing that would wake it is looked at again after that long.
const SAFETY_NET: Duration = Duration::from_mins(10);

/// What is to happen with the resource after a pass.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing, until something changes.
    Settled,
    /// A look at a time.
    At(Instant, Priority),
    /// Another try, by the back-off of the class.
    Retry(Class),
}

/// Runs a pass.
pub(crate) async fn run(context: &Context, key: &ObjectKey, lane: Priority) -> Next {
    let Some(object) = context.index().get(key) else {
        return Next::Settled;
    };
    let Some(kind) = context.kinds.get(&key.kind) else {
        return Next::Settled;
    };
    if is_paused(&object) {
        let message = "kflare.dev/paused is set: nothing is changed at Cloudflare";
        return report::ready(context, &object, &Ready::kept(Reason::PAUSED, message), Next::Settled).await;
    }
    let pass = Pass { context, kind, lane };
    let done = if object.deleting {
        deletion::run(&pass, &object).await
    } else {
        pass.reconcile(object.clone()).await
    };
    match done {
        Ok(next) => next,
        Err(failure) => pass.fail(key, failure).await,
    }
}

/// What a pass works with.
pub(crate) struct Pass<'a> {
    pub context: &'a Context,
    pub kind: &'a dyn Kind,
    pub lane: Priority,
}

/// How far a resource has come when it is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Just created; fields that Cloudflare does not take at creation may follow.
    Created,
    /// All that was to be written is written.
    Final,
}

/// A resource on its way through the pass.
struct Work {
    prepared: Prepared,
    client: Client,
}

impl Pass<'_> {
    async fn reconcile(&self, object: Arc<Object>) -> Result<Next, Failure> {
        let prepared = match self.context.prepare(&object) {
            Ok(prepared) => prepared,
            Err(plan) => return Ok(self.report_blocked(&object, &plan).await),
        };
        let mut object = object;
        let manages = prepared.policy.mode == Mode::Manage;
        if self.kind.descriptor().provides_credential && manages {
            object = self.hold(&object).await?;
            self.context.credentials.protect(&prepared.source.secret).await?;
        }
        let client = self.client(&prepared).await?;
        let work = Work { prepared, client };
        let echo =
            object.annotation(names::RECONCILE_AT) != object.status.pointer("/lastReconcileAt").and_then(Value::as_str);
        let not_before = if echo {
            Instant::now()
        } else {
            Instant::now().checked_sub(FRESH).unwrap_or_else(Instant::now)
        };
        let (mut plan, mut observed) = self.plan(&object, &work, not_before).await?;
        if prepared_observes(&work.prepared) {
            return Ok(self.report_observed(&object, &work, &plan, &observed).await);
        }
        for attempt in 0.. {
            match self.execute(&object, &work, &plan, &observed).await {
                // Cloudflare knows an object that our list did not show: look anew, once, and decide about that.
                Err(failure) if failure.class == Class::Exists && attempt == 0 => {
                    // Unless an earlier create may have made it: then the intent is what tells.
                    let doubtful = self.context.recorded(&object).intent.is_some();
                    object = self.context.index().get(&object.key).unwrap_or(object);
                    if !doubtful {
                        object = self.disown_intent(&object).await?;
                    }
                    (plan, observed) = self.plan(&object, &work, Instant::now()).await?;
                }
                other => return other,
            }
        }
        Ok(Next::Settled)
    }

    async fn client(&self, prepared: &Prepared) -> Result<Client, Failure> {
        use crate::credentials::Credentials;
        let client = self
            .context
            .credentials
            .client(&prepared.account, &prepared.source)
            .await?
            .in_lane(self.lane);
        Ok(if prepared_observes(prepared) {
            client.read_only()
        } else {
            client
        })
    }

    async fn plan(&self, object: &Arc<Object>, work: &Work, not_before: Instant) -> Result<(Plan, Observed), Failure> {
        let Work { prepared, client } = work;
        let recorded = self.context.recorded(object);
        let few = self.context.index().has_few_siblings(&object.key, FEW);
        let fields = self.kind.descriptor().fields;
        let look = Look {
            kind: self.kind,
            client,
            collection: &prepared.collection,
            recorded: &recorded,
            key: &prepared.desired.key,
            not_before,
            few,
            expected: &|| self.context.index().recorded_ids(&prepared.collection),
            satisfied: &|remote: &Remote| diff(&prepared.desired.body, &remote.body, fields).is_empty(),
        };
        let observed = observe(&self.context.collections, &look).await?;
        let plan = decide_with(self.context, self.kind, object, prepared, &observed, &recorded);
        if recorded.id.is_some()
            && observed.recorded.is_none()
            && self.kind.descriptor().lifecycle == Lifecycle::Managed
        {
            let id = recorded.id.unwrap_or_default();
            let note = format!("{id} no longer exists at Cloudflare: {}", plan.action());
            report::event(
                self.context,
                object,
                Severity::Warning,
                "RemoteObjectGone",
                "Observe",
                note,
            );
        }
        Ok((plan, observed))
    }

    async fn execute(
        &self,
        object: &Arc<Object>,
        work: &Work,
        plan: &Plan,
        observed: &Observed,
    ) -> Result<Next, Failure> {
        match plan {
            Plan::NoOp { .. } => {
                self.context.contests().at_rest(&object.uid, Instant::now());
                let Some(remote) = &observed.recorded else {
                    return Ok(Next::Settled);
                };
                let object = self.claim(object, &remote.id, None).await?;
                self.report_synced(&object, work, remote, None, Stage::Final).await
            }
            Plan::Create { .. } => self.create(object, work).await,
            Plan::Update { id, changes } => self.update(object, work, id, changes).await,
            Plan::Replace { id, changes } => {
                self.write(work, Write::Delete { id: id.clone() }).await?;
                let note = format!(
                    "{id} is replaced, because Cloudflare cannot change in place: {}",
                    field_names(changes)
                );
                report::event(self.context, object, Severity::Normal, "Replacing", "Replace", note);
                self.create(object, work).await
            }
            Plan::Adopt { id, changes } => self.take(object, work, id, changes, observed, Origin::Adopted).await,
            Plan::Recover { id, changes } => self.take(object, work, id, changes, observed, Origin::Created).await,
            Plan::Blocked { .. } | Plan::Wait { .. } | Plan::Delete { .. } | Plan::Forget { .. } => {
                Ok(self.report_blocked(object, plan).await)
            }
        }
    }

    async fn create(&self, object: &Arc<Object>, work: &Work) -> Result<Next, Failure> {
        if let Some(until) = work.client.gate_closed_until() {
            let class = Class::RateLimited {
                until,
                by_cloudflare: true,
            };
            return Err(Failure::new(class, "Cloudflare's rate limit is exhausted"));
        }
        let standing = self.context.recorded(object).intent;
        let (object, intent) = self.announce(object, work).await?;
        // An earlier create of the same intent may have been carried out, whatever becomes of this one.
        let doubtful = standing.as_ref() == Some(&intent);
        self.context.mark_sent(&object, &intent);
        let written = self
            .write(
                work,
                Write::Create {
                    desired: work.prepared.desired.clone(),
                },
            )
            .await;
        let remote = match written {
            Ok(Some(remote)) => remote,
            Ok(None) => return Err(Failure::new(Class::Bug, "a create returned no object")),
            Err(failed) => {
                if !failed.unknown && !doubtful {
                    self.context.mark_unsent(&object, &intent);
                    if matches!(
                        failed.failure.class,
                        Class::Invalid(_) | Class::Blocked(_) | Class::Quota | Class::Auth
                    ) {
                        self.disown_intent(&object).await?;
                    }
                }
                return Err(failed.failure);
            }
        };
        report::event(
            self.context,
            &object,
            Severity::Normal,
            "Created",
            "Create",
            format!("created {}", remote.id),
        );
        // The id goes into status before anything else: from here on a crash finds the object by it.
        let next = self
            .report_synced(&object, work, &remote, Some(Origin::Created), Stage::Created)
            .await?;
        // Only then is the intent done with; as long as the id is not stored, the intent is what finds the object.
        let Some(object) = self.stored(&object, &remote.id) else {
            return Ok(next);
        };
        let object = self.claim(&object, &remote.id, None).await?;
        // What Cloudflare does not take at creation (a plan, a pause) is set afterwards.
        let left = diff(&work.prepared.desired.body, &remote.body, self.kind.descriptor().fields);
        if left.is_empty() {
            Ok(next)
        } else {
            self.update(&object, work, &remote.id, &left).await
        }
    }

    async fn update(&self, object: &Arc<Object>, work: &Work, id: &str, changes: &[Change]) -> Result<Next, Failure> {
        let ready = object.ready();
        let contested =
            ready.reason == Reason::CONTESTED.as_str() && ready.observed_generation == Some(object.generation);
        let drift = object.is_ready_at_generation() || contested;
        if drift {
            let ruling = self.context.contests().rule(&object.uid, changes, Instant::now());
            if let Ruling::Hold { fields, until } = ruling {
                return Ok(self.report_contested(object, &fields, until).await);
            }
        } else {
            self.context.contests().forget(&object.uid);
        }
        let remote = self.change(work, id, changes).await?;
        let what = changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
        if drift {
            self.context.contests().corrected(&object.uid, changes, Instant::now());
            self.context.metrics.drift_corrected(&object.key.kind);
            let note = format!("put right what was changed outside kflare: {what}");
            report::event(self.context, object, Severity::Normal, "DriftCorrected", "Update", note);
        } else {
            report::event(self.context, object, Severity::Normal, "Updated", "Update", what);
        }
        let object = self.claim(object, id, None).await?;
        self.report_synced(&object, work, &remote, None, Stage::Final).await
    }

    /// Brings an existing object under management: claimed first, changed then, recorded last. A crash in between finds the
    /// same plan again.
    async fn take(
        &self,
        object: &Arc<Object>,
        work: &Work,
        id: &str,
        changes: &[Change],
        observed: &Observed,
        origin: Origin,
    ) -> Result<Next, Failure> {
        let collection = work.prepared.collection.collection.clone();
        self.context.index().reserve(&collection, id, &object.key);
        let _reserved = Reserved {
            context: self.context,
            key: object.key.clone(),
        };
        let object = self.claim(object, id, Some(origin)).await?;
        let remote = if changes.is_empty() {
            observed.candidates.iter().find(|remote| remote.id == id).cloned()
        } else {
            Some(self.change(work, id, changes).await?)
        };
        let Some(remote) = remote else {
            return Err(Failure::new(Class::Bug, "the object to take was not observed"));
        };
        let what = if changes.is_empty() {
            "unchanged".to_owned()
        } else {
            field_names(changes)
        };
        let (reason, note) = match origin {
            Origin::Adopted => ("Adopted", format!("adopted {id}; changed: {what}")),
            Origin::Created => (
                "Recovered",
                format!("found {id}, created before an interruption; changed: {what}"),
            ),
        };
        report::event(self.context, &object, Severity::Normal, reason, "Adopt", note);
        let next = self
            .report_synced(&object, work, &remote, Some(origin), Stage::Final)
            .await?;
        if let Some(object) = self.stored(&object, id) {
            self.claim(&object, id, None).await?;
        }
        Ok(next)
    }

    /// The resource as it is stored, if `id` is recorded in it.
    fn stored(&self, object: &Object, id: &str) -> Option<Arc<Object>> {
        let stored = self.context.index().get(&object.key)?;
        (self.context.recorded(&stored).id.as_deref() == Some(id)).then_some(stored)
    }

    async fn change(&self, work: &Work, id: &str, changes: &[Change]) -> Result<Remote, Failure> {
        let write = Write::Update {
            id: id.to_owned(),
            desired: work.prepared.desired.clone(),
            changes: changes.to_vec(),
        };
        let remote = self.write(work, write).await?;
        remote.ok_or_else(|| Failure::new(Class::Bug, "an update returned no object"))
    }

    /// Sends one write, alone or in a batch, without holding a worker meanwhile. The collection's snapshot learns of it.
    async fn write(&self, work: &Work, write: Write) -> Result<Option<Remote>, Failed> {
        write_through(self, &work.prepared.collection, &work.client, write).await
    }

    /// Our finalizer and the intent, in one write: from here on neither a crash nor a lost reply can orphan the object.
    async fn announce(&self, object: &Arc<Object>, work: &Work) -> Result<(Arc<Object>, Intent), Failure> {
        let key = &work.prepared.desired.key;
        let intent = Intent {
            at: whole_seconds(work.client.server_time()),
            scope: work.prepared.scope.clone(),
            group: key.group.clone(),
            member: key.member.clone(),
            account: work.prepared.account.name.to_string(),
        };
        let standing = self.context.recorded(object).intent;
        // An earlier intent that may have been carried out keeps its time, so that a late effect of it is still ours.
        if let Some(standing) =
            standing.filter(|it| it.group == intent.group && it.member == intent.member && it.scope == intent.scope)
            && object.has_finalizer()
        {
            return Ok((object.clone(), standing));
        }
        let text = serde_json::to_string(&intent).map_err(|error| Failure::new(Class::Bug, error.to_string()))?;
        let metadata = json!({ "finalizers": with_finalizer(object), "annotations": { names::CREATE_INTENT: text } });
        let written = self
            .context
            .cluster
            .patch_metadata(object, metadata)
            .await
            .map_err(store_failure)?;
        Ok((self.context.wrote(written), intent))
    }

    /// The announced create surely did not happen and will not be repeated as it is.
    async fn disown_intent(&self, object: &Arc<Object>) -> Result<Arc<Object>, Failure> {
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
    async fn hold(&self, object: &Arc<Object>) -> Result<Arc<Object>, Failure> {
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

    /// Finalizer, claim label and, when it comes under management, how. The intent is done with, unless it is what the object
    /// was found by and the id is still to be recorded. Nothing is written when all is as it should be.
    async fn claim(&self, object: &Arc<Object>, id: &str, taken: Option<Origin>) -> Result<Arc<Object>, Failure> {
        let mut metadata = Map::new();
        if !object.has_finalizer() {
            metadata.insert("finalizers".to_owned(), with_finalizer(object));
        }
        let claim = self.kind.descriptor().claim.as_ref();
        if let Some(claim) =
            claim.filter(|claim| object.labels.get(claim.label.as_ref()).map(String::as_str) != Some(id))
        {
            metadata.insert("labels".to_owned(), json!({ claim.label.as_ref(): id }));
        }
        let mut annotations = Map::new();
        if object.annotation(names::CREATE_INTENT).is_some() && taken != Some(Origin::Created) {
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

    async fn report_synced(
        &self,
        object: &Arc<Object>,
        work: &Work,
        remote: &Remote,
        origin: Option<Origin>,
        stage: Stage,
    ) -> Result<Next, Failure> {
        let descriptor = self.kind.descriptor();
        let left = diff(&work.prepared.desired.body, &remote.body, descriptor.fields);
        let origin = origin.or(self.context.recorded(object).origin);
        let mut status = report::status_of(object);
        if descriptor.lifecycle == Lifecycle::Managed {
            status.insert("cloudflareMetadata".to_owned(), Value::Object(remote.metadata.clone()));
            let ownership = json!({
                "account": &*work.prepared.account.name,
                "scope": work.prepared.scope,
                "origin": origin.unwrap_or(Origin::Adopted),
            });
            status.insert("ownership".to_owned(), ownership);
        }
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
        report::echo(&mut status, object);
        if !left.is_empty() && stage == Stage::Created {
            let message = format!("created; still to be set: {}", field_names(&left));
            let ready = Ready::no(Reason::CREATED, message);
            return Ok(report::write(self.context, object, status, &ready, Next::Retry(Class::StoreConflict)).await);
        }
        if !left.is_empty() {
            // Recorded all the same, so that the object is not lost; but it is not what the spec asks for.
            let message = format!(
                "Cloudflare did not take these fields: {}",
                left.iter().map(Change::to_string).collect::<Vec<_>>().join("; ")
            );
            let ready = Ready::no(Reason::TERMINAL_ERROR, message);
            let next = Next::Retry(Class::Invalid(Reason::TERMINAL_ERROR));
            return Ok(report::write(self.context, object, status, &ready, next).await);
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
        let ready = Ready::yes(reason, "Cloudflare has what the spec asks for");
        Ok(report::write(self.context, object, status, &ready, next).await)
    }

    async fn report_blocked(&self, object: &Arc<Object>, plan: &Plan) -> Next {
        match plan {
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

    async fn report_observed(&self, object: &Arc<Object>, work: &Work, plan: &Plan, observed: &Observed) -> Next {
        let mut status = report::status_of(object);
        status.insert("plan".to_owned(), json!(plan.lines(20)));
        report::echo(&mut status, object);
        let ready = match (plan, &observed.recorded) {
            (Plan::NoOp { .. }, Some(remote)) => {
                status.extend(remote.status.clone());
                let verified = self.kind.descriptor().lifecycle == Lifecycle::Verified;
                let reason = if verified { Reason::VALIDATED } else { Reason::SYNCED };
                Ready::yes(reason, "observed: Cloudflare has what the spec asks for")
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
        report::write(self.context, object, status, &ready, next).await
    }

    async fn report_contested(&self, object: &Arc<Object>, fields: &[String], until: Instant) -> Next {
        let mut status = report::status_of(object);
        let wait = until.saturating_duration_since(Instant::now());
        let at = self
            .context
            .now()
            .checked_add(jiff::SignedDuration::try_from(wait).unwrap_or_default());
        let next_correction = at.map(|at| whole_seconds(at).to_string()).ok();
        let since = object
            .status
            .pointer("/contested/since")
            .cloned()
            .unwrap_or_else(|| json!(whole_seconds(self.context.now()).to_string()));
        // The first estimate stays, so that looking again changes nothing.
        let standing = object
            .status
            .pointer("/contested/nextCorrection")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let next_correction = match (standing, next_correction) {
            (Some(old), Some(new)) if close(&old, &new) => Some(old),
            (_, new) => new,
        };
        let mut contested = json!({ "fields": fields.iter().take(32).collect::<Vec<_>>(), "since": since });
        if let Some(at) = next_correction {
            contested["nextCorrection"] = json!(at);
        }
        status.insert("contested".to_owned(), contested);
        let message = format!(
            "somebody else keeps changing {}; it is corrected ever more rarely until one side rests",
            fields.join(", ")
        );
        let next = Next::At(until, Priority::Retry);
        report::write(
            self.context,
            object,
            status,
            &Ready::no(Reason::CONTESTED, message),
            next,
        )
        .await
    }

    /// Turns a failure into the condition, where it is to turn, and into the next step.
    async fn fail(&self, key: &ObjectKey, failure: Failure) -> Next {
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
                let next = Next::At(
                    *until + self.context.chance.jitter(Duration::from_secs(2), 0.9),
                    Priority::Retry,
                );
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
        let message = report::stable_message(&object, &reason, &failure.message);
        report::ready(
            self.context,
            &object,
            &Ready::no(reason, message),
            Next::Retry(failure.class),
        )
        .await
    }
}

/// Whether two times are within two minutes of each other.
fn close(a: &str, b: &str) -> bool {
    match (a.parse::<jiff::Timestamp>(), b.parse::<jiff::Timestamp>()) {
        (Ok(a), Ok(b)) => (a.as_second() - b.as_second()).abs() <= 120,
        _ => false,
    }
}

fn prepared_observes(prepared: &Prepared) -> bool {
    prepared.policy.mode == Mode::Observe
}

/// The decision about `object`, given what was observed.
pub(crate) fn decide_with(
    context: &Context,
    kind: &dyn Kind,
    object: &Object,
    prepared: &Prepared,
    observed: &Observed,
    recorded: &Recorded,
) -> Plan {
    let descriptor = kind.descriptor();
    decide(&Situation {
        lifecycle: descriptor.lifecycle,
        fields: descriptor.fields,
        desired: &prepared.desired,
        observed,
        recorded,
        scope: &prepared.scope,
        adoption: prepared.policy.adoption,
        claims: &ClaimsFor {
            context,
            collection: &descriptor.collection,
            asking: &object.key,
        },
    })
}

/// A write that failed, and whether it may have been applied all the same.
pub(crate) struct Failed {
    pub failure: Failure,
    pub unknown: bool,
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        failed.failure
    }
}

/// See [`Pass::write`].
pub(crate) async fn write_through(
    pass: &Pass<'_>,
    collection: &crate::index::CollectionKey,
    client: &Client,
    write: Write,
) -> Result<Option<Remote>, Failed> {
    let context = pass.context;
    let touched = match &write {
        Write::Update { id, .. } | Write::Delete { id } => Some(id.clone()),
        Write::Create { .. } => None,
    };
    let kind_name: Arc<str> = pass.kind.descriptor().kind.as_ref().into();
    let outcome = {
        let _parked = pass.kind.batch().and_then(|_| context.park(&kind_name));
        context.batches.write(collection, pass.kind, client, write).await
    };
    let remote = match outcome {
        Ok(Written::Stored(remote)) => Some(remote),
        Ok(Written::Deleted) => None,
        Err(error) => {
            if let Some(id) = &touched {
                context.collections.wrote(collection, id, None);
            }
            let class = match &error {
                WriteError::Cloudflare(error) => pass.kind.classify(error).unwrap_or_else(|| classify(error)),
                WriteError::Lost => Class::Transient,
            };
            let unknown = error.outcome_unknown();
            if unknown {
                context.collections.doubt(collection);
            }
            return Err(Failed {
                failure: Failure::new(class, error.to_string()),
                unknown,
            });
        }
    };
    if let Some(id) = remote.as_ref().map(|remote| remote.id.clone()).or(touched) {
        context.collections.wrote(collection, &id, remote.clone());
    }
    Ok(remote)
}

/// Releases what a pass has reserved, however it ends.
struct Reserved<'a> {
    context: &'a Context,
    key: ObjectKey,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.context.index().unreserve(&self.key);
    }
}

fn with_finalizer(object: &Object) -> Value {
    let mut finalizers = object.finalizers.clone();
    if !object.has_finalizer() {
        finalizers.push(names::FINALIZER.to_owned());
    }
    json!(finalizers)
}

/// What a failed write to the API server means for the pass.
pub(crate) fn store_failure(error: ClusterError) -> Failure {
    match error {
        ClusterError::Conflict | ClusterError::NotFound => Failure::new(Class::StoreConflict, error.to_string()),
        ClusterError::Stopped(why) => Failure::new(Class::Stopped, why),
        other => Failure::new(Class::Transient, other.to_string()),
    }
}

/// Reports a pass that was cut off.
pub(crate) async fn give_up(context: &Context, key: &ObjectKey, lane: Priority, class: Class, message: &str) -> Next {
    match context.kinds.get(&key.kind) {
        Some(kind) => {
            Pass { context, kind, lane }
                .fail(key, Failure::new(class, message))
                .await
        }
        None => Next::Settled,
    }
}
