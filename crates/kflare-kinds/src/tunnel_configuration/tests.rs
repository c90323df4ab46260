use kflare_api::tunnel_configuration::{Access, OriginRequest, ProxyType, WarpRouting};
use kflare_engine::plan::{FieldRules, diff};
use proptest::prelude::*;

use super::*;

#[allow(
    clippy::needless_pass_by_value,
    reason = "values are made where they are handed over"
)]
fn spec(value: Value) -> TunnelConfigurationSpec {
    serde_json::from_value(value).unwrap()
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "values are made where they are handed over"
)]
fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// What Cloudflare has after `body` was written over `standing`: as sent, and `warp-routing`.
fn stored(standing: Value, body: &Map<String, Value>) -> Map<String, Value> {
    let mut config = document::written(object(standing), body);
    config
        .entry("warp-routing")
        .or_insert_with(|| json!({ "enabled": false }));
    config
}

fn differs(wanted: &Map<String, Value>, config: &Map<String, Value>) -> Vec<String> {
    let changes = diff(wanted, &document::canonical(config), FieldRules::default());
    changes.into_iter().map(|change| change.path).collect()
}

// Field cases 57 and 58.
#[test]
fn only_what_is_set_is_sent_and_the_last_rule_matches_everything() {
    let wanted = document::wanted(&spec(json!({
        "tunnelRef": { "name": "edge" },
        "ingress": [{
            "hostname": "a.example.com", "service": "https://web.demo.svc:443",
            "originRequest": { "originServerName": "a.example.com", "connectTimeout": "1m30s" },
        }],
    })))
    .unwrap();
    let sent = document::written(Map::new(), &wanted);
    assert_eq!(
        Value::Object(sent),
        json!({ "ingress": [
            {
                "hostname": "a.example.com", "service": "https://web.demo.svc:443",
                "originRequest": { "originServerName": "a.example.com", "connectTimeout": 90 },
            },
            { "service": "http_status:404" },
        ] })
    );
}

// Field case 54.
#[test]
fn order_of_rules_means_something_and_additions_of_cloudflare_do_not() {
    let wanted = document::wanted(&spec(json!({
        "tunnelRef": { "name": "edge" },
        "ingress": [
            { "hostname": "a.example.com", "service": "http://a" },
            { "hostname": "*.example.com", "service": "http://b" },
        ],
    })))
    .unwrap();
    let config = object(json!({
        "ingress": [
            { "id": "1", "hostname": "a.example.com", "path": "", "service": "http://a", "originRequest": {} },
            { "id": "2", "hostname": "*.example.com", "service": "http://b", "originRequest": null },
            { "service": "http_status:404" },
        ],
        "originRequest": { "bastionMode": false }, "warp-routing": { "enabled": true },
    }));
    assert_eq!(differs(&wanted, &config), Vec::<String>::new());
    let mut turned = config.clone();
    turned["ingress"].as_array_mut().unwrap().swap(0, 1);
    assert_eq!(differs(&wanted, &turned), ["ingress"]);
}

#[test]
fn what_a_spec_cannot_name_stays_and_what_it_no_longer_names_goes() {
    let wanted = document::wanted(&spec(json!({
        "tunnelRef": { "name": "edge" }, "ingress": [], "originRequest": { "tlsTimeout": "10s" },
    })))
    .unwrap();
    let standing = json!({
        "ingress": [{ "service": "hello_world" }],
        "originRequest": { "connectTimeout": 5, "bastionMode": true },
        "warp-routing": { "enabled": true },
        "ha-connections": 4,
    });
    assert_eq!(
        differs(&wanted, &object(standing.clone())),
        ["ingress", "originRequest.connectTimeout", "originRequest.tlsTimeout"]
    );
    let stored = stored(standing, &wanted);
    assert_eq!(
        Value::Object(stored.clone()),
        json!({
            "ingress": [{ "service": "http_status:404" }],
            "originRequest": { "tlsTimeout": 10, "bastionMode": true },
            "warp-routing": { "enabled": true },
            "ha-connections": 4,
        })
    );
    assert_eq!(differs(&wanted, &stored), Vec::<String>::new());
}

#[test]
fn numbers_are_equal_in_every_form() {
    let wanted = document::wanted(&spec(json!({
        "tunnelRef": { "name": "edge" },
        "ingress": [{ "hostname": "a.example.com", "service": "http://a", "originRequest": { "tcpKeepAlive": "30s" } }],
    })))
    .unwrap();
    let config = object(json!({ "ingress": [
        { "hostname": "a.example.com", "service": "http://a", "originRequest": { "tcpKeepAlive": 30.0 } },
        { "service": "http_status:404" },
    ] }));
    assert_eq!(differs(&wanted, &config), Vec::<String>::new());
}

