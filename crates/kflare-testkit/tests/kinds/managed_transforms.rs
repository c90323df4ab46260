//! Managed transforms: one configuration a zone, and what it does not list keeps its state.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{Fault, FaultMatch, Plan};
use kflare_testkit::memory_api::ObjectId;
use kflare_testkit::memory_api::{Fault as ApiFault, FaultRule};
use kflare_testkit::simulation::NAMESPACE;
use serde_json::{Value, json};

use crate::stage::{
    DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, annotated, in_namespace, object, play_in_zone, zone, zone_id,
};

const SECOND: Duration = Duration::from_secs(1);

const LOCATION: &str = "add_visitor_location_headers";
const SECURITY: &str = "add_security_headers";
const POWERED_BY: &str = "remove_x-powered-by_header";

/// Turns the location headers on or off, and the security headers.
fn manifest(name: &str, location: bool, security: bool) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "ManagedTransform",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "zoneRef": { "name": ZONE },
            "managedRequestHeaders": [{ "id": LOCATION, "enabled": location }],
            "managedResponseHeaders": [{ "id": SECURITY, "enabled": security }],
        },
    })
}

/// The ids of the transforms of the zone that are on.
fn on(stage: &Stage) -> Vec<String> {
    let all = stage.cloudflare.managed_transforms(DOMAIN).unwrap();
    ["managed_request_headers", "managed_response_headers"]
        .iter()
        .flat_map(|list| all[list].as_array().cloned().unwrap())
        .filter(|transform| transform["enabled"] == true)
        .map(|transform| transform["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Somebody else turns a transform of responses on or off.
fn foreign(stage: &Stage, id: &str, enabled: bool) {
    let body = json!({ "managed_response_headers": [{ "id": id, "enabled": enabled }] });
    stage
        .cloudflare
        .foreign_patch_managed_transforms(DOMAIN, object(&body))
        .unwrap();
}

fn one(id: &ObjectId) -> &[ObjectId] {
    std::slice::from_ref(id)
}

#[test]
fn transforms_are_turned_on_and_nothing_is_done_afterwards() {
    play_in_zone(Plan::Free, |stage| async move {
        let mark = stage.mark();
        let id = stage.create(manifest("mt", true, true));
        stage.ready(one(&id)).await;
        assert_eq!(on(&stage), [LOCATION, SECURITY]);
        let status = stage.status(&id);
        let zone = stage.recorded(&zone_id()).unwrap();
        assert_eq!(status["cloudflareMetadata"], json!({ "zoneID": zone }));
        assert_eq!(status["ownership"]["origin"], "Created");
        assert_eq!(stage.metadata(&id)["labels"][names::MANAGED_TRANSFORMS], json!(zone));
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

#[test]
fn drift_of_what_is_listed_is_corrected_and_the_rest_is_left_alone() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(manifest("mt", true, false));
        stage.ready(one(&id)).await;
        stage.rest(MINUTE).await;
        foreign(&stage, POWERED_BY, true);
        foreign(&stage, SECURITY, true);
        stage
            .until("corrected", |stage| on(stage) == [LOCATION, POWERED_BY])
            .await;
        stage
            .until("said so", |stage| stage.told(&id, "DriftCorrected", &[SECURITY]))
            .await;
        assert!(!stage.told(&id, "DriftCorrected", &[POWERED_BY]));
    });
}

// Found by a story: what had been right when it was looked at counted as not taken by Cloudflare, for a day.
#[test]
fn what_somebody_changes_between_look_and_write_is_put_right_soon() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(manifest("mt", false, false));
        stage.ready(one(&id)).await;
        let slow = FaultMatch::route("GET", "/zones/{zone_id}/managed_headers");
        stage.fault_times(slow, Fault::Delay { ms: 5_000 }, 1);
        let security = json!([{ "id": SECURITY, "enabled": true }]);
        stage
            .user
            .edit_spec(&id, &json!({ "managedResponseHeaders": security }));
        stage.rest(2 * SECOND).await;
        let body = json!({ "managed_request_headers": [{ "id": LOCATION, "enabled": true }] });
        stage
            .cloudflare
            .foreign_patch_managed_transforms(DOMAIN, object(&body))
            .unwrap();
        stage.rest(MINUTE).await;
        assert_eq!(on(&stage), [SECURITY]);
        stage.ready(one(&id)).await;
    });
}

#[test]
fn a_zone_with_any_transform_on_is_taken_over_only_on_request() {
    play_in_zone(Plan::Free, |stage| async move {
        foreign(&stage, POWERED_BY, true);
        let mark = stage.mark();
        let id = stage.create(manifest("mt", true, false));
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&id).contains(LOCATION),
            "{}",
            stage.user.message(&id)
        );
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(one(&id)).await;
        assert_eq!(on(&stage), [LOCATION, POWERED_BY]);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Adopted");
        // What was adopted stays.
        stage.user.delete(&id);
        stage.gone(one(&id)).await;
        assert_eq!(on(&stage), [LOCATION, POWERED_BY]);
    });
}

