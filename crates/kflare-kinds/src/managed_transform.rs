//! `ManagedTransform`: the managed transforms of a zone. They always exist; a zone with one that is on counts as configured.

use async_trait::async_trait;
use kflare_api::{
    managed_transform::{ManagedHeader, ManagedTransformSpec},
    names,
};
use kflare_cloudflare::{
    Client, Error, Incompleteness,
    endpoints::managed_headers::{self, Changes, Transform, Transforms},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, NaturalKey, Parents, Reason, Reference, Remote, Site, SpecError,
    Stored,
    errors::Class,
    kind::{ClaimNames, KindReasons, Nature},
};
use serde_json::{Map, Value, json};

use crate::reasons;

/// The zone does not exist.
const NO_ZONE: i64 = 1003;

/// The transforms of requests, and of responses.
const REQUEST: &str = "managed_request_headers";
const RESPONSE: &str = "managed_response_headers";

/// The adapter.
pub struct ManagedTransformAdapter {
    descriptor: KindDescriptor,
}

impl ManagedTransformAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "zoneID".into(),
                    label: names::MANAGED_TRANSFORMS.into(),
                }),
                listable: false,
                nature: Nature {
                    singleton: true,
                    ..Nature::default()
                },
                reasons: KindReasons {
                    claimed: reasons::ALREADY_CONFIGURED,
                    ..KindReasons::default()
                },
                ..KindDescriptor::new(
                    "ManagedTransform",
                    "managedtransforms",
                    "ManagedTransform",
                    "managed_transforms",
                )
            },
        }
    }
}

/// There is one object in a zone.
fn key() -> NaturalKey {
    NaturalKey {
        group: "managed transforms".to_owned(),
        member: String::new(),
    }
}

/// Which transforms are on, by id.
fn states(list: &[Transform]) -> Value {
    list.iter()
        .map(|transform| (transform.id.clone(), json!(transform.enabled)))
        .collect::<Map<_, _>>()
        .into()
}

fn wanted(list: &[ManagedHeader]) -> Value {
    list.iter()
        .map(|header| (header.id.clone(), json!(header.enabled)))
        .collect::<Map<_, _>>()
        .into()
}

fn remote(zone_id: &str, transforms: &Transforms) -> Remote {
    Remote {
        id: zone_id.to_owned(),
        key: key(),
        body: Map::from_iter([
            (REQUEST.to_owned(), states(&transforms.managed_request_headers)),
            (RESPONSE.to_owned(), states(&transforms.managed_response_headers)),
        ]),
        metadata: Map::from_iter([("zoneID".to_owned(), json!(zone_id))]),
        ..Remote::default()
    }
}

fn any_is_on(transforms: &Transforms) -> bool {
    let mut all = transforms
        .managed_request_headers
        .iter()
        .chain(&transforms.managed_response_headers);
    all.any(|transform| transform.enabled)
}

/// Adds one change. Paths of fields are the list that a transform is in, and its id.
fn set(changes: &mut Changes, list: &str, id: &str, enabled: bool) {
    let change = managed_headers::Change {
        id: id.to_owned(),
        enabled,
    };
    match list {
        REQUEST => changes.managed_request_headers.push(change),
        _ => changes.managed_response_headers.push(change),
    }
}

/// What has to be sent to a zone in which nothing is on.
fn all_that_is_on(desired: &Desired) -> Changes {
    let mut changes = Changes::default();
    for (list, ids) in &desired.body {
        for (id, enabled) in ids.as_object().into_iter().flatten() {
            if enabled.as_bool() == Some(true) {
                set(&mut changes, list, id, true);
            }
        }
    }
    changes
}

/// What has to be sent for these fields.
fn what_differs(changes: &[Change]) -> Changes {
    let mut sent = Changes::default();
    for change in changes {
        if let (Some((list, id)), Some(enabled)) = (change.path.split_once('.'), change.to.as_bool()) {
            set(&mut sent, list, id, enabled);
        }
    }
    sent
}

/// Turns transforms on and off. What is not named keeps its state.
async fn send(client: &Client, zone_id: &str, changes: &Changes) -> Result<Stored, Error> {
    let transforms = if *changes == Changes::default() {
        managed_headers::get(client, zone_id).await?
    } else {
        managed_headers::patch(client, zone_id, changes).await?
    };
    Ok(remote(zone_id, &transforms).into())
}

#[async_trait]
impl Adapter for ManagedTransformAdapter {
    type Spec = ManagedTransformSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &ManagedTransformSpec) -> Vec<Reference> {
        vec![Reference::new("zoneRef", "Zone", &spec.zone_ref.name)]
    }

    fn scope(&self, _spec: &ManagedTransformSpec, parents: &Parents) -> String {
        parents.get("zoneRef").map(|zone| zone.id.clone()).unwrap_or_default()
    }

    fn desired(&self, spec: &ManagedTransformSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        Ok(Desired {
            key: key(),
            exclusive: true,
            body: Map::from_iter([
                (REQUEST.to_owned(), wanted(&spec.managed_request_headers)),
                (RESPONSE.to_owned(), wanted(&spec.managed_response_headers)),
            ]),
            ..Desired::default()
        })
    }

    /// A zone without a transform that is on has nothing that could be taken over.
    async fn find(&self, client: &Client, zone_id: &str, _key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let transforms = managed_headers::get(client, zone_id).await?;
        Ok(if any_is_on(&transforms) {
            vec![remote(zone_id, &transforms)]
        } else {
            Vec::new()
        })
    }

    async fn get(&self, client: &Client, zone_id: &str, _id: &str) -> Result<Option<Remote>, Error> {
        let transforms = managed_headers::get(client, zone_id).await?;
        Ok(Some(remote(zone_id, &transforms)))
    }

    /// What is on belongs to somebody. A write does not say whether it found something, so it is looked at right before.
    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let before = managed_headers::get(client, site.scope).await?;
        if any_is_on(&before) {
            return Err(Error::Incomplete {
                route: managed_headers::TRANSFORMS,
                reason: Incompleteness::Moving,
            });
        }
        let changes = all_that_is_on(desired);
        let transforms = if changes == Changes::default() {
            before
        } else {
            managed_headers::patch(client, site.scope, &changes).await?
        };
        Ok(remote(site.scope, &transforms).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        _id: &str,
        _desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        send(client, site.scope, &what_differs(changes)).await
    }

    async fn delete(&self, client: &Client, site: Site<'_>, _id: &str) -> Result<Deleted, Error> {
        managed_headers::delete(client, site.scope).await?;
        Ok(Deleted::default())
    }

    /// A transform that the zone does not have is not found; that says nothing about the zone.
    fn classify(&self, error: &Error) -> Option<Class> {
        let Error::Api(api) = error else { return None };
        let unknown = api.status == 404 && api.method.as_str() == "PATCH" && !api.has_code(NO_ZONE);
        unknown.then_some(Class::Invalid(Reason::TERMINAL_ERROR))
    }
}
