//! A time limit on every request to the API server, so that a lost one is noticed: `kube` waits for the head of an answer, and
//! for all of a list, as long as it takes.

use std::{io, time::Duration};

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::{Client, client::Body};

/// From a request to the head of its answer.
const HEAD: Duration = Duration::from_secs(30);

/// From the head to the end of an answer that is not a watch.
const REST: Duration = Duration::from_secs(30);

/// `client` with the limits. To be called inside a runtime.
pub(crate) fn limited(client: &Client) -> Client {
    let (inner, namespace) = (client.clone(), client.default_namespace().to_owned());
    let service = tower::service_fn(move |request| exchange(inner.clone(), request));
    Client::new(service, namespace)
}

async fn exchange(client: Client, request: Request<Body>) -> Result<Response<Body>, tower::BoxError> {
    let query = request.uri().query().unwrap_or_default();
    let watches = query.split('&').any(|part| part == "watch=true");
    let answer = tokio::time::timeout(HEAD, client.send(request))
        .await
        .map_err(|_| late("answer"))??;
    if watches {
        // Its events have a limit of their own in the watcher.
        return Ok(answer);
    }
    let (head, body) = answer.into_parts();
    let body = tokio::time::timeout(REST, body.collect())
        .await
        .map_err(|_| late("rest of the answer"))??;
    Ok(Response::from_parts(head, Body::from(body.to_bytes())))
}

fn late(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("the API server's {what} did not come in time"),
    )
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use bytes::Bytes;
    use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::{
        Api,
        api::{ListParams, WatchParams},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_never_answered_fails_and_does_not_hang() {
        let silent = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, io::Error>>());
        let api: Api<Namespace> = Api::all(limited(&Client::new(silent, "default")));
        // Neither kube's watcher nor its lists give up by themselves.
        assert!(api.watch(&WatchParams::default(), "1").await.is_err());
        assert!(api.list(&ListParams::default()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_breaks_off_in_silence_fails_and_does_not_hang() {
        let stalled = tower::service_fn(|_: Request<Body>| async {
            let body = StreamBody::new(futures::stream::pending::<Result<http_body::Frame<Bytes>, io::Error>>());
            Ok::<_, io::Error>(Response::new(UnsyncBoxBody::new(body)))
        });
        let api: Api<Namespace> = Api::all(limited(&Client::new(stalled, "default")));
        assert!(api.list(&ListParams::default()).await.is_err());
    }
}
