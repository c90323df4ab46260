//! The workflows, and what the release's has to keep: pinned actions, few rights, and no step that `make release-check` does not try.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use serde::Deserialize;

#[derive(Deserialize)]
struct Workflow {
    permissions: BTreeMap<String, String>,
    jobs: BTreeMap<String, Job>,
}

#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    permissions: BTreeMap<String, String>,
    #[serde(default)]
    needs: Option<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    uses: Option<String>,
    #[serde(default)]
    run: Option<String>,
    #[serde(default)]
    with: BTreeMap<String, serde_json::Value>,
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn workflow(name: &str) -> Workflow {
    serde_saphyr::from_str(&text(&format!(".github/workflows/{name}"))).unwrap()
}

fn release() -> Workflow {
    workflow("release.yml")
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// The scripts of `hack` that a text calls.
fn scripts(text: &str) -> BTreeSet<String> {
    text.split(|it: char| it.is_whitespace() || "\"$()'`;".contains(it))
        .filter(|word| word.starts_with("hack/") && !word.starts_with("hack/lib/") && !word.starts_with("hack/tools/"))
        .map(|word| word.trim_end_matches([',', '.', ':']).to_owned())
        .collect()
}

#[test]
fn actions_are_pinned_by_commit_and_say_which_version_that_is() {
    let mut seen = 0;
    for entry in fs::read_dir(repository().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Some(action) = line.trim().trim_start_matches("- ").strip_prefix("uses: ") else {
                continue;
            };
            let (name, comment) = action.split_once(" # v").unwrap_or((action, ""));
            let commit = name.split_once('@').map_or("", |(_, commit)| commit);
            assert!(
                commit.len() == 40
                    && commit.bytes().all(|it| it.is_ascii_hexdigit())
                    && comment.starts_with(|it: char| it.is_ascii_digit()),
                "{}: {action}",
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} actions were found");
}

#[test]
fn each_job_of_a_release_has_the_rights_it_needs_and_waits_for_the_one_before() {
    let release = release();
    assert!(release.permissions.is_empty(), "{:?}", release.permissions);
    let rights: BTreeMap<_, _> = release
        .jobs
        .iter()
        .map(|(name, job)| (name.as_str(), job.permissions.clone()))
        .collect();
    let read = [("contents", "read")];
    assert_eq!(
        rights,
        BTreeMap::from([
            ("test", map(&read)),
            ("build", map(&read)),
            ("publish", map(&[read[0], ("packages", "write"), ("id-token", "write")])),
            ("announce", map(&[("contents", "write")])),
        ])
    );
    let order: BTreeMap<_, _> = release
        .jobs
        .iter()
        .map(|(name, job)| (name.as_str(), job.needs.as_deref()))
        .collect();
    assert_eq!(
        order,
        BTreeMap::from([
            ("test", None),
            ("build", Some("test")),
            ("publish", Some("build")),
            ("announce", Some("publish")),
        ])
    );
}

#[test]
fn a_release_takes_nothing_from_caches_and_leaves_no_credentials_behind() {
    for step in release().jobs.values().flat_map(|job| &job.steps) {
        let Some(action) = &step.uses else { continue };
        assert!(!action.starts_with("actions/cache"), "{action}");
        if action.starts_with("actions/checkout@") {
            assert_eq!(step.with["persist-credentials"], false, "{action}");
        }
        if action.starts_with("actions/setup-go@") {
            assert_eq!(step.with["cache"], false, "{action}");
        }
    }
}

#[test]
fn the_steps_of_a_release_are_scripts_that_the_check_runs_too() {
    let check = scripts(&text("hack/release-check"));
    let mut called = BTreeSet::new();
    for step in release().jobs.values().flat_map(|job| &job.steps) {
        let Some(run) = &step.run else { continue };
        assert!(
            !run.contains("${{"),
            "what GitHub puts into a command is not quoted: {run}"
        );
        assert_eq!(run.lines().count(), 1, "a step that is more than a call: {run}");
        let own = scripts(run);
        assert!(
            own.len() == 1
                || run == "bash .ci/run"
                || run == "sudo apt-get update"
                || run.starts_with("docker login ghcr.io ")
                || run.starts_with("gh release create "),
            "a step of its own: {run}"
        );
        called.extend(own);
    }
    assert!(
        called.remove("hack/release-check"),
        "a release is not tried with a throw-away key"
    );
    assert_eq!(
        called,
        ["hack/release-build", "hack/release-publish", "hack/release-version"]
            .map(str::to_owned)
            .into()
    );
    for script in &called {
        assert!(check.contains(script), "hack/release-check does not call {script}");
        let mode = fs::metadata(repository().join(script)).unwrap().permissions().mode();
        assert_ne!(mode & 0o111, 0, "{script} cannot be run");
    }
}

#[test]
fn who_verifies_asks_for_the_identity_of_that_workflow() {
    let subject =
        r"^https://github\.com/kflare/kflare/\.github/workflows/release\.yml@refs/tags/v[0-9]+\.[0-9]+\.[0-9]+.*$";
    for (file, key) in [
        ("config/kyverno/signed-by-release.yaml", "subjectRegExp"),
        ("config/policy-controller/signed-by-release.yaml", "subjectRegExp"),
        ("examples/gitops/flux/kflare.yaml", "subject"),
    ] {
        assert!(text(file).contains(&format!("{key}: {subject}\n")), "{file}");
    }
    assert!(text("helm/kflare/values.yaml").contains("  repository: ghcr.io/kflare/kflare\n"));
}
