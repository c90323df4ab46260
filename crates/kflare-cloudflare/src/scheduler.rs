//! Who may call next: budgets, gates, lanes and the number of calls in flight.
//!
//! There is no task of its own. Whoever enters, leaves or wakes up runs [`State::grant_all`], which hands out whatever
//! can be handed out at that moment; a waiter sleeps until its budget may have the next token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::bucket::{Allowance, Bucket};
use crate::credential::CredentialId;
use crate::error::Limit;
use crate::lane::{FLOOR_EVERY, Lane};
use crate::metrics::Metrics;

/// How long a caller is told to stay away when only the number of calls in flight was in the way.
const IN_FLIGHT_RETRY: Duration = Duration::from_secs(1);

/// For so long after a call had to wait for a token, tokens are scarce: few have come in since.
const SCARCE_FOR: Duration = Duration::from_secs(10);

/// Names one budget within the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct BudgetKey(u64);

/// A call cannot be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MustWait {
    pub(crate) until: Instant,
    pub(crate) limit: Limit,
}

/// The settings of a scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) allowance: Allowance,
    pub(crate) max_in_flight: usize,
    pub(crate) max_wait: Duration,
}

pub(crate) struct Scheduler {
    state: Mutex<State>,
    /// Signalled when calls in flight came down from the maximum: waiters then wait for tokens instead.
    unblocked: Notify,
    limits: Limits,
    metrics: Metrics,
}

struct State {
    budgets: BTreeMap<BudgetKey, Budget>,
    next_budget: u64,
    next_ticket: u64,
    /// The budget served last; the next free place goes to one after it.
    turn: BudgetKey,
    in_flight: usize,
}

struct Budget {
    bucket: Bucket,
    gate: Option<Gate>,
    waiting: BTreeMap<(Lane, u64), Waiter>,
    grants: u64,
    last_grant: BTreeMap<Lane, u64>,
}

struct Gate {
    until: Instant,
    credential: CredentialId,
}

struct Waiter {
    credential: CredentialId,
    verdict: oneshot::Sender<Result<(), MustWait>>,
}

/// The right to one exchange. Dropping it frees the place.
pub(crate) struct Permit {
    scheduler: Arc<Scheduler>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.scheduler.release();
    }
}

/// A place in the queue. Dropping it leaves the queue, and gives back a grant that nobody took.
struct Ticket<'a> {
    scheduler: &'a Arc<Scheduler>,
    budget: BudgetKey,
    place: (Lane, u64),
    verdict: oneshot::Receiver<Result<(), MustWait>>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.lock();
        if let Some(budget) = state.budgets.get_mut(&self.budget) {
            budget.waiting.remove(&self.place);
        }
        drop(state);
        if matches!(self.verdict.try_recv(), Ok(Ok(()))) {
            self.scheduler.release();
        }
    }
}

impl Scheduler {
    pub(crate) fn new(limits: Limits, metrics: Metrics) -> Arc<Self> {
        let state = State {
            budgets: BTreeMap::new(),
            next_budget: 0,
            next_ticket: 0,
            turn: BudgetKey::default(),
            in_flight: 0,
        };
        let limits = Limits {
            max_in_flight: limits.max_in_flight.max(1),
            ..limits
        };
        Arc::new(Self {
            state: Mutex::new(state),
            unblocked: Notify::new(),
            limits,
            metrics,
        })
    }

    /// Makes a full budget.
    pub(crate) fn add_budget(&self) -> BudgetKey {
        let mut state = self.lock();
        let key = BudgetKey(state.next_budget);
        state.next_budget += 1;
        state.budgets.insert(
            key,
            Budget {
                bucket: Bucket::new(self.limits.allowance),
                gate: None,
                waiting: BTreeMap::new(),
                grants: 0,
                last_grant: BTreeMap::new(),
            },
        );
        key
    }

    pub(crate) fn drop_budget(&self, key: BudgetKey) {
        self.lock().budgets.remove(&key);
    }

    /// Until when the gate of a budget is closed.
    pub(crate) fn gate_closed_until(&self, key: BudgetKey) -> Option<Instant> {
        let mut state = self.lock();
        let budget = state.budgets.get_mut(&key)?;
        budget.open_gate_if_due(Instant::now(), &self.metrics);
        budget.gate.as_ref().map(|gate| gate.until)
    }

    /// Until when a call that would join the queue now is turned away, because its turn would not come in time.
    pub(crate) fn turned_away_until(&self, key: BudgetKey, lane: Lane) -> Option<Instant> {
        let deadline = Instant::now() + self.limits.max_wait;
        let state = self.lock();
        let place = (lane, state.next_ticket);
        let turn = state.budgets.get(&key)?.turn_of(place)?;
        (turn > deadline).then_some(turn)
    }

