//! The stories themselves: that they are made up and played the same way each time, that they leave nothing out, and that a
//! failing one gets shorter. `make simulate` plays many.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;

use kflare_api::RecordType;
use kflare_engine::mutation::{self, Mutation};
use kflare_testkit::story::{Act, ApiFault, Cut, KillPoint, Rule, Story, play, shrink, story};
use kflare_testkit::trace::TraceDetail;
use serde_json::Value;

/// Enough stories to expect everything in them.
const MANY: u64 = 600;

fn acts(story: &Story) -> impl Iterator<Item = &Act> {
    story.steps.iter().map(|step| &step.act).chain(&story.encore)
}

fn name_of(act: &Act) -> String {
    serde_json::to_value(act).unwrap()["act"].as_str().unwrap().to_owned()
}

/// The fields of a spec that an act touches, by kind.
fn fields(act: &Act) -> Vec<String> {
    let (kind, spec) = match act {
        Act::Create { manifest, .. } => (manifest["kind"].as_str().unwrap().to_owned(), &manifest["spec"]),
        Act::Edit { target, change, .. } => (target.kind.clone(), change),
        _ => return Vec::new(),
    };
    let mut fields = Vec::new();
    for (name, value) in spec.as_object().unwrap() {
        fields.push(format!("{kind}.{name}"));
        if name == "settings" {
            let members = value.as_object().unwrap().keys();
            fields.extend(members.map(|member| format!("{kind}.{name}.{member}")));
        }
    }
    fields
}

#[test]
fn a_seed_tells_one_story_which_is_played_the_same_way_twice() {
    for seed in [3, 4, 12] {
        let tale = story(seed);
        assert_eq!(tale, story(seed));
        let (one, other) = (play(&tale, TraceDetail::Lines), play(&tale, TraceDetail::DigestOnly));
        assert!(one.trace.len() > 200, "{} lines", one.trace.len());
        assert_eq!((one.digest, one.calls), (other.digest, other.calls), "seed {seed}");
        assert_eq!(one.violations, [], "seed {seed}");
        let stored = serde_json::to_string(&tale).unwrap();
        assert_eq!(
            serde_json::from_str::<Story>(&stored).unwrap(),
            tale,
            "stories can be stored"
        );
    }
}

/// What a kind's schema offers is written and changed in some story.
#[test]
fn stories_touch_every_field_of_every_schema() {
    let touched: BTreeSet<String> = (0..MANY)
        .flat_map(|seed| acts(&story(seed)).flat_map(fields).collect::<Vec<_>>())
        .collect();
    let mut missing = Vec::new();
    for crd in kflare_api::crds() {
        let kind = crd.spec.names.kind.clone();
        // Accounts are set up with each story; their token is what changes.
        if kind == "CloudflareAccount" {
            continue;
        }
        let crd = serde_json::to_value(&crd).unwrap();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        for (name, schema) in spec.as_object().unwrap() {
            let members = schema["properties"].as_object().filter(|_| name == "settings");
            let members = members
                .into_iter()
                .flat_map(|it| it.keys().map(|member| format!("{kind}.{name}.{member}")));
            missing.extend(std::iter::once(format!("{kind}.{name}")).chain(members));
        }
    }
    missing.retain(|field| !touched.contains(field));
    assert_eq!(missing, Vec::<String>::new(), "touched: {touched:?}");
}

#[test]
fn stories_leave_nothing_out() {
    let (mut seen, mut types, mut kinds_of_faults) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut api_faults, mut cuts, mut kills) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut settings = BTreeSet::new();
    for seed in 0..MANY {
        let tale = story(seed);
        settings.insert((tale.setting.clusters, tale.setting.replicas));
        for act in acts(&tale) {
            seen.insert(name_of(act));
            match act {
                Act::Create { manifest, .. } if manifest["kind"] == "DNSRecord" => {
                    types.insert(manifest["spec"]["type"].as_str().unwrap().to_owned());
                }
                Act::CloudflareFails { fault, .. } => {
                    let fault: Value = serde_json::to_value(&fault.fault).unwrap();
                    kinds_of_faults.insert(fault["kind"].as_str().unwrap().to_owned());
                }
                Act::ApiFails { how, .. } => drop(api_faults.insert(format!("{how:?}"))),
                Act::CutWatches { cut, .. } => drop(cuts.insert(format!("{cut:?}"))),
                Act::Kill { when, .. } => {
                    kills.insert(match when {
                        KillPoint::Now => "now",
                        KillPoint::BeforeRequest(_) => "before",
                        KillPoint::AfterRequest(_) => "after",
                        KillPoint::AtPoll(_) => "poll",
                    });
                }
                _ => {}
            }
        }
    }
    assert_eq!(seen.len(), 26, "{seen:?}");
    assert_eq!(types.len(), RecordType::ALL.len(), "{types:?}");
    // All that the simulator has but `late`, which is met in `kinds/interrupted_creates.rs`; `status` twice under one name.
    assert_eq!(kinds_of_faults.len(), 9, "{kinds_of_faults:?}");
    assert_eq!((api_faults.len(), cuts.len(), kills.len()), (8, 4, 4));
    assert_eq!(settings, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
    // These names are part of stored stories.
    let named = |value: Value| value.as_str().map(str::to_owned);
    assert_eq!(
        named(serde_json::to_value(ApiFault::LostReply).unwrap()).as_deref(),
        Some("lost-reply")
    );
    assert_eq!(named(serde_json::to_value(Cut::Gone).unwrap()).as_deref(), Some("gone"));
}

/// Stories that broke a rule once because the rule asked for more than is promised: a user may ask for more frequent checks, for instance, and
/// two clusters may want one object to be different.
#[test]
fn stored_stories_break_no_rule() {
    let stored = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stories")).unwrap();
    let mut paths: Vec<_> = stored.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let tale: Story = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let outcome = play(&tale, TraceDetail::DigestOnly);
        assert_eq!(outcome.violations, [], "{}", path.display());
    }
}

#[test]
fn a_story_is_shrunk_to_what_breaks_the_rule() {
    let tale = story(12);
    let first = tale
        .steps
        .iter()
        .find(|step| name_of(&step.act) == "create")
        .unwrap()
        .clone();
    let last = tale
        .steps
        .iter()
        .rev()
        .find(|step| name_of(&step.act) == "edit")
        .unwrap()
        .clone();
    let short = shrink(&tale, Rule::Truth, 500, |candidate| {
        let fails = candidate.steps.contains(&first) && candidate.steps.contains(&last);
        if fails {
            vec![Rule::Quiet, Rule::Truth]
        } else {
            vec![Rule::Quiet]
        }
    });
    assert_eq!(short.steps, [first, last]);
    assert_eq!(short.encore, []);
    assert!(tale.steps.len() > 10);
}

#[test]
fn a_broken_engine_breaks_a_rule() {
    let tale = story(1);
    mutation::set(Some(Mutation::PauseIgnored));
    let broken = play(&tale, TraceDetail::DigestOnly);
    mutation::set(None);
    assert!(
        broken.violations.iter().any(|it| it.rule == Rule::HeldBack),
        "{:?}",
        broken.violations
    );
    assert_eq!(play(&tale, TraceDetail::DigestOnly).violations, []);
}
