//! The real transport: HTTPS through `reqwest` and rustls.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Certificate;
use rustls::crypto::CryptoProvider;

use crate::transport::{Transport, TransportError, TransportErrorKind};

/// The largest body that is read, in bytes. The largest list page (5,000 DNS records) is some 3 MB.
pub const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The settings of [`reqwest_transport`].
#[derive(Debug, Clone)]
pub struct TransportOptions {
    /// How long making a connection may take: name, TCP, proxy and TLS together, because reqwest has no time-out for
    /// TLS alone. Default: 30 s.
    pub connect_timeout: Duration,
    /// How long the first byte of an answer may take, counted from the start of the exchange, so with the connection
    /// where one has to be made. Default: 60 s. The whole call is bounded by
    /// [`PoolOptions::call_timeout`](crate::PoolOptions::call_timeout).
    pub response_start_timeout: Duration,
    /// The time between two HTTP/2 pings, sent also while nothing is in flight. Default: 30 s.
    pub ping_interval: Duration,
    /// How long the answer to a ping may take before the connection is given up. Default: 15 s.
    pub ping_timeout: Duration,
    /// More certificate authorities to trust, as a PEM bundle, besides those of the system.
    pub extra_ca_pem: Option<Vec<u8>>,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            response_start_timeout: Duration::from_mins(1),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
            extra_ca_pem: None,
        }
    }
}

/// Why the transport could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No cryptography was chosen for the process.
    #[error("no default rustls crypto provider is installed")]
    NoCryptoProvider,
    /// The extra certificate authorities could not be read.
    #[error("the bundle of extra certificate authorities cannot be read")]
    ExtraCa(#[source] reqwest::Error),
    /// The bundle holds no certificate.
    #[error("the bundle of extra certificate authorities holds no certificate")]
    NoExtraCa,
    /// Anything else, such as a system without any root certificates.
    #[error("the HTTP client cannot be made")]
    Client(#[source] reqwest::Error),
}

/// Makes the real transport.
///
/// rustls with the process's default provider (install `ring` first) and the certificate authorities of the system, or
/// those in `SSL_CERT_FILE` and `SSL_CERT_DIR`; HTTP/2 where the server speaks it; proxies from `HTTPS_PROXY`,
/// `HTTP_PROXY` and `NO_PROXY`; no redirects (the token must not follow one); user agent `kflare/<version>`.
///
/// A request that the server surely did not process (HTTP/2 `REFUSED_STREAM`, a graceful `GOAWAY`) is sent again by
/// reqwest on a new connection. Nothing else is.
pub fn reqwest_transport(options: &TransportOptions) -> Result<Transport, BuildError> {
    if CryptoProvider::get_default().is_none() {
        return Err(BuildError::NoCryptoProvider);
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("kflare/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(options.connect_timeout)
        .http2_keep_alive_interval(options.ping_interval)
        .http2_keep_alive_timeout(options.ping_timeout)
        .http2_keep_alive_while_idle(true);
    if let Some(pem) = &options.extra_ca_pem {
        let authorities = Certificate::from_pem_bundle(pem).map_err(BuildError::ExtraCa)?;
        if authorities.is_empty() {
            return Err(BuildError::NoExtraCa);
        }
        builder = builder.tls_certs_merge(authorities);
    }
    let client = builder.build().map_err(BuildError::Client)?;
    let response_start = options.response_start_timeout;
    Ok(Transport::new(tower::service_fn(move |request| {
        exchange(client.clone(), request, response_start)
    })))
}

async fn exchange(
    client: reqwest::Client,
    request: http::Request<Bytes>,
    response_start: Duration,
) -> Result<http::Response<Bytes>, TransportError> {
    let request = reqwest::Request::try_from(request).map_err(classify)?;
    let mut response = match tokio::time::timeout(response_start, client.execute(request)).await {
        Ok(response) => response.map_err(classify)?,
        Err(elapsed) => return Err(TransportError::new(TransportErrorKind::Timeout, elapsed)),
    };
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(classify)? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(TransportError::new(
                TransportErrorKind::Interrupted,
                format!("the answer is larger than {MAX_BODY_BYTES} bytes"),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    let mut answer = http::Response::new(body.freeze());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    Ok(answer)
}

/// A failure to connect, or to make a request at all, surely sent nothing. The URL is dropped from the error: queries
/// do not belong into conditions.
fn classify(error: reqwest::Error) -> TransportError {
    let kind = if error.is_connect() || error.is_builder() {
        TransportErrorKind::NotSent
    } else if error.is_timeout() {
        TransportErrorKind::Timeout
    } else {
        TransportErrorKind::Interrupted
    };
    TransportError::new(kind, error.without_url())
}
