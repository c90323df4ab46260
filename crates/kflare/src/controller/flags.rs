//! The flags of `kflare controller`. Each has an environment variable of the same name, `KFLARE_` and the flag in upper
//! case with underscores; a flag wins over its variable.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{ArgAction, Args, ValueEnum};
use kflare_cloudflare::{BaseUrl, Share};
use kflare_engine::policy::{DefaultDeletion, DriftCheck};

use super::values::{self, Given, KindNames, LeaseName, Listen, Namespace, Namespaces, PassLimit};
use crate::logging::{LogFilter, LogFormat};

/// What `--default-deletion-policy` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeletionDefault {
    /// Delete what kflare created, keep what it adopted.
    Delete,
    /// Keep everything.
    Retain,
}

impl From<DeletionDefault> for DefaultDeletion {
    fn from(flag: DeletionDefault) -> Self {
        match flag {
            DeletionDefault::Delete => Self::Delete,
            DeletionDefault::Retain => Self::Retain,
        }
    }
}

/// See the module.
#[derive(Args, Clone, Debug)]
pub struct ControllerFlags {
    /// Namespaces to watch, separated by commas; empty: all
    #[arg(
        long,
        env = "KFLARE_WATCH_NAMESPACES",
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true
    )]
    pub watch_namespaces: Namespaces,

    /// Kinds to manage, separated by commas; empty: all
    #[arg(
        long,
        env = "KFLARE_KINDS",
        value_name = "KINDS",
        default_value = "",
        hide_default_value = true
    )]
    pub kinds: KindNames,

    /// How often to look for changes made outside kflare (at least 10s, ±10 %); 0s: only when a resource changes
    #[arg(long, env = "KFLARE_DRIFT_CHECK_INTERVAL", value_name = "DURATION", default_value = "10m", value_parser = values::drift_check)]
    pub drift_check_interval: DriftCheck,

    /// What happens in Cloudflare when a resource without a deletion policy of its own is deleted
    #[arg(
        long,
        env = "KFLARE_DEFAULT_DELETION_POLICY",
        value_name = "POLICY",
        default_value = "delete"
    )]
    pub default_deletion_policy: DeletionDefault,

    /// How long one reconcile may take before it is cut off and retried; 0s: no limit
    #[arg(
        long,
        env = "KFLARE_RECONCILE_TIMEOUT",
        value_name = "DURATION",
        default_value = "5m"
    )]
    pub reconcile_timeout: PassLimit,

    /// Reconciles at a time, for each kind (1 to 256)
    #[arg(long, env = "KFLARE_CONCURRENCY", value_name = "NUMBER", default_value = "8", value_parser = values::concurrency)]
    pub concurrency: NonZeroUsize,

    /// The share of Cloudflare's 1,200 calls in five minutes that kflare may use, for each API token
    #[arg(long, env = "KFLARE_API_BUDGET", value_name = "SHARE", default_value = "80%", value_parser = values::api_budget)]
    pub api_budget: Share,

    /// Where the Cloudflare API is
    #[arg(
        long,
        env = "KFLARE_CLOUDFLARE_URL",
        value_name = "URL",
        default_value = "https://api.cloudflare.com/client/v4"
    )]
    pub cloudflare_url: BaseUrl,

    /// Let only one replica be active at a time
    #[arg(
        long,
        env = "KFLARE_LEADER_ELECT",
        value_name = "true|false",
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = values::switch
    )]
    pub leader_elect: bool,

    /// The namespace of the leader Lease; empty: the namespace of the pod, else POD_NAMESPACE, else kflare-system
    #[arg(
        long,
        env = "KFLARE_LEASE_NAMESPACE",
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub lease_namespace: Given<Namespace>,

    /// The name of the leader Lease
    #[arg(
        long,
        env = "KFLARE_LEASE_NAME",
        value_name = "NAME",
        default_value = "kflare-controller"
    )]
    pub lease_name: LeaseName,

    /// Where /metrics is served; 0: nowhere
    #[arg(
        long,
        env = "KFLARE_METRICS_ADDR",
        value_name = "ADDRESS",
        default_value = "[::]:8080"
    )]
    pub metrics_addr: Listen,

    /// Serve /metrics over HTTPS, to callers whose token may `get` it; false: plain HTTP, to everybody
    #[arg(
        long,
        env = "KFLARE_METRICS_SECURE",
        value_name = "true|false",
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set,
        value_parser = values::switch
    )]
    pub metrics_secure: bool,

    /// Directory of tls.crt and tls.key for /metrics, read again when they change; empty: a self-signed certificate
    #[arg(
        long,
        env = "KFLARE_METRICS_CERT_DIR",
        value_name = "DIRECTORY",
        default_value = "",
        hide_default_value = true
    )]
    pub metrics_cert_dir: Given<PathBuf>,

    /// Where /healthz and /readyz are served; 0: nowhere
    #[arg(
        long,
        env = "KFLARE_HEALTH_ADDR",
        value_name = "ADDRESS",
        default_value = "[::]:8081"
    )]
    pub health_addr: Listen,

    /// What is logged: error, warn, info, debug or trace, or targets such as info,kflare_engine=debug
    #[arg(long, env = "KFLARE_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub log_level: LogFilter,

    /// How lines are written
    #[arg(long, env = "KFLARE_LOG_FORMAT", value_name = "FORMAT", default_value = "json")]
    pub log_format: LogFormat,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Just {
        #[command(flatten)]
        flags: ControllerFlags,
    }

    fn parse(args: &[&str]) -> Result<ControllerFlags, clap::Error> {
        Just::try_parse_from([&["controller"], args].concat()).map(|just| just.flags)
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let flags = parse(&[]).unwrap();
        assert!(flags.watch_namespaces.as_slice().is_empty());
        assert!(flags.kinds.as_slice().is_empty());
        assert_eq!(flags.drift_check_interval, DriftCheck::Every(Duration::from_mins(10)));
        assert_eq!(flags.default_deletion_policy, DeletionDefault::Delete);
        assert_eq!(flags.reconcile_timeout, PassLimit(Some(Duration::from_mins(5))));
        assert_eq!(flags.concurrency.get(), 8);
        assert!((flags.api_budget.get() - 0.8).abs() < f64::EPSILON);
        assert_eq!(flags.cloudflare_url, BaseUrl::default());
        assert!(flags.leader_elect);
        assert_eq!(flags.lease_namespace, Given(None));
        assert_eq!(flags.lease_name, LeaseName("kflare-controller".to_owned()));
        assert_eq!(flags.metrics_addr, Listen::At("[::]:8080".parse().unwrap()));
        assert!(flags.metrics_secure);
        assert_eq!(flags.metrics_cert_dir, Given(None));
        assert_eq!(flags.health_addr, Listen::At("[::]:8081".parse().unwrap()));
        assert_eq!(flags.log_level, "info".parse().unwrap());
        assert_eq!(flags.log_format, LogFormat::Json);
    }

    #[test]
    fn every_flag_has_its_environment_variable_and_a_default() {
        let command = Just::command();
        let mut flags = 0;
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long().filter(|long| *long != "help") else {
                continue;
            };
            flags += 1;
            let variable = format!("KFLARE_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(
                arg.get_env().and_then(|env| env.to_str()),
                Some(variable.as_str()),
                "--{long}"
            );
            assert_eq!(arg.get_default_values().len(), 1, "--{long}");
            assert!(arg.get_help().is_some(), "--{long}");
        }
        assert_eq!(flags, 17);
    }

    #[test]
    fn switches_need_no_value_to_be_on() {
        assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
        assert!(!parse(&["--leader-elect=false"]).unwrap().leader_elect);
        assert!(!parse(&["--metrics-secure=false"]).unwrap().metrics_secure);
    }

    #[test]
    fn a_bad_value_is_refused_in_one_line_that_names_the_flag_and_the_way_out() {
        for (args, way_out) in [
            (["--watch-namespaces=Team"], "lower-case letters"),
            (["--kinds=Nonsense"], "the kinds are"),
            (["--drift-check-interval=5s"], "at least 10s"),
            (["--default-deletion-policy=keep"], "delete, retain"),
            (["--reconcile-timeout=5"], "5m"),
            (["--concurrency=0"], "1 to 256"),
            (["--api-budget=80"], "80%"),
            (["--cloudflare-url=api.cloudflare.com"], "https://"),
            (["--leader-elect=maybe"], "true or false"),
            (["--lease-namespace=A"], "lower-case letters"),
            (["--lease-name=A"], "lower-case letters"),
            (["--metrics-addr=8080"], ":8080"),
            (["--metrics-secure=1"], "true or false"),
            (["--health-addr=localhost"], ":8080"),
            (["--log-level=loud"], "debug"),
            (["--log-format=xml"], "json, console"),
        ] {
            let line = crate::cli::one_line(&parse(&args).unwrap_err(), |_| None);
            let flag = args[0].split('=').next().unwrap();
            assert!(line.contains(flag) && line.contains(way_out), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
