//! What a process uses, from `/proc`.

use std::fs;
use std::io;
use std::time::Duration;

/// A value of `/proc/<pid>/status` in MiB, such as `VmRSS` or `VmHWM`.
pub(super) fn memory_mib(pid: u32, field: &str) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|line| {
        let rest = line.strip_prefix(field)?.strip_prefix(':')?;
        rest.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok()
    });
    value
        .map(|kib| kib / 1024.0)
        .ok_or_else(|| io::Error::other(format!("no {field} of process {pid}")))
}

/// Lets `VmHWM` start again from what is resident now.
pub(super) fn forget_peak(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// The processor time of all threads that live, in nanoseconds as the scheduler counts it.
pub(super) fn cpu(pid: u32) -> io::Result<Duration> {
    let mut total = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has ended meanwhile has nothing more to tell.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let first = text.split_whitespace().next().unwrap_or_default();
        total += first.parse::<u64>().map_err(io::Error::other)?;
    }
    Ok(Duration::from_nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processor_time_of_this_process_are_told() {
        let pid = std::process::id();
        let (now, peak) = (memory_mib(pid, "VmRSS").unwrap(), memory_mib(pid, "VmHWM").unwrap());
        assert!(0.5 < now && now <= peak, "{now} {peak}");
        assert!(cpu(pid).unwrap() > Duration::ZERO);
        assert!(memory_mib(pid, "VmNothing").is_err());
    }
}
