//! One pass over one resource that is to exist: prepare, observe, decide, execute, report.

mod follow;
mod inputs;
mod marks;
mod outcome;
mod yields;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kflare_api::names;
use kflare_cloudflare::Client;
use tokio::time::Instant;

use crate::{
    cluster::{ClusterError, Severity},
    collections::Freshness,
    contest::Ruling,
    context::{ClaimsFor, Context, Try},
    decide::{Observed, Situation, decide},
    deletion,
    errors::{Class, Failure, Refused, WriteError, classify},
    index::CollectionKey,
    intent::ANSWERED_WITHIN,
    kind::{Kind, Lifecycle, Remote, Write, Written},
    mutation::{self, Mutation},
    object::{Object, ObjectKey, Origin, Recorded},
    observe::{FEW, FRESH, FRESH_ENOUGH, Look, Proof, observe},
    operations::{Started, UnderWay},
    plan::{Change, Plan, diff, field_names},
    policy::{DriftCheck, Mode, is_paused},
    queue::Priority,
    reason::Reason,
    refusals, report,
    resolve::Prepared,
    status::Ready,
};

pub(crate) use follow::drop_ended;
use outcome::Stage;

/// Without drift checks, what was refused is looked at that often.
const RARELY: Duration = Duration::from_hours(1);

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
        let mut prepared = prepared;
        if self.is_as_written(&object, &prepared).await? {
            return Ok(Next::Settled);
        }
        if let Some(plan) = self.fill(&object, &mut prepared).await? {
            return Ok(self.report_blocked(&object, &plan).await);
        }
        let mut object = object;
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
                report::event(self.context, object, Severity::Normal, "Replacing", "Replace", note);
                self.create(object, work, &observed.candidates).await
            }
            Plan::Adopt { id, changes } => self.adopt(object, work, id, changes, observed).await,
            Plan::Recover { id, .. } => {
                let remote = candidate(observed, id)?;
                let note = format!("found {id}, created before an interruption");
                report::event(self.context, object, Severity::Normal, "Recovered", "Create", note);
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

    async fn create(&self, object: &Arc<Object>, work: &Work, neighbours: &[Remote]) -> Result<Next, Failure> {
        let fingerprint =
            refusals::fingerprint(&work.prepared, neighbours, &work.client, self.kind.descriptor().fields);
        if self.lane != Priority::UserChange && refusals::was_refused(object, &fingerprint) {
            let collection = &work.prepared.collection;
            let next_try = self
                .context
                .refusals()
                .next_try(object, collection, &self.context.chance);
            if Instant::now() < next_try {
                return Ok(Next::At(self.look_again(work).min(next_try), Priority::DriftCheck));
            }
        }
        if let Some(until) = work.client.gate_closed_until() {
            let class = Class::RateLimited {
                until,
                by_cloudflare: true,
            };
            return Err(Failure::new(class, "Cloudflare's rate limit is exhausted"));
        }
        if let Some(until) = work.client.turned_away_until() {
            let class = Class::RateLimited {
                until,
                by_cloudflare: false,
            };
            return Err(Failure::new(class, "the budget of calls is used up"));
        }
        let standing = self.context.recorded(object, &work.client).intent;
        let held = self.context.collections.writes_held(&work.prepared.collection);
        if let Some(held) = held.filter(|_| self.waits_its_turn()) {
            return Err(held);
        }
        let (object, intent) = self.announce(object, work).await?;
        // An earlier create of the same intent may have been carried out, whatever becomes of this one.
        let doubtful = standing.is_some_and(|standing| standing.is_same_object(&intent));
        self.context.note_try(&object, &intent, None);
        let _reserved = Reserved {
            context: self.context,
            key: object.key.clone(),
        };
        let written = self
            .write(
                &object,
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
                if mutation::is(Mutation::LostReplyTakenForFailure) {
                    self.disown_intent(&object).await?;
                } else if failed.unknown {
                    // An answer, whatever it says, ends the time in which our object can have been made.
                    if failed.answered {
                        let over = work
                            .client
                            .server_time()
                            .saturating_add(ANSWERED_WITHIN)
                            .unwrap_or(intent.at);
                        self.context.note_try(&object, &intent, Some(Try::Over(over)));
                    }
                } else if !doubtful {
                    self.context.note_try(&object, &intent, Some(Try::Unsent));
                    let class = &failed.failure.class;
                    let for_good = matches!(
                        class,
                        Class::Invalid(_) | Class::InTheWay(_) | Class::Blocked(_) | Class::Quota
                    );
                    if for_good || *class == Class::Auth {
                        self.disown_intent(&object).await?;
                    }
                    if for_good {
                        let collection = &work.prepared.collection;
                        self.context
                            .refusals()
                            .refused(&object, collection, class, &self.context.chance);
                        let as_seen = !matches!(class, Class::InTheWay(_)) || self.stands_as(work, neighbours).await;
                        let look_again = self.look_again(work);
                        return Err(Failure {
                            refused: Some(Refused {
                                fingerprint: as_seen.then_some(fingerprint),
                                look_again,
                            }),
                            ..failed.failure
                        });
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
        self.record_created(&object, work, &remote).await
    }

    /// Whether the same objects as before stand in the place of the wanted one. If not, a create was refused in another state
    /// than the one that was looked at: something made in the meantime, perhaps in the same batch, was in the way.
    async fn stands_as(&self, work: &Work, before: &[Remote]) -> bool {
        let Work { prepared, client } = work;
        let found = self.kind.find(client, &prepared.scope, &prepared.desired.key).await;
        found.is_ok_and(|now| refusals::standing(&now) == refusals::standing(before))
    }

    /// When to look whether what was refused may be possible now.
    fn look_again(&self, work: &Work) -> Instant {
        self.context.soon(match work.prepared.policy.drift_check {
            DriftCheck::Every(interval) => interval,
            DriftCheck::Off => RARELY,
        })
    }

    /// Records an object that a create of ours has made, and sets what the create did not. The id goes into status before
    /// anything else: from then on a crash finds the object by it, and before then nothing may change it, because it is found
    /// by being exactly what was sent.
    async fn record_created(&self, object: &Arc<Object>, work: &Work, remote: &Remote) -> Result<Next, Failure> {
        let mut object = object.clone();
        if mutation::is(Mutation::IntentDroppedEarly) {
            object = self.disown_intent(&object).await?;
        }
        let next = self
            .report_synced(&object, work, remote, Some(Origin::Created), Stage::Created)
            .await?;
        self.context.refusals().forget(&object.uid);
        // Only then is the intent done with; as long as the id is not stored, the intent is what finds the object.
        let Some(object) = self.stored(&object, &remote.id) else {
            return Ok(next);
        };
        let object = self.claim(&object, &remote.id, None).await?;
        // What Cloudflare does not take at creation (a plan, a pause) is set afterwards.
        let left = diff(&work.prepared.desired.body, &remote.body, self.kind.descriptor().fields);
        if !left.is_empty() {
            self.update(&object, work, &remote.id, &left).await
        } else if self.awaits_yield(&object, remote) {
            self.report_synced(&object, work, remote, None, Stage::Final).await
        } else {
            Ok(next)
        }
    }

    async fn update(&self, object: &Arc<Object>, work: &Work, id: &str, changes: &[Change]) -> Result<Next, Failure> {
        let ready = object.ready();
        // What the spec asks for was dealt with before, well or badly: whoever changed the object was not this user.
        let known = ready.observed_generation == Some(object.generation);
        let contested = ready.reason == Reason::CONTESTED.as_str() && known;
        let drift = object.is_ready_at_generation() || contested;
        if known {
            let ruling = self.context.contests().rule(&object.uid, changes, Instant::now());
            if let Ruling::Hold { fields, until } = ruling {
                return Ok(self.report_contested(object, &fields, until).await);
            }
        } else {
            self.context.contests().forget(&object.uid);
        }
        let done = self.change(object, work, id, changes).await?;
        let what = changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
        // An operation has corrected something when it has ended well.
        if known && matches!(done, Changed::Stored(_)) {
            self.context.contests().corrected(&object.uid, changes, Instant::now());
        }
        if drift {
            self.context.metrics.drift_corrected(&object.key.kind);
            let note = format!("put right what was changed outside kflare: {what}");
            report::event(self.context, object, Severity::Normal, "DriftCorrected", "Update", note);
        } else {
            report::event(self.context, object, Severity::Normal, "Updated", "Update", what);
        }
        let object = self.claim(object, id, None).await?;
        match done {
            Changed::Stored(remote) => {
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
                Ok(self.begun(&object, work, None, under_way, corrects).await)
            }
        }
    }

    /// Brings an existing object under management: claimed first, changed then, recorded last. A crash in between finds the
    /// same plan again.
    async fn adopt(
        &self,
        object: &Arc<Object>,
        work: &Work,
        id: &str,
        changes: &[Change],
        observed: &Observed,
    ) -> Result<Next, Failure> {
        self.context.index().reserve(&work.prepared.collection, id, &object.key);
        let _reserved = Reserved {
            context: self.context,
            key: object.key.clone(),
        };
        let object = self.claim(object, id, Some(Origin::Adopted)).await?;
        let (done, what) = if changes.is_empty() {
            (Changed::Stored(candidate(observed, id)?), "unchanged".to_owned())
        } else {
            (self.change(&object, work, id, changes).await?, field_names(changes))
        };
        let note = format!("adopted {id}; changed: {what}");
        report::event(self.context, &object, Severity::Normal, "Adopted", "Adopt", note);
        let remote = match done {
            Changed::Stored(remote) => remote,
            Changed::UnderWay(under_way) => {
                let remote = candidate(observed, id)?;
                return Ok(self.begun(&object, work, Some(&remote), under_way, Vec::new()).await);
            }
        };
        let mut object = object;
        if self.awaits_yield(&object, &remote) {
            // Recorded before its Secret is made, which may fail on its own.
            let taken = Some(Origin::Adopted);
            let next = self
                .report_synced(&object, work, &remote, taken, Stage::Created)
                .await?;
            let Some(stored) = self.stored(&object, &remote.id) else {
                return Ok(next);
            };
            object = stored;
        }
        self.report_synced(&object, work, &remote, Some(Origin::Adopted), Stage::Final)
            .await
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

    /// Sends one write, alone or in a batch, without holding a worker meanwhile. The collection's snapshot learns of it.
    async fn write(&self, object: &Object, work: &Work, write: Write) -> Result<Option<Remote>, Failed> {
        let prepared = &work.prepared;
        let mut written = write_through(self, object, &prepared.collection, &work.client, write).await;
        // What no read tells is as it was sent.
        if let Ok(Some(remote)) = &mut written {
            let sent = self.kind.descriptor().fields.write_only.iter();
            let sent = sent.filter_map(|field| Some(((*field).to_owned(), prepared.desired.body.get(*field)?.clone())));
            remote.body.extend(sent);
        }
        if let Err(failed) = &mut written
            && matches!(failed.failure.class, Class::InTheWay(_))
            && let Some(what) = self
                .kind
                .obstacle(&work.client, &prepared.scope, &prepared.desired)
                .await
        {
            failed.failure.message.push_str("; in the way: ");
            failed.failure.message.push_str(&what);
        }
        written
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
            asking: &object.key,
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

/// A write that failed, and whether it may have been applied all the same.
pub(crate) struct Failed {
    pub failure: Failure,
    pub unknown: bool,
    /// Whether Cloudflare, or something before it, answered.
    pub answered: bool,
}

impl Failed {
    /// A write that was not sent.
    fn unsent(failure: Failure) -> Self {
        Self {
            failure,
            unknown: false,
            answered: false,
        }
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        failed.failure
    }
}

/// See [`Pass::write`].
pub(crate) async fn write_through(
    pass: &Pass<'_>,
    object: &Object,
    collection: &CollectionKey,
    client: &Client,
    mut write: Write,
) -> Result<Option<Remote>, Failed> {
    let context = pass.context;
    let touched = match &write {
        Write::Update { id, .. } | Write::Delete { id } => Some(id.clone()),
        Write::Create { .. } => None,
    };
    if pass.waits_its_turn()
        && let Err(failure) = context.collections.admit_write(collection)
    {
        return Err(Failed::unsent(failure));
    }
    let kind_name: Arc<str> = pass.kind.descriptor().kind.as_ref().into();
    let ordered = pass.kind.descriptor().nature.ordered;
    let parked = if ordered || pass.kind.batch().is_some() {
        context.park(&kind_name)
    } else {
        None
    };
    // The place is that of this very moment: the edit before may have moved everything.
    let turn = if ordered {
        let turn = context.collections.editing(collection).await;
        if let Write::Create { desired } | Write::Update { desired, .. } = &mut write {
            let placement = context.arrangement(collection, object).placement(&object.key);
            desired.position = placement.map(|placement| placement.to);
        }
        // What an edit before has put in its place, this one is decided about anew.
        if let Write::Create { desired } = &write
            && desired.exclusive
            && let Some(other) = context.collections.occupant(collection, pass.kind, &desired.key)
        {
            return Err(Failed {
                failure: Failure::new(Class::StoreConflict, format!("{other} was made in its place meanwhile")),
                unknown: false,
                answered: false,
            });
        }
        Some(turn)
    } else {
        None
    };
    let handle = context.collections.handle(collection);
    let began = Instant::now();
    let outcome = context
        .batches
        .write(collection, handle.as_deref(), pass.kind, client, write)
        .await;
    let (remote, listing) = match outcome {
        Ok(Written::Stored(stored)) => (Some(stored.remote), stored.listing),
        Ok(Written::Deleted(deleted)) => (None, deleted.listing),
        Err(error) => return Err(write_failed(pass, collection, touched.as_deref(), &error)),
    };
    if ordered && let Some(made) = remote.as_ref().filter(|_| touched.is_none()) {
        context.index().reserve(collection, &made.id, &object.key);
    }
    if let Some(listing) = listing {
        context.collections.relisted(collection, pass.kind, began, listing);
    }
    context.collections.writes_allowed(collection);
    if touched.is_some() {
        context.wake_refused(collection);
    }
    if let Some(id) = remote.as_ref().map(|remote| remote.id.clone()).or(touched) {
        context.collections.wrote(collection, pass.kind, &id, remote.clone());
    }
    drop((turn, parked));
    Ok(remote)
}

/// What a write that failed means, for the snapshot too. `touched` is the id of the object that it was to change.
fn write_failed(pass: &Pass<'_>, collection: &CollectionKey, touched: Option<&str>, error: &WriteError) -> Failed {
    let collections = &pass.context.collections;
    if let Some(id) = touched {
        collections.wrote(collection, pass.kind, id, None);
    }
    let class = match error {
        WriteError::Cloudflare(error) => pass.kind.classify(error).unwrap_or_else(|| classify(error)),
        WriteError::Lost => Class::Transient,
    };
    if class == Class::Auth {
        collections.refuse_writes(collection, &error.to_string());
    }
    let unknown = error.outcome_unknown();
    let answered = matches!(error, WriteError::Cloudflare(error) if error.status().is_some());
    if unknown {
        collections.doubt(collection);
    }
    Failed {
        failure: Failure::new(class, error.to_string()),
        unknown,
        answered,
    }
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
