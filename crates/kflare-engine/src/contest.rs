//! Notices when somebody else keeps changing a field back, and stops fighting over it: corrections become ever rarer
//! until the other side rests.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    digest::fingerprint,
    mutation::{self, Mutation},
    plan::{Change, POSITION},
};

/// So many corrections of one field within [`WINDOW`] are a contest.
const LIMIT: usize = 3;

/// See [`LIMIT`].
const WINDOW: Duration = Duration::from_hours(1);

/// The first pause between corrections of a contested resource; doubled after each, up to [`LONGEST`].
const FIRST: Duration = Duration::from_mins(20);

/// See [`FIRST`].
const LONGEST: Duration = Duration::from_hours(24);

#[derive(Default)]
struct Contest {
    corrections: BTreeMap<String, Corrections>,
    /// Fields that a write was to put right which failed, or whose outcome nobody knows: the digest of what, and when.
    tried: BTreeMap<String, (String, Instant)>,
    hold: Option<Hold>,
}

/// How often a field was put right, and the digest of what it was put to.
#[derive(Default)]
struct Corrections {
    to: String,
    times: VecDeque<Instant>,
}

impl Contest {
    /// Fields were put right.
    fn count(&mut self, fields: impl Iterator<Item = (String, String)>, at: Instant) {
        for (path, to) in fields {
            let corrections = self.corrections.entry(path).or_default();
            if corrections.to != to {
                corrections.times.clear();
                corrections.to = to;
            }
            corrections.times.push_back(at);
        }
        if let Some(hold) = &mut self.hold {
            hold.pause = (hold.pause * 2).min(LONGEST);
            hold.until = at + hold.pause;
        }
    }

    /// The object was looked at: what was tried and does not differ was put right.
    fn settle(&mut self, differing: &[Change]) {
        let mut done = mem::take(&mut self.tried);
        done.retain(|path, _| differing.iter().all(|change| change.path != *path));
        if let Some(last) = done.values().map(|(_, at)| *at).max() {
            self.count(done.into_iter().map(|(path, (to, _))| (path, to)), last);
        }
    }

    /// A field that is to be something else than before is not fought over: what the spec refers to has become another.
    fn forget_other_wishes(&mut self, wanted: &[Change]) {
        let has_changed = |path: &String, corrections: &Corrections| {
            // A place is told by its neighbours, which come and go.
            let wanted = wanted
                .iter()
                .find(|change| change.path == *path && change.path != POSITION);
            wanted.is_some_and(|change| digest(change) != corrections.to)
        };
        let mut changed: Vec<String> = Vec::new();
        self.corrections.retain(|path, corrections| {
            let gone = has_changed(path, corrections);
            if gone {
                changed.push(path.clone());
            }
            !gone
        });
        if let Some(hold) = &mut self.hold {
            hold.fields.retain(|path| !changed.contains(path));
            if hold.fields.is_empty() {
                self.hold = None;
            }
        }
    }
}

/// Of what a field is to be: the value itself may be secret, or long.
fn digest(change: &Change) -> String {
    fingerprint(&change.to)
}

struct Hold {
    /// The fields that were fought over when it began.
    fields: BTreeSet<String>,
    until: Instant,
    pause: Duration,
}

/// What to do about drift.
#[derive(Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Correct it.
    Correct,
    /// Leave it for now.
    Hold {
        /// The fields that are fought over.
        fields: Vec<String>,
        /// When it is corrected again.
        until: Instant,
    },
}

/// Contests by UID. In memory only: a restart grants three more corrections.
#[derive(Default)]
pub struct Contests(BTreeMap<String, Contest>);

impl Contests {
    /// How many resources it keeps something about.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Whether drift in `changes` is to be corrected now.
    pub fn rule(&mut self, uid: &str, changes: &[Change], now: Instant) -> Ruling {
        let Some(contest) = self.0.get_mut(uid).filter(|_| !mutation::is(Mutation::ContestIgnored)) else {
            return Ruling::Correct;
        };
        contest.settle(changes);
        contest.forget_other_wishes(changes);
        for Corrections { times, .. } in contest.corrections.values_mut() {
            while times.front().is_some_and(|at| now.duration_since(*at) > WINDOW) {
                times.pop_front();
            }
        }
        let fought: Vec<String> = changes
            .iter()
            .map(|change| change.path.clone())
            .filter(|path| {
                contest.hold.is_some() || contest.corrections.get(path).is_some_and(|it| it.times.len() >= LIMIT)
            })
            .collect();
        if fought.is_empty() {
            return Ruling::Correct;
        }
        let hold = contest.hold.get_or_insert_with(|| Hold {
            fields: fought.iter().cloned().collect(),
            until: now + FIRST,
            pause: FIRST,
        });
        if now >= hold.until {
            Ruling::Correct
        } else {
            Ruling::Hold {
                fields: fought,
                until: hold.until,
            }
        }
    }

    /// Drift was corrected.
    pub fn corrected(&mut self, uid: &str, changes: &[Change], now: Instant) {
        let contest = self.0.entry(uid.to_owned()).or_default();
        let fields = changes.iter().map(|change| (change.path.clone(), digest(change)));
        contest.count(fields, now);
    }

    /// A correction of drift failed, which may have put some of it right: its answer was lost, or it takes several calls. The next
    /// look shows what.
    pub fn tried(&mut self, uid: &str, changes: &[Change], now: Instant) {
        if !changes.is_empty() {
            let contest = self.0.entry(uid.to_owned()).or_default();
            let fields = changes
                .iter()
                .map(|change| (change.path.clone(), (digest(change), now)));
            contest.tried.extend(fields);
        }
    }

