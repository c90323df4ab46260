//! What exists already is taken only when asked for, and told apart from its neighbours. Field cases 24, 129, 158.

use kflare_api::names;
use kflare_sim::{Plan, RecordSeed, ZoneSeed};
use kflare_testkit::{memory_api::ObjectId, simulation::ACCOUNT_ID};
use serde_json::{Map, Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, play, play_in_zone, record, zone, zone_id};

fn a(content: &str) -> Value {
    json!({ "name": "x", "type": "A", "content": content })
}

/// Nothing of ours is on a resource that manages nothing.
fn assert_unmarked(stage: &Stage, id: &ObjectId) {
    let metadata = stage.metadata(id);
    assert!(
        metadata["labels"].is_null() && metadata["finalizers"].is_null(),
        "{metadata}"
    );
    assert!(metadata["annotations"][names::CREATE_INTENT].is_null(), "{metadata}");
    assert!(stage.status(id)["cloudflareMetadata"].is_null());
}

// Field cases 129, 158.
#[test]
fn an_existing_record_is_left_alone_and_the_difference_is_named() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage
            .foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1", "ttl": 300, "comment": "by hand" }));
        let before = stage.remote(&existing);
        let mark = stage.mark();
        let id = stage.record("x", a("192.0.2.1"));
        stage.says(&id, "False", "AlreadyExists").await;
        let message = stage.user.message(&id);
        for word in [&existing, "ttl", "comment", "adoption-policy"] {
            assert!(message.contains(word), "{message}");
        }
        assert!(!message.contains("proxied"), "{message}");
        stage.rest(24 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_cloudflare_write();
        let looks = since
            .calls
            .iter()
            .filter(|call| call.path.contains("dns_records"))
            .count();
        assert!((24..=70).contains(&looks), "{looks} looks in a day");
        assert_eq!(stage.remote(&existing), before);
        assert_unmarked(&stage, &id);
        assert_eq!(stage.times_told(&id, "AlreadyExists"), 1);
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(stage.remote(&existing), before, "nor does it go with the resource");
    });
}

// Field case 129.
#[test]
fn an_alias_of_another_target_is_left_alone() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage.foreign(&json!({ "name": "x", "type": "CNAME", "content": "old.example.net" }));
        let mark = stage.mark();
        let id = stage.record(
            "x",
            json!({ "name": "x", "type": "CNAME", "content": "new.example.net" }),
        );
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&id).contains("content"),
            "{}",
            stage.user.message(&id)
        );
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(stage.remote(&existing)["content"], "old.example.net");
        assert_unmarked(&stage, &id);
    });
}

#[test]
fn adopt_takes_the_record_and_changes_only_what_differs() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1", "ttl": 300 }));
        let mark = stage.mark();
        let id = stage.create(adopting(record("x", a("192.0.2.1")), "adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "ttl": 1 })));
        assert_eq!(stage.recorded(&id), Some(existing.clone()));
        let metadata = stage.metadata(&id);
        assert_eq!(metadata["annotations"][names::ADOPTED], "true");
        assert_eq!(metadata["labels"][names::RECORD_ID], json!(existing));
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Adopted");
        assert!(
            stage.told(&id, "Adopted", &[&existing, "ttl"]),
            "{:?}",
            stage.user.events(&id)
        );

        // The annotation has served its purpose; without it the record stays ours.
        stage.user.annotate(&id, names::ADOPTION_POLICY, None);
        let mark = stage.mark();
        stage.reconcile(std::slice::from_ref(&id), "1").await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert!(stage.user.is_ready(&id));
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Adopted");
    });
}

#[test]
fn adopt_never_creates_and_takes_the_record_once_it_is_there() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mark = stage.mark();
        let ids = ["adopt", "adopt-if-matching"].map(|policy| {
            let spec = json!({ "name": policy, "type": "A", "content": "192.0.2.1" });
            stage.create(adopting(record(policy, spec), policy))
        });
        for id in &ids {
            stage.says(id, "False", "NothingToAdopt").await;
            assert!(
                stage.user.message(id).contains("adopt-or-create"),
                "{}",
                stage.user.message(id)
            );
        }
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        for id in &ids {
            assert_unmarked(&stage, id);
        }
        let made = stage.foreign(&json!({ "name": "adopt", "type": "A", "content": "192.0.2.1" }));
        stage.rest(HOUR).await;
        assert!(stage.user.is_ready(&ids[0]));
        assert_eq!(stage.recorded(&ids[0]), Some(made));
    });
}

