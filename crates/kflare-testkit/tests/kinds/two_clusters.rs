//! Two clusters on one account.

use kflare_sim::ZoneSeed;
use kflare_testkit::{memory_api::ObjectId, simulation::ACCOUNT_ID};
use serde_json::json;

use crate::stage::{DOMAIN, HOUR, Stage, ZONE, adopting, play, record, zone, zone_id};

/// Two clusters, each with a controller, an account resource and the same zone adopted.
async fn neighbours(stage: Stage) -> [Stage; 2] {
    let world = stage.world.another_cluster();
    let other = Stage {
        user: world.user(),
        cloudflare: stage.cloudflare.clone(),
        world,
    };
    stage.user.open_account(vec![ZoneSeed::named(DOMAIN, ACCOUNT_ID)]);
    for it in [&stage, &other] {
        it.user.connect();
        it.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
        it.start();
        it.ready(&[zone_id()]).await;
    }
    [stage, other]
}

fn alias(target: &str) -> serde_json::Value {
    json!({ "name": "x", "type": "CNAME", "content": target })
}

// Field case 130.
#[test]
fn the_second_cluster_says_that_the_record_exists_and_neither_deletes_nor_changes_it() {
    play(41, |stage| async move {
        let [one, two] = neighbours(stage).await;
        let first = one.record("x", alias("one.example.net"));
        one.ready(std::slice::from_ref(&first)).await;
        let second = two.record("x", alias("two.example.net"));
        two.says(&second, "False", "AlreadyExists").await;
        let (mark, other_mark) = (one.mark(), two.mark());
        one.rest(24 * HOUR).await;
        one.since(&mark).assert_no_write();
        two.since(&other_mark).assert_no_write();
        assert_eq!(one.records().len(), 1);
        assert_eq!(one.records()[0]["content"], "one.example.net");
        let creates = one
            .cloudflare
            .calls()
            .into_iter()
            .filter(|call| call.method == "POST")
            .count();
        assert_eq!(creates, 1);
        // Going again it takes nothing with it.
        two.user.delete(&second);
        two.gone(&[second]).await;
        assert_eq!(one.records()[0]["content"], "one.example.net");
        assert!(one.user.is_ready(&first));
    });
}

// Field case 130. Both were told to take it: nobody can be right, so both say so and fight ever more rarely.
#[test]
fn two_clusters_that_both_adopted_a_record_do_not_change_it_back_and_forth() {
    play(42, |stage| async move {
        let [one, two] = neighbours(stage).await;
        let first = one.record("x", alias("one.example.net"));
        one.ready(std::slice::from_ref(&first)).await;
        let second = two.create(adopting(record("x", alias("two.example.net")), "adopt"));
        let mark = one.mark();
        one.rest(24 * HOUR).await;
        let since = one.since(&mark);
        let writes = since.cloudflare_writes();
        assert!(writes.len() <= 40, "{} changes in a day", writes.len());
        assert!(writes.iter().all(|call| call.method == "PATCH"), "{writes:#?}");
        let contested =
            |it: &Stage, id: &ObjectId| it.user.ready(id).1 == "Contested" || it.status(id)["contested"].is_object();
        assert!(
            contested(&one, &first) || contested(&two, &second),
            "{}\n{}",
            one.explain(&first),
            two.explain(&second)
        );
        // One side goes. It had adopted the record, so it stays, and the other comes to rest.
        two.user.delete(&second);
        two.gone(&[second]).await;
        one.until_within("Ready again", 48 * HOUR, |one| one.user.is_ready(&first))
            .await;
        assert_eq!(one.records()[0]["content"], "one.example.net");
        let mark = one.mark();
        one.rest(24 * HOUR).await;
        one.since(&mark).assert_no_cloudflare_write();
    });
}
