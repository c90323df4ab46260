//! What holds of every object at the end of every story.

use k8s_openapi::api::core::v1::Event;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::tenant::{Kind, Tenant};

/// Field manager of kflare's writes.
pub const MANAGER: &str = "kflare";

/// Checks that kflare wrote nothing but what it may, that conditions are well-formed, and that no token shows.
pub async fn check(tenant: &Tenant<'_>) {
    let secrets = tenant.token_values();
    let clean = |what: &str, text: &str| {
        let shows = secrets.iter().any(|secret| text.contains(secret));
        assert!(!shows, "{what} shows a token");
    };
    for kind in Kind::ALL {
        for object in objects(tenant, kind).await {
            let what = format!("{kind:?} {}", object.name_any());
            if let Some(wanted) = tenant.spec_of(&object) {
                assert_eq!(object.data["spec"], wanted, "the spec of {what} is the user's alone");
            }
            let foreign = foreign_fields(&object);
            assert!(foreign.is_empty(), "kflare wrote {foreign:?} of {what}");
            conditions(&what, &object);
            clean(&what, &serde_json::to_string(&object).unwrap());
        }
    }
    let mut events: Vec<Event> = Vec::new();
    for namespace in [tenant.home(), "default"] {
        let api: Api<Event> = Api::namespaced(tenant.client().clone(), namespace);
        events.extend(api.list(&ListParams::default()).await.unwrap());
    }
    for event in events {
        clean("an Event", &serde_json::to_string(&event).unwrap());
    }
}

async fn objects(tenant: &Tenant<'_>, kind: Kind) -> Vec<DynamicObject> {
    let api = tenant.api(kind);
    match kind {
        Kind::Account => api.get_opt(&tenant.account).await.unwrap().into_iter().collect(),
        _ => api.list(&ListParams::default()).await.unwrap().items,
    }
}

/// The fields that kflare wrote although it may write only its finalizer, its labels and annotations, and status.
pub fn foreign_fields(object: &DynamicObject) -> Vec<String> {
    let mut foreign = Vec::new();
    for entry in object.managed_fields() {
        if entry.manager.as_deref() != Some(MANAGER) {
            continue;
        }
        let fields = entry.fields_v1.as_ref().map(|it| it.0.clone()).unwrap_or_default();
        let mut paths = Vec::new();
        leaves(&fields, "", &mut paths);
        let allowed: &[&str] = match entry.subresource.as_deref() {
            Some("status") => &["f:status"],
            _ => &[
                "f:metadata/f:finalizers",
                "f:metadata/f:labels/f:kflare.dev/",
                "f:metadata/f:annotations/f:kflare.dev/",
            ],
        };
        // A map without keys of ours is left when we have taken the last one out. It is in nobody's way.
        let is_empty_map = |path: &str| matches!(path, "f:metadata/f:labels" | "f:metadata/f:annotations");
        paths.retain(|path| !is_empty_map(path) && !allowed.iter().any(|prefix| path.starts_with(prefix)));
        foreign.extend(paths);
    }
    foreign
}

/// The paths of a `fieldsV1`. `.` marks that the parent itself was made, which says nothing by itself.
fn leaves(fields: &Value, path: &str, found: &mut Vec<String>) {
    let Some(children) = fields.as_object().filter(|it| !it.is_empty()) else {
        found.push(path.to_owned());
        return;
    };
    for (name, child) in children {
        if name != "." {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            leaves(child, &path, found);
        }
    }
}

fn conditions(what: &str, object: &DynamicObject) {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        assert!(
            matches!(text("status"), "True" | "False" | "Unknown"),
            "{what}: {condition}"
        );
        let reason = text("reason");
        let camel_case =
            reason.starts_with(|c: char| c.is_ascii_uppercase()) && reason.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(camel_case, "{what}: {condition}");
        assert!(
            !text("message").is_empty() && !text("message").contains('\n'),
            "{what}: {condition}"
        );
        assert!(condition["observedGeneration"].is_i64(), "{what}: {condition}");
        text("lastTransitionTime").parse::<jiff::Timestamp>().unwrap();
    }
}
