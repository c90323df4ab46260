use super::*;
use serde_json::json;

fn spec(data: &Value) -> BTreeMap<String, Value> {
    data.as_object().unwrap().clone().into_iter().collect()
}

fn wanted(record_type: RecordType, data: &Value) -> Value {
    Value::Object(canonical(record_type, &spec(data)).unwrap())
}

fn remote(record_type: RecordType, data: &Value) -> Value {
    Value::Object(canonical_remote(record_type, data.as_object().unwrap()))
}

fn refusal(record_type: RecordType, data: &Value) -> String {
    canonical(record_type, &spec(data)).unwrap_err().to_string()
}

// Field case 10: CAA text form, data form, number or string.
#[test]
fn caa_flags_in_another_json_type_are_no_difference() {
    let caa = wanted(
        RecordType::Caa,
        &json!({"flags": 0, "tag": "issue", "value": "ca.example.net"}),
    );
    for flags in [json!(0), json!(0.0), json!("0")] {
        let answer = json!({"flags": flags, "tag": "issue", "value": "ca.example.net"});
        assert_eq!(remote(RecordType::Caa, &answer), caa, "{flags}");
        assert_eq!(wanted(RecordType::Caa, &answer), caa, "{flags}");
    }
}

// Field case 7: the careless fix lower-cases everything.
#[test]
fn the_value_of_caa_keeps_its_case_and_the_tag_has_none() {
    let data = json!({"flags": 128, "tag": "Issue", "value": "CA.Example.net; AccountUri=X"});
    assert_eq!(
        wanted(RecordType::Caa, &data),
        json!({"flags": 128, "tag": "issue", "value": "CA.Example.net; AccountUri=X"})
    );
}

// Field case 4: trailing dot on a target.
#[test]
fn targets_inside_data_lose_their_final_dot_and_case() {
    let srv = json!({"priority": 1, "weight": 2, "port": "5060", "target": "Sip.Example.NET."});
    assert_eq!(
        wanted(RecordType::Srv, &srv),
        json!({"priority": 1, "weight": 2, "port": 5060, "target": "sip.example.net"})
    );
    assert_eq!(
        wanted(RecordType::Https, &json!({"priority": 0, "target": "foo."}))["target"],
        "foo"
    );
    assert_eq!(
        wanted(RecordType::Https, &json!({"priority": 1, "target": "."}))["target"],
        "."
    );
    let naptr = json!({"order": 1, "preference": 2, "replacement": "."});
    assert_eq!(
        wanted(RecordType::Naptr, &naptr),
        json!({"order": 1, "preference": 2, "flags": "", "service": "", "regex": "", "replacement": "."})
    );
}

// Field case 13: HTTPS/SVCB parameters.
#[test]
fn service_parameters_compare_as_parameters() {
    let written = json!({"priority": 1, "target": ".", "value": "ipv4hint=192.0.2.1 alpn=h2,h3"});
    let answer = json!({"priority": 1, "target": ".", "value": "alpn=\"h2,h3\" ipv4hint=\"192.0.2.1\""});
    for record_type in [RecordType::Https, RecordType::Svcb] {
        assert_eq!(wanted(record_type, &written), remote(record_type, &answer));
    }
    assert_eq!(
        refusal(
            RecordType::Https,
            &json!({"priority": 1, "target": ".", "value": "alpn=h2 alpn=h3"})
        ),
        "spec.data.value: alpn is given twice"
    );
}

#[test]
fn digests_and_keys_compare_without_case_or_spaces() {
    let digest = |text: &str| json!({"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": text});
    assert_eq!(
        wanted(RecordType::Ds, &digest("AB CD")),
        remote(RecordType::Ds, &digest("abcd"))
    );
    for record_type in [RecordType::Tlsa, RecordType::Smimea] {
        let data = |text: &str| json!({"usage": 3, "selector": 1, "matching_type": 1, "certificate": text});
        assert_eq!(wanted(record_type, &data("0F")), remote(record_type, &data("0f")));
    }
    let print = |text: &str| json!({"algorithm": 4, "type": 2, "fingerprint": text});
    assert_eq!(
        wanted(RecordType::Sshfp, &print("AA")),
        remote(RecordType::Sshfp, &print("aa"))
    );
    let cert = |text: &str| json!({"type": 9, "key_tag": 1, "algorithm": 8, "certificate": text});
    assert_eq!(
        wanted(RecordType::Cert, &cert("AbCd\n EfGh")),
        remote(RecordType::Cert, &cert("AbCdEfGh"))
    );
    assert_ne!(
        wanted(RecordType::Cert, &cert("AbCd")),
        remote(RecordType::Cert, &cert("abcd"))
    );
    let key = json!({"flags": 257, "protocol": 3, "algorithm": 13, "public_key": "AbC="});
    assert_eq!(wanted(RecordType::Dnskey, &key), key);
}

