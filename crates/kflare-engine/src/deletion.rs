//! One pass over a resource that is being deleted: wait for dependents, carry out the deletion policy by what is recorded,
//! then let go. The finalizer stays until Cloudflare has agreed.

use std::sync::Arc;

use kflare_api::names;
use kflare_cloudflare::Client;
use serde_json::json;

use crate::{
    cluster::ClusterError,
    context::Context,
    credentials::Credentials,
    decide::decide_deletion,
    errors::{Class, Failure},
    index::CollectionKey,
    kind::{CredentialSource, Kind, Lifecycle, NaturalKey, Remote, Write},
    mutation::{self, Mutation},
    object::{Object, ObjectKey, Recorded},
    observe::failure,
    occurrence::Occurrence,
    pass::{Next, Pass, store_failure, write_through},
    plan::Plan,
    policy::{Deletion, Mode, policy_of},
    reason::Reason,
    report,
    resolve::Defaults,
    status::Ready,
};

/// How many dependents a message names.
const NAMED: usize = 5;

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
    let mut recorded = context.recorded_unproven(object);
    if pass.kind.descriptor().lifecycle == Lifecycle::Verified || nothing_to_do(&recorded) {
        return release(context, object).await;
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
        let plan = Plan::Forget {
            why: "kflare.dev/mode is observe".to_owned(),
        };
        return carry_out(pass, object, None, &plan).await;
    }
    // Keeping an object needs no credential, and so no account.
    if recorded.id.is_some() || policy.deletion == Deletion::Retain {
        let plan = decide_deletion(&recorded, None, policy.deletion);
        if matches!(plan, Plan::Forget { .. }) {
            return carry_out(pass, object, None, &plan).await;
        }
    }
    let place = place?;
    let client = context
        .credentials
        .client(&place.account, &place.source)
        .await?
        .in_lane(pass.lane);
    recorded.intent = context.recorded(object, &client).intent;
    let left_behind = match &recorded.id {
        None => left_behind(pass, &place, &client, &recorded).await?,
        Some(_) => None,
    };
    let plan = decide_deletion(&recorded, left_behind.as_ref(), policy.deletion);
    let holder = match &plan {
        Plan::Delete { id } => context.index().holder(&place.collection, id, &object.key),
        _ => None,
    };
    let plan = match holder {
        Some(holder) => Plan::Forget {
            why: format!("the object is managed by {holder}"),
        },
        None => plan,
    };
    carry_out(pass, object, Some((&place, &client)), &plan).await
}

fn nothing_to_do(recorded: &Recorded) -> bool {
    recorded.id.is_none() && recorded.intent.is_none()
}

/// The dependents that still stand, as a message.
fn dependents(context: &Context, key: &ObjectKey) -> Option<String> {
    let index = context.index();
    let names: Vec<String> = index.referrers(key).take(NAMED + 1).map(ToString::to_string).collect();
    if names.is_empty() {
        return None;
    }
    let total = index.referrers(key).count();
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
async fn left_behind(
    pass: &Pass<'_>,
    place: &Place,
    client: &Client,
    recorded: &Recorded,
) -> Result<Option<Remote>, Failure> {
    let Some(intent) = &recorded.intent else {
        return Ok(None);
    };
    let key = NaturalKey {
        group: intent.group.clone(),
        member: intent.member.clone(),
    };
    let found = pass.kind.find(client, &intent.scope, &key).await;
    let mut found = match found.map_err(|error| failure(pass.kind, &error)) {
        Ok(found) => found,
        // The container is gone, and the object with it.
        Err(failure) if failure.class == Class::Missing => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let index = pass.context.index();
    found.retain(|remote| {
        intent.made(remote, pass.kind.descriptor().nature, client.server_time())
            && index.claimants(&place.collection, &remote.id).next().is_none()
    });
    found.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    Ok(found.into_iter().next())
}

async fn carry_out(
    pass: &Pass<'_>,
    object: &Arc<Object>,
    at: Option<(&Place, &Client)>,
    plan: &Plan,
) -> Result<Next, Failure> {
    let context = pass.context;
    match (plan, at) {
        (Plan::Delete { id }, Some((place, client))) => {
            if let Some(warning) = pass.kind.deletion_warning(client, &place.collection.scope, id).await {
                report::event(context, object, Occurrence::DELETING_MORE, warning);
            }
            let deleted = write_through(
                pass,
                object,
                &place.collection,
                client,
                Write::Delete { id: id.clone() },
            )
            .await;
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
            report::event(context, object, Occurrence::DELETED, format!("deleted {id}"));
        }
        (Plan::Forget { why }, _) => {
            report::event(
                context,
                object,
                Occurrence::KEPT,
                format!("nothing is deleted at Cloudflare: {why}"),
            );
        }
        _ => {}
    }
    release(context, object).await
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
