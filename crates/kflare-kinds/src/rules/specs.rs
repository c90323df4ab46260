//! Specs of every rule kind, made at random.

use kflare_engine::object::ObjectKey;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::{
    RuleKind, cache::Cache, configuration::Configuration, managed_ruleset::Managed, origin::Origin,
    rate_limit::RateLimit, redirect::Redirect, rule, transform::Transform, waf_custom::WafCustom,
};

/// A spec, as what it asks for in canonical form.
pub fn any_body() -> impl Strategy<Value = Map<String, Value>> {
    prop_oneof![
        waf_custom().prop_map(body::<WafCustom>),
        rate_limit().prop_map(body::<RateLimit>),
        managed_ruleset().prop_map(body::<Managed>),
        transform().prop_map(body::<Transform>),
        redirect().prop_map(body::<Redirect>),
        cache().prop_map(body::<Cache>),
        configuration().prop_map(body::<Configuration>),
        origin().prop_map(body::<Origin>),
    ]
}

/// What a spec asks for, in canonical form.
pub fn body<K: RuleKind>(spec: Value) -> Map<String, Value> {
    let spec: K::Spec = serde_json::from_value(spec).unwrap();
    let base = K::base(&spec);
    rule::body(
        &rule::mark(&ObjectKey::new(K::KIND, Some("web"), "a")),
        K::expression(&spec),
        base.description.as_deref(),
        base.enabled,
        &K::action(&spec),
    )
}

