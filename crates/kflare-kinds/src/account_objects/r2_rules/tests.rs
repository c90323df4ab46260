use serde_json::{Value, json};

use super::*;

#[allow(
    clippy::needless_pass_by_value,
    reason = "values are made where they are handed over"
)]
fn spec(rules: Value) -> R2BucketSpec {
    let mut spec = json!({ "accountRef": { "name": "a" }, "name": "assets" });
    spec.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn asked(rules: Value) -> Map<String, Value> {
    desired(&spec(rules)).unwrap()
}

fn there(cors: Value, lifecycle: Value) -> Map<String, Value> {
    let lifecycle: Vec<Value> = serde_json::from_value(lifecycle).unwrap();
    present_rules(serde_json::from_value(cors).unwrap(), &lifecycle)
}

// Field case 89.
#[test]
fn the_flat_form_is_nested_on_the_wire_and_its_lists_are_sets() {
    let asked = asked(json!({ "cors": [{
        "allowedOrigins": ["https://map.example.com"], "allowedMethods": ["HEAD", "GET"],
        "allowedHeaders": ["Range"], "exposeHeaders": ["etag"], "maxAgeSeconds": 3600,
    }] }));
    assert_eq!(
        asked[CORS],
        json!([{
            "allowed": { "origins": ["https://map.example.com"], "methods": ["GET", "HEAD"], "headers": ["range"] },
            "exposeHeaders": ["etag"], "maxAgeSeconds": 3600,
        }])
    );
    let seen = json!([{
        "id": "given-by-somebody", "maxAgeSeconds": 3600.0, "exposeHeaders": ["ETag"],
        "allowed": { "methods": ["HEAD", "GET", "GET"], "origins": ["https://map.example.com"], "headers": ["RANGE"] },
    }]);
    assert_eq!(there(seen, json!([]))[CORS], asked[CORS]);
    assert_eq!(there(json!([]), json!([]))[CORS], json!([]));
}

#[test]
fn rules_that_the_spec_does_not_mention_are_not_ours() {
    assert_eq!(asked(json!({})), Map::new());
    let none = asked(json!({ "cors": [], "lifecycle": [] }));
    assert_eq!(
        none,
        Map::from_iter([(CORS.to_owned(), json!([])), (LIFECYCLE.to_owned(), json!([]))])
    );
}

fn default_rule() -> Value {
    json!({
        "id": DEFAULT_ID, "enabled": true, "conditions": {},
        "abortMultipartUploadsTransition": { "condition": { "type": "Age", "maxAge": 604_800 } },
    })
}

// Field case 92.
#[test]
fn ages_are_seconds_and_empty_parts_are_nothing() {
    let asked = asked(json!({ "lifecycle": [
        { "id": "z", "deleteOn": "2027-01-31", "enabled": false },
        { "id": "logs", "prefix": "logs/", "deleteAfter": "30d", "infrequentAccessAfter": "12h" },
    ] }));
    let logs = json!({
        "id": "logs", "enabled": true, "conditions": { "prefix": "logs/" },
        "deleteObjectsTransition": { "condition": { "type": "Age", "maxAge": 2_592_000 } },
        "storageClassTransitions": [
            { "condition": { "type": "Age", "maxAge": 43_200 }, "storageClass": "InfrequentAccess" },
        ],
    });
    let end = json!({
        "id": "z", "enabled": false, "conditions": { "prefix": "" },
        "deleteObjectsTransition": { "condition": { "type": "Date", "date": "2027-01-31T00:00:00Z" } },
    });
    assert_eq!(asked[LIFECYCLE], json!([logs, end]));
    assert_eq!(asked.get(DEFAULT_LIFECYCLE), None);
    let mut padded = logs.clone();
    padded["abortMultipartUploadsTransition"] = json!({});
    padded["deleteObjectsTransition"]["condition"]["maxAge"] = json!(2_592_000.0);
    let mut other = end.clone();
    other["storageClassTransitions"] = json!([]);
    other["conditions"] = json!({});
    other["deleteObjectsTransition"]["condition"]["date"] = json!("2027-01-31T00:00:00.000Z");
    let seen = there(json!([]), json!([other, default_rule(), padded]));
    assert_eq!(seen[LIFECYCLE], asked[LIFECYCLE]);
}

#[test]
fn the_rule_of_new_buckets_is_ours_only_when_the_spec_has_it() {
    let seen = there(json!([]), json!([default_rule()]));
    assert_eq!(seen[LIFECYCLE], json!([]));
    assert_eq!(seen[DEFAULT_LIFECYCLE].as_array().map(Vec::len), Some(1));
    let asked = asked(json!({ "lifecycle": [{ "id": DEFAULT_ID, "abortMultipartUploadsAfter": "7d" }] }));
    assert_eq!(asked[DEFAULT_LIFECYCLE], seen[DEFAULT_LIFECYCLE]);
    assert_eq!(asked[LIFECYCLE], json!([]));
}

#[test]
fn a_day_that_does_not_exist_is_named() {
    let error = desired(&spec(json!({ "lifecycle": [
        { "id": "a", "deleteAfter": "1d" }, { "id": "b", "infrequentAccessOn": "2027-02-30" },
    ] })))
    .unwrap_err();
    assert_eq!(error.field, "spec.lifecycle[1].infrequentAccessOn");
    assert!(error.message.contains("2027-02-30"), "{error}");
    for (text, wanted) in [
        ("90s", Some(90)),
        ("2m", Some(120)),
        ("999999999d", Some(86_399_999_913_600)),
        ("", None),
        ("d", None),
        ("3w", None),
        ("1ü", None),
    ] {
        assert_eq!(seconds(text), wanted, "{text}");
    }
}
