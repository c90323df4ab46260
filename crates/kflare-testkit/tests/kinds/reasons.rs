//! `docs/troubleshooting.md` has an entry for every reason that the code can give, and for no other.

use std::{collections::BTreeSet, path::Path};

use kflare_engine::{Occurrence, Reason, kind::ReferenceName};

use crate::registry::accepted;

/// Every reason of a condition: of all kinds, of some, and what each kind says of those it refers to.
fn of_conditions() -> BTreeSet<String> {
    let kinds = kflare_kinds::kinds();
    let declared = Reason::ALL.iter().chain(kflare_kinds::reasons::ALL);
    let mut all: BTreeSet<String> = declared.map(ToString::to_string).collect();
    for (kind, case, spec) in accepted() {
        for reference in kinds.get(&kind).unwrap().references(&spec).unwrap() {
            let referent = kinds.get(reference.kind);
            let referent = referent.unwrap_or_else(|| panic!("{kind}, {case}: {reference:?}"));
            let noun = &referent.descriptor().noun;
            // An alias that no resource has is nothing to wait for.
            if matches!(reference.name, ReferenceName::Resource(_)) {
                all.insert(Reason::parent_not_found(noun).to_string());
            }
            all.insert(Reason::parent_not_ready(noun).to_string());
        }
    }
    all
}

/// The lines of the page between a heading and the next of its level.
fn section(heading: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let page = std::fs::read_to_string(page).unwrap();
    let after = page.lines().skip_while(|line| *line != heading).skip(1);
    let section: Vec<String> = after
        .take_while(|line| !line.starts_with("## "))
        .map(str::to_owned)
        .collect();
    assert!(!section.is_empty(), "no section {heading}");
    section
}

/// The words in backticks of a heading or a cell.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn assert_same(what: &str, code: &BTreeSet<String>, page: &BTreeSet<String>) {
    let missing: Vec<&String> = code.difference(page).collect();
    let unknown: Vec<&String> = page.difference(code).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{what}: docs/troubleshooting.md lacks {missing:?}, and knows {unknown:?}, which the code does not"
    );
}

#[test]
fn every_reason_of_a_condition_has_an_entry_that_says_what_to_do() {
    let mut entries: BTreeSet<String> = BTreeSet::new();
    let lines = section("## Reasons");
    for entry in lines.join("\n").split("\n### ").skip(1) {
        let (heading, text) = entry.split_once('\n').unwrap();
        assert!(text.contains("**To do:**"), "{heading} does not say what to do");
        for reason in quoted(heading) {
            assert!(entries.insert(reason.clone()), "{reason} has two entries");
        }
    }
    assert_same("conditions", &of_conditions(), &entries);
}

#[test]
fn every_reason_of_an_event_has_its_row() {
    let rows: Vec<String> = section("## Events")
        .iter()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|row| quoted(row).next())
        .collect();
    let told: BTreeSet<String> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), told.len(), "a reason has two rows: {rows:?}");
    let known: BTreeSet<String> = Occurrence::ALL.iter().map(|it| it.reason.to_owned()).collect();
    assert_same("Events", &known, &told);
}

/// What a kind calls its own is in the list of such reasons, so that it cannot be forgotten here.
#[test]
fn kinds_have_no_reasons_of_their_own_but_those_that_are_listed() {
    let listed: Vec<&Reason> = Reason::ALL.iter().chain(kflare_kinds::reasons::ALL).collect();
    let texts: BTreeSet<&str> = listed.iter().map(|it| it.as_str()).collect();
    assert_eq!(texts.len(), listed.len(), "a reason is listed twice");
    for kind in kflare_kinds::kinds().iter() {
        let reasons = &kind.descriptor().reasons;
        for reason in [&reasons.exists, &reasons.claimed, &reasons.locked, &reasons.in_use] {
            assert!(listed.contains(&reason), "{}: {reason}", kind.descriptor().kind);
        }
    }
}
