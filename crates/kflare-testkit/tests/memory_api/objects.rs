//! Objects, one request at a time.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kflare_testkit::memory_api::{MemoryApiConfig, ObjectId, Operation, ResourceType};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use kube::core::response::StatusCause;
use kube::{Api, CustomResourceExt, Resource, ResourceExt};
use serde_json::json;

use super::support::*;

#[tokio::test(start_paused = true)]
async fn an_object_is_created_read_changed_and_deleted() {
    let (server, client) = server(|config: &mut MemoryApiConfig| config.seed = 1);
    let api = gadgets(&client);
    tokio::time::advance(Duration::from_millis(61_500)).await;

    let mut proposal = gadget("one", 1);
    proposal.status = Some(GadgetStatus {
        phase: "invented".into(),
    });
    let created = api.create(&PostParams::default(), &proposal).await.unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(
        created.creation_timestamp().unwrap().0.to_string(),
        "2026-01-01T00:01:01Z",
        "seconds, virtual time"
    );
    assert_eq!(created.status, None, "a status is not created");
    let uid = created.uid().unwrap();
    assert_eq!((uid.len(), &uid[14..15]), (36, "4"), "{uid}");
    assert_eq!(
        refusal(api.create(&PostParams::default(), &proposal).await),
        (409, "AlreadyExists".into())
    );

    let read = api.get("one").await.unwrap();
    assert_eq!(read, created);
    assert_eq!(refusal(api.get("two").await), (404, "NotFound".into()));
    assert!(api.get_opt("two").await.unwrap().is_none());

    let mut larger = read.clone();
    larger.spec.size = 2;
    let replaced = api.replace("one", &PostParams::default(), &larger).await.unwrap();
    assert_eq!((replaced.spec.size, replaced.metadata.generation), (2, Some(2)));
    assert_ne!(replaced.resource_version(), read.resource_version());

    let gone = api.delete("one", &DeleteParams::default()).await.unwrap();
    let status = gone.right().expect("an object without finalizers is gone at once");
    assert!(status.is_success());
    assert_eq!(status.details.unwrap().uid, uid);
    assert_eq!(refusal(api.get("one").await), (404, "NotFound".into()));
    assert_eq!(server.list("gadgets.kflare.dev").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_conflicts() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let stale = api.create(&PostParams::default(), &gadget("one", 1)).await.unwrap();
    server
        .edit(&ObjectId::namespaced::<Gadget>("default", "one"), |it| {
            it["spec"]["size"] = json!(5);
        })
        .unwrap();

    assert_eq!(
        refusal(api.replace("one", &PostParams::default(), &stale).await),
        (409, "Conflict".into())
    );
    let guarded = json!({"metadata": {"resourceVersion": stale.resource_version()}, "spec": {"size": 9}});
    let patch = api.patch("one", &PatchParams::default(), &Patch::Merge(&guarded)).await;
    assert_eq!(refusal(patch), (409, "Conflict".into()));
    let status = api
        .patch_status("one", &PatchParams::default(), &Patch::Merge(&guarded))
        .await;
    assert_eq!(refusal(status), (409, "Conflict".into()));
    let stranger = json!({"metadata": {"uid": "someone-else"}});
    let patch = api
        .patch("one", &PatchParams::default(), &Patch::Merge(&stranger))
        .await;
    assert_eq!(refusal(patch), (409, "Conflict".into()));
    let precondition = Preconditions {
        resource_version: stale.resource_version(),
        uid: None,
    };
    let delete = api
        .delete("one", &DeleteParams::default().preconditions(precondition))
        .await;
    assert_eq!(refusal(delete), (409, "Conflict".into()));
    assert_eq!(
        api.get("one").await.unwrap().spec.size,
        5,
        "nothing of that had an effect"
    );

    let mut blind = stale;
    blind.metadata.resource_version = None;
    let (code, _) = refusal(api.replace("one", &PostParams::default(), &blind).await);
    assert_eq!(code, 422, "a custom resource is not replaced blindly");
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_apart() {
    let (_, client) = server(|_| ());
    let api = gadgets(&client);
    api.create(&PostParams::default(), &gadget("one", 1)).await.unwrap();
    let both = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"size": 3}, "status": {"phase": "Ready"}});

    let status = api
        .patch_status("one", &PatchParams::default(), &Patch::Merge(&both))
        .await
        .unwrap();
    assert_eq!(status.status.as_ref().unwrap().phase, "Ready");
    assert_eq!(
        (status.spec.size, status.labels().len(), status.metadata.generation),
        (1, 0, Some(1))
    );
    let mut spec = api
        .patch(
            "one",
            &PatchParams::default(),
            &Patch::Merge(&json!({"spec": {"size": 3}, "status": null})),
        )
        .await
        .unwrap();
    assert_eq!(spec.status.as_ref().unwrap().phase, "Ready");
    assert_eq!((spec.spec.size, spec.metadata.generation), (3, Some(2)));

    spec.spec.size = 10;
    spec.status = Some(GadgetStatus { phase: "Failed".into() });
    let replaced = api.replace_status("one", &PostParams::default(), &spec).await.unwrap();
    assert_eq!(
        (replaced.spec.size, replaced.status.unwrap().phase.as_str()),
        (3, "Failed")
    );
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = api
        .patch("one", &PatchParams::default(), &Patch::Merge(&labels))
        .await
        .unwrap();
    assert_eq!(labelled.metadata.generation, Some(2), "metadata is no generation");
    let again = api
        .patch("one", &PatchParams::default(), &Patch::Merge(&labels))
        .await
        .unwrap();
    assert_eq!(
        again.resource_version(),
        labelled.resource_version(),
        "no change, no version"
    );

    let secrets: Api<Secret> = Api::default_namespaced(client);
    let created = secrets.create(&PostParams::default(), &secret("s")).await.unwrap();
    assert_eq!(created.metadata.generation, None);
    let status = secrets
        .patch_status("s", &PatchParams::default(), &Patch::Merge(&json!({})))
        .await;
    assert_eq!(refusal(status).0, 404, "secrets have no status");
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_one_goes() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let mut held = gadget("one", 1);
    held.metadata.finalizers = Some(vec!["kflare.dev/a".into(), "kflare.dev/b".into()]);
    api.create(&PostParams::default(), &held).await.unwrap();

    let marked = api
        .delete("one", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .expect("it is only marked");
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_eq!(marked.metadata.generation, Some(2));
    let again = api
        .delete("one", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(again.resource_version(), marked.resource_version(), "once is enough");

    let more = json!({"metadata": {"finalizers": ["kflare.dev/a", "kflare.dev/c"]}});
    assert_eq!(
        refusal(api.patch("one", &PatchParams::default(), &Patch::Merge(&more)).await),
        (422, "Invalid".into())
    );
    let undelete = json!({"metadata": {"deletionTimestamp": null}});
    let patched = api
        .patch("one", &PatchParams::default(), &Patch::Merge(&undelete))
        .await
        .unwrap();
    assert!(patched.metadata.deletion_timestamp.is_some(), "there is no way back");

    let wrong: json_patch::Patch = serde_json::from_value(json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "kflare.dev/b"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]))
    .unwrap();
    let refused = api
        .patch("one", &PatchParams::default(), &Patch::<()>::Json(wrong))
        .await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));
    let first: json_patch::Patch = serde_json::from_value(json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "kflare.dev/a"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]))
    .unwrap();
    let left = api
        .patch("one", &PatchParams::default(), &Patch::<()>::Json(first))
        .await
        .unwrap();
    assert_eq!(left.finalizers(), ["kflare.dev/b"]);
    assert!(server.get(&ObjectId::namespaced::<Gadget>("default", "one")).is_some());
    let none = json!({"metadata": {"finalizers": null}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(&none))
        .await
        .unwrap();
    assert!(api.get_opt("one").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn kubes_own_finalizer_works_against_it() {
    use kube::runtime::controller::Action;
    use kube::runtime::finalizer::{Event, finalizer};
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let id = ObjectId::namespaced::<Gadget>("default", "one");
    server.create(manifest("one", 1)).unwrap();
    let run = async || {
        let object = std::sync::Arc::new(api.get("one").await.unwrap());
        finalizer(&api, "kflare.dev/finalizer", object, async |event| match event {
            Event::Apply(_) | Event::Cleanup(_) => Ok::<_, std::io::Error>(Action::await_change()),
        })
        .await
        .unwrap();
    };
    run().await;
    assert_eq!(
        server.get(&id).unwrap()["metadata"]["finalizers"],
        json!(["kflare.dev/finalizer"])
    );
    server.delete(&id).unwrap();
    run().await;
    assert_eq!(server.get(&id), None);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment() {
    let (server, client) = server(|_| ());
    for name in ["a", "b", "c", "d", "e"] {
        server.create(manifest(name, 1)).unwrap();
    }
    server.create(json!({"apiVersion": "kflare.dev/v1", "kind": "Gadget", "metadata": {"name": "x", "namespace": "zone"}, "spec": {"size": 1}})).unwrap();
    let api: Api<Gadget> = Api::all(client.clone());
    let names =
        |list: &kube::core::ObjectList<Gadget>| list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>();

    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first.metadata.remaining_item_count, Some(4));
    server.delete(&ObjectId::namespaced::<Gadget>("default", "c")).unwrap();
    server.create(manifest("cc", 1)).unwrap();
    server
        .edit(&ObjectId::namespaced::<Gadget>("default", "d"), |it| {
            it["spec"]["size"] = json!(7);
        })
        .unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = api
        .list(&ListParams::default().limit(500).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(names(&rest), ["c", "d", "e", "x"], "as it was when the list began");
    assert_eq!(rest.items[1].spec.size, 1);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    assert_eq!(rest.metadata.continue_, None);
    assert_eq!(
        names(&gadgets(&client).list(&ListParams::default()).await.unwrap()),
        ["a", "b", "cc", "d", "e"]
    );

    server.compact();
    let expired = api.list(&ListParams::default().limit(2).continue_token(&token)).await;
    assert_eq!(refusal(expired), (410, "Expired".into()));
    let by_name = api
        .list(&ListParams::default().fields("metadata.name=x"))
        .await
        .unwrap();
    assert_eq!(names(&by_name), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_is_served_without_the_rest() {
    let (_, client) = server(|_| ());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    secrets.create(&PostParams::default(), &secret("s")).await.unwrap();
    let uri = "/api/v1/namespaces/default/secrets";
    let text = async |uri: &str, kind: &str| {
        let accept = format!("application/json;as={kind};g=meta.k8s.io;v=v1");
        let request = http::Request::get(uri)
            .header("accept", accept)
            .body(Vec::new())
            .unwrap();
        client.request_text(request).await
    };
    let list = text(uri, "PartialObjectMetadataList").await.unwrap();
    assert!(
        list.contains("PartialObjectMetadataList") && !list.contains("hidden"),
        "{list}"
    );
    let one = text("/api/v1/namespaces/default/secrets/s", "PartialObjectMetadata")
        .await
        .unwrap();
    assert!(
        one.contains("PartialObjectMetadata") && !one.contains("hidden"),
        "{one}"
    );
    assert_eq!(refusal(text(uri, "Table").await), (406, "NotAcceptable".into()));

    let metadata = secrets.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(metadata.items[0].name_any(), "s");
    let patch = json!({"metadata": {"finalizers": ["kflare.dev/token-protection"]}});
    let patched: PartialObjectMeta<Secret> = secrets
        .patch_metadata("s", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(patched.finalizers(), ["kflare.dev/token-protection"]);
    assert!(
        secrets.get("s").await.unwrap().string_data.is_some(),
        "the patch touched metadata only"
    );
}

#[tokio::test(start_paused = true)]
async fn apply_creates_and_merges() {
    let (_, client) = server(|_| ());
    let api = gadgets(&client);
    let apply = PatchParams::apply("test");
    let applied = api
        .patch("one", &apply, &Patch::Apply(&gadget("one", 1)))
        .await
        .unwrap();
    assert_eq!(applied.metadata.generation, Some(1));
    let applied = api
        .patch("one", &apply, &Patch::Apply(&gadget("one", 2)))
        .await
        .unwrap();
    assert_eq!((applied.spec.size, applied.metadata.generation), (2, Some(2)));
    let anonymous = api
        .patch("one", &PatchParams::default(), &Patch::Apply(&gadget("one", 3)))
        .await;
    assert!(anonymous.is_err());
    let strategic = api
        .patch("one", &PatchParams::default(), &Patch::Strategic(&json!({})))
        .await;
    assert_eq!(refusal(strategic).0, 415);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let dry = PostParams {
        dry_run: true,
        ..Default::default()
    };
    let before = server.revision();
    let created = api.create(&dry, &gadget("one", 1)).await.unwrap();
    assert!(created.uid().is_some());
    assert_eq!(
        (server.revision(), server.list("gadgets.kflare.dev").len()),
        (before, 0)
    );
    server.create(manifest("one", 1)).unwrap();
    api.delete("one", &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(server.list("gadgets.kflare.dev").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn kinds_come_and_go() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    server.create(manifest("one", 1)).unwrap();
    let groups = client.list_api_groups().await.unwrap();
    assert_eq!(
        groups
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect::<Vec<_>>(),
        ["kflare.dev"]
    );
    let group = kube::discovery::group(&client, "kflare.dev").await.unwrap();
    let (resource, capabilities) = group.recommended_kind("Gadget").unwrap();
    assert_eq!(
        (resource.plural.as_str(), capabilities.subresources.len()),
        ("gadgets", 1)
    );

    server.unregister("gadgets.kflare.dev");
    assert_eq!(refusal(api.list(&ListParams::default()).await).0, 404);
    assert!(api.get_opt("one").await.unwrap().is_none());
    assert_eq!(client.list_api_groups().await.unwrap().groups.len(), 0);
    server.register(ResourceType::from_crd(&Gadget::crd()));
    assert_eq!(
        api.list(&ListParams::default()).await.unwrap().items.len(),
        0,
        "its objects went with it"
    );
}

#[tokio::test(start_paused = true)]
async fn admission_sets_defaults_and_refuses() {
    let (server, client) = server(|_| ());
    server.register(
        ResourceType::from_crd(&Gadget::crd()).with_admission(|operation, object| {
            let cause = |message: &str| StatusCause {
                reason: "FieldValueInvalid".into(),
                message: message.into(),
                field: "spec.size".into(),
            };
            let spec = object["spec"].as_object_mut().unwrap();
            let size = spec.entry("size").or_insert(json!(4)).clone();
            match operation {
                Operation::Update(old) if old["spec"]["size"] != size => {
                    Err(vec![cause("Invalid value: size is immutable")])
                }
                _ => Ok(()),
            }
        }),
    );
    let mut sizeless = manifest("one", 1);
    sizeless["spec"] = json!({});
    assert_eq!(server.create(sizeless).unwrap()["spec"]["size"], 4);
    let resized = gadgets(&client)
        .patch(
            "one",
            &PatchParams::default(),
            &Patch::Merge(&json!({"spec": {"size": 5}})),
        )
        .await;
    let Err(kube::Error::Api(status)) = resized else {
        panic!("{resized:?}")
    };
    assert_eq!(
        status.message,
        "Gadget.kflare.dev \"one\" is invalid: spec.size: Invalid value: size is immutable"
    );
    assert_eq!(
        (status.code, status.details.unwrap().causes[0].field.as_str()),
        (422, "spec.size")
    );
}

#[tokio::test(start_paused = true)]
async fn collections_and_generated_names() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let mut nameless = gadget("", 1);
    *nameless.meta_mut() = ObjectMeta {
        generate_name: Some("gadget-".into()),
        ..Default::default()
    };
    let (one, two) = (
        api.create(&PostParams::default(), &nameless).await.unwrap(),
        api.create(&PostParams::default(), &nameless).await.unwrap(),
    );
    assert!(one.name_any().starts_with("gadget-") && one.name_any().len() == 12);
    assert_ne!(one.name_any(), two.name_any());
    server
        .edit(&ObjectId::namespaced::<Gadget>("default", one.name_any()), |it| {
            it["metadata"]["labels"] = json!({"go": "now"});
        })
        .unwrap();
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("go=now"))
        .await
        .unwrap();
    assert_eq!(
        server.list("gadgets.kflare.dev")[0]["metadata"]["name"],
        json!(two.name_any())
    );
}

/// Secrets go with the last of their owners, and only they.
#[tokio::test(start_paused = true)]
async fn secrets_are_collected_with_their_owners() {
    let (server, client) = server(|_| ());
    let api = gadgets(&client);
    let mut owners = Vec::new();
    for name in ["one", "two"] {
        let made = api.create(&PostParams::default(), &gadget(name, 1)).await.unwrap();
        let uid = made.meta().uid.clone().unwrap();
        owners.push(json!({ "apiVersion": "kflare.dev/v1", "kind": "Gadget", "name": name, "uid": uid }));
    }
    let secret = |name: &str, owners: &[serde_json::Value]| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "default", "ownerReferences": owners } });
    for manifest in [
        secret("of-one", &owners[..1]),
        secret("of-both", &owners),
        secret("free", &[]),
    ] {
        server.create(manifest).unwrap();
    }
    let left = || -> Vec<String> {
        let secrets = server.list("secrets");
        secrets
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(left(), ["free", "of-both"]);
    api.delete("two", &DeleteParams::default()).await.unwrap();
    assert_eq!(left(), ["free"]);
}
