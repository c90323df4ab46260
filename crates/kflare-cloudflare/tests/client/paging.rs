//! Whole lists.

use kflare_cloudflare::{Client, Error, Incompleteness, Paging, Request};
use serde_json::{Value, json};

use crate::script::{Call, Step, client};

const PAGE: Paging = Paging::Page { per_page: 50 };

fn page(rows: impl IntoIterator<Item = u64>, info: &Value) -> Step {
    let rows: Vec<Value> = rows.into_iter().map(|id| json!({"id": id})).collect();
    Step::json(200, &json!({"success": true, "result": rows, "result_info": info}))
}

fn asked_page(call: &Call) -> u64 {
    call.query("page").unwrap().parse().unwrap()
}

async fn ids(client: &Client, style: Paging) -> Result<Vec<u64>, Error> {
    let rows: Vec<Value> = client.list_pages(Request::get("/zones", &[]), style).await?;
    Ok(rows.iter().map(|row| row["id"].as_u64().unwrap()).collect())
}

fn reason(error: &Error) -> Incompleteness {
    match error {
        Error::Incomplete { reason, .. } => *reason,
        other => panic!("not an incomplete list: {other}"),
    }
}

/// A server that holds rows `1..=total` and pages honestly, with or without `total_pages` and `total_count`.
fn honest(total: u64, members: &'static [&'static str]) -> impl Fn(usize, &Call) -> Step + Send + Sync + 'static {
    move |_, call| {
        let (number, size) = (
            asked_page(call),
            call.query("per_page").unwrap().parse::<u64>().unwrap(),
        );
        let rows = (number - 1) * size + 1..=total.min(number * size);
        let mut info = json!({"page": number, "per_page": size, "count": rows.clone().count(),
            "total_count": total, "total_pages": total.div_ceil(size)});
        info.as_object_mut()
            .unwrap()
            .retain(|name, _| members.contains(&name.as_str()));
        page(rows, &info)
    }
}

