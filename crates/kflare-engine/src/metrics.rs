//! What the engine counts. The `controller_runtime_` and `workqueue_` names are those that dashboards for Go operators know.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector};

/// How a pass ended, as controller-runtime names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassResult {
    /// Nothing more to do.
    Success,
    /// To be looked at again at a time.
    RequeueAfter,
    /// Failed, and retried.
    Error,
}

impl PassResult {
    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

/// The metrics of the engine. A clone counts into the same series.
#[derive(Clone)]
pub struct Metrics {
    reconciles: IntCounterVec,
    errors: IntCounterVec,
    timeouts: IntCounterVec,
    panics: IntCounterVec,
    seconds: HistogramVec,
    depth: IntGaugeVec,
    resources: IntGaugeVec,
    drift: IntCounterVec,
    batch: HistogramVec,
    snapshot_age: GaugeVec,
    dropped_events: IntCounterVec,
    watch_age: GaugeVec,
    leader: IntGaugeVec,
    entries: IntGaugeVec,
}

impl Metrics {
    /// Registers the metrics.
    ///
    /// | name | labels | meaning |
    /// | --- | --- | --- |
    /// | `controller_runtime_reconcile_total` | `controller`, `result` | passes |
    /// | `controller_runtime_reconcile_errors_total` | `controller` | passes that failed and are retried |
    /// | `controller_runtime_reconcile_timeouts_total` | `controller` | passes cut off by `--reconcile-timeout` |
    /// | `controller_runtime_reconcile_panics_total` | `controller` | passes ended by a defect in kflare |
    /// | `controller_runtime_reconcile_time_seconds` | `controller` | duration of passes |
    /// | `workqueue_depth` | `controller` | resources that wait for a worker |
    /// | `kflare_resources` | `kind`, `ready`, `reason` | resources by their condition |
    /// | `kflare_drift_corrected_total` | `kind` | changes made outside kflare that were put right |
    /// | `kflare_batch_size` | `kind` | writes a call |
    /// | `kflare_snapshot_age_seconds` | `collection`, `scope` | age of the listings in use |
    /// | `kflare_events_dropped_total` | | Events given up because too many waited |
    /// | `kflare_watch_event_age_seconds` | `resource` | time since a watch last said anything |
    /// | `kflare_leader` | | 1 while this replica is the active one |
    /// | `kflare_entries` | `store` | what is kept in memory, by what keeps it |
    ///
    /// `controller` is the kind in lower case.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let metrics = Self::build()?;
        let collectors: Vec<Box<dyn Collector>> = vec![
            Box::new(metrics.reconciles.clone()),
            Box::new(metrics.errors.clone()),
            Box::new(metrics.timeouts.clone()),
            Box::new(metrics.panics.clone()),
            Box::new(metrics.seconds.clone()),
            Box::new(metrics.depth.clone()),
            Box::new(metrics.resources.clone()),
            Box::new(metrics.drift.clone()),
            Box::new(metrics.batch.clone()),
            Box::new(metrics.snapshot_age.clone()),
            Box::new(metrics.dropped_events.clone()),
            Box::new(metrics.watch_age.clone()),
            Box::new(metrics.leader.clone()),
            Box::new(metrics.entries.clone()),
        ];
        for collector in collectors {
            registry.register(collector)?;
        }
        Ok(metrics)
    }

    /// Metrics that nobody reads, for tests and commands that run once.
    ///
    /// # Panics
    /// Never: the names are constants.
    #[allow(clippy::expect_used)] // the names are constants; a test builds them
    pub fn unregistered() -> Self {
        Self::build().expect("the metric names are valid")
    }

