//! What a person needs to see when a scenario fails.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Event;
use kube::api::{DynamicObject, ListParams};
use kube::core::discovery::Scope;
use kube::{Api, Client, ResourceExt};

/// The group whose objects are shown.
const GROUP: &str = "kflare.dev";

/// The events of a namespace and, of each kflare object in it or cluster-scoped, its metadata that matters and its
/// status. What cannot be read is said in its place.
pub async fn diagnose(client: &Client, namespace: &str) -> String {
    let mut report = String::new();
    match events(client, namespace).await {
        Ok(events) => report.push_str(&events),
        Err(error) => drop(writeln!(report, "events cannot be listed: {error}")),
    }
    match objects(client, namespace).await {
        Ok(objects) => report.push_str(&objects),
        Err(error) => drop(writeln!(report, "objects of {GROUP} cannot be listed: {error}")),
    }
    report
}

async fn events(client: &Client, namespace: &str) -> Result<String, kube::Error> {
    let events = Api::<Event>::namespaced(client.clone(), namespace)
        .list(&ListParams::default())
        .await?;
    let mut report = format!("events in {namespace}: {}\n", events.items.len());
    for event in events {
        let about = &event.involved_object;
        let _ = writeln!(
            report,
            "  {} {} {}/{}: {}",
            event.type_.as_deref().unwrap_or("?"),
            event.reason.as_deref().unwrap_or("?"),
            about.kind.as_deref().unwrap_or("?"),
            about.name.as_deref().unwrap_or("?"),
            event.message.as_deref().unwrap_or(""),
        );
    }
    Ok(report)
}

async fn objects(client: &Client, namespace: &str) -> Result<String, kube::Error> {
    let group = match kube::discovery::group(client, GROUP).await {
        Err(kube::Error::Discovery(kube::error::DiscoveryError::MissingApiGroup(_))) => {
            return Ok(format!("the API group {GROUP} is not installed\n"));
        }
        group => group?,
    };
    let mut resources = group.recommended_resources();
    resources.sort_by(|(left, _), (right, _)| left.kind.cmp(&right.kind));
    let mut report = String::new();
    for (resource, capabilities) in resources {
        let api: Api<DynamicObject> = match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(client.clone(), &resource),
        };
        for object in api.list(&ListParams::default()).await? {
            let meta = &object.metadata;
            let _ = writeln!(
                report,
                "{} {}: generation {}, finalizers {:?}{}\n  labels {:?}\n  annotations {:?}\n  status {}",
                resource.kind,
                object.name_any(),
                meta.generation.unwrap_or_default(),
                meta.finalizers.as_deref().unwrap_or_default(),
                if meta.deletion_timestamp.is_some() {
                    ", being deleted"
                } else {
                    ""
                },
                object.labels(),
                object.annotations(),
                object
                    .data
                    .get("status")
                    .map_or_else(|| "none".to_owned(), |status| format!("{status:#}")),
            );
        }
    }
    Ok(report)
}
