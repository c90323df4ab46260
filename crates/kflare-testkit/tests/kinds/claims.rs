//! One remote object has one manager. Field cases 130, 157.

use kflare_api::names;
use kflare_sim::Plan;
use kflare_testkit::{memory_api::ObjectId, simulation::NAMESPACE};
use serde_json::{Value, json};

use crate::stage::{
    DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, annotated, in_namespace, play_in_zone, record, zone, zone_id,
};

fn spec() -> Value {
    json!({ "name": "x", "type": "CNAME", "content": "a.example.net" })
}

/// The second says who holds the object, and nothing is written on its behalf, ever.
async fn assert_second(stage: &Stage, id: &ObjectId, holder: &str) {
    stage.says(id, "False", "AlreadyClaimed").await;
    assert!(stage.user.message(id).contains(holder), "{}", stage.user.message(id));
    let mark = stage.mark();
    stage.rest(6 * HOUR).await;
    stage.since(&mark).assert_no_write();
    assert_eq!(stage.user.ready(id).1, "AlreadyClaimed");
    assert_eq!(stage.recorded(id), None);
}

// Field case 157.
#[test]
fn the_second_resource_for_a_record_waits_whatever_its_policy() {
    for policy in ["", "adopt", "adopt-or-create", "adopt-if-matching"] {
        play_in_zone(Plan::Pro, |stage| async move {
            let first = stage.record("first", spec());
            stage.ready(std::slice::from_ref(&first)).await;
            // Of an alias there is one a name, so another target makes no difference.
            let other = json!({ "name": "X.example.com.", "type": "CNAME", "content": "b.example.net", "ttl": 300 });
            let second = stage.create(adopting(record("second", other), policy));
            assert_second(&stage, &second, "team/first").await;
            assert_eq!(stage.records()[0]["content"], "a.example.net");
            assert!(stage.user.is_ready(&first));
        });
    }
}

/// Field case 5: several spellings of one name are one record.
#[test]
fn spellings_of_one_name_are_one_record() {
    let sets: [&[&str]; 2] = [
        &["www", "WWW", "www.example.com", "www.example.com."],
        &["@", "example.com", "Example.COM."],
    ];
    for names in sets {
        play_in_zone(Plan::Pro, |stage| async move {
            let spec = |name: &str| json!({ "name": name, "type": "A", "content": "192.0.2.1" });
            let first = stage.record("r0", spec(names[0]));
            stage.ready(std::slice::from_ref(&first)).await;
            for (row, name) in names.iter().enumerate().skip(1) {
                let id = stage.record(&format!("r{row}"), spec(name));
                stage.says(&id, "False", "AlreadyClaimed").await;
            }
            assert_eq!(stage.records().len(), 1);
            let mark = stage.mark();
            stage.rest(6 * HOUR).await;
            stage.since(&mark).assert_no_cloudflare_write();
        });
    }
}

// Field case 157.
#[test]
fn two_resources_that_adopt_one_record_at_once_do_not_both_get_it() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage.foreign(&json!({ "name": "x", "type": "CNAME", "content": "old.example.net" }));
        let ids = ["one", "two"].map(|name| {
            let mut spec = spec();
            spec["content"] = json!(format!("{name}.example.net"));
            stage.create(adopting(record(name, spec), "adopt"))
        });
        stage
            .until("one of them is Ready", |stage| {
                ids.iter().any(|id| stage.user.is_ready(id))
            })
            .await;
        stage.rest(HOUR).await;
        let ready: Vec<_> = ids.iter().filter(|id| stage.user.is_ready(id)).collect();
        assert_eq!(ready.len(), 1);
        assert_eq!(stage.recorded(ready[0]), Some(existing.clone()));
        let other = ids.iter().find(|id| *id != ready[0]).unwrap();
        assert_second(&stage, other, &ready[0].name).await;
        assert_eq!(
            stage.remote(&existing)["content"],
            format!("{}.example.net", ready[0].name)
        );
    });
}

#[test]
fn two_resources_that_create_one_record_at_once_make_one() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids =
            ["one", "two"].map(|name| stage.record(name, json!({ "name": "x", "type": "A", "content": "192.0.2.1" })));
        stage
            .until("one of them is Ready", |stage| {
                ids.iter().any(|id| stage.user.is_ready(id))
            })
            .await;
        stage.rest(12 * HOUR).await;
        let ready = ids.iter().filter(|id| stage.user.is_ready(id)).count();
        assert_eq!((ready, stage.records().len()), (1, 1));
        let other = ids.iter().find(|id| !stage.user.is_ready(id)).unwrap();
        assert_eq!(stage.user.ready(other).1, "AlreadyClaimed");
    });
}

#[test]
fn the_second_takes_the_place_of_the_first_by_its_own_policy() {
    for (retain, policy, reason, origin) in [
        (false, "", "Synced", "Created"),
        (false, "adopt", "NothingToAdopt", ""),
        (true, "", "AlreadyExists", ""),
        (true, "adopt", "Synced", "Adopted"),
    ] {
        play_in_zone(Plan::Pro, |stage| async move {
            let mut first = record("first", spec());
            if retain {
                first = annotated(first, names::DELETION_POLICY, "retain");
            }
            let first = stage.create(first);
            stage.ready(std::slice::from_ref(&first)).await;
            let held = stage.recorded(&first).unwrap();
            let second = stage.create(adopting(record("second", spec()), policy));
            stage.says(&second, "False", "AlreadyClaimed").await;
            stage.user.delete(&first);
            stage.gone(&[first]).await;
            let asked = stage.seconds();
            stage
                .until("the second moves up", |stage| stage.user.ready(&second).1 == reason)
                .await;
            assert!(stage.seconds() - asked < 60, "at once, not by polling");
            assert_eq!(
                stage.status(&second)["ownership"]["origin"]
                    .as_str()
                    .unwrap_or_default(),
                origin
            );
            let kept = stage.records().iter().any(|it| it["id"] == held.as_str());
            assert_eq!(kept, retain, "{policy}");
        });
    }
}

