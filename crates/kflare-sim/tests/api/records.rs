//! Records: what is written is read back in one form.

use crate::support::*;
use kflare_sim::{
    DnsErrorForm, FlagsForm, ParamsForm, Plan, Quirks, RecordSeed, RecordType, Seed, SettingsForm, TxtForm, ZoneSeed,
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn every_type_is_normalised_and_stable() {
    let api = api_on(Plan::Free);
    let contents = [
        "192.0.2.1",
        "2001:db8:0:0:8000::",
        "0 issue \"ca.example.net\"",
        "9 1 1 Zm9v",
        "target.example.net",
        "257 3 13 Zm9v",
        "3600 13 2 abcdef",
        "1 . ipv4hint=192.0.2.1 alpn=\"h2,h3\"",
        "37 46 46.000 N 122 23 35.000 W 0.00 100.00 0.00 0.00",
        "mail.example.net",
        "100 10 \"s\" \"SIP+D2U\" \"\" _sip._udp.example.com",
        "ns1.example.net",
        "Zm9vYmFy",
        "host.example.net",
        "3 0 1 abcdef",
        "0 5222 talk.example.net",
        "4 2 abcdef",
        "1 foo. alpn=\"h2\"",
        "3 1 1 abcdef",
        "\"MiXeD text\"",
        "1 \"ftp://ftp.example.net/\"",
    ];
    let bodies = bodies();
    assert_eq!(bodies.len(), RecordType::ALL.len());
    for ((body, content), kind) in bodies.iter().zip(contents).zip(RecordType::ALL) {
        assert_eq!(body["type"], kind.name());
        let made = api.create(body.clone()).await.result();
        assert_eq!(made["content"], content, "{kind}");
        let sent = body["name"].as_str().expect("a name").to_lowercase();
        let name = if sent == "@" {
            "example.com".to_owned()
        } else {
            format!("{sent}.example.com")
        };
        assert_eq!(made["name"], name.as_str(), "{kind}");
        assert_eq!(
            made["proxiable"],
            matches!(kind, RecordType::A | RecordType::Aaaa | RecordType::Cname),
            "{kind}"
        );
        assert_eq!(made["proxied"], false);
        let id = id_of(&made);
        let path = format!("/zones/{ZONE}/dns_records/{id}");
        assert_eq!(api.get(&path).await.result(), made, "{kind}: get");
        // What was answered, written again in full, changes nothing.
        assert_eq!(api.send("PUT", &path, Some(&made)).await.result(), made, "{kind}: put");
        assert_eq!(
            api.send("PATCH", &path, Some(body)).await.result(),
            made,
            "{kind}: patch"
        );
    }
    let applied = api
        .sim
        .calls()
        .iter()
        .filter(|call| call.effect == kflare_sim::Effect::Applied)
        .count();
    assert_eq!(applied, 21, "only the creates had an effect");
}

#[tokio::test(start_paused = true)]
async fn refusals_carry_their_code_in_the_chain() {
    let api = api_on(Plan::Free);
    let long = "c".repeat(101);
    let cases = [
        (json!({ "type": "A", "name": "a..b", "content": "192.0.2.1" }), 9000),
        (json!({ "type": "A", "content": "192.0.2.1" }), 9000),
        (json!({ "type": "SPF", "name": "x", "content": "x" }), 9002),
        (json!({ "name": "x", "content": "x" }), 9002),
        (
            json!({ "type": "TXT", "name": "x", "content": "x", "proxied": true }),
            9004,
        ),
        (json!({ "type": "A", "name": "x", "content": "2001:db8::1" }), 9005),
        (json!({ "type": "A", "name": "x", "content": "192.0.2.01" }), 9005),
        (json!({ "type": "AAAA", "name": "x", "content": "192.0.2.1" }), 9006),
        (json!({ "type": "CNAME", "name": "x", "content": "not a host" }), 9007),
        (
            json!({ "type": "CNAME", "name": "x", "content": "x.example.com" }),
            9007,
        ),
        (
            json!({ "type": "MX", "name": "x", "content": "192.0.2.1", "priority": 1 }),
            9009,
        ),
        (
            json!({ "type": "MX", "name": "x", "content": ".", "priority": 1 }),
            9009,
        ),
        (
            json!({ "type": "MX", "name": "x", "content": "mail.example.net" }),
            9101,
        ),
        (
            json!({ "type": "SRV", "name": "x", "data": { "priority": 1, "weight": 1, "port": 1 } }),
            9101,
        ),
        (
            json!({ "type": "SRV", "name": "x", "content": "1 1 1 a.example.net" }),
            9101,
        ),
        (
            json!({ "type": "SRV", "name": "x", "data": { "priority": 1, "weight": 1, "port": 65536, "target": "a.b" } }),
            9207,
        ),
        (
            json!({ "type": "A", "name": "x", "content": "192.0.2.1", "ttl": 30 }),
            9021,
        ),
        (
            json!({ "type": "A", "name": "x", "content": "192.0.2.1", "ttl": 86401 }),
            9021,
        ),
        (json!({ "type": "TXT", "name": "x", "content": "say \"hi\"" }), 9207),
        (
            json!({ "type": "A", "name": "x", "content": "192.0.2.1", "tags": ["team:blue"] }),
            9300,
        ),
        (
            json!({ "type": "A", "name": "x", "content": "192.0.2.1", "comment": long }),
            9313,
        ),
        (
            json!({ "type": "CNAME", "name": "x", "content": "a.b", "settings": { "flatten_cname": true } }),
            9207,
        ),
        (
            json!({ "type": "A", "name": "x", "content": "192.0.2.1", "settings": { "ipv4_only": true, "ipv6_only": true } }),
            9207,
        ),
    ];
    for (body, code) in cases {
        let answer = api.create(body.clone()).await;
        assert_eq!(answer.refusal(), (400, code), "{body}");
        assert_eq!(answer.body["errors"][0]["code"], 1004, "{body}");
    }
    api.sim.set_quirks(Quirks {
        dns_errors: DnsErrorForm::Direct,
        ..Quirks::default()
    });
    let direct = api.create(json!({ "type": "A", "name": "x", "content": "?" })).await;
    assert_eq!(direct.body["errors"][0]["code"], 9005);
    assert_eq!(
        api.send("POST", &format!("/zones/{ZONE}/dns_records"), None)
            .await
            .refusal(),
        (400, 6007)
    );
    assert_eq!(api.record_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_plan_allows() {
    let api = api_on(Plan::Enterprise);
    let body = json!({
        "type": "CNAME", "name": "x", "content": "a.b", "ttl": 30, "comment": "c".repeat(500),
        "tags": ["team:blue", "alone"], "settings": { "flatten_cname": true },
    });
    let made = api.create(body).await.result();
    assert_eq!(
        (&made["ttl"], &made["tags"]),
        (&json!(30), &json!(["team:blue", "alone"]))
    );
    assert_eq!(made["settings"], json!({ "flatten_cname": true }));
    assert_eq!(made["comment_modified_on"], made["tags_modified_on"]);
    let tags: Vec<String> = (0..21).map(|number| format!("t{number}:x")).collect();
    let too_many = json!({ "type": "A", "name": "y", "content": "192.0.2.1", "tags": tags });
    assert_eq!(api.create(too_many).await.refusal(), (400, 9300));
}

#[tokio::test(start_paused = true)]
async fn the_quota_follows_plan_and_age() {
    let api = api_on(Plan::Free);
    let old = ZoneSeed {
        created_on: Some("2024-01-01T00:00:00Z".parse().expect("a time")),
        ..ZoneSeed::named("old.example", "One")
    };
    let tiny = ZoneSeed {
        record_quota: Some(1),
        ..ZoneSeed::named("tiny.example", "One")
    };
    let seeded = api
        .sim
        .seed(&Seed {
            zones: vec![old, tiny],
            ..Seed::default()
        })
        .expect("a good seed");
    let posts =
        |count: u8| json!({ "posts": (0..count).map(|n| address(&format!("h{n}"), "192.0.2.1")).collect::<Vec<_>>() });
    api.batch(posts(200)).await.result();
    assert_eq!(api.create(address("more", "192.0.2.1")).await.refusal(), (400, 81045));
    let to = |zone: &str| format!("/zones/{zone}/dns_records");
    api.send("POST", &format!("{}/batch", to(&seeded.zones[0])), Some(&posts(200)))
        .await
        .result();
    api.send("POST", &to(&seeded.zones[0]), Some(&address("more", "192.0.2.1")))
        .await
        .result();
    api.send("POST", &to(&seeded.zones[1]), Some(&address("one", "192.0.2.1")))
        .await
        .result();
    let second = api
        .send("POST", &to(&seeded.zones[1]), Some(&address("two", "192.0.2.1")))
        .await;
    assert_eq!(second.refusal(), (400, 81045));
}

#[tokio::test(start_paused = true)]
async fn conflict_matrix() {
    let a = |name: &str, content: &str| json!({ "type": "A", "name": name, "content": content });
    let aaaa = json!({ "type": "AAAA", "name": "x", "content": "2001:db8::1" });
    let cname = |content: &str| json!({ "type": "CNAME", "name": "x", "content": content });
    let ns = |name: &str, content: &str| json!({ "type": "NS", "name": name, "content": content });
    let txt = |content: &str| json!({ "type": "TXT", "name": "x", "content": content });
    let mx = json!({ "type": "MX", "name": "x", "content": "mail.example.net", "priority": 1 });
    let cases = [
        (a("x", "192.0.2.1"), cname("a.b"), Some(81053)),
        (aaaa.clone(), cname("a.b"), Some(81053)),
        (cname("a.b"), cname("c.d"), Some(81053)),
        (cname("a.b"), cname("a.b"), Some(81053)),
        (cname("a.b"), a("x", "192.0.2.1"), Some(81054)),
        (cname("a.b"), aaaa.clone(), Some(81054)),
        (a("x", "192.0.2.1"), ns("x", "ns.a.b"), Some(81055)),
        (txt("t"), ns("x", "ns.a.b"), Some(81055)),
        (ns("x", "ns.a.b"), a("x", "192.0.2.1"), Some(81056)),
        (ns("x", "ns.a.b"), txt("t"), Some(81056)),
        (ns("x", "ns.a.b"), ns("x", "ns.a.b"), Some(81058)),
        (a("x", "192.0.2.1"), a("X.example.com.", "192.0.2.1"), Some(81058)),
        (txt("a b"), txt("\"a b\""), Some(81058)),
        (txt("ab"), txt("\"a\" \"b\""), Some(81058)),
        (mx.clone(), mx.clone(), Some(81058)),
        (ns("x", "ns.a.b"), ns("x", "ns2.a.b"), None),
        (ns("@", "ns.a.b"), a("@", "192.0.2.1"), None),
        (a("@", "192.0.2.1"), ns("@", "ns.a.b"), None),
        (a("x", "192.0.2.1"), a("x", "192.0.2.2"), None),
        (a("x", "192.0.2.1"), a("y", "192.0.2.1"), None),
        (a("x", "192.0.2.1"), aaaa, None),
        (a("x", "192.0.2.1"), txt("t"), None),
        (cname("a.b"), txt("t"), None),
        (cname("a.b"), mx, None),
        (txt("t"), txt("T"), None),
    ];
    for (first, second, code) in cases {
        let api = api_on(Plan::Free);
        api.create(first.clone()).await.result();
        let answer = api.create(second.clone()).await;
        match code {
            Some(code) => {
                assert_eq!(answer.refusal(), (400, code), "{first} then {second}");
                assert_eq!(api.record_count(), 1);
            }
            None => drop(answer.result()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_can_conflict_too() {
    let api = api_on(Plan::Free);
    api.create(address("x", "192.0.2.1")).await.result();
    let second = api.create(address("x", "192.0.2.2")).await.result();
    assert_eq!(
        api.patch(&id_of(&second), json!({ "content": "192.0.2.1" }))
            .await
            .refusal(),
        (400, 81058)
    );
    // Onto itself is no conflict.
    api.patch(&id_of(&second), json!({ "content": "192.0.2.2" }))
        .await
        .result();
    let alias = api
        .create(json!({ "type": "CNAME", "name": "y", "content": "a.b" }))
        .await
        .result();
    assert_eq!(
        api.patch(&id_of(&alias), json!({ "name": "x" })).await.refusal(),
        (400, 81053)
    );
}

#[tokio::test(start_paused = true)]
async fn patch_merges_and_put_overwrites() {
    let api = api_on(Plan::Pro);
    let full = json!({
        "type": "A", "name": "x", "content": "192.0.2.1", "ttl": 300, "comment": "why", "tags": ["a:b"],
        "settings": { "ipv4_only": true },
    });
    let made = api.create(full).await.result();
    let id = id_of(&made);
    tokio::time::advance(hours(1)).await;
    let proxied = api.patch(&id, json!({ "proxied": true, "ttl": 300 })).await.result();
    assert_eq!(
        (&proxied["ttl"], &proxied["comment"], &proxied["tags"]),
        (&json!(1), &json!("why"), &json!(["a:b"]))
    );
    assert_eq!(proxied["settings"], json!({ "ipv4_only": true }));
    assert_eq!(proxied["created_on"], made["created_on"]);
    assert_ne!(proxied["modified_on"], made["modified_on"]);
    assert_eq!(proxied["comment_modified_on"], made["comment_modified_on"]);
    let cleared = api.patch(&id, json!({ "comment": null, "tags": null })).await.result();
    assert_eq!((&cleared["comment"], &cleared["tags"]), (&Value::Null, &json!([])));
    assert_eq!(cleared.get("comment_modified_on"), None);
    tokio::time::advance(hours(1)).await;
    let same = api.patch(&id, json!({ "proxied": true })).await.result();
    assert_eq!(same["modified_on"], cleared["modified_on"], "nothing changed");
    let put = json!({ "type": "A", "name": "x", "content": "192.0.2.9" });
    let put = api
        .send("PUT", &format!("/zones/{ZONE}/dns_records/{id}"), Some(&put))
        .await
        .result();
    assert_eq!(
        (&put["proxied"], &put["ttl"], &put["settings"]),
        (&json!(false), &json!(1), &json!({}))
    );
    let retyped = api
        .patch(&id, json!({ "type": "AAAA", "content": "2001:db8::1" }))
        .await;
    assert_eq!(retyped.refusal(), (400, 9207));
}

#[tokio::test(start_paused = true)]
async fn managed_records_cannot_be_edited() {
    let api = api_on(Plan::Free);
    let body = |name: &str| json!({ "type": "AAAA", "name": name, "content": "100::", "proxied": true });
    let managed = [
        json!({ "read_only": true }),
        json!({ "origin_worker_id": "w" }),
        json!({ "email_routing": true }),
    ];
    let records = managed.iter().enumerate().map(|(number, meta)| RecordSeed {
        id: None,
        meta: meta.as_object().expect("an object").clone(),
        body: body(&format!("w{number}.managed.example"))
            .as_object()
            .expect("an object")
            .clone(),
    });
    let zone = ZoneSeed {
        records: records.collect(),
        ..ZoneSeed::named("managed.example", ACCOUNT)
    };
    let seeded = api
        .sim
        .seed(&Seed {
            zones: vec![zone],
            ..Seed::default()
        })
        .expect("a good seed");
    let zone = &seeded.zones[0];
    for (id, meta) in seeded.records[0].iter().zip(managed) {
        let path = format!("/zones/{zone}/dns_records/{id}");
        assert_eq!(api.get(&path).await.result()["meta"], meta);
        assert_eq!(api.send("DELETE", &path, None).await.refusal(), (400, 1046));
        assert_eq!(
            api.send("PATCH", &path, Some(&json!({ "ttl": 60 }))).await.refusal(),
            (400, 1046)
        );
        api.sim.foreign_delete(zone, id).expect("the product itself may");
        assert_eq!(api.get(&path).await.refusal(), (404, 81044));
    }
}

#[tokio::test(start_paused = true)]
async fn answers_take_the_chosen_forms() {
    let api = api_on(Plan::Free);
    for body in bodies() {
        api.create(body).await.result();
    }
    let quirks = Quirks {
        txt: TxtForm::Bare,
        settings: SettingsForm::Null,
        caa_flags: FlagsForm::String,
        svcb_params: ParamsForm::SortedQuoted,
        dns_errors: DnsErrorForm::Chained,
        ..Quirks::default()
    };
    let before = api.list("").await.result();
    api.sim.set_quirks(quirks);
    let list = api.list("").await.result();
    let of = |kind: &str| {
        list.as_array()
            .expect("a list")
            .iter()
            .find(|record| record["type"] == kind)
            .expect("there")
            .clone()
    };
    assert_eq!(of("TXT")["content"], "MiXeD text");
    assert_eq!(of("A")["settings"], Value::Null);
    assert_eq!(
        of("CNAME").get("settings"),
        None,
        "an unproxied CNAME never has settings"
    );
    assert_eq!(of("CAA")["data"]["flags"], "0");
    assert_eq!(of("CAA")["content"], "0 issue \"ca.example.net\"");
    assert_eq!(of("HTTPS")["data"]["value"], "alpn=\"h2,h3\" ipv4hint=\"192.0.2.1\"");
    // In whatever form a record is answered, writing that changes nothing.
    for record in list.as_array().expect("a list") {
        let path = format!("/zones/{ZONE}/dns_records/{}", id_of(record));
        if record["type"] != "HTTPS" {
            assert_eq!(
                api.send("PUT", &path, Some(record)).await.result()["modified_on"],
                record["modified_on"]
            );
        }
    }
    api.sim.set_quirks(Quirks {
        settings: SettingsForm::False,
        ..Quirks::default()
    });
    let proxied = json!({ "type": "CNAME", "name": "p", "content": "a.b", "proxied": true });
    let proxied = api.create(proxied).await.result();
    assert_eq!(
        proxied["settings"],
        json!({ "ipv4_only": false, "ipv6_only": false, "flatten_cname": false })
    );
    assert_eq!(before.as_array().map(Vec::len), Some(21));
}

fn some_name() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-zA-Z0-9_][a-zA-Z0-9_-]{0,10}", 1..4).prop_map(|labels| labels.join("."))
}

fn some_body() -> impl Strategy<Value = Value> {
    let host = || "[a-zA-Z][a-zA-Z0-9-]{0,8}\\.[a-zA-Z]{2,8}\\.?";
    let value = prop_oneof![
        any::<std::net::Ipv4Addr>().prop_map(|ip| json!({ "type": "A", "content": ip.to_string() })),
        any::<std::net::Ipv6Addr>().prop_map(|ip| json!({ "type": "AAAA", "content": ip.to_string().to_uppercase() })),
        host().prop_map(|host| json!({ "type": "CNAME", "content": host })),
        (host(), any::<u16>())
            .prop_map(|(host, priority)| json!({ "type": "MX", "content": host, "priority": priority })),
        "[^\"\\p{Cc}]{1,300}".prop_map(|text| json!({ "type": "TXT", "content": text })),
        (any::<u16>(), any::<u16>(), any::<u16>(), host()).prop_map(|(priority, weight, port, target)| json!({
            "type": "SRV", "data": { "priority": priority, "weight": weight, "port": port, "target": target },
        })),
        (any::<u8>(), "[a-zA-Z]{1,10}", "[ -~&&[^\"]]{0,40}").prop_map(
            |(flags, tag, value)| json!({ "type": "CAA", "data": { "flags": flags, "tag": tag, "value": value } })
        ),
        (0..=90u8, 0.0..59.999f64, -1000.0..1000.0f64).prop_map(|(degrees, seconds, altitude)| json!({
            "type": "LOC",
            "data": {
                "lat_degrees": degrees, "lat_seconds": seconds, "lat_direction": "s", "long_degrees": degrees,
                "long_direction": "E", "altitude": altitude,
            },
        })),
    ];
    let ttl = prop_oneof![Just(1u32), 60..=86400u32];
    (some_name(), value, ttl, "[ -~]{0,100}").prop_map(|(name, mut body, ttl, comment)| {
        body["name"] = json!(name);
        body["ttl"] = json!(ttl);
        body["comment"] = json!(comment);
        body
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn what_is_answered_can_be_written_again_without_a_change(body in some_body()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let api = api_on(Plan::Free);
            let made = api.create(body.clone()).await.result();
            let path = format!("/zones/{ZONE}/dns_records/{}", id_of(&made));
            for method in ["PUT", "PATCH"] {
                assert_eq!(api.send(method, &path, Some(&made)).await.result(), made);
                assert_eq!(api.send(method, &path, Some(&body)).await.result(), made);
            }
            assert_eq!(api.create(body).await.status, 400, "the same record twice");
            assert_eq!(api.list("").await.result(), json!([made]));
        });
    }
}
