//! The rulesets of zones.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::World;
use super::journal::{Point, Undo};
use crate::areas::rulesets::{Phase, Ruleset, RulesetKind};

impl World {
    /// A ruleset of a zone.
    pub(crate) fn ruleset(&self, zone: &str, id: &str) -> Option<&Arc<Ruleset>> {
        self.held.rulesets.get(zone)?.get(id)
    }

    /// The entry point of a phase of a zone.
    pub(crate) fn entry_point(&self, zone: &str, phase: Phase) -> Option<&Arc<Ruleset>> {
        let mut rulesets = self.held.rulesets.get(zone)?.values();
        rulesets.find(|ruleset| ruleset.phase == phase && ruleset.kind == RulesetKind::Zone)
    }

    /// The rulesets of a zone by id, as they are or as they were.
    pub(crate) fn rulesets(&self, zone: &str, at: Option<Point>) -> Vec<Arc<Ruleset>> {
        let mut rulesets = self.held.rulesets.get(zone).cloned().unwrap_or_default();
        if let Some(point) = at {
            for undo in self.journal.undone_since(point) {
                if let Undo::Ruleset { zone: of, id, before } = undo
                    && of == zone
                {
                    replace(&mut rulesets, id, before.clone());
                }
            }
        }
        rulesets.into_values().collect()
    }

    pub(crate) fn put_ruleset(&mut self, ruleset: Ruleset, now: Timestamp) {
        let zone = ruleset.zone_id.clone();
        let id = ruleset.id.clone();
        let before = self.replace_ruleset(&zone, &id, Some(Arc::new(ruleset)));
        self.journal.push(now, Undo::Ruleset { zone, id, before });
    }

    pub(crate) fn remove_ruleset(&mut self, zone: &str, id: &str, now: Timestamp) {
        if let Some(before) = self.replace_ruleset(zone, id, None) {
            let undo = Undo::Ruleset {
                zone: zone.to_owned(),
                id: id.to_owned(),
                before: Some(before),
            };
            self.journal.push(now, undo);
        }
    }

    /// Puts a ruleset in the place of what has this id, or removes that. Returns what was there.
    pub(super) fn replace_ruleset(
        &mut self,
        zone: &str,
        id: &str,
        ruleset: Option<Arc<Ruleset>>,
    ) -> Option<Arc<Ruleset>> {
        let rulesets = self.held.rulesets.entry(zone.to_owned()).or_default();
        let before = replace(rulesets, id, ruleset);
        if rulesets.is_empty() {
            self.held.rulesets.remove(zone);
        }
        before
    }
}

fn replace(
    rulesets: &mut BTreeMap<String, Arc<Ruleset>>,
    id: &str,
    ruleset: Option<Arc<Ruleset>>,
) -> Option<Arc<Ruleset>> {
    match ruleset {
        Some(ruleset) => rulesets.insert(id.to_owned(), ruleset),
        None => rulesets.remove(id),
    }
}
