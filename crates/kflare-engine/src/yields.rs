//! Secrets that resources yield: a kind may say that a resource of it gives a Secret with a value that Cloudflare made, such
//! as the token of a tunnel. The engine makes that Secret, keeps it right, moves it, and touches no other. Here is what is known
//! of such Secrets without reading them; `pass/yields.rs` does the work.
//!
//! A Secret is a resource's own when its controller reference is the resource's UID. In status stands which Secret was last
//! seen in order, by UID and `resourceVersion`, and a keyed hash of the value. As long as the watch, which shows metadata only,
//! shows the same `resourceVersion`, there is nothing to read and nothing to ask Cloudflare for.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use kflare_api::{common::CredentialsSecret, names};
use kflare_cloudflare::Client;
use kube::api::PartialObjectMeta;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use crate::{
    kind::Kind,
    mutation::{self, Mutation},
    object::{Object, ObjectKey, SecretKey},
};

/// Field of status with the name of the Secret.
const NAME: &str = "credentialsSecretName";

/// Field of status with what is remembered of it.
const SEEN: &str = "credentialsSecret";

/// The Secret that a resource yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Yield {
    /// Name of the Secret, in the namespace of the resource.
    pub secret: String,
    /// Key of the value in it.
    pub key: Cow<'static, str>,
}

/// A Secret as its metadata shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMark {
    /// UID of the Secret.
    pub uid: String,
    /// Its `resourceVersion`.
    pub resource_version: String,
    /// UID of its controller, if that is a resource of ours.
    pub owner: Option<String>,
}

impl SecretMark {
    /// Whether `object` is its controller.
    pub fn is_of(&self, object: &Object) -> bool {
        !object.uid.is_empty() && self.owner.as_deref() == Some(&object.uid)
    }
}

/// The UID of the controller of an object, if that is a resource of ours.
pub(crate) fn owner_of(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Option<String> {
    let group = format!("{}/", names::GROUP);
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true) && owner.api_version.starts_with(&group))
        .map(|owner| owner.uid.clone())
}

/// What a watch shows of a Secret.
pub(crate) fn mark<K>(meta: &PartialObjectMeta<K>) -> SecretMark {
    SecretMark {
        uid: meta.metadata.uid.clone().unwrap_or_default(),
        resource_version: meta.metadata.resource_version.clone().unwrap_or_default(),
        owner: owner_of(&meta.metadata),
    }
}

/// The Secrets whose controller is a resource of ours, and who wants a Secret of which name.
#[derive(Default)]
pub struct YieldedSecrets {
    owned: BTreeMap<SecretKey, SecretMark>,
    wanted: BTreeMap<SecretKey, BTreeSet<ObjectKey>>,
    /// Being written by us at this moment: what the watch shows of them is our own doing.
    in_hand: BTreeSet<SecretKey>,
}

impl YieldedSecrets {
    /// How much is kept.
    pub fn size(&self) -> usize {
        self.owned.len() + self.wanted.len()
    }

    /// Notes who wants, or has, which Secrets.
    pub(crate) fn link(&mut self, kind: &dyn Kind, object: &Object) {
        for secret in secrets_of(kind, object) {
            self.wanted.entry(secret).or_default().insert(object.key.clone());
        }
    }

    /// Forgets what [`Self::link`] noted.
    pub(crate) fn unlink(&mut self, kind: &dyn Kind, object: &Object) {
        for secret in secrets_of(kind, object) {
            if let Some(holders) = self.wanted.get_mut(&secret) {
                holders.remove(&object.key);
                if holders.is_empty() {
                    self.wanted.remove(&secret);
                }
            }
        }
    }

    /// What the watch shows of `secret`, none when it is gone. Says who has to look at it.
    pub fn noted(&mut self, secret: &SecretKey, mark: Option<SecretMark>) -> Vec<ObjectKey> {
        let gone = mark.is_none();
        let concerns = match mark.filter(|it| it.owner.is_some()) {
            Some(mark) => self.owned.insert(secret.clone(), mark.clone()) != Some(mark),
            // Somebody else's: that it changes concerns nobody, that it goes those who wait for its name.
            None => self.owned.remove(secret).is_some() || gone,
        };
        if !concerns || self.in_hand.contains(secret) {
            return Vec::new();
        }
        self.wanted.get(secret).into_iter().flatten().cloned().collect()
    }

