//! Leader election: one replica writes, and another takes over.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::time::Instant;

use crate::harness::replica::LEASE;
use crate::harness::site::SYSTEM;
use crate::harness::{Kind, Replica, ReplicaOptions, Site, Tenant, play};

/// A released Lease is taken at once; an abandoned one only after ten seconds.
const AT_ONCE: Duration = Duration::from_secs(6);
/// The Lease's ten seconds, the time of those who look whether it has ended, and the first pass.
const AFTER_EXPIRY: Duration = Duration::from_secs(15);

/// Who holds the Lease.
async fn holder(tenant: &Tenant<'_>) -> Result<Option<String>, kube::Error> {
    let leases: Api<Lease> = Api::namespaced(tenant.client().clone(), SYSTEM);
    let lease = leases.get_opt(LEASE).await?;
    Ok(lease.and_then(|it| it.spec?.holder_identity))
}

async fn until_holder(tenant: &Tenant<'_>, name: &str) {
    let held = async || {
        holder(tenant)
            .await
            .map(|it| (it.as_deref() == Some(name)).then_some(()))
    };
    tenant.until(&format!("{name} holding the Lease"), held).await;
}

async fn until_store_filled(tenant: &Tenant<'_>, replica: &Replica) {
    let ready = async || Ok::<_, String>(replica.is_ready().then_some(()));
    tenant.until("the standby's store filled", ready).await;
}

/// The replicas that wrote to Cloudflare, in the order of their writes, each change of writer once.
fn writers(site: &Site) -> Vec<String> {
    let mut writers: Vec<String> = Vec::new();
    for line in site.trace.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `<time> cf #<number> <replica> <method> <uri> <body>`
        if let [_, "cf", _, replica, "POST" | "PUT" | "PATCH" | "DELETE", ..] = &words[..]
            && writers.last().is_none_or(|last| last != replica)
        {
            writers.push((*replica).to_owned());
        }
    }
    writers
}

// Field case 143.
#[tokio::test]
async fn one_replica_writes_and_a_standby_takes_over_after_a_stop_and_after_a_crash() {
    let (_control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "leaders", async |tenant| {
        let one = Replica::start(&site, ReplicaOptions::contending("one")).await;
        until_holder(tenant, "one").await;
        let two = Replica::start(&site, ReplicaOptions::contending("two")).await;
        tenant.open().await;
        for number in 0..5 {
            tenant.create_a(&format!("a{number}"), &[]).await;
        }
        until_store_filled(tenant, &two).await;

        // A stop in the middle of work.
        for number in 0..5 {
            tenant.create_a(&format!("b{number}"), &[]).await;
        }
        let asked = Instant::now();
        one.stopped().await.unwrap();
        tenant.create_a("after-stop", &[]).await;
        tenant.until_ready(Kind::Record, "after-stop").await;
        assert!(asked.elapsed() < AT_ONCE, "it took {:?}", asked.elapsed());
        until_holder(tenant, "two").await;
        assert_eq!(writers(&site), ["one", "two"]);

        // A crash.
        let three = Replica::start(&site, ReplicaOptions::contending("three")).await;
        until_store_filled(tenant, &three).await;
        let crashed = Instant::now();
        two.kill().await;
        tenant.create_a("after-crash", &[]).await;
        tenant.until_ready(Kind::Record, "after-crash").await;
        assert!(crashed.elapsed() < AFTER_EXPIRY, "it took {:?}", crashed.elapsed());
        until_holder(tenant, "three").await;

        let names = ["a", "b"].map(|letter| (0..5).map(move |number| format!("{letter}{number}")));
        for name in names.into_iter().flatten() {
            tenant.until_ready(Kind::Record, &name).await;
            assert_eq!(tenant.remote(&name).len(), 1, "{name}");
        }
        assert_eq!(writers(&site), ["one", "two", "three"]);
        three.stopped().await.unwrap();
        assert_eq!(
            holder(tenant).await.unwrap().as_deref(),
            Some(""),
            "the Lease is released"
        );
    })
    .await;
}
