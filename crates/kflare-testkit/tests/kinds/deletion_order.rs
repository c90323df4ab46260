//! The order in which a user deletes things never matters. Field case 124.

use std::time::Duration;

use kflare_sim::Plan;
use kflare_testkit::simulation::User;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde_json::json;

use crate::stage::{DOMAIN, MINUTE, ZONE, play, play_in_zone, record, zone, zone_id};

// Field case 124.
#[test]
fn any_order_of_deletion_ends_with_nothing_left() {
    for seed in 0..20 {
        play(seed, |stage| async move {
            stage.user.open_account(vec![]);
            stage.user.connect();
            stage.user.zone(ZONE, DOMAIN);
            let mut ids = vec![User::secret_id(), User::account_id(), zone_id()];
            ids.push(stage.create(zone("second", json!({ "name": "example.org" }))));
            for n in 0..12 {
                let mut manifest = record(
                    &format!("r{n}"),
                    json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" }),
                );
                if n % 3 == 0 {
                    manifest["spec"]["zoneRef"]["name"] = json!("second");
                }
                ids.push(stage.create(manifest));
            }
            stage.start();
            let mut chance = StdRng::seed_from_u64(seed);
            // Some orders meet a controller that has not finished creating.
            if chance.random_bool(0.7) {
                stage.ready(&ids[1..]).await;
            } else {
                stage.rest(Duration::from_millis(chance.random_range(0..3000))).await;
            }
            stage.cloudflare.set_zone_plan(DOMAIN, Plan::Pro).ok();
            ids.shuffle(&mut chance);
            for id in &ids {
                stage.user.delete(id);
                stage.rest(Duration::from_millis(chance.random_range(0..2000))).await;
            }
            let began = stage.seconds();
            stage.gone(&ids).await;
            assert!(
                stage.seconds() - began < 180,
                "seed {seed}: {} s",
                stage.seconds() - began
            );
            assert!(
                stage.cloudflare.zones().is_empty(),
                "seed {seed}: {:?}",
                stage.cloudflare.zones()
            );
            let mark = stage.mark();
            stage.rest(30 * MINUTE).await;
            assert!(stage.since(&mark).calls.is_empty(), "nothing is left to look at");
        });
    }
}

/// Deleted by mistake, an account waits for all that refers to it; that goes on being looked after, and edits of it are carried out.
#[test]
fn what_worked_goes_on_while_its_account_waits_to_go() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record(
            "x",
            json!({ "name": "x", "type": "A", "content": "192.0.2.1", "ttl": 300 }),
        );
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.delete(&User::account_id());
        stage.says(&User::account_id(), "False", "InUse").await;
        stage.rest(MINUTE).await;
        assert!(stage.user.is_ready(&id) && stage.user.is_ready(&zone_id()));
        stage.foreign_patch(&stage.recorded(&id).unwrap(), &json!({ "ttl": 600 }));
        stage.until("put right", |stage| stage.records()[0]["ttl"] == 300).await;
        stage.user.edit_spec(&id, &json!({ "ttl": 900 }));
        stage
            .until("carried out", |stage| stage.records()[0]["ttl"] == 900)
            .await;
        let new = stage.create(zone("new", json!({ "name": "example.org" })));
        stage.says(&new, "False", "AccountNotReady").await;
    });
}
