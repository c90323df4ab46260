//! What makes kube-state-metrics tell the condition of each resource, and the rights that it needs for that.

use serde_json::{Value, json};

use super::rbac;

/// Its configuration: every kind of the group, whichever there are.
pub fn config() -> Value {
    let of_conditions = |labels: Value| json!({ "path": ["status", "conditions"], "labelsFromPath": labels });
    let mut since = of_conditions(json!({ "type": ["type"] }));
    since["valueFrom"] = json!(["lastTransitionTime"]);
    json!({
        "kind": "CustomResourceStateMetrics",
        "spec": { "resources": [{
            "groupVersionKind": { "group": kflare_api::names::GROUP, "version": kflare_api::names::VERSION, "kind": "*" },
            "metricNamePrefix": "kflare_resource",
            "labelsFromPath": { "namespace": ["metadata", "namespace"], "name": ["metadata", "name"] },
            "metrics": [
                {
                    "name": "condition_info",
                    "help": "1 for each condition of a resource, with its status and reason.",
                    "each": {
                        "type": "Info",
                        "info": of_conditions(json!({ "type": ["type"], "status": ["status"], "reason": ["reason"] })),
                    },
                },
                {
                    "name": "condition_last_transition_seconds",
                    "help": "When the status of a condition last changed, in seconds since 1970.",
                    "each": { "type": "Gauge", "gauge": since },
                },
            ],
        }] },
    })
}

/// The rights that it needs: to see the kinds, and which there are.
pub fn role() -> Value {
    let definitions = ["customresourcedefinitions".to_owned()];
    let verbs = ["list", "watch"];
    rbac::cluster_role(
        "kflare-kube-state-metrics",
        &json!({}),
        &[
            rbac::rule(
                &[kflare_api::names::GROUP],
                &rbac::plurals(&kflare_kinds::kinds(), ""),
                &verbs,
            ),
            rbac::rule(&["apiextensions.k8s.io"], &definitions, &verbs),
        ],
    )
}
