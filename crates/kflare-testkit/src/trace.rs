//! The record of a simulated run: one line for everything that crosses a seam.
//!
//! The same seed must give the same trace, byte for byte. So lines hold virtual time only, and nothing that depends on
//! addresses, hash order or the machine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

/// What a [`Trace`] remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceDetail {
    /// Every line.
    #[default]
    Lines,
    /// Only the digest and the count: for the many runs whose lines nobody will read.
    DigestOnly,
}

/// A trace that several seams write to. Clones share it.
#[derive(Clone, Debug)]
pub struct Trace {
    detail: TraceDetail,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    hasher: Sha256,
    count: u64,
    lines: Vec<String>,
}

impl Trace {
    /// An empty trace.
    pub fn new(detail: TraceDetail) -> Self {
        Self {
            detail,
            inner: Arc::default(),
        }
    }

    /// What it remembers.
    pub fn detail(&self) -> TraceDetail {
        self.detail
    }

    /// Appends a line.
    pub fn push(&self, line: impl Into<String>) {
        let line = line.into();
        let mut inner = self.lock();
        inner.hasher.update(&line);
        inner.hasher.update(b"\n");
        inner.count += 1;
        if self.detail == TraceDetail::Lines {
            inner.lines.push(line);
        }
    }

    /// All lines so far; none with [`TraceDetail::DigestOnly`].
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone()
    }

    /// How many lines were appended.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// The SHA-256 of all lines so far, each with its newline, in hexadecimal.
    pub fn digest(&self) -> String {
        format!("{:x}", self.lock().hasher.clone().finalize())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_needs_no_lines_and_depends_on_every_byte() {
        let digest = |detail, lines: &[&str]| {
            let trace = Trace::new(detail);
            for &line in lines {
                trace.push(line);
            }
            (trace.digest(), trace.count(), trace.lines().len())
        };
        let (full, count, kept) = digest(TraceDetail::Lines, &["one", "two"]);
        assert_eq!((count, kept), (2, 2));
        let (short, count, kept) = digest(TraceDetail::DigestOnly, &["one", "two"]);
        assert_eq!((count, kept), (2, 0));
        assert_eq!(full, short);
        assert_ne!(full, digest(TraceDetail::Lines, &["onetwo"]).0);
        assert_ne!(full, digest(TraceDetail::Lines, &["two", "one"]).0);
    }
}