// Found by a story: what was off when kflare looked was turned off again when it wrote.
#[test]
fn what_somebody_turns_on_between_look_and_first_write_is_theirs() {
    for security in [false, true] {
        play_in_zone(Plan::Free, |stage| async move {
            let announced = FaultRule::new(ApiFault::Delay(5 * SECOND), |request| {
                request.name.as_deref() == Some("mt")
            });
            stage.world.api.inject(announced.times(1));
            let id = stage.create(manifest("mt", false, security));
            stage.rest(2 * SECOND).await;
            let body = json!({ "managed_request_headers": [{ "id": LOCATION, "enabled": true }] });
            let theirs = object(&body);
            stage
                .cloudflare
                .foreign_patch_managed_transforms(DOMAIN, theirs)
                .unwrap();
            stage.says(&id, "False", "AlreadyExists").await;
            assert_eq!(on(&stage), [LOCATION]);
        });
    }
}

#[test]
fn one_configures_a_zone_and_others_wait() {
    play_in_zone(Plan::Free, |stage| async move {
        let first = stage.create(manifest("first", true, false));
        stage.ready(one(&first)).await;
        let second = stage.create(adopting(manifest("second", false, true), "adopt-or-create"));
        stage.says(&second, "False", "AlreadyConfigured").await;
        assert!(
            stage.user.message(&second).contains("first"),
            "{}",
            stage.user.message(&second)
        );
        assert_eq!(on(&stage), [LOCATION]);
        // In another namespace, through a resource of its own for the same zone.
        let other_zone = adopting(zone("other", json!({ "name": DOMAIN })), "adopt");
        stage.create(in_namespace(other_zone, "elsewhere"));
        let mut third = in_namespace(manifest("third", false, true), "elsewhere");
        third["spec"]["zoneRef"]["name"] = json!("other");
        let third = stage.create(third);
        stage.rest(HOUR).await;
        assert!(!stage.user.is_ready(&third));
        assert_eq!(on(&stage), [LOCATION]);
        // When the first goes, everything is off, and the second has its turn.
        stage.user.delete(&first);
        stage.gone(one(&first)).await;
        stage.ready(one(&second)).await;
        assert_eq!(on(&stage), [SECURITY]);
    });
}

#[test]
fn a_changed_spec_is_one_call_and_what_is_taken_out_keeps_its_state() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(manifest("mt", true, true));
        stage.ready(one(&id)).await;
        let mark = stage.mark();
        let change =
            json!({ "managedRequestHeaders": [{ "id": LOCATION, "enabled": false }], "managedResponseHeaders": [] });
        stage.user.edit_spec(&id, &change);
        stage.ready(one(&id)).await;
        assert_eq!(on(&stage), [SECURITY]);
        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.cloudflare_writes());
    });
}

#[test]
fn deleting_turns_everything_off_unless_it_is_retained() {
    play_in_zone(Plan::Free, |stage| async move {
        let id = stage.create(manifest("mt", true, false));
        stage.ready(one(&id)).await;
        foreign(&stage, POWERED_BY, true);
        stage.user.delete(&id);
        stage.gone(one(&id)).await;
        assert_eq!(on(&stage), Vec::<String>::new());

        let kept = stage.create(annotated(
            manifest("kept", true, true),
            names::DELETION_POLICY,
            "retain",
        ));
        stage.ready(one(&kept)).await;
        // The zone waits for it.
        stage.user.delete(&zone_id());
        stage
            .until("waits", |stage| stage.user.ready(&zone_id()).1 == "InUse")
            .await;
        stage.user.delete(&kept);
        stage.gone(&[kept, zone_id()]).await;
    });
}

#[test]
fn what_the_zone_does_not_have_or_excludes_is_told_and_not_asked_for_again() {
    play_in_zone(Plan::Free, |stage| async move {
        let mut wrong = manifest("mt", true, true);
        wrong["spec"]["managedRequestHeaders"][0]["id"] = json!("add_true_client_ip_headers");
        let mark = stage.mark();
        let id = stage.create(wrong);
        stage.says(&id, "False", "TerminalError").await;
        assert!(
            stage.user.message(&id).contains("add_true_client_ip_headers"),
            "{}",
            stage.user.message(&id)
        );
        stage.rest(6 * HOUR).await;
        let tries = stage.since(&mark).cloudflare_writes().len();
        assert!(tries <= 3, "{tries} tries in six hours");
        assert_eq!(on(&stage), Vec::<String>::new(), "nothing of it is done");
        // One that is to be off need not exist.
        let off = json!([{ "id": "add_true_client_ip_headers", "enabled": false }]);
        stage.user.edit_spec(&id, &json!({ "managedRequestHeaders": off }));
        stage.ready(one(&id)).await;
        assert_eq!(on(&stage), [SECURITY]);
    });
}
