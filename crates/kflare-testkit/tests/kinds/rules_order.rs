//! Order: our rules stand by priority, then by name; those of others keep their place.

use std::time::Duration;

use kflare_sim::{Phase, Plan};
use kflare_testkit::memory_api::ObjectId;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::{
    rules_stage::{block, their_block, without_versions},
    stage::{DOMAIN, HOUR, MINUTE, Stage, play, play_in_zone, zone_id},
};

const WAF: Phase = Phase::HttpRequestFirewallCustom;

/// The rules of these resources, in the order in which Cloudflare has them.
fn order(stage: &Stage, ids: &[ObjectId]) -> Vec<String> {
    let of = |rule: &str| ids.iter().find(|id| stage.rule_id(id).as_deref() == Some(rule));
    let rules = stage.rule_ids(WAF);
    rules.iter().filter_map(|rule| Some(of(rule)?.name.clone())).collect()
}

#[test]
fn rules_are_put_where_they_belong_among_ours() {
    play_in_zone(Plan::Business, |stage| async move {
        let theirs = stage.foreign_rule(WAF, &their_block("198.51.100.1"));
        let made = [("b", 10), ("e", 30), ("a", 10), ("d", 20), ("c", -1)];
        let mut ids = Vec::new();
        for (name, priority) in made {
            let id = stage.create(block(name, "192.0.2.1", priority));
            stage.ready(std::slice::from_ref(&id)).await;
            ids.push(id);
        }
        assert_eq!(order(&stage, &ids), ["c", "a", "b", "d", "e"]);
        assert_eq!(stage.rule_ids(WAF)[0], theirs);
        let mark = stage.mark();
        stage.rest(HOUR).await;
        stage.since(&mark).assert_no_write();
    });
}

// Field case 38.
#[test]
fn no_rule_changes_its_id_when_another_one_comes_or_goes() {
    play_in_zone(Plan::Business, |stage| async move {
        let ids = [("b", 2), ("c", 3)].map(|(name, priority)| stage.create(block(name, "192.0.2.1", priority)));
        stage.ready(&ids).await;
        let before = ids.clone().map(|id| stage.rule_id(&id));
        let a = stage.create(block("a", "192.0.2.2", 1));
        stage.ready(std::slice::from_ref(&a)).await;
        assert_eq!(ids.clone().map(|id| stage.rule_id(&id)), before);
        stage.user.delete(&ids[0]);
        stage.gone(&ids[..1]).await;
        let recorded = [&a, &ids[1]].map(|id| stage.rule_id(id).unwrap());
        assert_eq!(Some(&recorded[1]), before[1].as_ref());
        assert_eq!(stage.rule_ids(WAF), recorded);
    });
}

// Field case 42.
#[test]
fn rules_that_somebody_swapped_are_put_back_with_one_write() {
    play_in_zone(Plan::Business, |stage| async move {
        let ids = [("deny", 1), ("allow", 2)].map(|(name, priority)| stage.create(block(name, "192.0.2.1", priority)));
        stage.ready(&ids).await;
        let [deny, allow] = ids.clone().map(|id| stage.rule_id(&id).unwrap());
        stage.foreign_rule_patch(WAF, &deny, &json!({ "position": { "after": allow } }));
        assert_eq!(order(&stage, &ids), ["allow", "deny"]);
        let mark = stage.mark();
        stage
            .until("put back", |stage| order(stage, &ids) == ["deny", "allow"])
            .await;
        stage.rest(MINUTE).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        let only_moves = writes[0].body.as_ref().and_then(Value::as_object).unwrap();
        assert_eq!(only_moves.keys().collect::<Vec<_>>(), ["position"]);
        // A new order in the specs is one write, too.
        let mark = stage.mark();
        stage.user.edit_spec(&ids[1], &json!({ "priority": 0 }));
        stage
            .until("turned round", |stage| order(stage, &ids) == ["allow", "deny"])
            .await;
        stage.ready(&ids).await;
        assert_eq!(stage.since(&mark).cloudflare_writes().len(), 1);
    });
}

/// What others have in the phase: their rules in their order, without what Cloudflare counts.
fn theirs(stage: &Stage) -> Vec<Value> {
    let mut rules = stage.rules(WAF);
    rules.retain(|rule| !rule["ref"].as_str().unwrap_or_default().starts_with("kflare_"));
    rules.into_iter().map(without_versions).collect()
}

