//! Watches that fall silent.

use std::time::Duration;

use kflare_sim::Plan;
use kflare_testkit::memory_api::WatchCut;
use serde_json::json;

use crate::stage::{MINUTE, Stage, play_in_zone};

/// What a load balancer does that drops quiet connections and tells nobody.
fn silence(stage: &Stage) {
    let watched = [
        "dnsrecords.kflare.dev",
        "zones.kflare.dev",
        "cloudflareaccounts.kflare.dev",
        "secrets",
        "namespaces",
    ];
    for resource in watched {
        stage.world.api.cut_watches(resource, WatchCut::Silence);
    }
}

// Field case 140.
#[test]
fn a_watch_that_hangs_is_given_up_before_users_notice() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        silence(&stage);
        // After five minutes of silence an edit is seen at once.
        stage.rest(5 * MINUTE).await;
        stage.user.edit_spec(&id, &json!({ "ttl": 300 }));
        stage
            .until_within("seen", MINUTE, |stage| stage.records()[0]["ttl"] == 300)
            .await;
        // An edit in the silence itself is seen within the four minutes that a watch lasts.
        silence(&stage);
        stage.rest(Duration::from_secs(5)).await;
        stage.user.edit_spec(&id, &json!({ "ttl": 600 }));
        let other = stage.record("y", json!({ "name": "y", "type": "A", "content": "192.0.2.1" }));
        stage
            .until_within("seen", 4 * MINUTE, |stage| {
                stage.user.is_ready(&id)
                    && stage.user.is_ready(&other)
                    && stage.remote(&stage.recorded(&id).unwrap())["ttl"] == 600
            })
            .await;
    });
}