/// A manifest that was copied from the cluster, its marks and all.
#[test]
fn a_copied_claim_label_steals_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        let original = stage.record("original", spec());
        stage.ready(std::slice::from_ref(&original)).await;
        let held = stage.recorded(&original).unwrap();
        let mut copy = record("a-copy", spec());
        copy["metadata"]["labels"] = json!({ (names::RECORD_ID): held });
        copy["metadata"]["finalizers"] = json!([names::FINALIZER]);
        copy["metadata"]["annotations"] = json!({ (names::ADOPTED): "true", (names::ADOPTION_POLICY): "adopt" });
        let copy = stage.create(copy);
        assert_second(&stage, &copy, "team/original").await;
        assert!(stage.user.is_ready(&original));
        // Deleting the copy does no harm.
        let mark = stage.mark();
        stage.user.delete(&copy);
        stage.gone(&[copy]).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(stage.remote(&held)["content"], "a.example.net");
    });
}

#[test]
fn a_copied_label_gives_way_to_the_own_record() {
    play_in_zone(Plan::Pro, |stage| async move {
        let original = stage.record("original", spec());
        stage.ready(std::slice::from_ref(&original)).await;
        let held = stage.recorded(&original).unwrap();
        let mut copy = record(
            "copy",
            json!({ "name": "y", "type": "CNAME", "content": "a.example.net" }),
        );
        copy["metadata"]["labels"] = json!({ (names::RECORD_ID): held });
        let copy = stage.create(copy);
        stage.ready(std::slice::from_ref(&copy)).await;
        let own = stage.recorded(&copy).unwrap();
        assert_ne!(own, held);
        assert_eq!(stage.metadata(&copy)["labels"][names::RECORD_ID], json!(own));
    });
}

#[test]
fn a_zone_in_another_namespace_does_not_share_the_zone() {
    play_in_zone(Plan::Pro, |stage| async move {
        let first = stage.record("x", spec());
        stage.ready(std::slice::from_ref(&first)).await;
        let second = stage.create(in_namespace(
            adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"),
            "other",
        ));
        let inside = stage.create(in_namespace(adopting(record("x", spec()), "adopt"), "other"));
        stage.says(&inside, "False", "ZoneNotReady").await;
        // The child looks again at why its zone is not ready.
        stage.rest(12 * MINUTE).await;
        assert_second(&stage, &second, &format!("{NAMESPACE}/{ZONE}")).await;
        let mark = stage.mark();
        stage.user.delete(&inside);
        stage.user.delete(&second);
        stage.gone(&[inside, second]).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert!(stage.user.is_ready(&zone_id()) && stage.user.is_ready(&first));
    });
}

#[test]
fn a_restart_does_not_change_who_holds_what() {
    play_in_zone(Plan::Pro, |stage| async move {
        // The younger one sorts first.
        let first = stage.record("z-first", spec());
        stage.ready(std::slice::from_ref(&first)).await;
        let second = stage.create(adopting(record("a-second", spec()), "adopt"));
        stage.says(&second, "False", "AlreadyClaimed").await;
        let mark = stage.mark();
        stage.start_with("another", kflare_testkit::simulation::ControllerOptions::default());
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();
        assert!(stage.user.is_ready(&first) && stage.user.ready(&second).1 == "AlreadyClaimed");
    });
}

/// `kubectl replace` takes away what kflare has put on a resource. It is back before anybody can delete the resource without a trace.
#[test]
fn what_is_stripped_off_a_resource_is_put_back_at_once() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(MINUTE).await;
        let whole = stage.metadata(&id);
        for field in ["finalizers", "labels"] {
            stage
                .user
                .edit(&id, |object| object["metadata"][field] = serde_json::Value::Null);
            let back = |stage: &Stage| stage.metadata(&id)[field] == whole[field];
            stage.until_within(field, MINUTE / 6, back).await;
        }
        stage.user.edit(&id, |object| {
            object["metadata"]["finalizers"] = serde_json::Value::Null;
            object["metadata"]["labels"] = serde_json::Value::Null;
        });
        stage.rest(MINUTE).await;
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert!(stage.records().is_empty());
    });
}

/// Also where nothing else can be done for the resource just now.
#[test]
fn a_finalizer_is_put_back_whatever_else_stands_in_the_way() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(MINUTE).await;
        stage.fault(
            kflare_sim::FaultMatch::path("GET", "dns_records"),
            crate::stage::status(503, 1000),
        );
        stage.user.edit(&id, |object| {
            object["metadata"]["finalizers"] = serde_json::Value::Null;
            object["spec"]["ttl"] = json!(300);
        });
        let back = |stage: &Stage| !stage.metadata(&id)["finalizers"].is_null();
        stage.until_within("put back", MINUTE / 6, back).await;
        stage.cloudflare.clear_faults();
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert!(stage.records().is_empty());
    });
}
