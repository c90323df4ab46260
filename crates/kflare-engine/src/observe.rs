//! What Cloudflare has of one resource: from the collection's snapshot, or asked for alone where that is cheaper or the
//! snapshot cannot answer.

use std::{collections::BTreeSet, time::Duration};

use kflare_cloudflare::{Client, Error};
use serde_json::{Map, Value};

use crate::{
    collections::{Collections, Freshness, NotListed, Seen},
    decide::Observed,
    errors::{Class, Failure, classify},
    index::CollectionKey,
    kind::{Desired, Kind, Lifecycle, NaturalKey, Remote},
    mutation::{self, Mutation},
    object::Recorded,
    plan::diff,
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
    /// What the spec asks for.
    pub desired: &'a Desired,
    /// How new a snapshot has to be.
    pub freshness: Freshness,
    /// What tells whether the fields that lists leave out are as our own write left them.
    pub proof: Proof,
    /// Whether few resources share the collection, so that asking for each alone is cheaper than a list.
    pub few: bool,
    /// Ids recorded in the collection.
    pub expected: &'a (dyn Fn() -> BTreeSet<String> + Sync),
}

impl Look<'_> {
    fn satisfied(&self, remote: &Remote) -> bool {
        diff(&self.desired.body, &remote.body, self.kind.descriptor().fields).is_empty()
    }

    /// The id of an object that a create of ours has made here and that is not recorded yet.
    fn made(&self) -> Option<&String> {
        let intent = self.recorded.intent.as_ref();
        let here = intent.filter(|intent| intent.scope == *self.collection.scope);
        here.and_then(|intent| intent.id.as_ref())
    }

    /// What an interrupted create announced in this container, where that is another identity than what is wanted.
    fn announced_elsewhere(&self) -> Option<NaturalKey> {
        let intent = self.recorded.intent.as_ref()?;
        let elsewhere = intent.scope == *self.collection.scope && intent.group != self.desired.key.group;
        elsewhere.then(|| intent.key())
    }

    /// `remote` with what a list does not tell: taken for granted while nothing has changed since our own write, read
    /// otherwise. What no read tells is left out when it is not known to be as the spec asks for. None: the object is gone.
    async fn complete(&self, mut remote: Remote, source: Source) -> Result<Option<Remote>, Error> {
        let rules = self.kind.descriptor().fields;
        let unread = rules.unread(&self.desired.body);
        let is_told = rules.unlisted.is_empty() || source != Source::Candidate;
        if unread.is_empty() && is_told {
            return Ok(Some(remote));
        }
        let applied = &self.recorded.applied;
        let as_written = applied.hash.is_some()
            && (self.proof == Proof::Versions || applied.hash == applied_hash(self.client, &unread));
        let marked = remote.revision.is_some() && remote.revision == applied.revision;
        if as_written && marked && rules.mark_covers(&self.desired.body) {
            remote.body.extend(unread);
            return Ok(Some(remote));
        }
        let listed = match source {
            Source::Candidate => !rules.unlisted.is_empty(),
            Source::List => rules.unlisted.iter().any(|field| unread.contains_key(*field)),
            Source::Single => false,
        };
        if listed {
            let scope = &self.collection.scope;
            match self.kind.get(self.client, scope, &remote.id).await? {
                Some(whole) => remote = whole,
                None => return Ok(None),
            }
        }
        if as_written && remote.revision == applied.revision {
            let known = unread.into_iter();
            let known = known.filter(|(field, _)| rules.write_only.contains(&field.as_str()));
            remote.body.extend(known);
        }
        Ok(Some(remote))
    }
}

/// What tells that the fields which lists leave out were written as the spec asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Their keyed hash in status.
    Hash,
    /// That the spec and the versions of all that it reads are those of our last write: their values were not read.
    Versions,
}

/// Where an object was seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In a list, or by its name.
    List,
    /// In the same way, as what could be recovered or adopted: it is read whole once.
    Candidate,
    /// It was asked for alone.
    Single,
}

/// Keyed hash of the fields that lists do not tell, for status. None while there is no key.
pub(crate) fn applied_hash(client: &Client, unread: &Map<String, Value>) -> Option<String> {
    client.seal(&Value::Object(unread.clone()).to_string())
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
            ..Observed::default()
        });
    }
    let descriptor = look.kind.descriptor();
    // A collection that is one document is read whole in any case.
    let listed = descriptor.listable && (!look.few || descriptor.lists_for_few()) && {
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
                ..Observed::default()
            });
        }
    }
    let key = &look.desired.key;
    let mut found = if listed {
        collections.neighbours(look.collection, look.kind, key)
    } else {
        look.kind
            .find(look.client, &look.collection.scope, key)
            .await
            .map_err(|error| failure(look.kind, &error))?
    };
    // What an interrupted create announced may have another name than what is wanted by now.
    let announced = look.announced_elsewhere();
    if let Some(key) = &announced {
        let also = if listed {
            collections.neighbours(look.collection, look.kind, key)
        } else {
            let also = look.kind.find(look.client, &look.collection.scope, key).await;
            also.map_err(|error| failure(look.kind, &error))?
        };
        found.extend(also.into_iter().filter(|it| it.key.group == key.group));
    }
    // What a create of ours was answered with is there, whatever a list says that is behind.
    if let Some(id) = look.made().filter(|id| found.iter().all(|remote| remote.id != **id)) {
        let made = look.kind.get(look.client, &look.collection.scope, id).await;
        found.extend(made.map_err(|error| failure(look.kind, &error))?);
    }
    let mut candidates = Vec::with_capacity(found.len());
    for remote in found {
        let same = remote.key.group == key.group
            || announced
                .as_ref()
                .is_some_and(|announced| announced.group == remote.key.group);
        let whole = if same {
            let whole = look.complete(remote, Source::Candidate).await;
            whole.map_err(|error| failure(look.kind, &error))?
        } else {
            Some(remote)
        };
        candidates.extend(whole);
    }
    Ok(Observed {
        candidates,
        ..Observed::default()
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
        if let Seen::Present(remote) = collections.seen(look.collection, id) {
            let whole = look.complete(remote, Source::List).await;
            let whole = whole.map_err(|error| failure(look.kind, &error))?;
            if let Some(remote) = whole.filter(|remote| !lagging || look.satisfied(remote)) {
                return Ok(Some(remote));
            }
        }
    }
    let found = look.kind.get(look.client, &look.collection.scope, id).await;
    match found.map_err(|error| failure(look.kind, &error))? {
        Some(remote) => {
            let whole = look.complete(remote, Source::Single).await;
            whole.map_err(|error| failure(look.kind, &error))
        }
        None => Ok(None),
    }
}

/// The failure that an error in answer to a look-up means. One that is refused says nothing about the spec.
pub fn failure(kind: &dyn Kind, error: &Error) -> Failure {
    let class = match kind.classify(error).unwrap_or_else(|| classify(error)) {
        Class::Invalid(_) => Class::Blocked(Reason::TERMINAL_ERROR),
        class => class,
    };
    Failure::new(class, error.to_string())
}
