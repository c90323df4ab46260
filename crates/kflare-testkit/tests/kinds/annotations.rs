//! Annotations under kflare's prefix that are none of its own.

use kflare_api::names;
use kflare_sim::Plan;
use serde_json::json;

use crate::stage::{HOUR, annotated, play_in_zone, record};

/// Whoever wrote it wanted the record kept: deleting it all the same could not be undone.
#[test]
fn a_misspelt_annotation_is_named_and_nothing_is_written_until_it_is_corrected() {
    play_in_zone(Plan::Pro, |stage| async move {
        let spec = json!({ "name": "x", "type": "A", "content": "192.0.2.1" });
        let id = stage.create(annotated(record("x", spec), "kflare.dev/deletion-polcy", "retain"));
        let mark = stage.mark();
        stage.says(&id, "False", "InvalidSpec").await;
        let message = stage.user.message(&id);
        for word in ["kflare.dev/deletion-polcy", "did you mean kflare.dev/deletion-policy"] {
            assert!(message.contains(word), "{message}");
        }
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage.user.annotate(&id, "kflare.dev/deletion-polcy", None);
        stage.ready(std::slice::from_ref(&id)).await;

        // Also on what is managed already, and also in deletion.
        stage.user.annotate(&id, "kflare.dev/deletionPolicy", Some("retain"));
        stage.says(&id, "False", "InvalidSpec").await;
        stage.user.delete(&id);
        stage.rest(HOUR).await;
        assert_eq!(stage.records().len(), 1);
        assert!(
            stage.user.message(&id).contains("did you mean"),
            "{}",
            stage.user.message(&id)
        );
        stage.user.annotate(&id, names::DELETION_POLICY, Some("retain"));
        stage.user.annotate(&id, "kflare.dev/deletionPolicy", None);
        stage.gone(&[id]).await;
        assert_eq!(stage.records().len(), 1, "kept, as was asked for");
    });
}

/// A later kflare, or a tool beside it, may have put it there.
#[test]
fn an_unknown_annotation_has_no_effect_and_is_named() {
    play_in_zone(Plan::Pro, |stage| async move {
        let spec = json!({ "name": "x", "type": "A", "content": "192.0.2.1" });
        let id = stage.create(annotated(record("x", spec), "kflare.dev/team", "blue"));
        stage.ready(std::slice::from_ref(&id)).await;
        assert!(
            stage.user.message(&id).contains("kflare.dev/team"),
            "{}",
            stage.user.message(&id)
        );
        stage.user.annotate(&id, "kflare.dev/team", None);
        stage
            .until("it is forgotten", |stage| !stage.user.message(&id).contains("team"))
            .await;
        let mark = stage.mark();
        stage.rest(5 * HOUR).await;
        stage.since(&mark).assert_no_write();
        assert!(stage.user.is_ready(&id));
    });
}
