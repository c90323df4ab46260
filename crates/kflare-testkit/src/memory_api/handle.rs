//! The effect of a request, which takes no time.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use kube::core::Status;
use kube::core::discovery::Scope;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::patch::PatchType;
use super::refusal;
use super::representation::Representation;
use super::resource::{Generations, ResourceType, StatusEndpoint};
use super::route::{Query, Route, Target, Verb};
use super::selector::Selectors;
use super::store::Key;
use super::watch::WatchRequest;
use super::world::World;
use super::write::{Deleted, Endpoint, Persist, Preconditions, Writer};
use super::{discovery, read};
use crate::clock::VirtualClock;

/// What a request is answered with.
pub(super) enum Answer {
    Json(StatusCode, Value),
    Watch(WatchRequest),
}

/// Options in the body of a delete.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeleteOptions {
    preconditions: Preconditions,
    dry_run: Vec<String>,
}

/// One request about a resource.
struct Call<'a> {
    world: &'a mut World,
    clock: VirtualClock,
    resource: ResourceType,
    target: &'a Target,
    query: &'a Query,
    parts: &'a Parts,
    body: &'a [u8],
}

/// Lets a request have its effect.
pub(super) fn handle(
    world: &mut World,
    clock: VirtualClock,
    route: &Route,
    verb: Verb,
    query: &Query,
    parts: &Parts,
    body: &[u8],
) -> Result<Answer, Box<Status>> {
    let Route::Resource(target) = route else {
        return discovery::answer(route, &world.resources).map(|answer| Answer::Json(StatusCode::OK, answer));
    };
    let resource = world
        .resources
        .iter()
        .find(|it| it.group == target.group && it.version == target.version && it.plural == target.plural);
    let resource = resource.cloned().ok_or_else(refusal::unknown_path)?;
    Call {
        world,
        clock,
        resource,
        target,
        query,
        parts,
        body,
    }
    .answer(verb)
}

/// The object that a request is about, if no finalizer holds it.
pub(super) fn unheld(world: &World, route: &Route) -> Option<(ResourceType, Key)> {
    let Route::Resource(target) = route else { return None };
    let mut resources = world.resources.iter();
    let resource = resources.find(|it| it.group == target.group && it.plural == target.plural)?;
    let key = Key::new(resource, target.namespace.as_deref(), target.name.as_deref()?);
    let object = world.store.get(&key)?;
    let is_unheld = object.pointer("/metadata/finalizers").is_none();
    is_unheld.then(|| (resource.clone(), key))
}

/// Removes an object, finalizers or not; its name, if it was still there.
pub(super) fn overtake(world: &mut World, clock: VirtualClock, resource: &ResourceType, key: Key) -> Option<String> {
    let name = key.name.clone();
    let mut writer = Writer {
        store: &mut world.store,
        rng: &mut world.rng,
        at: Instant::now(),
        now: clock.now(),
        persist: Persist::Commit,
    };
    let last = writer.remove(resource, key).ok()?;
    world.overtaken.push(Value::clone(&last));
    Some(name)
}

