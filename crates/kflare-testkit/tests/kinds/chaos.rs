//! Ten minutes in which every call fails in its own way. Field case 106.

use std::time::Duration;

use kflare_sim::{Dropped, Fault, FaultMatch, FaultSpec, Plan};
use serde_json::json;

use crate::stage::{DOMAIN, MINUTE, ZONE, play, status, zone_id};

// Field case 106.
#[test]
fn two_hundred_records_come_through_ten_bad_minutes_exactly_once() {
    for seed in 0..3 {
        // All is well within two minutes of the end, or when a gate that Cloudflare closed at the last moment opens again.
        come_through(seed, None, 120);
        come_through(seed, Some(Fault::RateLimited { retry_after: None }), 300 + 120);
    }
}

fn come_through(seed: u64, rare: Option<Fault>, seconds: u64) {
    play(seed, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        stage.start();
        stage.ready(&[zone_id()]).await;
        stage.cloudflare.set_zone_plan(DOMAIN, Plan::Pro).unwrap();
        let faults = [
            status(500, 10_000),
            Fault::Html {
                status: 502,
                body: "<html>bad gateway</html>".to_owned(),
            },
            Fault::DropAfter {
                dropped: Some(Dropped::Reset),
            },
            Fault::DropBefore {
                dropped: Some(Dropped::Reset),
            },
            Fault::Truncate { bytes: 100 },
            Fault::Html {
                status: 200,
                body: "{\"success\": tr".to_owned(),
            },
            Fault::Delay { ms: 5000 },
        ];
        for fault in faults {
            let spec = FaultSpec::new(FaultMatch::any(), fault).probability(0.2);
            stage.cloudflare.add_fault(spec).unwrap();
        }
        if let Some(fault) = rare {
            let spec = FaultSpec::new(FaultMatch::any(), fault).probability(0.02);
            stage.cloudflare.add_fault(spec).unwrap();
        }
        let spec = |n: usize| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
        let ids: Vec<_> = (0..200).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
        for _ in 0..10 {
            stage.rest(MINUTE).await;
            for id in ids.iter().step_by(7) {
                stage
                    .user
                    .edit_spec(id, &json!({ "comment": format!("at {}", stage.seconds()) }));
            }
        }
        let calls = stage.cloudflare.calls().len();
        assert!(calls < 1900, "{calls} calls are over the budget");
        stage.cloudflare.clear_faults();
        let began = stage.seconds();
        stage.ready(&ids).await;
        assert!(stage.seconds() - began <= seconds, "{} s", stage.seconds() - began);
        assert_eq!(stage.records().len(), 200, "none twice");
        for id in &ids {
            assert_eq!(stage.times_told(id, "InternalError"), 0, "no answer makes it panic");
        }
        stage.rest(Duration::from_secs(90)).await;
        let mark = stage.mark();
        stage.rest(60 * MINUTE).await;
        stage.since(&mark).assert_no_write();
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        assert!(stage.records().is_empty(), "nor any orphan");
    });
}
