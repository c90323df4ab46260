//! Observe only: everything is read and reported, nothing is written.

use kflare_api::names;
use kflare_sim::Plan;
use serde_json::{Value, json};

use crate::stage::{HOUR, adopting, annotated, play_in_zone, record};

fn lines(status: &Value) -> String {
    let lines = status["plan"].as_array().cloned().unwrap_or_default();
    lines
        .iter()
        .fold(String::new(), |all, line| all + line.as_str().unwrap() + "\n")
}

#[test]
fn the_plan_is_reported_and_nothing_is_written() {
    play_in_zone(Plan::Pro, |stage| async move {
        let existing = stage.foreign(&json!({ "name": "x", "type": "A", "content": "192.0.2.1", "ttl": 300 }));
        let observe = |manifest: Value| annotated(manifest, names::MODE, "observe");
        let spec = |name: &str| json!({ "name": name, "type": "A", "content": "192.0.2.1" });
        let mark = stage.mark();
        let made = stage.create(observe(record("made", spec("new"))));
        let left = stage.create(observe(record("left", spec("x"))));
        let taken = stage.create(observe(adopting(record("taken", spec("x")), "adopt")));
        stage.says(&made, "False", "Observing").await;
        stage.says(&left, "False", "AlreadyExists").await;
        stage.says(&taken, "False", "Observing").await;
        stage.rest(5 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        for id in [&made, &left, &taken] {
            let metadata = stage.metadata(id);
            assert!(
                metadata["finalizers"].is_null() && metadata["labels"].is_null(),
                "{metadata}"
            );
        }
        assert!(
            lines(&stage.status(&made)).starts_with("create\n"),
            "{}",
            stage.status(&made)
        );
        assert!(lines(&stage.status(&made)).contains("content: (unset) -> \"192.0.2.1\""));
        assert!(
            lines(&stage.status(&taken)).contains("adopt\nttl: 300 -> 1\n"),
            "{}",
            stage.status(&taken)
        );
        assert_eq!(stage.remote(&existing)["ttl"], 300);
        // The same resource, managed: what was planned is done, and the plan goes.
        stage.user.annotate(&taken, names::MODE, None);
        stage.ready(std::slice::from_ref(&taken)).await;
        assert_eq!(stage.remote(&existing)["ttl"], 1);
        assert!(stage.status(&taken)["plan"].is_null());
    });
}

#[test]
fn a_managed_record_that_is_only_observed_shows_drift_and_keeps_it() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.user.annotate(&id, names::MODE, Some("observe"));
        stage
            .until("observed", |stage| lines(&stage.status(&id)) == "unchanged\n")
            .await;
        assert!(stage.user.is_ready(&id));
        stage.foreign_patch(&stage.recorded(&id).unwrap(), &json!({ "ttl": 600 }));
        stage
            .until("drift is seen", |stage| stage.user.ready(&id).1 == "Observing")
            .await;
        assert!(
            lines(&stage.status(&id)).contains("update\nttl: 600 -> 1\n"),
            "{}",
            stage.status(&id)
        );
        stage.rest(HOUR).await;
        assert_eq!(stage.records()[0]["ttl"], 600);
        // It goes without a trace at Cloudflare.
        stage.user.delete(&id);
        stage.gone(&[id]).await;
        assert_eq!(stage.records().len(), 1);
    });
}
