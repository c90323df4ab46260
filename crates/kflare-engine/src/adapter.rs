//! A kind with a Rust type for its spec: what one module of `kflare-kinds` implements.

use std::marker::PhantomData;

use async_trait::async_trait;
use kflare_cloudflare::{Client, Error};
use secrecy::SecretString;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    errors::Class,
    inputs::{Input, Inputs},
    kind::{
        BatchWriter, CredentialSource, Deleted, Desired, Kind, KindDescriptor, Listing, NaturalKey, Parents, Reference,
        Remote, Site, SpecError, Stored,
    },
    operations::OperationWriter,
    plan::Change,
    yields::Yield,
};

/// One kind. An adapter maps and calls; it never sees a Kubernetes client, never sleeps, never retries, never logs an
/// error.
#[async_trait]
pub trait Adapter: Send + Sync + 'static {
    /// The spec of the custom resource.
    type Spec: DeserializeOwned + Send + Sync;

    /// Static facts.
    fn descriptor(&self) -> &KindDescriptor;

    /// See [`Kind::references`].
    fn references(&self, spec: &Self::Spec) -> Vec<Reference>;

    /// See [`Kind::credential`].
    fn credential(&self, _spec: &Self::Spec) -> Option<CredentialSource> {
        None
    }

    /// See [`Kind::scope`].
    fn scope(&self, spec: &Self::Spec, parents: &Parents) -> String;

    /// See [`Kind::rank`].
    fn rank(&self, _spec: &Self::Spec) -> i64 {
        0
    }

    /// See [`Kind::alias`].
    fn alias(&self, _spec: &Self::Spec) -> Option<String> {
        None
    }

    /// See [`Kind::desired`].
    fn desired(&self, spec: &Self::Spec, parents: &Parents) -> Result<Desired, SpecError>;

    /// See [`Kind::inputs`].
    fn inputs(&self, _spec: &Self::Spec) -> Vec<Input> {
        Vec::new()
    }

    /// See [`Kind::fill`].
    fn fill(&self, _spec: &Self::Spec, _desired: &mut Desired, _inputs: &Inputs) -> Result<(), SpecError> {
        Ok(())
    }

    /// See [`Kind::list`]. Called only when the descriptor says `listable`.
    async fn list(&self, _client: &Client, _scope: &str) -> Result<Listing, Error> {
        Err(not_offered(self.descriptor(), "listed"))
    }

    /// See [`Kind::find`]. Not called for kinds that are only verified.
    async fn find(&self, _client: &Client, _scope: &str, _key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        Err(not_offered(self.descriptor(), "found by name"))
    }

    /// See [`Kind::place`].
    fn place(&self, key: &NaturalKey) -> String {
        key.group.clone()
    }

    /// See [`Kind::get`].
    async fn get(&self, client: &Client, scope: &str, id: &str) -> Result<Option<Remote>, Error>;

    /// See [`Kind::create`]. Not called for kinds that are only verified.
    async fn create(&self, _client: &Client, _site: Site<'_>, _desired: &Desired) -> Result<Stored, Error> {
        Err(not_offered(self.descriptor(), "created"))
    }

    /// See [`Kind::update`]. Not called for kinds that are only verified.
    async fn update(
        &self,
        _client: &Client,
        _site: Site<'_>,
        _id: &str,
        _desired: &Desired,
        _changes: &[Change],
    ) -> Result<Stored, Error> {
        Err(not_offered(self.descriptor(), "updated"))
    }

    /// See [`Kind::delete`]. Not called for kinds that are only verified.
    async fn delete(&self, _client: &Client, _site: Site<'_>, _id: &str) -> Result<Deleted, Error> {
        Err(not_offered(self.descriptor(), "deleted"))
    }

    /// See [`Kind::batch`].
    fn batch(&self) -> Option<&dyn BatchWriter> {
        None
    }

    /// See [`Kind::operations`].
    fn operations(&self) -> Option<&dyn OperationWriter> {
        None
    }

    /// See [`Kind::classify`].
    fn classify(&self, _error: &Error) -> Option<Class> {
        None
    }

    /// See [`Kind::obstacle`].
    async fn obstacle(&self, _client: &Client, _scope: &str, _desired: &Desired) -> Option<String> {
        None
    }

    /// See [`Kind::deletion_warning`].
    async fn deletion_warning(&self, _client: &Client, _scope: &str, _id: &str) -> Option<String> {
        None
    }

    /// See [`Kind::yields_secrets`].
    fn yields_secrets(&self) -> bool {
        false
    }

    /// See [`Kind::yields`].
    fn yields(&self, _spec: &Self::Spec) -> Option<Yield> {
        None
    }

    /// See [`Kind::yielded`].
    async fn yielded(&self, _client: &Client, _scope: &str, _id: &str) -> Result<SecretString, Error> {
        Err(Error::Refused(format!("a {} yields nothing", self.descriptor().kind)))
    }
}

