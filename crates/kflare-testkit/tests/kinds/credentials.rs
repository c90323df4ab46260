//! Tokens: found, judged, replaced, limited. Field cases 115, 116, 118, 120.

use std::time::Duration;

use kflare_sim::{AccountSeed, Area, FaultMatch, Grant, Permission, Plan, Seed, TokenSeed, TokenStatus, ZoneSeed};
use kflare_testkit::simulation::{ACCOUNT_ID, User, everything, token};
use serde_json::{Value, json};

use crate::stage::{DOMAIN, HOUR, MINUTE, Stage, ZONE, adopting, play, play_in_zone, status, zone, zone_id};

fn seed_token(stage: &Stage, token: TokenSeed) -> String {
    let seeded = stage
        .cloudflare
        .seed(&Seed {
            tokens: vec![token],
            ..Seed::default()
        })
        .unwrap();
    seeded.tokens[0].clone()
}

/// An account with one token and these zones, connected.
fn account_with(stage: &Stage, token: TokenSeed, zones: Vec<ZoneSeed>) {
    let account = AccountSeed {
        id: Some(ACCOUNT_ID.to_owned()),
        ..AccountSeed::named("Example")
    };
    let seed = Seed {
        accounts: vec![account],
        tokens: vec![token],
        zones,
        ..Seed::default()
    };
    stage.cloudflare.seed(&seed).unwrap();
    stage.user.connect();
}

fn a(name: &str) -> Value {
    json!({ "name": name, "type": "A", "content": "192.0.2.1" })
}

/// Field case 120: the next call has the new token, and the old one is never used again.
#[test]
fn a_rotated_token_is_used_at_once() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..4)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        let new = seed_token(&stage, TokenSeed::of_user(&token(2), everything()));
        let mark = stage.mark();
        stage.user.rotate_token(&token(2));
        stage.rest(Duration::from_secs(5)).await;
        let calls = stage.since(&mark).calls;
        assert!(
            calls.iter().any(|call| call.path.contains("verify")),
            "validated within five seconds: {calls:#?}"
        );
        stage.user.edit_spec(&ids[0], &json!({ "ttl": 300 }));
        stage.ready(&ids).await;
        stage.rest(HOUR).await;
        for call in stage.since(&mark).calls {
            assert_eq!(call.token_id.as_deref(), Some(new.as_str()), "{call:#?}");
        }
        assert_eq!(stage.status(&User::account_id())["token"]["id"], json!(new));
    });
}

// Field case 120.
#[test]
fn another_secret_changes_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        let mark = stage.mark();
        let revision = stage.world.api.revision();
        for n in 0..20 {
            stage.create(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("s{n}"), "namespace": "team" }, "data": {} }));
        }
        stage.rest(Duration::from_secs(20)).await;
        assert!(stage.since(&mark).calls.is_empty());
        assert_eq!(stage.world.api.revision(), revision + 20);
        let read = stage.world.api.requests();
        assert!(
            read.iter().all(|it| !it.request.uri.contains("/secrets/s")),
            "the Secrets of others are not read"
        );
    });
}

#[test]
fn a_missing_secret_or_key_is_named_and_its_arrival_noticed_at_once() {
    play(4, |stage| async move {
        account_with(&stage, TokenSeed::of_user(&token(1), everything()), vec![]);
        let whole = stage.world.api.get(&User::secret_id()).unwrap();
        stage.user.delete(&User::secret_id());
        stage.user.zone(ZONE, DOMAIN);
        stage.start();
        stage.says(&User::account_id(), "False", "SecretNotFound").await;
        assert!(stage.user.message(&User::account_id()).contains("kflare-system/token"));
        stage.says(&zone_id(), "False", "AccountNotReady").await;
        let empty = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token", "namespace": "kflare-system" }, "data": { "OTHER": "" } });
        stage.create(empty);
        stage.rest(Duration::from_secs(3)).await;
        assert_eq!(stage.user.ready(&User::account_id()).1, "TokenKeyMissing");
        assert!(stage.user.message(&User::account_id()).contains("CF_API_TOKEN"));
        assert_eq!(stage.cloudflare.calls().len(), 0);
        stage
            .user
            .edit(&User::secret_id(), |secret| secret["data"] = whole["data"].clone());
        stage.rest(Duration::from_secs(5)).await;
        assert!(
            stage.user.is_ready(&User::account_id()) && stage.user.is_ready(&zone_id()),
            "{}",
            stage.explain(&zone_id())
        );
    });
}

