//! The values of flags: each type holds what its flag may be, and says in one line what is wrong and what to write
//! instead.

use std::{
    net::{Ipv6Addr, SocketAddr},
    num::NonZeroUsize,
    str::FromStr,
    time::Duration,
};

use kflare_cloudflare::Share;
use kflare_engine::{
    Kinds,
    policy::{DriftCheck, parse_duration},
};

/// A value a flag cannot have, with the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(String);

fn invalid<T>(message: impl Into<String>) -> Result<T, InvalidValue> {
    Err(InvalidValue(message.into()))
}

/// Drift checks more often than this would only burn the API budget.
const SHORTEST_DRIFT_CHECK: Duration = Duration::from_secs(10);

/// A pass that may take less could never end.
const SHORTEST_PASS: Duration = Duration::from_secs(1);

/// More passes at a time than this only fill the queue of the API budget.
const MOST_PASSES: usize = 256;

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// `--watch-namespaces`: names of namespaces; none means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(Vec<String>);

impl Namespaces {
    /// The names, each once.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for Namespaces {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut namespaces = Vec::new();
        for name in names(text) {
            let Namespace(name) = name.parse()?;
            if !namespaces.contains(&name) {
                namespaces.push(name);
            }
        }
        Ok(Self(namespaces))
    }
}

/// The name of a namespace: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(pub String);

impl FromStr for Namespace {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letters = text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if text.is_empty() || text.len() > 63 || !letters || text.starts_with('-') || text.ends_with('-') {
            return invalid(format!(
                "{text:?} is not the name of a namespace; use 1 to 63 lower-case letters, digits and inner hyphens"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The name of a Lease: a DNS subdomain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName(pub String);

impl FromStr for LeaseName {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > 253 || text.split('.').any(|label| label.parse::<Namespace>().is_err()) {
            return invalid("use lower-case letters, digits, and inner hyphens and dots, such as kflare-controller");
        }
        Ok(Self(text.to_owned()))
    }
}

/// `--kinds`: names of kinds; none means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindNames(Vec<String>);

impl KindNames {
    /// The names; empty means all.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// The kinds themselves.
    fn kinds(&self) -> Result<Kinds, InvalidValue> {
        if self.0.is_empty() {
            return Ok(kflare_kinds::kinds());
        }
        kflare_kinds::some_kinds(&self.0).map_err(|unknown| InvalidValue(unknown.to_string()))
    }
}

impl FromStr for KindNames {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let selected = Self(names(text).map(str::to_owned).collect());
        let kinds = selected.kinds()?;
        if !kinds.iter().any(|kind| kind.descriptor().provides_credential) {
            let all = kflare_kinds::kinds();
            let needed: Vec<&str> = all
                .iter()
                .map(kflare_engine::Kind::descriptor)
                .filter(|descriptor| descriptor.provides_credential)
                .map(|descriptor| descriptor.kind.as_ref())
                .collect();
            return invalid(format!(
                "no other kind works without its API token; add {}",
                needed.join(" or ")
            ));
        }
        Ok(selected)
    }
}

fn duration(text: &str, example: &str) -> Result<Duration, InvalidValue> {
    parse_duration(text.trim()).ok_or_else(|| {
        InvalidValue(format!(
            "not a duration; use a number with a unit (ms, s, m, h), such as {example}"
        ))
    })
}

/// Parses `--drift-check-interval`.
pub fn drift_check(text: &str) -> Result<DriftCheck, InvalidValue> {
    let interval = duration(text, "10m or 1h30m, or 0s for off")?;
    if !interval.is_zero() && interval < SHORTEST_DRIFT_CHECK {
        return invalid("too often; use at least 10s, or 0s for off");
    }
    Ok(DriftCheck::from_duration(interval))
}

/// How long one pass may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassLimit(pub Option<Duration>);

impl FromStr for PassLimit {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let limit = duration(text, "5m or 90s, or 0s for no limit")?;
        if !limit.is_zero() && limit < SHORTEST_PASS {
            return invalid("too short for any pass; use at least 1s, or 0s for no limit");
        }
        Ok(Self((!limit.is_zero()).then_some(limit)))
    }
}

/// Parses `--concurrency`.
pub fn concurrency(text: &str) -> Result<NonZeroUsize, InvalidValue> {
    match text.trim().parse::<NonZeroUsize>() {
        Ok(passes) if passes.get() <= MOST_PASSES => Ok(passes),
        _ => invalid(format!("use a whole number from 1 to {MOST_PASSES}")),
    }
}

/// Parses `--api-budget`: `80%` or `0.8`. A bare whole number is refused: `1` could mean either end of the range.
pub fn api_budget(text: &str) -> Result<Share, InvalidValue> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok().map(|percent| percent / 100.0),
        None if text.contains('.') => text.parse::<f64>().ok(),
        None => None,
    };
    share
        .filter(|share| (0.01..=1.0).contains(share))
        .and_then(|share| Share::try_from(share).ok())
        .map_or_else(|| invalid("use a share from 1% to 100%, such as 80% or 0.8"), Ok)
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// There. `[::]` means every address of both IPv6 and IPv4.
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "0" {
            return Ok(Self::Off);
        }
        let any_host = text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
        match any_host
            .map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
            .map_or_else(|| text.parse(), Ok)
        {
            Ok(address) => Ok(Self::At(address)),
            Err(_) => invalid("use an IP address and a port, such as :8080, 127.0.0.1:8080 or [::]:8080, or 0 for off"),
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// Parses a switch.
pub fn switch(text: &str) -> Result<bool, InvalidValue> {
    match text.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => invalid("use true or false"),
    }
}