    /// The Secrets of ours that a whole list did not show.
    pub fn missing(&self, seen: &BTreeSet<SecretKey>) -> Vec<SecretKey> {
        self.owned
            .keys()
            .filter(|secret| !seen.contains(*secret))
            .cloned()
            .collect()
    }

    /// What is known of `secret`, if its controller is a resource of ours.
    pub fn get(&self, secret: &SecretKey) -> Option<&SecretMark> {
        self.owned.get(secret)
    }

    /// Takes `secret` in hand: until [`Self::let_go`] the watch wakes nobody for it.
    pub fn take_in_hand(&mut self, secret: &SecretKey) {
        self.in_hand.insert(secret.clone());
    }

    /// The counterpart of [`Self::take_in_hand`].
    pub fn let_go(&mut self, secret: &SecretKey) {
        self.in_hand.remove(secret);
    }

    /// Takes the answer to our own write, or to a read. Tells whether the watch has already shown something newer.
    pub fn wrote(&mut self, secret: &SecretKey, mark: SecretMark) -> bool {
        let newer = self.owned.get(secret).is_some_and(|known| {
            known.uid == mark.uid && crate::index::newer(&known.resource_version, &mark.resource_version)
        });
        if !newer {
            self.owned.insert(secret.clone(), mark);
        }
        newer
    }

    /// Our own deletion.
    pub fn deleted(&mut self, secret: &SecretKey) {
        self.owned.remove(secret);
    }
}

/// The Secrets that `object` wants or has.
fn secrets_of(kind: &dyn Kind, object: &Object) -> BTreeSet<SecretKey> {
    if !kind.yields_secrets() {
        return BTreeSet::new();
    }
    let wanted = kind.yields(&object.spec.value()).ok().flatten().map(|it| it.secret);
    let recorded = Record::of(object).map(|record| record.name);
    let names = wanted.into_iter().chain(recorded);
    names.filter_map(|name| secret_key(object, &name)).collect()
}

/// The Secret of that name beside `object`. None for cluster-scoped resources, which have nothing beside them.
pub(crate) fn secret_key(object: &Object, name: &str) -> Option<SecretKey> {
    Some(SecretKey {
        namespace: object.key.namespace.clone()?,
        name: name.into(),
    })
}

/// What status remembers of the Secret that was last in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub name: String,
    pub seen: CredentialsSecret,
}

impl Record {
    pub fn of(object: &Object) -> Option<Self> {
        Some(Self {
            name: object.status.get(&[NAME])?,
            seen: object.status.get(&[SEEN])?,
        })
    }

    /// The fields of status.
    pub fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert(NAME.to_owned(), json!(self.name));
        fields.insert(SEEN.to_owned(), json!(self.seen));
        fields
    }
}

/// A keyed hash of what is in the Secret of `object`: whose value it is (`remote_id`), under which key, and the value.
pub(crate) fn fingerprint(
    client: &Client,
    object: &Object,
    remote_id: &str,
    key: &str,
    value: &SecretString,
) -> String {
    let text = json!(["yield", object.uid, remote_id, key, value.expose_secret()]).to_string();
    client.seal(&text).unwrap_or_default()
}

