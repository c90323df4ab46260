//! The batch call is one transaction.

use crate::support::*;
use kflare_sim::{Effect, Plan};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn deletes_patches_puts_posts_in_this_order() {
    let api = api_on(Plan::Free);
    let old = id_of(&api.create(address("a", "192.0.2.1")).await.result());
    let moved = id_of(&api.create(address("b", "192.0.2.2")).await.result());
    let replaced = id_of(
        &api.create(json!({ "type": "A", "name": "c", "content": "192.0.2.3", "comment": "old" }))
            .await
            .result(),
    );
    // Each step needs what the one before it makes room for.
    let batch = json!({
        "posts": [{ "type": "CNAME", "name": "c", "content": "x.example.net" }],
        "puts": [{ "id": replaced, "type": "A", "name": "b", "content": "192.0.2.2" }],
        "patches": [{ "id": moved, "name": "a", "content": "192.0.2.1" }],
        "deletes": [{ "id": old }],
    });
    let done = api.batch(batch).await.result();
    assert_eq!(done["deletes"][0]["id"], old.as_str());
    assert_eq!(
        done["deletes"][0]["content"], "192.0.2.1",
        "deleted records come back whole"
    );
    assert_eq!(done["patches"][0]["name"], "a.example.com");
    assert_eq!(
        (&done["puts"][0]["name"], &done["puts"][0]["comment"]),
        (&json!("b.example.com"), &json!(null))
    );
    assert_eq!(done["posts"][0]["name"], "c.example.com");
    assert_eq!(api.record_count(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_undoes_everything() {
    let api = api_on(Plan::Free);
    let id = id_of(&api.create(address("a", "192.0.2.1")).await.result());
    let before = api.sim.dump();
    let good = |name: &str| address(name, "192.0.2.9");
    let cases = [
        (json!({ "deletes": [{ "id": id }, { "id": UNKNOWN }] }), (404, 81044)),
        (json!({ "deletes": [{}] }), (404, 81044)),
        (
            json!({ "patches": [{ "id": id, "content": "192.0.2.7" }, { "id": id, "content": "x" }] }),
            (400, 9005),
        ),
        (
            json!({ "deletes": [{ "id": id }], "puts": [{ "id": id, "type": "A", "name": "a", "content": "192.0.2.1" }] }),
            (404, 81044),
        ),
        (json!({ "posts": [good("b"), good("c"), good("b")] }), (400, 81058)),
        (
            json!({ "deletes": [{ "id": id }], "posts": [good("b"), { "type": "TXT", "name": "t", "content": "" }] }),
            (400, 9207),
        ),
        (json!({ "posts": ["x"] }), (400, 6007)),
        (json!({ "posts": {} }), (400, 6007)),
    ];
    for (batch, refusal) in cases {
        assert_eq!(api.batch(batch.clone()).await.refusal(), refusal, "{batch}");
        assert_eq!(
            api.sim.calls().last().map(|call| call.effect),
            Some(Effect::None),
            "{batch}"
        );
        assert_eq!(api.sim.dump()["zones"], before["zones"], "{batch}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_of_all_operations_together() {
    for (plan, limit) in [(Plan::Free, 200), (Plan::Pro, 3500)] {
        let api = api_on(plan);
        let posts = |count: usize| {
            (0..count)
                .map(|n| address(&format!("h{n}"), "192.0.2.1"))
                .collect::<Vec<_>>()
        };
        let too_many = json!({ "deletes": [{ "id": UNKNOWN }], "posts": posts(limit) });
        assert_eq!(api.batch(too_many).await.refusal(), (400, 1004));
        assert_eq!(api.record_count(), 0);
        let done = api.batch(json!({ "posts": posts(limit) })).await.result();
        assert_eq!(done["posts"].as_array().map(Vec::len), Some(limit));
        assert_eq!(api.record_count(), limit);
    }
}
