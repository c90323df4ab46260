//! `D1Database`: a D1 database. Only its replicas can be changed. It is never replaced: that would destroy what is in it.

use async_trait::async_trait;
use kflare_api::{d1_database::D1DatabaseSpec, names};
use kflare_cloudflare::{
    Client, Error,
    endpoints::d1::{self, Database},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored,
    errors::Class,
    kind::{ClaimNames, changed_fields},
    plan::FieldRules,
};
use serde_json::{Value, json};

use super::{deleted, found, key, present, references};

/// There is no such database.
const MISSING: i64 = 7404;
/// The name is taken.
const EXISTS: i64 = 7502;
/// A property does not fit.
const INVALID: i64 = 7400;
/// The account holds as many as it may.
const QUOTA: i64 = 7406;
/// Cloudflare failed, whatever the status says.
const INTERNAL: i64 = 7500;

/// All that can be changed.
const REPLICATION: &str = "read_replication";

/// The adapter.
pub struct DatabaseAdapter {
    descriptor: KindDescriptor,
}

impl DatabaseAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "databaseID".into(),
                    label: names::D1_DATABASE_ID.into(),
                }),
                fields: FieldRules {
                    untold: &["primary_location_hint"],
                    unlisted: &[REPLICATION, "region"],
                    ..FieldRules::default()
                },
                ..KindDescriptor::new("D1Database", "d1databases", "D1Database", "d1_databases")
            },
        }
    }
}

fn remote(database: Database) -> Remote {
    let replication = database.read_replication.as_ref();
    let body = json!({
        "name": database.name,
        "jurisdiction": database.jurisdiction,
        REPLICATION: replication.map(|replication| json!({ "mode": replication.mode })),
    });
    let metadata = json!({
        "databaseID": database.uuid,
        "version": database.version,
        "region": database.region().map(str::to_uppercase),
    });
    Remote {
        key: key(&database.name),
        id: database.uuid,
        body: present(body),
        created: database.created_at,
        metadata: present(metadata),
        ..Remote::default()
    }
}

#[async_trait]
impl Adapter for DatabaseAdapter {
    type Spec = D1DatabaseSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &D1DatabaseSpec) -> Vec<Reference> {
        references(&spec.account_ref)
    }

    fn scope(&self, _spec: &D1DatabaseSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, spec: &D1DatabaseSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        let body = json!({
            "name": spec.name,
            "jurisdiction": spec.jurisdiction,
            "primary_location_hint": spec.location_hint,
            REPLICATION: spec.read_replication,
        });
        Ok(Desired {
            key: key(&spec.name),
            exclusive: true,
            body: present(body),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        Ok(d1::list(client, account_id).await?.into_iter().map(remote).collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let found = d1::find_by_name(client, account_id, &key.group).await?;
        Ok(found.into_iter().map(remote).collect())
    }

    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        Ok(found(d1::get(client, account_id, id).await, MISSING)?.map(remote))
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let database = d1::create(client, site.scope, &json!(desired.body)).await?;
        Ok(remote(database).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        let mut fields = changed_fields(desired, changes);
        // The rest is as it was made; what is left of the difference is then shown as what Cloudflare did not take.
        fields.retain(|field, _| field == REPLICATION);
        let database = if fields.is_empty() {
            d1::get(client, site.scope, id).await?
        } else {
            d1::patch(client, site.scope, id, &Value::Object(fields)).await?
        };
        Ok(remote(database).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        deleted(d1::delete(client, site.scope, id).await, MISSING)
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        match error {
            error if error.has_code(EXISTS) => Some(Class::Exists),
            error if error.has_code(QUOTA) => Some(Class::Quota),
            error if error.has_code(INVALID) => Some(Class::Invalid(Reason::INVALID_SPEC)),
            error if error.has_code(INTERNAL) => Some(Class::Transient),
            _ => None,
        }
    }

    async fn deletion_warning(&self, _client: &Client, _account_id: &str, _id: &str) -> Option<String> {
        Some("everything that is stored in the database goes with it".to_owned())
    }
}
