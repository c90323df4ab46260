//! Many records: few calls, few writes, and one bad one stops nobody. Field cases 107, 110, 139, 160, 162.

use std::{collections::BTreeMap, time::Duration};

use kflare_sim::{FaultMatch, Plan, ZoneSeed};
use kflare_testkit::{
    life::Life,
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, ControllerOptions, User},
};
use serde_json::{Value, json};

use crate::stage::{BATCH, DOMAIN, HOUR, MINUTE, Mark, Stage, ZONE, adopting, play, play_in_zone, status, zone};

fn spec(n: usize) -> Value {
    json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" })
}

/// A thousand records in a free zone of the days when those held a thousand, created from nothing.
async fn a_thousand(stage: &Stage) -> (Vec<ObjectId>, Life, Mark) {
    let created_on = Some("2024-01-01T00:00:00Z".parse().unwrap());
    stage.user.open_account(vec![ZoneSeed {
        created_on,
        ..ZoneSeed::named(DOMAIN, ACCOUNT_ID)
    }]);
    let mark = stage.mark();
    stage.user.connect();
    stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
    let ids: Vec<_> = (0..1000).map(|n| stage.record(&format!("r{n:04}"), spec(n))).collect();
    let life = stage.start();
    // Looking at all thousand costs time, so it is not done ten times a virtual second.
    while stage.records().len() < 1000 {
        assert!(stage.seconds() < 600, "not made in time");
        stage.rest(Duration::from_secs(1)).await;
    }
    stage.rest(Duration::from_secs(20)).await;
    stage.ready(&ids).await;
    (ids, life, mark)
}

// Field cases 107, 160, 162.
#[test]
fn a_thousand_records_cost_twelve_calls_three_writes_each_and_nothing_afterwards() {
    play(8, |stage| async move {
        let (ids, life, mark) = a_thousand(&stage).await;
        let since = stage.since(&mark);
        println!(
            "applied 1,000 at once with their zone: {} calls, {} s",
            since.calls.len(),
            stage.seconds()
        );
        assert!(
            since.calls.len() <= 12,
            "{} calls: {:#?}",
            since.calls.len(),
            stage.cloudflare.call_counts()
        );
        assert!(stage.seconds() <= 120, "{} s", stage.seconds());
        let mut writes: BTreeMap<String, usize> = BTreeMap::new();
        for write in since
            .kubernetes_writes
            .iter()
            .filter(|it| it.request.resource.starts_with("dnsrecords"))
        {
            *writes
                .entry(write.request.name.clone().unwrap_or_default())
                .or_default() += 1;
        }
        let total: usize = writes.values().sum();
        println!(
            "Kubernetes writes: {total} for 1,000 records, at most {:?} for one",
            writes.values().max()
        );
        // Intent, id, claim; also for those that were looked at before their zone was there.
        assert!(
            writes.values().all(|count| *count <= 3),
            "{:?}",
            writes.iter().find(|(_, count)| **count > 3)
        );
        assert!(total <= 3000, "{total}");

        // A drift check of all.
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        stage.rest(10 * MINUTE).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let lists = since
            .calls
            .iter()
            .filter(|call| call.path.contains("dns_records"))
            .count();
        println!(
            "a drift check of 1,000: {lists} calls for the records, {} in all",
            since.calls.len()
        );
        assert!((1..=2).contains(&lists), "{:#?}", since.calls);

        // A restart with everything as it should be.
        life.kill();
        let mark = stage.mark();
        let second = stage.start_with("second", ControllerOptions::default());
        stage.rest(5 * MINUTE).await;
        let since = stage.since(&mark);
        println!(
            "a restart with 1,000: {} calls, {} writes",
            since.calls.len(),
            since.kubernetes_writes.len()
        );
        since.assert_no_write();
        assert!(since.calls.len() <= 5, "{:#?}", since.calls);

        // 300 changed at once.
        let mark = stage.mark();
        for id in &ids[..300] {
            stage.user.edit_spec(id, &json!({ "comment": "changed" }));
        }
        stage.rest(Duration::from_secs(30)).await;
        let since = stage.since(&mark);
        println!(
            "300 changed: {} calls, {} writes",
            since.calls.len(),
            since.kubernetes_writes.len()
        );
        assert!(ids[..300].iter().all(|id| stage.user.is_ready(id)));
        assert!(
            since.cloudflare_writes().len() <= 5,
            "{:#?}",
            stage.cloudflare.call_counts()
        );
        assert!(since.calls.len() <= 8, "{} calls", since.calls.len());
        assert!(
            since.kubernetes_writes.len() <= 300,
            "{}",
            since.kubernetes_writes.len()
        );

        // All deleted at once.
        let mark = stage.mark();
        for id in &ids {
            stage.user.delete(id);
        }
        while !stage.records().is_empty() {
            assert!(stage.seconds() < 3 * 3600, "not deleted in time");
            stage.rest(Duration::from_secs(1)).await;
        }
        stage.rest(Duration::from_secs(10)).await;
        stage.gone(&ids).await;
        let since = stage.since(&mark);
        println!(
            "1,000 deleted: {} calls, {} writes",
            since.calls.len(),
            since.kubernetes_writes.len()
        );
        assert!(since.calls.len() <= 10, "{:#?}", stage.cloudflare.call_counts());
        assert!(
            since.kubernetes_writes.len() <= 1000,
            "{}",
            since.kubernetes_writes.len()
        );
        second.kill();
    });
}

