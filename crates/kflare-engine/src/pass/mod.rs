//! One pass over one resource that is to exist: prepare, observe, decide, execute, report.

mod adopt;
mod create;
mod follow;
mod inputs;
mod marks;
mod outcome;
mod write;
mod yields;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kflare_api::names;
use kflare_cloudflare::Client;
use tokio::time::Instant;

use crate::{
    cluster::ClusterError,
    collections::Freshness,
    contest::Ruling,
    context::{ClaimsFor, Context},
    decide::{Observed, Situation, decide},
    deletion::{self, Outcome},
    errors::{Class, Failure},
    kind::{Kind, Lifecycle, Remote, Write},
    mutation::{self, Mutation},
    object::{Object, ObjectKey, Recorded},
    observe::{FEW, FRESH, FRESH_ENOUGH, Look, Proof, observe},
    occurrence::Occurrence,
    operations::{Started, UnderWay},
    plan::{Change, Plan, diff, field_names},
    policy::{Mode, is_paused},
    queue::Priority,
    reason::Reason,
    report,
    resolve::Prepared,
    status::Ready,
};

pub(crate) use follow::drop_ended;
use outcome::Stage;
pub(crate) use write::write_through;

/// Without drift checks, what was refused is looked at that often.
const RARELY: Duration = Duration::from_hours(1);

/// What a resource has left at Cloudflare that is gone without our consent is tried to be deleted again after that long at most.
const CLEARS_UP_ANYWAY: Duration = Duration::from_mins(10);

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
    let Some(kind) = context.kinds.get(&key.kind) else {
        return Next::Settled;
    };
    let pass = Pass { context, kind, lane };
    pass.clear_up(key).await;
    let object = context.index().get(key);
    match object {
        Some(object) => pass.over(&object).await,
        None => Next::Settled,
    }
}

/// What a pass works with.
pub(crate) struct Pass<'a> {
    pub context: &'a Context,
    pub kind: &'a dyn Kind,
    pub lane: Priority,
}

/// A resource on its way through the pass.
struct Work {
    prepared: Prepared,
    client: Client,
}

