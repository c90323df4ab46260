//! A refusal, a broken page or an empty list is never taken for "gone".

use kflare_api::names;
use kflare_sim::{Fault, FaultSpec, Totals};
use kube::api::DynamicObject;

use crate::harness::tenant::{ZONE, id_of};
use crate::harness::{Kind, Ready, Tenant, scenario};

const LIST: &str = "/zones/{zone_id}/dns_records";
const ONE: &str = "/zones/{zone_id}/dns_records/{dns_record_id}";

/// So many records that they are looked at by listing the zone.
const LISTED: [&str; 4] = ["a", "b", "c", "d"];

async fn settle(tenant: &Tenant<'_>, names: &[&str]) {
    tenant.open().await;
    for name in names {
        tenant.create_a(name, &[]).await;
    }
    for name in names {
        tenant.until_ready(Kind::Record, name).await;
    }
}

async fn ask(tenant: &Tenant<'_>, name: &str, value: &str) {
    tenant
        .annotate(Kind::Record, name, names::RECONCILE_AT, Some(value))
        .await;
}

fn served(value: &str) -> impl Fn(&DynamicObject) -> bool {
    move |object| object.data["status"]["lastReconcileAt"] == *value
}

fn ids(tenant: &Tenant<'_>) -> Vec<String> {
    let records = tenant.remote_records();
    records.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_403_is_not_gone() {
    scenario("forbidden", async |tenant| {
        settle(tenant, &["www"]).await;
        let (before, mark) = (ids(tenant), tenant.now());
        let refused = Fault::Status {
            status: 403,
            code: 10_000,
            message: "Authentication error".into(),
        };
        let fault = FaultSpec::new(tenant.route("GET", ONE), refused);
        let fault = tenant.site.cloudflare.add_fault(fault).unwrap();
        ask(tenant, "www", "1").await;
        let refused = tenant.until_reason(Kind::Record, "www", "TerminalError").await;
        assert!(
            refused.status == "False" && refused.message.contains("Authentication error"),
            "{refused:?}"
        );
        assert_eq!(id_of(&tenant.get(Kind::Record, "www").await), before[0]);
        tenant.site.cloudflare.remove_fault(fault);
        ask(tenant, "www", "2").await;
        tenant.until_ready(Kind::Record, "www").await;
        assert_eq!(ids(tenant), before);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
    })
    .await;
}

#[tokio::test]
async fn a_failed_page_is_not_gone() {
    scenario("page", async |tenant| {
        settle(tenant, &LISTED).await;
        let (before, mark) = (ids(tenant), tenant.now());
        let broken = Fault::Html {
            status: 502,
            body: "<html>bad gateway</html>".into(),
        };
        let fault = FaultSpec::new(tenant.route("GET", LIST), broken);
        let fault = tenant.site.cloudflare.add_fault(fault).unwrap();
        for name in LISTED {
            ask(tenant, name, "1").await;
        }
        // One failure is no news, a lasting one is.
        let failing = tenant.until_reason(Kind::Record, "a", "APIError").await;
        assert!(
            failing.status == "False" && failing.message.contains("502"),
            "{failing:?}"
        );
        tenant.site.cloudflare.remove_fault(fault);
        for name in LISTED {
            tenant.until_object(Kind::Record, name, "looked at", served("1")).await;
            tenant.until_ready(Kind::Record, name).await;
        }
        assert_eq!(ids(tenant), before);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
    })
    .await;
}

#[tokio::test]
async fn an_empty_list_is_not_gone() {
    scenario("empty", async |tenant| {
        settle(tenant, &LISTED).await;
        let (before, mark) = (ids(tenant), tenant.now());
        let empty = Fault::EmptyList { totals: Totals::Zero };
        let fault = FaultSpec::new(tenant.route("GET", LIST), empty);
        let fault = tenant.site.cloudflare.add_fault(fault).unwrap();
        ask(tenant, "a", "1").await;
        // It is asked for alone, and found.
        let found = || tenant.calls(mark).iter().any(|call| call.route.as_deref() == Some(ONE));
        tenant.until_remote("a record asked for alone", found).await;
        tenant.site.cloudflare.remove_fault(fault);
        tenant.until_object(Kind::Record, "a", "looked at", served("1")).await;
        for name in LISTED {
            let object = tenant.until_ready(Kind::Record, name).await;
            assert_eq!(Ready::of(&object).unwrap().reason, "Synced");
        }
        assert_eq!(ids(tenant), before);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
    })
    .await;
}

#[tokio::test]
async fn an_unreachable_zone_is_not_gone() {
    scenario("zone-lost", async |tenant| {
        settle(tenant, &["www"]).await;
        let (zone, mark) = (tenant.remote_zone().unwrap(), tenant.now());
        let invalid = Fault::Status {
            status: 404,
            code: 7003,
            message: "Could not route to /zones, perhaps your object identifier is invalid?".into(),
        };
        let fault = FaultSpec::new(tenant.route("GET", "/zones/{zone_id}"), invalid);
        tenant.site.cloudflare.add_fault(fault).unwrap();
        tenant.annotate(Kind::Zone, ZONE, names::RECONCILE_AT, Some("1")).await;
        tenant.until_object(Kind::Zone, ZONE, "looked at", served("1")).await;
        tenant.until_ready(Kind::Zone, ZONE).await;
        assert_eq!(tenant.remote_zone().unwrap()["id"], zone["id"]);
        assert!(tenant.writes(mark).is_empty(), "{:?}", tenant.writes(mark));
    })
    .await;
}
