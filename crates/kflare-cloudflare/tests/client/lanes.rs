//! Who leaves first, and how many at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kflare_cloudflare::{Client, Error, Lane, Limit, PoolOptions, Request};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::script::{Step, pool, token};

const LANES: [Lane; 5] = [
    Lane::UserChange,
    Lane::Delete,
    Lane::Retry,
    Lane::Dependent,
    Lane::DriftCheck,
];

fn get(mark: usize) -> Request {
    Request::get("/zones", &[]).query("mark", mark)
}

/// One call a second, however long calls have to wait for it.
fn one_a_second() -> PoolOptions {
    PoolOptions {
        calls_per_window: 480,
        budget_share: 1.0.try_into().unwrap(),
        max_wait: Duration::from_hours(1),
        call_timeout: Duration::from_hours(1),
        ..PoolOptions::default()
    }
}

fn call(client: &Client, mark: usize) -> JoinHandle<Result<Value, Error>> {
    let client = client.clone();
    tokio::spawn(async move { client.call(get(mark)).await })
}

/// Uses the burst of [`one_a_second`] up.
async fn exhaust(client: &Client) {
    let calls: Vec<_> = (0..180).map(|_| call(client, 9)).collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn lanes_leave_in_order_and_first_come_first_served_within_one() {
    let (pool, calls) = pool(one_a_second(), |_, _| Step::ok(&json!(1)));
    let client = pool.client("account", token(1).into());
    exhaust(&client).await;
    // 180 grants so far: the next eighth one is the fourth from here. Three calls show the plain order.
    let mut waiting = Vec::new();
    for (mark, lane) in [(3, Lane::DriftCheck), (1, Lane::UserChange), (2, Lane::UserChange)] {
        waiting.push(call(&client.in_lane(lane), mark));
        tokio::task::yield_now().await;
    }
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    let marks: Vec<String> = calls.all()[180..]
        .iter()
        .filter_map(|call| call.query("mark"))
        .collect();
    assert_eq!(marks, ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn every_eighth_call_comes_from_the_lane_passed_over_the_longest() {
    let (pool, calls) = pool(one_a_second(), |_, _| Step::ok(&json!(1)));
    let client = pool.client("account", token(1).into());
    exhaust(&client).await;
    let mut waiting = Vec::new();
    for (mark, lane) in LANES.into_iter().enumerate() {
        for _ in 0..if lane == Lane::UserChange { 60 } else { 3 } {
            waiting.push(call(&client.in_lane(lane), mark));
        }
    }
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    let marks: Vec<usize> = calls.all()[180..]
        .iter()
        .filter_map(|call| call.query("mark")?.parse().ok())
        .take(40)
        .collect();
    let floored: Vec<(usize, usize)> = marks
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, mark)| *mark != 0)
        .collect();
    // Grants 184, 192, 200 ... are eighth ones.
    assert_eq!(floored, [(3, 1), (11, 2), (19, 3), (27, 4), (35, 1)]);
}

#[tokio::test(start_paused = true)]
async fn no_lane_starves_under_a_flood_of_user_changes() {
    let (pool, calls) = pool(PoolOptions::default(), |_, _| Step::ok(&json!(1)));
    let client = pool.client("account", token(1).into());
    let end = Instant::now() + Duration::from_mins(10);
    let mut tasks = Vec::new();
    for (mark, lane) in LANES.into_iter().enumerate() {
        for _ in 0..if lane == Lane::UserChange { 60 } else { 2 } {
            let client = client.in_lane(lane);
            tasks.push(tokio::spawn(async move {
                while Instant::now() < end {
                    if let Err(Error::RateLimited { until, .. }) = client.call::<Value>(get(mark)).await {
                        sleep_until(until).await;
                    }
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    for mark in 0..LANES.len() {
        let count = calls
            .all()
            .iter()
            .filter(|call| call.query("mark") == Some(mark.to_string()))
            .count();
        // An eighth of some 1,560 calls, shared by four lanes.
        assert!(count >= 35, "lane {mark} made {count} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_bounded_and_those_that_wait_too_long_are_told_so() {
    let (pool, calls) = pool(PoolOptions::default(), |_, _| {
        Step::ok(&json!(1)).after(Duration::from_secs(30))
    });
    let client = pool.client("account", token(1).into());
    let started = Instant::now();
    let waiting: Vec<_> = (0..20).map(|mark| call(&client, mark)).collect();
    let mut refused = 0;
    for call in waiting {
        if let Err(error) = call.await.unwrap() {
            let Error::RateLimited { limit, until, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(limit, Limit::InFlight);
            assert_eq!(until - started, Duration::from_secs(11));
            refused += 1;
        }
    }
    assert_eq!((calls.count(), refused), (16, 4));
}

#[tokio::test(start_paused = true)]
async fn a_place_in_flight_goes_to_the_first_lane_and_then_round_the_credentials() {
    let options = PoolOptions {
        max_in_flight: 1,
        ..PoolOptions::default()
    };
    let (pool, calls) = pool(options, |_, _| Step::ok(&json!(1)).after(Duration::from_millis(100)));
    let first = pool.client("a", token(1).into());
    let second = pool.client("b", token(2).into());
    let mut waiting = vec![call(&first, 0)];
    tokio::task::yield_now().await;
    for mark in [1, 2] {
        waiting.push(call(&first.in_lane(Lane::DriftCheck), mark));
    }
    waiting.push(call(&first.in_lane(Lane::Delete), 3));
    waiting.push(call(&second.in_lane(Lane::DriftCheck), 4));
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    let marks: Vec<String> = calls.all().iter().filter_map(|call| call.query("mark")).collect();
    assert_eq!(marks, ["0", "4", "3", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_frees_its_place_in_the_queue_and_in_flight() {
    let in_flight = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&in_flight);
    let options = PoolOptions {
        max_in_flight: 1,
        ..PoolOptions::default()
    };
    let (pool, calls) = pool(options, move |_, _| {
        seen.fetch_add(1, Ordering::SeqCst);
        Step::ok(&json!(1)).after(Duration::from_secs(5))
    });
    let client = pool.client("account", token(1).into());
    let flying = call(&client, 0);
    tokio::task::yield_now().await;
    let queued = call(&client, 1);
    let last = call(&client, 2);
    tokio::task::yield_now().await;
    queued.abort();
    flying.abort();
    assert!(queued.await.unwrap_err().is_cancelled());
    assert!(flying.await.unwrap_err().is_cancelled());
    let aborted = Instant::now();
    last.await.unwrap().unwrap();
    assert_eq!(aborted.elapsed(), Duration::from_secs(5));
    assert_eq!(calls.count(), 2, "the queued call never left");
    assert_eq!(in_flight.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_dropped_at_any_moment_leave_no_place_taken() {
    let options = PoolOptions {
        max_in_flight: 2,
        ..PoolOptions::default()
    };
    let (pool, _) = pool(options, |n, _| {
        Step::ok(&json!(1)).after(Duration::from_millis(1 + n as u64 % 7))
    });
    let client = pool.client("account", token(1).into());
    for round in 0..200_u64 {
        let flying: Vec<_> = (0..4).map(|mark| call(&client, mark)).collect();
        sleep(Duration::from_millis(round % 9)).await;
        for call in &flying {
            call.abort();
        }
        for call in flying {
            let _ = call.await;
        }
    }
    // Both places are free: two slow calls overlap.
    let started = Instant::now();
    let done = Arc::new(Mutex::new(Vec::new()));
    let calls: Vec<_> = (0..2)
        .map(|mark| {
            let (client, done) = (client.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                client.call::<Value>(get(mark)).await.unwrap();
                done.lock().unwrap().push(started.elapsed());
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(done.lock().unwrap().len(), 2);
}