    /// Whether the burst of a budget is used up, so that calls come at its steady rate.
    pub(crate) fn is_scarce(&self, key: BudgetKey) -> bool {
        let state = self.lock();
        let next = state.budgets.get(&key).and_then(|budget| budget.bucket.next());
        next.is_some_and(|next| next + SCARCE_FOR > Instant::now())
    }

    /// Closes the gate of a budget: every waiting and every new call is turned away until then. A gate that is
    /// already closed for longer stays so. Says until when it is closed.
    pub(crate) fn close_gate(&self, key: BudgetKey, credential: &CredentialId, until: Instant) -> Instant {
        let mut state = self.lock();
        let Some(budget) = state.budgets.get_mut(&key) else {
            return until;
        };
        let until = budget.gate.as_ref().map_or(until, |gate| gate.until.max(until));
        if let Some(previous) = budget.gate.replace(Gate {
            until,
            credential: credential.clone(),
        }) {
            self.metrics.gate_open(&previous.credential);
        }
        self.metrics.gate_closed(credential);
        for (_, waiter) in std::mem::take(&mut budget.waiting) {
            // A receiver that is gone no longer wants to know.
            let _ = waiter.verdict.send(Err(MustWait {
                until,
                limit: Limit::Cloudflare,
            }));
        }
        until
    }

