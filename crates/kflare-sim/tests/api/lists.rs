//! Pages and filters.

use crate::support::*;
use kflare_sim::{Plan, Seed, ZoneSeed};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn records_over_pages() {
    let api = api_on(Plan::Pro);
    let posts: Vec<_> = (0..250).map(|n| address(&format!("h{n:03}"), "192.0.2.1")).collect();
    api.batch(json!({ "posts": posts })).await.result();
    let mut seen = Vec::new();
    for (page, count) in [(1, 100), (2, 100), (3, 50), (4, 0)] {
        let answer = api.list(&format!("?page={page}")).await;
        let info = json!({ "page": page, "per_page": 100, "count": count, "total_count": 250, "total_pages": 3 });
        assert_eq!(answer.body["result_info"], info);
        seen.extend(names(&answer.result()));
    }
    let expected: Vec<_> = (0..250).map(|n| format!("h{n:03}.example.com")).collect();
    assert_eq!(seen, expected);
    let all = api.list("?per_page=5000000").await;
    assert_eq!(
        (
            &all.body["result_info"]["count"],
            &all.body["result_info"]["total_pages"]
        ),
        (&json!(250), &json!(1))
    );
    assert_eq!(api.list("?page=x").await.refusal(), (400, 6003));
}

#[tokio::test(start_paused = true)]
async fn zones_over_pages() {
    let api = api_on(Plan::Free);
    let zones = (0..60)
        .map(|n| ZoneSeed::named(&format!("z{n:02}.example"), "One"))
        .collect();
    api.sim
        .seed(&Seed {
            zones,
            ..Seed::default()
        })
        .expect("a good seed");
    let mut seen = Vec::new();
    for (page, count) in [(1, 20), (2, 20), (3, 20), (4, 1)] {
        let answer = api.get(&format!("/zones?page={page}")).await;
        let info = json!({ "page": page, "per_page": 20, "count": count, "total_count": 61, "total_pages": 4 });
        assert_eq!(answer.body["result_info"], info);
        seen.extend(names(&answer.result()));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 61);
    for (asked, given) in [(1, 5), (7, 7), (1000, 50)] {
        let answer = api.get(&format!("/zones?per_page={asked}")).await;
        assert_eq!(
            answer.body["result_info"]["per_page"], given,
            "sizes are kept between 5 and 50"
        );
    }
    let empty = api.get("/zones?name=nothing.example").await;
    assert_eq!(
        (&empty.body["result_info"]["total_pages"], &empty.body["result"]),
        (&json!(0), &json!([]))
    );
}

