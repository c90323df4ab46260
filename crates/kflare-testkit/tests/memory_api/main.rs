//! The in-memory API server under a real `kube::Client`.

#[cfg(test)]
mod determinism;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod support;
#[cfg(test)]
mod watches;
