//! What every custom resource definition must hold, whatever its kind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, wherever it does"
)]

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// A property of a schema, with the path that leads to it.
struct Node<'a> {
    path: String,
    schema: &'a Value,
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let [version] = crd.spec.versions.as_slice() else {
        panic!("one version each")
    };
    serde_json::to_value(
        version
            .schema
            .as_ref()
            .and_then(|it| it.open_api_v3_schema.as_ref())
            .unwrap(),
    )
    .unwrap()
}

fn walk<'a>(path: String, schema: &'a Value, nodes: &mut Vec<Node<'a>>) {
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        walk(format!("{path}.{name}"), property, nodes);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key).filter(|it| it.is_object()) {
            walk(format!("{path}[]"), inner, nodes);
        }
    }
    nodes.push(Node { path, schema });
}

fn every_node(test: impl Fn(&str, &Node<'_>)) {
    for crd in kflare_api::crds() {
        let schema = schema(&crd);
        let mut nodes = Vec::new();
        walk(String::new(), &schema, &mut nodes);
        for node in &nodes {
            test(&crd.spec.names.kind, node);
        }
    }
}

#[test]
fn names_group_and_category_are_those_users_know() {
    let found: Vec<(String, String, String, String)> = kflare_api::crds()
        .iter()
        .map(|crd| {
            let names = &crd.spec.names;
            assert_eq!(crd.spec.group, kflare_api::names::GROUP);
            assert_eq!(crd.spec.versions[0].name, kflare_api::names::VERSION);
            assert_eq!(
                names.categories.as_deref(),
                Some(&[kflare_api::names::CATEGORY.to_owned()][..])
            );
            let short = names.short_names.as_ref().map(|it| it.join(",")).unwrap_or_default();
            (names.kind.clone(), names.plural.clone(), short, crd.spec.scope.clone())
        })
        .collect();
    let expected = [
        ("CloudflareAccount", "cloudflareaccounts", "cfaccount", "Cluster"),
        ("Zone", "zones", "cfzone", "Namespaced"),
        ("DNSRecord", "dnsrecords", "cfrecord", "Namespaced"),
        ("KVNamespace", "kvnamespaces", "cfkv", "Namespaced"),
        ("R2Bucket", "r2buckets", "cfr2", "Namespaced"),
        ("D1Database", "d1databases", "cfd1", "Namespaced"),
        ("Queue", "queues", "cfqueue", "Namespaced"),
        ("WAFCustomRule", "wafcustomrules", "cfwaf", "Namespaced"),
        ("RateLimitRule", "ratelimitrules", "cfratelimit", "Namespaced"),
        ("ManagedRuleset", "managedrulesets", "cfmanaged", "Namespaced"),
        ("TransformRule", "transformrules", "cftransform", "Namespaced"),
        ("RedirectRule", "redirectrules", "cfredirect", "Namespaced"),
        ("CacheRule", "cacherules", "cfcache", "Namespaced"),
        ("ConfigurationRule", "configurationrules", "cfconfig", "Namespaced"),
        ("OriginRule", "originrules", "cforigin", "Namespaced"),
        ("ManagedTransform", "managedtransforms", "cfmt", "Namespaced"),
        ("IPList", "iplists", "cflist", "Namespaced"),
        ("WorkerScript", "workerscripts", "cfworker", "Namespaced"),
        ("WorkerRoute", "workerroutes", "cfroute", "Namespaced"),
        ("Tunnel", "tunnels", "cftunnel", "Namespaced"),
        (
            "TunnelConfiguration",
            "tunnelconfigurations",
            "cftunnelconfig",
            "Namespaced",
        ),
    ]
    .map(|(kind, plural, short, scope)| (kind.into(), plural.into(), short.into(), scope.into()));
    assert_eq!(found, expected);
}

// Field case 150.
#[test]
fn a_definition_fits_into_the_annotation_of_client_side_apply() {
    for crd in kflare_api::crds() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < 200_000, "{} has {size} bytes", crd.spec.names.kind);
    }
}

#[test]
fn every_kind_has_a_status_subresource_and_the_common_columns() {
    for crd in kflare_api::crds() {
        let version = &crd.spec.versions[0];
        assert!(
            version.subresources.as_ref().is_some_and(|it| it.status.is_some()),
            "{}",
            crd.spec.names.kind
        );
        let columns = version.additional_printer_columns.as_ref().unwrap();
        let names: Vec<(&str, i32)> = columns
            .iter()
            .map(|it| (it.name.as_str(), it.priority.unwrap_or_default()))
            .collect();
        assert!(names.ends_with(&[("Ready", 0), ("Reason", 1), ("Age", 0)]), "{names:?}");
    }
}

