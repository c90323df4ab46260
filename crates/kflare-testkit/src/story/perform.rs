//! Plays a story: sets the stage, lets things happen at their times, and lets the dust settle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kflare_api::names;
use kflare_sim::{AccountSeed, Activation, CheckOutcome, Latency, Seed, SimConfig, TokenSeed, ZoneSeed};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::act::{Setting, Story};
use super::after;
use super::cast::Replica;
use super::enact::set;
use super::identity::{target_of, text};
use super::ledger::Ledger;
use super::rule::{Rule, Violation};
use super::rulesets;
use super::stores;
use crate::memory_api::{MemoryApiConfig, ObjectId, WatchCut};
use crate::simulation::{ACCOUNT_ID, World, everything, on_paused_clock};
use crate::trace::{Trace, TraceDetail};

/// A contest with a dozen rounds can hold for hours. What Cloudflare refused for good is tried again after a day.
const SETTLES_WITHIN: Duration = Duration::from_hours(5);

/// So long nothing may be written at the end.
const QUIET: Duration = Duration::from_hours(1);

/// What a story came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Rules that were broken, in order of time.
    pub violations: Vec<Violation>,
    /// SHA-256 of the trace.
    pub digest: String,
    /// The trace, if it was kept.
    pub trace: Vec<String>,
    /// Calls to Cloudflare.
    pub calls: u64,
}

/// Plays a story from beginning to end.
pub fn play(story: &Story, detail: TraceDetail) -> Outcome {
    on_paused_clock(async {
        let stage = Stage::new(story, detail);
        let violations = stage.play(story).await;
        // The book knows the clusters, and they would know the book.
        stage.clusters[0].way.watch(None);
        let trace = stage.trace.clone();
        Outcome {
            violations,
            digest: trace.digest(),
            trace: trace.lines(),
            calls: stage.clusters[0].way.calls(),
        }
    })
}

/// What controllers wrote to a cluster, and when.
type Written = Arc<Mutex<Vec<(Duration, String)>>>;

/// The clusters of a story and the account they share.
pub struct Stage {
    /// The clusters. All have the same Cloudflare.
    pub clusters: Vec<World>,
    /// What the world is like.
    pub setting: Setting,
    /// The book.
    pub ledger: Ledger,
    /// What each cluster's controllers wrote to it, and when; Events and leases not counted.
    written: Vec<Written>,
    tokens: AtomicU64,
    trace: Trace,
}

impl Stage {
    fn new(story: &Story, detail: TraceDetail) -> Self {
        let setting = story.setting.clone();
        let trace = Trace::new(detail);
        let quick = Duration::from_millis(1);
        let cluster = |seed: u64| MemoryApiConfig {
            event_delay: quick..=Duration::from_millis(setting.event_delay_ms.max(1)),
            watch_lifetime: setting.restless_watches.then(|| {
                let cuts = [
                    WatchCut::Clean,
                    WatchCut::UnexpectedEof,
                    WatchCut::HalfLine,
                    WatchCut::ConnectionReset,
                    WatchCut::Gone,
                ];
                (Duration::from_secs(20)..=Duration::from_mins(4), cuts.to_vec())
            }),
            trace: trace.clone(),
            ..MemoryApiConfig::new(seed)
        };
        let cloudflare = SimConfig {
            latency: Latency::between(quick, Duration::from_millis(setting.latency_ms)),
            quirks: setting.quirks(),
            activation: Activation {
                after: Some(Duration::from_mins(3)),
                on_check: CheckOutcome::StaysPending,
            },
            call_log_limit: 10,
            ..SimConfig::default()
        };
        let first = World::with(cluster(story.seed), &cloudflare);
        let mut clusters = vec![first];
        for number in 1..setting.clusters {
            let seed = story.seed.wrapping_add(u64::try_from(number).unwrap_or_default() << 32);
            clusters.push(clusters[0].beside(seed, cluster(seed)));
        }
        let ledger = Ledger::new(clusters.clone(), setting.clone());
        clusters[0].way.watch(Some(Arc::new(ledger.clone())));
        let written = clusters.iter().map(|_| Arc::default()).collect();
        Self {
            clusters,
            setting,
            ledger,
            written,
            tokens: AtomicU64::new(0),
            trace,
        }
    }

