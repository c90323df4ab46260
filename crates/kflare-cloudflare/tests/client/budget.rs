//! The budget of a credential and the gate after a refusal by rate limit.

use std::time::Duration;

use kflare_cloudflare::{Client, Error, Lane, Limit, PoolOptions, Request, Share};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};

use crate::script::{Call, Calls, Step, client, pool, token};

fn get() -> Request {
    Request::get("/zones", &[])
}

/// Makes `count` calls at once and waits for all of them.
async fn burst(client: &Client, count: usize) -> Vec<Result<Value, Error>> {
    let calls: Vec<_> = (0..count)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call::<Value>(get()).await })
        })
        .collect();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    results
}

/// The most calls in any window of this length that begins with a call, both ends included.
fn fullest_window(calls: &[Call], window: Duration) -> usize {
    (0..calls.len())
        .map(|first| {
            calls[first..]
                .iter()
                .take_while(|call| call.at - calls[first].at <= window)
                .count()
        })
        .max()
        .unwrap_or(0)
}

fn limited(error: Error) -> (Instant, Limit) {
    match error {
        Error::RateLimited { until, limit, .. } => (until, limit),
        other => panic!("not a rate limit: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_then_two_a_second_then_refusal() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    let started = Instant::now();
    let results = burst(&client, 1_000).await;
    let refused: Vec<_> = results.into_iter().filter_map(Result::err).map(limited).collect();
    // 360 at once and 20 more within the ten seconds a call may wait.
    assert_eq!(calls.count(), 380);
    assert_eq!(refused.len(), 620);
    let at_once = calls.all().iter().filter(|call| call.at == started).count();
    assert_eq!(at_once, 16, "the first ones fill the places in flight");
    for (until, limit) in refused {
        assert_eq!(limit, Limit::Budget);
        assert!(until - started > Duration::from_secs(10));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_says_beforehand_that_a_call_would_be_turned_away() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    assert_eq!((client.turned_away_until(), client.calls_are_scarce()), (None, false));
    let crowd = {
        let client = client.clone();
        tokio::spawn(async move { burst(&client, 1_000).await })
    };
    // The burst is over, and more wait than have their turn within ten seconds.
    sleep(Duration::from_secs(1)).await;
    let until = client.turned_away_until().unwrap();
    assert!(until > Instant::now() + Duration::from_secs(10), "{until:?}");
    assert!(client.calls_are_scarce());
    let refused = limited(client.call::<Value>(get()).await.unwrap_err());
    assert_eq!(refused, (until, Limit::Budget), "as a call is told");
    crowd.await.unwrap();
    assert_eq!(calls.count(), 380);
    sleep(Duration::from_mins(1)).await;
    assert_eq!((client.turned_away_until(), client.calls_are_scarce()), (None, false));
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_turn_has_come_calls_at_once_and_then_waits_again() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    burst(&client, 360).await;
    let waiting = client.clone();
    let waiting = tokio::spawn(async move { waiting.call::<Value>(get()).await.map(|_| Instant::now()) });
    tokio::task::yield_now().await;
    let asked = Instant::now();
    let in_turn = client.in_turn().await.unwrap();
    let turn = Instant::now();
    assert!(waiting.await.unwrap().unwrap() <= turn, "who came first goes first");
    assert!(turn - asked >= Duration::from_millis(500), "{:?}", turn - asked);
    // However long what is to be sent takes to put together.
    sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    in_turn.call::<Value>(get()).await.unwrap();
    let sent = calls.all().last().unwrap().at;
    assert_eq!(sent, began);
    in_turn.call::<Value>(get()).await.unwrap();
    assert!(calls.all().last().unwrap().at > began, "one turn is one call");
    // A turn that nobody uses holds up nobody.
    let mut unused = Vec::new();
    for _ in 0..16 {
        unused.push(client.in_turn().await.unwrap());
    }
    drop(unused);
    client.call::<Value>(get()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_cannot_come_in_time_is_refused_at_once() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    burst(&client, 360).await;
    let started = Instant::now();
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { (client.call::<Value>(get()).await, started.elapsed()) })
        })
        .collect();
    let mut refused = 0;
    for call in waiting {
        if let (Err(error), after) = call.await.unwrap() {
            let (until, limit) = limited(error);
            assert_eq!((limit, after), (Limit::Budget, Duration::ZERO));
            assert!(until - started > Duration::from_secs(10));
            refused += 1;
        }
    }
    assert_eq!((calls.count(), refused), (380, 80));
}

#[tokio::test(start_paused = true)]
async fn full_use_of_the_default_budget_is_960_in_five_minutes() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    let end = Instant::now() + Duration::from_mins(25);
    while Instant::now() < end {
        burst(&client, 30).await;
    }
    let fullest = fullest_window(&calls.all(), Duration::from_mins(5));
    assert!(fullest <= 960, "{fullest}");
    assert!(fullest >= 950, "the budget can be used: {fullest}");
}

