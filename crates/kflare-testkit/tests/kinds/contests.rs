//! Somebody who changes a field back again and again is noticed, named, and not fought. Field case 130.

use kflare_sim::Plan;
use serde_json::json;

use crate::stage::{HOUR, MINUTE, play_in_zone};

/// Changes the TTL back a minute after each correction, for so long; when the corrections came, in minutes.
// Field case 130.
#[test]
fn a_contested_field_is_named_and_corrected_ever_more_rarely() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        let began = stage.seconds();
        let mark = stage.mark();
        while stage.seconds() - began < 24 * 3600 {
            if stage.remote(&remote)["ttl"] == 1 {
                stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            }
            stage.rest(MINUTE).await;
        }
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert!(
            (5..=12).contains(&writes.len()),
            "{} corrections in a day",
            writes.len()
        );
        let gaps: Vec<_> = writes
            .windows(2)
            .map(|pair| pair[1].at.duration_since(pair[0].at))
            .collect();
        assert!(gaps[gaps.len() - 1] > gaps[3] * 3 && gaps[3] > gaps[0], "{gaps:?}");
        assert_eq!(stage.user.ready(&id), ("False".to_owned(), "Contested".to_owned()));
        assert!(stage.user.message(&id).contains("ttl"), "{}", stage.user.message(&id));
        assert_eq!(stage.status(&id)["contested"]["fields"], json!(["ttl"]));
        assert!(
            since.kubernetes_writes.len() <= 4 * writes.len(),
            "{}",
            since.kubernetes_writes.len()
        );

        // The other side rests: corrected once more, and Ready again for good.
        stage
            .until_within("Ready again", 30 * HOUR, |stage| stage.user.is_ready(&id))
            .await;
        assert_eq!(stage.remote(&remote)["ttl"], 1);
        assert!(stage.status(&id)["contested"].is_null(), "{}", stage.status(&id));
        let mark = stage.mark();
        stage.rest(24 * HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

/// When the other side gives in by itself, nothing is left to correct and it says so.
#[test]
fn a_contest_that_the_other_side_ends_is_over() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        while stage.user.ready(&id).1 != "Contested" {
            stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            stage.rest(MINUTE).await;
        }
        stage.foreign_patch(&remote, &json!({ "ttl": 1 }));
        let mark = stage.mark();
        stage
            .until_within("Ready again", HOUR, |stage| stage.user.is_ready(&id))
            .await;
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

#[test]
fn a_contest_ends_when_the_user_gives_in() {
    play_in_zone(Plan::Pro, |stage| async move {
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let remote = stage.recorded(&id).unwrap();
        while stage.user.ready(&id).1 != "Contested" {
            stage.foreign_patch(&remote, &json!({ "ttl": 300 }));
            stage.rest(MINUTE).await;
        }
        let mark = stage.mark();
        stage
            .user
            .edit_spec(&id, &json!({ "ttl": 300, "comment": "as they like it" }));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        assert_eq!(since.cloudflare_writes().len(), 1, "{:#?}", since.cloudflare_writes());
        assert!(stage.status(&id)["contested"].is_null());
    });
}
