//! The rights that kflare needs, from one table: the same that the cluster tests run with.

use kflare_engine::{Kind, Kinds, kind::ResourceScope};
use serde_json::{Value, json};

/// Manifests by file name.
pub fn manifests() -> Vec<(&'static str, Vec<Value>)> {
    let kinds = kflare_kinds::kinds();
    vec![
        (
            "controller.yaml",
            vec![
                controller(&kinds),
                binding(),
                leader_election(),
                leader_election_binding(),
            ],
        ),
        ("metrics-reader.yaml", vec![metrics_reader()]),
        ("user-roles.yaml", vec![viewer(), editor(&kinds)]),
    ]
}

pub(super) fn cluster_role(name: &str, labels: &Value, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels },
        "rules": rules,
    })
}

pub(super) fn rule(groups: &[&str], resources: &[String], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

pub(super) fn plurals(kinds: &Kinds, suffix: &str) -> Vec<String> {
    kinds
        .iter()
        .map(|kind| format!("{}{suffix}", kind.descriptor().plural))
        .collect()
}

fn controller(kinds: &Kinds) -> Value {
    let group = kflare_api::names::GROUP;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut rules = vec![
        // Patching takes finalizers, labels and annotations; the spec is never written. None is ever read alone.
        rule(&[group], &plurals(kinds, ""), &["list", "watch", "patch"]),
        rule(&[group], &plurals(kinds, "/status"), &["patch"]),
        // Secrets: watched as metadata, read one at a time, those with tokens kept by a finalizer while an account reads them.
        rule(&[""], &words(&["secrets"]), &["get", "list", "watch", "patch"]),
        // ConfigMaps that specs read: watched as metadata, read one at a time.
        rule(&[""], &words(&["configmaps"]), &["get", "list", "watch"]),
        // Labels of namespaces, for spec.allowedNamespaces of accounts.
        rule(&[""], &words(&["namespaces"]), &["list", "watch"]),
        rule(&["events.k8s.io"], &words(&["events"]), &["create"]),
        // Who may read the metrics.
        rule(&["authentication.k8s.io"], &words(&["tokenreviews"]), &["create"]),
        rule(
            &["authorization.k8s.io"],
            &words(&["subjectaccessreviews"]),
            &["create"],
        ),
    ];
    // Secrets that resources yield (the token of a Tunnel). RBAC cannot say "those of a resource of kflare's"; that no other is
    // touched is the engine's promise.
    if kinds.iter().any(Kind::yields_secrets) {
        rules.push(rule(&[""], &words(&["secrets"]), &["create", "delete"]));
    }
    cluster_role("kflare-controller", &json!({}), &rules)
}

fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "kflare-controller" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kflare-controller" },
        "subjects": [service_account()],
    })
}

fn service_account() -> Value {
    json!({ "kind": "ServiceAccount", "name": "kflare", "namespace": "kflare-system" })
}

fn leader_election() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": { "name": "kflare-leader-election", "namespace": "kflare-system" },
        "rules": [{
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "create", "update"],
        }],
    })
}

fn leader_election_binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": { "name": "kflare-leader-election", "namespace": "kflare-system" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kflare-leader-election" },
        "subjects": [service_account()],
    })
}

fn metrics_reader() -> Value {
    let rules = vec![json!({ "nonResourceURLs": ["/metrics"], "verbs": ["get"] })];
    cluster_role("kflare-metrics-reader", &json!({}), &rules)
}

fn viewer() -> Value {
    let labels = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    let rules = vec![rule(
        &[kflare_api::names::GROUP],
        &["*".to_owned()],
        &["get", "list", "watch"],
    )];
    cluster_role("kflare-view", &labels, &rules)
}

/// Accounts are left out: one can point the controller at a Secret in any namespace, so only administrators make them.
fn editor(kinds: &Kinds) -> Value {
    let labels = json!({
        "rbac.authorization.k8s.io/aggregate-to-edit": "true",
        "rbac.authorization.k8s.io/aggregate-to-admin": "true",
    });
    let namespaced: Vec<String> = kinds
        .iter()
        .map(Kind::descriptor)
        .filter(|descriptor| descriptor.resource_scope == ResourceScope::Namespaced)
        .map(|descriptor| descriptor.plural.to_string())
        .collect();
    let verbs = [
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "delete",
        "deletecollection",
    ];
    cluster_role(
        "kflare-edit",
        &labels,
        &[rule(&[kflare_api::names::GROUP], &namespaced, &verbs)],
    )
}
