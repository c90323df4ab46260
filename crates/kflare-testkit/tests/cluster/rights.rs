//! The generated rights: enough for everything the other tests do, and no more than that.

use crate::harness::scenario;
use crate::harness::site::{SERVICE_ACCOUNT, SYSTEM};

// Field case 154.
#[tokio::test]
async fn the_controller_may_not_do_what_it_never_does() {
    scenario("rights", async |tenant| {
        let kubectl = &tenant.site.kubectl;
        let who = format!("--as=system:serviceaccount:{SYSTEM}:{SERVICE_ACCOUNT}");
        // kubectl ends with 1 when the answer is no.
        let may = async |question: &[&str]| {
            let asked = [&["auth", "can-i"], question, &[&*who, "-n", tenant.home()]].concat();
            kubectl.run(&asked).await.is_ok()
        };
        for question in [
            ["patch", "zones.kflare.dev"],
            ["watch", "dnsrecords.kflare.dev"],
            ["get", "secrets"],
            // Those that WorkerScripts read.
            ["get", "configmaps"],
            // Those that Tunnels yield. RBAC cannot say which; that no other is touched is another test's matter.
            ["create", "secrets"],
            ["delete", "secrets"],
        ] {
            assert!(may(&question).await, "{question:?}");
        }
        for question in [
            ["create", "zones.kflare.dev"],
            ["delete", "dnsrecords.kflare.dev"],
            ["update", "cloudflareaccounts.kflare.dev"],
            ["update", "secrets"],
            ["deletecollection", "secrets"],
            ["get", "pods"],
            ["patch", "configmaps"],
            ["patch", "namespaces"],
            ["create", "clusterroles.rbac.authorization.k8s.io"],
            ["impersonate", "users"],
            ["get", "leases.coordination.k8s.io"],
        ] {
            assert!(!may(&question).await, "{question:?}");
        }
        let leases = [
            "auth",
            "can-i",
            "update",
            "leases.coordination.k8s.io",
            &who,
            "-n",
            SYSTEM,
        ];
        kubectl.run(&leases).await.unwrap();
    })
    .await;
}
