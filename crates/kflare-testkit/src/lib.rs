//! Test support: a real control plane, an in-memory API server and the seeded simulation.
