//! `R2Bucket`: an R2 bucket. It has no id but its name, within its account and jurisdiction. Objects are never deleted.

use async_trait::async_trait;
use kflare_api::{names, r2_bucket::R2BucketSpec};
use kflare_cloudflare::{
    Client, Error,
    endpoints::r2::{Bucket, Buckets, DEFAULT_JURISDICTION},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored, errors::Class, kind::ClaimNames, plan::FieldRules,
};
use serde_json::{Value, json};

use super::{deleted, found, key, present, r2_rules, references};
use crate::reasons;

/// There is no such bucket in the jurisdiction.
const MISSING: i64 = 10_006;
/// The name is taken.
const EXISTS: i64 = 10_004;
/// There are objects in it.
const NOT_EMPTY: i64 = 10_008;
/// The account holds as many as it may.
const QUOTA: i64 = 10_009;
/// The account has no R2. It comes with status 403, and is no fault of the token.
const NOT_ENABLED: i64 = 10_042;
/// Name, body or storage class do not fit.
const INVALID: [i64; 3] = [10_005, 10_040, 10_062];

/// The adapter.
pub struct BucketAdapter {
    descriptor: KindDescriptor,
}

impl BucketAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "name".into(),
                    label: names::R2_BUCKET_NAME.into(),
                }),
                fields: FieldRules {
                    after_create: &[r2_rules::CORS, r2_rules::LIFECYCLE, r2_rules::DEFAULT_LIFECYCLE],
                    untold: &["locationHint"],
                    unlisted: &[
                        "storageClass",
                        r2_rules::CORS,
                        r2_rules::LIFECYCLE,
                        r2_rules::DEFAULT_LIFECYCLE,
                        "location",
                    ],
                    ..FieldRules::default()
                },
                ..KindDescriptor::new("R2Bucket", "r2buckets", "R2Bucket", "r2_buckets")
            },
        }
    }
}

/// The buckets of a scope, which is an account and, where there is one, a jurisdiction.
fn buckets<'a>(client: &'a Client, scope: &'a str) -> Buckets<'a> {
    let (account_id, jurisdiction) = scope.split_once('/').unwrap_or((scope, DEFAULT_JURISDICTION));
    Buckets::new(client, account_id, jurisdiction)
}

/// A bucket without its rules.
fn remote(bucket: &Bucket) -> Remote {
    let metadata = json!({
        "name": bucket.name,
        // Answers have it in either case.
        "location": bucket.location.as_deref().map(str::to_uppercase),
        "creationDate": bucket.creation_date.map(|at| at.to_string()),
    });
    Remote {
        id: bucket.name.clone(),
        key: key(&bucket.name),
        body: present(json!({ "storageClass": bucket.storage_class })),
        created: bucket.creation_date,
        metadata: present(metadata),
        ..Remote::default()
    }
}

#[async_trait]
impl Adapter for BucketAdapter {
    type Spec = R2BucketSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &R2BucketSpec) -> Vec<Reference> {
        references(&spec.account_ref)
    }

    fn scope(&self, spec: &R2BucketSpec, parents: &Parents) -> String {
        match spec.jurisdiction {
            None => parents.account_id.clone(),
            Some(jurisdiction) => format!("{}/{}", parents.account_id, jurisdiction.name()),
        }
    }

    fn desired(&self, spec: &R2BucketSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        let mut body = present(json!({ "locationHint": spec.location_hint, "storageClass": spec.storage_class }));
        body.extend(r2_rules::desired(spec)?);
        Ok(Desired {
            key: key(&spec.name),
            exclusive: true,
            body,
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, scope: &str) -> Result<Listing, Error> {
        Ok(buckets(client, scope).list().await?.iter().map(remote).collect())
    }

    async fn find(&self, client: &Client, scope: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let bucket = found(buckets(client, scope).get(&key.group).await, MISSING)?;
        Ok(bucket.iter().map(remote).collect())
    }

    async fn get(&self, client: &Client, scope: &str, id: &str) -> Result<Option<Remote>, Error> {
        found(whole(buckets(client, scope), id).await, MISSING)
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let body = json!({
            "name": desired.key.group,
            "locationHint": desired.body.get("locationHint"),
            "storageClass": desired.body.get("storageClass"),
        });
        let bucket = buckets(client, site.scope)
            .create(&Value::Object(present(body)))
            .await?;
        let mut remote = remote(&bucket);
        remote.body.extend(r2_rules::of_new_bucket());
        Ok(remote.into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        let buckets = buckets(client, site.scope);
        r2_rules::write(buckets, id, desired, changes).await?;
        let class = changes.iter().find(|change| change.path == "storageClass");
        if let Some(class) = class.and_then(|change| change.to.as_str()) {
            buckets.set_storage_class(id, class).await?;
        }
        Ok(whole(buckets, id).await?.into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        deleted(buckets(client, site.scope).delete(id).await, MISSING)
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        let is_any = |codes: &[i64]| codes.iter().any(|code| error.has_code(*code));
        match error {
            _ if is_any(&[EXISTS]) => Some(Class::Exists),
            _ if is_any(&[NOT_EMPTY]) => Some(Class::Blocked(reasons::BUCKET_NOT_EMPTY)),
            _ if is_any(&[NOT_ENABLED]) => Some(Class::Blocked(reasons::R2_NOT_ENABLED)),
            _ if is_any(&[QUOTA]) => Some(Class::Quota),
            _ if is_any(&INVALID) => Some(Class::Invalid(Reason::INVALID_SPEC)),
            // Accounts were seen that may not change the class although it is documented.
            Error::Api(api) if api.method.as_str() == "PATCH" && matches!(api.status, 405 | 501) => {
                Some(Class::Invalid(reasons::STORAGE_CLASS_NOT_CHANGEABLE))
            }
            _ => None,
        }
    }
}

/// A bucket with its rules: three reads.
async fn whole(buckets: Buckets<'_>, name: &str) -> Result<Remote, Error> {
    let mut remote = remote(&buckets.get(name).await?);
    remote.body.extend(r2_rules::read(buckets, name).await?);
    Ok(remote)
}
