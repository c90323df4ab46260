//! What tells things apart: for a resource as for what it manages at Cloudflare, and which belongs to which.

use kflare_api::names;
use serde_json::{Map, Value};

use super::act::Target;
use super::perform::KINDS;
use super::vocabulary::full_name;
use super::{lists, rulesets, stores, transforms, workers};
use crate::simulation::World;

/// The resources of a cluster that name an object.
pub fn askers(world: &World, object: &Value) -> Vec<Value> {
    let identity_wanted = remote_identity(object);
    let id = text(&object["id"]);
    KINDS
        .iter()
        .filter(|plural| **plural != "cloudflareaccounts")
        .flat_map(|plural| world.api.list(&format!("{plural}.{}", names::GROUP)))
        .chain(overtaken(world))
        // A namespace that is still to be renamed is known by its id.
        .filter(|resource| identity(resource) == identity_wanted || recorded_id(resource).as_ref() == Some(&id))
        .collect()
}

/// The resources that users deleted just before they got their first finalizer, which held off nothing. As with all that are
/// deleted, their metadata say when.
fn overtaken(world: &World) -> Vec<Value> {
    let mut all = world.api.overtaken();
    for resource in &mut all {
        resource["metadata"]["deletionTimestamp"] = resource["metadata"]["creationTimestamp"].clone();
    }
    all
}

/// Whether a resource of a cluster has recorded an object.
pub fn is_recorded(world: &World, object: &Value) -> bool {
    let id = text(&object["id"]);
    let askers = askers(world, object);
    askers
        .iter()
        .any(|resource| recorded_id(resource).as_ref() == Some(&id))
}

/// The fields of ids. A record and a route have the ids of themselves and of their zone.
const IDS: [&str; 10] = [
    "recordID",
    "ruleID",
    "routeID",
    "listID",
    "scriptID",
    "zoneID",
    "tunnelID",
    "namespaceID",
    "databaseID",
    "queueID",
];

/// The id that a resource has recorded.
pub fn recorded_id(resource: &Value) -> Option<String> {
    let metadata = &resource["status"]["cloudflareMetadata"];
    if resource["kind"] == "ManagedTransform" {
        return metadata["zoneID"].as_str().map(transforms::id);
    }
    let id = IDS.iter().find_map(|field| metadata[*field].as_str());
    let id = id.or_else(|| metadata["name"].as_str().filter(|_| resource["kind"] == "R2Bucket"));
    id.map(str::to_owned)
}

type Identify = fn(&Value) -> Option<(String, String)>;

/// What tells things of some kinds apart, for a resource as for what it manages.
const IDENTITIES: [Identify; 5] = [
    stores::identity,
    rulesets::identity,
    lists::identity,
    transforms::identity,
    workers::identity,
];

/// Type and full name of what a resource asks for.
pub fn identity(resource: &Value) -> (String, String) {
    if let Some(identity) = IDENTITIES.iter().find_map(|of| of(resource)) {
        return identity;
    }
    let spec = &resource["spec"];
    if resource["kind"] == "Zone" {
        return ("Zone".to_owned(), text(&spec["name"]));
    }
    // A configuration is a part of its tunnel, whose resource has the name of the tunnel.
    if resource["kind"] == "Tunnel" {
        return ("Tunnel".to_owned(), text(&spec["name"]));
    }
    if resource["kind"] == "TunnelConfiguration" {
        return ("Tunnel".to_owned(), text(&spec["tunnelRef"]["name"]));
    }
    (
        text(&spec["type"]),
        full_name(&text(&spec["name"]), &domain_of(resource)),
    )
}

/// The domain of a record resource.
pub fn domain_of(resource: &Value) -> String {
    format!("{}.example", text(&resource["spec"]["zoneRef"]["name"]))
}

/// Type and full name of an object.
pub fn remote_identity(object: &Value) -> (String, String) {
    if let Some(identity) = IDENTITIES.iter().find_map(|of| of(object)) {
        return identity;
    }
    if !object["tun_type"].is_null() {
        ("Tunnel".to_owned(), text(&object["name"]))
    } else if object["zone_id"].is_null() {
        ("Zone".to_owned(), text(&object["name"]))
    } else {
        (text(&object["type"]), text(&object["name"]))
    }
}

/// What a resource is called.
pub fn target_of(resource: &Value) -> Target {
    Target {
        kind: text(&resource["kind"]),
        name: text(&resource["metadata"]["name"]),
    }
}

/// The text in a value; empty if it is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The fields of an object that users see and kflare may set.
pub fn user_fields(object: &Value) -> Map<String, Value> {
    const FIELDS: [&str; 36] = [
        "type",
        "name",
        "content",
        "data",
        "ttl",
        "proxied",
        "priority",
        "comment",
        "tags",
        "settings",
        "title",
        "storage_class",
        "cors",
        "lifecycle",
        "read_replication",
        "ref",
        "action",
        "action_parameters",
        "expression",
        "description",
        "enabled",
        "logging",
        "ratelimit",
        "position",
        "items",
        "transforms",
        "pattern",
        "script",
        "content",
        "compatibility_date",
        "compatibility_flags",
        "observability",
        "placement",
        "limits",
        "schedules",
        "workers_dev",
    ];
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.retain(|field, _| FIELDS.contains(&field.as_str()));
    fields
}
