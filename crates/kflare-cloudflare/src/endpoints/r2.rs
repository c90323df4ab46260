//! R2 buckets.

use http::{HeaderName, Method};
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Client, Error, Paging, Request};

/// The header that every call about buckets has: a bucket of one jurisdiction does not exist in another.
const JURISDICTION: HeaderName = HeaderName::from_static("cf-r2-jurisdiction");
/// The header of the call that changes a storage class.
const STORAGE_CLASS: HeaderName = HeaderName::from_static("cf-r2-storage-class");

/// The jurisdiction of buckets without one, as the header names it.
pub const DEFAULT_JURISDICTION: &str = "default";

/// The code of "this bucket has no CORS rules", with status 404.
const NO_CORS: i64 = 10_059;

/// A bucket. It has no id but its name within its jurisdiction. Lists may say no more than name and date.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Bucket {
    /// The name.
    pub name: String,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub creation_date: Option<Timestamp>,
    /// Where it is: `wnam`, `enam`, `weur`, `eeur`, `apac` or `oc`, in lower or upper case.
    #[serde(default)]
    pub location: Option<String>,
    /// `Standard` or `InfrequentAccess`.
    #[serde(default)]
    pub storage_class: Option<String>,
}

/// A CORS rule, as it goes over the wire. The id that it may have means nothing, and is not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsRule {
    /// What is allowed, and to whom.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub allowed: Allowed,
    /// The response headers that scripts may read.
    #[serde(
        default,
        deserialize_with = "super::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub expose_headers: Vec<String>,
    /// For how many seconds browsers may remember; up to 86,400.
    #[serde(
        default,
        deserialize_with = "super::whole_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_age_seconds: Option<i64>,
}

/// What a CORS rule allows, and to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Origins, or `*`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub origins: Vec<String>,
    /// `GET`, `PUT`, `POST`, `DELETE`, `HEAD`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub methods: Vec<String>,
    /// Request headers.
    #[serde(
        default,
        deserialize_with = "super::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub headers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Rules<T> {
    #[serde(default = "Vec::new", deserialize_with = "super::null_as_default")]
    rules: Vec<T>,
}

const BUCKETS: &str = "/accounts/{account_id}/r2/buckets";
const BUCKET: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}";
const CORS: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/cors";
const LIFECYCLE: &str = "/accounts/{account_id}/r2/buckets/{bucket_name}/lifecycle";

/// Rows of a page of buckets; Cloudflare documents 1,000 as the most.
const PER_PAGE: u32 = 1_000;

/// The buckets of an account in one jurisdiction. Every call names the jurisdiction.
#[derive(Debug, Clone, Copy)]
pub struct Buckets<'a> {
    client: &'a Client,
    account_id: &'a str,
    jurisdiction: &'a str,
}

impl<'a> Buckets<'a> {
    /// The buckets of `jurisdiction`: `eu`, `us`, `fedramp`, `fedramp-high` or [`DEFAULT_JURISDICTION`].
    pub fn new(client: &'a Client, account_id: &'a str, jurisdiction: &'a str) -> Self {
        Self {
            client,
            account_id,
            jurisdiction,
        }
    }

    /// The one place where a request about buckets is made.
    fn request(self, method: Method, route: &'static str, name: Option<&str>) -> Request {
        let segments: Vec<&str> = std::iter::once(self.account_id).chain(name).collect();
        Request::new(method, route, &segments).header(JURISDICTION, self.jurisdiction)
    }

    async fn without_answer(self, request: Request) -> Result<(), Error> {
        self.client.call::<IgnoredAny>(request).await.map(drop)
    }

    /// Every bucket.
    pub async fn list(self) -> Result<Vec<Bucket>, Error> {
        let paging = Paging::CursorFlat {
            size: "per_page",
            rows: PER_PAGE,
            field: Some("buckets"),
        };
        self.client
            .list_pages(self.request(Method::GET, BUCKETS, None), paging)
            .await
    }

    /// One bucket. A missing one is 404 with code 10006.
    pub async fn get(self, name: &str) -> Result<Bucket, Error> {
        self.client.call(self.request(Method::GET, BUCKET, Some(name))).await
    }

    /// Makes a bucket: `name`, and what else it is to have of `locationHint` and `storageClass`. A name that is taken is 409
    /// with code 10004.
    pub async fn create(self, body: &Value) -> Result<Bucket, Error> {
        self.client
            .call(self.request(Method::POST, BUCKETS, None).json(body))
            .await
    }

    /// Sets the storage class of objects to come. It goes in a header, not in a body.
    pub async fn set_storage_class(self, name: &str, class: &str) -> Result<(), Error> {
        let request = self.request(Method::PATCH, BUCKET, Some(name));
        self.without_answer(request.header(STORAGE_CLASS, class)).await
    }

    /// Deletes a bucket. One that holds objects is 409 with code 10008.
    pub async fn delete(self, name: &str) -> Result<(), Error> {
        self.without_answer(self.request(Method::DELETE, BUCKET, Some(name)))
            .await
    }

    /// The CORS rules of a bucket. That there are none comes as an error, and is none here.
    pub async fn cors(self, name: &str) -> Result<Vec<CorsRule>, Error> {
        let request = self.request(Method::GET, CORS, Some(name));
        match self.client.call::<Option<Rules<CorsRule>>>(request).await {
            Ok(rules) => Ok(rules.map(|rules| rules.rules).unwrap_or_default()),
            Err(error) if error.has_code(NO_CORS) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the CORS rules of a bucket with these, each in the form of [`CorsRule`]: at least one.
    pub async fn put_cors(self, name: &str, rules: &[Value]) -> Result<(), Error> {
        let request = self.request(Method::PUT, CORS, Some(name));
        self.without_answer(request.json(&json!({ "rules": rules }))).await
    }

    /// Takes all CORS rules away.
    pub async fn delete_cors(self, name: &str) -> Result<(), Error> {
        self.without_answer(self.request(Method::DELETE, CORS, Some(name)))
            .await
    }

    /// The lifecycle rules of a bucket as Cloudflare sends them, so that a rule that is written back loses nothing. A new
    /// bucket has one already.
    pub async fn lifecycle(self, name: &str) -> Result<Vec<Value>, Error> {
        let request = self.request(Method::GET, LIFECYCLE, Some(name));
        let rules = self.client.call::<Option<Rules<Value>>>(request).await?;
        Ok(rules.map(|rules| rules.rules).unwrap_or_default())
    }

    /// Replaces the lifecycle rules of a bucket. None at all is an empty list: there is no DELETE.
    pub async fn put_lifecycle(self, name: &str, rules: &[Value]) -> Result<(), Error> {
        let request = self.request(Method::PUT, LIFECYCLE, Some(name));
        self.without_answer(request.json(&json!({ "rules": rules }))).await
    }
}
