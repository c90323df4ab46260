//! The server as a test's user has it: at once, without faults or delays.

use kube::core::Status;
use kube::core::discovery::Scope;
use serde_json::Value;
use tokio::time::Instant;

use super::MemoryApi;
use super::refusal;
use super::resource::{ObjectId, ResourceType};
use super::store::Key;
use super::world::World;
use super::write::{Deleted, Endpoint, Persist, Preconditions, Writer};

impl MemoryApi {
    /// Creates an object from a manifest (`apiVersion`, `kind`, metadata) and returns it as stored.
    pub fn create(&self, object: Value) -> Result<Value, Box<Status>> {
        let id = ObjectId::of(&object);
        self.write("create", &id, |resource, _, writer| {
            let created = writer.create(resource, namespace(resource, &id), object)?;
            Ok(Value::clone(&created))
        })
    }

    /// Changes an object through its main endpoint: what `edit` does to a status is ignored.
    pub fn edit(&self, id: &ObjectId, edit: impl FnOnce(&mut Value)) -> Result<Value, Box<Status>> {
        self.replace("edit", id, Endpoint::Main, edit)
    }

    /// Changes an object through `/status`: only what `edit` does to the status counts.
    pub fn edit_status(&self, id: &ObjectId, edit: impl FnOnce(&mut Value)) -> Result<Value, Box<Status>> {
        self.replace("edit status of", id, Endpoint::Status, edit)
    }

    /// Deletes an object, or marks it when it has finalizers.
    pub fn delete(&self, id: &ObjectId) -> Result<(), Box<Status>> {
        self.write("delete", id, |resource, key, writer| {
            match writer.delete(resource, key, &Preconditions::default())? {
                Deleted::Marked(_) | Deleted::Gone(_) => Ok(()),
            }
        })
    }

    /// An object as stored.
    pub fn get(&self, id: &ObjectId) -> Option<Value> {
        let world = self.shared.lock();
        let resource = find(&world, id).ok()?;
        let key = Key::new(resource, namespace(resource, id), &id.name);
        world.store.get(&key).map(|object| Value::clone(object))
    }

    /// All objects of a kind (`plural.group`, or the plural alone in the core group), by namespace and name.
    pub fn list(&self, qualified: &str) -> Vec<Value> {
        let world = self.shared.lock();
        world
            .store
            .collection(qualified, None)
            .map(|(_, object)| Value::clone(object))
            .collect()
    }

    fn replace(
        &self,
        what: &str,
        id: &ObjectId,
        endpoint: Endpoint,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Value, Box<Status>> {
        self.write(what, id, |resource, key, writer| {
            let current = writer
                .store
                .get(&key)
                .ok_or_else(|| refusal::not_found(resource, &key.name))?;
            let mut object = Value::clone(current);
            edit(&mut object);
            let replaced = writer.replace(resource, key, endpoint, object)?;
            Ok(Value::clone(&replaced))
        })
    }

    fn write<T>(
        &self,
        what: &str,
        id: &ObjectId,
        write: impl FnOnce(&ResourceType, Key, &mut Writer<'_>) -> Result<T, Box<Status>>,
    ) -> Result<T, Box<Status>> {
        let mut world = self.shared.lock();
        let world = &mut *world;
        let outcome = find(world, id).cloned().and_then(|resource| {
            let key = Key::new(&resource, namespace(&resource, id), &id.name);
            let mut writer = Writer {
                store: &mut world.store,
                rng: &mut world.rng,
                at: Instant::now(),
                now: self.shared.clock().now(),
                persist: Persist::Commit,
            };
            write(&resource, key, &mut writer)
        });
        let told = match &outcome {
            Ok(_) => format!("rv={}", world.store.revision()),
            Err(status) => format!("{} {}", status.code, status.reason),
        };
        self.shared.trace(&format!("user: {what} {id} -> {told}"));
        self.shared.announce();
        outcome
    }
}

fn find<'a>(world: &'a World, id: &ObjectId) -> Result<&'a ResourceType, Box<Status>> {
    let served = world
        .resources
        .iter()
        .find(|it| it.group == id.group && it.kind == id.kind);
    served.ok_or_else(refusal::unknown_path)
}

/// Manifests may leave the namespace out, as with kubectl.
fn namespace<'a>(resource: &ResourceType, id: &'a ObjectId) -> Option<&'a str> {
    match resource.scope {
        Scope::Namespaced => Some(id.namespace.as_deref().unwrap_or("default")),
        Scope::Cluster => None,
    }
}