/// A name that may be left empty, which means that it is found in another way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given<T>(pub Option<T>);

impl<T: FromStr> FromStr for Given<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            Ok(Self(None))
        } else {
            text.parse().map(|value| Self(Some(value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_forgive_spaces_empty_parts_and_repetition() {
        let namespaces: Namespaces = " team-a, team-b,,team-a ".parse().unwrap();
        assert_eq!(namespaces.as_slice(), ["team-a", "team-b"]);
        assert!("".parse::<Namespaces>().unwrap().as_slice().is_empty());
        for bad in ["Team", "a_b", "-a", "a-", "a.b", &"x".repeat(64)] {
            assert!(
                bad.parse::<Namespaces>()
                    .unwrap_err()
                    .to_string()
                    .contains("lower-case letters"),
                "{bad}"
            );
        }
    }

    #[test]
    fn kinds_are_known_and_include_the_one_with_the_token() {
        let all = kflare_kinds::kinds();
        let with_token = all
            .iter()
            .find(|kind| kind.descriptor().provides_credential)
            .unwrap()
            .descriptor()
            .kind
            .clone();
        let other = all
            .iter()
            .find(|kind| !kind.descriptor().provides_credential)
            .unwrap()
            .descriptor()
            .kind
            .clone();
        let selected: KindNames = format!("{with_token}, {other}").parse().unwrap();
        assert_eq!(selected.kinds().unwrap().iter().count(), 2);
        assert_eq!(
            "".parse::<KindNames>().unwrap().kinds().unwrap().iter().count(),
            all.iter().count()
        );
        let missing = other.parse::<KindNames>().unwrap_err().to_string();
        assert!(missing.contains(&format!("add {with_token}")), "{missing}");
        let unknown = "Nonsense".parse::<KindNames>().unwrap_err().to_string();
        assert!(
            unknown.contains("Nonsense") && unknown.contains(other.as_ref()),
            "{unknown}"
        );
    }

    #[test]
    fn durations_have_units_and_a_floor() {
        assert_eq!(drift_check("10m"), Ok(DriftCheck::Every(Duration::from_mins(10))));
        assert_eq!(drift_check("0s"), Ok(DriftCheck::Off));
        assert_eq!("5m".parse(), Ok(PassLimit(Some(Duration::from_mins(5)))));
        assert_eq!("0s".parse(), Ok(PassLimit(None)));
        for bad in ["5s", "10", "soon", "-10m", ""] {
            assert!(drift_check(bad).unwrap_err().to_string().contains("use "), "{bad}");
        }
        for bad in ["10ms", "5", "never"] {
            assert!(
                bad.parse::<PassLimit>().unwrap_err().to_string().contains("use "),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_budget_is_a_share_and_never_ambiguous() {
        for (text, share) in [
            ("80%", 0.8),
            ("0.8", 0.8),
            ("100%", 1.0),
            ("1.0", 1.0),
            ("1%", 0.01),
            ("0.01", 0.01),
        ] {
            assert!((api_budget(text).unwrap().get() - share).abs() < 1e-9, "{text}");
        }
        for bad in ["1", "80", "0%", "0.5%", "101%", "1.5", "-10%", "NaN%", "half", ""] {
            assert!(api_budget(bad).unwrap_err().to_string().contains("80%"), "{bad}");
        }
    }

    #[test]
    fn addresses_may_leave_out_the_host() {
        assert_eq!(":8080".parse(), Ok(Listen::At("[::]:8080".parse().unwrap())));
        assert_eq!("127.0.0.1:0".parse(), Ok(Listen::At("127.0.0.1:0".parse().unwrap())));
        assert_eq!("0".parse(), Ok(Listen::Off));
        for text in ["[::]:8080", "0"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        for bad in ["8080", "localhost:8080", ":99999", "", ":"] {
            assert!(
                bad.parse::<Listen>().unwrap_err().to_string().contains("0 for off"),
                "{bad}"
            );
        }
    }

    #[test]
    fn numbers_and_switches() {
        assert_eq!(concurrency("8").map(NonZeroUsize::get), Ok(8));
        for bad in ["0", "257", "-1", "many"] {
            assert!(concurrency(bad).unwrap_err().to_string().contains("1 to 256"), "{bad}");
        }
        assert_eq!((switch("true"), switch("false")), (Ok(true), Ok(false)));
        assert!(switch("yes").is_err());
        assert!("kflare-controller".parse::<LeaseName>().is_ok());
        assert!("Not A Lease".parse::<LeaseName>().is_err());
    }
}