#[test]
fn a_created_record_costs_three_writes() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mark = stage.mark();
        let ids: Vec<_> = (0..300).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.rest(Duration::from_secs(20)).await;
        stage.ready(&ids).await;
        let since = stage.since(&mark);
        println!(
            "created 300 in a zone at rest: {} calls, {} writes",
            since.calls.len(),
            since.kubernetes_writes.len()
        );
        assert_eq!(since.kubernetes_writes.len(), 3 * 300);
        assert!(since.calls.len() <= 8, "{:#?}", stage.cloudflare.call_counts());
    });
}

/// Lists, so that look-ups do not multiply: field case 107.
#[test]
fn a_restart_in_the_middle_of_a_thousand_creates_none_twice() {
    play(9, |stage| async move {
        let created_on = Some("2024-01-01T00:00:00Z".parse().unwrap());
        stage.user.open_account(vec![ZoneSeed {
            created_on,
            ..ZoneSeed::named(DOMAIN, ACCOUNT_ID)
        }]);
        stage.user.connect();
        stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
        let ids: Vec<_> = (0..1000).map(|n| stage.record(&format!("r{n:04}"), spec(n))).collect();
        let first = stage.start();
        stage.until("half of them", |stage| stage.records().len() >= 400).await;
        first.kill();
        let mark = stage.mark();
        stage.start_with("second", ControllerOptions::default());
        stage.rest(MINUTE).await;
        stage.ready(&ids).await;
        assert_eq!(stage.records().len(), 1000);
        let calls = stage.since(&mark).calls.len();
        println!("a restart half way: {calls} calls");
        assert!(calls <= 15, "{:#?}", stage.cloudflare.call_counts());
        for id in ids.iter().step_by(50) {
            assert_eq!(stage.status(id)["ownership"]["origin"], "Created");
        }
    });
}

// Field case 139.
#[test]
fn one_poison_record_in_fifty_does_not_stop_the_others() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.foreign(&json!({ "name": "r31", "type": "CNAME", "content": "a.example.net" }));
        let mark = stage.mark();
        let ids: Vec<_> = (0..50).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.rest(Duration::from_secs(20)).await;
        let not: Vec<_> = ids
            .iter()
            .filter(|id| !stage.user.is_ready(id))
            .map(|id| id.name.as_str())
            .collect();
        assert_eq!(not, ["r31"]);
        assert_eq!(stage.user.ready(&ids[31]).1, "RecordConflict");
        assert_eq!(stage.records().len(), 50);
        let calls = stage.since(&mark).calls.len();
        println!("one poison record in fifty: {calls} calls");
        assert!(calls <= 20, "{:#?}", stage.cloudflare.call_counts());
    });
}

