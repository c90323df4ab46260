//! Making an object that does not exist, and recording what was made.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Next, Pass, RARELY, Reserved, Work, outcome::Stage};
use crate::{
    context::Try,
    errors::{Class, Failure, Refused},
    intent::ANSWERED_WITHIN,
    kind::{Remote, Write},
    mutation::{self, Mutation},
    object::{Object, Origin},
    occurrence::Occurrence,
    plan::diff,
    policy::DriftCheck,
    queue::Priority,
    refusals, report,
};

impl Pass<'_> {
    /// Creates the object: announced first, so that a crash or a lost reply orphans nothing.
    pub(super) async fn create(
        &self,
        object: &Arc<Object>,
        work: &Work,
        neighbours: &[Remote],
    ) -> Result<Next, Failure> {
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
                    if class.is_for_good() || *class == Class::Auth {
                        self.disown_intent(&object).await?;
                    }
                    if class.is_for_good() {
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
        let made = Try::Made(remote.id.as_str().into());
        self.context.note_try(&object, &intent, Some(made));
        report::event(
            self.context,
            &object,
            Occurrence::CREATED,
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
    pub(super) async fn record_created(
        &self,
        object: &Arc<Object>,
        work: &Work,
        remote: &Remote,
    ) -> Result<Next, Failure> {
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
        self.context.forget_tries(&object);
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
}
