//! One pass over a resource that is being deleted: wait for dependents, carry out the deletion policy by what is recorded,
//! then let go. The finalizer stays until Cloudflare has agreed.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kflare_api::names;
use kflare_cloudflare::Client;
use serde_json::json;

use crate::{
    cluster::ClusterError,
    context::{ClaimsFor, Context, Try},
    credentials::Credentials,
    decide::{Claims, decide_deletion},
    errors::{Class, Failure},
    index::CollectionKey,
    intent::Intent,
    kind::{CredentialSource, Kind, Lifecycle, Remote, Write},
    mutation::{self, Mutation},
    object::{Object, ObjectKey, Recorded},
    observe::failure,
    occurrence::Occurrence,
    pass::{Next, Pass, store_failure, write_through},
    plan::Plan,
    policy::{Deletion, Mode, policy_of},
    queue::Priority,
    reason::Reason,
    report,
    resolve::Defaults,
    status::Ready,
};

/// How many dependents a message names.
const NAMED: usize = 5;

/// What a create without an answer may have made is looked for that often.
pub(crate) const LOOKS_AGAIN: Duration = Duration::from_secs(30);

/// Runs the pass.
pub(crate) async fn run(pass: &Pass<'_>, object: &Arc<Object>) -> Result<Next, Failure> {
    let context = pass.context;
    if !object.has_finalizer() {
        return Ok(Next::Settled);
    }
    if let Some(message) = dependents(context, &object.key)
        && !mutation::is(Mutation::DependentsIgnored)
    {
        // Woken when a dependent goes.
        return Ok(report::ready(
            context,
            object,
            &Ready::no(pass.kind.descriptor().reasons.in_use.clone(), message),
            Next::Settled,
        )
        .await);
    }
    match carry_out_policy(pass, object).await? {
        Outcome::Done => release(context, object).await,
        Outcome::MayArrive(until) => {
            let message = format!(
                "a create had no answer from Cloudflare, and what it may still make is to go too: looked for until {until}; the annotation kflare.dev/deletion-policy: retain lets the resource go at once"
            );
            let next = Next::At(context.soon(LOOKS_AGAIN), Priority::Delete);
            let ready = Ready::no(Reason::AWAITING_CREATE, message);
            Ok(report::ready(context, object, &ready, next).await)
        }
    }
}

/// What came of a deletion policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is carried out on all that there was.
    Done,
    /// What a create announced is not to be seen, and may still come to light until then, by Cloudflare's clock.
    MayArrive(Timestamp),
}

/// Does as the deletion policy says with what the resource has at Cloudflare: the object that it has recorded, and the one that
/// an interrupted create may have left behind. Nothing is done before the latter has come to light, or can no longer.
pub(crate) async fn carry_out_policy(pass: &Pass<'_>, object: &Arc<Object>) -> Result<Outcome, Failure> {
    let context = pass.context;
    let mut recorded = context.recorded_unproven(object);
    if pass.kind.descriptor().lifecycle == Lifecycle::Verified || nothing_to_do(&recorded) {
        return Ok(Outcome::Done);
    }
    let place = place(pass, &recorded);
    let account_default = place
        .as_ref()
        .ok()
        .and_then(|place| place.source.default_deletion.as_deref());
    let Defaults { deletion, drift_check } = context.settings.defaults;
    let policy = policy_of(object, account_default, deletion, drift_check)
        .map_err(|error| Failure::new(Class::Invalid(Reason::INVALID_SPEC), error.to_string()))?;
    if policy.mode == Mode::Observe {
        keep(context, object, "kflare.dev/mode is observe");
        return Ok(Outcome::Done);
    }
    // Keeping an object needs no credential, and so no account.
    if recorded.intent.is_none() || policy.deletion == Deletion::Retain {
        let plan = decide_deletion(&recorded, None, policy.deletion);
        if let Plan::Forget { why } = &plan {
            keep(context, object, why);
            return Ok(Outcome::Done);
        }
    }
    let place = place?;
    let client = context
        .credentials
        .client(&place.account, &place.source)
        .await?
        .in_lane(pass.lane);
    recorded.intent = context.recorded(object, &client).intent;
    let mut plans = Vec::new();
    let mut nothing = "nothing was created or adopted".to_owned();
    match left_behind(pass, &place, &client, object, &recorded).await? {
        LeftBehind::Nothing => {}
        LeftBehind::MayArrive(until) => return Ok(Outcome::MayArrive(until)),
        LeftBehind::NotKnown(ids) => {
            nothing = format!(
                "a create had no answer, and nothing tells any more whether it has made {ids} or somebody else"
            );
        }
        LeftBehind::Unrecorded(collection, remote) => {
            let unrecorded = Recorded::default();
            plans.push((collection, decide_deletion(&unrecorded, Some(&remote), policy.deletion)));
        }
    }
    if recorded.id.is_some() {
        plans.insert(0, (place.collection, decide_deletion(&recorded, None, policy.deletion)));
    }
    if plans.is_empty() {
        keep(context, object, &nothing);
    }
    for (collection, plan) in plans {
        let holder = match &plan {
            Plan::Delete { id } => context.index().holder(&collection, id, &object.key),
            _ => None,
        };
        match (plan, holder) {
            (Plan::Delete { .. }, Some(holder)) => {
                keep(context, object, &format!("the object is managed by {holder}"));
            }
            (Plan::Delete { id }, None) => delete(pass, object, &collection, &client, id).await?,
            (Plan::Forget { why }, _) => keep(context, object, &why),
            _ => {}
        }
    }
    if let Some(intent) = &recorded.intent {
        // Should the finalizer stay for the moment: there is nothing to wait for any more.
        context.note_try(object, intent, Some(Try::Unsent));
    }
    Ok(Outcome::Done)
}

