//! `kflare plan` as a user runs it, against the simulator: what it says, its status, and that it only ever reads.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::{
    io::Write,
    net::SocketAddr,
    process::{Command, Output, Stdio},
};

use kflare_sim::{
    AccountSeed, Area, Effect, Grant, Permission, Seed, ServeOptions, SimConfig, Simulator, TokenSeed, ZoneSeed, serve,
};
use serde_json::{Map, Value, json};
use tokio::{runtime::Runtime, sync::oneshot};

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";

struct Cloud {
    simulator: Simulator,
    address: SocketAddr,
    _runtime: Runtime,
}

fn token() -> String {
    ["plan", "test", "token"].join("-")
}

fn cloud() -> Cloud {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let simulator = Simulator::new(SimConfig::default());
    let everything = [Area::Account, Area::Zone, Area::Dns, Area::WorkersScripts]
        .map(|area| Grant::everywhere(Permission::write(area)));
    let seed = Seed {
        accounts: vec![AccountSeed {
            id: Some(ACCOUNT.into()),
            ..AccountSeed::named("one")
        }],
        tokens: vec![TokenSeed::of_user(&token(), everything.to_vec())],
        zones: vec![ZoneSeed::named("example.com", "one")],
        ..Seed::default()
    };
    simulator.seed(&seed).unwrap();
    let (bound, address) = oneshot::channel();
    let options = ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        state_file: None,
        bound: Some(bound),
    };
    runtime.spawn(serve(simulator.clone(), options, std::future::pending()));
    let address = runtime.block_on(address).unwrap();
    Cloud {
        simulator,
        address,
        _runtime: runtime,
    }
}

impl Cloud {
    fn foreign(&self, body: &Value) {
        let body: Map<String, Value> = body.as_object().cloned().unwrap();
        self.simulator.foreign_create("example.com", &body).unwrap();
    }

    fn plan(&self, manifests: &str, arguments: &[&str]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kflare"))
            .args([
                "plan",
                "-f",
                "-",
                "--cloudflare-url",
                &format!("http://{}/client/v4", self.address),
            ])
            .args(arguments)
            .env("CF_API_TOKEN", token())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let calls = self.simulator.calls();
        assert!(
            calls
                .iter()
                .all(|call| call.method == "GET" && call.effect == Effect::None),
            "{calls:#?}"
        );
        output
    }
}

fn manifests(zone_annotations: &str, records: &str) -> String {
    format!(
        "apiVersion: kflare.dev/v1alpha1
kind: CloudflareAccount
metadata: {{name: main}}
spec: {{accountID: {ACCOUNT}, tokenSecretRef: {{name: token, namespace: system}}}}
---
apiVersion: kflare.dev/v1alpha1
kind: Zone
metadata: {{name: example, annotations: {{{zone_annotations}}}}}
spec: {{name: example.com, accountRef: {{name: main}}}}
---
{records}"
    )
}

fn record(name: &str, annotations: &str, rest: &str) -> String {
    format!(
        "apiVersion: kflare.dev/v1alpha1
kind: DNSRecord
metadata: {{name: {name}, annotations: {{{annotations}}}}}
spec: {{zoneRef: {{name: example}}, name: {name}, {rest}}}
---
"
    )
}

