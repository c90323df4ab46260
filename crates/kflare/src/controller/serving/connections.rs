//! A bound on open connections.

use std::{
    future::{Ready, ready},
    io,
    sync::Arc,
    task::{Context, Poll},
};

use axum_server::accept::Accept;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

/// Accepts up to so many connections at a time and closes the others at once.
#[derive(Clone, Debug)]
pub(super) struct Bounded(Arc<Semaphore>);

impl Bounded {
    pub(super) fn new(connections: usize) -> Self {
        Self(Arc::new(Semaphore::new(connections)))
    }
}

impl<I, S> Accept<I, S> for Bounded {
    type Stream = I;
    type Service = Holding<S>;
    type Future = Ready<io::Result<(I, Holding<S>)>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        ready(match self.0.clone().try_acquire_owned() {
            Ok(place) => Ok((
                stream,
                Holding {
                    service,
                    _place: Arc::new(place),
                },
            )),
            Err(_) => Err(io::Error::other("too many connections")),
        })
    }
}

/// The service of one connection, which holds its place: it lives as long as the connection.
#[derive(Clone)]
pub(super) struct Holding<S> {
    service: S,
    _place: Arc<OwnedSemaphorePermit>,
}

impl<R, S: Service<R>> Service<R> for Holding<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.service.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_ends() {
        let bounded = Bounded::new(1);
        let ((), service) = bounded.accept((), "service").await.unwrap();
        assert!(bounded.accept((), "service").await.is_err());
        drop(service.clone());
        assert!(bounded.accept((), "service").await.is_err());
        drop(service);
        assert!(bounded.accept((), "service").await.is_ok());
    }
}