#[test]
fn a_location_has_minutes_seconds_and_sizes_of_zero_unless_given() {
    let short = json!({"lat_degrees": 37, "lat_direction": "n", "long_degrees": 122, "long_direction": "W"});
    let full = json!({
        "lat_degrees": 37.0, "lat_minutes": 0, "lat_seconds": "0.000", "lat_direction": "N",
        "long_degrees": 122, "long_minutes": 0, "long_seconds": 0.0, "long_direction": "W",
        "altitude": 0, "size": 0.0, "precision_horz": 0, "precision_vert": 0,
    });
    assert_eq!(wanted(RecordType::Loc, &short), remote(RecordType::Loc, &full));
    let seconds = |value: Value| {
        let mut data = full.clone();
        data["lat_seconds"] = value;
        data
    };
    assert_eq!(
        wanted(RecordType::Loc, &seconds(json!("46.5")))["lat_seconds"],
        json!(46.5)
    );
    assert_eq!(
        refusal(RecordType::Loc, &seconds(json!(60))),
        "spec.data.lat_seconds must be a number from 0 to 59.999"
    );
}

#[test]
fn fields_may_be_written_in_camel_case_but_not_twice() {
    let snake = json!({"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab"});
    let camel = json!({"keyTag": 1, "algorithm": 13, "digestType": 2, "digest": "ab"});
    assert_eq!(wanted(RecordType::Ds, &camel), snake);
    let both = json!({"keyTag": 1, "key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab"});
    assert_eq!(
        refusal(RecordType::Ds, &both),
        "spec.data.key_tag is given twice, in snake_case and in camelCase"
    );
    let null = json!({"keyTag": null, "key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab"});
    assert_eq!(wanted(RecordType::Ds, &null), snake);
}

#[test]
fn wrong_fields_are_named_with_the_right_ones() {
    assert_eq!(
        refusal(
            RecordType::Caa,
            &json!({"flags": 0, "tag": "issue", "valeu": "ca.example.net"})
        ),
        "spec.data.valeu is no field of a CAA record, which has flags, tag, value"
    );
    assert_eq!(
        refusal(
            RecordType::Srv,
            &json!({"weight": 1, "port": 1, "target": "a.example.net"})
        ),
        "spec.data.priority is missing: a SRV record has priority, weight, port, target"
    );
    assert_eq!(
        refusal(RecordType::Caa, &json!({"flags": 256, "tag": "issue", "value": "x"})),
        "spec.data.flags must be a whole number from 0 to 255"
    );
    // YAML reads an unquoted digest of digits as a number, and has lost its leading zeros by then.
    assert_eq!(
        refusal(
            RecordType::Sshfp,
            &json!({"algorithm": 4, "type": 2, "fingerprint": 1234})
        ),
        "spec.data.fingerprint must be text: put it in quotes"
    );
    assert_eq!(
        refusal(
            RecordType::Loc,
            &json!({"lat_degrees": 1, "lat_direction": "E", "long_degrees": 1, "long_direction": "E"})
        ),
        "spec.data.lat_direction must be N or S"
    );
    assert_eq!(
        refusal(
            RecordType::Srv,
            &json!({"priority": 1, "weight": 1, "port": 1, "target": "a b"})
        ),
        "spec.data.target: \"a b\" contains ' ', which a name cannot have"
    );
    assert_eq!(
        refusal(RecordType::A, &json!({"address": "192.0.2.1"})),
        "spec.data.address is no field of a A record, which has no data, but content"
    );
}

#[test]
fn an_answer_that_does_not_read_shows_as_a_difference_and_extra_fields_do_not() {
    let srv = json!({"priority": 1, "weight": 2, "port": 3, "target": "a.example.net"});
    let mut answer = srv.clone();
    answer["service"] = json!("_sip");
    answer["proto"] = json!("_tcp");
    answer["name"] = json!("example.com");
    assert_eq!(remote(RecordType::Srv, &answer), wanted(RecordType::Srv, &srv));
    answer["port"] = json!("many");
    assert_eq!(remote(RecordType::Srv, &answer)["port"], "many");
    answer["port"] = json!(null);
    assert_eq!(remote(RecordType::Srv, &answer).get("port"), None);
}