fn not_offered(descriptor: &KindDescriptor, what: &str) -> Error {
    Error::Refused(format!("a {} cannot be {what}", descriptor.kind))
}

/// Wraps a typed adapter for the engine.
pub fn erase<A: Adapter>(adapter: A) -> Box<dyn Kind> {
    Box::new(Erased {
        adapter,
        spec: PhantomData,
    })
}

struct Erased<A: Adapter> {
    adapter: A,
    spec: PhantomData<fn() -> A::Spec>,
}

impl<A: Adapter> Erased<A> {
    /// Parses a spec and turns serde's message into one that a user can act on. The API server's schema makes a failure
    /// rare; it is likely only after an upgrade without the new CRDs.
    fn parse(spec: &Value) -> Result<A::Spec, SpecError> {
        <A::Spec as Deserialize>::deserialize(spec).map_err(|error| {
            SpecError::new(
                "",
                format!("spec does not parse: {error}; compare it with `kubectl explain` for this kind"),
            )
        })
    }
}

#[async_trait]
impl<A: Adapter> Kind for Erased<A> {
    fn descriptor(&self) -> &KindDescriptor {
        self.adapter.descriptor()
    }

    fn references(&self, spec: &Value) -> Result<Vec<Reference>, SpecError> {
        Ok(self.adapter.references(&Self::parse(spec)?))
    }

    fn credential(&self, spec: &Value) -> Result<Option<CredentialSource>, SpecError> {
        Ok(self.adapter.credential(&Self::parse(spec)?))
    }

    fn scope(&self, spec: &Value, parents: &Parents) -> Result<String, SpecError> {
        Ok(self.adapter.scope(&Self::parse(spec)?, parents))
    }

    fn rank(&self, spec: &Value) -> i64 {
        Self::parse(spec).map_or(0, |spec| self.adapter.rank(&spec))
    }

    fn alias(&self, spec: &Value) -> Option<String> {
        self.adapter.alias(&Self::parse(spec).ok()?)
    }

    fn desired(&self, spec: &Value, parents: &Parents) -> Result<Desired, SpecError> {
        self.adapter.desired(&Self::parse(spec)?, parents)
    }

    fn inputs(&self, spec: &Value) -> Result<Vec<Input>, SpecError> {
        Ok(self.adapter.inputs(&Self::parse(spec)?))
    }

    fn fill(&self, spec: &Value, desired: &mut Desired, inputs: &Inputs) -> Result<(), SpecError> {
        self.adapter.fill(&Self::parse(spec)?, desired, inputs)
    }

    async fn list(&self, client: &Client, scope: &str) -> Result<Listing, Error> {
        self.adapter.list(client, scope).await
    }

    async fn find(&self, client: &Client, scope: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        self.adapter.find(client, scope, key).await
    }

    fn place(&self, key: &NaturalKey) -> String {
        self.adapter.place(key)
    }

    async fn get(&self, client: &Client, scope: &str, id: &str) -> Result<Option<Remote>, Error> {
        self.adapter.get(client, scope, id).await
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        self.adapter.create(client, site, desired).await
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        self.adapter.update(client, site, id, desired, changes).await
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        self.adapter.delete(client, site, id).await
    }

    fn batch(&self) -> Option<&dyn BatchWriter> {
        self.adapter.batch()
    }

    fn operations(&self) -> Option<&dyn OperationWriter> {
        self.adapter.operations()
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        self.adapter.classify(error)
    }

    async fn obstacle(&self, client: &Client, scope: &str, desired: &Desired) -> Option<String> {
        self.adapter.obstacle(client, scope, desired).await
    }

    async fn deletion_warning(&self, client: &Client, scope: &str, id: &str) -> Option<String> {
        self.adapter.deletion_warning(client, scope, id).await
    }

    fn yields_secrets(&self) -> bool {
        self.adapter.yields_secrets()
    }

    fn yields(&self, spec: &Value) -> Result<Option<Yield>, SpecError> {
        Ok(self.adapter.yields(&Self::parse(spec)?))
    }

    async fn yielded(&self, client: &Client, scope: &str, id: &str) -> Result<SecretString, Error> {
        self.adapter.yielded(client, scope, id).await
    }
}
