//! Next to a GitOps tool that applies its manifests again and again, server-side and without force.

use std::fmt::Write as _;
use std::path::Path;

use kflare_api::names;
use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::harness::promises::{MANAGER, foreign_fields};
use crate::harness::tenant::{SECRET, ZONE};
use crate::harness::{Kind, Ready, Tenant, scenario};

/// Manifests of the repository with what their comments ask to be filled in, in the tenant's namespace.
pub fn localized(tenant: &Tenant<'_>, folder: &str, files: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut all = String::new();
    for file in files {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
        for mut object in documents {
            let name = object["kind"].as_str().unwrap();
            let Some(kind) = Kind::ALL.into_iter().find(|it| it.resource().kind == name) else {
                // Something of Kubernetes' own.
                object["metadata"]["namespace"] = json!(tenant.home());
                let _ = writeln!(all, "---\n{object}");
                continue;
            };
            match kind {
                Kind::Account => {
                    object["metadata"]["name"] = json!(tenant.account);
                    object["spec"]["accountID"] = json!(tenant.account_id);
                    object["spec"]["tokenSecretRef"]["name"] = json!(SECRET);
                    object["spec"]["tokenSecretRef"]["namespace"] = json!(tenant.home());
                }
                Kind::Zone => {
                    object["metadata"]["name"] = json!(ZONE);
                    object["spec"]["name"] = json!(tenant.domain);
                    object["spec"]["accountRef"]["name"] = json!(tenant.account);
                }
                Kind::ManagedTransform => object["spec"]["zoneRef"]["name"] = json!(ZONE),
                Kind::IPList => object["spec"]["accountRef"]["name"] = json!(tenant.account),
                Kind::Record => {
                    object["spec"]["zoneRef"]["name"] = json!(ZONE);
                    if object["spec"]["content"] == "example.com" {
                        object["spec"]["content"] = json!(tenant.domain);
                    }
                }
                Kind::TunnelConfiguration => {
                    for rule in object["spec"]["ingress"].as_array_mut().unwrap() {
                        let host = rule["hostname"]
                            .as_str()
                            .unwrap()
                            .replace("example.com", &tenant.domain);
                        rule["hostname"] = json!(host);
                    }
                }
                Kind::WorkerRoute => {
                    let pattern = object["spec"]["pattern"].as_str().unwrap();
                    let pattern = pattern.replace("example.com", &tenant.domain);
                    object["spec"]["pattern"] = json!(pattern);
                    object["spec"]["zoneRef"]["name"] = json!(ZONE);
                }
                _ if object["spec"]["accountRef"].is_object() => {
                    object["spec"]["accountRef"]["name"] = json!(tenant.account);
                }
                _ => object["spec"]["zoneRef"]["name"] = json!(ZONE),
            }
            if kind != Kind::Account {
                object["metadata"]["namespace"] = json!(tenant.home());
            }
            let _ = writeln!(all, "---\n{object}");
        }
    }
    all
}

/// The samples, one or more for each kind.
fn samples(tenant: &Tenant<'_>) -> Vec<DynamicObject> {
    let files = Kind::ALL.map(|kind| format!("{}.yaml", kind.resource().kind.to_lowercase()));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let text = localized(tenant, "config/samples", &files);
    serde_saphyr::from_multiple(&text).unwrap()
}

async fn apply(tenant: &Tenant<'_>, manifest: &DynamicObject) -> DynamicObject {
    let kind = Kind::named(&manifest.types.as_ref().unwrap().kind);
    let params = PatchParams::apply("argocd");
    let name = manifest.name_any();
    let applied = tenant.api(kind).patch(&name, &params, &Patch::Apply(manifest)).await;
    applied.unwrap_or_else(|error| panic!("{kind:?} {name}: {error}"))
}

// Field case 136.
#[tokio::test]
async fn samples_are_applied_again_without_conflict_or_change_and_kflare_owns_only_its_own_fields() {
    scenario("argocd", async |tenant| {
        tenant.create_secret().await;
        tenant.create_input("hello-secrets", "api-key").await;
        let manifests = samples(tenant);
        let mut kinds: Vec<String> = manifests
            .iter()
            .map(|it| it.types.as_ref().unwrap().kind.clone())
            .collect();
        kinds.dedup();
        assert_eq!(kinds, Kind::ALL.map(|kind| kind.resource().kind));
        let mut settled = Vec::new();
        for manifest in &manifests {
            tenant.remember(&apply(tenant, manifest).await);
        }
        for manifest in &manifests {
            let kind = Kind::named(&manifest.types.as_ref().unwrap().kind);
            let name = manifest.name_any();
            let done = |object: &DynamicObject| {
                let ready = Ready::current(object).is_some_and(|it| it.status == "True");
                ready && !object.annotations().contains_key(names::CREATE_INTENT)
            };
            settled.push(tenant.until_object(kind, &name, "settled", done).await);
        }
        let mark = tenant.now();
        for (manifest, before) in manifests.iter().zip(&settled) {
            let after = apply(tenant, manifest).await;
            assert_eq!(after.resource_version(), before.resource_version(), "nothing changed");
            assert_eq!(after.finalizers(), [names::FINALIZER]);
            assert_eq!(foreign_fields(&after), Vec::<String>::new());
            let ours = after
                .managed_fields()
                .iter()
                .filter(|it| it.manager.as_deref() == Some(MANAGER));
            let parts: Vec<_> = ours.map(|it| it.subresource.clone().unwrap_or_default()).collect();
            assert!(
                parts.contains(&String::new()) && parts.contains(&"status".to_owned()),
                "{parts:?}"
            );
        }
        assert!(tenant.writes(mark).is_empty());

        // A change in the repository goes through, and what kflare has put on the object stays.
        let mut changed = manifests[2].clone();
        changed.data["spec"]["content"] = json!("192.0.2.99");
        tenant.remember(&apply(tenant, &changed).await);
        let after = tenant.until_ready(Kind::Record, &changed.name_any()).await;
        assert_eq!(after.finalizers(), [names::FINALIZER]);
        assert!(after.labels().contains_key(names::RECORD_ID));
        assert_eq!(tenant.remote("www")[0]["content"], "192.0.2.99");
    })
    .await;
}
