//! The steps by which a Worker comes to its classes of Durable Objects.

use kube::{KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::tidy;

/// One step. Cloudflare remembers the tag of the last one that it has carried out, and carries none out twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = does_something())]
pub struct WorkerMigration {
    /// Name of the step, such as `v1`.
    #[schemars(length(min = 1, max = 100))]
    pub tag: String,
    /// Classes that come into being, with storage in SQLite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 255)))]
    pub new_sqlite_classes: Vec<String>,
    /// Classes that come into being, with storage of keys and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 255)))]
    pub new_classes: Vec<String>,
    /// Classes that get another name, with all their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub renamed_classes: Vec<RenamedClass>,
    /// Classes that go, **with all their objects and what these have stored**.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 255)))]
    pub deleted_classes: Vec<String>,
}

/// A class that gets another name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RenamedClass {
    /// Its name so far.
    #[schemars(length(min = 1, max = 255))]
    pub from: String,
    /// Its name from then on.
    #[schemars(length(min = 1, max = 255))]
    pub to: String,
}

fn does_something() -> Rule {
    Rule::new(
        "has(self.newSqliteClasses) || has(self.newClasses) || has(self.renamedClasses) || has(self.deletedClasses)",
    )
    .message("a step of spec.migrations makes, renames or deletes at least one class")
}
