//! The control plane against real binaries.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kflare_testkit::cluster::{TestNamespace, apply_crds, read_crds, wait_for_within};
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions, StaticUser, shared};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};

fn is_running(pid: u32) -> bool {
    // A zombie has lost its command line; a process that is gone has lost its folder.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[tokio::test]
async fn survives_a_restart_of_the_api_server_and_leaves_nothing_behind() {
    let users = vec![StaticUser {
        name: "eve".into(),
        token: format!("token-of-{}", "eve"),
        groups: vec![],
    }];
    let mut control_plane = ControlPlane::start(ControlPlaneOptions {
        users,
        ..Default::default()
    })
    .await
    .unwrap();
    let client = control_plane.client().await.unwrap();
    let namespace = TestNamespace::create(&client, "smoke").await.unwrap();

    // RBAC is on: a known user without rights is refused, a token nobody knows is not let in at all.
    let eve = control_plane.access().client_with_token("token-of-eve").await.unwrap();
    let refused = Api::<Namespace>::all(eve)
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403),
        "{refused}"
    );
    let stranger = control_plane.access().client_with_token("unknown").await.unwrap();
    let refused = Api::<Namespace>::all(stranger)
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 401),
        "{refused}"
    );

    let before = control_plane.process_ids();
    control_plane.stop_api_server();
    let unreachable = control_plane.client().await.unwrap();
    Api::<Namespace>::all(unreachable)
        .get(namespace.name())
        .await
        .unwrap_err();
    control_plane.restart_api_server().await.unwrap();
    assert_ne!(
        control_plane.process_ids(),
        before,
        "the API server is another process now"
    );
    let found = Api::<Namespace>::all(control_plane.client().await.unwrap())
        .get(namespace.name())
        .await
        .unwrap();
    assert_eq!(found.name_any(), namespace.name());

    let pids = control_plane.process_ids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|&pid| is_running(pid)));
    let files = control_plane.access().kubeconfig_path().parent().unwrap().to_owned();
    drop(control_plane);
    assert!(
        pids.into_iter().chain(before).all(|pid| !is_running(pid)),
        "every process is gone"
    );
    assert!(!files.exists(), "and so are the files");
}

#[tokio::test]
async fn a_paused_etcd_stalls_writes_until_it_goes_on() {
    let control_plane = ControlPlane::start(ControlPlaneOptions::default()).await.unwrap();
    let client = control_plane.client().await.unwrap();
    let namespace = TestNamespace::create(&client, "pause").await.unwrap();
    let object = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("stalled".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    let api = namespace.api::<ConfigMap>();

    control_plane.pause_etcd().unwrap();
    let mut create = tokio::spawn(async move { api.create(&PostParams::default(), &object).await });
    tokio::time::timeout(Duration::from_millis(500), &mut create)
        .await
        .expect_err("the write hangs");
    control_plane.resume_etcd().unwrap();
    create.await.unwrap().unwrap();
}

#[tokio::test]
async fn waiting_in_vain_tells_what_there_is() {
    let client = shared().await.unwrap().client().await.unwrap();
    let namespace = TestNamespace::create(&client, "vain").await.unwrap();
    let event = serde_json::json!({
        "metadata": {"name": "told"}, "involvedObject": {"kind": "Thing", "name": "one", "namespace": namespace.name()},
        "type": "Warning", "reason": "Broken", "message": "the thing is broken",
    });
    let event: Event = serde_json::from_value(event).unwrap();
    namespace.api().create(&PostParams::default(), &event).await.unwrap();
    let within = Duration::from_millis(200);
    let failed = wait_for_within(within, &client, namespace.name(), "the thing", async || {
        Ok::<Option<()>, String>(None)
    });
    let report = format!("{:?}", failed.await.unwrap_err());
    assert!(
        report.contains("waited 200ms for the thing, in vain; the last look: not yet"),
        "{report}"
    );
    assert!(
        report.contains("Warning Broken Thing/one: the thing is broken"),
        "{report}"
    );
    let found = namespace
        .wait_for("nothing", async || Ok::<_, String>(Some(7)))
        .await
        .unwrap();
    assert_eq!(found, 7);
}

#[tokio::test]
async fn the_shared_control_plane_serves_crds_and_service_accounts() {
    let access = shared().await.unwrap();
    assert_eq!(
        access.kubeconfig_path(),
        shared().await.unwrap().kubeconfig_path(),
        "there is only one"
    );
    let client = access.client().await.unwrap();
    let namespace = TestNamespace::create(&client, "shared").await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("two.yaml"),
        format!("{}---\n{}", crd("Apple"), crd("Pear")),
    )
    .unwrap();
    std::fs::write(folder.path().join("README.md"), "not a CRD").unwrap();
    let crds = read_crds(folder.path()).unwrap();
    assert_eq!(
        crds.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        ["apples.testkit.kflare.dev", "pears.testkit.kflare.dev"]
    );
    apply_crds(&client, crds.clone()).await.unwrap();
    apply_crds(&client, crds).await.expect("twice is as good as once");
    assert!(
        Api::<CustomResourceDefinition>::all(client.clone())
            .get_opt("pears.testkit.kflare.dev")
            .await
            .unwrap()
            .is_some()
    );

    let account = k8s_openapi::api::core::v1::ServiceAccount {
        metadata: kube::api::ObjectMeta {
            name: Some("robot".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    namespace.api().create(&PostParams::default(), &account).await.unwrap();
    let robot = access.service_account_client(namespace.name(), "robot").await.unwrap();
    let refused = Api::<Namespace>::all(robot)
        .list(&ListParams::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(&format!("system:serviceaccount:{}:robot", namespace.name())),
        "{refused}"
    );
    let someone = access.client_as("someone", &["a-group"]).await.unwrap();
    let refused = Api::<Namespace>::all(someone)
        .list(&ListParams::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("User \"someone\" cannot list"), "{refused}");
}

#[tokio::test]
async fn processes_do_not_outlive_a_killed_parent() {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_with-control-plane"));
    command.args(["--", "sh", "-c", "echo $KUBECONFIG; echo $PPID; exec cat"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let kubeconfig = lines.next_line().await.unwrap().unwrap();
    let folder = Path::new(&kubeconfig).parent().unwrap().to_owned();
    assert!(folder.join("etcd").exists(), "the control plane is up");
    let processes = || {
        let of_this = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(folder.to_str().unwrap())
        };
        let pids = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        pids.filter(of_this).collect::<Vec<u32>>()
    };
    assert!(processes().len() >= 4, "etcd, the API server and their wrappers");

    child.kill().await.unwrap(); // SIGKILL: no destructor runs
    let gone = tokio::time::timeout(Duration::from_secs(20), async {
        while !processes().is_empty() || folder.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    gone.await
        .unwrap_or_else(|_| panic!("left behind: {:?}, folder exists: {}", processes(), folder.exists()));
}

fn crd(kind: &str) -> String {
    let lower = kind.to_lowercase();
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {lower}s.testkit.kflare.dev
spec:
  group: testkit.kflare.dev
  scope: Namespaced
  names: {{kind: {kind}, plural: {lower}s, singular: {lower}}}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"
    )
}
