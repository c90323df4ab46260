//! Settings of a Worker that are neither code nor bindings.

use kube::{KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::tidy;

/// Logs and traces of a Worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerObservability {
    /// Whether Cloudflare keeps logs and traces at all.
    pub enabled: bool,
    /// Share of calls that are looked at, 0 to 1. Unset: left alone, and for a new Worker all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub head_sampling_rate: Option<f64>,
    /// Logs. Unset: left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<WorkerLogs>,
}

/// Logs of a Worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerLogs {
    /// Whether they are kept.
    pub enabled: bool,
    /// Whether each call is logged, besides what the code logs.
    pub invocation_logs: bool,
    /// Share of calls that are logged, 0 to 1. Unset: left alone, and for a new Worker all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub head_sampling_rate: Option<f64>,
    /// Whether they can be looked up later. Unset: left alone, and for a new Worker they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
}

/// Where a Worker runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = one_place())]
pub struct WorkerPlacement {
    /// `smart`: where Cloudflare finds that calls take the least time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PlacementMode>,
    /// Near to a region of a cloud provider, such as `aws:eu-central-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub region: Option<String>,
    /// Near to an HTTP host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub hostname: Option<String>,
    /// Near to a TCP host, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 260))]
    pub host: Option<String>,
}

/// How Cloudflare places a Worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlacementMode {
    /// Where calls take the least time.
    Smart,
}

/// What one call of a Worker may use up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WorkerLimits {
    /// Time on a processor, in milliseconds (paid plan of Workers only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 300_000))]
    pub cpu_ms: Option<i32>,
    /// Requests that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub subrequests: Option<i32>,
}

fn one_place() -> Rule {
    Rule::new("[has(self.mode), has(self.region), has(self.hostname), has(self.host)].exists_one(given, given)")
        .message("set exactly one of mode, region, hostname and host in spec.placement")
}
