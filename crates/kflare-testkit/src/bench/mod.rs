//! The figures of `make bench`: what kflare costs, and within which bounds.
//!
//! - [`figure`]: what is measured, in which unit, and what it may be at most.
//! - [`counted`]: calls, writes and virtual seconds of the whole controller on a virtual clock. The same in every run, so
//!   ordinary tests assert them too.
//! - [`processes`]: memory, processor time and real seconds of a release-built controller against a real control plane.

pub mod counted;
pub mod figure;
mod mixed;
pub mod processes;
