//! Whether the main thread still gets to its work.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior};

/// Time between two beats.
const INTERVAL: Duration = Duration::from_secs(5);

/// After so long without a beat the main thread is stuck: no pass computes for so long without a pause.
const LIMIT: Duration = Duration::from_mins(1);

/// Beaten by the main thread, looked at by the probes' one.
#[derive(Debug)]
pub struct Heartbeat {
    started: Instant,
    /// Milliseconds from `started` to the last beat.
    last: AtomicU64,
}

impl Heartbeat {
    /// Beats once.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    /// Beats for ever. To be run as a task of the runtime that is watched.
    pub async fn keep_beating(&self) {
        let mut interval = tokio::time::interval(INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.last.store(self.elapsed(), Ordering::Relaxed);
        }
    }

    /// Whether the last beat is recent.
    pub fn is_alive(&self) -> bool {
        let silence = self.elapsed().saturating_sub(self.last.load(Ordering::Relaxed));
        Duration::from_millis(silence) <= LIMIT
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_for_more_than_a_minute_is_death() {
        let heartbeat = Heartbeat::start();
        tokio::time::advance(LIMIT).await;
        assert!(heartbeat.is_alive());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!heartbeat.is_alive());
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_runs_keeps_beating() {
        let heartbeat = Arc::new(Heartbeat::start());
        let task = tokio::spawn({
            let heartbeat = heartbeat.clone();
            async move { heartbeat.keep_beating().await }
        });
        tokio::time::sleep(10 * LIMIT).await;
        assert!(heartbeat.is_alive());
        task.abort();
        tokio::time::sleep(2 * LIMIT).await;
        assert!(!heartbeat.is_alive());
    }
}
