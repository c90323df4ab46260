//! Nobody fights over a field.

use std::time::Duration;

use serde_json::Value;

use super::Ledger;
use crate::life::Life;
use crate::story::rule::Rule;

/// Corrections of one field closer than this, after the third within [`CONTEST_WINDOW`], are a fight. The engine's first
/// pause is 20 minutes.
const CONTEST_PAUSE: Duration = Duration::from_mins(18);

/// See [`CONTEST_PAUSE`].
const CONTEST_WINDOW: Duration = Duration::from_hours(1);

impl Ledger {
    pub(super) fn check_contest(&self, life: &Life, id: &str, was: &Value, is: &Value) {
        let at = self.now();
        let mut fights = Vec::new();
        {
            let mut book = self.book();
            for (field, value) in is.as_object().into_iter().flatten() {
                // Of managed transforms each has a field of its own.
                if was[field] == *value || field.ends_with("_on") || field == "transforms" {
                    continue;
                }
                let key = (life.name().to_owned(), id.to_owned(), field.clone());
                let times = book.corrections.entry(key).or_default();
                if times.last().is_some_and(|(_, last)| last != value) {
                    times.clear();
                }
                let last = times.last().map(|(at, _)| *at);
                times.push((at, value.clone()));
                // The first may be the user's own change, and three corrections are free.
                let lately = times
                    .iter()
                    .filter(|(then, _)| at.saturating_sub(*then) < CONTEST_WINDOW)
                    .count();
                if lately > 4 && last.is_some_and(|last| at.saturating_sub(last) < CONTEST_PAUSE) {
                    fights.push(format!(
                        "{} set {field} of {id} {lately} times within an hour",
                        life.name()
                    ));
                }
            }
        }
        for fight in fights {
            self.broken(Rule::Contest, fight);
        }
    }
}
