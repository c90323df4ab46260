//! Watches that break, go quiet or are never answered: what happens meanwhile is seen all the same.

use std::time::Duration;

use kflare_testkit::cluster::{WaitError, wait_for_within};
use serde_json::json;

use crate::harness::Extent;
use crate::harness::life::{Life, Setting};
use crate::harness::site::Site;
use crate::harness::tenant::{Kind, Tenant};
use crate::harness::wire::Severed;

/// A quiet watch is opened anew after 230 s; the rest is for the client to notice and for the work itself.
const QUIET: Duration = Duration::from_secs(270);
/// A request is given up after 75 s.
const UNANSWERED: Duration = Duration::from_secs(110);

/// A connected tenant with the zone `home`.
async fn settle(tenant: &Tenant<'_>, lives: &mut Vec<Life>) -> Result<(), WaitError> {
    lives.push(Life::begin(tenant, Setting::default()).await?);
    tenant.connect().await;
    tenant
        .zone("home", &[(kflare_api::names::ADOPTION_POLICY, "adopt")])
        .await;
    tenant.settled(Kind::Zone, "home").await.map(drop)
}

async fn create(tenant: &Tenant<'_>, name: &str) {
    let fields = json!({ "name": name, "type": "A", "content": "192.0.2.1" });
    tenant.record(name, "home", &[], fields).await;
}

async fn play(prefix: &str, story: impl AsyncFnOnce(&Tenant<'_>, &mut Vec<Life>) -> Result<(), WaitError>) {
    let site = Site::shared().await;
    let tenant = Tenant::move_in(&site, prefix).await;
    let mut lives = Vec::new();
    let whole = async |lives: &mut Vec<Life>| {
        settle(&tenant, lives).await?;
        story(&tenant, lives).await?;
        lives[0].stop(&tenant).await
    };
    tenant.tell(&mut lives, whole).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_are_cut_off_while_work_goes_on_miss_nothing() {
    const MANY: usize = 12;
    play("cut", async |tenant, lives| {
        let name = |number: usize| format!("r{number}");
        let open = lives[0].wire.watches();
        for number in 0..MANY {
            create(tenant, &name(number)).await;
            lives[0].wire.sever(Severed::Cut);
            if number % 3 == 2 {
                // One goes before, or while, it is made.
                tenant.delete(Kind::Record, &name(number)).await;
            } else if number % 3 == 1 {
                tenant.change(Kind::Record, &name(number), json!({ "ttl": 120 })).await;
            }
        }
        let mut expected = vec!["home".to_owned()];
        for number in 0..MANY {
            match number % 3 {
                2 => tenant.gone(Kind::Record, &name(number)).await?,
                rest => {
                    tenant.settled(Kind::Record, &name(number)).await?;
                    let ttl = if rest == 1 { 120 } else { 1 };
                    expected.push(format!("home A {} 192.0.2.1 {ttl}", name(number)));
                }
            }
        }
        assert_eq!(tenant.account(), expected.into_iter().collect());
        assert!(lives[0].wire.watches() >= 2 * open, "all watches were opened anew");
        Ok(())
    })
    .await;
}

/// Changes a record and waits for long enough until that is at Cloudflare.
async fn change_and_wait(tenant: &Tenant<'_>, within: Duration) -> Result<(), WaitError> {
    tenant.change(Kind::Record, "www", json!({ "ttl": 120 })).await;
    let changed = async || Ok::<_, String>(tenant.account().contains("home A www 192.0.2.1 120").then_some(()));
    let (client, home) = (&tenant.site.admin, tenant.home());
    wait_for_within(within, client, home, "the change at Cloudflare", changed).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_go_quiet_are_opened_anew() {
    if Extent::asked_for() == Extent::Short {
        return eprintln!("takes four minutes: make chaos plays it");
    }
    play("quiet", async |tenant, lives| {
        create(tenant, "www").await;
        tenant.settled(Kind::Record, "www").await?;
        // A load balancer forgets the connections.
        lives[0].wire.sever(Severed::Silent);
        change_and_wait(tenant, QUIET).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_watches_that_are_never_answered_are_made_anew() {
    if Extent::asked_for() == Extent::Short {
        return eprintln!("takes more than a minute: make chaos plays it");
    }
    play("unanswered", async |tenant, lives| {
        create(tenant, "www").await;
        tenant.settled(Kind::Record, "www").await?;
        let wire = lives[0].wire.clone();
        let open = wire.watches();
        // All are opened anew, and something takes the requests and says nothing.
        wire.swallow_watches(open);
        wire.sever(Severed::Cut);
        let asked = async || Ok::<_, String>((wire.watches() == 2 * open).then_some(()));
        tenant.until("all watches asked for", asked).await?;
        change_and_wait(tenant, UNANSWERED).await
    })
    .await;
}
