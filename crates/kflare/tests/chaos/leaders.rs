//! Two replicas, and a leader that loses its Lease while a write of it is under way: it has stopped before the next begins.

use kflare_testkit::cluster::WaitError;
use serde_json::json;

use crate::harness::life::{Life, Setting};
use crate::harness::point::{Call, Moment, Plane};
use crate::harness::site::Site;
use crate::harness::tenant::{Kind, Tenant};
use crate::harness::wire::{Aim, Crossing, Grip, Trap};

/// How the leader comes to lose its Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// It no longer reaches the API server.
    Partition,
    /// It stands still, as a machine that is paused or starved, and goes on later.
    Standstill,
}

fn to_cloudflare(life: &Life) -> Vec<Crossing> {
    let mut crossings = life.wire.crossings();
    crossings.retain(|crossing| crossing.call.plane == Plane::Cloudflare);
    crossings
}

/// Waits until a controller has written something of that resource to Kubernetes.
async fn until_written(tenant: &Tenant<'_>, life: &Life, name: &str) -> Result<(), WaitError> {
    let written = async || {
        let mut crossings = life.wire.crossings().into_iter();
        let of_it = |it: &Crossing| it.call.plane == Plane::Kubernetes && it.call.path.ends_with(name);
        Ok::<_, String>(crossings.any(|it| of_it(&it)).then_some(()))
    };
    tenant.until(&format!("a write of {name}"), written).await
}

async fn lose_the_lease_in_mid_write(tenant: &Tenant<'_>, loss: Loss, lives: &mut Vec<Life>) -> Result<(), WaitError> {
    let contender = |trap: Trap| Setting {
        trap: Some(trap),
        lease: Some(tenant.home().to_owned()),
        ..Setting::default()
    };
    // The first gets stuck in its first change of a record, which takes effect and is not answered.
    let stuck = Trap {
        aim: Aim::At(Call {
            plane: Plane::Cloudflare,
            method: "PATCH".to_owned(),
            path: "/client/v4/zones/{id}/dns_records/{id}".to_owned(),
            nth: 1,
        }),
        moment: Moment::After,
        grip: Grip::Call,
    };
    lives.push(Life::begin(tenant, contender(stuck)).await?);
    tenant.connect().await;
    tenant.zone("home", &[]).await;
    // It leads: nobody else is there.
    tenant.settled(Kind::Account, tenant.home()).await?;
    let adopt = [(kflare_api::names::ADOPTION_POLICY, "adopt")];
    tenant.waits(Kind::Zone, "home", "AlreadyExists").await?;
    tenant.annotate(Kind::Zone, "home", &adopt).await;
    tenant.settled(Kind::Zone, "home").await?;
    for name in ["a", "b"] {
        let fields = json!({ "name": name, "type": "A", "content": "192.0.2.1" });
        tenant.record(name, "home", &[], fields).await;
        tenant.settled(Kind::Record, name).await?;
    }
    // The second stops before its first write, so that both can be looked at.
    let at_first_write = Trap {
        aim: Aim::FirstWriteToCloudflare,
        moment: Moment::Before,
        grip: Grip::Call,
    };
    lives.push(Life::begin(tenant, contender(at_first_write)).await?);

    tenant.change(Kind::Record, "a", json!({ "ttl": 120 })).await;
    lives[0].wire.sprung().await;
    // More work for the first, which waits for the call that is under way. What it has written about `c` shows that it knows.
    tenant.change(Kind::Record, "b", json!({ "ttl": 120 })).await;
    let fields = json!({ "name": "c", "type": "A", "content": "192.0.2.1" });
    tenant.record("c", "home", &[], fields).await;
    until_written(tenant, &lives[0], "/c").await?;
    match loss {
        Loss::Partition => lives[0].wire.block(Plane::Kubernetes),
        Loss::Standstill => lives[0].signal("STOP"),
    }

    let taken_over = async || Ok::<_, String>(lives[1].wire.has_sprung().then_some(()));
    tenant.until("the second about to write", taken_over).await?;
    if loss == Loss::Standstill {
        // It wakes up, its call is answered, and it goes on where it was.
        lives[0].signal("CONT");
        lives[0].wire.release();
    }
    let begins = to_cloudflare(&lives[1]).last().unwrap().arrived;
    if loss == Loss::Partition {
        assert!(
            !lives[0].is_running(),
            "the first still runs when the second begins to write"
        );
    }
    let status = lives[0].ended(tenant).await?;
    assert_eq!(status, Some(1), "how it ends");
    assert!(lives[0].log().contains("leader lease"), "why it ends");
    let late: Vec<_> = to_cloudflare(&lives[0])
        .into_iter()
        .filter(|it| it.arrived >= begins)
        .collect();
    assert!(
        late.is_empty(),
        "calls of the first after the second began to write: {late:?}"
    );

    lives[1].wire.release();
    for name in ["a", "b", "c"] {
        tenant.settled(Kind::Record, name).await?;
    }
    let records = [
        "home A a 192.0.2.1 120",
        "home A b 192.0.2.1 120",
        "home A c 192.0.2.1 1",
    ];
    let account: Vec<String> = tenant.account().into_iter().collect();
    assert_eq!(account, [&["home"], &records[..]].concat());
    let effects = tenant.effects();
    assert_eq!(effects["POST /zones/{zone_id}/dns_records"], 3, "each created once");
    assert_eq!(effects["PATCH /zones/{zone_id}/dns_records"], 2, "each changed once");
    lives[1].stop(tenant).await
}

async fn play(loss: Loss) {
    let site = Site::shared().await;
    let tenant = Tenant::move_in(&site, "leaders").await;
    let mut lives = Vec::new();
    tenant
        .tell(&mut lives, async |lives| {
            lose_the_lease_in_mid_write(&tenant, loss, lives).await
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_cut_off_in_mid_write_has_ended_before_the_next_begins_to_write() {
    play(Loss::Partition).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stood_still_in_mid_write_writes_nothing_when_it_wakes_up() {
    play(Loss::Standstill).await;
}