// Field case 115.
#[test]
fn a_token_that_is_none_is_invalid_until_it_is_replaced() {
    play(4, |stage| async move {
        account_with(&stage, TokenSeed::of_user(&token(2), everything()), vec![]);
        stage.user.zone(ZONE, DOMAIN);
        stage.start();
        stage.says(&User::account_id(), "False", "InvalidToken").await;
        stage.rest(6 * HOUR).await;
        let calls = stage.cloudflare.calls().len();
        assert!(calls < 60, "{calls} calls with a bad token in six hours");
        stage.user.rotate_token(&token(2));
        stage.rest(Duration::from_secs(5)).await;
        assert!(stage.user.is_ready(&User::account_id()) && stage.user.is_ready(&zone_id()));
    });
}

#[test]
fn a_token_that_is_disabled_or_expired_is_said_to_be_so() {
    for state in [TokenStatus::Disabled, TokenStatus::Expired] {
        play(4, |stage| async move {
            account_with(
                &stage,
                TokenSeed {
                    status: state,
                    ..TokenSeed::of_user(&token(1), everything())
                },
                vec![],
            );
            stage.start();
            stage
                .until("judged", |stage| stage.user.ready(&User::account_id()).0 == "False")
                .await;
            let said = format!(
                "{}: {}",
                stage.user.ready(&User::account_id()).1,
                stage.user.message(&User::account_id())
            );
            assert!(
                said.starts_with("InvalidToken") && said.to_lowercase().contains(&format!("{state:?}").to_lowercase()),
                "{said}"
            );
        });
    }
}

/// Field case 115.
#[test]
fn an_account_owned_token_is_as_good_as_a_users() {
    play(4, |stage| async move {
        let end = "2027-01-01T00:00:00Z";
        let owned = TokenSeed {
            expires_on: Some(end.parse().unwrap()),
            ..TokenSeed::of_account(&token(1), ACCOUNT_ID, everything())
        };
        account_with(&stage, owned, vec![]);
        stage.user.zone(ZONE, DOMAIN);
        stage.start();
        stage.ready(&[User::account_id(), zone_id()]).await;
        let status = stage.status(&User::account_id());
        assert_eq!(
            (&status["token"]["kind"], &status["token"]["expiresOn"]),
            (&json!("account"), &json!(end))
        );
        assert_eq!(status["accountName"], "Example");
    });
}

/// Field case 116: no call to a path that the token's rights do not cover matters.
#[test]
fn a_token_for_one_zone_manages_that_zone() {
    // Some right on the account itself lets the account be seen; none on its list of zones.
    let account = Grant::everywhere(Permission::read(Area::Account));
    for more in [vec![account], vec![]] {
        one_zone(more);
    }
}

fn one_zone(more: Vec<Grant>) {
    play(4, |stage| async move {
        let on_zone = |area| Grant::on_zones(Permission::write(area), [DOMAIN]);
        let mut grants = vec![on_zone(Area::Zone), on_zone(Area::Dns)];
        grants.extend(more);
        let zones = vec![
            ZoneSeed::named(DOMAIN, ACCOUNT_ID),
            ZoneSeed::named("example.org", ACCOUNT_ID),
        ];
        account_with(&stage, TokenSeed::of_user(&token(1), grants), zones);
        stage.create(adopting(zone(ZONE, json!({ "name": DOMAIN })), "adopt"));
        stage.start();
        let ids: Vec<_> = (0..4)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        stage.rest(HOUR).await;
        assert!(
            stage.user.is_ready(&User::account_id()),
            "{}",
            stage.explain(&User::account_id())
        );
        let bare = |path: &str| path.contains("/zones?") && !path.contains("name=");
        for call in stage.cloudflare.calls() {
            assert!(!bare(&call.path), "lists all zones: {}", call.path);
        }
        assert!(ids.iter().all(|id| stage.user.is_ready(id)));
    });
}

