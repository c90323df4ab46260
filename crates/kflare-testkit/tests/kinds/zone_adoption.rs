//! Zones that exist already: only those of the referenced account are ever taken. Field case 29.

use kflare_sim::{AccountSeed, Plan, Seed, TokenSeed, ZoneSeed};
use kflare_testkit::simulation::{ACCOUNT_ID, everything, token};
use serde_json::json;

use crate::stage::{DOMAIN, HOUR, Stage, ZONE, adopting, play, zone};

fn two_accounts(stage: &Stage, zones: Vec<ZoneSeed>) {
    let accounts = vec![
        AccountSeed {
            id: Some(ACCOUNT_ID.to_owned()),
            ..AccountSeed::named("Ours")
        },
        AccountSeed {
            id: Some("f".repeat(32)),
            ..AccountSeed::named("Theirs")
        },
    ];
    let tokens = vec![TokenSeed::of_user(&token(1), everything())];
    stage
        .cloudflare
        .seed(&Seed {
            accounts,
            tokens,
            zones,
            ..Seed::default()
        })
        .unwrap();
    stage.user.connect();
    stage.start();
}

// Field case 29.
#[test]
fn a_zone_of_another_account_is_never_adopted() {
    play(1, |stage| async move {
        two_accounts(&stage, vec![ZoneSeed::named(DOMAIN, "Theirs")]);
        let before = stage.cloudflare.zones();
        let id = stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
        stage.says(&id, "False", "NothingToAdopt").await;
        stage.rest(6 * HOUR).await;
        assert_eq!(stage.recorded(&id), None);
        assert_eq!(stage.cloudflare.zones(), before);
    });
}

/// Field case 29: 1061 without a visible zone is final, no retry loop.
#[test]
fn a_name_taken_elsewhere_is_final_and_rarely_tried_again() {
    play(1, |stage| async move {
        two_accounts(&stage, vec![ZoneSeed::named(DOMAIN, "Theirs")]);
        for policy in ["", "adopt-or-create"] {
            let mark = stage.mark();
            let id = stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), policy));
            stage.says(&id, "False", "AlreadyExists").await;
            assert!(stage.user.message(&id).contains("1061"), "{}", stage.user.message(&id));
            stage.rest(24 * HOUR).await;
            let creates = stage
                .since(&mark)
                .calls
                .iter()
                .filter(|call| call.method == "POST")
                .count();
            assert!((1..=16).contains(&creates), "{creates} tries in a day");
            assert_eq!(stage.cloudflare.zones().len(), 1);
            stage.user.delete(&id);
            stage.gone(&[id]).await;
        }
    });
}

#[test]
fn an_existing_zone_is_left_alone_until_asked_for() {
    play(1, |stage| async move {
        two_accounts(
            &stage,
            vec![ZoneSeed {
                paused: true,
                ..ZoneSeed::named(DOMAIN, "Ours").on(Plan::Pro)
            }],
        );
        let mark = stage.mark();
        let id = stage.create(zone(ZONE, json!({ "name": "EXAMPLE.com.", "paused": false })));
        stage.says(&id, "False", "AlreadyExists").await;
        assert!(
            stage.user.message(&id).contains("paused"),
            "{}",
            stage.user.message(&id)
        );
        stage
            .user
            .annotate(&id, kflare_api::names::ADOPTION_POLICY, Some("adopt-if-matching"));
        stage.says(&id, "False", "AdoptionBlocked").await;
        stage.since(&mark).assert_no_cloudflare_write();
        stage
            .user
            .annotate(&id, kflare_api::names::ADOPTION_POLICY, Some("adopt"));
        stage.ready(std::slice::from_ref(&id)).await;
        let since = stage.since(&mark);
        let writes = since.cloudflare_writes();
        assert_eq!(writes.len(), 1, "{writes:#?}");
        assert_eq!(
            writes[0].body,
            Some(json!({ "paused": false })),
            "the plan is left alone"
        );
        assert_eq!(stage.status(&id)["ownership"]["origin"], "Adopted");
        assert_eq!(stage.status(&id)["cloudflareMetadata"]["plan"], "pro");
    });
}