// Field cases 114, 165.
#[tokio::test(start_paused = true)]
async fn all_pages_are_read_and_no_empty_one_more() {
    for members in [
        ["page", "per_page", "count", "total_count", "total_pages"].as_slice(),
        ["page", "per_page", "count", "total_count"].as_slice(),
        ["total_pages"].as_slice(),
    ] {
        for (total, expected) in [(0, 1), (1, 1), (50, 1), (61, 2), (100, 2), (120, 3)] {
            let (client, calls) = client(honest(total, members));
            assert_eq!(
                ids(&client, PAGE).await.unwrap(),
                (1..=total).collect::<Vec<_>>(),
                "{members:?}"
            );
            assert_eq!(calls.count(), expected, "{total} rows, {members:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_any_counts_a_short_page_ends_the_list() {
    for (total, expected) in [(0, 1), (49, 1), (50, 2), (61, 2)] {
        let (client, calls) = client(honest(total, &[]));
        assert_eq!(ids(&client, PAGE).await.unwrap().len() as u64, total);
        assert_eq!(calls.count(), expected, "{total} rows");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_smaller_or_all_pages_is_read_whole() {
    // Asked for 50, gives 20 and says so.
    let (capped, calls) = client(|_, call| {
        let number = asked_page(call);
        page(
            (number - 1) * 20 + 1..=45.min(number * 20),
            &json!({"page": number, "per_page": 20}),
        )
    });
    assert_eq!(ids(&capped, PAGE).await.unwrap().len(), 45);
    assert_eq!(calls.count(), 3);
    // Knows no pages and sends everything.
    let (everything, calls) = client(|_, _| page(1..=120, &Value::Null));
    assert_eq!(ids(&everything, PAGE).await.unwrap().len(), 120);
    assert_eq!(calls.count(), 1);
}

// Field case 114.
#[tokio::test(start_paused = true)]
async fn a_list_shorter_than_its_count_is_read_again_and_never_believed() {
    let empty_second = |_: usize, call: &Call| match asked_page(call) {
        1 => page(1..=50, &json!({"page": 1, "per_page": 50, "total_count": 120})),
        number => page([], &json!({"page": number, "per_page": 50, "total_count": 120})),
    };
    let (short, calls) = client(empty_second);
    let error = ids(&short, PAGE).await.unwrap_err();
    assert_eq!(reason(&error), Incompleteness::CountDiffers { total: 120, listed: 50 });
    assert_eq!(
        error.to_string(),
        "incomplete list from /zones: Cloudflare counts 120 objects but listed 50"
    );
    assert_eq!(calls.count(), 4);

    // Once only: the second reading is whole.
    let whole = honest(120, &["page", "per_page", "total_count"]);
    let (once, calls) = client(move |n, call| if n < 2 { empty_second(n, call) } else { whole(n, call) });
    assert_eq!(ids(&once, PAGE).await.unwrap().len(), 120);
    assert_eq!(calls.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_grows_while_it_is_read_is_read_again() {
    let script = |moving_calls: usize| {
        move |n: usize, call: &Call| {
            let total = if n < moving_calls { 100 + n as u64 } else { 110 };
            honest(total, &["page", "per_page", "total_count", "total_pages"])(n, call)
        }
    };
    let (settles, calls) = client(script(2));
    assert_eq!(ids(&settles, PAGE).await.unwrap().len(), 110);
    assert_eq!(calls.count(), 5);
    let (never, _) = client(script(1_000));
    assert_eq!(reason(&ids(&never, PAGE).await.unwrap_err()), Incompleteness::Moving);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_again_is_noticed() {
    // The server ignores `page` and admits it.
    let (ignoring, _) = client(|_, _| page(1..=50, &json!({"page": 1, "per_page": 50, "total_pages": 3})));
    assert_eq!(
        reason(&ids(&ignoring, PAGE).await.unwrap_err()),
        Incompleteness::PageRepeated
    );
    // As before, and the rows have changed since, so that only the page number gives it away.
    let (changing, _) = client(|n, _| {
        let first = n as u64 * 50 + 1;
        page(first..first + 50, &json!({"page": 1, "per_page": 50, "total_pages": 3}))
    });
    assert_eq!(
        reason(&ids(&changing, PAGE).await.unwrap_err()),
        Incompleteness::PageRepeated
    );
    // It ignores `page` and says nothing.
    let (silent, _) = client(|_, _| page(1..=50, &Value::Null));
    assert_eq!(
        reason(&ids(&silent, PAGE).await.unwrap_err()),
        Incompleteness::PageRepeated
    );
    // One row moved from the first page to the second while reading; the next reading is clean.
    let (moved, _) = client(|n, call| {
        let info = json!({"page": asked_page(call), "per_page": 50, "total_count": 60});
        match (n, asked_page(call)) {
            (1, 2) => page(50..=59, &info),
            (_, 1) => page(1..=50, &info),
            _ => page(51..=60, &info),
        }
    });
    assert_eq!(ids(&moved, PAGE).await.unwrap(), (1..=60).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn equal_rows_on_one_page_are_rows() {
    let (client, _) = client(|_, _| page([7, 7], &json!({"page": 1, "per_page": 50, "total_count": 2})));
    assert_eq!(ids(&client, PAGE).await.unwrap(), [7, 7]);
}

#[tokio::test(start_paused = true)]
async fn cursors_are_followed_to_their_end() {
    let (rulesets, calls) = client(|_, call| match call.query("cursor").as_deref() {
        None => page(1..=2, &json!({"cursors": {"after": "a/b"}})),
        Some("a%2Fb") => page(3..=4, &json!({"cursors": {"after": "c", "before": "z"}})),
        _ => page(5..=5, &json!({"cursors": {"before": "z"}})),
    });
    assert_eq!(
        ids(&rulesets, Paging::Cursor { per_page: 2 }).await.unwrap(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(calls.uris()[0], "https://api.example.com/client/v4/zones?per_page=2");

    let (stuck, _) = client(|n, _| page([n as u64], &json!({"cursors": {"after": "same"}})));
    assert_eq!(
        reason(&ids(&stuck, Paging::Cursor { per_page: 1 }).await.unwrap_err()),
        Incompleteness::PageRepeated
    );
}

#[tokio::test(start_paused = true)]
async fn a_flat_cursor_and_rows_in_a_member_are_read() {
    let (buckets, calls) = client(|_, call| {
        let (id, cursor) = if call.query("cursor").is_none() {
            (1, "next")
        } else {
            (2, "")
        };
        Step::json(
            200,
            &json!({"success": true, "result": {"buckets": [{"id": id}]}, "result_info": {"cursor": cursor}}),
        )
    });
    let style = Paging::CursorFlat {
        size: "limit",
        rows: 1,
        field: Some("buckets"),
    };
    assert_eq!(ids(&buckets, style).await.unwrap(), [1, 2]);
    assert_eq!(calls.all()[1].query("limit").as_deref(), Some("1"));

    let (versions, calls) = client(|_, call| {
        let number = asked_page(call);
        let info = json!({"page": number, "per_page": 1, "total_count": 2});
        Step::json(
            200,
            &json!({"success": true, "result": {"items": [{"id": number}]}, "result_info": info}),
        )
    });
    assert_eq!(
        ids(
            &versions,
            Paging::PageInObject {
                field: "items",
                per_page: 1
            }
        )
        .await
        .unwrap(),
        [1, 2]
    );
    assert_eq!(calls.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_single_page_is_taken_whole_or_not_at_all() {
    let (whole, calls) = client(|_, _| page(1..=3, &Value::Null));
    assert_eq!(ids(&whole, Paging::Single).await.unwrap(), [1, 2, 3]);
    assert_eq!(calls.uris(), ["https://api.example.com/client/v4/zones"]);
    let (null, _) = client(|_, _| Step::ok(&Value::Null));
    assert_eq!(ids(&null, Paging::Single).await.unwrap(), Vec::<u64>::new());
    let (paged, _) = client(|_, _| page(1..=100, &json!({"page": 1, "per_page": 100, "total_count": 130})));
    assert!(ids(&paged, Paging::Single).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_or_a_bad_row_fails_the_list() {
    let (refused, calls) = client(|n, call| match n {
        0 => honest(60, &["page", "total_pages"])(n, call),
        _ => Step::refused(403, 9_109),
    });
    assert_eq!(ids(&refused, PAGE).await.unwrap_err().status(), Some(403));
    assert_eq!(calls.count(), 2);
    let (client, _) = client(|_, _| page(1..=2, &Value::Null));
    let rows = client
        .list_pages::<String>(Request::get("/zones", &[]), Paging::Single)
        .await;
    assert!(matches!(rows, Err(Error::Decode { .. })));
}
