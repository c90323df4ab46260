//! The law of normalisation, for records made at random.

use kflare_engine::plan::diff;
use proptest::prelude::*;

use super::{
    echo::{Echo, echo},
    tests::{ZONE, spec, with_content},
    *,
};
use crate::{
    dns::fields::{self, FieldKind},
    dns_record::FIELDS,
};

fn any_echo() -> impl Strategy<Value = Echo> {
    (0..2usize, 0..4usize, 0..3usize, 0..3usize, 0..2usize).prop_map(|(txt, settings, nothing, numbers, spelling)| {
        Echo {
            txt,
            settings,
            nothing,
            numbers,
            spelling,
        }
    })
}

fn any_host() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_]{1,10}(\\.[a-zA-Z0-9ü]{1,10}){1,2}\\.?"
}

fn any_field(kind: FieldKind) -> BoxedStrategy<Value> {
    match kind {
        FieldKind::Whole(max) => prop_oneof![
            (0..=max).prop_map(|it| json!(it)),
            (0..=max).prop_map(|it| json!(it.to_string())),
            (0..=max).prop_map(|it| json!(f64::from(it))),
        ]
        .boxed(),
        FieldKind::Decimal(min, max) => (min..=max).prop_map(|it| json!(it)).boxed(),
        FieldKind::Text => "[ -~é]{0,20}".prop_map(|it| json!(it)).boxed(),
        FieldKind::Word => "[a-zA-Z]{1,10}".prop_map(|it| json!(it)).boxed(),
        FieldKind::Letter(letters) => proptest::sample::select(letters)
            .prop_map(|it| json!(it.to_lowercase()))
            .boxed(),
        FieldKind::Host => prop_oneof![any_host(), Just(".".to_owned())]
            .prop_map(|it| json!(it))
            .boxed(),
        FieldKind::Hex => "([0-9a-fA-F]{2} ?){1,20}".prop_map(|it| json!(it)).boxed(),
        FieldKind::Base64 => "([0-9a-zA-Z+/]{4}\n?){1,10}".prop_map(|it| json!(it)).boxed(),
        FieldKind::Params => prop_oneof![
            Just(String::new()),
            Just("alpn=h2,h3 ipv6hint=2001:DB8:0::1 ipv4hint=192.0.2.1".to_owned()),
            Just("no-default-alpn alpn=\"h3\" port=8443".to_owned()),
            "key6[0-9]{4}=[a-zA-Z0-9]{1,8}",
        ]
        .prop_map(|it| json!(it))
        .boxed(),
    }
}

fn any_value(record_type: RecordType) -> BoxedStrategy<DNSRecordSpec> {
    if record_type.is_data() {
        let fields: Vec<_> = fields::of(record_type)
            .iter()
            .map(|it| any_field(it.kind).prop_map(|value| (it.name.to_owned(), value)))
            .collect();
        return fields
            .prop_map(move |it| DNSRecordSpec {
                data: Some(it.into_iter().collect()),
                ..spec(record_type, "x")
            })
            .boxed();
    }
    let content: BoxedStrategy<String> = match record_type {
        RecordType::A => any::<std::net::Ipv4Addr>().prop_map(|it| it.to_string()).boxed(),
        RecordType::Aaaa => any::<[u16; 8]>()
            .prop_map(|it| it.map(|part| format!("{part:04X}")).join(":"))
            .boxed(),
        RecordType::Txt => prop_oneof![
            "[a-zA-Z0-9=; \\\\é]{1,40}",
            "\"[a-zA-Z0-9=; ]{0,300}\" \"[a-z]{0,9}\"",
            "a{600}"
        ]
        .boxed(),
        RecordType::Openpgpkey => "([0-9a-zA-Z+/]{4}\n?){1,20}".boxed(),
        _ => any_host().boxed(),
    };
    content.prop_map(move |it| with_content(record_type, "x", &it)).boxed()
}

fn any_spec() -> impl Strategy<Value = DNSRecordSpec> {
    let setting = || proptest::option::of(any::<bool>());
    let others = (
        proptest::option::of(prop_oneof![Just(1), 30..=86_400i32]),
        proptest::option::of(any::<bool>()),
        proptest::option::of(any::<u16>()),
        proptest::option::of("[a-zA-Z ]{0,30}"),
        proptest::collection::vec("[a-zA-Z]{1,5}:[a-zA-Z ]{0,5}", 0..4),
        proptest::option::of((setting(), setting(), setting())),
        prop_oneof![
            "[a-zA-Z0-9_-]{1,12}",
            Just("@".to_owned()),
            Just("*".to_owned()),
            Just("B\u{fc}cher.Example.com.".to_owned())
        ],
    );
    (
        proptest::sample::select(RecordType::ALL).prop_flat_map(any_value),
        others,
    )
        .prop_map(
            |(value, (ttl, proxied, priority, comment, tags, settings, name))| DNSRecordSpec {
                name,
                ttl,
                proxied: proxied.filter(|it| !it || value.record_type.is_proxiable()),
                priority,
                comment,
                tags,
                settings: settings.map(|(flatten_cname, ipv4_only, ipv6_only)| RecordSettings {
                    flatten_cname,
                    ipv4_only,
                    ipv6_only,
                }),
                ..value
            },
        )
}

proptest! {
    /// The law: what was written, read back in whatever form Cloudflare chooses, needs no further change.
    #[test]
    fn what_was_written_needs_no_change_when_read_back(spec in any_spec(), how in any_echo()) {
        let Ok(wanted) = Wanted::from_spec(&spec, ZONE, None) else {
            // Labels made of Unicode at random may be none; everything else must be accepted.
            return Err(TestCaseError::reject("not a name"));
        };
        let body = wanted.body();
        let answer = echo(&request_body(body.clone(), &body, |_| false), how);
        let mut there = canonical_remote(&answer);
        prop_assert_eq!(diff(&body, &there, FIELDS), vec![]);
        prop_assert_eq!(member(&there), member(&body));
        let mut again = canonical_remote(&Value::Object(there.clone()));
        // The canonical spelling is cut in the usual way.
        there.remove(STRINGS);
        again.remove(STRINGS);
        prop_assert_eq!(again, there);
    }
}
