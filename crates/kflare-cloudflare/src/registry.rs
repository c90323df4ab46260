//! Which token uses which budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::Instant;

use crate::credential::{Credential, CredentialId, Fingerprint};
use crate::metrics::Metrics;
use crate::scheduler::{BudgetKey, Scheduler};

/// The tokens in use and those used a short while ago.
///
/// Cloudflare counts per user, not per token. A token that replaces another is most likely the same user's, so it
/// takes over the budget: otherwise every rotation would start with a fresh allowance. For the same reason a budget
/// outlives its last client by one window.
#[derive(Default)]
pub(crate) struct Registry {
    entries: BTreeMap<Fingerprint, Entry>,
    holders: BTreeMap<String, Fingerprint>,
}

struct Entry {
    credential: Weak<Credential>,
    id: CredentialId,
    budget: BudgetKey,
    unused_since: Option<Instant>,
}

/// What the registry needs to know of its pool.
pub(crate) struct Surroundings<'a> {
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) metrics: &'a Metrics,
    pub(crate) window: Duration,
    pub(crate) seed: u64,
}

impl Registry {
    /// The credential of `token`, which `holder` uses from now on.
    pub(crate) fn credential(&mut self, holder: &str, token: SecretString, pool: &Surroundings<'_>) -> Arc<Credential> {
        self.sweep(pool);
        let fingerprint = Fingerprint::of(&token, pool.seed);
        let known = self.entries.get(&fingerprint);
        let credential = if let Some(credential) = known.and_then(|entry| entry.credential.upgrade()) {
            credential
        } else {
            let before = || {
                self.holders
                    .get(holder)
                    .and_then(|fingerprint| self.entries.get(fingerprint))
            };
            let budget = known
                .or_else(before)
                .map_or_else(|| pool.scheduler.add_budget(), |entry| entry.budget);
            let id = fingerprint.id();
            let credential = Arc::new(Credential::new(id.clone(), budget, token));
            let entry = Entry {
                credential: Arc::downgrade(&credential),
                id,
                budget,
                unused_since: None,
            };
            self.entries.insert(fingerprint, entry);
            credential
        };
        self.holders.insert(holder.to_owned(), fingerprint);
        credential
    }

    /// Forgets tokens that no client has held for a window, and the budgets that no token uses any more.
    fn sweep(&mut self, pool: &Surroundings<'_>) {
        let now = Instant::now();
        let mut gone = Vec::new();
        self.entries.retain(|_, entry| {
            if entry.credential.strong_count() > 0 {
                entry.unused_since = None;
                return true;
            }
            let since = *entry.unused_since.get_or_insert(now);
            if now.duration_since(since) <= pool.window {
                return true;
            }
            pool.metrics.forget(&entry.id);
            gone.push(entry.budget);
            false
        });
        self.holders
            .retain(|_, fingerprint| self.entries.contains_key(fingerprint));
        gone.retain(|budget| self.entries.values().all(|entry| entry.budget != *budget));
        for budget in gone {
            pool.scheduler.drop_budget(budget);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Allowance;
    use crate::scheduler::Limits;

    const WINDOW: Duration = Duration::from_mins(5);

    struct Fixture {
        registry: Registry,
        scheduler: Arc<Scheduler>,
        metrics: Metrics,
    }

    impl Fixture {
        fn new() -> Self {
            let metrics = Metrics::unregistered();
            let limits = Limits {
                allowance: Allowance::new(10, WINDOW),
                max_in_flight: 1,
                max_wait: Duration::from_secs(1),
            };
            Self {
                registry: Registry::default(),
                scheduler: Scheduler::new(limits, metrics.clone()),
                metrics,
            }
        }

        fn client(&mut self, holder: &str, number: u32) -> Arc<Credential> {
            let pool = Surroundings {
                scheduler: &self.scheduler,
                metrics: &self.metrics,
                window: WINDOW,
                seed: 1,
            };
            self.registry
                .credential(holder, SecretString::from(format!("sim-token-{number}")), &pool)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_token_is_one_credential_whoever_holds_it() {
        let mut fixture = Fixture::new();
        let first = fixture.client("a", 1);
        assert!(Arc::ptr_eq(&first, &fixture.client("b", 1)));
        assert_ne!(first.budget, fixture.client("c", 2).budget);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rotated_token_takes_the_budget_over() {
        let mut fixture = Fixture::new();
        let first = fixture.client("a", 1);
        let second = fixture.client("a", 2);
        assert_eq!(first.budget, second.budget);
        assert_ne!(first.id, second.id);
        // The other holder of the old token follows.
        let _other = fixture.client("b", 1);
        assert_eq!(fixture.client("b", 2).budget, first.budget);
        // A token that has a budget keeps it.
        let own = fixture.client("c", 3);
        assert_eq!(fixture.client("a", 3).budget, own.budget);
        assert_ne!(own.budget, first.budget);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_outlives_its_last_client_by_a_window() {
        let mut fixture = Fixture::new();
        let budget = fixture.client("a", 1).budget;
        fixture.client("z", 99);
        tokio::time::advance(WINDOW).await;
        assert_eq!(fixture.client("b", 1).budget, budget, "still remembered");
        fixture.client("z", 99);
        tokio::time::advance(WINDOW + Duration::from_secs(1)).await;
        let fresh = fixture.client("b", 1);
        assert_ne!(fresh.budget, budget, "forgotten after a window");
        assert!(fixture.registry.entries.values().all(|entry| entry.budget != budget));
        assert!(
            !fixture.registry.holders.contains_key("a"),
            "its holder is forgotten too"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_in_use_is_never_forgotten() {
        let mut fixture = Fixture::new();
        let held = fixture.client("a", 1);
        for _ in 0..5 {
            tokio::time::advance(WINDOW * 2).await;
            fixture.client("z", 99);
        }
        assert!(Arc::ptr_eq(&held, &fixture.client("a", 1)));
    }
}
