//! The one document that all rules of a phase share: it is made when it is missing, never a second time, read once for all
//! that are in it, and kept when it is empty.

use kflare_sim::{Fault, FaultMatch, Phase, Plan};
use kflare_testkit::memory_api::ObjectId;

use crate::{
    rules_stage::{ENTRY_POINT, RULES, block, their_block},
    stage::{DOMAIN, HOUR, Stage, play_in_zone, status},
};

const WAF: Phase = Phase::HttpRequestFirewallCustom;

fn blocks(stage: &Stage, count: usize) -> Vec<ObjectId> {
    let one = |n: usize| stage.create(block(&format!("rule-{n:03}"), &format!("192.0.2.{n}"), 0));
    (0..count).map(one).collect()
}

// Field case 36.
#[test]
fn an_entry_point_that_somebody_makes_at_the_same_time_is_used_and_keeps_its_rules() {
    play_in_zone(Plan::Pro, |stage| async move {
        let theirs = [
            stage.foreign_rule(WAF, &their_block("198.51.100.1")),
            stage.foreign_rule(WAF, &their_block("198.51.100.2")),
        ];
        // Neither the list nor the look before the write shows it.
        stage.fault_times(FaultMatch::route("GET", ENTRY_POINT), status(404, 10_003), 2);
        let mark = stage.mark();
        let id = stage.create(block("ours", "192.0.2.1", 0));
        stage.ready(std::slice::from_ref(&id)).await;
        let writes: Vec<String> = stage
            .since(&mark)
            .cloudflare_writes()
            .iter()
            .map(|call| format!("{} {}", call.method, call.status.unwrap_or_default()))
            .collect();
        assert_eq!(writes, ["POST 400", "POST 200"], "refused with 20217, then added");
        let ids = stage.rule_ids(WAF);
        assert_eq!(ids[..2], theirs);
        assert_eq!(ids[2], stage.rule_id(&id).unwrap());
    });
}

#[test]
fn a_missing_entry_point_is_made_with_the_first_rule_and_kept_without_any() {
    play_in_zone(Plan::Pro, |stage| async move {
        assert!(stage.cloudflare.entry_point(DOMAIN, WAF).is_none());
        let ids = blocks(&stage, 3);
        stage.ready(&ids).await;
        let entry_point = stage.cloudflare.entry_point(DOMAIN, WAF).unwrap();
        assert_eq!(entry_point["rules"].as_array().unwrap().len(), 3);
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        let empty = stage.cloudflare.entry_point(DOMAIN, WAF).unwrap();
        assert_eq!(empty["id"], entry_point["id"]);
        assert_eq!(empty["rules"].as_array().unwrap().len(), 0);
    });
}

#[test]
fn an_entry_point_that_somebody_deletes_comes_back_with_our_rules() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids = blocks(&stage, 3);
        stage.ready(&ids).await;
        stage.cloudflare.foreign_delete_entry_point(DOMAIN, WAF).unwrap();
        stage
            .until("all are there again", |stage| {
                stage.rules(WAF).len() == 3 && ids.iter().all(|id| stage.user.is_ready(id))
            })
            .await;
        let recorded: Vec<String> = ids.iter().filter_map(|id| stage.rule_id(id)).collect();
        assert_eq!(stage.rule_ids(WAF), recorded, "in the order of their names");
    });
}

#[test]
fn a_hundred_rules_cost_a_write_each_and_one_read_serves_them_all() {
    play_in_zone(Plan::Business, |stage| async move {
        let mark = stage.mark();
        let ids = blocks(&stage, 100);
        stage.ready(&ids).await;
        let calls = stage.since(&mark).calls.len();
        assert!(calls <= 103, "{calls} calls");
        let mark = stage.mark();
        stage.rest(HOUR).await;
        let since = stage.since(&mark);
        since.assert_no_write();
        let reads = since
            .calls
            .iter()
            .filter(|call| call.path.contains("entrypoint"))
            .count();
        // Every ten minutes, give or take.
        assert!((4..=8).contains(&reads), "{reads} reads in an hour");
    });
}

#[test]
fn a_rule_whose_answer_was_lost_is_found_and_not_made_twice() {
    for dropped in [kflare_sim::Dropped::Hang, kflare_sim::Dropped::Reset] {
        play_in_zone(Plan::Pro, |stage| async move {
            let first = stage.create(block("first", "192.0.2.1", 0));
            stage.ready(std::slice::from_ref(&first)).await;
            let lost = Fault::DropAfter { dropped: Some(dropped) };
            stage.fault_times(FaultMatch::route("POST", RULES), lost, 1);
            let second = stage.create(block("second", "192.0.2.2", 0));
            stage.ready(std::slice::from_ref(&second)).await;
            let recorded = [&first, &second].map(|id| stage.rule_id(id).unwrap());
            assert_eq!(stage.rule_ids(WAF), recorded);
        });
    }
}
