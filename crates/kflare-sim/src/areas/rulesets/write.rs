//! Creating, changing and deleting rulesets and their rules.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::draft::{Draft, Limits, Reader};
use super::error;
use super::phase::Phase;
use super::position::{self, Position};
use super::ruleset::{Rule, Ruleset, RulesetKind};
use crate::envelope::Refusal;
use crate::ids::is_hex32;
use crate::plan::Plan;
use crate::state::{World, Zone};

type Body = Map<String, Value>;

/// How a body changes a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleChange {
    /// What the body leaves out is dropped, as through the API.
    Replace,
    /// What the body leaves out stays, as in the dashboard.
    Merge,
}

/// Whether the ids in a body are those of the rules that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    /// They name rules that are there.
    Refer,
    /// They are given to new rules, as a seed does.
    Give,
}

/// A zone and the moment in which its rulesets are written to.
pub(crate) struct RulesetWriter<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) zone: &'a Zone,
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
}

impl RulesetWriter<'_> {
    /// Makes a ruleset of this id, or of a new one.
    pub(super) fn create(&mut self, id: Option<String>, body: &Body, ids: Ids) -> Result<Ruleset, Refusal> {
        let phase = phase_of(body)?;
        let kind = match body.get("kind").and_then(Value::as_str) {
            Some("zone") => RulesetKind::Zone,
            Some("custom") if phase == Phase::HttpRequestFirewallCustom => RulesetKind::Custom,
            Some(kind @ ("custom" | "managed" | "root")) => {
                return Err(error::not_modelled(&format!(
                    "a ruleset of the kind {kind} in the phase {} of a zone",
                    phase.name()
                )));
            }
            other => {
                let text = "it must be one of managed, custom, root and zone";
                return Err(error::invalid(other.unwrap_or_default(), text, "/kind"));
            }
        };
        let name = body.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| error::wrong("name is required", "/name"))?;
        match kind {
            RulesetKind::Zone if self.world.entry_point(&self.zone.id, phase).is_some() => {
                return Err(error::entry_point_exists(phase));
            }
            RulesetKind::Zone => {}
            RulesetKind::Custom => self.check_custom_rulesets()?,
        }
        let id = id.unwrap_or_else(|| self.world.new_id());
        let empty = Ruleset {
            id,
            zone_id: self.zone.id.clone(),
            name: name.to_owned(),
            description: String::new(),
            kind,
            phase,
            version: 0,
            rules: Vec::new(),
            last_updated: self.now,
        };
        self.fill(empty, body, ids)
    }

    /// Replaces the entry point of a phase, or makes it.
    pub(super) fn put_entry_point(&mut self, phase: Phase, body: &Body) -> Result<Ruleset, Refusal> {
        match self.world.entry_point(&self.zone.id, phase) {
            Some(existing) => {
                let existing = Ruleset::clone(existing);
                self.replace(existing, body)
            }
            None => self.make_entry_point(phase, body),
        }
    }

    /// Makes the entry point of a phase; its name is what Cloudflare gives when it is left out.
    pub(super) fn make_entry_point(&mut self, phase: Phase, body: &Body) -> Result<Ruleset, Refusal> {
        let mut body = body.clone();
        for (key, value) in [("kind", "zone"), ("phase", phase.name()), ("name", "default")] {
            body.entry(key).or_insert_with(|| Value::from(value));
        }
        self.create(None, &body, Ids::Refer)
    }

    /// Replaces what can be changed of a ruleset. Rules that the body leaves out are gone; a body without rules leaves them
    /// (unproven).
    pub(super) fn replace(&mut self, before: Ruleset, body: &Body) -> Result<Ruleset, Refusal> {
        let same = [
            ("name", before.name.as_str()),
            ("kind", before.kind.name()),
            ("phase", before.phase.name()),
        ];
        for (key, value) in same {
            match body.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text == value => {}
                Some(_) => return Err(error::wrong(format!("{key} cannot be changed"), &format!("/{key}"))),
            }
        }
        self.fill(before, body, Ids::Refer)
    }

    fn fill(&mut self, mut ruleset: Ruleset, body: &Body, ids: Ids) -> Result<Ruleset, Refusal> {
        match body.get("description") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => ruleset.description.clone_from(text),
            Some(other) => return Err(error::invalid(&other.to_string(), "it must be a text", "/description")),
        }
        match body.get("rules") {
            None | Some(Value::Null) => {}
            Some(Value::Array(bodies)) => {
                let reader = self.reader(ruleset.phase);
                let mut drafts = Vec::with_capacity(bodies.len());
                for (index, body) in bodies.iter().enumerate() {
                    let pointer = format!("/rules/{index}");
                    let body = body.as_object();
                    let body = body.ok_or_else(|| error::wrong("a rule must be an object", &pointer))?;
                    drafts.push(reader.rule(body, &pointer)?);
                }
                ruleset.rules = self.assign(&ruleset.rules, drafts, ids)?;
                self.check_number(&ruleset)?;
            }
            Some(other) => return Err(error::invalid(&other.to_string(), "it must be a list", "/rules")),
        }
        Ok(self.put(ruleset))
    }

    /// Which rules the drafts are: a rule of the same `ref` or id goes on, everything else is new.
    fn assign(&mut self, before: &[Rule], drafts: Vec<Draft>, ids: Ids) -> Result<Vec<Rule>, Refusal> {
        let mut rules: Vec<Rule> = Vec::with_capacity(drafts.len());
        for (index, draft) in drafts.into_iter().enumerate() {
            let known = match (&draft.reference, &draft.id, ids) {
                (Some(reference), ..) => before.iter().find(|rule| rule.reference == *reference),
                (None, Some(id), Ids::Refer) => before.iter().find(|rule| rule.id == *id),
                _ => None,
            };
            let rule = match known {
                Some(rule) => self.changed(rule, draft),
                None => self.new_rule(draft, ids),
            };
            if let Some(double) = rules
                .iter()
                .find(|other| other.reference == rule.reference || other.id == rule.id)
            {
                return Err(double_reference(&double.reference, &format!("/rules/{index}/ref")));
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    fn new_rule(&mut self, draft: Draft, ids: Ids) -> Rule {
        let given = draft.id.filter(|id| ids == Ids::Give && is_hex32(id));
        let id = given.unwrap_or_else(|| self.world.new_id());
        Rule {
            reference: draft.reference.unwrap_or_else(|| id.clone()),
            id,
            version: 1,
            fields: draft.fields,
            last_updated: self.now,
        }
    }

    /// A rule after a change. One that is left without `ref` has its id for it again.
    fn changed(&self, before: &Rule, draft: Draft) -> Rule {
        let reference = draft.reference.unwrap_or_else(|| before.id.clone());
        if reference == before.reference && draft.fields == before.fields {
            return before.clone();
        }
        Rule {
            id: before.id.clone(),
            reference,
            version: before.version + 1,
            fields: draft.fields,
            last_updated: self.now,
        }
    }

    /// Deletes a ruleset.
    pub(super) fn delete(&mut self, ruleset: &Ruleset) {
        self.world.remove_ruleset(&self.zone.id, &ruleset.id, self.now);
    }

    /// Adds a rule, at the end unless the body says otherwise.
    pub(super) fn add_rule(&mut self, mut ruleset: Ruleset, body: &Body) -> Result<Ruleset, Refusal> {
        let draft = self.reader(ruleset.phase).rule(body, "")?;
        let position = position::read(body)?.unwrap_or(Position::Last);
        let rule = self.new_rule(draft, Ids::Refer);
        check_reference(&ruleset.rules, &rule)?;
        position::place(&mut ruleset.rules, rule, &position)?;
        self.check_number(&ruleset)?;
        Ok(self.put(ruleset))
    }

    /// Changes a rule, moves it, or both. A body with nothing but a position only moves it.
    pub(super) fn change_rule(
        &mut self,
        mut ruleset: Ruleset,
        rule_id: &str,
        body: &Body,
        change: RuleChange,
    ) -> Result<Ruleset, Refusal> {
        let index = index_of(&ruleset, rule_id)?;
        let position = position::read(body)?;
        let before = ruleset.rules.remove(index);
        let only_moves = position.is_some() && body.len() == 1;
        let rule = if only_moves {
            before
        } else {
            let merged = match change {
                RuleChange::Replace => body.clone(),
                RuleChange::Merge => {
                    let mut merged = before.as_body();
                    merged.extend(body.clone());
                    merged
                }
            };
            let draft = self.reader(ruleset.phase).rule(&merged, "")?;
            self.changed(&before, draft)
        };
        check_reference(&ruleset.rules, &rule)?;
        position::place(&mut ruleset.rules, rule, &position.unwrap_or(Position::Kept(index)))?;
        Ok(self.put(ruleset))
    }

    /// Deletes a rule.
    pub(super) fn delete_rule(&mut self, mut ruleset: Ruleset, rule_id: &str) -> Result<Ruleset, Refusal> {
        let index = index_of(&ruleset, rule_id)?;
        ruleset.rules.remove(index);
        Ok(self.put(ruleset))
    }

    fn reader(&self, phase: Phase) -> Reader<'_> {
        Reader {
            world: self.world,
            zone: self.zone,
            phase,
            limits: self.limits,
        }
    }

    /// Whether the phase may have as many rules as it would then have; the rules of custom rulesets count too (unproven).
    fn check_number(&self, ruleset: &Ruleset) -> Result<(), Refusal> {
        if self.limits == Limits::Ignored {
            return Ok(());
        }
        let others = self.world.rulesets(&self.zone.id, None);
        let others = others
            .iter()
            .filter(|other| other.phase == ruleset.phase && other.id != ruleset.id);
        let count = ruleset.rules.len() + others.map(|other| other.rules.len()).sum::<usize>();
        let limit = ruleset.phase.max_rules(self.zone.plan);
        if count > limit {
            return Err(error::too_many_rules(ruleset.phase, count, limit));
        }
        Ok(())
    }

    fn check_custom_rulesets(&self) -> Result<(), Refusal> {
        let rulesets = self.world.rulesets(&self.zone.id, None);
        let count = 1 + rulesets
            .iter()
            .filter(|ruleset| ruleset.kind == RulesetKind::Custom)
            .count();
        let limit = match self.zone.plan {
            Plan::Free => 1,
            Plan::Pro => 2,
            Plan::Business => 5,
            Plan::Enterprise => 10,
        };
        if self.limits == Limits::Enforced && count > limit {
            return Err(error::too_many_custom_rulesets(count, limit));
        }
        Ok(())
    }

    /// Keeps a ruleset as its next version: every write makes one, whether it changed anything or not (reported by users).
    fn put(&mut self, mut ruleset: Ruleset) -> Ruleset {
        ruleset.version += 1;
        ruleset.last_updated = self.now;
        self.world.put_ruleset(ruleset.clone(), self.now);
        ruleset
    }

    /// The entry point of a phase.
    pub(super) fn entry_point(&self, phase: Phase) -> Result<Ruleset, Refusal> {
        self.world
            .entry_point(&self.zone.id, phase)
            .map(|ruleset| Ruleset::clone(ruleset))
            .ok_or_else(|| error::no_entry_point(phase))
    }
}

/// The phase that the body of a new ruleset names.
pub(super) fn phase_of(body: &Body) -> Result<Phase, Refusal> {
    Phase::find(body.get("phase").and_then(Value::as_str).unwrap_or_default())
}

fn index_of(ruleset: &Ruleset, rule_id: &str) -> Result<usize, Refusal> {
    let found = ruleset.rules.iter().position(|rule| rule.id == rule_id);
    found.ok_or_else(error::no_rule)
}

fn check_reference(others: &[Rule], rule: &Rule) -> Result<(), Refusal> {
    match others.iter().find(|other| other.reference == rule.reference) {
        Some(other) => Err(double_reference(&other.reference, "/ref")),
        None => Ok(()),
    }
}

/// The code is unproven.
fn double_reference(reference: &str, pointer: &str) -> Refusal {
    error::invalid(reference, "another rule of the ruleset has it", pointer)
}