#[derive(Debug, Clone)]
struct Load {
    calls_per_window: u32,
    share: f64,
    window: Duration,
    /// Pause before a group of calls, its size, its lane, and whether the token is rotated before.
    groups: Vec<(u64, usize, usize, bool)>,
}

fn load() -> impl Strategy<Value = Load> {
    let groups = proptest::collection::vec((0_u64..4_000, 1_usize..30, 0_usize..5, any::<bool>()), 1..25);
    (1_u32..150, 0.1_f64..=1.0, 1_u64..40, groups).prop_map(|(calls_per_window, share, seconds, groups)| Load {
        calls_per_window,
        share,
        window: Duration::from_secs(seconds),
        groups,
    })
}

async fn run(load: &Load) -> Calls {
    let options = PoolOptions {
        calls_per_window: load.calls_per_window,
        budget_share: Share::try_from(load.share).unwrap(),
        window: load.window,
        ..PoolOptions::default()
    };
    // Some refusals by rate limit and some failures, so that gates and retries take part.
    let (pool, calls) = pool(options, |n, _| match n % 29 {
        7 => Step::body(500, ""),
        23 => Step::refused(429, 10_013).header("retry-after", "2"),
        _ => Step::ok(&json!(1)),
    });
    let lanes = [
        Lane::UserChange,
        Lane::Delete,
        Lane::Retry,
        Lane::Dependent,
        Lane::DriftCheck,
    ];
    let mut number = 0;
    let mut tasks = Vec::new();
    for &(pause, count, lane, rotate) in &load.groups {
        sleep(Duration::from_millis(pause)).await;
        number += u32::from(rotate);
        let client = pool.client("account", token(number).into()).in_lane(lanes[lane]);
        for _ in 0..count {
            let client = client.clone();
            tasks.push(tokio::spawn(async move { client.call::<Value>(get()).await }));
        }
    }
    for task in tasks {
        let _ = task.await.unwrap();
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // Field case 161.
    #[test]
    fn no_window_ever_holds_more_than_the_share_whatever_the_load_and_rotations(load in load()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let calls = runtime.block_on(run(&load)).all();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let limit = ((f64::from(load.calls_per_window) * load.share).floor() as usize).max(1);
        let fullest = fullest_window(&calls, load.window);
        prop_assert!(fullest <= limit, "{fullest} calls in a window that may hold {limit}");
        prop_assert!(!calls.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn rotating_the_token_gives_no_fresh_allowance() {
    let (pool, calls) = pool(PoolOptions::default(), |_, _| Step::ok(&json!(1)));
    for number in 0..10 {
        burst(&pool.client("account", token(number).into()), 300).await;
    }
    let tokens: std::collections::BTreeSet<String> = calls.all().into_iter().map(|call| call.authorization).collect();
    assert_eq!(tokens.len(), 10, "the new token is used at once");
    assert!(fullest_window(&calls.all(), Duration::from_mins(5)) <= 960);
    assert!(
        calls
            .all()
            .iter()
            .filter(|call| call.at.elapsed() > Duration::from_secs(90))
            .count()
            <= 380
    );
}

#[tokio::test(start_paused = true)]
async fn two_credentials_have_two_budgets() {
    let (pool, calls) = pool(PoolOptions::default(), |_, _| Step::ok(&json!(1)));
    let first = pool.client("a", token(1).into());
    let second = pool.client("b", token(2).into());
    assert_ne!(first.credential(), second.credential());
    burst(&first, 360).await;
    let before = Instant::now();
    let results = burst(&second, 200).await;
    assert!(results.iter().all(Result::is_ok));
    assert!(before.elapsed() < Duration::from_secs(1));
    assert_eq!(calls.count(), 560);
}

#[tokio::test(start_paused = true)]
async fn a_429_closes_the_gate_for_retry_after_and_calls_start_again_slowly() {
    let (client, calls) = client(|n, _| match n {
        0 => Step::refused(429, 10_013).header("retry-after", "7"),
        _ => Step::ok(&json!(1)),
    });
    let error = client.call::<Value>(get()).await.unwrap_err();
    assert_eq!(error.status(), Some(429));
    assert!(error.has_code(10_013));
    let (until, limit) = limited(error);
    assert_eq!(
        (until - Instant::now(), limit),
        (Duration::from_secs(7), Limit::Cloudflare)
    );
    assert_eq!(client.gate_closed_until(), Some(until));

    for lane in [
        Lane::UserChange,
        Lane::Delete,
        Lane::Retry,
        Lane::Dependent,
        Lane::DriftCheck,
    ] {
        let error = client.in_lane(lane).call::<Value>(get()).await.unwrap_err();
        assert_eq!(limited(error), (until, Limit::Cloudflare));
    }
    assert_eq!(calls.count(), 1, "nothing left while the gate was closed");

    advance(Duration::from_secs(7)).await;
    assert_eq!(client.gate_closed_until(), None);
    let opened = Instant::now();
    assert!(burst(&client, 10).await.iter().all(Result::is_ok));
    let gaps: Vec<Duration> = calls.all()[1..].iter().map(|call| call.at - opened).collect();
    let expected: Vec<Duration> = (1..=10).map(|n| Duration::from_millis(500 * n)).collect();
    assert_eq!(gaps, expected);
}

#[tokio::test(start_paused = true)]
async fn the_gate_time_comes_from_the_header_or_is_five_minutes() {
    for (step, seconds) in [
        (Step::body(429, "null"), 300),
        (Step::refused(429, 6_100).header("retry-after", "soon"), 300),
        (Step::refused(429, 9_109).header("retry-after", "0"), 1),
        (Step::refused(429, 1).header("retry-after", "999999"), 3_600),
        (Step::refused(200, 971), 300),
        (Step::refused(400, 971).header("retry-after", "12"), 12),
        (
            Step::refused(429, 1)
                .header("date", "Sun, 29 Nov 2026 15:14:00 GMT")
                .header("retry-after", "Sun, 29 Nov 2026 15:15:30 GMT"),
            90,
        ),
    ] {
        let step = std::sync::Mutex::new(Some(step));
        let (client, _) = client(move |_, _| step.lock().unwrap().take().unwrap());
        let request = Request::post("/zones", &[]).json(&json!({}));
        let (until, limit) = limited(client.call::<Value>(request).await.unwrap_err());
        assert_eq!(
            (until - Instant::now(), limit),
            (Duration::from_secs(seconds), Limit::Cloudflare)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_closing_gate_turns_waiting_calls_away_and_holds_for_the_next_token() {
    let options = PoolOptions {
        max_in_flight: 1,
        ..PoolOptions::default()
    };
    let (pool, calls) = pool(options, |_, _| {
        Step::refused(429, 1)
            .header("retry-after", "60")
            .after(Duration::from_secs(1))
    });
    let client = pool.client("account", token(1).into());
    let started = Instant::now();
    let results = burst(&client, 5).await;
    assert!(
        results
            .into_iter()
            .all(|result| limited(result.unwrap_err()).1 == Limit::Cloudflare)
    );
    assert_eq!((calls.count(), started.elapsed()), (1, Duration::from_secs(1)));

    let rotated = pool.client("account", token(2).into());
    assert_eq!(rotated.gate_closed_until(), client.gate_closed_until());
    let other = pool.client("other", token(3).into());
    assert_eq!(other.gate_closed_until(), None);
}

#[tokio::test(start_paused = true)]
async fn a_later_and_shorter_refusal_does_not_shorten_the_gate() {
    let (client, _) = client(|n, _| match n {
        0 => Step::refused(429, 1).header("retry-after", "100"),
        _ => Step::refused(429, 1)
            .header("retry-after", "5")
            .after(Duration::from_secs(1)),
    });
    let started = Instant::now();
    burst(&client, 2).await;
    assert_eq!(
        client.gate_closed_until().unwrap() - started,
        Duration::from_millis(100_001)
    );
}