#[tokio::test(start_paused = true)]
async fn record_filters() {
    let api = api_on(Plan::Pro);
    let records = [
        json!({ "type": "A", "name": "www", "content": "192.0.2.1", "proxied": true, "comment": "Front door", "tags": ["team:blue", "env:prod"] }),
        json!({ "type": "AAAA", "name": "www", "content": "2001:db8::1", "ttl": 600, "tags": ["team:red"] }),
        json!({ "type": "A", "name": "wiki", "content": "192.0.2.2", "ttl": 60, "comment": "back" }),
        json!({ "type": "TXT", "name": "@", "content": "v=spf1 -all" }),
    ];
    for body in records {
        api.create(body).await.result();
    }
    let cases: [(&str, &[&str]); 27] = [
        ("", &["wiki A", "www A", "www AAAA", "@ TXT"]),
        ("?name=WWW.example.com", &["www A", "www AAAA"]),
        ("?name.exact=www.example.com", &["www A", "www AAAA"]),
        ("?name=www", &[]),
        ("?name.contains=IK", &["wiki A"]),
        ("?name.startswith=w", &["wiki A", "www A", "www AAAA"]),
        ("?name.endswith=ww.example.com", &["www A", "www AAAA"]),
        ("?content=192.0.2.1", &["www A"]),
        ("?content.startswith=192.0", &["wiki A", "www A"]),
        ("?content.contains=SPF1", &["@ TXT"]),
        ("?type=A", &["wiki A", "www A"]),
        ("?type=MX", &[]),
        ("?proxied=true", &["www A"]),
        ("?proxied=false&type=A", &["wiki A"]),
        ("?comment.contains=front", &["www A"]),
        ("?comment.present", &["wiki A", "www A"]),
        ("?comment.absent=true", &["www AAAA", "@ TXT"]),
        ("?tag=team:blue", &["www A"]),
        ("?tag.present=team", &["www A", "www AAAA"]),
        ("?tag.absent=team", &["wiki A", "@ TXT"]),
        ("?tag.startswith=team:r", &["www AAAA"]),
        (
            "?tag.exact=team:red&tag.present=env&tag_match=any",
            &["www A", "www AAAA"],
        ),
        ("?tag.exact=team:red&tag.present=env", &[]),
        ("?type=TXT&proxied=true&match=any", &["www A", "@ TXT"]),
        ("?search=wiki", &["wiki A"]),
        ("?order=ttl&direction=desc", &["www AAAA", "wiki A", "@ TXT", "www A"]),
        ("?order=name&direction=asc", &["@ TXT", "wiki A", "www A", "www AAAA"]),
    ];
    for (query, expected) in cases {
        let list = api.list(query).await.result();
        let found: Vec<String> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|record| {
                let name = record["name"].as_str().expect("a name");
                let label = name.strip_suffix(".example.com").unwrap_or("@");
                format!("{label} {}", record["type"].as_str().expect("a type"))
            })
            .collect();
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn zone_filters() {
    let api = api_on(Plan::Free);
    let two = kflare_sim::AccountSeed {
        id: Some(OTHER_ACCOUNT.into()),
        ..kflare_sim::AccountSeed::named("Two")
    };
    let pending = ZoneSeed {
        status: kflare_sim::ZoneStatus::Pending,
        ..ZoneSeed::named("new.example", "Two")
    };
    let users = vec![kflare_sim::UserSeed {
        email: "both@example.com".into(),
        ..Default::default()
    }];
    let everything = grants(&[(kflare_sim::Area::Zone, false)]);
    let both = kflare_sim::TokenSeed {
        user: Some("both@example.com".into()),
        ..kflare_sim::TokenSeed::of_user(&token("both"), everything)
    };
    let seed = Seed {
        accounts: vec![two],
        users,
        tokens: vec![both],
        zones: vec![pending],
        ..Seed::default()
    };
    api.sim.seed(&seed).expect("a good seed");
    let api = api.as_token("both");
    let cases: [(&str, &[&str]); 12] = [
        ("", &["example.com", "new.example"]),
        ("?name=EXAMPLE.com", &["example.com"]),
        ("?name=contains:new", &["new.example"]),
        ("?name=starts_with:exa", &["example.com"]),
        ("?name=ends_with:.example", &["new.example"]),
        ("?name=not_equal:new.example", &["example.com"]),
        (&format!("?account.id={OTHER_ACCOUNT}"), &["new.example"]),
        (&format!("?name=example.com&account.id={OTHER_ACCOUNT}"), &[]),
        (
            &format!("?name=example.com&account.id={OTHER_ACCOUNT}&match=any"),
            &["example.com", "new.example"],
        ),
        ("?account.name=one", &["example.com"]),
        ("?status=pending", &["new.example"]),
        ("?type=full,partial&direction=desc", &["new.example", "example.com"]),
    ];
    for (query, expected) in cases {
        assert_eq!(
            names(&api.get(&format!("/zones{query}")).await.result()),
            expected,
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_export_is_a_zone_file() {
    let api = api_on(Plan::Free);
    for body in bodies() {
        api.create(body).await.result();
    }
    let answer = api.get(&format!("/zones/{ZONE}/dns_records/export")).await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    for line in [
        "a.example.com.\t300\tIN\tA\t192.0.2.1",
        "cname.example.com.\t300\tIN\tCNAME\ttarget.example.net.",
        "example.com.\t300\tIN\tMX\t10 mail.example.net.",
        "_xmpp._tcp.example.com.\t300\tIN\tSRV\t5 0 5222 talk.example.net.",
        "txt.example.com.\t300\tIN\tTXT\t\"MiXeD text\"",
    ] {
        assert!(
            answer.text.lines().any(|written| written == line),
            "{line} in {}",
            answer.text
        );
    }
}