    /// The remote object was found as it should be. A contest is over once that is so for longer than its last pause.
    pub fn at_rest(&mut self, uid: &str, now: Instant) {
        let over = self.0.get_mut(uid).is_some_and(|contest| {
            contest.settle(&[]);
            let last = contest.corrections.values().filter_map(|it| it.times.back()).max();
            let pause = contest.hold.as_ref().map_or(WINDOW, |hold| hold.pause);
            last.is_none_or(|last| now.duration_since(*last) > pause)
        });
        if over {
            self.0.remove(uid);
        }
    }

    /// The user changed the spec, or the resource is gone: the past does not count.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ttl() -> Vec<Change> {
        vec![Change {
            path: "ttl".into(),
            from: json!(300),
            to: json!(1),
            secret: false,
        }]
    }

    #[tokio::test(start_paused = true)]
    async fn who_wants_another_value_each_time_fights_nobody() {
        let mut contests = Contests::default();
        for round in 0..10 {
            let change = Change {
                to: json!(round),
                ..ttl().remove(0)
            };
            let changes = [change];
            assert_eq!(contests.rule("u", &changes, Instant::now()), Ruling::Correct);
            contests.corrected("u", &changes, Instant::now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_ends_with_the_wish_that_it_is_about() {
        let change = |path: &str, to: i32| Change {
            path: path.into(),
            to: json!(to),
            ..ttl().remove(0)
        };
        let mut contests = Contests::default();
        contests.corrected("u", &[change("comment", 1)], Instant::now());
        for _ in 0..3 {
            contests.corrected("u", &[change("content", 1)], Instant::now());
        }
        let held = contests.rule("u", &[change("content", 1), change("comment", 1)], Instant::now());
        assert!(matches!(held, Ruling::Hold { .. }));
        assert_eq!(
            contests.rule("u", &[change("content", 2)], Instant::now()),
            Ruling::Correct
        );
        assert!(!contests.0["u"].corrections.contains_key("content"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_fourth_correction_within_an_hour_waits_and_waits_longer_each_time() {
        let mut contests = Contests::default();
        let start = Instant::now();
        let mut corrections = Vec::new();
        let mut now = start;
        while now < start + Duration::from_hours(24) {
            // The other side changes it back every five minutes.
            if contests.rule("u", &ttl(), now) == Ruling::Correct {
                contests.corrected("u", &ttl(), now);
                corrections.push(now.duration_since(start).as_secs() / 60);
            }
            now += Duration::from_mins(5);
        }
        assert_eq!(corrections, [0, 5, 10, 35, 75, 155, 315, 635, 1275]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_contest_ends_when_the_other_side_rests() {
        let mut contests = Contests::default();
        let mut now = Instant::now();
        for _ in 0..3 {
            contests.corrected("u", &ttl(), now);
        }
        assert!(matches!(contests.rule("u", &ttl(), now), Ruling::Hold { ref fields, .. } if fields == &["ttl"]));
        now += FIRST;
        assert_eq!(contests.rule("u", &ttl(), now), Ruling::Correct);
        contests.corrected("u", &ttl(), now);
        contests.at_rest("u", now + Duration::from_mins(1));
        assert!(matches!(
            contests.rule("u", &ttl(), now + Duration::from_mins(2)),
            Ruling::Hold { .. }
        ));
        contests.at_rest("u", now + 2 * FIRST + Duration::from_secs(1));
        assert_eq!(contests.rule("u", &ttl(), now + 3 * FIRST), Ruling::Correct);
    }

    #[tokio::test(start_paused = true)]
    async fn a_correction_that_failed_counts_for_what_it_put_right() {
        let mut contests = Contests::default();
        let start = Instant::now();
        let both = || {
            let mut comment = ttl();
            comment[0].path = "comment".into();
            [ttl(), comment].concat()
        };
        let mut now = start;
        for _ in 0..3 {
            assert_eq!(contests.rule("u", &both(), now), Ruling::Correct);
            contests.tried("u", &both(), now);
            now += Duration::from_secs(1);
            // The TTL was put right, the comment was not.
            assert_eq!(contests.rule("u", &both()[1..], now), Ruling::Correct);
            now += Duration::from_mins(5);
        }
        assert_eq!(
            contests.rule("u", &both()[1..], now),
            Ruling::Correct,
            "never put right"
        );
        assert!(matches!(contests.rule("u", &both(), now), Ruling::Hold { ref fields, .. } if fields == &["ttl"]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_correction_without_an_answer_counts_when_all_is_found_well() {
        let mut contests = Contests::default();
        let now = Instant::now();
        for _ in 0..3 {
            contests.tried("u", &ttl(), now);
            contests.at_rest("u", now);
        }
        assert!(matches!(contests.rule("u", &ttl(), now), Ruling::Hold { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn other_fields_are_not_held_before_they_are_fought_over() {
        let mut contests = Contests::default();
        let now = Instant::now();
        for _ in 0..3 {
            contests.corrected("u", &ttl(), now);
        }
        let comment = vec![Change {
            path: "comment".into(),
            from: json!("a"),
            to: json!("b"),
            secret: false,
        }];
        assert_eq!(contests.rule("u", &comment, now), Ruling::Correct);
    }
}
