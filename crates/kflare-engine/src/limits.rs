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
