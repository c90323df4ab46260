//! What the client counts.

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, core::Collector};

use crate::credential::CredentialId;

/// The metrics of the client. A clone counts into the same series.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
    budget_left: IntGaugeVec,
    gate_closed: IntGaugeVec,
    in_flight: IntGauge,
}

impl Metrics {
    /// Registers the metrics.
    ///
    /// | name | labels | meaning |
    /// | --- | --- | --- |
    /// | `kflare_cloudflare_requests_total` | `route`, `method`, `code` | exchanges; `code` is the HTTP status, or `not_sent`, `timeout`, `interrupted` |
    /// | `kflare_cloudflare_request_seconds` | `route`, `method` | time from sending to the whole answer, in seconds |
    /// | `kflare_cloudflare_budget_left` | `credential` | calls that could have left at once after the latest one |
    /// | `kflare_cloudflare_gate_closed` | `credential` | 1 from a refusal by rate limit until the next call is let through |
    /// | `kflare_cloudflare_in_flight` | | calls in flight |
    ///
    /// `route` is a template without ids and `credential` an opaque [`CredentialId`], so the series stay few.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let metrics = Self::build()?;
        let collectors: [Box<dyn Collector>; 5] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.seconds.clone()),
            Box::new(metrics.budget_left.clone()),
            Box::new(metrics.gate_closed.clone()),
            Box::new(metrics.in_flight.clone()),
        ];
        for collector in collectors {
            registry.register(collector)?;
        }
        Ok(metrics)
    }

    /// Metrics that nobody reads, for tests and commands that run once.
    ///
    /// # Panics
    ///
    /// Never: the names and buckets are constants that a test has built.
    #[allow(clippy::expect_used)] // as said above
    pub fn unregistered() -> Self {
        Self::build().expect("the metric names are valid")
    }

    fn build() -> prometheus::Result<Self> {
        Ok(Self {
            requests: IntCounterVec::new(
                Opts::new("kflare_cloudflare_requests_total", "Exchanges with the Cloudflare API"),
                &["route", "method", "code"],
            )?,
            seconds: HistogramVec::new(
                HistogramOpts::new(
                    "kflare_cloudflare_request_seconds",
                    "Duration of exchanges with the Cloudflare API",
                )
                .buckets(vec![0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0]),
                &["route", "method"],
            )?,
            budget_left: IntGaugeVec::new(
                Opts::new(
                    "kflare_cloudflare_budget_left",
                    "Calls that could have left at once after the latest one",
                ),
                &["credential"],
            )?,
            gate_closed: IntGaugeVec::new(
                Opts::new(
                    "kflare_cloudflare_gate_closed",
                    "1 while calls wait because of a refusal by rate limit",
                ),
                &["credential"],
            )?,
            in_flight: IntGauge::new("kflare_cloudflare_in_flight", "Calls to the Cloudflare API in flight")?,
        })
    }

    pub(crate) fn exchanged(&self, route: &str, method: &str, code: &str, seconds: f64) {
        self.requests.with_label_values(&[route, method, code]).inc();
        self.seconds.with_label_values(&[route, method]).observe(seconds);
    }

    pub(crate) fn budget_left(&self, credential: &CredentialId, calls: u32) {
        self.budget_left
            .with_label_values(&[credential.as_str()])
            .set(i64::from(calls));
    }

    pub(crate) fn gate_closed(&self, credential: &CredentialId) {
        self.gate_closed.with_label_values(&[credential.as_str()]).set(1);
    }

    pub(crate) fn gate_open(&self, credential: &CredentialId) {
        self.gate_closed.with_label_values(&[credential.as_str()]).set(0);
    }

    pub(crate) fn in_flight(&self, calls: usize) {
        self.in_flight.set(i64::try_from(calls).unwrap_or(i64::MAX));
    }

    /// Drops the series of a credential that is gone.
    pub(crate) fn forget(&self, credential: &CredentialId) {
        for gauge in [&self.budget_left, &self.gate_closed] {
            // The only error is that there is no such series, which is what is wanted.
            let _ = gauge.remove_label_values(&[credential.as_str()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_valid_and_unique() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry).unwrap();
        metrics.exchanged("/zones", "GET", "200", 0.2);
        metrics.in_flight(3);
        let names: Vec<String> = registry
            .gather()
            .iter()
            .map(|family| family.name().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "kflare_cloudflare_in_flight",
                "kflare_cloudflare_request_seconds",
                "kflare_cloudflare_requests_total"
            ]
        );
        assert!(Metrics::register(&registry).is_err());
        let _ = Metrics::unregistered();
    }
}