/// Several poison records, of several kinds, in a batch of changes and deletes.
#[test]
fn each_of_a_mixed_batch_has_its_own_outcome() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..30).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.ready(&ids).await;
        let gone = stage.recorded(&ids[3]).unwrap();
        stage.cloudflare.foreign_delete(DOMAIN, &gone).unwrap();
        for (n, id) in ids.iter().enumerate() {
            match n {
                0..10 => stage.user.delete(id),
                10 => {}
                // Enterprise only.
                11 => stage.user.edit_spec(id, &json!({ "ttl": 30 })),
                _ => stage.user.edit_spec(id, &json!({ "ttl": 300 })),
            }
        }
        let new: Vec<_> = (30..40).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.gone(&ids[..10]).await;
        stage.ready(&new).await;
        stage.ready(&ids[12..]).await;
        stage.ready(&ids[10..11]).await;
        stage.says(&ids[11], "False", "InvalidSpec").await;
        assert_eq!(stage.records().len(), 30);
    });
}

/// A batch that fails as a whole, for a reason that concerns none of its entries, is not taken apart.
#[test]
fn an_outage_does_not_take_batches_apart() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault_times(FaultMatch::route("POST", BATCH), status(500, 10_000), 1);
        let mark = stage.mark();
        let ids: Vec<_> = (0..40).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.ready(&ids).await;
        let writes = stage.since(&mark).cloudflare_writes().len();
        println!("40 records through a failed batch: {writes} writes");
        assert!(writes <= 10, "{writes} writes: {:#?}", stage.cloudflare.call_counts());
        assert_eq!(stage.records().len(), 40);
    });
}

/// Field case 110: two hundred at rest, in forty zones, spread their checks, and none turns.
#[test]
fn a_start_spreads_its_checks() {
    play(10, |stage| async move {
        let zones: Vec<_> = (0..40)
            .map(|n| ZoneSeed::named(&format!("z{n:02}.example"), ACCOUNT_ID))
            .collect();
        stage.user.open_account(zones);
        stage.user.connect();
        let mut ids = vec![User::account_id()];
        for n in 0..40 {
            ids.push(stage.create(adopting(
                zone(&format!("z{n}"), json!({ "name": format!("z{n:02}.example") })),
                "adopt",
            )));
            for r in 0..5 {
                let mut manifest = crate::stage::record(&format!("z{n}-r{r}"), spec(r));
                manifest["spec"]["zoneRef"]["name"] = json!(format!("z{n}"));
                ids.push(stage.create(manifest));
            }
        }
        let first = stage.start();
        stage.ready(&ids).await;
        first.kill();
        let mark = stage.mark();
        stage.start_with("second", ControllerOptions::default());
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let mut by_second: BTreeMap<i64, usize> = BTreeMap::new();
        for call in &since.calls {
            *by_second.entry(call.at.as_second()).or_default() += 1;
        }
        let most = by_second.values().max().copied().unwrap_or_default();
        println!(
            "a start with 40 zones: {} calls in an hour, at most {most} in a second",
            since.calls.len()
        );
        assert!(most <= 10, "{most} calls in one second");
        assert!(ids.iter().all(|id| stage.user.is_ready(id)));
    });
}

/// A token that may not write is found out once, not once a record: design's "auth, probed once per credential".
#[test]
fn a_thousand_refused_writes_cost_a_few_probes() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.fault(FaultMatch::path("POST", "dns_records"), status(403, 10_000));
        let mark = stage.mark();
        let ids: Vec<_> = (0..1000).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        println!(
            "a thousand refused writes: {} calls and {} Kubernetes writes in an hour",
            since.calls.len(),
            since.kubernetes_writes.len()
        );
        assert!(since.calls.len() < 150, "{:#?}", stage.cloudflare.call_counts());
        assert!(since.kubernetes_writes.len() <= 4000);
        assert_eq!(stage.user.ready(&ids[500]).1, "TerminalError");
        // The permission is granted: all is made within the longest pause between probes.
        stage.cloudflare.clear_faults();
        stage.rest(HOUR).await;
        stage.ready(&ids).await;
    });
}
