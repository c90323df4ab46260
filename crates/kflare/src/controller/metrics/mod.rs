//! `/metrics`.
//!
//! Besides what the engine and the Cloudflare client register: `rest_client_requests_total`, `kflare_build_info`, the
//! usual `process_` series, and for a certificate from files `certwatcher_read_certificate_total` and
//! `certwatcher_read_certificate_errors_total`.

pub mod certificate;
pub mod process;
mod reviews;

use std::{net::TcpListener, sync::Arc};

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode, header};
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};
use reviews::{Refusal, Reviewer};

use self::certificate::Served;
use super::kubernetes::{self, RequestCounter};

/// The server of the metrics.
pub struct MetricsServer {
    /// Where it listens.
    pub listener: TcpListener,
    /// What it shows.
    pub registry: Registry,
    /// To whom.
    pub protection: Protection,
}

/// Who may read metrics, and how they travel.
pub enum Protection {
    /// Everybody, over plain HTTP.
    None,
    /// Callers whose token the cluster allows to `get` `/metrics`, over HTTPS.
    Full {
        /// What the server shows of itself.
        certificate: Served,
        /// The cluster that is asked.
        cluster: Box<kube::Config>,
        /// Counts the questions.
        requests: RequestCounter,
    },
}

/// A server, ready to run on the present runtime.
pub(super) struct Prepared {
    pub(super) listener: TcpListener,
    pub(super) router: Router,
    /// None: plain HTTP.
    pub(super) certificate: Option<Served>,
}

impl MetricsServer {
    /// Makes what belongs to the runtime of the caller.
    pub(super) fn prepare(self) -> anyhow::Result<Prepared> {
        let (access, certificate) = match self.protection {
            Protection::None => (Access::Everybody, None),
            Protection::Full {
                certificate,
                cluster,
                requests,
            } => {
                let client = kubernetes::client(*cluster, &requests)?;
                (Access::Reviewed(Reviewer::new(client)), Some(certificate))
            }
        };
        Ok(Prepared {
            listener: self.listener,
            router: router(self.registry, access),
            certificate,
        })
    }
}

enum Access {
    Everybody,
    Reviewed(Reviewer),
}

struct Metrics {
    registry: Registry,
    access: Access,
}

/// `/metrics`, for GET and HEAD.
fn router(registry: Registry, access: Access) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .with_state(Arc::new(Metrics { registry, access }))
}

async fn metrics(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    if let Access::Reviewed(reviewer) = &metrics.access
        && let Err(refusal) = reviewer.admit(&headers).await
    {
        return refuse(refusal);
    }
    match TextEncoder::new().encode_to_string(&metrics.registry.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "metrics cannot be written");
            (StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be written\n").into_response()
        }
    }
}

fn refuse(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Unauthenticated => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer")],
            "a valid bearer token is needed\n",
        )
            .into_response(),
        Refusal::Forbidden => (StatusCode::FORBIDDEN, "this token may not get /metrics\n").into_response(),
        Refusal::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "5")],
            "the token cannot be checked now\n",
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests;
