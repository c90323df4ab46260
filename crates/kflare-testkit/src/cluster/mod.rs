//! What tests do with any cluster: install CRDs, take a namespace, wait for a condition, run kubectl.

mod crds;
mod diagnosis;
mod kubectl;
mod namespace;
mod wait;

pub use self::crds::{CrdError, apply_crds, read_crds};
pub use self::diagnosis::diagnose;
pub use self::kubectl::{Kubectl, KubectlError};
pub use self::namespace::TestNamespace;
pub use self::wait::{WaitError, wait_for, wait_for_within};