    async fn play(&self, story: &Story) -> Vec<Violation> {
        self.open();
        let mut cast: Vec<Vec<Replica>> = Vec::new();
        for (cluster, world) in self.clusters.iter().enumerate() {
            self.listen(cluster);
            cast.push(
                (0..self.setting.replicas)
                    .map(|replica| Replica::start(world, &self.setting, cluster, replica))
                    .collect(),
            );
        }
        let start = Instant::now();
        for step in &story.steps {
            sleep_until(start + Duration::from_millis(step.at_ms)).await;
            self.act(&step.act, &cast);
        }
        // The longest fault.
        sleep(Duration::from_mins(3)).await;
        self.calm(&cast);
        sleep(SETTLES_WITHIN).await;
        self.check_quiet();
        after::settled(self);
        cast = self.encore(story, cast).await;
        self.farewell().await;
        for replica in cast.into_iter().flatten() {
            replica.end().await;
        }
        after::gone(self);
        after::budget(self);
        self.ledger.violations()
    }

    /// The account, the token Secrets and the account resources.
    fn open(&self) {
        let zones = self.setting.existing_zones.iter();
        let zones = zones
            .map(|name| ZoneSeed::named(name, ACCOUNT_ID).on(self.setting.plan))
            .collect();
        let seed = Seed {
            accounts: vec![AccountSeed {
                id: Some(ACCOUNT_ID.to_owned()),
                ..AccountSeed::named("Example")
            }],
            zones,
            ..Seed::default()
        };
        self.ledger.foreign(|cloudflare| drop(cloudflare.seed(&seed)));
        for world in &self.clusters {
            let token = self.new_token();
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": "token", "namespace": "kflare-system" },
                "data": { "CF_API_TOKEN": base64(&token) },
            });
            let account = json!({
                "apiVersion": names::API_VERSION, "kind": "CloudflareAccount",
                "metadata": { "name": "main" },
                "spec": { "accountID": ACCOUNT_ID, "tokenSecretRef": { "name": "token", "namespace": "kflare-system", "key": "CF_API_TOKEN" } },
            });
            for object in [secret, account] {
                drop(world.api.create(object));
            }
        }
    }

    pub(super) fn new_token(&self) -> String {
        let value = format!("simulated-token-number-{}", self.tokens.fetch_add(1, Ordering::Relaxed));
        let token = if self.setting.account_token {
            TokenSeed::of_account(&value, ACCOUNT_ID, everything())
        } else {
            TokenSeed::of_user(&value, everything())
        };
        drop(self.clusters[0].cloudflare.seed(&Seed {
            tokens: vec![token],
            ..Seed::default()
        }));
        value
    }

    /// The token that a cluster's Secret holds.
    pub fn token(&self, cluster: usize) -> String {
        let secret = self.clusters[cluster]
            .api
            .get(&ObjectId::namespaced::<Secret>("kflare-system", "token"));
        unbase64(&text(&secret.unwrap_or_default()["data"]["CF_API_TOKEN"]))
    }

    /// Notes when controllers write to a cluster.
    fn listen(&self, cluster: usize) {
        let world = &self.clusters[cluster];
        let (written, clock) = (self.written[cluster].clone(), world.api.clock());
        world.api.before_each(move |_, request| {
            if request.writes()
                && request.resource != "events.events.k8s.io"
                && request.resource != "leases.coordination.k8s.io"
            {
                let what = format!("{} {}", request.resource, request.name.as_deref().unwrap_or_default());
                lock(&written).push((clock.elapsed(), what));
            }
        });
    }

    /// Nothing fails any more.
    fn calm(&self, cast: &[Vec<Replica>]) {
        self.clusters[0].cloudflare.clear_faults();
        self.clusters[0].way.restore();
        for world in &self.clusters {
            world.api.heal();
            world.note("calm");
        }
        cast.iter().flatten().for_each(Replica::recover);
    }

    fn check_quiet(&self) {
        for (cluster, written) in self.written.iter().enumerate() {
            let now = self.clusters[cluster].elapsed();
            let lately: Vec<String> = lock(written)
                .iter()
                .filter(|(at, _)| now.saturating_sub(*at) < QUIET)
                .map(|(_, what)| what.clone())
                .collect();
            let restless: Vec<&String> = lately
                .iter()
                .filter(|what| !after::may_be_restless(self, cluster, what))
                .collect();
            if !restless.is_empty() {
                self.ledger.broken(
                    Rule::Quiet,
                    format!("cluster {cluster}: in the last hour were written {restless:?}"),
                );
            }
        }
        let now = self.clusters[0].elapsed();
        let lately = self.ledger.calls().iter().filter(|call| call.at + QUIET > now).count();
        // At most three collections a cluster at a time, and what is asked for alone.
        let usual = Duration::from_mins(self.setting.drift_minutes);
        let objects: usize = self
            .clusters
            .iter()
            .map(|world| {
                // A bucket with rules takes three reads.
                let stores = stores::KINDS.iter();
                let stores =
                    stores.map(|(_, plural)| 4 * world.api.list(&format!("{plural}.{}", names::GROUP)).len() + 1);
                let all = KINDS
                    .iter()
                    .flat_map(|plural| world.api.list(&format!("{plural}.{}", names::GROUP)));
                let others = all.map(|resource| match resource["kind"].as_str() {
                    // The list and all that it does not tell.
                    Some("WorkerScript") => 6,
                    // The list, itself, its items.
                    Some("IPList") => 4,
                    Some("WorkerRoute" | "ManagedTransform") => 2,
                    // At most one entry point a rule.
                    _ => usize::from(rulesets::is_rule(&resource)),
                });
                let records = world.api.list("dnsrecords.kflare.dev").len();
                records + 12 + stores.sum::<usize>() + others.sum::<usize>()
            })
            .sum();
        let mut allowed = (checks_within(QUIET, usual) + 2) * objects;
        // Who asks for more gets more: each time a list and one that it lacks, or two that are asked for alone.
        for interval in after::intervals_asked_for(self).filter(|it| *it < usual) {
            allowed += 2 * checks_within(QUIET, interval.mul_f64(0.9));
        }
        if lately > allowed {
            self.ledger.broken(
                Rule::Quiet,
                format!("{lately} calls in the last hour, with {objects} objects; {allowed} are allowed"),
            );
        }
    }

    /// The last word of users, with the controllers away: when they are back, they do what the plan said.
    async fn encore(&self, story: &Story, cast: Vec<Vec<Replica>>) -> Vec<Vec<Replica>> {
        if story.encore.is_empty() {
            return cast;
        }
        for replica in cast.into_iter().flatten() {
            replica.end().await;
        }
        for act in &story.encore {
            self.act(act, &[]);
        }
        let mut plans = Vec::new();
        for cluster in 0..self.clusters.len() {
            plans.push(after::plan(self, cluster).await);
        }
        let began = self.clusters[0].elapsed();
        let cast: Vec<Vec<Replica>> = self
            .clusters
            .iter()
            .enumerate()
            .map(|(cluster, world)| {
                (0..self.setting.replicas)
                    .map(|replica| Replica::start(world, &self.setting, cluster, replica))
                    .collect()
            })
            .collect();
        sleep(Duration::from_mins(40)).await;
        for (cluster, plan) in plans.iter().enumerate() {
            after::as_planned(self, cluster, plan, began);
        }
        cast
    }

    /// Users delete everything.
    async fn farewell(&self) {
        self.ledger.foreign(stores::empty_buckets);
        for (cluster, world) in self.clusters.iter().enumerate() {
            for kind in KINDS {
                for object in world.api.list(&format!("{kind}.{}", names::GROUP)) {
                    let target = target_of(&object);
                    // A pause would keep it for ever.
                    self.edit(cluster, &target, |object| {
                        set(&mut object["metadata"]["annotations"], names::PAUSED, None);
                    });
                    self.ledger.annotated(cluster, &target, names::PAUSED);
                    drop(world.api.delete(&ObjectId::of(&object)));
                }
            }
            drop(
                world
                    .api
                    .delete(&ObjectId::namespaced::<Secret>("kflare-system", "token")),
            );
            super::workers::delete_inputs(world);
            world.note("users delete everything");
        }
        sleep(Duration::from_hours(1)).await;
        // Rules that stay keep the lists that they name; somebody takes them away.
        if rulesets::name_lists(&self.ledger.holdings().rules) {
            self.ledger.foreign(rulesets::delete_those_that_name_lists);
            sleep(Duration::from_hours(1)).await;
        }
    }
}

/// How often something is done within a time, if it is done at an interval.
fn checks_within(time: Duration, interval: Duration) -> usize {
    usize::try_from(time.as_secs() / interval.as_secs().max(1)).unwrap_or(usize::MAX)
}

/// The kinds of stories, by plural.
pub(super) const KINDS: [&str; 21] = [
    "cloudflareaccounts",
    "zones",
    "dnsrecords",
    "kvnamespaces",
    "r2buckets",
    "d1databases",
    "queues",
    "tunnels",
    "tunnelconfigurations",
    "wafcustomrules",
    "ratelimitrules",
    "managedrulesets",
    "transformrules",
    "redirectrules",
    "cacherules",
    "configurationrules",
    "originrules",
    "iplists",
    "managedtransforms",
    "workerscripts",
    "workerroutes",
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

pub(super) fn unbase64(text: &str) -> String {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}