type Field = (&'static str, BoxedStrategy<Option<Value>>);

fn must(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Field {
    (name, value.prop_map(Some).boxed())
}

fn may(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Field {
    (name, option::of(value).boxed())
}

fn object(fields: Vec<Field>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let joined = values.prop_map(move |values| {
        let fields = names.iter().zip(values);
        fields
            .filter_map(|(name, value)| Some(((*name).to_owned(), value?)))
            .collect::<Map<_, _>>()
            .into()
    });
    joined.boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn number(least: i32, most: i32) -> BoxedStrategy<Value> {
    (least..=most).prop_map(Value::from).boxed()
}

fn text() -> BoxedStrategy<Value> {
    "[ -~é]{1,20}".prop_map(Value::from).boxed()
}

fn word(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(Value::from).boxed()
}

fn words(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    proptest::sample::subsequence(words, 0..=words.len())
        .prop_shuffle()
        .prop_map(|it| json!(it))
        .boxed()
}

fn id() -> BoxedStrategy<Value> {
    "[0-9a-f]{32}".prop_map(Value::from).boxed()
}

fn expression() -> BoxedStrategy<Value> {
    const ALL: [&str; 4] = [
        "true",
        "ip.src in $office",
        " http.host eq \"a\" \n",
        "lower(http.host)",
    ];
    select(&ALL[..]).prop_map(Value::from).boxed()
}

/// The fields that every rule has, with those of a kind.
fn rule_with(more: Vec<Field>) -> BoxedStrategy<Value> {
    let mut fields = vec![
        must("zoneRef", Just(json!({ "name": "example" }))),
        may("priority", number(-5, 5)),
        may("description", prop_oneof![text(), Just(json!(""))]),
        may("enabled", flag()),
        must("expression", expression()),
    ];
    fields.extend(more);
    object(fields)
}

fn value_or_expression() -> BoxedStrategy<Value> {
    prop_oneof![
        text().prop_map(|it| json!({ "value": it })),
        expression().prop_map(|it| json!({ "expression": it })),
    ]
    .boxed()
}

fn response() -> BoxedStrategy<Value> {
    object(vec![
        must("statusCode", number(400, 499)),
        must("contentType", text()),
        must("content", text()),
    ])
}

fn waf_custom() -> impl Strategy<Value = Value> {
    let skip = object(vec![
        may("ruleset", Just(json!("current"))),
        may(
            "phases",
            words(&["http_ratelimit", "http_request_sbfm", "http_request_firewall_managed"]),
        ),
        may("products", words(&["waf", "bic", "hot", "uaBlock", "zoneLockdown"])),
    ]);
    prop_oneof![
        rule_with(vec![
            must("action", Just(json!("block"))),
            may("actionParameters", object(vec![may("response", response())])),
        ]),
        rule_with(vec![
            must("action", Just(json!("skip"))),
            must("actionParameters", skip),
            may("logging", object(vec![must("enabled", flag())])),
        ]),
        rule_with(vec![must(
            "action",
            word(&["challenge", "js_challenge", "managed_challenge", "log"])
        )]),
    ]
}

fn rate_limit() -> impl Strategy<Value = Value> {
    let counted = object(vec![
        must(
            "characteristics",
            words(&["cf.colo.id", "ip.src", "cf.unique_visitor_id"]),
        ),
        must("period", number(10, 3600)),
        may("requestsPerPeriod", number(1, 1000)),
        may("mitigationTimeout", number(0, 3600)),
        may("countingExpression", expression()),
        may("requestsToOrigin", flag()),
        may("scorePerPeriod", number(1, 100)),
        may("scoreResponseHeaderName", text()),
    ]);
    rule_with(vec![
        must("action", word(&["block", "log"])),
        may("actionParameters", object(vec![may("response", response())])),
        must("ratelimit", counted),
    ])
}

fn managed_ruleset() -> impl Strategy<Value = Value> {
    let overridden = || {
        vec![
            may("action", word(&["block", "log", "managed_challenge"])),
            may("enabled", flag()),
            may("sensitivityLevel", word(&["default", "medium", "low", "eoff"])),
        ]
    };
    let with = |mut fields: Vec<Field>, more: Vec<Field>| {
        fields.extend(more);
        object(fields)
    };
    let category = with(overridden(), vec![must("category", text())]);
    let rule = with(
        overridden(),
        vec![must("id", id()), may("scoreThreshold", number(0, 100))],
    );
    let overrides = with(
        overridden(),
        vec![
            may("categories", vec(category, 0..4).prop_map(Value::from)),
            may("rules", vec(rule, 0..4).prop_map(Value::from)),
        ],
    );
    rule_with(vec![must("rulesetID", id()), may("overrides", overrides)])
}

fn transform() -> impl Strategy<Value = Value> {
    let query = prop_oneof![value_or_expression(), Just(json!({ "value": "" }))];
    let header = prop_oneof![
        Just(json!({ "operation": "remove" })),
        text().prop_map(|it| json!({ "operation": "set", "value": it })),
        expression().prop_map(|it| json!({ "operation": "add", "expression": it })),
    ];
    let headers = proptest::collection::btree_map("[A-Z][a-z]{1,5}-[a-z]{1,5}", header, 1..4);
    prop_oneof![
        rule_with(vec![
            must("type", Just(json!("urlRewrite"))),
            must(
                "uri",
                object(vec![may("path", value_or_expression()), may("query", query)]),
            ),
        ]),
        rule_with(vec![
            must("type", word(&["requestHeaders", "responseHeaders"])),
            must("headers", headers.prop_map(|it| json!(it))),
        ]),
    ]
}

fn redirect() -> impl Strategy<Value = Value> {
    let target = object(vec![
        must("targetURL", value_or_expression()),
        may(
            "statusCode",
            select(&[301, 302, 303, 307, 308][..]).prop_map(Value::from),
        ),
        may("preserveQueryString", flag()),
    ]);
    rule_with(vec![must("fromValue", target)])
}

fn cache() -> impl Strategy<Value = Value> {
    let by_status = prop_oneof![
        (100..599, -1..99).prop_map(|(status, value)| json!({ "statusCode": status, "value": value })),
        (100..599, 0..99).prop_map(|(from, value)| json!({ "statusCodeRange": { "from": from }, "value": value })),
    ];
    let edge = object(vec![
        must(
            "mode",
            word(&["respect_origin", "bypass_by_default", "override_origin"]),
        ),
        may("default", number(0, 99)),
        may("statusCodeTTL", vec(by_status, 0..3).prop_map(Value::from)),
    ]);
    let parameters = prop_oneof![
        Just(json!({ "all": true })),
        Just(json!({ "list": ["b", "a"] })),
        Just(json!({ "list": ["page"] })),
    ];
    let names = || words(&["x-a", "x-b", "x-c"]);
    let key = object(vec![
        may(
            "queryString",
            prop_oneof![
                parameters.clone().prop_map(|it| json!({ "include": it })),
                parameters.prop_map(|it| json!({ "exclude": it })),
            ],
        ),
        may(
            "header",
            object(vec![
                may("include", names()),
                may("checkPresence", names()),
                may("excludeOrigin", flag()),
            ]),
        ),
        may(
            "cookie",
            object(vec![may("include", names()), may("checkPresence", names())]),
        ),
        may(
            "user",
            object(vec![may("deviceType", flag()), may("geo", flag()), may("lang", flag())]),
        ),
        may("host", object(vec![may("resolved", flag())])),
    ]);
    let vary = object(vec![
        may("default", object(vec![must("action", word(&["bypass", "normalize"]))])),
        may(
            "headers",
            prop_oneof![
                Just(json!({})),
                Just(json!({ "accept": { "action": "normalize", "mediaTypes": ["image/webp"] } })),
                Just(
                    json!({ "accept-language": { "action": "normalize", "languages": ["fr", "en"] }, "x": { "action": "bypass" } })
                ),
            ],
        ),
    ]);
    rule_with(vec![
        may("cache", flag()),
        may("edgeTTL", edge),
        may(
            "browserTTL",
            object(vec![
                must("mode", word(&["bypass", "override_origin"])),
                may("default", number(0, 99)),
            ]),
        ),
        may(
            "cacheKey",
            object(vec![
                may("cacheByDeviceType", flag()),
                may("cacheDeceptionArmor", flag()),
                may("ignoreQueryStringsOrder", flag()),
                may("customKey", key),
            ]),
        ),
        may("vary", vary),
        may("serveStale", object(vec![must("disableStaleWhileUpdating", flag())])),
        may("respectStrongETags", flag()),
        may("originErrorPagePassthru", flag()),
        may("originCacheControl", flag()),
        may(
            "additionalCacheablePorts",
            proptest::sample::subsequence(vec![8443, 8080, 2096], 0..=3)
                .prop_shuffle()
                .prop_map(|it| json!(it)),
        ),
        may(
            "cacheReserve",
            object(vec![must("eligible", flag()), may("minimumFileSize", number(0, 99))]),
        ),
    ])
}

fn configuration() -> impl Strategy<Value = Value> {
    let settings = object(vec![
        may("ssl", word(&["off", "flexible", "full", "strict", "origin_pull"])),
        may("securityLevel", word(&["off", "essentially_off", "under_attack"])),
        may("rocketLoader", flag()),
        may("polish", word(&["off", "lossless", "lossy", "webp"])),
        may("browserIntegrityCheck", flag()),
        may("automaticHTTPSRewrites", flag()),
        may("emailObfuscation", flag()),
        may("fonts", flag()),
        may("hotlinkProtection", flag()),
        may("opportunisticEncryption", flag()),
        may("disableRUM", Just(json!(true))),
        may("disableZaraz", Just(json!(true))),
        may("requestBodyBuffering", word(&["none", "standard", "full"])),
        may("responseBodyBuffering", word(&["none", "standard"])),
    ]);
    rule_with(vec![must("settings", settings)])
}

fn origin() -> impl Strategy<Value = Value> {
    rule_with(vec![
        may(
            "origin",
            object(vec![may("port", number(1, 65535)), may("host", text())]),
        ),
        may("hostHeader", text()),
        may("sni", text()),
    ])
}
