//! Starting and stopping: a start finds everything as it should be and leaves it so; a stop lets work end.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kflare_engine::policy::DefaultDeletion;
use kflare_sim::{Fault, FaultSpec};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};

use crate::harness::replica::LEASE;
use crate::harness::site::SYSTEM;
use crate::harness::tenant::{ZONE, id_of};
use crate::harness::{Kind, Ready, Replica, ReplicaOptions, Site, Tenant, play};

const MANY: usize = 300;

/// The resourceVersion of every resource, and how many Events there are.
async fn versions(tenant: &Tenant<'_>) -> (BTreeMap<String, String>, usize) {
    let mut versions = BTreeMap::new();
    for kind in Kind::ALL {
        for object in tenant.api(kind).list(&ListParams::default()).await.unwrap() {
            let key = format!("{kind:?} {}", object.name_any());
            versions.insert(key, object.resource_version().unwrap());
        }
    }
    let secrets = tenant.secrets().list(&ListParams::default()).await.unwrap();
    versions.extend(secrets.iter().map(|it| (it.name_any(), it.resource_version().unwrap())));
    let events = tenant
        .namespace
        .api::<Event>()
        .list(&ListParams::default())
        .await
        .unwrap();
    (versions, events.items.len())
}

fn finished(object: &DynamicObject) -> bool {
    let ready = Ready::current(object).is_some_and(|it| it.status == "True");
    ready && object.annotations().is_empty() && object.labels().len() == 1
}

// Field case 160.
#[tokio::test]
async fn a_start_with_three_hundred_ready_records_writes_nothing_and_calls_little() {
    let (_control_plane, site) = Site::fresh().await;
    // The free plan ends at 200.
    let client = site.access.client().await.unwrap();
    play(&site, &client, "storm", async |tenant| {
        let first = Replica::start(&site, ReplicaOptions::named("first")).await;
        tenant.open().await;
        site.cloudflare
            .set_zone_plan(&tenant.domain, kflare_sim::Plan::Pro)
            .unwrap();
        for number in 0..MANY {
            tenant.create_a(&format!("r{number}"), &[]).await;
        }
        let records = tenant.api(Kind::Record);
        let all = async || {
            let objects = records.list(&ListParams::default()).await?;
            let done = objects.iter().filter(|it| finished(it)).count();
            Ok::<_, kube::Error>((done == MANY).then_some(()))
        };
        tenant.until("three hundred records finished", all).await;
        assert_eq!(tenant.remote_records().len(), MANY);
        first.stopped().await.unwrap();

        let (before, mark) = (versions(tenant).await, tenant.now());
        let second = Replica::start(&site, ReplicaOptions::named("second")).await;
        // Everything is looked at within half a minute of the start: the account and the zone alone, the records as a list.
        let looked = || {
            let calls = tenant.calls(mark);
            let asked = |part: &str| calls.iter().any(|it| it.path.contains(part));
            asked("/tokens/verify") && asked("/dns_records") && asked("zones")
        };
        tenant.until_remote("a look at everything", looked).await;
        tenant.fence("fence").await;
        let calls = tenant.calls(mark);
        let (reads, writes): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.method == "GET");
        assert_eq!(writes.len(), 1, "the fence, nothing else: {writes:?}");
        assert!(reads.len() <= 12, "{} reads: {reads:?}", reads.len());
        let (mut after, _) = versions(tenant).await;
        after.remove("Record fence");
        assert_eq!(after, before.0);
        second.stopped().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_stop_lets_running_passes_end_and_releases_the_lease() {
    let (_control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "graceful", async |tenant| {
        let mut replica = Replica::start(&site, ReplicaOptions::contending("graceful")).await;
        tenant.open().await;
        let slow = FaultSpec::new(
            tenant.route("POST", "/zones/{zone_id}/dns_records"),
            Fault::Delay { ms: 2_000 },
        );
        site.cloudflare.add_fault(slow).unwrap();
        tenant.create_a("www", &[]).await;
        // Cloudflare has made it, and its answer is on the way.
        let made = || !tenant.remote("www").is_empty();
        tenant.until_remote("the record made", made).await;
        let waiting = tenant.get(Kind::Record, "www").await;
        assert_eq!(id_of(&waiting), "", "the pass is not over");
        replica.ask_to_stop();
        replica.stopped().await.unwrap();
        let object = tenant.get(Kind::Record, "www").await;
        assert!(finished(&object), "{:#}", object.data);
        assert_eq!(tenant.remote("www")[0]["id"], id_of(&object));
        let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM);
        let lease = leases.get(LEASE).await.unwrap().spec.unwrap();
        assert_eq!(lease.holder_identity.as_deref(), Some(""));
    })
    .await;
}

// Field case 133.
#[tokio::test]
async fn a_crash_between_a_create_and_its_record_makes_no_second_one() {
    let (_control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "crash", async |tenant| {
        let first = Replica::start(&site, ReplicaOptions::named("first")).await;
        tenant.open().await;
        let lost = FaultSpec::new(
            tenant.route("POST", "/zones/{zone_id}/dns_records"),
            Fault::DropAfter { dropped: None },
        );
        site.cloudflare.add_fault(lost.times(1)).unwrap();
        tenant.create_a("www", &[]).await;
        let made = || !tenant.remote("www").is_empty();
        tenant.until_remote("the record made", made).await;
        first.kill().await;
        let second = Replica::start(&site, ReplicaOptions::named("second")).await;
        let object = tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(tenant.remote("www").len(), 1);
        assert_eq!(tenant.remote("www")[0]["id"], id_of(&object));
        assert_eq!(object.data["status"]["ownership"]["origin"], "Created");
        second.stopped().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_operator_sets_the_deletion_policy_of_the_whole_cluster() {
    let (_control_plane, site) = Site::fresh().await;
    let client = site.access.client().await.unwrap();
    play(&site, &client, "operator", async |tenant| {
        let options = ReplicaOptions {
            deletion: DefaultDeletion::Retain,
            ..ReplicaOptions::named("retains")
        };
        let replica = Replica::start(&site, options).await;
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        tenant.delete(Kind::Record, "www").await;
        tenant.delete(Kind::Zone, ZONE).await;
        tenant.until_gone(Kind::Zone, ZONE).await;
        assert_eq!(tenant.remote("www").len(), 1);
        replica.stopped().await.unwrap();
    })
    .await;
}
