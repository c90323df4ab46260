//! Creating, changing and deleting objects, by the rules of a real API server.

use std::sync::Arc;

use jiff::Timestamp;
use kube::core::Status;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::collector;
use super::refusal;
use super::resource::{Generations, Operation, ResourceType, StatusEndpoint};
use super::store::{Key, Store};

/// Which part of an object a write reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// Everything but the status (where `/status` is served).
    Main,
    /// The status alone.
    Status,
}

/// Whether a write has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persist {
    Commit,
    DryRun,
}

/// What a delete requires.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// What a delete led to.
pub(super) enum Deleted {
    /// Finalizers hold the object; it is marked.
    Marked(Arc<Value>),
    /// It is gone; this was its last state.
    Gone(Arc<Value>),
}

/// One write: the store, the time and the source of chance.
pub(super) struct Writer<'a> {
    pub(super) store: &'a mut Store,
    pub(super) rng: &'a mut StdRng,
    pub(super) at: Instant,
    pub(super) now: Timestamp,
    pub(super) persist: Persist,
}

impl Writer<'_> {
    pub(super) fn create(
        &mut self,
        resource: &ResourceType,
        namespace: Option<&str>,
        mut object: Value,
    ) -> Result<Arc<Value>, Box<Status>> {
        check_type(resource, &mut object)?;
        let meta = metadata(&mut object)?;
        if text(meta, "name").is_none() {
            let prefix = text(meta, "generateName");
            let prefix = prefix
                .ok_or_else(|| refusal::bad_request("name or generateName is required"))?
                .to_owned();
            let suffix = self.suffix();
            meta.insert("name".into(), json!(prefix + &suffix));
        }
        if text(meta, "resourceVersion").is_some() {
            return Err(refusal::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let key = Key::new(resource, namespace, text(meta, "name").unwrap_or_default());
        check_namespace(meta, namespace)?;
        let uid = self.uid();
        for set_by_server in [
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
        ] {
            meta.remove(set_by_server);
        }
        meta.insert("uid".into(), json!(uid));
        meta.insert("creationTimestamp".into(), json!(self.seconds()));
        if resource.generations == Generations::Counted {
            meta.insert("generation".into(), json!(1));
        }
        tidy(meta);
        if resource.status == StatusEndpoint::Served {
            remove(&mut object, "status");
        }
        if self.store.get(&key).is_some() {
            return Err(refusal::already_exists(resource, &key.name));
        }
        admit(resource, &key, Operation::Create, &mut object)?;
        self.commit(key, object)
    }

    /// Replaces an object. A `resourceVersion` or `uid` in it must be the current one; without a `resourceVersion` the
    /// write is unconditional.
    pub(super) fn replace(
        &mut self,
        resource: &ResourceType,
        key: Key,
        endpoint: Endpoint,
        mut proposed: Value,
    ) -> Result<Arc<Value>, Box<Status>> {
        let current = self
            .store
            .get(&key)
            .cloned()
            .ok_or_else(|| refusal::not_found(resource, &key.name))?;
        check_type(resource, &mut proposed)?;
        let meta = metadata(&mut proposed)?;
        let field = |name| current.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
        if text(meta, "name").is_some_and(|name| name != key.name) {
            return Err(refusal::bad_request(
                "the name of the object does not match the name on the URL",
            ));
        }
        check_namespace(
            meta,
            Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
        )?;
        if let Some(uid) = text(meta, "uid").filter(|&uid| Some(uid) != field("uid")) {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                field("uid").unwrap_or_default()
            );
            return Err(refusal::conflict(resource, &key.name, &why));
        }
        if text(meta, "resourceVersion").is_some_and(|version| Some(version) != field("resourceVersion")) {
            return Err(refusal::modified_meanwhile(resource, &key.name));
        }
        let mut next = match endpoint {
            Endpoint::Main => main_replaced(resource, &key, &current, proposed)?,
            Endpoint::Status => {
                let mut next = Value::clone(&current);
                set(&mut next, "status", proposed.get("status").cloned());
                next
            }
        };
        admit(resource, &key, Operation::Update(&current), &mut next)?;
        set(
            metadata_value(&mut next)?,
            "resourceVersion",
            current.pointer("/metadata/resourceVersion").cloned(),
        );
        let meta = metadata(&mut next)?;
        let deleting = meta.contains_key("deletionTimestamp");
        if deleting && !meta.contains_key("finalizers") {
            return self.discard(key, next);
        }
        if next == *current {
            // As with a real server: no change, no new version, no event.
            return Ok(current);
        }
        if resource.generations == Generations::Counted && content(resource, &next) != content(resource, &current) {
            raise_generation(&mut next)?;
        }
        self.commit(key, next)
    }

    /// Deletes an object, or marks it when it has finalizers.
    pub(super) fn delete(
        &mut self,
        resource: &ResourceType,
        key: Key,
        preconditions: &Preconditions,
    ) -> Result<Deleted, Box<Status>> {
        let current = self
            .store
            .get(&key)
            .cloned()
            .ok_or_else(|| refusal::not_found(resource, &key.name))?;
        for (name, wanted) in [
            ("uid", &preconditions.uid),
            ("resourceVersion", &preconditions.resource_version),
        ] {
            let found = current
                .pointer(&format!("/metadata/{name}"))
                .and_then(Value::as_str)
                .unwrap_or_default();
            if let Some(wanted) = wanted.as_deref().filter(|&wanted| wanted != found) {
                let why =
                    format!("the {name} in the precondition ({wanted}) does not match the one in record ({found})");
                return Err(refusal::conflict(resource, &key.name, &why));
            }
        }
        let mut next = Value::clone(&current);
        let seconds = self.seconds();
        let meta = metadata(&mut next)?;
        if !meta.contains_key("finalizers") {
            return self.discard(key, next).map(Deleted::Gone);
        }
        if meta.contains_key("deletionTimestamp") {
            return Ok(Deleted::Marked(current));
        }
        meta.insert("deletionTimestamp".into(), json!(seconds));
        meta.insert("deletionGracePeriodSeconds".into(), json!(0));
        if resource.generations == Generations::Counted {
            raise_generation(&mut next)?;
        }
        self.commit(key, next).map(Deleted::Marked)
    }

    /// Removes an object, finalizers or not.
    pub(super) fn remove(&mut self, resource: &ResourceType, key: Key) -> Result<Arc<Value>, Box<Status>> {
        let current = self.store.get(&key).cloned();
        let current = current.ok_or_else(|| refusal::not_found(resource, &key.name))?;
        self.discard(key, Value::clone(&current))
    }

    fn commit(&mut self, key: Key, object: Value) -> Result<Arc<Value>, Box<Status>> {
        let object = self.versioned(object)?;
        if self.persist == Persist::Commit {
            self.store.put(self.at, key, Arc::clone(&object));
        }
        Ok(object)
    }

    fn discard(&mut self, key: Key, last: Value) -> Result<Arc<Value>, Box<Status>> {
        let last = self.versioned(last)?;
        if self.persist == Persist::Commit {
            self.store.remove(self.at, key, Arc::clone(&last));
            let uid = last.pointer("/metadata/uid").and_then(Value::as_str);
            for (key, orphan) in collector::orphans(self.store, uid.unwrap_or_default()) {
                self.discard(key, orphan)?;
            }
        }
        Ok(last)
    }

    fn versioned(&self, mut object: Value) -> Result<Arc<Value>, Box<Status>> {
        let version = self.store.next_revision().to_string();
        metadata(&mut object)?.insert("resourceVersion".into(), json!(version));
        Ok(Arc::new(object))
    }

    fn uid(&mut self) -> String {
        // The bits of a random UUID: version 4, variant 1.
        let bits = self.rng.random::<u128>() & !(0xf000 << 64) & !(0xc000 << 48) | (0x4000 << 64) | (0x8000 << 48);
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(ALPHABET[self.rng.random_range(0..ALPHABET.len())]))
            .collect()
    }

    /// Kubernetes keeps seconds.
    fn seconds(&self) -> String {
        Timestamp::from_second(self.now.as_second())
            .unwrap_or(self.now)
            .to_string()
    }
}

