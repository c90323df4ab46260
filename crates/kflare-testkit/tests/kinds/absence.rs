//! A refusal, a failed page, a short, an empty or a stale list is never read as "gone". Field cases 113, 114, 118.

use kflare_sim::{Fault, FaultMatch, Plan, Totals, ZoneSeed};
use kflare_testkit::{
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, ControllerOptions},
};
use serde_json::{Value, json};

use crate::stage::{HOUR, MINUTE, RECORD, RECORDS, Stage, adopting, play, play_in_zone, status, zone};

fn spec(n: usize) -> Value {
    json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" })
}

async fn records(stage: &Stage, count: usize) -> Vec<ObjectId> {
    let ids: Vec<_> = (0..count).map(|n| stage.record(&format!("r{n}"), spec(n))).collect();
    stage.ready(&ids).await;
    stage.rest(2 * MINUTE).await;
    ids
}

/// What an asked-for reconcile says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    /// All is well: each record was found in another way.
    StaysReady,
    /// That it could not look.
    Fails,
}

/// Drift checks and a restart, then asked-for reconciles, while something is wrong with the lists.
async fn assert_nothing_is_believed_gone(stage: &Stage, ids: &[ObjectId], asked: Asked, what: &str) {
    let before = stage.records();
    let mark = stage.mark();
    stage.rest(45 * MINUTE).await;
    let first = stage.start_with("another", ControllerOptions::default());
    stage.rest(45 * MINUTE).await;
    stage.since(&mark).assert_no_write();
    first.kill();
    for id in ids {
        assert!(stage.user.is_ready(id), "{what}: {}", stage.explain(id));
        stage.user.annotate(id, kflare_api::names::RECONCILE_AT, Some("1"));
    }
    stage.rest(30 * MINUTE).await;
    stage.since(&mark).assert_no_cloudflare_write();
    assert_eq!(stage.records(), before, "{what}");
    for id in ids {
        assert_eq!(stage.times_told(id, "RemoteObjectGone"), 0, "{what}");
        let (status, reason) = stage.user.ready(id);
        match asked {
            Asked::StaysReady => assert_eq!(status, "True", "{what}: {reason}"),
            Asked::Fails => assert!(
                ["Synced", "APIError", "TerminalError"].contains(&reason.as_str()),
                "{what}: {reason}"
            ),
        }
    }
    stage.cloudflare.clear_faults();
    stage
        .until_within("all is well again", 8 * HOUR, |stage| {
            ids.iter().all(|id| stage.user.is_ready(id))
        })
        .await;
    stage.since(&mark).assert_no_cloudflare_write();
}

#[test]
fn no_answer_to_a_list_makes_a_record_gone() {
    let faults = [
        ("a refused list", status(403, 9109), Asked::StaysReady),
        (
            "a refused list, by another code",
            status(403, 10_000),
            Asked::StaysReady,
        ),
        (
            "an empty list that says so",
            Fault::EmptyList { totals: Totals::Zero },
            Asked::Fails,
        ),
        (
            "an empty list with the true number",
            Fault::EmptyList { totals: Totals::True },
            Asked::Fails,
        ),
        (
            "a list of before",
            Fault::StaleList {
                seconds: None,
                mark: Some("before".to_owned()),
            },
            Asked::Fails,
        ),
        (
            "a list that lags",
            Fault::StaleList {
                seconds: Some(30),
                mark: None,
            },
            Asked::StaysReady,
        ),
        ("a list that breaks off", Fault::Truncate { bytes: 100 }, Asked::Fails),
        (
            "a list that is HTML",
            Fault::Html {
                status: 200,
                body: "<html>login</html>".to_owned(),
            },
            Asked::Fails,
        ),
        ("a list that is not there", status(404, 1003), Asked::Fails),
        (
            "a list that is not there, by the record's code",
            status(404, 81044),
            Asked::Fails,
        ),
        (
            "a list that is refused as a bad request",
            status(400, 1003),
            Asked::Fails,
        ),
        ("a list that fails", status(500, 10_000), Asked::Fails),
        ("a list that fails for want of the server", status(522, 0), Asked::Fails),
    ];
    for (what, fault, asked) in faults {
        for count in [1, 3, 6] {
            let fault = fault.clone();
            play_in_zone(Plan::Pro, |stage| async move {
                stage.cloudflare.mark("before");
                let ids = records(&stage, count).await;
                stage.fault(FaultMatch::route("GET", RECORDS), fault);
                assert_nothing_is_believed_gone(&stage, &ids, asked, what).await;
            });
        }
    }
}

