//! `/healthz` and `/readyz`. Neither asks anybody outside the process: an outage of Cloudflare or of the API server is no
//! reason to restart it.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use http::StatusCode;

use super::heartbeat::Heartbeat;

/// What the probes look at.
#[derive(Clone)]
pub struct Probes {
    heartbeat: Arc<Heartbeat>,
    is_ready: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Probes {
    /// `is_ready` is asked at every `/readyz`.
    pub fn new(heartbeat: Arc<Heartbeat>, is_ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            heartbeat,
            is_ready: Arc::new(is_ready),
        }
    }

    /// `/healthz` and `/readyz`, for GET and HEAD.
    pub fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .with_state(self)
    }
}

async fn healthz(State(probes): State<Probes>) -> (StatusCode, &'static str) {
    if probes.heartbeat.is_alive() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the main loop is stuck\n")
    }
}

async fn readyz(State(probes): State<Probes>) -> (StatusCode, &'static str) {
    if (probes.is_ready)() {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the cluster is not read yet, or the process is stopping\n",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use axum::body::Body;
    use http::{Method, Request};
    use tower::ServiceExt;

    use super::*;

    async fn status(router: &Router, method: Method, path: &str) -> StatusCode {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test(start_paused = true)]
    async fn health_follows_the_main_loop_and_readiness_the_engine() {
        let ready = Arc::new(AtomicBool::new(false));
        let router = Probes::new(Arc::new(Heartbeat::start()), {
            let ready = ready.clone();
            move || ready.load(Ordering::Relaxed)
        })
        .router();
        assert_eq!(status(&router, Method::GET, "/healthz").await, StatusCode::OK);
        assert_eq!(
            status(&router, Method::GET, "/readyz").await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        ready.store(true, Ordering::Relaxed);
        assert_eq!(status(&router, Method::GET, "/readyz").await, StatusCode::OK);
        tokio::time::advance(Duration::from_mins(2)).await;
        assert_eq!(
            status(&router, Method::GET, "/healthz").await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        assert_eq!(status(&router, Method::GET, "/readyz").await, StatusCode::OK);
    }

    #[tokio::test]
    async fn probes_are_read_only() {
        let router = Probes::new(Arc::new(Heartbeat::start()), || true).router();
        assert_eq!(status(&router, Method::HEAD, "/healthz").await, StatusCode::OK);
        assert_eq!(
            status(&router, Method::POST, "/healthz").await,
            StatusCode::METHOD_NOT_ALLOWED
        );
        assert_eq!(status(&router, Method::GET, "/metrics").await, StatusCode::NOT_FOUND);
    }
}