/// Field case 115: only 5xx leaves the state as it is; field case 118: nor is one refusal a verdict.
#[test]
fn an_account_that_cannot_be_asked_stays_ready() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..4)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        stage.fault(FaultMatch::path("GET", "tokens/verify|/accounts/"), status(503, 10_000));
        let mark = stage.mark();
        stage.reconcile_no_wait(&User::account_id(), "1");
        stage.rest(2 * HOUR).await;
        assert!(
            stage.user.is_ready(&User::account_id()),
            "{}",
            stage.explain(&User::account_id())
        );
        let writes = stage.since(&mark).kubernetes_writes;
        assert!(writes.is_empty(), "{writes:#?}");
        stage.user.edit_spec(&ids[0], &json!({ "ttl": 300 }));
        stage.ready(&ids).await;
    });
}

// Field case 118.
#[test]
fn a_few_authentication_errors_turn_nothing() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..4)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        stage.rest(MINUTE).await;
        let mark = stage.mark();
        for round in 0..5 {
            stage.fault_times(FaultMatch::any(), status(403, 10_000), 1);
            stage.rest(20 * MINUTE).await;
            stage.fault_times(FaultMatch::path("GET", "verify"), status(401, 10_000), 1);
            stage.reconcile_no_wait(&User::account_id(), &format!("{round}"));
            stage.rest(MINUTE).await;
        }
        let since = stage.since(&mark);
        since.assert_no_cloudflare_write();
        assert!(
            since
                .kubernetes_writes
                .iter()
                .all(|it| !it.request.body.contains("\"False\"")),
            "{:#?}",
            since.kubernetes_writes
        );
        assert!(ids.iter().all(|id| stage.user.is_ready(id)) && stage.user.is_ready(&User::account_id()));
    });
}

#[test]
fn a_token_that_loses_its_rights_keeps_every_record_and_says_so_in_the_end() {
    play_in_zone(Plan::Pro, |stage| async move {
        let ids: Vec<_> = (0..4)
            .map(|n| stage.record(&format!("r{n}"), a(&format!("r{n}"))))
            .collect();
        stage.ready(&ids).await;
        let before = stage.records();
        stage.fault(FaultMatch::path("GET", "dns_records"), status(403, 9109));
        let mark = stage.mark();
        stage
            .until_within("said", 3 * HOUR, |stage| {
                ids.iter().all(|id| stage.user.message(id).contains("403"))
            })
            .await;
        stage.rest(3 * HOUR).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_eq!(stage.records(), before);
        // A new token mends it at once.
        stage.cloudflare.clear_faults();
        seed_token(&stage, TokenSeed::of_user(&token(2), everything()));
        stage.user.rotate_token(&token(2));
        stage.rest(Duration::from_secs(10)).await;
        assert!(
            ids.iter().all(|id| stage.user.is_ready(id)),
            "{}",
            stage.explain(&ids[0])
        );
        stage.since(&mark).assert_no_cloudflare_write();
    });
}

#[test]
fn no_token_is_ever_told() {
    play_in_zone(Plan::Pro, |stage| async move {
        stage.record("x", a("x"));
        stage.fault_times(FaultMatch::path("GET", "verify"), status(401, 1000), 4);
        stage.user.rotate_token(&token(1));
        stage.reconcile_no_wait(&User::account_id(), "1");
        stage.rest(HOUR).await;
        for kind in [
            "dnsrecords.kflare.dev",
            "zones.kflare.dev",
            "cloudflareaccounts.kflare.dev",
            "events.events.k8s.io",
        ] {
            for object in stage.world.api.list(kind) {
                assert!(!object.to_string().contains(&token(1)), "{object}");
            }
        }
        let bodies = stage.world.api.requests();
        assert!(
            bodies
                .iter()
                .filter(|it| it.request.life == "controller")
                .all(|it| !it.request.body.contains(&token(1)))
        );
    });
}