    /// Waits for the right to make one exchange.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        key: BudgetKey,
        lane: Lane,
        credential: &CredentialId,
    ) -> Result<Permit, MustWait> {
        let deadline = Instant::now() + self.limits.max_wait;
        let mut ticket = self.enter(key, lane, credential, deadline)?;
        loop {
            let unblocked = self.unblocked.notified();
            tokio::pin!(unblocked);
            unblocked.as_mut().enable();
            let wake = self.next_chance(key).map_or(deadline, |next| next.min(deadline));
            tokio::select! {
                biased;
                verdict = &mut ticket.verdict => {
                    return match verdict {
                        Ok(Ok(())) => Ok(Permit { scheduler: Arc::clone(self) }),
                        Ok(Err(must_wait)) => Err(must_wait),
                        // The budget was dropped under a waiting call; cannot happen while a client holds it.
                        Err(_) => Err(MustWait { until: Instant::now() + IN_FLIGHT_RETRY, limit: Limit::Budget }),
                    };
                }
                () = &mut unblocked => {}
                () = sleep_until(wake) => {
                    let mut state = self.lock();
                    state.grant_all(self);
                    if Instant::now() >= deadline && let Some(must_wait) = state.give_up(&ticket, self) {
                        return Err(must_wait);
                    }
                }
            }
        }
    }

    /// Joins the queue, unless it is known already that the turn will not come before `deadline`.
    fn enter<'a>(
        self: &'a Arc<Self>,
        key: BudgetKey,
        lane: Lane,
        credential: &CredentialId,
        deadline: Instant,
    ) -> Result<Ticket<'a>, MustWait> {
        let (sender, verdict) = oneshot::channel();
        let mut state = self.lock();
        let place = (lane, state.next_ticket);
        state.next_ticket += 1;
        if let Some(budget) = state.budgets.get_mut(&key) {
            budget.open_gate_if_due(Instant::now(), &self.metrics);
            if let Some(gate) = &budget.gate {
                return Err(MustWait {
                    until: gate.until,
                    limit: Limit::Cloudflare,
                });
            }
            budget.waiting.insert(
                place,
                Waiter {
                    credential: credential.clone(),
                    verdict: sender,
                },
            );
        }
        state.grant_all(self);
        let blocked = state.in_flight >= self.limits.max_in_flight;
        let expected = state.budgets.get(&key).and_then(|budget| budget.expected_turn(place));
        let ticket = Ticket {
            scheduler: self,
            budget: key,
            place,
            verdict,
        };
        match expected {
            Some(until) if !blocked && until > deadline => {
                drop(state);
                drop(ticket);
                Err(MustWait {
                    until,
                    limit: Limit::Budget,
                })
            }
            _ => Ok(ticket),
        }
    }

    /// When a sleeping waiter should look again; `None` when only the end of another call can help.
    fn next_chance(&self, key: BudgetKey) -> Option<Instant> {
        let state = self.lock();
        if state.in_flight >= self.limits.max_in_flight {
            return None;
        }
        state.budgets.get(&key)?.bucket.next()
    }

    fn release(&self) {
        let mut state = self.lock();
        let was_full = state.in_flight >= self.limits.max_in_flight;
        state.in_flight = state.in_flight.saturating_sub(1);
        state.grant_all(self);
        self.metrics.in_flight(state.in_flight);
        let unblocked = was_full && state.in_flight < self.limits.max_in_flight;
        drop(state);
        if unblocked {
            self.unblocked.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Hands out free places as long as there is a waiter whose budget has a token, one budget after the other.
    fn grant_all(&mut self, scheduler: &Scheduler) {
        let now = Instant::now();
        while self.in_flight < scheduler.limits.max_in_flight {
            let turn = self.turn;
            let after_turn = |key: &BudgetKey| (*key <= turn, *key);
            let mut order: Vec<BudgetKey> = self
                .budgets
                .iter()
                .filter(|(_, budget)| !budget.waiting.is_empty())
                .map(|(key, _)| *key)
                .collect();
            order.sort_by_key(after_turn);
            let granted = order.into_iter().find(|key| {
                self.budgets
                    .get_mut(key)
                    .is_some_and(|budget| budget.grant(now, &scheduler.metrics))
            });
            let Some(key) = granted else { break };
            self.turn = key;
            self.in_flight += 1;
        }
        scheduler.metrics.in_flight(self.in_flight);
    }

    /// Takes a waiter that waited long enough out of the queue. `None` if it was granted at the last moment.
    fn give_up(&mut self, ticket: &Ticket<'_>, scheduler: &Scheduler) -> Option<MustWait> {
        let blocked = self.in_flight >= scheduler.limits.max_in_flight;
        let budget = self.budgets.get_mut(&ticket.budget)?;
        let expected = budget.expected_turn(ticket.place).filter(|_| !blocked);
        budget.waiting.remove(&ticket.place)?;
        Some(match expected {
            Some(until) => MustWait {
                until,
                limit: Limit::Budget,
            },
            None => MustWait {
                until: Instant::now() + IN_FLIGHT_RETRY,
                limit: Limit::InFlight,
            },
        })
    }
}

impl Budget {
    /// Opens a gate whose time is over. The tokens that came in meanwhile are thrown away: calls start again at the
    /// steady rate instead of all at once.
    fn open_gate_if_due(&mut self, now: Instant, metrics: &Metrics) {
        if let Some(gate) = self.gate.take_if(|gate| gate.until <= now) {
            self.bucket.drain();
            metrics.gate_open(&gate.credential);
        }
    }

    /// Grants the next waiter its exchange, if the gate is open and there is a token.
    fn grant(&mut self, now: Instant, metrics: &Metrics) -> bool {
        self.open_gate_if_due(now, metrics);
        if self.gate.is_some() {
            return false;
        }
        let Some(place) = self.next_in_line() else { return false };
        let Ok(left) = self.bucket.take() else { return false };
        let Some(waiter) = self.waiting.remove(&place) else {
            return false;
        };
        self.grants += 1;
        self.last_grant.insert(place.0, self.grants);
        metrics.budget_left(&waiter.credential, left);
        // The receiver lives as long as its ticket, and a ticket leaves the queue under this lock before it goes.
        waiter.verdict.send(Ok(())).is_ok()
    }

    fn next_in_line(&self) -> Option<(Lane, u64)> {
        if (self.grants + 1).is_multiple_of(u64::from(FLOOR_EVERY)) {
            let mut heads: Vec<(Lane, u64)> = Vec::new();
            for &(lane, ticket) in self.waiting.keys() {
                if heads.last().is_none_or(|&(last, _)| last != lane) {
                    heads.push((lane, ticket));
                }
            }
            heads
                .into_iter()
                .min_by_key(|&(lane, ticket)| (self.last_grant.get(&lane).copied().unwrap_or(0), ticket))
        } else {
            self.waiting.keys().next().copied()
        }
    }

    /// When a waiter's turn is expected by what is known now: by its lane, or by the floor of its lane, whichever
    /// comes first. `None` if it does not wait for a token.
    fn expected_turn(&self, place: (Lane, u64)) -> Option<Instant> {
        self.waiting.get(&place)?;
        self.turn_of(place)
    }

    /// As [`Self::expected_turn`], of a waiter that may only be about to come.
    fn turn_of(&self, place: (Lane, u64)) -> Option<Instant> {
        let next = self.bucket.next()?;
        let before = self.waiting.range(..place).count();
        let before_in_lane = self.waiting.range((place.0, 0)..place).count();
        let by_floor = before_in_lane.saturating_mul(FLOOR_EVERY as usize) + FLOOR_EVERY as usize - 1;
        let turns = u32::try_from(before.min(by_floor))
            .unwrap_or(u32::MAX)
            .min(FLOOR_EVERY * Lane::COUNT * 1_000);
        Some(next + self.bucket.allowance().interval().saturating_mul(turns))
    }
}
