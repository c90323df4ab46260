//! Lists of addresses: what is written, when, and what is not. Field cases 99, 102, 103, 104.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{BulkOperations, CallRecord, FaultMatch, ListItemForm, Plan, Quirks, ZoneSeed};
use kflare_testkit::memory_api::{Fault as ApiFault, FaultRule, ObjectId, RequestInfo};
use kflare_testkit::simulation::{ACCOUNT_ID, NAMESPACE};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Since, Stage, adopting, annotated, in_namespace, object, play, status};

const LISTS: &str = "/accounts/{account_id}/rules/lists";
const ITEMS: &str = "/accounts/{account_id}/rules/lists/{list_id}/items";
const OPERATION: &str = "/accounts/{account_id}/rules/lists/bulk_operations/{operation_id}";

fn manifest(name: &str, spec: Value) -> Value {
    let mut whole = json!({ "accountRef": { "name": "main" }, "name": "office" });
    object(&spec)
        .iter()
        .for_each(|(field, value)| whole[field] = value.clone());
    json!({
        "apiVersion": names::API_VERSION, "kind": "IPList",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

/// A scenario with an account that has a zone of this plan, and a controller.
fn play_on<F: Future<Output = ()>>(plan: Plan, scenario: impl FnOnce(Stage) -> F) {
    play(31, |stage| async move {
        stage
            .user
            .open_account(vec![ZoneSeed::named(DOMAIN, "Example").on(plan)]);
        stage.user.connect();
        stage.start();
        scenario(stage).await;
    });
}

fn items(ips: impl IntoIterator<Item = String>) -> Value {
    ips.into_iter().map(|ip| json!({ "ip": ip })).collect()
}

/// The n-th of a million addresses, in the order of their texts.
fn address(n: usize) -> String {
    format!("10.{}.{}.{}", 100 + n / 10_000, 100 + n / 100 % 100, 100 + n % 100)
}

/// The list at Cloudflare.
fn remote(stage: &Stage, name: &str) -> Option<Value> {
    stage
        .cloudflare
        .lists(ACCOUNT_ID)
        .into_iter()
        .find(|list| list["name"] == name)
}

/// Its items as `ip` or `ip comment`, in order.
fn held(stage: &Stage, name: &str) -> Vec<String> {
    let list = remote(stage, name).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let show = |item: &Value| {
        let (ip, comment) = (
            item["ip"].as_str().unwrap(),
            item["comment"].as_str().unwrap_or_default(),
        );
        if comment.is_empty() {
            ip.to_owned()
        } else {
            format!("{ip} {comment}")
        }
    };
    items.iter().map(show).collect()
}

fn theirs(stage: &Stage, body: &Value) {
    stage.cloudflare.foreign_create_list(ACCOUNT_ID, object(body)).unwrap();
}

fn calls<'a>(since: &'a Since, method: &str, route: &str) -> Vec<&'a CallRecord> {
    let fits = |call: &&CallRecord| call.method == method && call.route.as_deref() == Some(route);
    since.calls.iter().filter(fits).collect()
}

#[test]
fn a_list_is_made_with_its_items_and_nothing_is_done_afterwards() {
    play_on(Plan::Free, |stage| async move {
        let mark = stage.mark();
        let spec = json!({ "description": "Ours", "items": [
            { "ip": "192.0.2.7/24", "comment": "Berlin" },
            { "ip": "2001:DB8:0::/32" },
            { "ip": "198.51.100.1/32" },
            { "ip": "2001:db8:1::1/128", "comment": "one" },
        ]});
        let id = stage.create(manifest("office", spec));
        stage.ready(std::slice::from_ref(&id)).await;
        let list = remote(&stage, "office").unwrap();
        assert_eq!((&list["kind"], &list["description"]), (&json!("ip"), &json!("Ours")));
        assert_eq!(
            held(&stage, "office"),
            [
                "192.0.2.0/24 Berlin",
                "198.51.100.1",
                "2001:db8::/32",
                "2001:db8:1::1 one"
            ]
        );
        let status = stage.status(&id);
        assert_eq!(
            status["cloudflareMetadata"],
            json!({ "listID": list["id"], "itemCount": 4 })
        );
        assert_eq!(
            (&status["operation"], &status["ownership"]["origin"]),
            (&Value::Null, &json!("Created"))
        );
        assert_eq!(stage.metadata(&id)["labels"][names::LIST_ID], list["id"]);
        assert!(
            stage.told(&id, "Updating", &["operation"]),
            "{:?}",
            stage.user.events(&id)
        );

        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 2, "{:#?}", since.cloudflare_writes());
        assert_eq!(calls(&since, "POST", ITEMS).len(), 1);
        let writes = since
            .kubernetes_writes
            .iter()
            .filter(|it| format!("{it:?}").contains(&id.name))
            .count();
        assert!(writes <= 5, "{:#?}", since.kubernetes_writes);

        // What was written, read back, needs no change; and the items are not read again while nothing changes.
        stage.rest(HOUR).await;
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        assert_eq!(
            calls(&since, "GET", ITEMS).len(),
            0,
            "items were read though nothing had changed"
        );
        let looks = calls(&since, "GET", LISTS).len();
        assert!((100..=200).contains(&looks), "{looks} looks in a day of drift checks");
    });
}

