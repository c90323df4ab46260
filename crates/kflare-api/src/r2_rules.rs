//! The rules of a bucket: CORS and lifecycle.

use kube::{KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::tidy;

/// What browsers may do from some origins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CorsRule {
    /// The origins, such as `https://www.example.com`, or `*` for every one.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 512)))]
    pub allowed_origins: Vec<String>,
    /// The methods that they may use.
    #[schemars(length(min = 1, max = 5))]
    pub allowed_methods: Vec<CorsMethod>,
    /// The request headers that they may send, such as `range` or `x-user-id`. Case does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub allowed_headers: Vec<String>,
    /// The response headers that scripts may read, such as `etag`. Case does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub expose_headers: Vec<String>,
    /// For how many seconds browsers may remember what is allowed: up to 86400. Unset: as browsers choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub max_age_seconds: Option<i32>,
}

/// A method of HTTP that a CORS rule can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CorsMethod {
    /// Read an object.
    Get,
    /// Write an object.
    Put,
    /// Write an object from a form, or in parts.
    Post,
    /// Delete an object.
    Delete,
    /// Read the headers of an object.
    Head,
}

/// What happens to the objects of a bucket, or to those with a prefix, as time passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(
    validation = does_something(),
    validation = one_time("deleteAfter", "deleteOn"),
    validation = one_time("infrequentAccessAfter", "infrequentAccessOn")
)]
pub struct LifecycleRule {
    /// Id of the rule, unique in the bucket.
    #[schemars(length(min = 1, max = 255))]
    pub id: String,
    /// The rule is for objects and uploads whose key begins so. Unset: for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub prefix: Option<String>,
    /// `false`: the rule is kept, and does nothing. Unset: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Objects are deleted at this age, such as `30d`: a number and `s`, `m`, `h` or `d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), regex(pattern = "^[1-9][0-9]{0,8}[smhd]$"))]
    pub delete_after: Option<String>,
    /// Objects are deleted on this day, such as `2027-01-31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), regex(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub delete_on: Option<String>,
    /// Uploads in parts that are not finished at this age are given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), regex(pattern = "^[1-9][0-9]{0,8}[smhd]$"))]
    pub abort_multipart_uploads_after: Option<String>,
    /// Objects move to infrequent access at this age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), regex(pattern = "^[1-9][0-9]{0,8}[smhd]$"))]
    pub infrequent_access_after: Option<String>,
    /// Objects move to infrequent access on this day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), regex(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub infrequent_access_on: Option<String>,
}

fn does_something() -> Rule {
    Rule::new(
        "has(self.deleteAfter) || has(self.deleteOn) || has(self.abortMultipartUploadsAfter) \
         || has(self.infrequentAccessAfter) || has(self.infrequentAccessOn)",
    )
    .message(
        "a rule in spec.lifecycle does nothing: set deleteAfter, deleteOn, abortMultipartUploadsAfter, \
         infrequentAccessAfter or infrequentAccessOn",
    )
}

fn one_time(after: &str, on: &str) -> Rule {
    Rule::new(format!("!has(self.{after}) || !has(self.{on})").as_str())
        .message(format!("a rule in spec.lifecycle has both {after} and {on}: set one of them").as_str())
}
