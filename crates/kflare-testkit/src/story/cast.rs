//! The controllers of a story: replicas that run, die and come back, as a Deployment would have them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kflare_engine::policy::DriftCheck;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::act::{KillPoint, Setting};
use super::ledger::replica_name;
use crate::life::{Doom, Life};
use crate::simulation::{ControllerOptions, World};

/// How long a container takes to come back when nothing else is said.
const COMES_BACK: Duration = Duration::from_secs(1);

/// One replica, through all its lives.
pub struct Replica {
    now: Arc<Mutex<Now>>,
    running: JoinHandle<()>,
}

struct Now {
    life: Life,
    stop: Arc<Notify>,
    lives: u64,
    /// How the next lives end, and how long the replica is down after each.
    next: VecDeque<(Doom, Duration)>,
    down: Duration,
    over: bool,
}

fn lock(now: &Mutex<Now>) -> MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replica {
    /// Starts a replica of a cluster's controller.
    pub fn start(world: &World, setting: &Setting, cluster: usize, replica: usize) -> Self {
        let name = replica_name(cluster, replica);
        let options = ControllerOptions {
            drift_check: DriftCheck::Every(Duration::from_mins(setting.drift_minutes)),
            replica: setting.lease.then(|| name.clone()),
            ..ControllerOptions::default()
        };
        let now = Arc::new(Mutex::new(Now {
            life: Life::new("unborn"),
            stop: Arc::default(),
            lives: 0,
            next: VecDeque::new(),
            down: COMES_BACK,
            over: false,
        }));
        let running = tokio::spawn(live(world.clone(), name, options, now.clone()));
        Self { now, running }
    }

    /// Ends the life it has; the next one ends as `when` says.
    pub fn kill(&self, when: KillPoint, down: Duration) {
        let mut now = lock(&self.now);
        match when {
            KillPoint::Now => now.down = down,
            KillPoint::BeforeRequest(n) => now.next.push_back((Doom::BeforeRequest(n), down)),
            KillPoint::AfterRequest(n) => now.next.push_back((Doom::AfterRequest(n), down)),
            KillPoint::AtPoll(n) => now.next.push_back((Doom::BeforePoll(n), down)),
        }
        now.life.kill();
    }

    /// Asks it to stop.
    pub fn restart(&self, down: Duration) {
        let mut now = lock(&self.now);
        now.down = down;
        now.stop.notify_one();
    }

    /// From here on it lives as long as it can.
    pub fn recover(&self) {
        let mut now = lock(&self.now);
        now.next.clear();
        now.down = COMES_BACK;
        if now.life.is_doomed() {
            now.life.kill();
        }
    }

    /// Ends it for good.
    pub async fn end(self) {
        {
            let mut now = lock(&self.now);
            now.over = true;
            now.life.kill();
        }
        self.running.abort();
        drop(self.running.await);
    }
}

async fn live(world: World, name: String, options: ControllerOptions, now: Arc<Mutex<Now>>) {
    loop {
        let (life, stop) = {
            let mut now = lock(&now);
            if now.over {
                return;
            }
            now.lives += 1;
            let (doom, down) = now.next.pop_front().unwrap_or((Doom::None, COMES_BACK));
            now.life = Life::doomed(format!("{name}-{}", now.lives), doom);
            now.down = down;
            now.stop = Arc::default();
            (now.life.clone(), now.stop.clone())
        };
        let ended = world.run_controller_until(&life, options.clone(), stop).await;
        let how = match ended {
            None => "was killed".to_owned(),
            Some(Ok(())) => "stopped".to_owned(),
            Some(Err(error)) => format!("ended: {error}"),
        };
        world.note(format!("{} {how}", life.name()));
        life.kill();
        let down = lock(&now).down;
        sleep(down).await;
    }
}