/// The object a write through the main endpoint leads to.
fn main_replaced(
    resource: &ResourceType,
    key: &Key,
    current: &Value,
    mut proposed: Value,
) -> Result<Value, Box<Status>> {
    let kept = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
    ];
    let meta = metadata_value(&mut proposed)?;
    for field in kept.into_iter().chain(["deletionGracePeriodSeconds", "generateName"]) {
        set(meta, field, current["metadata"].get(field).cloned());
    }
    let meta = metadata(&mut proposed)?;
    meta.remove("managedFields");
    tidy(meta);
    if meta.contains_key("deletionTimestamp") {
        let before = current.pointer("/metadata/finalizers").and_then(Value::as_array);
        let has_new = meta.get("finalizers").and_then(Value::as_array).is_some_and(|now| {
            now.iter()
                .any(|finalizer| before.is_none_or(|before| !before.contains(finalizer)))
        });
        if has_new {
            let why = "Forbidden: no new finalizers can be added if the object is being deleted";
            return Err(refusal::invalid_field(resource, &key.name, "metadata.finalizers", why));
        }
    }
    if resource.status == StatusEndpoint::Served {
        set(&mut proposed, "status", current.get("status").cloned());
    }
    Ok(proposed)
}

fn admit(resource: &ResourceType, key: &Key, operation: Operation<'_>, object: &mut Value) -> Result<(), Box<Status>> {
    match &resource.admission {
        Some(admission) => admission(operation, object).map_err(|causes| refusal::invalid(resource, &key.name, causes)),
        None => Ok(()),
    }
}

