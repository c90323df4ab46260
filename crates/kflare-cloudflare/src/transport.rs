//! The seam below the client: one HTTP exchange, nothing else.

use std::fmt;

/// Any error, boxed, as the cause of another.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Makes one HTTP exchange: sends the request, returns the whole answer.
///
/// The URI of the request is absolute, its body complete, its headers final. A transport neither retries nor looks at
/// status codes. [`reqwest_transport`](crate::reqwest_transport) is the real one; any `tower` service of this shape
/// serves in tests.
///
/// ```
/// use bytes::Bytes;
/// use kflare_cloudflare::{Transport, TransportError};
///
/// let transport = Transport::new(tower::service_fn(|_request: http::Request<Bytes>| async {
///     Ok::<_, TransportError>(http::Response::new(Bytes::from_static(br#"{"success":true,"result":null}"#)))
/// }));
/// # let _ = transport;
/// ```
pub type Transport =
    tower::util::BoxCloneSyncService<http::Request<bytes::Bytes>, http::Response<bytes::Bytes>, TransportError>;

/// Why an exchange gave no answer.
#[derive(Debug)]
pub struct TransportError {
    /// What is known about how far the request got.
    pub kind: TransportErrorKind,
    source: Option<BoxError>,
}

/// How far a request that got no answer had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportErrorKind {
    /// The request surely never reached Cloudflare: no connection was made (DNS, TCP, TLS, proxy).
    NotSent,
    /// No answer came in time. The request may have been acted upon.
    Timeout,
    /// The exchange was cut off before the answer was complete. The request may have been acted upon.
    Interrupted,
}

impl TransportErrorKind {
    /// The value of the `code` label in metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
        }
    }
}

impl TransportError {
    /// An error of `kind`, caused by `source`.
    pub fn new(kind: TransportErrorKind, source: impl Into<BoxError>) -> Self {
        Self {
            kind,
            source: Some(source.into()),
        }
    }

    /// The text of the innermost cause: the part that says most ("certificate has expired", "connection refused").
    fn innermost(&self) -> Option<String> {
        let mut cause: &dyn std::error::Error = self.source.as_deref()?;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Some(cause.to_string())
    }
}

impl From<TransportErrorKind> for TransportError {
    fn from(kind: TransportErrorKind) -> Self {
        Self { kind, source: None }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            TransportErrorKind::NotSent => "no connection to Cloudflare",
            TransportErrorKind::Timeout => "no answer from Cloudflare in time",
            TransportErrorKind::Interrupted => "the exchange with Cloudflare was cut off",
        })?;
        match self.innermost() {
            Some(cause) => write!(f, ": {}", crate::text::one_line(&cause, 200)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}
