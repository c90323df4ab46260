//! Names, units and bounds of all figures.

use std::fmt;

/// What a figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A measurement above this is a failure.
    AtMost(f64),
    /// What it should be; a machine that is slow or busy does not make it a failure.
    Aim(f64),
    /// Only told.
    Told,
}

/// What is measured.
#[derive(Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// What it may be.
    pub bound: Bound,
}

impl Definition {
    const fn at_most(name: &'static str, unit: &'static str, bound: f64) -> Self {
        let bound = Bound::AtMost(bound);
        Self { name, unit, bound }
    }

    const fn aim(name: &'static str, unit: &'static str, aim: f64) -> Self {
        let bound = Bound::Aim(aim);
        Self { name, unit, bound }
    }

    const fn told(name: &'static str, unit: &'static str) -> Self {
        let bound = Bound::Told;
        Self { name, unit, bound }
    }

    /// A measurement of it.
    pub const fn measured(&'static self, value: f64) -> Figure {
        Figure {
            definition: self,
            value,
        }
    }

    /// A counted measurement of it. Counts are far below what a float holds exactly.
    #[allow(clippy::cast_precision_loss)]
    pub const fn counted(&'static self, count: usize) -> Figure {
        self.measured(count as f64)
    }
}

/// A measurement. Shown as the line that `make bench` prints: `bench <name> <value> <unit>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Of what.
    pub definition: &'static Definition,
    /// The value, in the unit of the definition.
    pub value: f64,
}