#[test]
fn schemas_are_structural_and_know_no_null() {
    every_node(|kind, node| {
        // kube makes status itself nullable; nothing in it is.
        let nullable = if node.path == ".status" { None } else { Some("nullable") };
        for banned in ["$ref", "oneOf", "anyOf", "allOf", "not"].into_iter().chain(nullable) {
            assert!(node.schema.get(banned).is_none(), "{kind}{}: {banned}", node.path);
        }
        assert!(
            node.schema.get("type").is_some_and(Value::is_string),
            "{kind}{}: no type",
            node.path
        );
        if node.schema["type"] == "array" {
            assert!(node.schema.get("items").is_some(), "{kind}{}: no items", node.path);
        }
    });
}

#[test]
fn conditions_merge_by_type() {
    every_node(|kind, node| {
        if node.path == ".status.conditions" {
            assert_eq!(node.schema["x-kubernetes-list-type"], "map", "{kind}");
            assert_eq!(
                node.schema["x-kubernetes-list-map-keys"],
                serde_json::json!(["type"]),
                "{kind}"
            );
        }
    });
    for crd in kflare_api::crds() {
        let status = schema(&crd)["properties"]["status"]["properties"].clone();
        let fields: BTreeSet<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
        let common = ["conditions", "contested", "lastReconcileAt", "ownership", "plan"];
        assert!(
            common.iter().all(|it| fields.contains(it)),
            "{}: {fields:?}",
            crd.spec.names.kind
        );
    }
}

/// Unbounded text makes the API server refuse a rule as too costly.
#[test]
fn everything_in_a_spec_with_rules_is_bounded() {
    every_node(|kind, node| {
        if !node.path.starts_with(".spec") || node.path.starts_with(".spec.allowedNamespaces") {
            return;
        }
        let bound = match node.schema["type"].as_str() {
            Some("string") => node.schema.get("maxLength").or_else(|| node.schema.get("enum")),
            Some("array") => node.schema.get("maxItems"),
            Some("object") => node
                .schema
                .get("properties")
                .or_else(|| node.schema.get("maxProperties")),
            _ => return,
        };
        assert!(bound.is_some(), "{kind}{}: no bound", node.path);
    });
}

#[test]
fn every_rule_says_which_field_and_what_to_do() {
    every_node(|kind, node| {
        for rule in node
            .schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let message = rule["message"].as_str().unwrap_or_default();
            assert!(message.contains("spec."), "{kind}{}: {rule}", node.path);
            assert!(!message.contains('\n'), "{kind}{}: {rule}", node.path);
        }
    });
}

#[test]
fn every_field_that_users_see_is_explained_in_a_few_words() {
    every_node(|kind, node| {
        let own = !node.path.contains("allowedNamespaces") && !node.path.contains("conditions");
        if own && !node.path.is_empty() && !node.path.ends_with("[]") && node.path != ".spec.data" {
            let text = node
                .schema
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let short = !text.is_empty() && text.len() <= 400 && !text.contains('\n');
            assert!(short, "{kind}{}: {text:?}", node.path);
        }
    });
}

#[test]
fn the_api_server_fills_in_stable_defaults_only() {
    let defaults = std::cell::RefCell::new(BTreeSet::new());
    every_node(|kind, node| {
        if let Some(value) = node.schema.get("default") {
            defaults.borrow_mut().insert(format!("{kind}{} = {value}", node.path));
        }
    });
    let expected = [
        "CloudflareAccount.spec.tokenSecretRef.key = \"CF_API_TOKEN\"",
        "WorkerScript.spec.format = \"module\"",
        "TunnelConfiguration.spec.defaultService = \"http_status:404\"",
        "Zone.spec.type = \"full\"",
        "WAFCustomRule.spec.enabled = true",
        "RateLimitRule.spec.enabled = true",
        "ManagedRuleset.spec.enabled = true",
        "ManagedRuleset.spec.expression = \"true\"",
        "TransformRule.spec.enabled = true",
        "RedirectRule.spec.enabled = true",
        "RedirectRule.spec.fromValue.preserveQueryString = false",
        "RedirectRule.spec.fromValue.statusCode = 301",
        "CacheRule.spec.enabled = true",
        "ConfigurationRule.spec.enabled = true",
        "OriginRule.spec.enabled = true",
    ];
    assert_eq!(defaults.into_inner(), expected.into_iter().map(str::to_owned).collect());
}

#[test]
fn every_format_is_one_that_the_api_server_knows() {
    // It warns of others whenever the CRD is applied.
    let known = [
        "int32",
        "int64",
        "double",
        "float",
        "date-time",
        "date",
        "byte",
        "duration",
        "uri",
    ];
    every_node(|kind, node| {
        let format = node.schema.get("format").and_then(Value::as_str);
        assert!(
            format.is_none_or(|it| known.contains(&it)),
            "{kind}{}: {format:?}",
            node.path
        );
    });
}
