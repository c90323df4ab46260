//! References: whatever is missing is named, and its coming wakes those who wait at once.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Tenant, play, scenario, site};

/// What is blocked is looked at again by itself only after about a minute: whoever is Ready sooner was woken.
const AT_ONCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Secret,
    Account,
    Zone,
    Record,
}

/// All orders of `pieces`.
fn orders(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    if pieces.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in pieces {
        let rest: Vec<Piece> = pieces.iter().copied().filter(|it| it != first).collect();
        for mut order in orders(&rest) {
            order.insert(0, *first);
            all.push(order);
        }
    }
    all
}

async fn create(tenant: &Tenant<'_>, piece: Piece) {
    match piece {
        Piece::Secret => tenant.create_secret().await,
        Piece::Account => drop(tenant.create_account().await),
        Piece::Zone => drop(tenant.create_zone(&[]).await),
        Piece::Record => drop(tenant.create_a("www", &[]).await),
    }
}

/// The reason that each resource has to give, by what exists.
fn reasons(tenant: &Tenant<'_>, there: &[Piece]) -> Vec<(Kind, String, &'static str)> {
    let has = |piece: Piece| there.contains(&piece);
    let account = if has(Piece::Secret) {
        "Validated"
    } else {
        "SecretNotFound"
    };
    let zone = match (has(Piece::Account), has(Piece::Secret)) {
        (false, _) => "AccountNotFound",
        (true, false) => "AccountNotReady",
        (true, true) => "Synced",
    };
    let record = match (has(Piece::Zone), zone) {
        (false, _) => "ZoneNotFound",
        (true, "Synced") => "Synced",
        (true, _) => "ZoneNotReady",
    };
    let mut all = Vec::new();
    if has(Piece::Account) {
        all.push((Kind::Account, tenant.account.clone(), account));
    }
    if has(Piece::Zone) {
        all.push((Kind::Zone, ZONE.to_owned(), zone));
    }
    if has(Piece::Record) {
        all.push((Kind::Record, "www".to_owned(), record));
    }
    all
}

// Field case 73.
#[tokio::test]
async fn every_order_of_creation_names_what_is_missing_and_ends_ready_at_once() {
    let pieces = [Piece::Secret, Piece::Account, Piece::Zone, Piece::Record];
    let site = site::shared().await;
    let client = site.access.client().await.unwrap();
    let stories = orders(&pieces).into_iter().map(|order| {
        play(site, &client, "order", async move |tenant| {
            for done in 1..=order.len() {
                let there = &order[..done];
                create(tenant, order[done - 1]).await;
                let began = Instant::now();
                for (kind, name, reason) in reasons(tenant, there) {
                    let ready = tenant.until_reason(kind, &name, reason).await;
                    let settled = matches!(reason, "Validated" | "Synced");
                    assert_eq!(
                        ready.status,
                        if settled { "True" } else { "False" },
                        "{order:?}: {ready:?}"
                    );
                }
                assert!(began.elapsed() < AT_ONCE, "{there:?} took {:?}", began.elapsed());
            }
            assert_eq!(tenant.remote("www").len(), 1, "{order:?}");
        })
    });
    assert_eq!(join_all(stories).await.len(), 24);
}

#[tokio::test]
async fn a_missing_key_of_the_secret_is_named_and_its_coming_wakes_everything() {
    scenario("key", async |tenant| {
        let spec = json!({
            "accountID": tenant.account_id,
            "tokenSecretRef": { "name": "token", "namespace": tenant.home(), "key": "other" },
        });
        tenant.create_secret().await;
        tenant.create(Kind::Account, &tenant.account, &[], spec).await;
        tenant.create_zone(&[]).await;
        let missing = tenant
            .until_reason(Kind::Account, &tenant.account, "TokenKeyMissing")
            .await;
        assert!(missing.message.contains("other"), "{missing:?}");
        tenant.until_reason(Kind::Zone, ZONE, "AccountNotReady").await;
        let began = Instant::now();
        tenant.set_secret("other", &tenant.token.value).await;
        tenant.until_ready(Kind::Zone, ZONE).await;
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    })
    .await;
}

#[tokio::test]
async fn an_account_serves_only_the_namespaces_it_allows() {
    scenario("allowed", async |tenant| {
        tenant.create_secret().await;
        let mut spec = tenant.account_spec();
        spec["allowedNamespaces"] = json!({ "matchLabels": { "team": "web" } });
        tenant.create(Kind::Account, &tenant.account, &[], spec).await;
        tenant.until_ready(Kind::Account, &tenant.account).await;
        tenant.create_zone(&[]).await;
        let refused = tenant.until_reason(Kind::Zone, ZONE, "NamespaceNotAllowed").await;
        assert!(refused.message.contains(tenant.home()), "{refused:?}");
        assert_eq!(tenant.remote_zone(), None);

        let began = Instant::now();
        let labelled = json!({ "metadata": { "labels": { "team": "web" } } });
        Api::<Namespace>::all(tenant.client().clone())
            .patch(tenant.home(), &PatchParams::default(), &Patch::Merge(&labelled))
            .await
            .unwrap();
        tenant.until_ready(Kind::Zone, ZONE).await;
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    })
    .await;
}
