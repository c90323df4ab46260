//! Changes that Cloudflare carries out later: asked for, recorded, and looked at in the passes that follow.

use std::{future::Future, sync::Arc};

use jiff::Timestamp;
use kflare_cloudflare::Error;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::outcome::record;
use super::{
    Next, Pass, Work, prepared_observes,
    write::{Failed, write_failed},
};
use crate::{
    clock::whole_seconds,
    errors::{Class, Failure, WriteError, classify},
    kind::{Remote, Site},
    mutation::{self, Mutation},
    object::{Object, Origin},
    operations::{FIELD, Followed, OVERDUE, OperationWriter, Progress, Started, UnderWay},
    plan::Change,
    queue::Priority,
    reason::Reason,
    report::Draft,
    status::Ready,
};

impl Pass<'_> {
    /// Looks at the operation that is under way for a resource, if there is one. What happens next; none when nothing is left to
    /// wait for, so that the pass goes on.
    pub(super) async fn follow(&self, object: &Arc<Object>, work: &Work) -> Result<Option<Next>, Failure> {
        let Some(writer) = self.kind.operations() else {
            return Ok(None);
        };
        let Some(operation) = self.context.operations().current(object) else {
            return Ok(None);
        };
        let progress = match writer.progress(&work.client, &work.prepared.scope, &operation).await {
            Ok(progress) => progress,
            Err(error) => match self.kind.classify(&error).unwrap_or_else(|| classify(&error)) {
                // Cloudflare has forgotten it; what it did is there to be seen.
                Class::Missing => Progress::Done,
                class => return Err(Failure::new(class, error.to_string())),
            },
        };
        if progress == Progress::Running && mutation::is(Mutation::OperationForgotten) {
            return Ok(None);
        }
        if progress == Progress::Running && !self.is_overdue(object, &operation) {
            return Ok(Some(self.report_under_way(object, work, None, &operation).await));
        }
        let collection = &work.prepared.collection;
        let id = self.context.recorded_unproven(object).id;
        if let Some(id) = &id {
            self.context.collections.wrote(collection, self.kind, id, None);
        }
        let ended = self.context.operations().ended(&object.uid, &operation);
        let tried = || {
            let mut contests = self.context.contests();
            contests.tried(&object.uid, &ended.corrects, Instant::now());
        };
        if let Progress::Failed(why) = progress {
            tried();
            let message = format!("Cloudflare did not carry out operation {operation}: {why}");
            return Err(Failure::new(Class::Blocked(Reason::TERMINAL_ERROR), message));
        }
        let Some(rest) = &ended.rest else {
            if !ended.corrects.is_empty() {
                let mut contests = self.context.contests();
                contests.corrected(&object.uid, &ended.corrects, Instant::now());
            }
            return Ok(None);
        };
        let goes_on =
            progress == Progress::Done && ended.generation == object.generation && !prepared_observes(&work.prepared);
        let Some(id) = id.filter(|_| goes_on) else {
            tried();
            return Ok(None);
        };
        let handle = self.context.collections.handle(collection);
        let site = Site {
            scope: &work.prepared.scope,
            handle: handle.as_deref(),
        };
        let resumed = async {
            writer
                .resume(&work.client, site, &id, rest)
                .await
                .map(Started::UnderWay)
        };
        match self.send(work, &id, resumed).await {
            Ok(Started::UnderWay(under_way)) => {
                let next = self.begun(object, work, None, under_way, ended.corrects).await;
                Ok(Some(next))
            }
            Ok(Started::Stored(_)) => Ok(None),
            Err(failed) => {
                tried();
                Err(failed.into())
            }
        }
    }

    /// Starts a change that may take operations.
    pub(super) async fn start(
        &self,
        writer: &dyn OperationWriter,
        work: &Work,
        id: &str,
        changes: &[Change],
    ) -> Result<Started, Failure> {
        let prepared = &work.prepared;
        let handle = self.context.collections.handle(&prepared.collection);
        let site = Site {
            scope: &prepared.scope,
            handle: handle.as_deref(),
        };
        let started = writer.start(&work.client, site, id, &prepared.desired, changes);
        Ok(self.send(work, id, started).await?)
    }

    /// Records an operation that was accepted.
    pub(super) async fn begun(
        &self,
        object: &Arc<Object>,
        work: &Work,
        adopted: Option<&Remote>,
        under_way: UnderWay,
        corrects: Vec<Change>,
    ) -> Next {
        let operation = under_way.operation.clone();
        let followed = Followed::new(object, under_way, corrects);
        self.context.operations().begun(&object.uid, followed);
        self.report_under_way(object, work, adopted, &operation).await
    }

    /// Makes a call that changes an object. The collection's snapshot learns that it does not know the object any more.
    async fn send(
        &self,
        work: &Work,
        id: &str,
        call: impl Future<Output = Result<Started, Error>>,
    ) -> Result<Started, Failed> {
        let context = self.context;
        let collection = &work.prepared.collection;
        if self.waits_its_turn()
            && let Err(failure) = context.collections.admit_write(collection)
        {
            return Err(Failed::unsent(failure));
        }
        match call.await {
            Ok(started) => {
                context.collections.writes_allowed(collection);
                context.wake_refused(collection);
                let remote = match &started {
                    Started::Stored(stored) => Some(stored.remote.clone()),
                    Started::UnderWay(_) => None,
                };
                context.collections.wrote(collection, self.kind, id, remote);
                Ok(started)
            }
            Err(error) => Err(write_failed(self, collection, Some(id), &WriteError::from(error))),
        }
    }

    fn is_overdue(&self, object: &Object, operation: &str) -> bool {
        let stored: Option<String> = object.status.get(&[FIELD, "id"]);
        let since: Option<Timestamp> = object.status.get(&[FIELD, "since"]);
        let age = since.map(|since| self.context.now().duration_since(since).unsigned_abs());
        stored.as_deref() == Some(operation) && age.is_some_and(|age| age > OVERDUE)
    }

    /// Says that an operation is under way. `adopted`: the object that it changes, where it is not recorded yet.
    async fn report_under_way(
        &self,
        object: &Arc<Object>,
        work: &Work,
        adopted: Option<&Remote>,
        operation: &str,
    ) -> Next {
        let mut draft = Draft::begin(self.context, object).await;
        let status = &mut draft.status;
        if let Some(remote) = adopted {
            record(self.kind.descriptor(), status, work, remote, Origin::Adopted);
        }
        let stored: Option<String> = object.status.get(&[FIELD, "id"]);
        if stored.as_deref() != Some(operation) {
            let since = whole_seconds(self.context.now()).to_string();
            status.insert(FIELD.to_owned(), json!({ "id": operation, "since": since }));
        }
        for field in ["plan", "contested", "appliedHash", "appliedRevision"] {
            status.remove(field);
        }
        draft.echo();
        let message = format!("Cloudflare is carrying out the change: operation {operation}");
        let ready = Ready::no(Reason::UPDATING, message);
        let pause = self.context.operations().looked(&object.uid, operation);
        let next = Next::At(self.context.soon(pause), Priority::Retry);
        draft.write(&ready, next).await
    }
}

/// Takes an operation that is known to have ended out of a status that is about to be written.
pub(crate) fn drop_ended(
    context: &crate::context::Context,
    object: &Object,
    status: &mut serde_json::Map<String, Value>,
) {
    let stored = status.get(FIELD).and_then(|it| it.get("id")).and_then(Value::as_str);
    if stored.is_some_and(|stored| context.operations().is_over(&object.uid, stored)) {
        status.remove(FIELD);
    }
}
