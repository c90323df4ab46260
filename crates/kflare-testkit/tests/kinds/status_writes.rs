//! What status says, and when; and what happens when it cannot be written.

use std::time::Duration;

use kflare_sim::{Fault, FaultMatch, Plan};
use kflare_testkit::memory_api::{Fault as StoreFault, FaultRule, Symptom};
use serde_json::json;

use crate::stage::{BATCH, MINUTE, RECORD, RECORDS, play_in_zone};

// Field case 133. The id is in status before anything else, or the object is found again.
#[test]
fn a_status_that_cannot_be_written_after_a_create_makes_no_second_record() {
    let faults = [
        StoreFault::status(409, "Conflict", "the object has been modified"),
        StoreFault::status(500, "InternalError", "etcdserver: request timed out"),
        StoreFault::LoseRequest(Symptom::ConnectionReset),
        StoreFault::LoseReply(Symptom::ConnectionReset),
    ];
    for fault in faults {
        for count in [1, 6] {
            let fault = fault.clone();
            play_in_zone(Plan::Pro, |stage| async move {
                let rule = FaultRule::new(fault.clone(), |request| {
                    request.resource == "dnsrecords.kflare.dev"
                        && request.subresource.as_deref() == Some("status")
                        && request.body.contains("recordID")
                });
                stage.world.api.inject(rule.times(3 * count));
                let spec = |n| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
                let ids: Vec<_> = (0..count).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
                stage.ready(&ids).await;
                stage.rest(2 * MINUTE).await;
                assert_eq!(stage.records().len(), ids.len(), "{fault}");
                for id in &ids {
                    let recorded = stage.recorded(id).unwrap();
                    assert_eq!(stage.remote(&recorded)["name"], format!("{}.example.com", id.name));
                    assert_eq!(stage.status(id)["ownership"]["origin"], "Created", "{fault}");
                }
            });
        }
    }
}

// Field case 164. As long as the call is under way, or fails, no condition is Ready for the new generation.
#[test]
fn a_generation_does_not_count_as_observed_before_its_effect() {
    let slow = Fault::Delay { ms: 90_000 };
    let broken = Fault::DropBefore {
        dropped: Some(kflare_sim::Dropped::Hang),
    };
    for fault in [slow, broken] {
        for count in [1, 5] {
            let fault = fault.clone();
            play_in_zone(Plan::Pro, |stage| async move {
                let spec = |n| json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" });
                let ids: Vec<_> = (0..count).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
                stage.ready(&ids).await;
                for (method, route) in [("PATCH", RECORD), ("POST", BATCH), ("POST", RECORDS)] {
                    stage.fault(FaultMatch::route(method, route), fault.clone());
                }
                for id in &ids {
                    stage.user.edit_spec(id, &json!({ "ttl": 300 }));
                }
                let new = stage.record("new", spec(99));
                // Neither the change nor the new record has been answered so far.
                for second in 0..85 {
                    for id in ids.iter().chain([&new]) {
                        let condition = &stage.status(id)["conditions"][0];
                        let observed = condition["observedGeneration"] == stage.metadata(id)["generation"];
                        let ready = condition["status"] == "True";
                        assert!(
                            !(observed && ready),
                            "{fault:?} after {second} s: {}",
                            stage.explain(id)
                        );
                    }
                    stage.rest(Duration::from_secs(1)).await;
                }
                stage.cloudflare.clear_faults();
                stage.ready(&ids).await;
                stage.ready(&[new]).await;
            });
        }
    }
}
