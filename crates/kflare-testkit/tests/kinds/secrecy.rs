//! What others learn: at Cloudflare nothing about the cluster, in memory nothing about other people's Secrets.

use kflare_sim::{AccountSeed, Plan, Seed, TokenSeed};
use kflare_testkit::simulation::{ACCOUNT_ID, ControllerOptions, NAMESPACE, User, everything, token};
use serde_json::json;

use crate::memory::{as_before, entries};
use crate::stage::{DOMAIN, HOUR, Stage, ZONE, in_namespace, play, play_in_zone, record, zone};

// Field case 132. Records are public.
#[test]
fn nothing_that_is_sent_to_cloudflare_names_the_cluster_or_its_resources() {
    play(51, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        let project = "secret-project";
        let zone = stage.create(in_namespace(zone("hush-zone", json!({ "name": DOMAIN })), project));
        let mut records = Vec::new();
        for n in 0..5 {
            let spec = json!({ "name": format!("r{n}"), "type": "A", "content": "192.0.2.1", "zoneRef": { "name": "hush-zone" } });
            records.push(stage.create(in_namespace(record(&format!("hush-record-{n}"), spec), project)));
        }
        stage.start();
        stage.ready(&records).await;
        stage.user.edit_spec(&records[0], &json!({ "ttl": 300 }));
        stage.ready(&records).await;
        assert_eq!(stage.records().len(), 5, "no record but those asked for");
        for remote in stage.records() {
            assert_eq!(
                (&remote["comment"], &remote["tags"]),
                (&json!(null), &json!([])),
                "{remote}"
            );
        }
        let uid = |id| stage.metadata(id)["uid"].as_str().unwrap().to_owned();
        let secret = [project.to_owned(), "hush".to_owned(), uid(&zone), uid(&records[0])];
        for call in stage.cloudflare.calls() {
            let sent = format!("{} {:?}", call.path, call.body);
            assert!(secret.iter().all(|word| !sent.contains(word)), "{sent}");
        }
    });
}

// Field case 163. Other people's Secrets are seen as metadata only, and nothing of them is kept.
#[test]
fn secrets_of_others_are_neither_read_nor_kept() {
    let registry = prometheus::Registry::new();
    let options = ControllerOptions {
        registry: Some(registry.clone()),
        ..ControllerOptions::default()
    };
    play(52, |stage| async move {
        let seed = Seed {
            accounts: vec![AccountSeed {
                id: Some(ACCOUNT_ID.to_owned()),
                ..AccountSeed::named("Example")
            }],
            tokens: vec![TokenSeed::of_user(&token(1), everything())],
            ..Seed::default()
        };
        stage.cloudflare.seed(&seed).unwrap();
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        stage.start_with("controller", options);
        let id = stage.record("x", json!({ "name": "x", "type": "A", "content": "192.0.2.1" }));
        stage.ready(std::slice::from_ref(&id)).await;
        stage.rest(HOUR).await;
        let before = entries(&registry);
        let names: Vec<String> = (0..300).map(|n| format!("theirs-{n}")).collect();
        let secret = |name: &str| {
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": NAMESPACE },
                "data": { "blob": "x".repeat(1000) } })
        };
        let ids: Vec<_> = names.iter().map(|name| stage.create(secret(name))).collect();
        as_before(&stage, &registry, &before).await;
        for id in &ids {
            stage.user.delete(id);
        }
        as_before(&stage, &registry, &before).await;
        assert_only_metadata_of_secrets(&stage);
    });
}

/// Every request about Secrets asks for metadata only, but for those that read a token by its name.
fn assert_only_metadata_of_secrets(stage: &Stage) {
    let lines = stage.world.api.trace().lines();
    let mut lists = 0;
    for line in lines
        .iter()
        .filter(|line| line.contains("GET /api/v1/") && line.contains("secrets"))
    {
        let by_name = line.contains(&format!("secrets/{} ", User::secret_id().name));
        assert!(by_name || line.contains("PartialObjectMetadata"), "{line}");
        lists += usize::from(!by_name);
    }
    assert!(lists >= 2, "a list and a watch at least");
}

// Field case 122, from the side of the Secret: a record's namespace is no way to another's token.
#[test]
fn a_secret_is_read_for_its_account_only() {
    play_in_zone(Plan::Pro, |stage| async move {
        let spec = json!({ "name": "x", "type": "A", "content": "192.0.2.1" });
        let id = stage.create(in_namespace(record("x", spec), "tenant"));
        stage.says(&id, "False", "ZoneNotFound").await;
        let read: Vec<_> = stage
            .world
            .api
            .requests()
            .into_iter()
            .filter(|it| it.request.resource == "secrets" && it.request.name.is_some())
            .map(|it| {
                (
                    it.request.namespace.unwrap_or_default(),
                    it.request.name.unwrap_or_default(),
                )
            })
            .filter(|(namespace, name)| (namespace.as_str(), name.as_str()) != ("kflare-system", "token"))
            .collect();
        assert_eq!(read, []);
    });
}
