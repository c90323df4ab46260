//! Tokens, scopes, refusals and the call budget.

use std::time::Duration;

use jiff::SignedDuration;
use kflare_sim::{
    AccountSeed, Area, Grant, Permission, Plan, RateLimit, Seed, TokenSeed, TokenStatus, UserSeed, ZoneSeed,
};
use serde_json::json;
use tower::ServiceExt;

use crate::support::*;

/// Besides what every test has: a second account with the zone other.example.
fn two_accounts(tokens: Vec<TokenSeed>) -> Api {
    let api = api_on(Plan::Free);
    let seed = Seed {
        accounts: vec![AccountSeed {
            id: Some(OTHER_ACCOUNT.into()),
            ..AccountSeed::named("Two")
        }],
        users: vec![UserSeed {
            email: "both@example.com".into(),
            api_key: Some(token("key")),
            ..UserSeed::default()
        }],
        zones: vec![
            ZoneSeed::named("other.example", "Two"),
            ZoneSeed::named("spare.example", "One"),
        ],
        tokens: Vec::new(),
        ..Seed::default()
    };
    api.sim.seed(&seed).expect("a good seed");
    let of_both = |mut token: TokenSeed| {
        token.user = Some("both@example.com".into());
        token
    };
    let tokens = tokens
        .into_iter()
        .map(|token| if token.account.is_none() { of_both(token) } else { token })
        .collect();
    api.sim
        .seed(&Seed {
            tokens,
            ..Seed::default()
        })
        .expect("a good seed");
    api
}

fn user(name: &str, grants: Vec<Grant>) -> TokenSeed {
    TokenSeed::of_user(&token(name), grants)
}

#[tokio::test(start_paused = true)]
async fn verify_tells_user_and_account_tokens_apart() {
    let end = epoch() + SignedDuration::from_hours(1);
    let api = two_accounts(vec![
        TokenSeed {
            expires_on: Some(end),
            not_before: Some(epoch()),
            ..user("user", vec![])
        },
        TokenSeed {
            status: TokenStatus::Disabled,
            ..user("off", vec![])
        },
        TokenSeed::of_account(&token("account"), "One", vec![]),
    ]);
    let of_account = format!("/accounts/{ACCOUNT}/tokens/verify");
    let of_other = format!("/accounts/{OTHER_ACCOUNT}/tokens/verify");
    let user = api.as_token("user");
    let verified = user.get("/user/tokens/verify").await;
    let message = json!([{ "code": 10000, "message": "This API Token is valid and active", "type": null }]);
    assert_eq!(verified.body["messages"], message);
    let verified = verified.result();
    assert_eq!(
        (&verified["status"], &verified["expires_on"], &verified["not_before"]),
        (
            &json!("active"),
            &json!("2026-11-29T13:00:00Z"),
            &json!("2026-11-29T12:00:00Z")
        )
    );
    assert_eq!(user.get(&of_account).await.refusal(), (401, 1000));
    let account = api.as_token("account");
    assert_eq!(account.get(&of_account).await.result()["status"], "active");
    assert_eq!(account.get(&of_other).await.refusal(), (401, 1000));
    assert_eq!(account.get("/user/tokens/verify").await.refusal(), (401, 1000));
    assert_eq!(
        api.as_token("nobody").get("/user/tokens/verify").await.refusal(),
        (401, 1000)
    );
    let off = api.as_token("off").get("/user/tokens/verify").await;
    assert_eq!(
        (&off.body["messages"], &off.body["result"]["status"]),
        (&json!([]), &json!("disabled"))
    );
    tokio::time::advance(hours(1)).await;
    assert_eq!(user.get("/user/tokens/verify").await.result()["status"], "expired");
    assert_eq!(user.get("/zones").await.refusal(), (401, 10000));
}