/// Whether the Secret of `object`, as far as its metadata tells, is as it was left for the object `remote_id`: nothing has to be
/// read.
pub(crate) fn is_in_order(secrets: &YieldedSecrets, kind: &dyn Kind, object: &Object, remote_id: Option<&str>) -> bool {
    if !kind.yields_secrets() {
        return true;
    }
    let is_ignored = mutation::is(Mutation::YieldedEditsIgnored);
    let Ok(Some(wanted)) = kind.yields(&object.spec.value()) else {
        return true;
    };
    let Some(record) = Record::of(object).filter(|record| record.name == wanted.secret) else {
        return false;
    };
    let seen = secret_key(object, &wanted.secret).and_then(|key| secrets.get(&key).cloned());
    seen.is_some_and(|seen| {
        seen.is_of(object)
            && seen.uid == record.seen.uid
            && (seen.resource_version == record.seen.resource_version || is_ignored)
            && remote_id == Some(&record.seen.object_id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str) -> SecretKey {
        SecretKey {
            namespace: "team".into(),
            name: name.into(),
        }
    }

    fn mark(version: &str, owner: Option<&str>) -> SecretMark {
        SecretMark {
            uid: "s1".to_owned(),
            resource_version: version.to_owned(),
            owner: owner.map(str::to_owned),
        }
    }

    fn holder() -> ObjectKey {
        ObjectKey::new("Tunnel", Some("team"), "edge")
    }

    /// A view in which `edge` wants the Secret `token`.
    fn secrets() -> YieldedSecrets {
        YieldedSecrets {
            wanted: BTreeMap::from([(secret("token"), BTreeSet::from([holder()]))]),
            ..YieldedSecrets::default()
        }
    }

    #[test]
    fn what_concerns_a_resource_is_its_own_secret_and_that_a_name_becomes_free() {
        let mut secrets = secrets();
        let ours = || Some(mark("1", Some("uid")));
        assert_eq!(secrets.noted(&secret("token"), ours()), [holder()]);
        assert_eq!(secrets.noted(&secret("token"), ours()), [], "nothing new");
        assert_eq!(
            secrets.noted(&secret("token"), Some(mark("2", Some("uid")))),
            [holder()]
        );
        assert_eq!(
            secrets.noted(&secret("token"), Some(mark("3", None))),
            [holder()],
            "taken away"
        );
        assert_eq!(
            secrets.noted(&secret("token"), Some(mark("4", None))),
            [],
            "somebody else's"
        );
        assert_eq!(secrets.noted(&secret("token"), None), [holder()], "free");
        assert_eq!(secrets.noted(&secret("other"), None), []);
        assert_eq!(secrets.noted(&secret("other"), ours()), []);
    }

    #[test]
    fn our_own_writes_wake_nobody_and_newer_ones_of_others_are_not_lost() {
        let mut secrets = secrets();
        secrets.take_in_hand(&secret("token"));
        assert_eq!(secrets.noted(&secret("token"), Some(mark("5", Some("uid")))), []);
        assert!(!secrets.wrote(&secret("token"), mark("5", Some("uid"))));
        assert_eq!(secrets.noted(&secret("token"), Some(mark("7", Some("uid")))), []);
        assert!(secrets.wrote(&secret("token"), mark("6", Some("uid"))), "overtaken");
        assert_eq!(secrets.get(&secret("token")), Some(&mark("7", Some("uid"))));
        secrets.let_go(&secret("token"));
        assert_eq!(
            secrets.noted(&secret("token"), Some(mark("8", Some("uid")))),
            [holder()]
        );
    }

    #[test]
    fn what_a_whole_list_does_not_show_is_missing() {
        let mut secrets = secrets();
        secrets.noted(&secret("token"), Some(mark("1", Some("uid"))));
        secrets.noted(&secret("theirs"), Some(mark("1", None)));
        assert_eq!(secrets.missing(&BTreeSet::new()), [secret("token")]);
        assert_eq!(secrets.missing(&BTreeSet::from([secret("token")])), []);
    }

    #[test]
    fn only_a_controller_of_our_group_owns_a_secret() {
        use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
        let owner = |api_version: &str, controller| OwnerReference {
            api_version: api_version.to_owned(),
            uid: "uid".to_owned(),
            controller,
            ..OwnerReference::default()
        };
        let of = |owner: OwnerReference| {
            owner_of(&ObjectMeta {
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            })
        };
        assert_eq!(of(owner("kflare.dev/v1alpha1", Some(true))).as_deref(), Some("uid"));
        assert_eq!(of(owner("kflare.dev/v1alpha1", None)), None);
        assert_eq!(of(owner("apps/v1", Some(true))), None);
        assert_eq!(of(owner("kflare.development/v1", Some(true))), None);
    }
}
