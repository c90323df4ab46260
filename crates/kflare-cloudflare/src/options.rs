//! The settings of a pool, each of a type that holds its precondition.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use crate::clock::{SystemWallClock, WallClock};

/// The settings of a [`Pool`](crate::Pool). The defaults follow what Cloudflare documents: 1,200 calls in five minutes
/// for everything a user does, the dashboard included.
#[derive(Clone)]
pub struct PoolOptions {
    /// Where the API is. Default: `https://api.cloudflare.com/client/v4`.
    pub base_url: BaseUrl,
    /// The part of `calls_per_window` that may be used; the rest is left to people and other tools. Default: 0.8.
    pub budget_share: Share,
    /// Calls Cloudflare allows to one credential in one `window`. Default: 1,200. At least one call a window is made.
    pub calls_per_window: u32,
    /// The length of Cloudflare's window. Default: five minutes.
    pub window: Duration,
    /// Calls in flight at the same time, over all credentials. Default: 16. At least one.
    pub max_in_flight: usize,
    /// How long a call may wait for its turn before it gets [`Error::RateLimited`](crate::Error). Default: 10 s.
    pub max_wait: Duration,
    /// How long a call may take with all its waits and retries. Default: 120 s.
    pub call_timeout: Duration,
    /// Seed of the jitter between retries and of the credential ids. Default: 0; give each process its own.
    pub seed: u64,
    /// The time of day, used until Cloudflare's own is known. Default: the machine's.
    pub clock: Arc<dyn WallClock>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            base_url: BaseUrl::default(),
            budget_share: Share::default(),
            calls_per_window: 1_200,
            window: Duration::from_mins(5),
            max_in_flight: 16,
            max_wait: Duration::from_secs(10),
            call_timeout: Duration::from_mins(2),
            seed: 0,
            clock: Arc::new(SystemWallClock),
        }
    }
}

impl fmt::Debug for PoolOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolOptions")
            .field("base_url", &self.base_url)
            .field("budget_share", &self.budget_share)
            .field("calls_per_window", &self.calls_per_window)
            .field("window", &self.window)
            .field("max_in_flight", &self.max_in_flight)
            .field("max_wait", &self.max_wait)
            .field("call_timeout", &self.call_timeout)
            .finish_non_exhaustive()
    }
}

/// The base URL of the API: absolute, `http` or `https`, without query, user or trailing slash.
///
/// ```
/// use kflare_cloudflare::BaseUrl;
///
/// let url: BaseUrl = "http://127.0.0.1:8080/client/v4/".parse()?;
/// assert_eq!(url.as_str(), "http://127.0.0.1:8080/client/v4");
/// assert!("api.cloudflare.com".parse::<BaseUrl>().is_err());
/// # Ok::<(), kflare_cloudflare::InvalidBaseUrl>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

/// Why a text is no [`BaseUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBaseUrl {
    /// It does not parse as a URI.
    #[error("the base URL is not a URL")]
    Syntax,
    /// It is not `http://` or `https://`.
    #[error("the base URL must start with https:// or http://")]
    Scheme,
    /// It has a user or password before the host.
    #[error("the base URL must not hold a user or password")]
    UserInfo,
    /// It has a query.
    #[error("the base URL must not have a query")]
    Query,
}

impl BaseUrl {
    /// The URL, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for BaseUrl {
    fn default() -> Self {
        Self("https://api.cloudflare.com/client/v4".to_owned())
    }
}

impl FromStr for BaseUrl {
    type Err = InvalidBaseUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uri: Uri = text.trim().parse().map_err(|_| InvalidBaseUrl::Syntax)?;
        let scheme = uri
            .scheme_str()
            .filter(|scheme| matches!(*scheme, "http" | "https"))
            .ok_or(InvalidBaseUrl::Scheme)?;
        let authority = uri.authority().ok_or(InvalidBaseUrl::Syntax)?;
        if authority.as_str().contains('@') {
            return Err(InvalidBaseUrl::UserInfo);
        }
        if uri.query().is_some() {
            return Err(InvalidBaseUrl::Query);
        }
        Ok(Self(format!(
            "{scheme}://{authority}{}",
            uri.path().trim_end_matches('/')
        )))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a whole: more than 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

/// The number is not more than 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a share must be more than 0 and at most 1")]
pub struct InvalidShare;

impl Share {
    /// The share as a number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// This share of `whole`, rounded down, but at least 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 < share <= 1, so the product fits a u32
    pub(crate) fn of(self, whole: u32) -> u32 {
        ((f64::from(whole) * self.0).floor() as u32).max(1)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self(0.8)
    }
}

impl TryFrom<f64> for Share {
    type Error = InvalidShare;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        if share > 0.0 && share <= 1.0 {
            Ok(Self(share))
        } else {
            Err(InvalidShare)
        }
    }
}

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim().parse::<f64>().map_err(|_| InvalidShare)?.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_absolute_and_bare() {
        assert_eq!(
            "https://api.example.com//"
                .parse::<BaseUrl>()
                .map(|url| url.as_str().to_owned()),
            Ok("https://api.example.com".to_owned())
        );
        for (text, fault) in [
            ("", InvalidBaseUrl::Syntax),
            ("api.example.com", InvalidBaseUrl::Scheme),
            ("ftp://api.example.com", InvalidBaseUrl::Scheme),
            ("https://a:b@api.example.com", InvalidBaseUrl::UserInfo),
            ("https://api.example.com/?x=1", InvalidBaseUrl::Query),
        ] {
            assert_eq!(text.parse::<BaseUrl>(), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_share_is_a_part() {
        assert_eq!(Share::default().of(1_200), 960);
        assert_eq!("1".parse::<Share>().map(|share| share.of(1_200)), Ok(1_200));
        assert_eq!(Share(0.001).of(10), 1);
        assert_eq!(Share(1.0).of(0), 1);
        for text in ["0", "-0.5", "1.01", "NaN", "inf", "half"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
