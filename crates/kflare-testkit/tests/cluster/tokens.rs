//! The token Secret: it cannot vanish under its account, and what it holds is used at once.

use k8s_openapi::api::core::v1::Secret;
use kflare_api::names;
use kflare_sim::{Seed, TokenSeed, TokenStatus};
use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use crate::harness::promises::MANAGER;
use crate::harness::tenant::{SECRET, ZONE, everything};
use crate::harness::{Kind, Ready, scenario};

#[tokio::test]
async fn a_deleted_secret_stays_and_serves_while_its_account_stands() {
    scenario("secret", async |tenant| {
        tenant.open().await;
        tenant.delete_secret().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let secret = tenant.secrets().get(SECRET).await.unwrap();
        assert!(secret.metadata.deletion_timestamp.is_some());
        assert!(secret.data.unwrap().contains_key(names::DEFAULT_TOKEN_KEY));
        // Of the Secret kflare wrote its finalizer, and nothing else.
        let ours = secret.metadata.managed_fields.unwrap();
        let ours: Vec<_> = ours
            .iter()
            .filter(|it| it.manager.as_deref() == Some(MANAGER))
            .collect();
        assert_eq!(ours.len(), 1);
        let fields = &ours[0].fields_v1.as_ref().unwrap().0;
        assert_eq!(fields.as_object().unwrap().keys().collect::<Vec<_>>(), ["f:metadata"]);
        assert_eq!(
            fields["f:metadata"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["f:finalizers"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_rotated_token_is_used_by_the_next_call() {
    scenario("rotate", async |tenant| {
        tenant.open().await;
        let second = tenant.issue_token("second", everything());
        tenant.set_secret(names::DEFAULT_TOKEN_KEY, &second.value).await;
        let uses_second = |object: &DynamicObject| object.data["status"]["token"]["id"] == *second.id;
        tenant
            .until_object(Kind::Account, &tenant.account, "the new token", uses_second)
            .await;
        let mark = tenant.now();
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let calls = tenant.calls(mark);
        let writes: Vec<_> = calls.iter().filter(|call| call.method == "POST").collect();
        assert!(!writes.is_empty());
        assert!(
            calls.iter().all(|call| call.token_id.as_ref() == Some(&second.id)),
            "the old token is not used any more: {calls:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_bad_token_is_named_and_a_good_one_wakes_everything() {
    scenario("bad", async |tenant| {
        let seed = Seed {
            tokens: vec![TokenSeed {
                id: Some(tenant.token.id.clone()),
                user: Some(format!("{}@example.com", tenant.account)),
                status: TokenStatus::Disabled,
                ..TokenSeed::of_user(&tenant.token.value, everything())
            }],
            ..Seed::default()
        };
        tenant.site.cloudflare.seed(&seed).unwrap();
        tenant.connect().await;
        tenant.create_zone(&[]).await;
        let bad = tenant
            .until_object(Kind::Account, &tenant.account, "not ready", |object| {
                Ready::current(object).is_some_and(|it| it.status == "False")
            })
            .await;
        let ready = Ready::of(&bad).unwrap();
        assert!(matches!(&*ready.reason, "InvalidToken" | "TerminalError"), "{ready:?}");
        tenant.until_reason(Kind::Zone, ZONE, "AccountNotReady").await;

        let good = tenant.issue_token("second", everything());
        tenant.set_secret(names::DEFAULT_TOKEN_KEY, &good.value).await;
        tenant.until_ready(Kind::Account, &tenant.account).await;
        tenant.until_ready(Kind::Zone, ZONE).await;
    })
    .await;
}

#[tokio::test]
async fn an_account_that_moves_to_another_secret_lets_go_of_the_old_one() {
    scenario("move", async |tenant| {
        tenant.open().await;
        let second = tenant.issue_token("second", everything());
        let secret: Secret = serde_json::from_value(json!({
            "metadata": { "name": "other" },
            "stringData": { "token": second.value },
        }))
        .unwrap();
        tenant.secrets().create(&PostParams::default(), &secret).await.unwrap();
        let moved = json!({ "spec": { "tokenSecretRef": { "name": "other", "key": "token" } } });
        tenant.change(Kind::Account, &tenant.account, moved).await;
        tenant.until_ready(Kind::Account, &tenant.account).await;
        let secrets = tenant.secrets();
        let released = async || {
            let old = secrets.get(SECRET).await?;
            Ok::<_, kube::Error>(old.finalizers().is_empty().then_some(()))
        };
        tenant.until("the old Secret released", released).await;
        assert_eq!(
            secrets.get("other").await.unwrap().finalizers(),
            [names::TOKEN_PROTECTION]
        );
        let account = tenant.get(Kind::Account, &tenant.account).await;
        assert_eq!(account.data["status"]["protectedTokenSecret"]["name"], "other");
        tenant.delete_secret().await;
        tenant.until_secret_gone().await;
    })
    .await;
}