impl Figure {
    /// Whether it is above a bound that it must keep.
    pub fn is_too_much(&self) -> bool {
        matches!(self.definition.bound, Bound::AtMost(bound) if self.value > bound)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Definition { name, unit, .. } = self.definition;
        let value = (self.value * 100.0).round() / 100.0;
        write!(f, "bench {name} {value} {unit}")
    }
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $how:ident($($argument:expr),*);)*) => {
        $($(#[$doc])* pub static $name: Definition = Definition::$how($($argument),*);)*

        /// Every figure there is, in the order of their table in docs/performance.md.
        pub static ALL: &[&Definition] = &[$(&$name),*];
    };
}

figures! {
    /// Calls to Cloudflare, from nothing to 1,000 records that are Ready in a free zone, the zone's own included.
    CALLS_CREATE = at_most("calls_create_1000_records_free_zone", "calls", 12.0);
    /// Virtual seconds from applying 1,000 records with their zone to all being Ready, when each call takes 50 ms.
    SECONDS_CREATE = at_most("s_create_1000_records_at_50ms_a_call", "s", 8.0);
    /// The same in real seconds, with a real API server and a release-built controller.
    REAL_SECONDS_CREATE = aim("real_s_create_1000_records_at_50ms_a_call", "s", 8.0);
    /// Calls that one drift check of 5,000 records in one zone costs.
    CALLS_DRIFT_CHECK = at_most("calls_drift_check_5000_records_one_zone", "calls", 2.0);
    /// Calls that one drift check of 2,000 resources over all kinds in five zones costs, the account's own included.
    CALLS_DRIFT_CHECK_MIXED = at_most("calls_drift_check_mixed_2000", "calls", 120.0);
    /// Calls to Cloudflare for 100 WAF custom rules applied at once, in a business zone that is Ready and has none.
    CALLS_CREATE_RULES = at_most("calls_create_100_waf_rules", "calls", 103.0);
    /// All calls in the first five minutes of a controller that finds 5,000 records Ready.
    CALLS_RESTART = at_most("calls_restart_5000_ready_records", "calls", 5.0);
    /// All writes in that time, to Cloudflare and to Kubernetes; renewals of the leader lease are not counted.
    WRITES_RESTART = at_most("writes_restart_5000_ready_records", "writes", 0.0);
    /// Writes to Kubernetes for a new record, the highest of 1,000; Events are not counted.
    WRITES_NEW_RECORD = at_most("k8s_writes_per_new_record", "writes", 3.0);
    /// Writes to Kubernetes while 1,000 records rest for two drift checks.
    WRITES_IDLE = at_most("k8s_writes_idle_two_checks_1000_records", "writes", 0.0);
    /// Resident memory with 5,000 records Ready and 100 MiB of other people's Secrets in the cluster.
    RSS_RECORDS_AND_SECRETS = at_most("rss_mib_5000_records_and_100mib_secrets", "MiB", 64.0);
    /// Resident memory with 10,000 resources over all kinds Ready in five zones.
    RSS_MIXED = at_most("rss_mib_mixed_10000", "MiB", 150.0);
    /// The highest resident memory while those Secrets are deleted.
    RSS_SECRETS_DELETED = at_most("rss_mib_peak_when_100mib_secrets_are_deleted", "MiB", 64.0);
    /// The highest resident memory while the 5,000 records are made.
    RSS_CREATING = told("rss_mib_peak_while_5000_records_are_made", "MiB");
    /// Resident memory after a restart with the 5,000 records, once they were checked.
    RSS_RESTARTED = told("rss_mib_after_restart_with_5000_records", "MiB");
    /// Resident memory with nothing to manage.
    RSS_IDLE = at_most("rss_mib_idle", "MiB", 16.0);
    /// Processor time of a drift check that finds nothing, for each 1,000 records.
    CPU_CHECK = aim("cpu_ms_noop_check_per_1000_records", "ms", 100.0);
    /// The 95th percentile of the time from a user's change to Ready for it, while a sweep of 5,000 records is under way.
    LATENCY_SWEEP = aim("p95_ms_user_change_during_full_sweep_of_5000", "ms", 2000.0);
    /// The middle of those times.
    LATENCY_SWEEP_MEDIAN = told("p50_ms_user_change_during_full_sweep_of_5000", "ms");
    /// Virtual seconds from the kill of the leader until a record applied at that moment is Ready: the longest of several.
    TAKEOVER_KILL = at_most("s_takeover_after_kill", "s", 12.0);
    /// The same after a stop by SIGTERM.
    TAKEOVER_STOP = at_most("s_takeover_after_graceful_stop", "s", 2.0);
    /// Calls for 20,000 records applied at once, a hundred in each of 200 zones that are adopted, a poison record among them.
    FLOOD_CALLS = at_most("calls_flood_20000_records_200_zones", "calls", 550.0);
    /// Virtual seconds from applying them to all (but the poison) being Ready.
    FLOOD_SECONDS = told("s_flood_20000_records_200_zones", "s");
    /// That time in relation to the shortest in which the budget lets so many calls go.
    FLOOD_RATIO = told("ratio_flood_time_to_budget_limit", "times");
    /// Writes to Kubernetes for each of those records, on average.
    FLOOD_WRITES = at_most("k8s_writes_per_record_in_flood", "writes", 3.25);
    /// The highest resident memory of the process in which cluster, Cloudflare and controller are all simulated.
    FLOOD_MEMORY = told("mib_peak_flood_whole_simulation", "MiB");
    /// The same, before the controller starts.
    FLOOD_MEMORY_BEFORE = told("mib_before_flood_whole_simulation", "MiB");
    /// How long a tenant's single change takes on average while another tenant edits a record every 50 ms, in relation to
    /// how long it takes otherwise.
    FAIRNESS_ONE = at_most("ratio_change_beside_a_record_edited_in_a_loop", "times", 2.0);
    /// The same while the other tenant edits ten records in turn.
    FAIRNESS_MANY = at_most("ratio_change_beside_ten_records_edited_in_a_loop", "times", 2.0);
    /// How long a tenant's single change takes while another tenant's 2,000 new records are made, in relation to otherwise.
    FAIRNESS_FLOOD = told("ratio_change_beside_2000_new_records", "times");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_line_with_at_most_two_decimals() {
        assert_eq!(
            RSS_IDLE.measured(15.456_789).to_string(),
            "bench rss_mib_idle 15.46 MiB"
        );
        assert_eq!(
            CALLS_CREATE.counted(11).to_string(),
            "bench calls_create_1000_records_free_zone 11 calls"
        );
    }

    #[test]
    fn only_a_bound_that_must_be_kept_can_be_missed() {
        assert!(!CALLS_CREATE.counted(12).is_too_much());
        assert!(CALLS_CREATE.counted(13).is_too_much());
        assert!(!CPU_CHECK.measured(1e9).is_too_much());
        assert!(!FLOOD_SECONDS.measured(1e9).is_too_much());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ALL.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
