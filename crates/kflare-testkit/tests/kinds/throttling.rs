//! 429: a property of the credential. Everything waits, nothing turns, all goes on afterwards. Field case 161.

use kflare_sim::{Fault, FaultMatch, Plan, RateLimit};
use serde_json::json;

use crate::stage::{MINUTE, play_in_zone};

#[test]
fn the_gate_is_kept_and_no_condition_turns() {
    for (retry_after, closed) in [(Some(120), 120), (Some(30), 30), (None, 300)] {
        play_in_zone(Plan::Pro, |stage| async move {
            let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
            let ids: Vec<_> = (0..6).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
            stage.ready(&ids).await;
            stage.rest(MINUTE).await;
            let mark = stage.mark();
            stage.fault_times(FaultMatch::any(), Fault::RateLimited { retry_after }, 1);
            for id in &ids {
                stage.user.edit_spec(id, &json!({ "ttl": 300 }));
            }
            let late = stage.record("late", spec(99));
            stage
                .until("refused once", |stage| !stage.since(&mark).calls.is_empty())
                .await;
            stage.rest(std::time::Duration::from_secs(closed - 5)).await;
            let calls = stage.since(&mark).calls;
            assert_eq!(calls.len(), 1, "nothing is sent while the gate is closed: {calls:#?}");
            assert!(ids.iter().all(|id| stage.user.ready(id).0 == "True"), "nothing turns");
            stage.rest(MINUTE).await;
            assert!(
                ids.iter().chain([&late]).all(|id| stage.user.is_ready(id)),
                "{}",
                stage.explain(&late)
            );
            let turned = stage
                .since(&mark)
                .kubernetes_writes
                .into_iter()
                .filter(|it| it.request.body.contains("\"False\""));
            assert!(turned.into_iter().all(|it| it.request.name.as_deref() == Some("late")));
        });
    }
}

/// Cloudflare's own limit is never met, however much there is to do.
// Field case 161.
#[test]
fn the_limit_is_never_crossed() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.cloudflare.set_rate_limit(Some(RateLimit {
            calls: 1200,
            window_seconds: 300,
            block_seconds: 300,
        }));
        let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
        let ids: Vec<_> = (0..300).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        stage.ready(&ids).await;
        // Each list refused: everything is asked for one by one.
        stage.fault(
            FaultMatch::route("GET", crate::stage::RECORDS),
            crate::stage::status(403, 9109),
        );
        for round in 0..8 {
            for id in &ids {
                stage
                    .user
                    .annotate(id, kflare_api::names::RECONCILE_AT, Some(&round.to_string()));
            }
            stage.rest(MINUTE).await;
        }
        let refused = stage
            .cloudflare
            .calls()
            .into_iter()
            .filter(|call| call.status == Some(429))
            .count();
        assert_eq!(refused, 0);
        stage.rest(30 * MINUTE).await;
        assert!(ids.iter().all(|id| stage.user.is_ready(id)));
        assert!(ids.iter().all(|id| stage.status(id)["lastReconcileAt"] == "7"));
    });
}
