//! What can go wrong with a call, and what is then known about its effect.

use std::fmt;

use http::Method;
use tokio::time::Instant;

use crate::api_error::ApiError;
use crate::credential::TokenFault;
use crate::message::Message;
use crate::request::RequestFault;
use crate::text;
use crate::transport::TransportError;

/// Why a call did not give what was asked for.
///
/// The `Display` form is one line of at most some 500 characters, fit for a condition that tenants read: it never
/// holds a token, a request body or a value from an answer that Cloudflare did not mean as an error text.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cloudflare answered, and refused.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// The call was not made, or was refused, because calls with this credential have to wait. A property of the
    /// credential, not of the object.
    #[error("{limit}")]
    RateLimited {
        /// When it is worth asking again.
        until: Instant,
        /// Whose limit it is.
        limit: Limit,
        /// The refusal, when it was this very call that met Cloudflare's limit.
        answer: Option<Box<ApiError>>,
    },
    /// There was no complete answer.
    #[error("{source}")]
    Transport {
        /// Whether the call may have been acted upon.
        outcome: Outcome,
        /// What happened.
        source: TransportError,
    },
    /// Cloudflare reported success, but the answer could not be read.
    #[error("HTTP {status} from {route}: {source}")]
    Decode {
        /// Unknown for everything but a GET: the call most likely took effect.
        outcome: Outcome,
        /// The HTTP status of the answer.
        status: u16,
        /// The route that was called.
        route: &'static str,
        /// What could not be read.
        source: DecodeError,
    },
    /// A list that cannot be the whole list. It is never returned in part: an object missing from a short list would
    /// look deleted.
    #[error("incomplete list from {route}: {reason}")]
    Incomplete {
        /// The route that was listed.
        route: &'static str,
        /// How it shows.
        reason: Incompleteness,
    },
    /// A write gate refused the call; nothing was sent. The text is the gate's reason.
    #[error("not allowed to write: {0}")]
    Refused(String),
    /// The token cannot be sent; nothing was sent.
    #[error("the API token cannot be used: {0}")]
    InvalidToken(TokenFault),
    /// The request was put together wrongly; nothing was sent. A bug in the caller.
    #[error("malformed request: {0}")]
    Malformed(RequestFault),
}

/// What is known about the effect of a call that failed. A GET has no effect, so it is always [`Outcome::NotApplied`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The call surely had no effect.
    NotApplied,
    /// The call may have taken effect: look before trying again.
    Unknown,
}

/// Whose limit made a call wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Cloudflare refused a call with this credential (429, or code 971) and all its calls wait.
    Cloudflare,
    /// Our own budget for this credential is used up for longer than a call may wait.
    Budget,
    /// Too many calls were in flight for longer than a call may wait.
    InFlight,
}

/// Why a list is not the whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incompleteness {
    /// `total_count` and the number of distinct rows differ.
    CountDiffers {
        /// What Cloudflare said there is.
        total: u64,
        /// What it listed.
        listed: u64,
    },
    /// `total_count` changed from page to page, in two attempts.
    Moving,
    /// A page, or a row of it, came again on a later one.
    PageRepeated,
    /// The list did not end within the largest number of pages that is followed.
    TooLong,
}

/// Why an answer could not be read. Carries no values from the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct DecodeError {
    /// Which kind of fault it is.
    pub fault: DecodeFault,
    text: String,
}

/// Kinds of unreadable answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeFault {
    /// Not JSON, or JSON that ends too soon.
    Syntax,
    /// JSON of an unexpected shape.
    Shape,
}

impl Error {
    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Decode { status, .. } => Some(*status),
            _ => self.api().map(|api| api.status),
        }
    }

    /// Whether Cloudflare gave this code, at any depth of a chain.
    pub fn has_code(&self, code: i64) -> bool {
        self.api().is_some_and(|api| api.has_code(code))
    }

    /// The innermost messages of Cloudflare's answer: the ones that name the actual reason.
    pub fn deepest(&self) -> Vec<&Message> {
        self.api().map_or_else(Vec::new, ApiError::deepest)
    }

    /// What is known about the effect of the call.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Api(api) => api.outcome(),
            Self::Transport { outcome, .. } | Self::Decode { outcome, .. } => *outcome,
            Self::RateLimited { .. }
            | Self::Incomplete { .. }
            | Self::Refused(_)
            | Self::InvalidToken(_)
            | Self::Malformed(_) => Outcome::NotApplied,
        }
    }

    /// Cloudflare's refusal, if that is what this is.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(api) => Some(api),
            Self::RateLimited { answer, .. } => answer.as_deref(),
            _ => None,
        }
    }
}

impl Outcome {
    /// [`Outcome::Unknown`], except for a GET.
    pub(crate) fn unless_get(method: &Method) -> Self {
        if method == Method::GET {
            Self::NotApplied
        } else {
            Self::Unknown
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cloudflare => "Cloudflare's rate limit is reached; all calls with this token wait",
            Self::Budget => "the call budget of this token is used up; calls with it wait",
            Self::InFlight => "too many calls to Cloudflare are in flight; further ones wait",
        })
    }
}

impl fmt::Display for Incompleteness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CountDiffers { total, listed } => {
                write!(f, "Cloudflare counts {total} objects but listed {listed}")
            }
            Self::Moving => f.write_str("it changed while it was read"),
            Self::PageRepeated => f.write_str("rows came twice, on different pages"),
            Self::TooLong => f.write_str("it does not end"),
        }
    }
}

impl DecodeError {
    /// Keeps the position and the names of fields, drops the values.
    pub(crate) fn from_json(error: &serde_json::Error) -> Self {
        let fault = if error.is_data() {
            DecodeFault::Shape
        } else {
            DecodeFault::Syntax
        };
        let lead = match fault {
            DecodeFault::Syntax => "the answer is not complete JSON",
            DecodeFault::Shape => "the answer has an unexpected shape",
        };
        Self {
            fault,
            text: text::one_line(&format!("{lead}: {}", text::without_quoted(&error.to_string())), 300),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_decode_error_names_fields_but_no_values() {
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code)]
        struct Thing {
            number: u32,
        }
        let error = serde_json::from_str::<Thing>(r#"{"number": "hush"}"#).unwrap_err();
        let shown = DecodeError::from_json(&error).to_string();
        assert!(
            shown.contains("unexpected shape") && shown.contains("expected u32") && !shown.contains("hush"),
            "{shown}"
        );
        let error = serde_json::from_str::<Thing>(r#"{"numb": 1}"#).unwrap_err();
        assert!(
            DecodeError::from_json(&error)
                .to_string()
                .contains("missing field `number`")
        );
        let error = serde_json::from_str::<Thing>(r#"{"number": 1"#).unwrap_err();
        assert_eq!(DecodeError::from_json(&error).fault, DecodeFault::Syntax);
    }
}
