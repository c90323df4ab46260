//! Schema: every case of the CEL rules against a real API server, defaults, and nulls.

use std::path::Path;

use kflare_api::names;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::tenant::ZONE;
use crate::harness::{Kind, Tenant, scenario};

#[derive(Deserialize)]
struct Case {
    name: String,
    kind: String,
    object: Option<Value>,
    change: Option<Change>,
    expect: Expect,
}

#[derive(Deserialize)]
struct Change {
    from: Value,
    to: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Expect {
    Accepted,
    Refused(String),
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kflare-api/cel-cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    let read = |path| serde_saphyr::from_str::<Vec<Case>>(&std::fs::read_to_string(path).unwrap()).unwrap();
    files.iter().flat_map(read).collect()
}

/// What became of a case: `None` when accepted, else the refusal.
async fn outcome(tenant: &Tenant<'_>, number: usize, case: &Case) -> Option<String> {
    let kind = Kind::named(&case.kind);
    let name = format!("case-{number}-{}", tenant.home());
    let api = tenant.api(kind);
    let mut object = DynamicObject::new(&name, &kind.resource());
    // They are about the schema: kflare leaves them alone.
    let paused = (names::PAUSED.to_owned(), "true".to_owned());
    object.metadata.annotations = Some([paused].into());
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let result = match (&case.object, &case.change) {
        (Some(spec), None) => api.create(&dry, &object.data(json!({ "spec": spec }))).await,
        (None, Some(change)) => {
            let object = object.data(json!({ "spec": change.from }));
            api.create(&PostParams::default(), &object).await.unwrap();
            let patch = json!([{ "op": "replace", "path": "/spec", "value": change.to }]);
            let patch: kube::api::Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
            let params = PatchParams {
                dry_run: true,
                ..PatchParams::default()
            };
            let result = api.patch(&name, &params, &patch).await;
            api.delete(&name, &DeleteParams::default()).await.unwrap();
            result
        }
        _ => panic!("{}: an object or a change", case.name),
    };
    match result {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if is_refusal(&status) => Some(status.message.clone()),
        Err(error) => panic!("{}: {error}", case.name),
    }
}

fn is_refusal(status: &Status) -> bool {
    matches!(status.code, 400 | 422)
}

// Field case 151.
#[tokio::test]
async fn the_api_server_decides_every_case_as_expected() {
    scenario("cel", async |tenant| {
        let cases = cases();
        assert!(cases.len() > 50, "{}", cases.len());
        let mut wrong = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let what = outcome(tenant, number, case).await;
            let fits = match (&case.expect, &what) {
                (Expect::Accepted, None) => true,
                (Expect::Refused(part), Some(message)) => message.contains(part),
                _ => false,
            };
            if !fits {
                wrong.push(format!("{} {:?}: {what:?}", case.kind, case.name));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} cases went otherwise:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    })
    .await;
}

// Field case 27.
#[tokio::test]
async fn names_and_references_are_immutable_and_the_refusal_says_what_to_do() {
    scenario("fixed", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        let changes = [
            (
                Kind::Account,
                &*tenant.account,
                json!({ "accountID": "f".repeat(32) }),
                "spec.accountID",
            ),
            (Kind::Zone, ZONE, json!({ "name": "other.example" }), "spec.name"),
            (
                Kind::Zone,
                ZONE,
                json!({ "accountRef": { "name": "other" } }),
                "spec.accountRef",
            ),
            (Kind::Record, "www", json!({ "name": "other" }), "spec.name"),
            (
                Kind::Record,
                "www",
                json!({ "zoneRef": { "name": "other" } }),
                "spec.zoneRef",
            ),
        ];
        for (kind, name, spec, field) in changes {
            let patch = json!({ "spec": spec });
            let refused = tenant
                .api(kind)
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await;
            let message = refused.unwrap_err().to_string();
            let told = format!("{field} cannot be changed: create a new resource and delete this one instead");
            assert!(message.contains(&told), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn defaults_are_stored_and_unset_fields_stay_unset() {
    scenario("defaults", async |tenant| {
        let paused = [(names::PAUSED, "true")];
        let account = tenant
            .create(Kind::Account, &tenant.account, &paused, tenant.account_spec())
            .await;
        assert_eq!(account.data["spec"]["tokenSecretRef"]["key"], "CF_API_TOKEN");
        let zone = tenant.create_zone(&paused).await;
        assert_eq!(zone.data["spec"]["type"], "full");
        assert_eq!(zone.data["spec"].as_object().unwrap().len(), 3, "{}", zone.data["spec"]);
        let spec = json!({
            "zoneRef": { "name": ZONE }, "name": "www", "type": "A", "content": "192.0.2.1", "ttl": null, "unknown": 1,
        });
        let record = tenant.create(Kind::Record, "www", &paused, spec).await;
        let wanted = json!({ "zoneRef": { "name": ZONE }, "name": "www", "type": "A", "content": "192.0.2.1" });
        assert_eq!(record.data["spec"], wanted);
    })
    .await;
}
