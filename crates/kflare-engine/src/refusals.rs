//! Creates that Cloudflare has refused for good. The same is not asked for again before something changes: what the spec asks
//! for, or what stands in its place at Cloudflare; or before a long pause is over, for what kflare cannot see (a plan, a quota).
//!
//! What was refused is remembered in status as a fingerprint, so that a restart does not ask again either.

use std::collections::{BTreeMap, BTreeSet};

use kflare_cloudflare::Client;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::{
    clock::Chance,
    digest,
    errors::Class,
    index::CollectionKey,
    kind::{NaturalKey, Remote},
    object::{Object, ObjectKey},
    plan::FieldRules,
    queue::backoff,
    reason::Reason,
    resolve::Prepared,
};

/// Field of status.
pub const FIELD: &str = "refused";

/// Fingerprint of a create: what is asked for (of what no read may tell only a keyed hash), what Cloudflare reports of its parents (a zone's plan), and what already stands
/// in that place.
pub fn fingerprint(prepared: &Prepared, neighbours: &[Remote], client: &Client, rules: FieldRules) -> String {
    let mut body = prepared.desired.body.clone();
    let hidden: Map<String, Value> = rules
        .write_only
        .iter()
        .filter_map(|field| body.remove_entry(*field))
        .collect();
    let hidden = if hidden.is_empty() {
        None
    } else {
        client.seal(&Value::Object(hidden).to_string())
    };
    let parents: BTreeMap<_, _> = prepared
        .parents
        .by_field
        .iter()
        .map(|(field, it)| (field, it.metadata.fields()))
        .collect();
    let mut others: Vec<_> = neighbours.iter().map(|it| json!([it.id, it.body])).collect();
    others.sort_by_key(ToString::to_string);
    digest::fingerprint(&json!([body, hidden, parents, others]))
}

/// Who stands in a place: ids and what they are there.
pub fn standing(neighbours: &[Remote]) -> BTreeSet<(&str, &NaturalKey)> {
    neighbours.iter().map(|it| (it.id.as_str(), &it.key)).collect()
}

/// Whether just this was refused before, and the resource says so of its spec as it is. What a user has edited is tried again, even
/// if that makes no difference to Cloudflare.
pub fn was_refused(object: &Object, fingerprint: &str) -> bool {
    object.ready().observed_generation == Some(object.generation)
        && object.status.get::<String>(&[FIELD]).as_deref() == Some(fingerprint)
}

struct Refusal {
    key: ObjectKey,
    collection: CollectionKey,
    next_try: Instant,
    times: u32,
}

/// When refused creates are tried again all the same, by UID of their resource.
#[derive(Default)]
pub struct Refusals(BTreeMap<String, Refusal>);

impl Refusals {
    /// When a create that was refused, in this life of the process or in an earlier one, is tried again.
    pub fn next_try(&mut self, object: &Object, collection: &CollectionKey, chance: &Chance) -> Instant {
        if let Some(refusal) = self.0.get(&object.uid) {
            return refusal.next_try;
        }
        let (pause, _) = Class::Invalid(Reason::INVALID_SPEC).backoff();
        let next_try = Instant::now() + chance.jitter(pause, 0.1);
        self.note(object, collection, next_try, 1);
        next_try
    }

    /// A create was refused. The pause before it is tried again all the same grows each time.
    pub fn refused(&mut self, object: &Object, collection: &CollectionKey, class: &Class, chance: &Chance) {
        let times = self.0.get(&object.uid).map_or(0, |it| it.times) + 1;
        let next_try = Instant::now() + chance.jitter(backoff(times, class.backoff()), 0.1);
        self.note(object, collection, next_try, times);
    }

    fn note(&mut self, object: &Object, collection: &CollectionKey, next_try: Instant, times: u32) {
        let refusal = Refusal {
            key: object.key.clone(),
            collection: collection.clone(),
            next_try,
            times,
        };
        self.0.insert(object.uid.clone(), refusal);
    }

    /// The resource has its object, or is gone.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    /// The resources that something which changed in `collection` may help.
    pub fn within(&self, collection: &CollectionKey) -> Vec<ObjectKey> {
        let there = self.0.values().filter(|it| it.collection == *collection);
        there.map(|it| it.key.clone()).collect()
    }
}