#[test]
fn adopt_or_create_does_either() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        let taken = stage.create(adopting(record("x", a("192.0.2.1")), "adopt-or-create"));
        let spec = json!({ "name": "y", "type": "A", "content": "192.0.2.1" });
        let made = stage.create(adopting(record("y", spec), "adopt-or-create"));
        stage.ready(&[taken.clone(), made.clone()]).await;
        assert_eq!(stage.recorded(&taken), Some(existing));
        assert_eq!(stage.status(&taken)["ownership"]["origin"], "Adopted");
        assert_eq!(stage.status(&made)["ownership"]["origin"], "Created");
        assert!(stage.metadata(&made)["annotations"][names::ADOPTED].is_null());
        assert_eq!(stage.records().len(), 2);
    });
}

#[test]
fn adopt_if_matching_takes_an_equal_record_without_a_write_and_no_other() {
    play_in_zone(Plan::Pro, |stage| async move {
        let equal = stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        let other =
            stage.foreign(&json!({ "name": "y", "type": "CNAME", "content": "a.example.net", "comment": "by hand" }));
        let mark = stage.mark();
        let taken = stage.create(adopting(record("x", a("192.0.2.1")), "adopt-if-matching"));
        let spec = json!({ "name": "y", "type": "CNAME", "content": "b.example.net" });
        let refused = stage.create(adopting(record("y", spec), "adopt-if-matching"));
        stage.ready(std::slice::from_ref(&taken)).await;
        stage.says(&refused, "False", "AdoptionBlocked").await;
        let message = stage.user.message(&refused);
        assert!(
            message.contains("content") && message.contains("comment") && message.contains(&other),
            "{message}"
        );
        assert_eq!(stage.recorded(&taken), Some(equal));
        assert_unmarked(&stage, &refused);
        stage.since(&mark).assert_no_cloudflare_write();
        // Once the spec matches, it is taken.
        stage
            .user
            .edit_spec(&refused, &json!({ "content": "a.example.net", "comment": "by hand" }));
        stage.ready(std::slice::from_ref(&refused)).await;
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

/// Field case 24: never the first row of the list.
#[test]
fn of_several_records_of_a_name_each_resource_finds_its_own() {
    play_in_zone(Plan::Pro, |stage| async move {
        let set = [
            json!({ "name": "x", "type": "A", "content": "192.0.2.1" }),
            json!({ "name": "x", "type": "A", "content": "192.0.2.2" }),
            json!({ "name": "x", "type": "A", "content": "192.0.2.3" }),
            json!({ "name": "x", "type": "TXT", "content": "\"one\"" }),
            json!({ "name": "x", "type": "TXT", "content": "\"two\"" }),
            json!({ "name": "x", "type": "MX", "content": "a.example.net", "priority": 10 }),
            json!({ "name": "x", "type": "MX", "content": "b.example.net", "priority": 10 }),
        ];
        let existing: Vec<String> = set.iter().map(|body| stage.foreign(body)).collect();
        let mark = stage.mark();
        let left = stage.record("left", set[1].clone());
        stage.says(&left, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&left).contains(&existing[1]),
            "{}",
            stage.user.message(&left)
        );
        stage.user.delete(&left);
        stage.gone(&[left]).await;

        let rows = set.iter().enumerate().rev();
        let ids: Vec<_> = rows
            .map(|(row, spec)| stage.create(adopting(record(&format!("r{row}"), spec.clone()), "adopt")))
            .collect();
        stage.ready(&ids).await;
        let taken: Vec<_> = ids.iter().rev().map(|id| stage.recorded(id).unwrap()).collect();
        assert_eq!(taken, existing);
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

#[test]
fn a_differing_record_is_taken_only_when_it_is_the_only_one_of_its_name_and_type() {
    play_in_zone(Plan::Pro, |stage| async move {
        let only = stage.foreign(&json!({ "name": "one", "type": "TXT", "content": "\"old\"" }));
        let neighbour = stage.foreign(&json!({ "name": "one", "type": "A", "content": "192.0.2.1" }));
        for content in ["192.0.2.1", "192.0.2.2"] {
            stage.foreign(&json!({ "name": "two", "type": "A", "content": content }));
        }
        let one = json!({ "name": "one", "type": "TXT", "content": "new" });
        let two = json!({ "name": "two", "type": "A", "content": "192.0.2.9" });
        let taken = stage.create(adopting(record("one", one), "adopt"));
        let none = stage.create(adopting(record("two", two.clone()), "adopt"));
        stage.ready(std::slice::from_ref(&taken)).await;
        stage.says(&none, "False", "NothingToAdopt").await;
        assert!(stage.user.message(&none).contains('2'), "{}", stage.user.message(&none));
        assert_eq!(stage.recorded(&taken), Some(only.clone()));
        assert_eq!(stage.remote(&only)["content"], "\"new\"");
        assert_eq!(stage.remote(&neighbour)["content"], "192.0.2.1");
        // Asked to create if need be, it joins the set.
        stage
            .user
            .annotate(&none, names::ADOPTION_POLICY, Some("adopt-or-create"));
        stage.ready(std::slice::from_ref(&none)).await;
        assert_eq!(stage.status(&none)["ownership"]["origin"], "Created");
        assert_eq!(stage.records().len(), 5);
    });
}

#[test]
fn a_member_of_a_set_does_not_mind_the_others() {
    play_in_zone(Plan::Pro, |stage| async move {
        let others = [("A", "192.0.2.1", Value::Null), ("MX", "a.example.net", json!(10))];
        let bodies = others.map(
            |(kind, content, priority)| json!({ "name": "x", "type": kind, "content": content, "priority": priority }),
        );
        let existing = bodies.map(|body| stage.foreign(&body));
        let before = existing.clone().map(|id| stage.remote(&id));
        let ids = [
            stage.record("a", a("192.0.2.2")),
            stage.record(
                "mx",
                json!({ "name": "x", "type": "MX", "content": "b.example.net", "priority": 10 }),
            ),
        ];
        stage.ready(&ids).await;
        assert_eq!(existing.map(|id| stage.remote(&id)), before);
        assert_eq!(stage.records().len(), 4);
    });
}

/// Records that Cloudflare, or another product of it, keeps.
#[test]
fn a_record_that_another_product_manages_is_never_touched() {
    let marks = [
        ("read_only", json!(true)),
        ("managed_by_apps", json!(true)),
        ("managed_by_argo_tunnel", json!(true)),
        ("origin_worker_id", json!("my-worker")),
        ("r2_bucket", json!("my-bucket")),
        ("email_routing", json!(true)),
    ];
    play(5, |stage| async move {
        let records = marks.iter().enumerate().map(|(row, (mark, value))| RecordSeed {
            id: None,
            meta: Map::from_iter([((*mark).to_owned(), value.clone())]),
            body: crate::stage::object(
                &json!({ "name": format!("x{row}"), "type": "A", "content": "192.0.2.1", "ttl": 300 }),
            )
            .clone(),
        });
        let records: Vec<_> = records.collect();
        stage.user.open_account(vec![ZoneSeed {
            records,
            ..ZoneSeed::named(DOMAIN, ACCOUNT_ID)
        }]);
        stage.user.connect();
        stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
        stage.start();
        stage.ready(&[zone_id()]).await;
        let before = stage.records();
        let start = stage.mark();
        for (row, (mark, _)) in marks.iter().enumerate() {
            let spec = json!({ "name": format!("x{row}"), "type": "A", "content": "192.0.2.1" });
            let id = stage.create(adopting(record(&format!("x{row}"), spec), "adopt-or-create"));
            stage.says(&id, "False", "ReadOnly").await;
            assert!(stage.user.message(&id).contains(mark), "{}", stage.user.message(&id));
        }
        stage.rest(3 * HOUR).await;
        stage.since(&start).assert_no_cloudflare_write();
        assert_eq!(stage.records(), before);
    });
}

/// A create that was answered with "exists" is looked at anew, not repeated.
// Field case 24.
#[test]
fn an_existing_record_that_no_list_shows_is_reported_and_not_made_twice() {
    use kflare_sim::{Fault, FaultMatch, Totals};
    play_in_zone(Plan::Pro, |stage| async move {
        stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.fault(
            FaultMatch::route("GET", crate::stage::RECORDS),
            Fault::EmptyList { totals: Totals::Zero },
        );
        let id = stage.create(adopting(record("x", a("192.0.2.1")), "adopt-or-create"));
        stage.says(&id, "False", "AlreadyExists").await;
        let tries = stage.cloudflare.call_counts()["POST /zones/{zone_id}/dns_records"];
        stage.rest(50 * MINUTE).await;
        let later = stage.cloudflare.call_counts()["POST /zones/{zone_id}/dns_records"];
        assert!(tries <= 2 && later == tries, "{tries} creates, later {later}");
        stage.cloudflare.clear_faults();
        stage.reconcile(std::slice::from_ref(&id), "1").await;
        assert!(stage.user.is_ready(&id));
        assert_eq!(stage.records().len(), 1);
    });
}