fn nothing_to_do(recorded: &Recorded) -> bool {
    recorded.id.is_none() && recorded.intent.is_none()
}

/// The dependents that still stand, as a message.
fn dependents(context: &Context, key: &ObjectKey) -> Option<String> {
    let index = context.index();
    let mut names: Vec<String> = index.referrers(key).take(NAMED + 1).map(ToString::to_string).collect();
    let mut total = index.referrers(key).count();
    drop(index);
    // What is still to be dealt with needs its zone, and its account.
    for gone in context.vanished().referrers(key) {
        names.push(format!("what was being made for {gone}, which is gone"));
        total += 1;
    }
    if names.is_empty() {
        return None;
    }
    let more = if total > NAMED {
        format!(" and {} more", total - NAMED)
    } else {
        String::new()
    };
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    Some(format!("waits for {shown}{more}"))
}

/// Where the remote object is and with what it is reached: from what is recorded, never through the parents.
struct Place {
    collection: CollectionKey,
    account: ObjectKey,
    source: CredentialSource,
}

fn place(pass: &Pass<'_>, recorded: &Recorded) -> Result<Place, Failure> {
    let context = pass.context;
    let intent = recorded.intent.as_ref();
    let name = recorded.account.as_deref().or(intent.map(|it| it.account.as_str()));
    let scope = recorded.scope.as_deref().or(intent.map(|it| it.scope.as_str()));
    let (Some(name), Some(scope)) = (name, scope) else {
        let message = "status does not say in which account the object is; set the annotation kflare.dev/deletion-policy: retain to let the resource go";
        return Err(Failure::new(Class::Blocked(Reason::INVALID_SPEC), message));
    };
    let provider = context
        .kinds
        .iter()
        .map(Kind::descriptor)
        .find(|it| it.provides_credential);
    let account = provider.map(|provider| ObjectKey::new(&provider.kind, None, name));
    let found = account.and_then(|account| Some((context.index().credential(&account)?.ok()?, account)));
    let Some((source, account)) = found else {
        let noun = provider.map_or("Account", |provider| &provider.noun);
        let message = format!(
            "account {name} is needed to delete the object; restore it, or set the annotation kflare.dev/deletion-policy: retain to keep the object"
        );
        return Err(Failure::new(Class::Blocked(Reason::parent_not_found(noun)), message));
    };
    let collection = CollectionKey {
        account: name.into(),
        collection: pass.kind.descriptor().collection.as_ref().into(),
        scope: scope.into(),
    };
    Ok(Place {
        collection,
        account,
        source,
    })
}

/// What an interrupted create left behind.
enum LeftBehind {
    /// Nothing but what is recorded, if anything is.
    Nothing,
    /// Not to be seen: the create may still be carried out, or the list be behind, until then.
    MayArrive(Timestamp),
    /// Not that for sure: these have its name.
    NotKnown(String),
    /// An object whose id was never recorded, and where it is.
    Unrecorded(CollectionKey, Box<Remote>),
}

