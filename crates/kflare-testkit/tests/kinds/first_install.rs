//! Coming to a cluster and going from it: what is there stays, and what was asked for meanwhile is done.

use std::collections::BTreeSet;

use kflare_sim::{Plan, ZoneSeed};
use kflare_testkit::simulation::{ACCOUNT_ID, ControllerOptions};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, play, play_in_zone, zone, zone_id};

fn a(name: &str) -> Value {
    json!({ "name": name, "type": "A", "content": "192.0.2.1" })
}

/// The zone of a company that has lived without kflare.
async fn eighty_by_hand(stage: &Stage) -> Vec<Value> {
    stage.user.open_account(vec![ZoneSeed::named(DOMAIN, ACCOUNT_ID)]);
    for n in 0..80 {
        stage.foreign(&a(&format!("hand{n}")));
    }
    let before = stage.records();
    stage.user.connect();
    stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
    stage.start();
    stage.ready(&[zone_id()]).await;
    before
}

// Field case 127. kflare is not the only source of truth: what has no resource is not its business.
#[test]
fn a_first_install_over_a_full_zone_writes_nothing() {
    play(31, |stage| async move {
        let before = eighty_by_hand(&stage).await;
        stage.rest(24 * HOUR).await;
        let writes = stage.cloudflare.calls().into_iter().filter(|call| call.method != "GET");
        assert_eq!(writes.count(), 0);
        assert_eq!(stage.records(), before);
        // Nor does the zone take anything with it: it was there before.
        stage.user.delete(&zone_id());
        stage.gone(&[zone_id()]).await;
        assert_eq!(stage.records(), before);
    });
}

// Field case 127. Resources that are not there any more, without having been deleted, are no reason to delete: the CRD was
// taken away, or a store shows nothing.
#[test]
fn resources_that_vanish_without_being_deleted_take_nothing_with_them() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..80)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        let before = stage.records();
        let mark = stage.mark();
        stage.world.api.unregister("dnsrecords.kflare.dev");
        stage.rest(HOUR).await;
        // And a controller that starts with an empty view.
        stage.start_with("another", ControllerOptions::default());
        stage.rest(6 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(stage.records(), before);
    });
}

// Field case 126. Without a chart: a controller that is gone for a while leaves nothing hanging and makes nothing anew.
#[test]
fn what_is_deleted_while_no_controller_runs_goes_with_the_next_and_the_rest_is_not_made_again() {
    play(32, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        let first = stage.start();
        let ids: Vec<_> = (0..10)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        stage.rest(MINUTE).await;
        first.kill();
        let before = stage.records();
        for id in &ids[..5] {
            stage.user.delete(id);
        }
        stage.rest(24 * HOUR).await;
        assert_eq!(stage.records(), before);
        let mark = stage.mark();
        stage.start_with("second", ControllerOptions::default());
        stage.gone(&ids[..5]).await;
        stage.rest(HOUR).await;
        let left: BTreeSet<_> = stage
            .records()
            .iter()
            .map(|it| it["id"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(left, ids[5..].iter().map(|id| stage.recorded(id)).collect());
        let since = stage.since(&mark);
        let deleted: usize = since
            .cloudflare_writes()
            .iter()
            .map(|call| match &call.body {
                Some(body) => {
                    assert!(body["posts"].is_null() && body["patches"].is_null(), "{body}");
                    body["deletes"].as_array().map_or(0, Vec::len)
                }
                None => 1,
            })
            .sum();
        assert_eq!(deleted, 5);
        assert!(ids[5..].iter().all(|id| stage.user.is_ready(id)));
    });
}
