//! `KVNamespace`: a Workers KV namespace. A changed title renames it, with what is stored in it.

use async_trait::async_trait;
use kflare_api::{kv_namespace::KVNamespaceSpec, names};
use kflare_cloudflare::{
    Client, Error,
    endpoints::kv::{self, Namespace},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored, errors::Class, kind::ClaimNames,
};
use serde_json::json;

use super::{deleted, found, key, present, references};

/// There is no such namespace.
const MISSING: i64 = 10_013;
/// The title is taken.
const EXISTS: i64 = 10_014;
/// The title is none.
const INVALID: [i64; 2] = [10_012, 10_019];

/// The adapter.
pub struct NamespaceAdapter {
    descriptor: KindDescriptor,
}

impl NamespaceAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "namespaceID".into(),
                    label: names::KV_NAMESPACE_ID.into(),
                }),
                ..KindDescriptor::new("KVNamespace", "kvnamespaces", "KVNamespace", "kv_namespaces")
            },
        }
    }
}

fn remote(namespace: Namespace) -> Remote {
    Remote {
        key: key(&namespace.title),
        body: present(json!({ "title": namespace.title })),
        metadata: present(json!({ "namespaceID": namespace.id })),
        id: namespace.id,
        ..Remote::default()
    }
}

#[async_trait]
impl Adapter for NamespaceAdapter {
    type Spec = KVNamespaceSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &KVNamespaceSpec) -> Vec<Reference> {
        references(&spec.account_ref)
    }

    fn scope(&self, _spec: &KVNamespaceSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, spec: &KVNamespaceSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        Ok(Desired {
            key: key(&spec.title),
            exclusive: true,
            body: present(json!({ "title": spec.title })),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        Ok(kv::list(client, account_id).await?.into_iter().map(remote).collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        // There is no filter by title.
        let mut all = kv::list(client, account_id).await?;
        all.retain(|namespace| namespace.title == key.group);
        Ok(all.into_iter().map(remote).collect())
    }

    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        Ok(found(kv::get(client, account_id, id).await, MISSING)?.map(remote))
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let namespace = kv::create(client, site.scope, &json!(desired.body)).await?;
        Ok(remote(namespace).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        _changes: &[Change],
    ) -> Result<Stored, Error> {
        let title = desired.key.group.as_str();
        let renamed = kv::rename(client, site.scope, id, title).await?;
        let renamed = renamed.unwrap_or_else(|| Namespace {
            id: id.to_owned(),
            title: title.to_owned(),
            jurisdiction: None,
        });
        Ok(remote(renamed).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        deleted(kv::delete(client, site.scope, id).await, MISSING)
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        let is_any = |codes: &[i64]| codes.iter().any(|code| error.has_code(*code));
        if is_any(&[EXISTS]) {
            Some(Class::Exists)
        } else {
            is_any(&INVALID).then_some(Class::Invalid(Reason::INVALID_SPEC))
        }
    }

    async fn deletion_warning(&self, _client: &Client, _account_id: &str, _id: &str) -> Option<String> {
        Some("everything that is stored in the namespace goes with it".to_owned())
    }
}
