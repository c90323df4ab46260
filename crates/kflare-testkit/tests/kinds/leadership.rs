//! One replica writes, whatever happens to it.

use std::time::Duration;

use kflare_sim::Plan;
use kflare_testkit::{
    memory_api::{Fault, FaultRule, Symptom},
    simulation::ControllerOptions,
};
use serde_json::json;

use crate::stage::{DOMAIN, MINUTE, Stage, ZONE, play, zone_id};

fn holder(stage: &Stage) -> String {
    let leases = stage.world.api.list("leases.coordination.k8s.io");
    leases.first().map_or_else(String::new, |lease| {
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    })
}

/// The writes to Cloudflare in their order: who sent them.
fn writers(stage: &Stage) -> Vec<String> {
    let lines = stage.world.api.trace().lines();
    let writes = lines.iter().filter_map(|line| {
        let mut words = line.split_once(" cf #")?.1.split(' ').skip(1);
        let (life, method) = (words.next()?, words.next()?);
        ["POST", "PATCH", "PUT", "DELETE"]
            .contains(&method)
            .then(|| life.to_owned())
    });
    writes.collect()
}

// Field case 143. The leader sees everything but cannot renew its lease: it stops before another may begin.
#[test]
fn a_leader_cut_off_from_the_api_server_has_stopped_writing_before_the_next_begins() {
    for symptom in [Symptom::Silence, Symptom::ConnectionReset] {
        play(71, |stage| async move {
            stage.user.open_account(vec![]);
            stage.user.connect();
            stage.user.zone(ZONE, DOMAIN);
            for name in ["one", "two"] {
                let options = ControllerOptions {
                    replica: Some(name.to_owned()),
                    ..ControllerOptions::default()
                };
                stage.start_with(name, options);
            }
            let ids: Vec<_> = (0..2)
                .map(|n| {
                    stage.record(
                        &format!("r{n}"),
                        json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1" }),
                    )
                })
                .collect();
            stage.ready(&[zone_id(), ids[0].clone(), ids[1].clone()]).await;
            stage.cloudflare.set_zone_plan(DOMAIN, Plan::Pro).unwrap();
            stage.rest(MINUTE).await;
            let old = holder(&stage);
            let new = if old == "one" { "two" } else { "one" };
            let before = writers(&stage).len();
            // Open watches go on: it still sees each edit.
            let cut_off = old.clone();
            stage
                .world
                .api
                .inject(FaultRule::new(Fault::LoseRequest(symptom), move |request| {
                    request.life == cut_off
                }));
            let began = stage.seconds();
            for second in 0..60 {
                for id in &ids {
                    stage.user.edit_spec(id, &json!({ "ttl": 300 + second }));
                }
                stage.rest(Duration::from_secs(1)).await;
                if holder(&stage) == new && writers(&stage).last().is_some_and(|it| it == new) {
                    break;
                }
            }
            assert_eq!(holder(&stage), new, "{symptom:?}");
            assert!(
                stage.seconds() - began <= 20,
                "{symptom:?}: {} s",
                stage.seconds() - began
            );
            stage.ready(&ids).await;
            let writers = writers(&stage);
            let first = writers.iter().skip(before).position(|it| it == new).unwrap() + before;
            assert!(writers[before..first].iter().all(|it| *it == old));
            assert!(
                writers[first..].iter().all(|it| it == new),
                "{symptom:?}: both write: {:?}",
                &writers[before..]
            );
        });
    }
}
