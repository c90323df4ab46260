//! The simulator as a `tower` service and as an axum router.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::Request;
use http_body_util::BodyExt;
use tower::{Service, ServiceExt};

use crate::config::Dropped;
use crate::control;
use crate::exchange::{self, Answer, Outcome};
use crate::simulator::Simulator;

/// The connection was closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by the simulator")]
pub struct ConnectionReset;

impl Simulator {
    /// The API and the control API as a router. A router cannot close connections: where a fault says so, the answer's
    /// body fails at once instead. Use [`Simulator::service`] where that matters.
    pub fn router(&self) -> Router {
        let simulator = self.clone();
        let api = tower::service_fn(move |request: Request<Body>| {
            let simulator = simulator.clone();
            async move {
                Ok::<_, Infallible>(match simulator.call(request).await {
                    Ok(response) => response,
                    Err(reset) => Response::new(failing_body(Bytes::new(), reset)),
                })
            }
        });
        Router::new()
            .nest("/_sim", control::router(self.clone()))
            .fallback_service(api)
    }

    /// The API and the control API as a service that fails with [`ConnectionReset`] where a fault closes the connection.
    pub fn service(&self) -> SimService {
        SimService {
            simulator: self.clone(),
            control: self.router(),
        }
    }

    /// One call to the API. Its effect is there once the request has been read, before the pause that precedes the
    /// answer: dropping the future during that pause loses the answer only. A fault can make it come later.
    pub async fn call(&self, request: Request<Body>) -> Result<Response, ConnectionReset> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| ConnectionReset)?.to_bytes();
        let exchange = self.with(|core| exchange::take_in(core, &parts, &body));
        if let Outcome::Late(after, _) = exchange.outcome {
            let simulator = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                simulator.with(|core| exchange::carry_out(core, &parts, &body));
            });
        }
        tokio::time::sleep(exchange.delay).await;
        match exchange.outcome {
            Outcome::Answer(answer) => Ok(respond(answer, Body::from)),
            Outcome::Truncated(answer, bytes) => Ok(respond(answer, |body| {
                failing_body(body.slice(..bytes.min(body.len())), ConnectionReset)
            })),
            Outcome::Dropped(dropped) | Outcome::Late(_, dropped) => match dropped {
                Dropped::Reset => Err(ConnectionReset),
                Dropped::Hang => std::future::pending().await,
            },
        }
    }
}

fn respond(answer: Answer, body: impl FnOnce(Bytes) -> Body) -> Response {
    let mut response = Response::new(body(answer.body));
    *response.status_mut() = answer.status;
    for (name, value) in answer.headers {
        if let Ok(value) = http::HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A body that ends with an error.
fn failing_body(first: Bytes, reset: ConnectionReset) -> Body {
    Body::from_stream(stream::iter([Ok(first), Err(reset)]))
}

/// The simulator as a service. See [`Simulator::service`].
#[derive(Clone, Debug)]
pub struct SimService {
    simulator: Simulator,
    control: Router,
}

impl<B> Service<Request<B>> for SimService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = ConnectionReset;
    type Future = Pin<Box<dyn Future<Output = Result<Response, ConnectionReset>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionReset>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(Body::new);
        let path = request.uri().path();
        if path == "/_sim" || path.starts_with("/_sim/") {
            let control = self.control.clone();
            Box::pin(async move {
                match control.oneshot(request).await {
                    Ok(response) => Ok(response),
                    Err(never) => match never {},
                }
            })
        } else {
            let simulator = self.simulator.clone();
            Box::pin(async move { simulator.call(request).await })
        }
    }
}
