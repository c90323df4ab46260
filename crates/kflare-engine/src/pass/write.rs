//! Writes to Cloudflare: each in its turn, and what it means for what is known of the collection.

use std::sync::Arc;

use kflare_cloudflare::{Client, Outcome};
use tokio::time::Instant;

use super::{Pass, Work};
use crate::{
    errors::{Class, Failure, WriteError, classify},
    index::CollectionKey,
    kind::{Remote, Write, Written},
    object::Object,
};

impl Pass<'_> {
    /// Sends one write, alone or in a batch, without holding a worker meanwhile. The collection's snapshot learns of it.
    pub(super) async fn write(&self, object: &Object, work: &Work, write: Write) -> Result<Option<Remote>, Failed> {
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

/// A write that failed, and whether it may have been applied all the same.
pub(crate) struct Failed {
    pub failure: Failure,
    pub unknown: bool,
    /// Whether Cloudflare, or something before it, answered.
    pub answered: bool,
}

impl Failed {
    /// A write that was not sent.
    pub(super) fn unsent(failure: Failure) -> Self {
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
            let message = format!("{other} was made in its place meanwhile");
            return Err(Failed::unsent(Failure::new(Class::StoreConflict, message)));
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
pub(super) fn write_failed(
    pass: &Pass<'_>,
    collection: &CollectionKey,
    touched: Option<&str>,
    error: &WriteError,
) -> Failed {
    let collections = &pass.context.collections;
    if let Some(id) = touched {
        collections.wrote(collection, pass.kind, id, None);
    }
    let class_of = |error| pass.kind.classify(error).unwrap_or_else(|| classify(error));
    let class = match error {
        WriteError::Cloudflare(error) => class_of(error),
        // First the object that may be there is looked for, and soon.
        WriteError::Halfway(error) => match class_of(error) {
            class if class.is_for_good() => Class::Transient,
            class => class,
        },
        WriteError::Lost => Class::Transient,
    };
    if class == Class::Auth {
        collections.refuse_writes(collection, &error.to_string());
    }
    let unknown = error.outcome_unknown();
    let answered = match error {
        WriteError::Cloudflare(error) => error.status().is_some(),
        // What made the object was answered, unless it is the very call that failed.
        WriteError::Halfway(error) => error.status().is_some() || error.outcome() == Outcome::NotApplied,
        WriteError::Lost => false,
    };
    if unknown {
        collections.doubt(collection);
    }
    Failed {
        failure: Failure::new(class, error.to_string()),
        unknown,
        answered,
    }
}
