//! Who may read and write the rules of which phase.

use kflare_sim::{Area, Grant, Permission, Phase, Plan, Seed, TokenSeed};
use serde_json::json;

use crate::rulesets_bodies::*;
use crate::support::*;

fn area_of(phase: Phase) -> Area {
    match phase {
        Phase::HttpRequestFirewallCustom | Phase::HttpRatelimit | Phase::HttpRequestFirewallManaged => Area::Waf,
        Phase::HttpRequestTransform | Phase::HttpRequestLateTransform | Phase::HttpResponseHeadersTransform => {
            Area::Transform
        }
        Phase::HttpRequestDynamicRedirect => Area::Redirect,
        Phase::HttpRequestCacheSettings => Area::Cache,
        Phase::HttpConfigSettings => Area::Configuration,
        Phase::HttpRequestOrigin => Area::Origin,
    }
}

#[tokio::test(start_paused = true)]
async fn each_phase_wants_its_own_permission() {
    let api = api_on(Plan::Free);
    let areas = [
        Area::Waf,
        Area::Transform,
        Area::Redirect,
        Area::Cache,
        Area::Configuration,
        Area::Origin,
    ];
    let tokens = areas.iter().flat_map(|area| {
        let write = vec![Grant::everywhere(Permission::write(*area))];
        let read = vec![Grant::everywhere(Permission::read(*area))];
        [
            TokenSeed::of_user(&token(&format!("{area:?}-write")), write),
            TokenSeed::of_user(&token(&format!("{area:?}-read")), read),
        ]
    });
    api.sim
        .seed(&Seed {
            tokens: tokens.collect(),
            ..Seed::default()
        })
        .expect("a good seed");
    for phase in Phase::ALL {
        for area in areas {
            let writer = api.as_token(&format!("{area:?}-write"));
            let reader = api.as_token(&format!("{area:?}-read"));
            let path = entry_point(phase);
            let rules = json!({ "rules": [] });
            let body = json!({ "name": "n", "kind": "zone", "phase": phase.name(), "rules": [] });
            if area_of(phase) != area {
                assert_eq!(reader.get(&path).await.refusal(), (403, 10_000), "{phase:?} {area:?}");
                assert_eq!(writer.send("PUT", &path, Some(&rules)).await.refusal(), (403, 10_000));
                assert_eq!(
                    writer.send("POST", RULESETS, Some(&body)).await.refusal(),
                    (403, 10_000)
                );
                continue;
            }
            assert_eq!(reader.send("PUT", &path, Some(&rules)).await.refusal(), (403, 10_000));
            assert_eq!(
                reader.send("POST", RULESETS, Some(&body)).await.refusal(),
                (403, 10_000)
            );
            let made = writer.send("PUT", &path, Some(&rules)).await.result();
            assert_eq!(reader.get(&path).await.result(), made);
            let one = format!("{RULESETS}/{}", id_of(&made));
            assert_eq!(reader.get(&one).await.result(), made);
            assert_eq!(reader.send("DELETE", &one, None).await.refusal(), (403, 10_000));
            let list = reader.get(RULESETS).await.result();
            let own = list
                .as_array()
                .expect("a list")
                .iter()
                .filter(|row| row["kind"] == "zone");
            assert!(own.clone().any(|row| row["id"] == made["id"]));
            assert!(own.clone().all(|row| row["name"] == "default"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn others_see_nothing() {
    let api = api_on(Plan::Free);
    let grants = vec![Grant::everywhere(Permission::write(Area::Dns))];
    let elsewhere = vec![Grant::on_zones(Permission::write(Area::Waf), ["other.example"])];
    api.sim
        .seed(&Seed {
            tokens: vec![
                TokenSeed::of_user(&token("dns"), grants),
                TokenSeed::of_user(&token("elsewhere"), elsewhere),
            ],
            ..Seed::default()
        })
        .expect("a good seed");
    for name in ["dns", "elsewhere"] {
        let caller = api.as_token(name);
        let body = json!({ "rules": [] });
        let phase = Phase::HttpRequestFirewallCustom;
        assert_eq!(caller.get(RULESETS).await.refusal(), (403, 10_000));
        assert_eq!(caller.get(&entry_point(phase)).await.refusal(), (403, 10_000));
        assert_eq!(
            caller.send("PUT", &entry_point(phase), Some(&body)).await.refusal(),
            (403, 10_000)
        );
        assert_eq!(
            caller.get(&format!("{RULESETS}/{UNKNOWN}")).await.refusal(),
            (403, 10_000)
        );
    }
    assert_eq!(
        api.get(&format!("/zones/{UNKNOWN}/rulesets")).await.refusal(),
        (404, 1003)
    );
}