#[test]
fn durations_that_are_none_are_refused_by_their_path() {
    let refused = |text: &str| {
        document::wanted(&spec(json!({
            "tunnelRef": { "name": "edge" },
            "ingress": [{ "hostname": "a.example.com", "service": "http://a", "originRequest": { "connectTimeout": text } }],
        })))
        .unwrap_err()
        .to_string()
    };
    for text in ["often", "1500ms", "-5s"] {
        let message = refused(text);
        assert!(
            message.starts_with("spec.ingress[0].originRequest.connectTimeout") && message.contains(text),
            "{message}"
        );
    }
}

#[test]
fn what_a_deletion_leaves_is_bare_and_nothing_else_is() {
    let is_bare = |config: Value| document::is_bare(&document::canonical(&object(config)));
    assert!(is_bare(Value::Object(document::bare())));
    assert!(is_bare(
        json!({ "ingress": [{ "service": "http_status:404" }], "warp-routing": { "enabled": false } })
    ));
    for config in [
        json!({ "ingress": [{ "service": "http_status:503" }] }),
        json!({ "ingress": [{ "service": "http_status:404" }], "warp-routing": { "enabled": true } }),
        json!({ "ingress": [{ "service": "http_status:404" }], "originRequest": { "noTLSVerify": true } }),
        json!({ "ingress": [{ "hostname": "a.example.com", "service": "http://a" }, { "service": "http_status:404" }] }),
    ] {
        assert!(!is_bare(config.clone()), "{config}");
    }
}

fn request() -> impl Strategy<Value = OriginRequest> {
    let seconds = || proptest::option::of((0u32..10_000).prop_map(|it| format!("{}m{}s", it / 60, it % 60)));
    let switch = || proptest::option::of(any::<bool>());
    let text = || proptest::option::of("[a-z]{1,8}");
    let access =
        (switch(), text(), proptest::collection::vec("[a-f0-9]{8}", 0..3)).prop_map(|(required, team, tags)| Access {
            required,
            team_name: team,
            aud_tag: tags,
        });
    let proxy = proptest::sample::select(vec![ProxyType::Regular, ProxyType::Socks]);
    (
        (text(), text(), text(), switch(), switch(), switch(), switch(), switch()),
        (seconds(), seconds(), seconds(), seconds()),
        proptest::option::of(0..1000i32),
        proptest::option::of(proxy),
        proptest::option::of(access),
    )
        .prop_map(|(flags, times, connections, proxy_type, access)| OriginRequest {
            http_host_header: flags.0,
            origin_server_name: flags.1,
            ca_pool: flags.2,
            no_tls_verify: flags.3,
            match_sni_to_host: flags.4,
            http2_origin: flags.5,
            disable_chunked_encoding: flags.6,
            no_happy_eyeballs: flags.7,
            connect_timeout: times.0,
            tls_timeout: times.1,
            tcp_keep_alive: times.2,
            keep_alive_timeout: times.3,
            keep_alive_connections: connections,
            proxy_type,
            access,
        })
}

proptest! {
    /// What was written, read back, needs no further change; whatever stood there before.
    #[test]
    fn what_was_written_needs_no_change(
        top in proptest::option::of(request()),
        rules in proptest::collection::vec(("[a-z]{1,8}[.]example[.]com", proptest::option::of("/[a-z]{0,5}"), proptest::option::of(request())), 0..4),
        before in proptest::option::of(request()),
        routing in proptest::option::of(any::<bool>()),
    ) {
        let spec = |rules: &[(String, Option<String>, Option<OriginRequest>)], top: Option<OriginRequest>| TunnelConfigurationSpec {
            ingress: rules.iter().map(|(hostname, path, request)| kflare_api::tunnel_configuration::IngressRule {
                hostname: hostname.clone(),
                path: path.clone(),
                service: "http://web:80".to_owned(),
                origin_request: request.clone(),
            }).collect(),
            origin_request: top,
            warp_routing: routing.map(|enabled| WarpRouting { enabled }),
            ..TunnelConfigurationSpec::default()
        };
        let earlier = stored(json!({}), &document::wanted(&spec(&[], before)).unwrap());
        let wanted = document::wanted(&spec(&rules, top)).unwrap();
        let stored = stored(Value::Object(earlier), &wanted);
        prop_assert_eq!(differs(&wanted, &stored), Vec::<String>::new());
    }
}
