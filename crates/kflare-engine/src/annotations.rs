//! Annotations under our prefix that are none of ours.
//!
//! One that is all but one of ours is a slip, and what its author wanted (keep the record, pause, adopt) must not be passed
//! over in silence: the resource says so and nothing is written. Any other may be of a later kflare, or of a tool: it is
//! named in the condition and has no effect.

use std::fmt::Write as _;

use kflare_api::names;

use crate::{kind::SpecError, object::Object};

/// So many letters have to be there for the beginning of a name to stand for it.
const SHORTEST_BEGINNING: usize = 5;

/// Refuses annotations that are misspelt, with the one that was meant.
pub fn check_spelling(object: &Object) -> Result<(), SpecError> {
    for name in unknown(object) {
        if let Some(meant) = meant(name) {
            return Err(SpecError::new(
                format!("metadata.annotations[{name}]"),
                format!("there is no such annotation; did you mean {meant}?"),
            ));
        }
    }
    Ok(())
}

/// A sentence that names the annotations that nobody here knows, if there are any.
pub fn without_effect(object: &Object) -> Option<String> {
    let mut sentence = String::new();
    for name in unknown(object) {
        let comma = if sentence.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(sentence, "{comma}{name}");
    }
    (!sentence.is_empty()).then(|| format!("this kflare does not know these annotations: {sentence}"))
}

fn unknown(object: &Object) -> impl Iterator<Item = &str> {
    let names = object.annotations.names();
    names.filter(|name| !names::ANNOTATIONS.contains(name))
}

/// The annotation that `name` is a slip of: the same letters in another style, the beginning of it, or about one letter in
/// five wrong. Only those that users set are meant by anybody.
fn meant(name: &str) -> Option<&'static str> {
    let letters = bare(name);
    names::USER_ANNOTATIONS
        .into_iter()
        .filter_map(|known| {
            let whole = bare(known);
            let distance = distance(&letters, &whole);
            let begins = letters.len() >= SHORTEST_BEGINNING && whole.starts_with(&letters);
            (begins || distance <= slips(&whole)).then_some((distance, known))
        })
        .min()
        .map(|(_, known)| known)
}

/// How many letters of a name may be wrong.
fn slips(name: &[char]) -> usize {
    (name.len() + 2) / 5
}

/// The name behind the prefix, without case and separators.
fn bare(name: &str) -> Vec<char> {
    let name = name.split_once('/').map_or(name, |(_, name)| name);
    name.chars()
        .filter(|it| it.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// How many letters have to be put in, taken out, replaced, or exchanged with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        for (slip, meant_one) in [
            ("kflare.dev/deletion-polcy", names::DELETION_POLICY),
            ("kflare.dev/deletionPolicy", names::DELETION_POLICY),
            ("kflare.dev/delete-policy", names::DELETION_POLICY),
            ("kflare.dev/adoption_policy", names::ADOPTION_POLICY),
            ("kflare.dev/adopton-polciy", names::ADOPTION_POLICY),
            ("kflare.dev/pause", names::PAUSED),
            ("kflare.dev/Paused", names::PAUSED),
            ("kflare.dev/reconcile", names::RECONCILE_AT),
            ("kflare.dev/drift-check-intervall", names::DRIFT_CHECK_INTERVAL),
            ("kflare.dev/drift-check", names::DRIFT_CHECK_INTERVAL),
            ("kflare.dev/adopt", names::ADOPTION_POLICY),
        ] {
            assert_eq!(meant(slip), Some(meant_one), "{slip}");
        }
    }

    #[test]
    fn what_is_far_from_ours_is_no_slip() {
        for other in [
            "kflare.dev/owner",
            "kflare.dev/note",
            "kflare.dev/source",
            "kflare.dev/policy",
            "kflare.dev/zone-id",
            "kflare.dev/bindings-policy",
            "kflare.dev/",
        ] {
            assert_eq!(meant(other), None, "{other}");
        }
    }

    /// So that a name that is added later does not turn resources invalid for an older kflare.
    #[test]
    fn none_of_ours_is_a_slip_of_another() {
        for name in names::ANNOTATIONS {
            for other in names::USER_ANNOTATIONS.into_iter().filter(|other| *other != name) {
                let apart = distance(&bare(name), &bare(other));
                assert!(apart > slips(&bare(other)), "{name} {other}: {apart}");
            }
        }
    }

    #[test]
    fn distances() {
        let apart = |a: &str, b: &str| {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            distance(&letters(a), &letters(b))
        };
        assert_eq!(apart("", ""), 0);
        assert_eq!(apart("mode", "mode"), 0);
        assert_eq!(apart("", "mode"), 4);
        assert_eq!(apart("mdoe", "mode"), 1);
        assert_eq!(apart("kitten", "sitting"), 3);
    }
}