/// What the generation counts the changes of.
fn content<'a>(resource: &ResourceType, object: &'a Value) -> Vec<(&'a String, &'a Value)> {
    let counts = |field: &str| field != "metadata" && (field != "status" || resource.status == StatusEndpoint::Absent);
    object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, _)| counts(field))
        .collect()
}

fn raise_generation(object: &mut Value) -> Result<(), Box<Status>> {
    let meta = metadata(object)?;
    let generation = meta.get("generation").and_then(Value::as_i64).unwrap_or_default();
    meta.insert("generation".into(), json!(generation + 1));
    Ok(())
}

/// Checks `apiVersion` and `kind`, which may be left out.
fn check_type(resource: &ResourceType, object: &mut Value) -> Result<(), Box<Status>> {
    let fields = object
        .as_object_mut()
        .ok_or_else(|| refusal::bad_request("the object must be a JSON object"))?;
    for (field, wanted) in [("apiVersion", resource.api_version()), ("kind", resource.kind.clone())] {
        match fields.get(field).and_then(Value::as_str) {
            Some(found) if found != wanted => {
                let why = format!("the {field} in the data ({found}) does not match the expected one ({wanted})");
                return Err(refusal::bad_request(why));
            }
            _ => fields.insert(field.to_owned(), json!(wanted)),
        };
    }
    Ok(())
}

/// Checks the namespace in the object against that of the URL, and fills it in.
fn check_namespace(meta: &mut Map<String, Value>, namespace: Option<&str>) -> Result<(), Box<Status>> {
    match (text(meta, "namespace"), namespace) {
        (Some(found), Some(wanted)) if found != wanted => {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            Err(refusal::bad_request(why))
        }
        (_, Some(namespace)) => {
            meta.insert("namespace".into(), json!(namespace));
            Ok(())
        }
        (_, None) => {
            meta.remove("namespace");
            Ok(())
        }
    }
}

fn metadata_value(object: &mut Value) -> Result<&mut Value, Box<Status>> {
    let fields = object
        .as_object_mut()
        .ok_or_else(|| refusal::bad_request("the object must be a JSON object"))?;
    Ok(fields.entry("metadata").or_insert_with(|| json!({})))
}

fn metadata(object: &mut Value) -> Result<&mut Map<String, Value>, Box<Status>> {
    metadata_value(object)?
        .as_object_mut()
        .ok_or_else(|| refusal::bad_request("metadata must be a JSON object"))
}

/// A non-empty string field.
fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => drop(fields.insert(field.to_owned(), value)),
        None => drop(fields.remove(field)),
    }
}

fn remove(object: &mut Value, field: &str) {
    set(object, field, None);
}

/// Empty lists and maps in metadata are left out, as Go's `omitempty` does.
fn tidy(meta: &mut Map<String, Value>) {
    meta.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
}
