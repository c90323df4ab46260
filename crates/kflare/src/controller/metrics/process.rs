//! What the process itself uses, under the names every Prometheus client has for it, from `/proc`.

use std::{
    fs,
    sync::{Mutex, PoisonError},
};

use prometheus::{
    Counter, Gauge, IntGauge, IntGaugeVec, Opts, Registry,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Ticks a second in `/proc/self/stat`. Linux has 100 on every architecture that kflare is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Registers the series.
///
/// | name | meaning |
/// | --- | --- |
/// | `process_resident_memory_bytes` | memory in use |
/// | `process_virtual_memory_bytes` | address space in use |
/// | `process_cpu_seconds_total` | CPU time used, user and system |
/// | `process_open_fds` | open file descriptors |
/// | `process_start_time_seconds` | when the process started, in seconds since 1970 |
/// | `kflare_build_info` | always 1; the label `version` says which kflare this is |
pub fn register(registry: &Registry) -> prometheus::Result<()> {
    let build = IntGaugeVec::new(Opts::new("kflare_build_info", "Which kflare this is"), &["version"])?;
    build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
    registry.register(Box::new(build))?;
    registry.register(Box::new(Process::new()?))
}

/// Read anew at every scrape.
struct Process {
    resident: IntGauge,
    address_space: IntGauge,
    cpu: Counter,
    open_files: IntGauge,
    started: Gauge,
    /// One scrape at a time: the counter is set by its difference.
    reading: Mutex<()>,
}

impl Process {
    fn new() -> prometheus::Result<Self> {
        let started = Gauge::new(
            "process_start_time_seconds",
            "Start of the process, in seconds since 1970",
        )?;
        #[allow(clippy::cast_precision_loss)] // a time of this century
        started.set(jiff::Timestamp::now().as_second() as f64);
        Ok(Self {
            resident: IntGauge::new("process_resident_memory_bytes", "Resident memory, in bytes")?,
            address_space: IntGauge::new("process_virtual_memory_bytes", "Virtual memory, in bytes")?,
            cpu: Counter::new("process_cpu_seconds_total", "User and system CPU time, in seconds")?,
            open_files: IntGauge::new("process_open_fds", "Open file descriptors")?,
            started,
            reading: Mutex::new(()),
        })
    }

    fn parts(&self) -> [&dyn Collector; 5] {
        [
            &self.resident,
            &self.address_space,
            &self.cpu,
            &self.open_files,
            &self.started,
        ]
    }

    /// What cannot be read keeps its last value.
    fn read(&self) {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(bytes) = kilobytes(&status, "VmRSS:") {
            self.resident.set(bytes);
        }
        if let Some(bytes) = kilobytes(&status, "VmSize:") {
            self.address_space.set(bytes);
        }
        if let Some(seconds) = fs::read_to_string("/proc/self/stat")
            .ok()
            .as_deref()
            .and_then(cpu_seconds)
        {
            self.cpu.inc_by((seconds - self.cpu.get()).max(0.0));
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            self.open_files.set(i64::try_from(files.count()).unwrap_or(i64::MAX));
        }
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.parts().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.read();
        self.parts().into_iter().flat_map(Collector::collect).collect()
    }
}

/// A line of `/proc/self/status`, in bytes.
fn kilobytes(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// `utime` and `stime` of `/proc/self/stat`: fields 14 and 15, counted from 1. Field 2 is the name of the program, in
/// parentheses, which may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut ticks = after_name.split_whitespace().skip(11);
    let user: f64 = ticks.next()?.parse().ok()?;
    let system: f64 = ticks.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_read_as_documented() {
        let status = "Name:\tkflare\nVmSize:\t  200000 kB\nVmRSS:\t   12345 kB\nThreads:\t2\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(12_345 * 1024));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 2 0 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("42"), None);
    }

    #[test]
    fn this_process_uses_memory_and_time() {
        let registry = Registry::new();
        register(&registry).unwrap();
        let value = |name: &str| {
            let families = registry.gather();
            let family = families.iter().find(|family| family.name() == name).unwrap();
            let metric = &family.get_metric()[0];
            metric.get_gauge().get_value() + metric.get_counter().get_value()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_start_time_seconds") > 1.7e9);
        let before = value("process_cpu_seconds_total");
        while value("process_cpu_seconds_total") <= before {
            std::hint::black_box(fs::read_to_string("/proc/self/status").unwrap());
        }
    }
}
