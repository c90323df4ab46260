//! `WorkerScript`: a Worker, its code and what it is bound to.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{CommonStatus, ResourceRef},
    schema::{forbids, immutable, requires, tidy},
    worker_binding::WorkerBinding,
    worker_migration::WorkerMigration,
    worker_module::{ConfigMapKeyRef, MAX_CODE, WorkerModule},
    worker_settings::{WorkerLimits, WorkerObservability, WorkerPlacement},
};

/// What the user wants of a Worker.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "WorkerScript",
    plural = "workerscripts",
    shortname = "cfworker",
    category = "kflare",
    namespaced,
    status = "WorkerScriptStatus",
    derive = "PartialEq",
    doc = "A Worker: its code, its bindings and when it runs. Uploading makes a new version and deploys it at once. Deleting a Worker deletes the routes that lead to it.",
    printcolumn(name = "Worker", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Modified",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.modifiedOn",
        priority = 1
    ),
    printcolumn(
        name = "Etag",
        type_ = "string",
        json_path = ".status.cloudflareMetadata.etag",
        priority = 1
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(
    validation = one_source(),
    validation = modules_and_main_module(),
    validation = main_module_is_there(),
    validation = service_workers_are_one_script()
)]
pub struct WorkerScriptSpec {
    /// The `CloudflareAccount` that the Worker belongs to. Cannot be changed.
    #[x_kube(validation = immutable("spec.accountRef"))]
    pub account_ref: ResourceRef,
    /// Name of the Worker, unique in its account: up to 63 lower-case letters, digits, `-` and `_`, with a letter or digit at
    /// either end. Cannot be changed.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$"))]
    #[x_kube(validation = immutable("spec.name"))]
    pub name: String,
    /// The code, where it is one file of JavaScript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_CODE))]
    pub script: Option<String>,
    /// The code, as a key of a ConfigMap in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_config_map_ref: Option<ConfigMapKeyRef>,
    /// The code, where it is several modules. Needs `mainModule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub modules: Option<Vec<WorkerModule>>,
    /// Name of the module that is run: an ES module or Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub main_module: Option<String>,
    /// `module`: the code exports its handlers. `serviceWorker`: one script that adds event listeners.
    #[serde(default)]
    pub format: WorkerFormat,
    /// Date whose behaviour of the runtime the Worker has, such as `2026-01-31`. Unset: left alone, and for a new
    /// Worker Cloudflare's oldest, 2021-11-02.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), regex(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub compatibility_date: Option<String>,
    /// Flags that switch single changes of the runtime on or off. All of them: others are taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 100)))]
    pub compatibility_flags: Vec<String>,
    /// What the Worker is bound to, by the name that the code uses. All of it: other bindings are taken away, but for secrets with
    /// `keepSecrets`. Unset: what it is bound to is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub bindings: Option<Vec<WorkerBinding>>,
    /// The steps by which the Worker comes to its classes of Durable Objects, oldest first. Those after the tag that Cloudflare
    /// remembers are carried out with the next upload; new ones belong at the end, and one that was carried out is never carried out
    /// again, or taken back. Unset: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["tag".into()]))]
    pub migrations: Option<Vec<WorkerMigration>>,
    /// `true`: secrets that others gave the Worker, with `wrangler secret put` for instance, stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_secrets: bool,
    /// Logs and traces. Unset: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observability: Option<WorkerObservability>,
    /// Where the Worker runs. Unset: left alone, and for a new Worker near to who calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<WorkerPlacement>,
    /// What one call may use up. Unset: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<WorkerLimits>,
    /// When the Worker is run by itself, as cron expressions in UTC. An empty list: never. Unset: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 250), inner(length(min = 9, max = 100)))]
    pub schedules: Option<Vec<String>>,
    /// Whether the Worker answers on workers.dev. Unset: left alone, and off for a new Worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_dev: Option<bool>,
}

/// How the code of a Worker is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkerFormat {
    /// It exports its handlers.
    #[default]
    Module,
    /// It adds event listeners.
    ServiceWorker,
}

/// What kflare found out about the Worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerScriptStatus {
    /// What every kind reports.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The Worker as Cloudflare reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloudflare_metadata: Option<WorkerScriptMetadata>,
}

/// The Worker as Cloudflare reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerScriptMetadata {
    /// Id of the Worker, which outlives uploads: 32 hexadecimal digits.
    #[serde(default, rename = "scriptID", skip_serializing_if = "Option::is_none")]
    pub script_id: Option<String>,
    /// Name of the Worker in its account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_name: Option<String>,
    /// Cloudflare's hash of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// When the Worker was last changed, as precisely as Cloudflare says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_on: Option<String>,
}

fn one_source() -> Rule {
    Rule::new("[has(self.script), has(self.scriptConfigMapRef), has(self.modules)].exists_one(given, given)")
        .message("set exactly one of spec.script, spec.scriptConfigMapRef and spec.modules")
}

fn modules_and_main_module() -> Rule {
    requires(
        "has(self.modules) == has(self.mainModule)".into(),
        ".mainModule",
        "spec.mainModule names one of spec.modules: set both or neither",
    )
}

fn main_module_is_there() -> Rule {
    requires(
        "!has(self.modules) || !has(self.mainModule) || self.modules.exists(module, module.name == self.mainModule \
         && module.type in ['esModule', 'python'])"
            .into(),
        ".mainModule",
        "spec.mainModule must be the name of one of spec.modules, of type esModule or python",
    )
}

fn service_workers_are_one_script() -> Rule {
    forbids(
        "!has(self.modules) || self.format == 'module'".into(),
        ".modules",
        "spec.modules needs spec.format module: a service worker is one script",
    )
}