#[tokio::test(start_paused = true)]
async fn headers_that_are_no_credentials() {
    let api = two_accounts(vec![]);
    let nobody = Api {
        token: None,
        ..api.clone()
    };
    assert_eq!(nobody.get("/zones").await.refusal(), (400, 9106));
    assert_eq!(api.as_token("nobody").get("/zones").await.refusal(), (401, 10000));
    for wrong in ["two words", "quo\"ted", ""] {
        let malformed = Api {
            token: Some(wrong.into()),
            ..api.clone()
        };
        let answer = malformed.get("/zones").await;
        assert_eq!(answer.refusal(), (400, 6111), "{wrong:?}");
        assert_eq!(answer.body["errors"][0]["code"], 6003);
    }
    for (key, status) in [(token("key"), 200), (token("wrong"), 403)] {
        let mut request = nobody.request("GET", "/zones", None);
        request
            .headers_mut()
            .insert("x-auth-email", "both@example.com".parse().expect("a header"));
        request
            .headers_mut()
            .insert("x-auth-key", key.parse().expect("a header"));
        let answer = answer(api.sim.router().oneshot(request).await.expect("infallible")).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_for_one_zone() {
    let (read, write) = (Permission::read(Area::Zone), Permission::write(Area::Dns));
    let api = two_accounts(vec![user(
        "one",
        vec![Grant::on_zones(read, ["example.com"]), Grant::on_zones(write, [ZONE])],
    )]);
    let one = api.as_token("one");
    assert_eq!(one.get("/zones").await.refusal(), (403, 9109));
    assert_eq!(
        names(&one.get("/zones?name=example.com").await.result()),
        ["example.com"]
    );
    assert_eq!(one.get("/zones?name=other.example").await.result(), json!([]));
    one.get(&format!("/zones/{ZONE}")).await.result();
    one.create(address("www", "192.0.2.1")).await.result();
    one.list("").await.result();
    assert_eq!(
        one.send("DELETE", &format!("/zones/{ZONE}"), None).await.refusal(),
        (403, 9109)
    );
    let others = api.as_token("all").get("/zones?name=spare.example").await.result();
    let other = id_of(&others[0]);
    assert_eq!(one.get(&format!("/zones/{other}")).await.refusal(), (403, 9109));
    assert_eq!(
        one.get(&format!("/zones/{other}/dns_records")).await.refusal(),
        (403, 10000)
    );
    assert_eq!(one.get("/accounts").await.result(), json!([]));
    assert_eq!(one.get(&format!("/accounts/{ACCOUNT}")).await.refusal(), (403, 9109));
}

#[tokio::test(start_paused = true)]
async fn permissions_are_told_apart() {
    let everywhere = |permission| vec![Grant::everywhere(permission)];
    let api = two_accounts(vec![
        user("zone-reader", everywhere(Permission::read(Area::Zone))),
        user("dns-reader", everywhere(Permission::read(Area::Dns))),
        user("account-reader", everywhere(Permission::read(Area::Account))),
        user(
            "of-two",
            vec![
                Grant::on_accounts(Permission::write(Area::Zone), [OTHER_ACCOUNT]),
                Grant::on_accounts(Permission::read(Area::Account), [OTHER_ACCOUNT]),
            ],
        ),
        TokenSeed::of_account(
            &token("account-token"),
            "Two",
            everywhere(Permission::write(Area::Zone)),
        ),
    ]);
    let zone_reader = api.as_token("zone-reader");
    assert_eq!(
        names(&zone_reader.get("/zones").await.result()),
        ["example.com", "other.example", "spare.example"]
    );
    assert_eq!(zone_reader.list("").await.refusal(), (403, 10000));
    let pause = json!({ "paused": true });
    assert_eq!(
        zone_reader
            .send("PATCH", &format!("/zones/{ZONE}"), Some(&pause))
            .await
            .refusal(),
        (403, 9109)
    );
    let dns_reader = api.as_token("dns-reader");
    dns_reader.list("").await.result();
    assert_eq!(
        dns_reader.create(address("x", "192.0.2.1")).await.refusal(),
        (403, 10000)
    );
    assert_eq!(dns_reader.get("/zones").await.refusal(), (403, 9109));
    dns_reader.get(&format!("/zones/{ZONE}")).await.result();
    assert_eq!(
        names(&api.as_token("account-reader").get("/accounts").await.result()),
        ["One", "Two"]
    );
    let of_two = api.as_token("of-two");
    assert_eq!(names(&of_two.get("/zones").await.result()), ["other.example"]);
    assert_eq!(names(&of_two.get("/accounts").await.result()), ["Two"]);
    assert_eq!(of_two.get(&format!("/accounts/{ACCOUNT}")).await.refusal(), (403, 9109));
    let new = |account: &str| json!({ "name": format!("new-{account}.example"), "account": { "id": account } });
    assert_eq!(
        of_two.send("POST", "/zones", Some(&new(ACCOUNT))).await.refusal(),
        (403, 9109)
    );
    of_two.send("POST", "/zones", Some(&new(OTHER_ACCOUNT))).await.result();
    let account_token = api.as_token("account-token");
    assert_eq!(
        names(&account_token.get("/zones").await.result()).len(),
        2,
        "its account alone"
    );
}

#[tokio::test(start_paused = true)]
async fn paths_that_lead_nowhere() {
    let api = api_on(Plan::Free);
    let cases = [
        ("GET", "/nothing/here".to_owned(), (404, 7003)),
        ("GET", "/zones/not-an-id".to_owned(), (404, 7003)),
        ("GET", format!("/zones/{}", ZONE.to_uppercase()), (404, 7003)),
        ("GET", format!("/zones/{ZONE}/dns_records/x"), (404, 7003)),
        // Clients with an empty zone id send this.
        ("GET", "/zones//dns_records".to_owned(), (404, 7003)),
        ("GET", format!("/zones/{UNKNOWN}"), (400, 9109)),
        ("GET", format!("/zones/{UNKNOWN}/dns_records"), (404, 1003)),
        ("GET", format!("/zones/{ZONE}/dns_records/{UNKNOWN}"), (404, 81044)),
        ("DELETE", format!("/zones/{ZONE}/dns_records/{UNKNOWN}"), (404, 81044)),
        ("GET", format!("/accounts/{UNKNOWN}"), (403, 9109)),
        ("DELETE", "/user/tokens/verify".to_owned(), (501, 10501)),
        ("PUT", "/zones".to_owned(), (405, 7001)),
        ("GET", format!("/zones/{ZONE}/settings"), (501, 10501)),
        ("GET", format!("/zones/{ZONE}/dns_records/usage"), (501, 10501)),
        ("GET", format!("/accounts/{ACCOUNT}/workers/scripts"), (501, 10501)),
    ];
    for (method, path, refusal) in cases {
        assert_eq!(
            api.send(method, &path, None).await.refusal(),
            refusal,
            "{method} {path}"
        );
    }
    let unknown = api.get("/nothing/here").await;
    assert_eq!(unknown.body["errors"][1]["code"], 7000);
    let outside = http::Request::get("/zones")
        .body(axum::body::Body::empty())
        .expect("a request");
    assert_eq!(
        answer(api.sim.router().oneshot(outside).await.expect("infallible"))
            .await
            .status,
        404
    );
    let slash = api.get("/zones/?name=example.com").await;
    assert_eq!(names(&slash.result()), ["example.com"]);
}

#[tokio::test(start_paused = true)]
async fn headers_of_every_answer() {
    let api = api_on(Plan::Free);
    tokio::time::advance(hours(24)).await;
    let one = api.list("").await;
    assert_eq!(one.header("date"), Some("Mon, 30 Nov 2026 12:00:00 GMT"));
    assert_eq!(one.header("ratelimit"), Some("\"default\";r=1199;t=1"));
    assert_eq!(one.header("ratelimit-policy"), Some("\"default\";q=1200;w=300"));
    assert_eq!(one.header("content-type"), Some("application/json"));
    let zones = api.get("/zones").await;
    assert_eq!(zones.header("ratelimit"), Some("\"list_zones\";r=1200;t=1"));
    assert_eq!(zones.header("ratelimit-policy"), Some("\"list_zones\";q=1201;w=300"));
    let refused = api.get("/zones/x").await;
    assert!(refused.header("ratelimit").is_some(), "on errors too");
    let rays: Vec<_> = [&one, &zones, &refused]
        .map(|answer| answer.header("cf-ray").expect("a ray").to_owned())
        .into();
    assert!(
        rays.iter().all(|ray| ray.len() == 20 && ray.ends_with("-SIM")),
        "{rays:?}"
    );
    assert!(rays[0] != rays[1] && rays[1] != rays[2]);
}

#[tokio::test(start_paused = true)]
async fn over_budget_everything_of_the_user_is_refused_for_five_minutes() {
    let api = two_accounts(vec![
        user("first", grants(&[(Area::Zone, false)])),
        user("second", grants(&[(Area::Zone, false)])),
        TokenSeed::of_account(&token("account"), "One", grants(&[(Area::Zone, false)])),
    ]);
    let (first, second, account) = (api.as_token("first"), api.as_token("second"), api.as_token("account"));
    for number in 0..1200 {
        let caller = if number % 2 == 0 { &first } else { &second };
        assert_eq!(caller.get("/zones").await.status, 200, "{number}");
    }
    let over = second.get("/zones").await;
    assert_eq!((over.refusal(), over.header("retry-after")), ((429, 971), Some("300")));
    assert_eq!(over.header("ratelimit"), Some("\"list_zones\";r=0;t=300"));
    account.get("/zones").await.result();
    assert_eq!(first.get("/nothing").await.status, 404, "no call to a product");
    tokio::time::advance(Duration::from_secs(200)).await;
    let still = first.get("/zones").await;
    assert_eq!((still.status, still.header("retry-after")), (429, Some("100")));
    tokio::time::advance(Duration::from_secs(100)).await;
    first.get("/zones").await.result();
}

#[tokio::test(start_paused = true)]
async fn the_window_slides_and_the_limit_can_be_set() {
    let api = api_on(Plan::Free);
    api.sim.set_rate_limit(Some(RateLimit {
        calls: 2,
        window_seconds: 10,
        block_seconds: 5,
    }));
    api.list("").await.result();
    tokio::time::advance(Duration::from_secs(6)).await;
    api.list("").await.result();
    tokio::time::advance(Duration::from_secs(6)).await;
    api.list("").await.result();
    assert_eq!(api.list("").await.header("retry-after"), Some("5"));
    api.sim.set_rate_limit(None);
    for _ in 0..10 {
        api.list("").await.result();
    }
}
