//! The counted figures of `make bench` keep their bounds. Field cases 107, 110, 160, 162.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use kflare_testkit::bench::counted::{self, BenchError};
use kflare_testkit::bench::figure::{self, Figure};

#[track_caller]
fn assert_within_bounds(figures: Result<Vec<Figure>, BenchError>) {
    let figures = figures.unwrap_or_else(|error| panic!("{error}"));
    assert!(!figures.is_empty());
    for figure in &figures {
        println!("{figure}");
    }
    let too_much: Vec<_> = figures.iter().filter(|it| it.is_too_much()).collect();
    assert!(too_much.is_empty(), "{too_much:#?}");
}

#[test]
fn a_thousand_records_cost_twelve_calls_and_three_writes_each_and_rest_without_any() {
    assert_within_bounds(counted::thousand_records());
}

#[test]
fn five_thousand_records_are_checked_in_two_calls_and_found_again_in_five_without_a_write() {
    assert_within_bounds(counted::five_thousand_records());
}

#[test]
fn a_hundred_waf_rules_cost_an_edit_each_and_hardly_a_read() {
    assert_within_bounds(counted::hundred_waf_rules());
}

#[test]
fn two_thousand_resources_over_all_kinds_are_checked_in_a_hundred_and_twenty_calls() {
    assert_within_bounds(counted::two_thousand_mixed());
}

#[test]
fn a_standby_works_twelve_seconds_after_a_kill_and_two_after_a_stop() {
    assert_within_bounds(counted::takeover());
}

#[test]
fn a_tenant_in_a_loop_slows_another_by_a_factor_of_two_at_most() {
    assert_within_bounds(counted::fairness());
}

/// The flood of `make bench`, a tenth of it: within the budget's burst, so that only the work itself takes time.
#[test]
fn a_flood_costs_two_calls_a_zone_and_a_poison_record_holds_up_nobody() {
    let flood = counted::flood(20, || ()).unwrap_or_else(|error| panic!("{error}"));
    println!("{flood:#?}");
    assert_eq!(flood.records, 2000);
    assert_eq!(flood.poison, "RecordConflict");
    // A list and a batch for each zone; the zones and the account; the batch of the poison, taken apart.
    assert!(flood.calls <= 2 * 20 + 30, "{flood:?}");
    assert!(flood.took.as_secs() <= 30, "{flood:?}");
    // Zones and accounts are written too, and those that had to wait say so.
    assert!(flood.kubernetes_writes <= 3 * 2000 + 100, "{flood:?}");
}

/// What the table of docs/performance.md says of bounds is what is asserted.
#[test]
fn every_figure_is_documented_with_its_bound() {
    let text = include_str!("../../../docs/performance.md");
    for definition in figure::ALL {
        let row = text
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", definition.name)))
            .unwrap_or_else(|| panic!("{} has no row", definition.name));
        let bound = match definition.bound {
            figure::Bound::AtMost(bound) => format!("| {bound} "),
            figure::Bound::Aim(aim) => format!("| {aim}, aim "),
            figure::Bound::Told => "| told ".to_owned(),
        };
        assert!(row.contains(&bound), "{row:?} does not say {bound:?}");
    }
}
