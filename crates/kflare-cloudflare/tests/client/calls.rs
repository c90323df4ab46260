//! Single calls: what is sent, what is tried again, what is refused, what is known afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kflare_cloudflare::{
    Error, Metrics, Outcome, Pool, PoolOptions, Request, RequestFault, TokenFault, TransportErrorKind, WallClock,
    WriteGate,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};

use crate::script::{Step, client, pool, token, transport};

fn get() -> Request {
    Request::get("/zones/{zone_id}", &["z1"])
}

fn writes() -> [Request; 4] {
    let body = json!({"ttl": 1});
    [
        Request::post("/zones", &[]).json(&body),
        Request::put("/zones/{zone_id}/x", &["z1"]).json(&body),
        Request::patch("/zones/{zone_id}", &["z1"]).json(&body),
        Request::delete("/zones/{zone_id}", &["z1"]),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_call_carries_token_path_and_body_and_gives_the_result() {
    let (client, calls) = client(|_, _| Step::ok(&json!({"id": "z1"})));
    let request = Request::post("/zones/{zone_id}/dns_records", &["z 1"])
        .query("a", "b")
        .json(&json!({"ttl": 1}));
    let result: Value = client.call(request).await.unwrap();
    assert_eq!(result, json!({"id": "z1"}));
    let call = &calls.all()[0];
    assert_eq!(
        call.uri,
        "https://api.example.com/client/v4/zones/z%201/dns_records?a=b"
    );
    assert_eq!(call.authorization, format!("Bearer {}", token(1)));
    assert_eq!(call.body, r#"{"ttl":1}"#);
}

#[tokio::test(start_paused = true)]
async fn the_whole_envelope_can_be_had() {
    let (client, _) = client(|_, _| {
        Step::json(201, &json!({"result": [1], "result_info": {"count": 1}}))
            .header("date", "Sun, 29 Nov 2026 15:14:00 GMT")
    });
    let reply = client.call_raw(get()).await.unwrap();
    assert_eq!(
        (reply.result, reply.result_info),
        (json!([1]), Some(json!({"count": 1})))
    );
    assert_eq!(reply.status, 201);
    assert_eq!(
        reply.date.map(|date| date.to_string()).as_deref(),
        Some("2026-11-29T15:14:00Z")
    );
}

#[tokio::test(start_paused = true)]
async fn a_delete_may_answer_with_nothing() {
    let (client, _) = client(|_, _| Step::body(204, ""));
    let [.., delete] = writes();
    client.call::<IgnoredAny>(delete).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_get_is_tried_three_times_within_the_pauses() {
    for step in [
        || Step::body(502, "<html>Bad gateway</html>"),
        || Step::body(500, r#"{"success":false,"err"#),
        || Step::body(408, ""),
        || Step::body(200, r#"{"success":true,"resu"#),
        || Step::lost(TransportErrorKind::NotSent),
        || Step::lost(TransportErrorKind::Timeout),
        || Step::lost(TransportErrorKind::Interrupted),
    ] {
        let (failing, calls) = client(move |_, _| step());
        let error = failing.call::<Value>(get()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
        let at: Vec<Instant> = calls.all().iter().map(|call| call.at).collect();
        assert_eq!(at.len(), 3, "{error}");
        assert!((250..=1_010).contains(&(at[1] - at[0]).as_millis()));
        assert!((250..=4_010).contains(&(at[2] - at[1]).as_millis()));

        let (recovering, calls) = client(move |n, _| if n < 2 { step() } else { Step::ok(&json!(1)) });
        assert_eq!(recovering.call::<Value>(get()).await.unwrap(), json!(1));
        assert_eq!(calls.count(), 3);
    }
}

// Field case 118.
#[tokio::test(start_paused = true)]
async fn a_single_authentication_error_is_not_a_verdict_but_two_are() {
    let (once, calls) = client(|n, _| {
        if n == 0 {
            Step::refused(403, 10_000)
        } else {
            Step::ok(&json!(1))
        }
    });
    assert!(once.call::<Value>(get()).await.is_ok());
    assert_eq!(calls.count(), 2);

    let (always, calls) = client(|_, _| Step::refused(403, 10_000));
    let error = always.call::<Value>(get()).await.unwrap_err();
    assert_eq!(
        (error.status(), error.has_code(10_000), calls.count()),
        (Some(403), true, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_not_tried_again() {
    for step in [
        || Step::refused(400, 7_003),
        || Step::refused(401, 1_000),
        || Step::refused(403, 9_109),
        || Step::refused(404, 81_044),
        || Step::refused(200, 10_003),
        || Step::body(302, ""),
    ] {
        let (client, calls) = client(move |_, _| step());
        assert!(client.call::<Value>(get()).await.is_err());
        assert_eq!(calls.count(), 1);
    }
    // An answer of an unexpected shape stays so.
    let (client, calls) = client(|_, _| Step::ok(&json!("text")));
    assert!(matches!(client.call::<u64>(get()).await, Err(Error::Decode { .. })));
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_never_tried_again_and_says_what_is_known() {
    for (step, outcome) in [
        (Step::lost as fn(TransportErrorKind) -> Step, None),
        (|_| Step::body(500, "oops"), Some(Outcome::Unknown)),
        (|_| Step::body(524, "<html></html>"), Some(Outcome::Unknown)),
        (|_| Step::body(408, ""), Some(Outcome::Unknown)),
        (|_| Step::body(200, r#"{"success":true,"resu"#), Some(Outcome::Unknown)),
        (|_| Step::refused(400, 81_058), Some(Outcome::NotApplied)),
        (|_| Step::refused(403, 10_000), Some(Outcome::NotApplied)),
        (|_| Step::refused(200, 10_003), Some(Outcome::NotApplied)),
        (|_| Step::refused(429, 1), Some(Outcome::NotApplied)),
    ] {
        for (kind, lost) in [
            (TransportErrorKind::NotSent, Outcome::NotApplied),
            (TransportErrorKind::Timeout, Outcome::Unknown),
            (TransportErrorKind::Interrupted, Outcome::Unknown),
        ] {
            for request in writes() {
                let (client, calls) = client(move |_, _| step(kind));
                let error = client.call::<Value>(request).await.unwrap_err();
                assert_eq!(error.outcome(), outcome.unwrap_or(lost), "{error}");
                assert_eq!(calls.count(), 1);
            }
        }
    }
    // The answer is well formed but not what the caller can read: the write happened.
    let (client, _) = client(|_, _| Step::ok(&json!("text")));
    let [post, ..] = writes();
    assert_eq!(client.call::<u64>(post).await.unwrap_err().outcome(), Outcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_its_time_with_all_its_retries() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)).after(Duration::from_secs(1_000)));
    let started = Instant::now();
    let error = client.call::<Value>(get()).await.unwrap_err();
    assert_eq!((started.elapsed(), calls.count()), (Duration::from_mins(2), 1));
    assert!(error.to_string().contains("no answer from Cloudflare in time"));

    let [post, ..] = writes();
    assert_eq!(
        client.call::<Value>(post).await.unwrap_err().outcome(),
        Outcome::Unknown
    );
}

struct CountingGate {
    asked: AtomicUsize,
    allowed: usize,
}

impl WriteGate for CountingGate {
    fn check(&self) -> Result<(), String> {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        if before < self.allowed {
            Ok(())
        } else {
            Err("no longer the leader".to_owned())
        }
    }
}

fn gate(allowed: usize) -> Arc<CountingGate> {
    Arc::new(CountingGate {
        asked: AtomicUsize::new(0),
        allowed,
    })
}

#[tokio::test(start_paused = true)]
async fn the_write_gate_is_asked_again_after_the_wait() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    let [post, put, ..] = writes();
    // Allowed when the call is made, no longer when its turn comes.
    let gate = gate(1);
    let gated = client.with_write_gate(Arc::clone(&gate) as Arc<dyn WriteGate>);
    let error = gated.call::<Value>(post).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(reason) if reason == "no longer the leader"));
    assert_eq!(
        (error.outcome(), gate.asked.load(Ordering::SeqCst)),
        (Outcome::NotApplied, 2)
    );
    gated.call::<Value>(get()).await.unwrap();
    assert_eq!(gate.asked.load(Ordering::SeqCst), 2, "a GET is not asked about");
    client.call::<Value>(put).await.unwrap();
    assert_eq!(calls.count(), 2, "the client without the gate still writes");
}

#[tokio::test(start_paused = true)]
async fn a_read_only_client_sends_nothing_but_gets_and_stays_so() {
    let (client, calls) = client(|_, _| Step::ok(&json!(1)));
    let read_only = client.read_only().with_write_gate(gate(usize::MAX));
    for request in writes() {
        assert!(matches!(read_only.call::<Value>(request).await, Err(Error::Refused(_))));
    }
    read_only.call::<Value>(get()).await.unwrap();
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_for_a_bad_token_or_a_malformed_request() {
    let (pool, calls) = pool(PoolOptions::default(), |_, _| Step::ok(&json!(1)));
    let client = pool.client("account", format!("{}\n", token(1)).into());
    let error = client.call::<Value>(get()).await.unwrap_err();
    assert!(matches!(error, Error::InvalidToken(TokenFault::LineBreak(12))));
    assert_eq!(
        error.to_string(),
        "the API token cannot be used: character 12 is a line break"
    );

    let client = pool.client("account", token(1).into());
    let error = client
        .call::<Value>(Request::delete("/zones/{zone_id}/dns_records/{id}", &["z1", ""]))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Malformed(RequestFault::Segment)));
    assert_eq!(calls.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_debug_or_display_form_shows_the_token() {
    let secret = token(1);
    let echo = secret.clone();
    let (pool, _) = pool(PoolOptions::default(), move |n, _| match n {
        0 => Step::json(
            400,
            &json!({"success": false, "errors": [{"code": 1, "message": format!("bad token {echo}")}]}),
        ),
        1 => Step::body(400, format!("you sent Bearer {echo}")),
        _ => Step::ok(&json!(echo)),
    });
    let client = pool.client("account", secret.clone().into());
    let mut shown = vec![
        format!("{pool:?}"),
        format!("{client:?}"),
        format!("{}", client.credential()),
    ];
    for _ in 0..2 {
        let error = client.call::<Value>(get()).await.unwrap_err();
        shown.push(format!("{error} {error:?}"));
    }
    let error = client.call::<u64>(get()).await.unwrap_err();
    shown.push(format!("{error} {error:?}"));
    shown.push(format!("{:?}", client.call_raw(get()).await.unwrap()));
    for text in shown {
        assert!(!text.contains(&secret), "{text}");
    }
}

struct FixedClock;

impl WallClock for FixedClock {
    fn now(&self) -> jiff::Timestamp {
        "2000-01-01T00:00:00Z".parse().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_time_follows_the_last_date_header() {
    let options = PoolOptions {
        clock: Arc::new(FixedClock),
        ..PoolOptions::default()
    };
    let (pool, _) = pool(options, |n, _| match n {
        0 => Step::ok(&json!(1)),
        1 => Step::refused(404, 1).header("date", "Sun, 29 Nov 2026 15:14:00 GMT"),
        _ => Step::ok(&json!(1)).header("date", "not a date"),
    });
    let client = pool.client("account", token(1).into());
    client.call::<Value>(get()).await.unwrap();
    assert_eq!(client.server_time().to_string(), "2000-01-01T00:00:00Z");
    client.call::<Value>(get()).await.unwrap_err();
    advance(Duration::from_secs(90)).await;
    assert_eq!(client.server_time().to_string(), "2026-11-29T15:15:30Z");
    client.call::<Value>(get()).await.unwrap();
    assert!(client.server_time() > "2026-11-29T15:15:29Z".parse().unwrap());
}

#[tokio::test(start_paused = true)]
async fn exchanges_are_counted_by_route_method_and_code() {
    let registry = prometheus::Registry::new();
    let (transport, _) = transport(|n, _| match n {
        0 => Step::ok(&json!(1)),
        1 => Step::lost(TransportErrorKind::Interrupted),
        _ => Step::refused(429, 1).header("retry-after", "5"),
    });
    let pool = Pool::new(transport, PoolOptions::default(), Metrics::register(&registry).unwrap());
    let client = pool.client("account", token(1).into());
    for request in writes().into_iter().take(2) {
        let _ = client.call::<Value>(request).await;
    }
    client.call::<Value>(get()).await.unwrap_err();
    let text = prometheus::TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let id = client.credential();
    for line in [
        r#"kflare_cloudflare_requests_total{code="200",method="POST",route="/zones"} 1"#,
        r#"kflare_cloudflare_requests_total{code="interrupted",method="PUT",route="/zones/{zone_id}/x"} 1"#,
        r#"kflare_cloudflare_requests_total{code="429",method="GET",route="/zones/{zone_id}"} 1"#,
        r#"kflare_cloudflare_request_seconds_count{method="POST",route="/zones"} 1"#,
        &format!(r#"kflare_cloudflare_budget_left{{credential="{id}"}} 357"#),
        &format!(r#"kflare_cloudflare_gate_closed{{credential="{id}"}} 1"#),
        "kflare_cloudflare_in_flight 0",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
    sleep(Duration::from_secs(6)).await;
    assert_eq!(client.gate_closed_until(), None);
    let text = prometheus::TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    assert!(
        text.contains(&format!(r#"kflare_cloudflare_gate_closed{{credential="{id}"}} 0"#)),
        "{text}"
    );
}