/// Somebody else's edit.
fn foreign_edit(stage: &Stage, rng: &mut StdRng) {
    let rules = stage.rule_ids(WAF);
    let place = |rng: &mut StdRng| match rules.choose(rng) {
        Some(other) if rng.random_bool(0.7) => {
            let side = if rng.random_bool(0.5) { "before" } else { "after" };
            json!({ side: other })
        }
        _ => json!({ "before": "" }),
    };
    let own: Vec<String> = theirs(stage)
        .iter()
        .filter_map(|rule| rule["id"].as_str().map(str::to_owned))
        .collect();
    match (rng.random_range(0..6), own.choose(rng)) {
        (0, Some(id)) => {
            stage.cloudflare.foreign_delete_rule(DOMAIN, WAF, id).unwrap();
        }
        (1, Some(id)) => stage.foreign_rule_patch(
            WAF,
            id,
            &json!({ "description": format!("theirs {}", rng.random::<u8>()) }),
        ),
        // Any rule may be moved by hand, ours too.
        (2 | 3, _) if !rules.is_empty() => {
            let moved = rules.choose(rng).unwrap().clone();
            let position = place(rng);
            if !position.as_object().unwrap().values().any(|it| *it == moved) {
                stage.foreign_rule_patch(WAF, &moved, &json!({ "position": position }));
            }
        }
        _ => {
            let mut body = their_block(&format!("198.51.100.{}", rng.random::<u8>()));
            body["position"] = place(rng);
            stage.foreign_rule(WAF, &body);
        }
    }
}

struct Ours {
    id: ObjectId,
    priority: i32,
}

fn own_edit(stage: &Stage, rng: &mut StdRng, number: usize, ours: &mut Vec<Ours>) {
    let at = (!ours.is_empty()).then(|| rng.random_range(0..ours.len()));
    match (rng.random_range(0..5), at) {
        (0, Some(at)) => stage.user.delete(&ours.swap_remove(at).id),
        (1, Some(at)) => {
            ours[at].priority = rng.random_range(0..4);
            stage
                .user
                .edit_spec(&ours[at].id, &json!({ "priority": ours[at].priority }));
        }
        (2, Some(at)) => stage.user.edit_spec(
            &ours[at].id,
            &json!({ "description": format!("ours {}", rng.random::<u8>()) }),
        ),
        _ => {
            let priority = rng.random_range(0..4);
            let name = format!("{}-{number}", ["x", "m", "a"][number % 3]);
            let id = stage.create(block(&name, &format!("192.0.2.{number}"), priority));
            ours.push(Ours { id, priority });
        }
    }
}

/// Whatever is done, and whenever: ours end in order, and what others have is as they left it at every moment. Field case 35.
#[test]
fn any_interleaving_with_edits_of_others_ends_in_order_and_leaves_theirs_alone() {
    for seed in 0..24 {
        play(seed, |stage| async move {
            stage.user.open_account(vec![]);
            stage.user.connect();
            stage.user.zone(crate::stage::ZONE, DOMAIN);
            stage.start();
            stage.ready(&[zone_id()]).await;
            stage.cloudflare.set_zone_plan(DOMAIN, Plan::Enterprise).unwrap();
            let mut rng = StdRng::seed_from_u64(seed);
            let mut ours: Vec<Ours> = Vec::new();
            let mut left = theirs(&stage);
            for number in 0..30 {
                assert_eq!(theirs(&stage), left, "seed {seed}, before edit {number}");
                if rng.random_bool(0.5) {
                    foreign_edit(&stage, &mut rng);
                    left = theirs(&stage);
                } else {
                    own_edit(&stage, &mut rng, number, &mut ours);
                }
                // Often the next edit comes before the last one has had an effect.
                let pause = [0, 50, 300, 2_000, 60_000][rng.random_range(0..5)];
                stage.rest(Duration::from_millis(pause)).await;
            }
            ours.sort_by(|a, b| (a.priority, &a.id.name).cmp(&(b.priority, &b.id.name)));
            let wanted: Vec<String> = ours.iter().map(|it| it.id.name.clone()).collect();
            let ids: Vec<ObjectId> = ours.into_iter().map(|it| it.id).collect();
            // Drift checks come every ten minutes; what is contested comes later.
            stage
                .until_within("in order", 6 * HOUR, |stage| {
                    order(stage, &ids) == wanted && ids.iter().all(|id| stage.user.is_ready(id))
                })
                .await;
            let rules = stage.rules(WAF).len();
            assert_eq!(rules, ids.len() + left.len(), "seed {seed}: a rule too many or too few");
            let mark = stage.mark();
            stage.rest(HOUR).await;
            stage.since(&mark).assert_no_cloudflare_write();
            assert_eq!(theirs(&stage), left, "seed {seed}, at rest");
        });
    }
}
