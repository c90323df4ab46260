//! Answers to `/version`, `/api`, `/apis` and below. Aggregated discovery is not offered; clients fall back.

use std::collections::BTreeMap;

use kube::core::Status;
use kube::core::discovery::Scope;
use serde_json::{Value, json};

use super::refusal;
use super::resource::{ResourceType, StatusEndpoint};
use super::route::Route;

pub(super) fn answer(route: &Route, resources: &[ResourceType]) -> Result<Value, Box<Status>> {
    match route {
        Route::Version => Ok(version()),
        Route::CoreVersions => Ok(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        Route::Groups => Ok(groups(resources)),
        Route::Resources { group, version } => served(resources, group, version),
        Route::Resource(_) => Err(refusal::unknown_path()),
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.0+memory", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    })
}

fn groups(resources: &[ResourceType]) -> Value {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in resources.iter().filter(|resource| !resource.group.is_empty()) {
        let known = versions.entry(&resource.group).or_default();
        if !known.contains(&resource.version.as_str()) {
            known.push(&resource.version);
        }
    }
    let groups = versions.into_iter().map(|(group, versions)| {
        let versions: Vec<Value> = versions
            .into_iter()
            .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
            .collect();
        json!({"name": group, "preferredVersion": versions[0], "versions": versions})
    });
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Vec<_>>()})
}

fn served(resources: &[ResourceType], group: &str, version: &str) -> Result<Value, Box<Status>> {
    let mut listed = Vec::new();
    let mut group_version = None;
    for resource in resources
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
    {
        group_version = Some(resource.api_version());
        let namespaced = resource.scope == Scope::Namespaced;
        listed.push(json!({
            "name": resource.plural, "singularName": resource.kind.to_lowercase(), "namespaced": namespaced,
            "kind": resource.kind,
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        }));
        if resource.status == StatusEndpoint::Served {
            listed.push(json!({
                "name": format!("{}/status", resource.plural), "singularName": "", "namespaced": namespaced,
                "kind": resource.kind, "verbs": ["get", "patch", "update"],
            }));
        }
    }
    let group_version = group_version.ok_or_else(refusal::unknown_path)?;
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}))
}
