//! Who this process is among the replicas, and where it runs.

use std::{
    collections::hash_map::RandomState,
    env, fs,
    hash::{BuildHasher, Hasher},
};

use super::values::Namespace;

/// Where Kubernetes tells a pod its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of a process that cannot know it.
const DEFAULT_NAMESPACE: &str = "kflare-system";

/// What the surroundings of the process say about it.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `POD_NAME`, else `HOSTNAME`.
    host: Option<String>,
    /// By the service account.
    mounted_namespace: Option<String>,
    /// `POD_NAMESPACE`.
    named_namespace: Option<String>,
}

impl Environment {
    /// Of this process.
    pub fn of_process() -> Self {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            host: variable("POD_NAME").or_else(|| variable("HOSTNAME")),
            mounted_namespace: fs::read_to_string(NAMESPACE_FILE).ok(),
            named_namespace: variable("POD_NAMESPACE"),
        }
    }

    /// Names for a certificate.
    pub fn host_names(&self) -> Vec<String> {
        ["localhost"]
            .into_iter()
            .chain(self.host.as_deref())
            .map(str::to_owned)
            .collect()
    }
}

/// The namespace of the leader Lease.
pub fn lease_namespace(flag: Option<&Namespace>, environment: &Environment) -> String {
    let known = |text: &Option<String>| text.as_deref().and_then(|text| text.trim().parse::<Namespace>().ok());
    flag.cloned()
        .or_else(|| known(&environment.mounted_namespace))
        .or_else(|| known(&environment.named_namespace))
        .map_or_else(|| DEFAULT_NAMESPACE.to_owned(), |Namespace(name)| name)
}

/// Drawn anew by every process.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Unique among all processes that contend for the Lease.
    pub name: String,
    /// Of all jitter.
    pub seed: u64,
}

impl Identity {
    /// Draws one.
    pub fn new(environment: &Environment) -> Self {
        // The standard library seeds its hash maps from the random source of the system.
        let random = || RandomState::new().build_hasher().finish();
        let host = environment.host.as_deref().unwrap_or("kflare");
        Self {
            name: format!("{host}_{:016x}", random()),
            seed: random(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_is_where_the_pod_is_unless_told_otherwise() {
        let pod = Environment {
            host: Some("kflare-7d9".to_owned()),
            mounted_namespace: Some("mounted\n".to_owned()),
            named_namespace: Some("named".to_owned()),
        };
        let flag = Namespace("chosen".to_owned());
        assert_eq!(lease_namespace(Some(&flag), &pod), "chosen");
        assert_eq!(lease_namespace(None, &pod), "mounted");
        let bare = Environment {
            mounted_namespace: None,
            ..pod
        };
        assert_eq!(lease_namespace(None, &bare), "named");
        assert_eq!(lease_namespace(None, &Environment::default()), "kflare-system");
    }

    #[test]
    fn no_two_processes_are_the_same() {
        let environment = Environment {
            host: Some("kflare-7d9".to_owned()),
            ..Environment::default()
        };
        let (one, other) = (Identity::new(&environment), Identity::new(&environment));
        assert!(one.name.starts_with("kflare-7d9_"));
        assert_ne!(one.name, other.name);
        assert_ne!(one.seed, other.seed);
        assert_eq!(environment.host_names(), ["localhost", "kflare-7d9"]);
    }
}