impl Pass<'_> {
    /// Deals with what resources of that name have left that are gone without our consent; see [`crate::vanished`]. What Cloudflare
    /// would not do is tried again.
    async fn clear_up(&self, key: &ObjectKey) {
        let context = self.context;
        let again = |pause: Duration| context.queue().add_at(key, context.soon(pause), Priority::Delete);
        let all = context.vanished().called(key);
        for vanished in all {
            // Should this pass be cut off.
            again(CLEARS_UP_ANYWAY);
            match Box::pin(deletion::carry_out_policy(self, &vanished)).await {
                Ok(Outcome::MayArrive(_)) => again(deletion::LOOKS_AGAIN),
                Ok(Outcome::Done) => {
                    let referents = context.vanished().done(&vanished);
                    context.forget(&vanished);
                    let mut wakes = context.index().rivals(&vanished);
                    wakes.extend(context.index().deleting(referents));
                    context.wake_all(wakes);
                }
                Err(failure) => {
                    tracing::warn!(uid = %vanished.uid, detail = %failure.message, "cannot deal yet with what was being made for a resource that is gone");
                    again(failure.class.backoff().0.clamp(deletion::LOOKS_AGAIN, CLEARS_UP_ANYWAY));
                }
            }
        }
    }

    /// Over a resource that is there.
    async fn over(&self, object: &Arc<Object>) -> Next {
        if is_paused(object) {
            let message = "kflare.dev/paused is set: nothing is changed at Cloudflare";
            let ready = Ready::kept(Reason::PAUSED, message);
            return report::ready(self.context, object, &ready, Next::Settled).await;
        }
        let done = if object.deleting {
            Box::pin(deletion::run(self, object)).await
        } else {
            Box::pin(self.reconcile(object.clone())).await
        };
        match done {
            Ok(next) => next,
            Err(failure) => self.fail(&object.key, failure).await,
        }
    }

    async fn reconcile(&self, mut object: Arc<Object>) -> Result<Next, Failure> {
        // Whatever becomes of this pass: what has an object at Cloudflare cannot go without a word.
        let only_looks = object.annotation(names::MODE).is_some_and(|mode| mode != "manage");
        let has_object = self.context.recorded_unproven(&object).id.is_some();
        if has_object && self.kind.descriptor().lifecycle == Lifecycle::Managed && !only_looks {
            object = self.hold(&object).await?;
        }
        let prepared = match self.context.prepare(&object) {
            Ok(prepared) => prepared,
            Err(plan) => return Ok(self.report_blocked(&object, &plan).await),
        };
        let mut prepared = prepared;
        if self.is_as_written(&object, &prepared).await? {
            return Ok(Next::Settled);
        }
        if let Some(plan) = self.fill(&object, &mut prepared).await? {
            return Ok(self.report_blocked(&object, &plan).await);
        }
        let manages = prepared.policy.mode == Mode::Manage;
        if self.kind.descriptor().provides_credential && manages {
            object = self.hold(&object).await?;
            self.context.credentials.protect(&prepared.source.secret).await?;
        }
        let client = self.client(&prepared).await?;
        let work = Work { prepared, client };
        if let Some(next) = self.follow(&object, &work).await? {
            return Ok(next);
        }
        let echo =
            object.annotation(names::RECONCILE_AT) != object.status.get::<String>(&["lastReconcileAt"]).as_deref();
        let now = Instant::now();
        let freshness = if echo {
            Freshness::BegunAt(now)
        } else {
            let age = if work.client.calls_are_scarce() {
                FRESH_ENOUGH
            } else {
                FRESH
            };
            Freshness::CompleteAt(now.checked_sub(age).unwrap_or(now))
        };
        let (mut plan, mut observed) = self.plan(&object, &work, freshness).await?;
        if prepared_observes(&work.prepared) {
            return Ok(self.report_observed(&object, &work, &plan, &observed).await);
        }
        self.admit_yield(&object, &plan).await?;
        for attempt in 0.. {
            let done = self.execute(&object, &work, &plan, &observed).await;
            if done.is_ok() && self.kind.descriptor().nature.ordered {
                self.wake_misplaced(&object, &work, &plan);
            }
            match done {
                // Cloudflare knows an object that our list did not show: look anew, once, and decide about that.
                Err(failure) if failure.class == Class::Exists && attempt == 0 => {
                    // Unless an earlier create may have made it: then the intent is what tells.
                    let doubtful = self.context.recorded(&object, &work.client).intent.is_some();
                    object = self.context.index().get(&object.key).unwrap_or(object);
                    if !doubtful {
                        object = self.disown_intent(&object).await?;
                    }
                    (plan, observed) = self.plan(&object, &work, Freshness::BegunAt(Instant::now())).await?;
                }
                other => return other,
            }
        }
        Ok(Next::Settled)
    }

    /// Others of the collection may have to move now.
    fn wake_misplaced(&self, object: &Object, work: &Work, done: &Plan) {
        let stored = self.context.index().get(&object.key);
        let arrangement = self
            .context
            .arrangement(&work.prepared.collection, stored.as_deref().unwrap_or(object));
        // What has just come under management may stand anywhere.
        let found = matches!(done, Plan::Adopt { .. } | Plan::Recover { .. });
        let wakes = arrangement.misplaced().filter(|key| found || **key != object.key);
        self.context
            .wake_all(wakes.map(|key| (key.clone(), Priority::Dependent)).collect());
    }

    /// Whether the pass stands back while writes are refused. What a user has just asked for is tried at once.
    fn waits_its_turn(&self) -> bool {
        !matches!(self.lane, Priority::UserChange | Priority::Delete)
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

    /// What Cloudflare has, from the collection's list or asked for alone.
    async fn look(
        &self,
        object: &Object,
        work: &Work,
        recorded: &Recorded,
        freshness: Freshness,
        proof: Proof,
    ) -> Result<Observed, Failure> {
        let Work { prepared, client } = work;
        let few = self.context.index().has_few_siblings(&object.key, FEW);
        let look = Look {
            kind: self.kind,
            client,
            collection: &prepared.collection,
            recorded,
            desired: &prepared.desired,
            freshness,
            proof,
            few,
            expected: &|| self.context.index().recorded_ids(&prepared.collection),
        };
        // Waiting for a list that somebody else is taking, or taking it, needs no worker.
        let kind_name: Arc<str> = self.kind.descriptor().kind.as_ref().into();
        let lists = self.kind.descriptor().listable && (!few || self.kind.descriptor().lists_for_few());
        let waits = lists && !self.context.collections.is_fresh(&prepared.collection, freshness);
        let parked = if waits { self.context.park(&kind_name) } else { None };
        let observed = Box::pin(observe(&self.context.collections, &look)).await;
        drop(parked);
        observed
    }

    async fn plan(&self, object: &Arc<Object>, work: &Work, freshness: Freshness) -> Result<(Plan, Observed), Failure> {
        let Work { prepared, client } = work;
        let recorded = self.context.recorded(object, client);
        let mut observed = self.look(object, work, &recorded, freshness, Proof::Hash).await?;
        if self.kind.descriptor().nature.ordered && observed.recorded.is_some() {
            let arrangement = self.context.arrangement(&prepared.collection, object);
            observed.placement = arrangement.placement(&object.key);
        }
        let plan = decide_with(
            self.context,
            self.kind,
            object,
            prepared,
            &observed,
            &recorded,
            Some(client),
        );
        // While nothing is done about it, the condition says so, once.
        if recorded.id.is_some()
            && observed.recorded.is_none()
            && self.kind.descriptor().lifecycle == Lifecycle::Managed
            && !prepared_observes(prepared)
        {
            let id = recorded.id.unwrap_or_default();
            let note = format!("{id} no longer exists at Cloudflare: {}", plan.action());
            report::event(self.context, object, Occurrence::REMOTE_OBJECT_GONE, note);
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
            Plan::Create { .. } => self.create(object, work, &observed.candidates).await,
            Plan::Update { .. } if mutation::is(Mutation::ReadyWithoutEffect) => {
                let Some(mut remote) = observed.recorded.clone() else {
                    return Ok(Next::Settled);
                };
                remote.body = work.prepared.desired.body.clone();
                self.report_synced(object, work, &remote, None, Stage::Final).await
            }
            Plan::Update { id, changes }
                if mutation::is(Mutation::OperationEndBelieved) && self.kind.operations().is_some() =>
            {
                self.change(object, work, id, changes).await?;
                let Some(mut remote) = observed.recorded.clone() else {
                    return Ok(Next::Settled);
                };
                remote.body = work.prepared.desired.body.clone();
                self.report_synced(object, work, &remote, None, Stage::Final).await
            }
            Plan::Update { id, changes } => self.update(object, work, id, changes).await,
            Plan::Replace { id, changes } => {
                self.write(object, work, Write::Delete { id: id.clone() }).await?;
                let note = format!(
                    "{id} is replaced, because Cloudflare cannot change in place: {}",
                    field_names(changes)
                );
                report::event(self.context, object, Occurrence::REPLACING, note);
                self.create(object, work, &observed.candidates).await
            }
            Plan::Adopt { id, changes } => self.adopt(object, work, id, changes, observed).await,
            Plan::Recover { id, .. } => {
                let remote = candidate(observed, id)?;
                let note = format!("found {id}, created before an interruption");
                report::event(self.context, object, Occurrence::RECOVERED, note);
                self.record_created(object, work, &remote).await
            }
            // What was confirmed gone, and cannot be made again, is nobody's to refer to.
            Plan::Blocked { .. } if observed.recorded.is_none() && self.lost_its_object(object) => {
                Ok(self.report_lost(object, plan).await)
            }
            Plan::Blocked { .. } | Plan::Wait { .. } | Plan::Delete { .. } | Plan::Forget { .. } => {
                Ok(self.report_blocked(object, plan).await)
            }
        }
    }

    async fn update(&self, object: &Arc<Object>, work: &Work, id: &str, changes: &[Change]) -> Result<Next, Failure> {
        let ready = object.ready();
        // What the spec asks for was dealt with before, well or badly: whoever changed the object was not this user. A pause, or
        // observing, deals with nothing, and what the spec reads belongs to it.
        let acted = ![Reason::PAUSED.as_str(), Reason::OBSERVING.as_str()].contains(&ready.reason.as_str());
        let reads_the_same = work.prepared.inputs == object.status.get::<String>(&[crate::inputs::FIELD]);
        let known = ready.observed_generation == Some(object.generation) && acted && reads_the_same;
        let drift = known && (ready.status == "True" || ready.reason == Reason::CONTESTED.as_str());
        if known {
            let ruling = self.context.contests().rule(&object.uid, changes, Instant::now());
            if let Ruling::Hold { fields, until } = ruling {
                return Ok(self.report_contested(object, &fields, until).await);
            }
        } else {
            self.context.contests().forget(&object.uid);
        }
        let done = match self.change(object, work, id, changes).await {
            Ok(done) => done,
            Err(failure) => {
                if known {
                    self.context.contests().tried(&object.uid, changes, Instant::now());
                }
                return Err(failure);
            }
        };
        let what = changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
        // An operation has corrected something when it has ended well.
        if known && matches!(done, Changed::Stored(_)) {
            self.context.contests().corrected(&object.uid, changes, Instant::now());
        }
        if drift {
            self.context.metrics.drift_corrected(&object.key.kind);
            let note = format!("put right what was changed outside kflare: {what}");
            report::event(self.context, object, Occurrence::DRIFT_CORRECTED, note);
        } else {
            report::event(self.context, object, Occurrence::UPDATED, what);
        }
        match done {
            Changed::Stored(remote) => {
                let object = self.claim(object, id, None).await?;
                let left = diff(&work.prepared.desired.body, &remote.body, self.kind.descriptor().fields);
                let unsent = |it: &Change| changes.iter().all(|sent| sent.path != it.path);
                let stage = if left.iter().any(unsent) {
                    Stage::Overtaken
                } else {
                    Stage::Final
                };
                self.report_synced(&object, work, &remote, None, stage).await
            }
            Changed::UnderWay(under_way) => {
                let corrects = if known { changes.to_vec() } else { Vec::new() };
                // Noted before anything that can fail: asked for twice, it would be carried out twice.
                let next = self.begun(object, work, None, under_way, corrects).await;
                let stored = self.context.index().get(&object.key);
                self.claim(stored.as_ref().unwrap_or(object), id, None).await?;
                Ok(next)
            }
        }
    }

    /// The resource as it is stored, if `id` is recorded in it.
    fn stored(&self, object: &Object, id: &str) -> Option<Arc<Object>> {
        let stored = self.context.index().get(&object.key)?;
        (self.context.recorded_unproven(&stored).id.as_deref() == Some(id)).then_some(stored)
    }

    async fn change(&self, object: &Object, work: &Work, id: &str, changes: &[Change]) -> Result<Changed, Failure> {
        if let Some(writer) = self.kind.operations() {
            return Ok(match self.start(writer, work, id, changes).await? {
                Started::Stored(stored) => Changed::Stored(stored.remote),
                Started::UnderWay(under_way) => Changed::UnderWay(under_way),
            });
        }
        let write = Write::Update {
            id: id.to_owned(),
            desired: work.prepared.desired.clone(),
            changes: changes.to_vec(),
        };
        let remote = self.write(object, work, write).await?;
        remote
            .map(Changed::Stored)
            .ok_or_else(|| Failure::new(Class::Bug, "an update returned no object"))
    }
}

