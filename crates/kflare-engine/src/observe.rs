//! What Cloudflare has of one resource: from the collection's snapshot, or asked for alone where that is cheaper or the
//! snapshot cannot answer.

use std::collections::BTreeSet;

use kflare_cloudflare::{Client, Error};
use std::time::Duration;

use crate::{
    collections::{Collections, Freshness, NotListed, Seen},
    decide::Observed,
    errors::{Class, Failure, classify},
    index::CollectionKey,
    kind::{Kind, Lifecycle, NaturalKey, Remote},
    mutation::{self, Mutation},
    object::Recorded,
    reason::Reason,
};

/// A snapshot of that age is new enough for a pass.
pub const FRESH: Duration = Duration::from_secs(30);

/// The same while calls are scarce: with many collections to list, all calls would go into listing them again and again. What
/// a create or an update meets that an old snapshot did not show, it is told.
pub const FRESH_ENOUGH: Duration = Duration::from_mins(5);

/// Up to so many resources of a collection are asked for one by one rather than by listing it.
pub const FEW: usize = 2;

/// What to look at.
pub struct Look<'a> {
    /// The kind.
    pub kind: &'a dyn Kind,
    /// The client, in the lane of the pass.
    pub client: &'a Client,
    /// The collection.
    pub collection: &'a CollectionKey,
    /// What status remembers. An id recorded in another container counts as gone.
    pub recorded: &'a Recorded,
    /// The natural key, for resources without a recorded object.
    pub key: &'a NaturalKey,
    /// How new a snapshot has to be.
    pub freshness: Freshness,
    /// Whether few resources share the collection, so that asking for each alone is cheaper than a list.
    pub few: bool,
    /// Ids recorded in the collection.
    pub expected: &'a (dyn Fn() -> BTreeSet<String> + Sync),
    /// Whether an object is as the spec asks for, so that nothing would be written.
    pub satisfied: &'a (dyn Fn(&Remote) -> bool + Sync),
}

/// Looks.
pub async fn observe(collections: &Collections, look: &Look<'_>) -> Result<Observed, Failure> {
    if look.kind.descriptor().lifecycle == Lifecycle::Verified {
        let scope = &look.collection.scope;
        let found = look
            .kind
            .get(look.client, scope, scope)
            .await
            .map_err(|error| failure(look.kind, &error))?;
        return Ok(Observed {
            recorded: found,
            candidates: Vec::new(),
        });
    }
    let listed = look.kind.descriptor().listable && !look.few && {
        let refreshed = collections
            .refresh(look.collection, look.kind, look.client, look.freshness, look.expected)
            .await;
        match refreshed {
            Ok(()) => true,
            Err(NotListed::Refused) => false,
            Err(NotListed::Failed(failure)) => return Err(failure),
        }
    };
    let here = look
        .recorded
        .scope
        .as_deref()
        .is_none_or(|scope| scope == &*look.collection.scope);
    if let Some(id) = look.recorded.id.as_ref().filter(|_| here) {
        let recorded = recorded(collections, look, id, listed).await?;
        if recorded.is_some() {
            return Ok(Observed {
                recorded,
                candidates: Vec::new(),
            });
        }
    }
    let candidates = if listed {
        collections.neighbours(look.collection, look.kind, look.key)
    } else {
        look.kind
            .find(look.client, &look.collection.scope, look.key)
            .await
            .map_err(|error| failure(look.kind, &error))?
    };
    Ok(Observed {
        recorded: None,
        candidates,
    })
}

async fn recorded(
    collections: &Collections,
    look: &Look<'_>,
    id: &str,
    listed: bool,
) -> Result<Option<Remote>, Failure> {
    if listed {
        if mutation::is(Mutation::AbsenceBelieved) && collections.seen(look.collection, id) == Seen::Unsure {
            return Ok(None);
        }
        let lagging = collections.may_lag(look.collection, id);
        if let Seen::Present(remote) = collections.seen(look.collection, id)
            && (!lagging || (look.satisfied)(&remote))
        {
            return Ok(Some(remote));
        }
    }
    look.kind
        .get(look.client, &look.collection.scope, id)
        .await
        .map_err(|error| failure(look.kind, &error))
}

/// The failure that an error in answer to a look-up means. One that is refused says nothing about the spec.
pub fn failure(kind: &dyn Kind, error: &Error) -> Failure {
    let class = match kind.classify(error).unwrap_or_else(|| classify(error)) {
        Class::Invalid(_) => Class::Blocked(Reason::TERMINAL_ERROR),
        class => class,
    };
    Failure::new(class, error.to_string())
}