    fn build() -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let gauge = |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels);
        Ok(Self {
            reconciles: counter(
                "controller_runtime_reconcile_total",
                "Reconciles by result",
                &["controller", "result"],
            )?,
            errors: counter(
                "controller_runtime_reconcile_errors_total",
                "Reconciles that failed and are retried",
                &["controller"],
            )?,
            timeouts: counter(
                "controller_runtime_reconcile_timeouts_total",
                "Reconciles that ran out of time",
                &["controller"],
            )?,
            panics: counter(
                "controller_runtime_reconcile_panics_total",
                "Reconciles ended by a defect",
                &["controller"],
            )?,
            seconds: HistogramVec::new(
                HistogramOpts::new("controller_runtime_reconcile_time_seconds", "Duration of reconciles").buckets(
                    vec![
                        0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
                    ],
                ),
                &["controller"],
            )?,
            depth: gauge("workqueue_depth", "Resources that wait for a worker", &["controller"])?,
            resources: gauge(
                "kflare_resources",
                "Resources by condition",
                &["kind", "ready", "reason"],
            )?,
            drift: counter("kflare_drift_corrected_total", "Outside changes put right", &["kind"])?,
            batch: HistogramVec::new(
                HistogramOpts::new("kflare_batch_size", "Writes a call").buckets(vec![
                    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 3500.0,
                ]),
                &["kind"],
            )?,
            snapshot_age: GaugeVec::new(
                Opts::new("kflare_snapshot_age_seconds", "Age of the listings in use"),
                &["collection", "scope"],
            )?,
            dropped_events: counter("kflare_events_dropped_total", "Events given up", &[])?,
            watch_age: GaugeVec::new(
                Opts::new(
                    "kflare_watch_event_age_seconds",
                    "Time since a watch last said anything",
                ),
                &["resource"],
            )?,
            leader: gauge("kflare_leader", "1 while this replica is active", &[])?,
            entries: gauge("kflare_entries", "Entries kept in memory", &["store"])?,
        })
    }

    fn controller(kind: &str) -> String {
        kind.to_lowercase()
    }

    /// A pass has ended.
    pub fn pass(&self, kind: &str, result: PassResult, took: Duration) {
        let controller = Self::controller(kind);
        self.reconciles
            .with_label_values(&[controller.as_str(), result.label()])
            .inc();
        if result == PassResult::Error {
            self.errors.with_label_values(&[&controller]).inc();
        }
        self.seconds
            .with_label_values(&[&controller])
            .observe(took.as_secs_f64());
    }

    /// A pass ran out of time.
    pub fn timeout(&self, kind: &str) {
        self.timeouts.with_label_values(&[&Self::controller(kind)]).inc();
    }

    /// A pass ended by a defect.
    pub fn panic(&self, kind: &str) {
        self.panics.with_label_values(&[&Self::controller(kind)]).inc();
    }

    /// How many resources wait.
    pub fn depth(&self, depth: &BTreeMap<Arc<str>, usize>) {
        for (kind, depth) in depth {
            self.depth
                .with_label_values(&[&Self::controller(kind)])
                .set(i64::try_from(*depth).unwrap_or(i64::MAX));
        }
    }

    /// Resources by kind, condition and reason; replaces what was there.
    pub fn resources(&self, counts: &BTreeMap<(String, String, String), i64>) {
        self.resources.reset();
        for ((kind, ready, reason), count) in counts {
            self.resources
                .with_label_values(&[kind.as_str(), ready.as_str(), reason.as_str()])
                .set(*count);
        }
    }

    /// A change made outside was put right.
    pub fn drift_corrected(&self, kind: &str) {
        self.drift.with_label_values(&[kind]).inc();
    }

    /// A call carried so many writes.
    #[allow(clippy::cast_precision_loss)] // at most a few thousand
    pub fn batch_size(&self, kind: &str, size: usize) {
        self.batch.with_label_values(&[kind]).observe(size as f64);
    }

    /// Ages of the listings in use; replaces what was there.
    pub fn snapshot_ages(&self, ages: &[(crate::index::CollectionKey, Duration)]) {
        self.snapshot_age.reset();
        for (key, age) in ages {
            self.snapshot_age
                .with_label_values(&[&*key.collection, &*key.scope])
                .set(age.as_secs_f64());
        }
    }

    /// An Event was given up.
    pub fn event_dropped(&self) {
        self.dropped_events.with_label_values(&[] as &[&str]).inc();
    }

    /// How long a watch has been silent.
    pub fn watch_age(&self, resource: &str, age: Duration) {
        self.watch_age.with_label_values(&[resource]).set(age.as_secs_f64());
    }

    /// How much is kept in memory, by what keeps it.
    pub fn entries(&self, sizes: impl IntoIterator<Item = (&'static str, usize)>) {
        for (store, size) in sizes {
            self.entries
                .with_label_values(&[store])
                .set(i64::try_from(size).unwrap_or(i64::MAX));
        }
    }

    /// Whether this replica is the active one.
    pub fn leader(&self, leads: bool) {
        self.leader.with_label_values(&[] as &[&str]).set(i64::from(leads));
    }
}