fn prepared_observes(prepared: &Prepared) -> bool {
    prepared.policy.mode == Mode::Observe && !mutation::is(Mutation::ObserveIgnored)
}

/// The decision about `object`, given what was observed. Without a client, as for what is recorded and seen, nothing is asked
/// about intents.
pub(crate) fn decide_with(
    context: &Context,
    kind: &dyn Kind,
    object: &Object,
    prepared: &Prepared,
    observed: &Observed,
    recorded: &Recorded,
    client: Option<&Client>,
) -> Plan {
    let descriptor = kind.descriptor();
    decide(&Situation {
        descriptor,
        now: client.map_or(Timestamp::MIN, Client::server_time),
        desired: &prepared.desired,
        observed,
        recorded,
        scope: &prepared.scope,
        adoption: prepared.policy.adoption,
        claims: &ClaimsFor {
            context,
            descriptor,
            client,
            collection: &prepared.collection,
            asking: object,
        },
    })
}

/// What came of a change.
enum Changed {
    /// It is carried out.
    Stored(Remote),
    /// Cloudflare is carrying it out.
    UnderWay(UnderWay),
}

/// The observed object of that id.
fn candidate(observed: &Observed, id: &str) -> Result<Remote, Failure> {
    let found = observed.candidates.iter().find(|remote| remote.id == id).cloned();
    found.ok_or_else(|| Failure::new(Class::Bug, "the object to take was not observed"))
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
