//! Creating, changing and deleting records: the rules between records of one zone.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::draft;
use super::error;
use super::kind::RecordType;
use super::record::{Fields, Record};
use crate::config::Quirks;
use crate::envelope::Refusal;
use crate::state::{RecordSet, World, Zone};

/// How a body changes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// What the body leaves out stays.
    Merge,
    /// What the body leaves out takes its default.
    Overwrite,
}

/// Whether the number of records is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quota {
    Enforced,
    Ignored,
}

/// Whether records that another product manages are off limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Managed {
    Protected,
    Open,
}

/// A zone and the moment in which it is written to.
pub(crate) struct Writer<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) zone: &'a Zone,
    pub(crate) quirks: Quirks,
    pub(crate) now: Timestamp,
    pub(crate) managed: Managed,
}

impl Writer<'_> {
    pub(crate) fn create(&mut self, body: &Map<String, Value>, quota: Quota) -> Result<Record, Refusal> {
        let id = self.world.new_id();
        self.create_as(id, Map::new(), body, quota)
    }

    /// Creates a record of a given id and meta.
    pub(crate) fn create_as(
        &mut self,
        id: String,
        meta: Map<String, Value>,
        body: &Map<String, Value>,
        quota: Quota,
    ) -> Result<Record, Refusal> {
        let fields = self.fields(body)?;
        if let Some(set) = self.world.record_set(&self.zone.id) {
            check_conflicts(set, &fields, &self.zone.name, None)?;
            if quota == Quota::Enforced && set.len() >= self.zone.record_quota() {
                return Err(error::quota());
            }
        }
        let record = Record {
            id,
            zone_id: self.zone.id.clone(),
            comment_modified_on: (!fields.comment.is_empty()).then_some(self.now),
            tags_modified_on: (!fields.tags.is_empty()).then_some(self.now),
            fields,
            meta,
            created_on: self.now,
            modified_on: self.now,
        };
        self.world.put_record(record.clone(), self.now);
        Ok(record)
    }

    pub(crate) fn change(&mut self, id: &str, body: &Map<String, Value>, change: Change) -> Result<Record, Refusal> {
        let mut record = self.existing(id)?;
        let merged = match change {
            Change::Overwrite => with_type(body, record.fields.kind),
            Change::Merge => merge(&record.fields, body),
        };
        let mut fields = self.fields(&merged)?;
        if fields.kind != record.fields.kind {
            // In force since 2026-06-30 (Cloudflare announced); the code is unproven.
            let invalid = error::Invalid::content("The type of a record cannot be changed.");
            return Err(invalid.refusal(self.quirks.dns_errors));
        }
        if fields.content(self.quirks) == record.fields.content(self.quirks) && fields.kind == RecordType::Txt {
            // Quoted or not, it is the same text.
            fields.value = record.fields.value.clone();
        }
        if fields == record.fields {
            return Ok(record);
        }
        if let Some(set) = self.world.record_set(&self.zone.id) {
            check_conflicts(set, &fields, &self.zone.name, Some(id))?;
        }
        if fields.comment != record.fields.comment {
            record.comment_modified_on = Some(self.now);
        }
        if fields.tags != record.fields.tags {
            record.tags_modified_on = Some(self.now);
        }
        record.fields = fields;
        record.modified_on = self.now;
        self.world.put_record(record.clone(), self.now);
        Ok(record)
    }

    pub(crate) fn delete(&mut self, id: &str) -> Result<Record, Refusal> {
        let record = self.existing(id)?;
        self.world.remove_record(&self.zone.id, id, self.now);
        Ok(record)
    }

    fn fields(&self, body: &Map<String, Value>) -> Result<Fields, Refusal> {
        draft::fields(body, self.zone).map_err(|invalid| invalid.refusal(self.quirks.dns_errors))
    }

    fn existing(&self, id: &str) -> Result<Record, Refusal> {
        let record = self
            .world
            .record_set(&self.zone.id)
            .and_then(|set| set.get(id))
            .ok_or_else(error::no_record)?;
        if self.managed == Managed::Protected && record.is_read_only() {
            return Err(error::read_only());
        }
        Ok(Record::clone(record))
    }
}

fn with_type(body: &Map<String, Value>, kind: RecordType) -> Map<String, Value> {
    let mut body = body.clone();
    body.entry("type").or_insert_with(|| Value::String(kind.name().into()));
    body
}

/// The body that PATCH stands for. `data` is replaced as a whole, `settings` one by one; null clears.
fn merge(fields: &Fields, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut body = fields.as_body();
    for (key, value) in patch {
        match (key.as_str(), body.get_mut(key), value) {
            ("settings", Some(Value::Object(settings)), Value::Object(changes)) => settings.extend(changes.clone()),
            _ => drop(body.insert(key.clone(), value.clone())),
        }
    }
    body
}

/// Cloudflare's rules: no alias beside an address or alias of its name, a delegation beside nothing else, no record twice.
fn check_conflicts(set: &RecordSet, fields: &Fields, zone: &str, own_id: Option<&str>) -> Result<(), Refusal> {
    let is_delegation = |other: &Fields| other.kind == RecordType::Ns && other.name != zone;
    let identity = fields.identity();
    let others = set
        .named(&fields.name)
        .filter(|record| Some(record.id.as_str()) != own_id);
    let mut identical = false;
    for other in others.map(|record| &record.fields) {
        let others_kind = other.kind;
        if fields.kind == RecordType::Cname && (others_kind.is_address() || others_kind == RecordType::Cname) {
            return Err(error::conflict_with_address());
        }
        if fields.kind.is_address() && others_kind == RecordType::Cname {
            return Err(error::conflict_with_cname());
        }
        if is_delegation(fields) && others_kind != RecordType::Ns {
            return Err(error::conflict_with_others());
        }
        if fields.kind != RecordType::Ns && is_delegation(other) {
            return Err(error::conflict_with_ns());
        }
        identical |= others_kind == fields.kind && other.identity() == identity;
    }
    if identical { Err(error::identical()) } else { Ok(()) }
}
