//! Test support: a real control plane, an in-memory API server and the parts of the seeded simulation.
//!
//! - [`bench`]: the figures of `make bench`.
//! - [`control_plane`]: etcd and kube-apiserver as child processes that cannot outlive the test.
//! - [`cluster`]: what tests do with any cluster: install kflare, take a namespace, wait for a condition.
//! - [`guarded`]: the child processes behind it, and behind tests of kflare's own processes.
//! - [`memory_api`]: a Kubernetes API server as a `tower` service under a real `kube::Client`, on tokio's paused clock.
//! - [`life`]: one life of the controller under test, which can be killed at any request or poll.
//! - [`clock`]: the wall clock that goes with tokio's paused one.
//! - [`sim_transport`]: the Cloudflare simulator under the Cloudflare client, for one life.
//! - [`simulation`]: the whole controller between the two, driven by seeded users.
//! - [`story`]: seeded stories of users, neighbours and faults, and the rules that must hold in all of them.
//! - [`trace`]: the shared, byte-comparable record of everything that crossed a seam.

pub mod bench;
pub mod clock;
pub mod cluster;
pub mod control_plane;
pub mod guarded;
pub mod life;
pub mod memory_api;
pub mod sim_transport;
pub mod simulation;
pub mod story;
pub mod trace;