const ADOPT: &str = "kflare.dev/adoption-policy: adopt";

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn changes_are_shown_by_field_and_end_with_two() {
    let cloud = cloud();
    cloud.foreign(&json!({"type": "A", "name": "old", "content": "192.0.2.1", "ttl": 300, "comment": "by hand"}));
    let records = record("old", ADOPT, "type: A, content: 192.0.2.1") + &record("new", "", "type: TXT, content: hello");
    let output = cloud.plan(&manifests(ADOPT, &records), &[]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    for expected in [
        "DNSRecord default/new   create",
        "content: (unset) -> \"\\\"hello\\\"\"",
        "DNSRecord default/old   adopt",
        "ttl: 300 -> 1",
        "comment: \"by hand\" -> \"\"",
        "2 to change, 2 unchanged",
    ] {
        assert!(shown.contains(expected), "{expected:?} in:\n{shown}");
    }
}

#[test]
fn nothing_to_change_ends_with_zero() {
    let cloud = cloud();
    cloud.foreign(&json!({"type": "A", "name": "old", "content": "192.0.2.1", "ttl": 1}));
    let output = cloud.plan(
        &manifests(ADOPT, &record("old", ADOPT, "type: A, content: 192.0.2.1")),
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn manifests_that_name_no_namespace_are_in_the_one_given() {
    let cloud = cloud();
    let manifests = manifests(ADOPT, "");
    let shown = text(&cloud.plan(&manifests, &["--namespace", "team"]));
    assert!(shown.contains("Zone team/example "), "{shown}");
    let named = manifests.replace("{name: example,", "{name: example, namespace: other,");
    let shown = text(&cloud.plan(&named, &["-n", "team"]));
    assert!(shown.contains("Zone other/example "), "{shown}");
    let refused = text(&cloud.plan(&manifests, &["-n", "Team"]));
    assert!(refused.contains("is not the name of a namespace"), "{refused}");
}

#[test]
fn what_is_in_secrets_is_said_not_to_be_compared() {
    let worker = "apiVersion: kflare.dev/v1alpha1
kind: WorkerScript
metadata: {name: hello}
spec:
  accountRef: {name: main}
  name: hello
  script: addEventListener('fetch', () => {})
  format: serviceWorker
  compatibilityDate: '2026-01-31'
  bindings: [{name: KEY, secretKeyRef: {name: keys, key: api}}, {name: OTHER, secretKeyRef: {name: keys, key: other}}]
";
    let cloud = cloud();
    let shown = text(&cloud.plan(&manifests(ADOPT, worker), &[]));
    assert!(
        shown.contains("not compared: what it reads from Secret keys\n"),
        "{shown}"
    );
    let planned = cloud.plan(&manifests(ADOPT, worker), &["-o", "json"]).stdout;
    let planned: Vec<Value> = serde_json::from_slice(&planned).unwrap();
    let not_compared: Vec<&Value> = planned.iter().filter_map(|it| it.get("notCompared")).collect();
    assert_eq!(not_compared, [&json!(["Secret keys"])]);
}

#[test]
fn what_cannot_be_carried_out_ends_with_one_and_says_why() {
    let cloud = cloud();
    cloud.foreign(&json!({"type": "A", "name": "old", "content": "192.0.2.1", "ttl": 300}));
    let output = cloud.plan(
        &manifests(ADOPT, &record("old", "", "type: A, content: 192.0.2.1")),
        &["-o", "json"],
    );
    assert_eq!(output.status.code(), Some(1));
    let planned: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let old = planned
        .iter()
        .find(|it| it["resource"] == "DNSRecord default/old")
        .unwrap();
    assert_eq!(old["plan"]["action"], "blocked");
    assert_eq!(old["plan"]["reason"], "AlreadyExists");
    assert_eq!(old["plan"]["changes"][0], json!({"path": "ttl", "from": 300, "to": 1}));
}

#[test]
fn what_depends_on_something_new_is_planned_too() {
    let cloud = cloud();
    let manifests =
        manifests("", &record("www", "", "type: A, content: 192.0.2.1")).replace("example.com", "example.org");
    let output = cloud.plan(&manifests, &[]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(
        shown.contains("Zone default/example") && shown.contains("\"www.example.org\""),
        "{shown}"
    );
}

/// Records of a zone that is gone are planned with the zone that is to be made in its place.
#[test]
fn what_depends_on_something_that_is_gone_is_planned_as_new() {
    let cloud = cloud();
    let spec = "spec: {name: example.org, accountRef: {name: main}}";
    let [zone, was_there] = ["f", "e"].map(|digit| digit.repeat(32));
    let status = |metadata: &str, scope: &str| {
        format!(
            "status: {{cloudflareMetadata: {{{metadata}}}, ownership: {{account: main, scope: {scope}, origin: Created}}}}"
        )
    };
    let address = "type: A, content: 192.0.2.1";
    let was_there = record("www", "", address).replace("---", &status(&format!("recordID: {was_there}"), &zone));
    let records = was_there + "\n---\n" + &record("mail", "", address);
    let manifests = manifests("", &records).replace("example.com", "example.org");
    let with_status = format!("{spec}\n{}", status(&format!("zoneID: {zone}"), ACCOUNT));
    assert!(manifests.contains(spec));
    let output = cloud.plan(&manifests.replace(spec, &with_status), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let planned: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let made = planned.iter().filter(|it| it["plan"]["action"] == "create").count();
    assert_eq!(made, 3, "{planned:#?}");
}

#[test]
fn a_refused_token_and_a_bad_manifest_end_with_one_clear_line() {
    let cloud = cloud();
    let run = |arguments: &[&str], stdin: &str, word: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kflare"));
        command
            .args(["plan", "-f", "-"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match word {
            Some(word) => command.env("CF_API_TOKEN", word),
            None => command.env_remove("CF_API_TOKEN"),
        };
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let url = format!("http://{}/client/v4", cloud.address);
    let output = run(&["--cloudflare-url", &url], &manifests(ADOPT, ""), Some("another-word"));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("Invalid API Token"), "{}", text(&output));

    let output = run(&[], &manifests(ADOPT, ""), None);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("CF_API_TOKEN"), "{}", text(&output));

    let output = run(&[], "kind: Zone", Some("word"));
    assert!(text(&output).contains("no apiVersion"), "{}", text(&output));
    assert_eq!(output.status.code(), Some(1));
}