/// Field case 102. Items with what belongs to other kinds of lists are the same items.
#[test]
fn items_with_empty_parts_of_other_kinds_are_no_drift() {
    play_on(Plan::Free, |stage| async move {
        let id = stage.create(manifest("office", json!({ "items": [{ "ip": "192.0.2.1" }] })));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.cloudflare.set_quirks(Quirks {
            list_items: ListItemForm::Padded,
            ..Quirks::default()
        });
        let mark = stage.mark();
        // A new description by somebody else makes everything be read again.
        stage
            .cloudflare
            .foreign_describe_list(ACCOUNT_ID, "office", "theirs")
            .unwrap();
        stage.rest(HOUR).await;
        assert!(stage.user.is_ready(&id));
        let since = stage.since(&mark);
        assert!(!calls(&since, "GET", ITEMS).is_empty());
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(writes[0].body, Some(json!({ "description": "" })));
    });
}

#[test]
fn drift_is_put_right_by_what_differs_and_no_more() {
    play_on(Plan::Free, |stage| async move {
        let wanted = json!([{ "ip": "192.0.2.1", "comment": "one" }, { "ip": "192.0.2.2" }, { "ip": "192.0.2.3" }]);
        let id = stage.create(manifest("office", json!({ "items": wanted })));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        let foreign = json!([{ "ip": "192.0.2.1", "comment": "changed" }, { "ip": "203.0.113.0/24" }]);
        stage
            .cloudflare
            .foreign_add_list_items(ACCOUNT_ID, "office", foreign.as_array().unwrap())
            .unwrap();
        stage
            .cloudflare
            .foreign_remove_list_item(ACCOUNT_ID, "office", "192.0.2.3")
            .unwrap();
        let right = ["192.0.2.1 one", "192.0.2.2", "192.0.2.3"];
        stage.until("put right", |stage| held(stage, "office") == right).await;
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let added = calls(&since, "POST", ITEMS);
        assert_eq!(added.len(), 1, "{added:#?}");
        assert_eq!(
            added[0].body,
            Some(json!([{ "ip": "192.0.2.1", "comment": "one" }, { "ip": "192.0.2.3" }]))
        );
        let removed = calls(&since, "DELETE", ITEMS);
        assert_eq!(removed.len(), 1, "{removed:#?}");
        assert_eq!(
            removed[0].body.as_ref().unwrap()["items"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(since.cloudflare_writes().len(), 2);
        assert!(
            stage.told(&id, "DriftCorrected", &["items"]),
            "{:?}",
            stage.user.events(&id)
        );

        // A list that somebody deletes is made again.
        stage.cloudflare.foreign_delete_list(ACCOUNT_ID, "office").unwrap();
        stage.until("made again", |stage| held(stage, "office") == right).await;
        stage.ready(std::slice::from_ref(&id)).await;
    });
}

#[test]
fn a_list_that_exists_is_taken_only_on_request_and_its_items_are_shown_first() {
    play_on(Plan::Free, |stage| async move {
        let before = json!({ "name": "office", "kind": "ip", "description": "By hand",
            "items": [{ "ip": "192.0.2.1" }, { "ip": "203.0.113.9", "comment": "theirs" }] });
        theirs(&stage, &before);
        let mark = stage.mark();
        let id = stage.create(manifest(
            "office",
            json!({ "items": [{ "ip": "192.0.2.1" }, { "ip": "192.0.2.2" }] }),
        ));
        stage.says(&id, "False", "AlreadyExists").await;
        let message = stage.user.message(&id);
        assert!(
            message.contains("description") && message.contains("items"),
            "{message}"
        );
        stage.since(&mark).assert_no_cloudflare_write();
        stage
            .user
            .annotate(&id, names::ADOPTION_POLICY, Some("adopt-if-matching"));
        stage.says(&id, "False", "AdoptionBlocked").await;
        stage.since(&mark).assert_no_cloudflare_write();

        stage.user.annotate(&id, names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(held(&stage, "office"), ["192.0.2.1", "192.0.2.2"]);
        assert_eq!(remote(&stage, "office").unwrap().get("description"), None);
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Adopted");
        assert_eq!(stage.metadata(&id)["annotations"][names::ADOPTED], "true");
        assert!(stage.told(&id, "Adopted", &["items"]), "{:?}", stage.user.events(&id));

        // What was adopted stays when its resource goes.
        stage.user.delete(&id);
        stage.gone(std::slice::from_ref(&id)).await;
        assert_eq!(held(&stage, "office"), ["192.0.2.1", "192.0.2.2"]);
    });
}

#[test]
fn two_resources_never_manage_one_list_and_other_kinds_of_lists_are_left_alone() {
    play_on(Plan::Pro, |stage| async move {
        let id = stage.create(manifest("office", json!({ "items": [{ "ip": "192.0.2.1" }] })));
        stage.ready(std::slice::from_ref(&id)).await;
        let second = adopting(manifest("second", json!({ "items": [] })), "adopt-or-create");
        let second = stage.create(in_namespace(second, "other"));
        stage.says(&second, "False", "AlreadyClaimed").await;
        assert_eq!(held(&stage, "office"), ["192.0.2.1"]);

        theirs(&stage, &json!({ "name": "moved", "kind": "redirect" }));
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        let other = adopting(manifest("moved", json!({ "name": "moved" })), "adopt-or-create");
        let other = stage.create(other);
        stage.says(&other, "False", "ReadOnly").await;
        assert!(
            stage.user.message(&other).contains("redirect"),
            "{}",
            stage.user.message(&other)
        );
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

#[test]
fn a_changed_spec_is_written_as_its_differences() {
    play_on(Plan::Free, |stage| async move {
        let id = stage.create(manifest("office", json!({ "items": items((0..30).map(address)) })));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        // 25 stay, 5 go, 2 come.
        let ips = (5..30)
            .map(address)
            .chain(["192.0.2.1".to_owned(), "192.0.2.2".to_owned()]);
        stage
            .user
            .edit_spec(&id, &json!({ "description": "New", "items": items(ips) }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let sizes = |method: &str| -> Vec<usize> {
            let body = |call: &&CallRecord| {
                let body = call.body.clone().unwrap();
                body.as_array().or_else(|| body["items"].as_array()).map_or(0, Vec::len)
            };
            calls(&since, method, ITEMS).iter().map(body).collect()
        };
        assert_eq!(
            (sizes("POST"), sizes("DELETE"), sizes("PUT")),
            (vec![2], vec![5], vec![])
        );
        assert_eq!(held(&stage, "office").len(), 27);
        assert_eq!(remote(&stage, "office").unwrap()["description"], "New");

        // An empty list is a list.
        stage
            .user
            .edit_spec(&id, &json!({ "items": null, "description": null }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(held(&stage, "office"), Vec::<String>::new());
        // Two spellings of one address with two comments are no list.
        let twice = json!([{ "ip": "192.0.2.1", "comment": "a" }, { "ip": "192.0.2.1/32", "comment": "b" }]);
        stage.user.edit_spec(&id, &json!({ "items": twice }));
        stage.says(&id, "False", "InvalidSpec").await;
        assert!(
            stage.user.message(&id).contains("spec.items[1].ip"),
            "{}",
            stage.user.message(&id)
        );
    });
}

/// Field case 104. A list that rules use waits for them, and says so.
#[test]
fn a_list_in_use_is_deleted_once_nothing_uses_it() {
    play_on(Plan::Free, |stage| async move {
        let id = stage.create(manifest("office", json!({ "items": [{ "ip": "192.0.2.1" }] })));
        stage.ready(std::slice::from_ref(&id)).await;
        stage
            .cloudflare
            .set_other_expressions(ACCOUNT_ID, &["ip.src in $office"]);
        let mark = stage.mark();
        stage.user.delete(&id);
        stage
            .until("it says why", |stage| stage.user.ready(&id).1 == "ListInUse")
            .await;
        stage.rest(HOUR).await;
        let tries = stage.since(&mark).cloudflare_writes().len();
        assert!((2..=20).contains(&tries), "{tries} tries in an hour");
        assert!(remote(&stage, "office").is_some());
        stage.cloudflare.set_other_expressions(ACCOUNT_ID, &[]);
        stage
            .until_within("gone", HOUR, |stage| stage.world.api.get(&id).is_none())
            .await;
        assert!(remote(&stage, "office").is_none());

        // Retained it stays, with its items.
        let kept = annotated(
            manifest("kept", json!({ "items": [{ "ip": "192.0.2.9" }] })),
            names::DELETION_POLICY,
            "retain",
        );
        let kept = stage.create(kept);
        stage.ready(std::slice::from_ref(&kept)).await;
        stage.user.delete(&kept);
        stage.gone(std::slice::from_ref(&kept)).await;
        assert_eq!(held(&stage, "office"), ["192.0.2.9"]);
    });
}

#[test]
fn limits_of_the_plan_are_told_in_cloudflares_words() {
    play_on(Plan::Free, |stage| async move {
        let id = stage.create(manifest("office", json!({ "items": [{ "ip": "192.0.2.1" }] })));
        stage.ready(std::slice::from_ref(&id)).await;
        let mark = stage.mark();
        let second = stage.create(manifest("second", json!({ "name": "second" })));
        stage.says(&second, "False", "TerminalError").await;
        assert!(
            stage.user.message(&second).contains("maximum number of lists"),
            "{}",
            stage.user.message(&second)
        );
        stage.rest(HOUR).await;
        let tries = calls(&stage.since(&mark), "POST", LISTS).len();
        assert!(tries <= 3, "{tries} tries in an hour");
        stage.user.delete(&second);
        stage.gone(std::slice::from_ref(&second)).await;

        // What an operation fails with is told, and it is not asked for at full speed.
        let mark = stage.mark();
        stage
            .cloudflare
            .fail_next_bulk_operation(ACCOUNT_ID, "This list is at the maximum number of items");
        stage.user.edit_spec(&id, &json!({ "items": [{ "ip": "192.0.2.2" }] }));
        stage.says(&id, "False", "TerminalError").await;
        let message = stage.user.message(&id);
        assert!(message.contains("at the maximum number of items"), "{message}");
        assert_eq!(stage.status(&id)["operation"], Value::Null);
        assert_eq!(calls(&stage.since(&mark), "POST", ITEMS).len(), 1);
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(held(&stage, "office"), ["192.0.2.2"]);
    });
}

/// Field case 103. Ten operations of 1,000 items, one after the other; a change costs what it changes; a check costs one call.
#[test]
fn ten_thousand_items_cost_a_few_dozen_calls() {
    play_on(Plan::Free, |stage| async move {
        let mark = stage.mark();
        let id = stage.create(manifest("office", json!({ "items": items((0..10_000).map(address)) })));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        assert_eq!(remote(&stage, "office").unwrap()["num_items"], 10_000);
        assert_eq!(calls(&since, "POST", ITEMS).len(), 10);
        assert_eq!(calls(&since, "PUT", ITEMS).len(), 0);
        let (reads, looks) = (calls(&since, "GET", ITEMS).len(), calls(&since, "GET", OPERATION).len());
        println!(
            "10,000 items: {} calls, {reads} reads of items, {looks} looks at operations",
            since.calls.len()
        );
        assert!(reads <= 20, "{reads} pages read");
        assert!(looks <= 30, "{looks} looks at ten operations");
        assert!(since.calls.len() <= 70, "{} calls", since.calls.len());
        let status = stage.status(&id).to_string();
        assert!(status.len() < 2_000, "{} bytes of status", status.len());

        // 1,500 others come, as many go.
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "items": items((1_500..11_500).map(address)) }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        assert_eq!(
            (calls(&since, "DELETE", ITEMS).len(), calls(&since, "POST", ITEMS).len()),
            (2, 2)
        );
        assert_eq!(remote(&stage, "office").unwrap()["num_items"], 10_000);
        println!("3,000 changes: {} calls", since.calls.len());
        assert!(since.calls.len() <= 90, "{} calls", since.calls.len());

        stage.rest(HOUR).await;
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        assert_eq!(calls(&since, "GET", ITEMS).len(), 0);
    });
}

/// Field case 99. The operation is recorded, followed by whoever comes next, and not asked for again.
#[test]
fn a_crash_in_the_middle_of_an_operation_costs_nothing() {
    play(31, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.cloudflare.set_bulk_operations(BulkOperations {
            pending: Duration::from_secs(20),
            running: Duration::from_secs(20),
        });
        let first = stage.start();
        let spec = json!({ "items": [{ "ip": "192.0.2.0/24" }, { "ip": "198.51.100.7" }] });
        let id = stage.create(manifest("office", spec));
        stage
            .until("under way", |stage| stage.status(&id)["operation"]["id"].is_string())
            .await;
        stage.says(&id, "False", "Updating").await;
        let operation = stage.status(&id)["operation"].clone();
        first.kill();
        stage.rest(Duration::from_secs(10)).await;
        let mark = stage.mark();
        stage.start_with("second", kflare_testkit::simulation::ControllerOptions::default());
        stage
            .until("looked at", |stage| {
                !calls(&stage.since(&mark), "GET", OPERATION).is_empty()
            })
            .await;
        assert_eq!(stage.status(&id)["operation"], operation);
        stage.ready(std::slice::from_ref(&id)).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(held(&stage, "office"), ["192.0.2.0/24", "198.51.100.7"]);
        assert_eq!(stage.status(&id)["operation"], Value::Null);
    });
}

/// A spec that changes meanwhile is written when the operation has ended, and what was left of the old one is not.
#[test]
fn a_change_in_the_middle_of_an_operation_is_written_after_it() {
    play_on(Plan::Free, |stage| async move {
        stage.cloudflare.set_bulk_operations(BulkOperations {
            pending: Duration::from_secs(20),
            running: Duration::from_secs(20),
        });
        let id = stage.create(manifest("office", json!({ "items": items((0..2_500).map(address)) })));
        stage
            .until("under way", |stage| stage.status(&id)["operation"]["id"].is_string())
            .await;
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "items": items((0..1_001).map(address)) }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        assert_eq!(calls(&since, "POST", ITEMS).len(), 1);
        assert_eq!(calls(&since, "DELETE", ITEMS).len(), 0);
        assert_eq!(held(&stage, "office").len(), 1_001);
    });
}

/// An account carries out one operation at a time: lists wait for each other, and nothing else waits for them.
#[test]
fn lists_take_turns_and_the_credential_does_not_wait() {
    play_on(Plan::Pro, |stage| async move {
        let mark = stage.mark();
        let ids: Vec<ObjectId> = (0..5)
            .map(|n| {
                let name = format!("list{n}");
                stage.create(manifest(
                    &name,
                    json!({ "name": name, "items": [{ "ip": address(n) }] }),
                ))
            })
            .collect();
        stage.ready(&ids).await;
        for n in 0..5 {
            assert_eq!(held(&stage, &format!("list{n}")), [address(n)]);
        }
        let since = stage.since(&mark);
        let busy = since.calls.iter().filter(|call| call.status == Some(429)).count();
        assert!((1..=40).contains(&busy), "{busy} writes met another operation");
        let seconds = stage.seconds();
        assert!(seconds < 180, "{seconds} s");
        assert!(!ids.iter().any(|id| stage.told(id, "RateLimited", &[])));
    });
}

/// A write whose answer is lost may have been accepted: it is looked at, and in the end everything is as it should be.
#[test]
fn lost_answers_of_item_writes_end_well() {
    play_on(Plan::Free, |stage| async move {
        let lost = kflare_sim::Fault::DropAfter {
            dropped: Some(kflare_sim::Dropped::Reset),
        };
        stage.fault_times(FaultMatch::route("POST", ITEMS), lost.clone(), 1);
        stage.fault_times(FaultMatch::route("DELETE", ITEMS), lost, 1);
        stage.fault_times(FaultMatch::route("GET", OPERATION), status(500, 10_000), 2);
        let id = stage.create(manifest("office", json!({ "items": [{ "ip": "192.0.2.1" }] })));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.edit_spec(&id, &json!({ "items": [{ "ip": "192.0.2.2" }] }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(held(&stage, "office"), ["192.0.2.2"]);
        // An operation that Cloudflare does not know any more is as good as ended.
        stage.fault_times(FaultMatch::route("GET", OPERATION), status(404, 10_001), 1);
        stage.user.edit_spec(&id, &json!({ "items": [{ "ip": "192.0.2.3" }] }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(held(&stage, "office"), ["192.0.2.3"]);
    });
}

/// In observe mode an existing list is compared, items and all, and nothing is written.
#[test]
fn observe_mode_shows_what_would_change() {
    play_on(Plan::Free, |stage| async move {
        theirs(
            &stage,
            &json!({ "name": "office", "kind": "ip", "items": [{ "ip": "192.0.2.1" }] }),
        );
        let mark = stage.mark();
        let watching = adopting(manifest("office", json!({ "items": [{ "ip": "192.0.2.2" }] })), "adopt");
        let id = stage.create(annotated(watching, names::MODE, "observe"));
        stage.says(&id, "False", "Observing").await;
        let plan = stage.status(&id)["plan"].to_string();
        assert!(plan.contains("items") && plan.contains("192.0.2.2"), "{plan}");
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

/// That the resource cannot be marked just then does not make an accepted operation forgotten (found by a story).
#[test]
fn an_accepted_operation_is_known_whatever_else_fails() {
    play_on(Plan::Free, |stage| async move {
        stage.user.create(manifest("office", json!({})));
        let id = ObjectId::of(&manifest("office", json!({})));
        stage.ready(std::slice::from_ref(&id)).await;
        let slow = kflare_sim::Fault::Delay { ms: 3000 };
        stage.fault_times(FaultMatch::route("GET", OPERATION), slow, 1);
        // Somebody takes off what kflare wrote, and putting it on again is refused for a while.
        stage.user.edit(&id, |it| it["metadata"]["labels"] = Value::Null);
        let marks =
            |request: &RequestInfo| request.subresource.is_none() && request.body.contains("kflare.dev/list-id");
        let conflict = ApiFault::status(409, "Conflict", "simulated");
        stage.world.api.inject(FaultRule::new(conflict, marks).times(3));
        let mark = stage.mark();
        stage.user.edit_spec(&id, &json!({ "items": [{ "ip": "192.0.2.1" }] }));
        stage.ready(std::slice::from_ref(&id)).await;
        assert_eq!(calls(&stage.since(&mark), "POST", ITEMS).len(), 1);
        assert_eq!(
            stage.metadata(&id)["labels"]["kflare.dev/list-id"],
            remote(&stage, "office").unwrap()["id"]
        );
    });
}
