//! The history of changes, for stale lists and for transactions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::stores::StoreUndo;
use super::{List, Tunnel, Zone, workers};
use crate::areas::dns::Record;
use crate::areas::rulesets::Ruleset;

/// How to take one change back.
#[derive(Debug)]
pub(super) enum Undo {
    Record {
        zone: String,
        id: String,
        before: Option<Arc<Record>>,
    },
    Zone {
        id: String,
        before: Option<Arc<Zone>>,
    },
    Store(StoreUndo),
    Ruleset {
        zone: String,
        id: String,
        before: Option<Arc<Ruleset>>,
    },
    List {
        id: String,
        before: Option<Arc<List>>,
    },
    Workers(workers::Undo),
    Tunnel {
        id: String,
        before: Option<Arc<Tunnel>>,
    },
    /// A change that cannot be taken back and shows in no list.
    Other,
}

/// A place in history: everything up to this many changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point(u64);

#[derive(Debug)]
struct Entry {
    number: u64,
    at: Timestamp,
    undo: Undo,
}

#[derive(Debug)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    /// The number of changes ever made.
    position: u64,
    marks: BTreeMap<String, u64>,
    history: SignedDuration,
}

impl Journal {
    pub(super) fn new(history: Duration) -> Self {
        Self {
            entries: VecDeque::new(),
            position: 0,
            marks: BTreeMap::new(),
            history: SignedDuration::try_from(history).unwrap_or(SignedDuration::MAX),
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn push(&mut self, at: Timestamp, undo: Undo) {
        self.position += 1;
        self.entries.push_back(Entry {
            number: self.position,
            at,
            undo,
        });
        let oldest_mark = self.marks.values().copied().min().unwrap_or(u64::MAX);
        let horizon = at.saturating_sub(self.history).unwrap_or(Timestamp::MIN);
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.at < horizon && entry.number <= oldest_mark)
        {
            self.entries.pop_front();
        }
    }

    /// Takes the last change out, if it is later than `position`.
    pub(super) fn pop_after(&mut self, position: u64) -> Option<Undo> {
        if self.position <= position {
            return None;
        }
        let entry = self.entries.pop_back()?;
        self.position = entry.number - 1;
        Some(entry.undo)
    }

    pub(super) fn mark(&mut self, name: String) {
        self.marks.insert(name, self.position);
    }

    pub(super) fn marked(&self, name: &str) -> Option<Point> {
        self.marks.get(name).copied().map(Point)
    }

    pub(super) fn point_before(&self, now: Timestamp, seconds: u64) -> Point {
        let back = SignedDuration::try_from(Duration::from_secs(seconds)).unwrap_or(SignedDuration::MAX);
        let then = now.saturating_sub(back).unwrap_or(Timestamp::MIN);
        let later = self.entries.iter().rev().take_while(|entry| entry.at > then).count();
        Point(self.position - later as u64)
    }

    /// The changes since `point`, latest first.
    pub(super) fn undone_since(&self, point: Point) -> impl Iterator<Item = &Undo> {
        self.entries
            .iter()
            .rev()
            .take_while(move |entry| entry.number > point.0)
            .map(|entry| &entry.undo)
    }

    pub(super) fn forget(&mut self) {
        self.entries.clear();
        self.marks.clear();
        self.position += 1;
    }
}
