//! What is logged.

use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// Levels by target. A single level is about kflare's own lines: more than `info` of the libraries' is only given to those
/// who name them.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFilter(Targets);

impl LogFilter {
    /// For a subscriber.
    pub fn targets(&self) -> Targets {
        self.0.clone()
    }
}

/// Not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use error, warn, info, debug or trace, or targets with levels, such as info,kflare_engine=debug")]
pub struct InvalidFilter;

impl FromStr for LogFilter {
    type Err = InvalidFilter;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(own) = level(text.trim()) {
            return Ok(Self(
                Targets::new()
                    .with_default(own.min(LevelFilter::INFO))
                    .with_target("kflare", own),
            ));
        }
        let mut targets = Targets::new().with_default(LevelFilter::INFO);
        for part in text.split(',').map(str::trim) {
            targets = match part.split_once('=') {
                Some((target, of_target)) if is_target(target) => {
                    targets.with_target(target, level(of_target).ok_or(InvalidFilter)?)
                }
                Some(_) => return Err(InvalidFilter),
                None => targets.with_default(level(part).ok_or(InvalidFilter)?),
            };
        }
        Ok(Self(targets))
    }
}

fn is_target(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-'))
}

fn level(text: &str) -> Option<LevelFilter> {
    Some(match text.to_ascii_lowercase().as_str() {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn enabled(filter: &str, target: &str, level: Level) -> bool {
        filter
            .parse::<LogFilter>()
            .unwrap()
            .targets()
            .would_enable(target, &level)
    }

    #[test]
    fn a_level_is_about_our_own_lines() {
        assert!(enabled("debug", "kflare_engine::pass", Level::DEBUG));
        assert!(!enabled("debug", "hyper_util::client", Level::DEBUG));
        assert!(enabled("debug", "kube_runtime", Level::INFO));
        assert!(!enabled("warn", "kflare", Level::INFO));
        assert!(!enabled("warn", "kube_runtime", Level::INFO));
    }

    #[test]
    fn targets_have_levels_of_their_own() {
        let filter = "warn,kflare_engine=debug,kube_client=trace";
        assert!(enabled(filter, "kflare_engine::engine", Level::DEBUG));
        assert!(enabled(filter, "kube_client::client", Level::TRACE));
        assert!(!enabled(filter, "kflare_cloudflare", Level::INFO));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "",
            "loud",
            "kflare=loud",
            "=info",
            "info,,debug",
            "kflare_engine",
            "a b=info",
        ] {
            assert_eq!(bad.parse::<LogFilter>(), Err(InvalidFilter), "{bad}");
        }
    }
}