/// Looks for it. The oldest counts: several fit only if others have made equal ones later.
async fn left_behind(
    pass: &Pass<'_>,
    place: &Place,
    client: &Client,
    object: &Object,
    recorded: &Recorded,
) -> Result<LeftBehind, Failure> {
    let Some(intent) = &recorded.intent else {
        return Ok(LeftBehind::Nothing);
    };
    if recorded.id.is_some() && recorded.id == intent.id {
        return Ok(LeftBehind::Nothing);
    }
    let mut found = match announced(pass.kind, client, intent).await {
        Ok(found) => found,
        // The container is gone, and the object with it.
        Err(failure) if failure.class == Class::Missing => return Ok(LeftBehind::Nothing),
        Err(failure) => return Err(failure),
    };
    let now = client.server_time();
    let made = |remote: &Remote| intent.made(remote, pass.kind.descriptor().nature, now);
    let is_recorded = |remote: &Remote| recorded.id.as_ref() == Some(&remote.id);
    if found.iter().any(|remote| is_recorded(remote) && made(remote)) {
        return Ok(LeftBehind::Nothing);
    }
    let collection = CollectionKey {
        scope: intent.scope.as_str().into(),
        ..place.collection.clone()
    };
    let claims = ClaimsFor {
        context: pass.context,
        descriptor: pass.kind.descriptor(),
        client: Some(client),
        collection: &collection,
        asking: object,
    };
    let is_claimed = |id: &str| pass.context.index().claimants(&collection, id).next().is_some();
    found.retain(|remote| !is_claimed(&remote.id) && claims.announcer(remote).is_none());
    let (found, others): (Vec<Remote>, Vec<Remote>) = found.into_iter().partition(made);
    // What has no creation time, and is found too late, may be anybody's.
    let is_doubtful = |it: &Remote| it.created.is_none() && it.key == intent.key() && !is_recorded(it);
    let dateless: Vec<String> = others.into_iter().filter(is_doubtful).map(|it| it.id).collect();
    let ours = found
        .into_iter()
        .min_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    let until = intent.latest_arrival();
    Ok(match ours {
        Some(remote) => LeftBehind::Unrecorded(collection, Box::new(remote)),
        None if now < until => LeftBehind::MayArrive(until),
        None if !dateless.is_empty() => LeftBehind::NotKnown(dateless.join(", ")),
        None => LeftBehind::Nothing,
    })
}

/// The objects of the identity that an intent announced, each with all that Cloudflare tells of it.
async fn announced(kind: &dyn Kind, client: &Client, intent: &Intent) -> Result<Vec<Remote>, Failure> {
    let key = intent.key();
    let failed = |error| failure(kind, &error);
    if let Some(id) = &intent.id {
        let made = kind.get(client, &intent.scope, id).await.map_err(failed)?;
        return Ok(made.into_iter().collect());
    }
    let mut found = kind.find(client, &intent.scope, &key).await.map_err(failed)?;
    found.retain(|remote| remote.key.group == key.group);
    if kind.descriptor().fields.unlisted.is_empty() {
        return Ok(found);
    }
    let mut whole = Vec::with_capacity(found.len());
    for remote in found {
        whole.extend(kind.get(client, &intent.scope, &remote.id).await.map_err(failed)?);
    }
    Ok(whole)
}

async fn delete(
    pass: &Pass<'_>,
    object: &Object,
    collection: &CollectionKey,
    client: &Client,
    id: String,
) -> Result<(), Failure> {
    if let Some(warning) = pass.kind.deletion_warning(client, &collection.scope, &id).await {
        report::event(pass.context, object, Occurrence::DELETING_MORE, warning);
    }
    let write = Write::Delete { id: id.clone() };
    let deleted = write_through(pass, object, collection, client, write).await;
    match deleted.map_err(|failed| failed.failure) {
        Ok(_) => {}
        Err(failure) if failure.class == Class::Missing => {}
        Err(_) if mutation::is(Mutation::FinalizerDroppedOnError) => {}
        // A delete has nothing of the spec in it that could be invalid.
        Err(Failure {
            class: Class::Invalid(_),
            message,
            ..
        }) => {
            return Err(Failure::new(Class::Blocked(Reason::TERMINAL_ERROR), message));
        }
        Err(failure) => return Err(failure),
    }
    report::event(pass.context, object, Occurrence::DELETED, format!("deleted {id}"));
    Ok(())
}

fn keep(context: &Context, object: &Object, why: &str) {
    let note = format!("nothing is deleted at Cloudflare: {why}");
    report::event(context, object, Occurrence::KEPT, note);
}

/// Takes our finalizer off.
async fn release(context: &Context, object: &Arc<Object>) -> Result<Next, Failure> {
    let finalizers: Vec<&String> = object.finalizers.iter().filter(|it| *it != names::FINALIZER).collect();
    match context
        .cluster
        .patch_metadata(object, json!({ "finalizers": finalizers }))
        .await
    {
        Ok(written) => {
            context.wrote(written);
            Ok(Next::Settled)
        }
        Err(ClusterError::NotFound) => Ok(Next::Settled),
        Err(error) => Err(store_failure(error)),
    }
}
