//! One life of the controller under test: from a start to a kill.
//!
//! Every seam (Kubernetes, Cloudflare) that a life reaches the world through asks it first. Once dead, nothing the life
//! left running can touch the world: its requests hang for ever, before and after their effect.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use tokio::sync::Notify;

/// When a life ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doom {
    /// Only by [`Life::kill`].
    #[default]
    None,
    /// At its n-th request through any seam (the first is 1), which has no effect.
    BeforeRequest(u64),
    /// At its n-th request through any seam (the first is 1), which has its effect; the answer never arrives.
    AfterRequest(u64),
    /// Instead of the n-th poll (the first is 1) of the future given to [`Life::run`]. This enumerates every await of
    /// a controller that spawns no tasks.
    BeforePoll(u64),
}

/// What a seam has to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Serve it.
    Proceed,
    /// Do nothing at all: the life is over.
    Nothing,
    /// Let it have its effect, then [`Life::kill`], and never answer.
    DieAfterEffect,
}

/// One life. Clones are the same life.
#[derive(Clone)]
pub struct Life {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    doom: Doom,
    alive: AtomicBool,
    requests: AtomicU64,
    polls: AtomicU64,
    death: Notify,
}

impl Life {
    /// A life that ends only when it is killed. The name appears in traces.
    pub fn new(name: impl Into<String>) -> Self {
        Self::doomed(name, Doom::None)
    }

    /// A life that ends by itself.
    pub fn doomed(name: impl Into<String>, doom: Doom) -> Self {
        Self {
            inner: Arc::new(Inner {
                name: name.into(),
                doom,
                alive: AtomicBool::new(true),
                requests: AtomicU64::new(0),
                polls: AtomicU64::new(0),
                death: Notify::new(),
            }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether it can still touch the world.
    pub fn is_alive(&self) -> bool {
        self.inner.alive.load(Ordering::SeqCst)
    }

    /// Whether it ends by itself.
    pub fn is_doomed(&self) -> bool {
        self.inner.doom != Doom::None
    }

    /// Ends it.
    pub fn kill(&self) {
        self.inner.alive.store(false, Ordering::SeqCst);
        self.inner.death.notify_waiters();
    }

    /// How many requests it has made through all seams, with the one that ended it.
    pub fn requests(&self) -> u64 {
        self.inner.requests.load(Ordering::SeqCst)
    }

    /// How many times its future was polled.
    pub fn polls(&self) -> u64 {
        self.inner.polls.load(Ordering::SeqCst)
    }

    /// Completes when the life has ended.
    pub async fn ended(&self) {
        let mut death = pin!(self.inner.death.notified());
        death.as_mut().enable();
        if self.is_alive() {
            death.await;
        }
    }

    /// Completes at once while the life lasts, and never afterwards. Seams await it at the entrance and after every
    /// delay.
    pub async fn gate(&self) {
        if !self.is_alive() {
            pending::<()>().await;
        }
    }

    /// Counts a request and says what becomes of it. Seams call it once a request.
    pub fn admit(&self) -> Fate {
        if !self.is_alive() {
            return Fate::Nothing;
        }
        let number = self.inner.requests.fetch_add(1, Ordering::SeqCst) + 1;
        match self.inner.doom {
            Doom::BeforeRequest(last) if number >= last => {
                self.kill();
                Fate::Nothing
            }
            Doom::AfterRequest(last) if number >= last => Fate::DieAfterEffect,
            _ => Fate::Proceed,
        }
    }

    /// Runs the controller until it finishes (`Some`) or this life ends (`None`, the future is dropped).
    pub async fn run<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut ended = pin!(self.ended());
        let mut future = Some(Box::pin(future));
        poll_fn(move |context| {
            let over = ended.as_mut().poll(context).is_ready();
            let Some(running) = future.as_mut().filter(|_| !over && self.may_poll()) else {
                future = None;
                return Poll::Ready(None);
            };
            let polled = running.as_mut().poll(context);
            // A request made in this very poll may have ended the life.
            if !self.is_alive() {
                future = None;
                return Poll::Ready(None);
            }
            polled.map(Some)
        })
        .await
    }

    fn may_poll(&self) -> bool {
        let number = self.inner.polls.fetch_add(1, Ordering::SeqCst) + 1;
        if matches!(self.inner.doom, Doom::BeforePoll(last) if number >= last) {
            self.kill();
        }
        self.is_alive()
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Life")
            .field("name", &self.inner.name)
            .field("doom", &self.inner.doom)
            .field("alive", &self.is_alive())
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Counts its steps, one a virtual second, for ever.
    async fn tick(steps: Arc<AtomicU64>) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            steps.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_killed_life_drops_its_future_where_it_stands() {
        let (life, steps) = (Life::new("one"), Arc::new(AtomicU64::new(0)));
        let killer = life.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(3500)).await;
            killer.kill();
        });
        assert_eq!(life.run(tick(Arc::clone(&steps))).await, None);
        assert_eq!(steps.load(Ordering::SeqCst), 3);
        assert_eq!(Arc::strong_count(&steps), 1, "the future is gone");
        life.ended().await;
        assert_eq!(life.run(async { 1 }).await, None, "there is no second life");
    }

    #[tokio::test(start_paused = true)]
    async fn a_life_ends_instead_of_its_doomed_poll() {
        let (life, steps) = (Life::doomed("one", Doom::BeforePoll(3)), Arc::new(AtomicU64::new(0)));
        assert_eq!(life.run(tick(Arc::clone(&steps))).await, None);
        assert_eq!(
            steps.load(Ordering::SeqCst),
            1,
            "the first poll only starts the first second"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_finished_life_returns_its_result() {
        assert_eq!(Life::new("one").run(async { 7 }).await, Some(7));
    }

    #[test]
    fn requests_are_admitted_until_the_doomed_one() {
        let life = Life::doomed("one", Doom::BeforeRequest(2));
        assert_eq!(
            [life.admit(), life.admit(), life.admit()],
            [Fate::Proceed, Fate::Nothing, Fate::Nothing]
        );
        assert!(!life.is_alive());
        let life = Life::doomed("two", Doom::AfterRequest(2));
        assert_eq!([life.admit(), life.admit()], [Fate::Proceed, Fate::DieAfterEffect]);
        assert!(life.is_alive(), "the seam kills it after the effect");
    }
}
