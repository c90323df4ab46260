//! The Secret that a resource yields: made, kept right, moved. See [`crate::yields`].

use std::sync::Arc;

use kflare_api::{common::CredentialsSecret, names};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{Pass, Work, store_failure};
use crate::{
    cluster::ClusterError,
    contest::Ruling,
    context::Context,
    errors::{Class, Failure, classify},
    kind::Remote,
    object::{Object, SecretKey},
    occurrence::Occurrence,
    plan::{Change, Plan},
    reason::Reason,
    report,
    yields::{Record, SecretMark, Yield, fingerprint, is_in_order, secret_key},
};

/// What came of looking after the Secret.
pub(super) enum Kept {
    /// It is as it should be; the fields of status that say so.
    InOrder(Map<String, Value>),
    /// Somebody else changes it back again and again.
    Contested {
        /// What is fought over.
        fields: Vec<String>,
        /// When it is put right again.
        until: Instant,
    },
}

impl Pass<'_> {
    /// Before something is created or adopted: the name of its Secret has to be free, or the Secret the resource's own.
    pub(super) async fn admit_yield(&self, object: &Object, plan: &Plan) -> Result<(), Failure> {
        if !matches!(plan, Plan::Create { .. } | Plan::Adopt { .. }) {
            return Ok(());
        }
        let Some((_, secret)) = self.wanted(object)? else {
            return Ok(());
        };
        if self
            .context
            .index()
            .yielded()
            .get(&secret)
            .is_some_and(|it| it.is_of(object))
        {
            return Ok(());
        }
        match self.context.cluster.look_at_secret(&secret).await {
            Ok(Some(found)) if !found.is_of(object) => Err(not_ours(object, &secret)),
            Ok(_) => Ok(()),
            Err(error) => Err(unreachable(&secret, error)),
        }
    }

    /// Whether the Secret with what `remote` yields has yet to be looked at, as far as is known without reading it.
    pub(super) fn awaits_yield(&self, object: &Object, remote: &Remote) -> bool {
        !is_in_order(self.context.index().yielded(), self.kind, object, Some(&remote.id))
    }

    /// Makes the Secret what it should be, and tells what status is to say of it.
    pub(super) async fn keep_yield(&self, object: &Arc<Object>, work: &Work, remote: &Remote) -> Result<Kept, Failure> {
        let Some((wanted, secret)) = self.wanted(object)? else {
            return Ok(Kept::InOrder(Map::new()));
        };
        let record = Record::of(object);
        let asked =
            object.annotation(names::RECONCILE_AT) != object.status.get::<String>(&["lastReconcileAt"]).as_deref();
        let same_object = record.as_ref().is_some_and(|it| it.seen.object_id == remote.id);
        if !asked && !self.awaits_yield(object, remote) {
            return Ok(Kept::InOrder(record.map(|it| it.fields()).unwrap_or_default()));
        }
        let _in_hand = InHand::take(self.context, &secret);
        let found = self.context.cluster.read_whole_secret(&secret, &wanted.key).await;
        let found = found.map_err(|error| unreachable(&secret, error))?;
        let print = |value: &SecretString| fingerprint(&work.client, object, &remote.id, &wanted.key, value);
        // Once it has been in order under this name, only others can have changed it.
        let standing = record.as_ref().filter(|it| it.name == wanted.secret && same_object);
        let (mark, print) = match found {
            Some(found) if !found.mark.is_of(object) => return Err(not_ours(object, &secret)),
            Some(found) => {
                let known = found.value.as_ref().map(print).filter(|print| {
                    !asked && !print.is_empty() && record.as_ref().is_some_and(|it| it.seen.fingerprint == *print)
                });
                if let Some(print) = known {
                    (found.mark, print)
                } else {
                    let value = self.value(work, remote).await?;
                    let there = found.value.as_ref().map(ExposeSecret::expose_secret);
                    if there == Some(value.expose_secret()) {
                        (found.mark, print(&value))
                    } else {
                        // A value that Cloudflare has changed is nobody's edit.
                        let edited = standing.filter(|it| it.seen.fingerprint == print(&value));
                        if let Some(kept) = self.contested(object, &secret, edited.is_some()) {
                            return Ok(kept);
                        }
                        let cluster = &self.context.cluster;
                        let written = cluster.set_secret(&secret, &found.mark, &wanted.key, &value).await;
                        let mark = written.map_err(|error| unreachable(&secret, error))?;
                        self.tell_put_right(object, &secret, edited.is_some());
                        (mark, print(&value))
                    }
                }
            }
            None => {
                if let Some(kept) = self.contested(object, &secret, standing.is_some()) {
                    return Ok(kept);
                }
                let value = self.value(work, remote).await?;
                let cluster = &self.context.cluster;
                let made = cluster.create_secret(&secret, object, &wanted.key, &value).await;
                let mark = made.map_err(|error| unreachable(&secret, error))?;
                self.tell_put_right(object, &secret, standing.is_some());
                (mark, print(&value))
            }
        };
        let overtaken = self.context.index().yielded_mut().wrote(&secret, mark.clone());
        if overtaken {
            return Err(Failure::new(
                Class::StoreConflict,
                format!("Secret {secret} has changed meanwhile"),
            ));
        }
        if let Some(old) = record.filter(|it| it.name != wanted.secret) {
            self.remove_old(object, &old.name).await?;
        }
        let record = Record {
            name: wanted.secret,
            seen: CredentialsSecret {
                uid: mark.uid,
                resource_version: mark.resource_version,
                object_id: remote.id.clone(),
                fingerprint: print,
            },
        };
        Ok(Kept::InOrder(record.fields()))
    }

    fn wanted(&self, object: &Object) -> Result<Option<(Yield, SecretKey)>, Failure> {
        if !self.kind.yields_secrets() {
            return Ok(None);
        }
        let wanted = self
            .kind
            .yields(&object.spec.value())
            .map_err(|error| Failure::new(Class::Invalid(Reason::INVALID_SPEC), error.to_string()))?;
        Ok(wanted.and_then(|wanted| {
            let secret = secret_key(object, &wanted.secret)?;
            Some((wanted, secret))
        }))
    }

    async fn value(&self, work: &Work, remote: &Remote) -> Result<SecretString, Failure> {
        let scope = &work.prepared.scope;
        self.kind
            .yielded(&work.client, scope, &remote.id)
            .await
            .map_err(|error| {
                let class = self.kind.classify(&error).unwrap_or_else(|| classify(&error));
                Failure::new(class, error.to_string())
            })
    }

    /// Whether an edit by somebody else is to be left for now.
    fn contested(&self, object: &Object, secret: &SecretKey, edited: bool) -> Option<Kept> {
        if !edited {
            return None;
        }
        let now = Instant::now();
        match self.context.contests().rule(&object.uid, &[change(secret)], now) {
            Ruling::Hold { fields, until } => Some(Kept::Contested { fields, until }),
            Ruling::Correct => None,
        }
    }

    fn tell_put_right(&self, object: &Object, secret: &SecretKey, edited: bool) {
        if edited {
            let now = Instant::now();
            self.context.contests().corrected(&object.uid, &[change(secret)], now);
            self.context.metrics.drift_corrected(&object.key.kind);
            let note = format!("put right Secret {}, which was changed outside kflare", secret.name);
            report::event(self.context, object, Occurrence::DRIFT_CORRECTED, note);
        } else {
            let note = format!("wrote the credentials into Secret {}", secret.name);
            report::event(self.context, object, Occurrence::SECRET_WRITTEN, note);
        }
    }

    /// Deletes the Secret that the spec no longer names, if it is still the resource's own.
    async fn remove_old(&self, object: &Object, name: &str) -> Result<(), Failure> {
        let Some(secret) = secret_key(object, name) else {
            return Ok(());
        };
        let _in_hand = InHand::take(self.context, &secret);
        let cluster = &self.context.cluster;
        let found = cluster.look_at_secret(&secret).await;
        let found: Option<SecretMark> = found.map_err(|error| unreachable(&secret, error))?;
        let Some(found) = found.filter(|it| it.is_of(object)) else {
            return Ok(());
        };
        let deleted = cluster.delete_secret(&secret, &found).await;
        deleted.map_err(|error| unreachable(&secret, error))?;
        self.context.index().yielded_mut().deleted(&secret);
        let note = format!("deleted Secret {name}, which the spec no longer names");
        report::event(self.context, object, Occurrence::SECRET_DELETED, note);
        Ok(())
    }
}

/// The Secret as a field that can be fought over. Its value is never shown.
fn change(secret: &SecretKey) -> Change {
    Change {
        path: format!("Secret {}", secret.name),
        from: Value::Null,
        to: Value::Null,
        secret: true,
    }
}

fn not_ours(object: &Object, secret: &SecretKey) -> Failure {
    let message = format!(
        "Secret {secret} exists and was not made for this {}; it is left alone. Delete it, or name another one",
        object.key.kind
    );
    Failure::new(Class::Blocked(Reason::SECRET_CONFLICT), message)
}

fn unreachable(secret: &SecretKey, error: ClusterError) -> Failure {
    let failure = store_failure(error);
    let message = format!("Secret {secret}: {}", failure.message);
    Failure { message, ..failure }
}

/// A Secret that this pass is writing; let go of however the pass ends.
struct InHand<'a> {
    context: &'a Context,
    secret: SecretKey,
}

impl<'a> InHand<'a> {
    fn take(context: &'a Context, secret: &SecretKey) -> Self {
        context.index().yielded_mut().take_in_hand(secret);
        Self {
            context,
            secret: secret.clone(),
        }
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.context.index().yielded_mut().let_go(&self.secret);
    }
}