impl Call<'_> {
    fn answer(mut self, verb: Verb) -> Result<Answer, Box<Status>> {
        self.check_target(verb)?;
        match verb {
            Verb::Get => self.get(),
            Verb::List => self.list(),
            Verb::Watch => self.watch(),
            Verb::Create => self.create(),
            Verb::Update => self.update(),
            Verb::Patch => self.patch(),
            Verb::Delete => self.delete(),
            Verb::DeleteCollection => self.delete_collection(),
            Verb::Discover => Err(refusal::unknown_path()),
        }
    }

    /// Namespaced objects are only reached through their namespace, and subresources only where they are served.
    fn check_target(&self, verb: Verb) -> Result<(), Box<Status>> {
        let across_namespaces = matches!(verb, Verb::List | Verb::Watch);
        match self.resource.scope {
            Scope::Namespaced if self.target.namespace.is_none() && !across_namespaces => {
                return Err(refusal::method_not_allowed());
            }
            Scope::Cluster if self.target.namespace.is_some() => return Err(refusal::unknown_path()),
            _ => (),
        }
        match self.target.subresource.as_deref() {
            None => Ok(()),
            Some("status") if self.resource.status == StatusEndpoint::Served => match verb {
                Verb::Get | Verb::Update | Verb::Patch => Ok(()),
                _ => Err(refusal::method_not_allowed()),
            },
            Some(_) => Err(refusal::unknown_path()),
        }
    }

    fn key(&self) -> Key {
        let name = self.target.name.as_deref().unwrap_or_default();
        Key::new(&self.resource, self.target.namespace.as_deref(), name)
    }

    fn get(&self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadata")?;
        let key = self.key();
        let object = self
            .world
            .store
            .get(&key)
            .ok_or_else(|| refusal::not_found(&self.resource, &key.name))?;
        Ok(Answer::Json(StatusCode::OK, representation.object(object)))
    }

    fn list(&self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadataList")?;
        let namespace = self.target.namespace.as_deref();
        let page = read::list(&self.world.store, &self.resource, namespace, self.query)?;
        let items = page.items.iter().map(Arc::as_ref);
        Ok(Answer::Json(
            StatusCode::OK,
            representation.list(&self.resource, &page.metadata(), items),
        ))
    }

    fn watch(&self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadata")?;
        let namespace = self.target.namespace.as_deref();
        WatchRequest::parse(&self.world.store, &self.resource, namespace, self.query, representation).map(Answer::Watch)
    }

    fn create(&mut self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadata")?;
        let object = self.json_body()?;
        let namespace = self.target.namespace.clone();
        let resource = self.resource.clone();
        let created = self
            .writer(self.persist())
            .create(&resource, namespace.as_deref(), object)?;
        Ok(Answer::Json(StatusCode::CREATED, representation.object(&created)))
    }

    fn update(&mut self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadata")?;
        let object = self.json_body()?;
        let (resource, key, endpoint) = (self.resource.clone(), self.key(), self.endpoint());
        let version = object
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // Built-in kinds allow an unconditional replace, custom ones do not.
        if version.is_empty() && resource.generations == Generations::Counted {
            let why = "Invalid value: 0x0: must be specified for an update";
            return Err(refusal::invalid_field(
                &resource,
                &key.name,
                "metadata.resourceVersion",
                why,
            ));
        }
        let replaced = self.writer(self.persist()).replace(&resource, key, endpoint, object)?;
        Ok(Answer::Json(StatusCode::OK, representation.object(&replaced)))
    }

    fn patch(&mut self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadata")?;
        let content_type = self.header(http::header::CONTENT_TYPE).unwrap_or_default();
        let patch = PatchType::from_content_type(content_type)?;
        if patch == PatchType::Apply && self.query.get("fieldManager").is_none() {
            return Err(refusal::bad_request(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value",
            ));
        }
        let body = self.json_body()?;
        let (resource, key, endpoint) = (self.resource.clone(), self.key(), self.endpoint());
        let Some(current) = self.world.store.get(&key).cloned() else {
            if patch == PatchType::Apply && endpoint == Endpoint::Main {
                let mut object = body;
                object["metadata"]["name"] = json!(key.name);
                let namespace = self.target.namespace.clone();
                let created = self
                    .writer(self.persist())
                    .create(&resource, namespace.as_deref(), object)?;
                return Ok(Answer::Json(StatusCode::CREATED, representation.object(&created)));
            }
            return Err(refusal::not_found(&resource, &key.name));
        };
        let patched = patch.apply(&current, &body)?;
        let patched = self.writer(self.persist()).replace(&resource, key, endpoint, patched)?;
        Ok(Answer::Json(StatusCode::OK, representation.object(&patched)))
    }

    fn delete(&mut self) -> Result<Answer, Box<Status>> {
        let representation = self.representation("PartialObjectMetadata")?;
        let options = self.delete_options()?;
        let (resource, key) = (self.resource.clone(), self.key());
        let persist = if options.dry_run.is_empty() {
            self.persist()
        } else {
            Persist::DryRun
        };
        match self
            .writer(persist)
            .delete(&resource, key.clone(), &options.preconditions)?
        {
            Deleted::Marked(object) => Ok(Answer::Json(StatusCode::OK, representation.object(&object))),
            Deleted::Gone(last) => {
                let mut details = refusal::details(&resource, &key.name);
                last["metadata"]["uid"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut details.uid);
                let status = Status::success().with_details(details);
                Ok(Answer::Json(StatusCode::OK, super::service::status_body(&status)))
            }
        }
    }

    fn delete_collection(&mut self) -> Result<Answer, Box<Status>> {
        let options = self.delete_options()?;
        let selectors = Selectors::parse(self.query.get("labelSelector"), self.query.get("fieldSelector"))?;
        let resource = self.resource.clone();
        let qualified = resource.qualified();
        let collection = self
            .world
            .store
            .collection(&qualified, self.target.namespace.as_deref());
        let selected = collection.filter(|(_, object)| selectors.match_object(object));
        let keys: Vec<Key> = selected.map(|(key, _)| key.clone()).collect();
        let persist = if options.dry_run.is_empty() {
            self.persist()
        } else {
            Persist::DryRun
        };
        let mut deleted = Vec::new();
        for key in keys {
            match self.writer(persist).delete(&resource, key, &options.preconditions)? {
                Deleted::Marked(object) | Deleted::Gone(object) => deleted.push(object),
            }
        }
        let metadata = json!({"resourceVersion": self.world.store.revision().to_string()});
        let list = Representation::Full.list(&resource, &metadata, deleted.iter().map(Arc::as_ref));
        Ok(Answer::Json(StatusCode::OK, list))
    }

    fn writer(&mut self, persist: Persist) -> Writer<'_> {
        Writer {
            store: &mut self.world.store,
            rng: &mut self.world.rng,
            at: Instant::now(),
            now: self.clock.now(),
            persist,
        }
    }

    fn persist(&self) -> Persist {
        if self.query.get("dryRun").is_some() {
            Persist::DryRun
        } else {
            Persist::Commit
        }
    }

    fn endpoint(&self) -> Endpoint {
        if self.target.subresource.is_some() {
            Endpoint::Status
        } else {
            Endpoint::Main
        }
    }

    fn representation(&self, partial_kind: &str) -> Result<Representation, Box<Status>> {
        Representation::negotiate(self.header(http::header::ACCEPT), partial_kind)
    }

    fn header(&self, name: http::HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn json_body(&self) -> Result<Value, Box<Status>> {
        serde_json::from_slice(self.body)
            .map_err(|error| refusal::bad_request(format!("the body is not valid JSON: {error}")))
    }

    fn delete_options(&self) -> Result<DeleteOptions, Box<Status>> {
        if self.body.is_empty() {
            return Ok(DeleteOptions::default());
        }
        serde_json::from_slice(self.body)
            .map_err(|error| refusal::bad_request(format!("the delete options are not valid: {error}")))
    }
}