/// The answer to a single look-up is a verdict only with the code that says so.
// Field case 119.
#[test]
fn no_answer_to_a_look_up_but_the_records_own_code_makes_it_gone() {
    for (code, number) in [
        (404, 1003),
        (404, 7003),
        (403, 9109),
        (401, 10_000),
        (400, 1003),
        (500, 10_000),
    ] {
        play_in_zone(Plan::Pro, |stage| async move {
            let ids = records(&stage, 1).await;
            stage.fault(FaultMatch::route("GET", RECORD), status(code, number));
            let (before, mark) = (stage.records(), stage.mark());
            stage.rest(3 * HOUR).await;
            stage.since(&mark).assert_no_cloudflare_write();
            assert_eq!(stage.records(), before);
            assert_eq!(stage.times_told(&ids[0], "RemoteObjectGone"), 0, "{code} {number}");
            stage.cloudflare.clear_faults();
            stage
                .until_within("Ready again", 2 * HOUR, |stage| stage.user.is_ready(&ids[0]))
                .await;
            stage.since(&mark).assert_no_cloudflare_write();
        });
    }
}

/// With the list and each single answer wrong at once there is nothing to go by, and nothing is done.
#[test]
fn an_empty_list_and_refused_look_ups_create_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 6).await;
        stage.fault(
            FaultMatch::route("GET", RECORDS),
            Fault::EmptyList { totals: Totals::Zero },
        );
        stage.fault(FaultMatch::route("GET", RECORD), status(403, 10_000));
        let mark = stage.mark();
        for id in &ids {
            stage.user.annotate(id, kflare_api::names::RECONCILE_AT, Some("1"));
        }
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(stage.records().len(), 6);
    });
}

/// Our own write is not taken back by a list that does not show it yet.
#[test]
fn a_list_that_lags_behind_our_writes_causes_no_second_write() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = records(&stage, 6).await;
        stage.fault(
            FaultMatch::route("GET", RECORDS),
            Fault::StaleList {
                seconds: Some(45),
                mark: None,
            },
        );
        for ttl in [300, 600, 900] {
            let mark = stage.mark();
            for id in &ids {
                stage.user.edit_spec(id, &json!({ "ttl": ttl }));
            }
            stage.ready(&ids).await;
            for round in 0..4 {
                stage.rest(std::time::Duration::from_secs(12)).await;
                stage.reconcile(&ids, &format!("{ttl} {round}")).await;
            }
            let since = stage.since(&mark);
            let changes: usize = since
                .cloudflare_writes()
                .iter()
                .map(|call| {
                    call.body
                        .as_ref()
                        .and_then(|body| body["patches"].as_array())
                        .map_or(1, Vec::len)
                })
                .sum();
            assert_eq!(changes, ids.len(), "{:#?}", since.cloudflare_writes());
            assert!(stage.records().iter().all(|it| it["ttl"] == ttl));
        }
    });
}

/// Field case 114: 61 zones are two pages; the wanted ones stand on the second.
#[test]
fn a_failed_second_page_hides_no_zone() {
    let faults = [
        status(500, 10_000),
        status(403, 9109),
        Fault::EmptyList { totals: Totals::True },
        Fault::EmptyList { totals: Totals::Zero },
    ];
    for fault in faults {
        play(6, |stage| async move {
            let zones = (0..61).map(|n| ZoneSeed::named(&format!("z{n:02}.example"), ACCOUNT_ID));
            stage.user.open_account(zones.collect());
            stage.user.connect();
            stage.start();
            let adopt = |n: usize| {
                stage.create(adopting(
                    zone(&format!("z{n}"), json!({ "name": format!("z{n}.example") })),
                    "adopt-or-create",
                ))
            };
            let ids: Vec<_> = (55..61).map(adopt).collect();
            stage.ready(&ids).await;
            let page = FaultMatch {
                page: Some(2),
                ..FaultMatch::route("GET", "/zones")
            };
            stage.fault(page, fault.clone());
            let mark = stage.mark();
            stage.rest(HOUR).await;
            let late = stage.create(adopting(
                zone("z50", json!({ "name": "z50.example" })),
                "adopt-or-create",
            ));
            stage.rest(HOUR).await;
            stage.since(&mark).assert_no_cloudflare_write();
            assert!(ids.iter().all(|id| stage.user.is_ready(id)), "{fault:?}");
            stage.cloudflare.clear_faults();
            stage
                .until_within("adopted in the end", 8 * HOUR, |stage| stage.user.is_ready(&late))
                .await;
            stage.since(&mark).assert_no_cloudflare_write();
            assert_eq!(stage.cloudflare.zones().len(), 61);
        });
    }
}
