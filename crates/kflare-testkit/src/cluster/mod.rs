//! What tests do with any cluster: install kflare, take a namespace, wait for a condition, run kubectl.

mod crds;
mod diagnosis;
mod install;
mod kubectl;
mod namespace;
mod wait;

pub use self::crds::{CrdError, apply_crds, read_crds};
pub use self::diagnosis::diagnose;
pub use self::install::{InstallError, SERVICE_ACCOUNT, SYSTEM, install};
pub use self::kubectl::{Kubectl, KubectlError};
pub use self::namespace::TestNamespace;
pub use self::wait::{WaitError, wait_for, wait_for_within};
