//! The way to the API server.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode, header::USER_AGENT};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::Kubeconfig,
};
use prometheus::{IntCounterVec, Opts, Registry};
use tower::Service;

/// How long a connection may be silent within an answer. Longer than a watch that sees nothing lasts
/// ([`kflare_engine::WATCH_TIMEOUT`]).
const LONGEST_SILENCE: Duration = Duration::from_secs(1).saturating_mul(kflare_engine::WATCH_TIMEOUT + 10);

/// There is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ClusterAccessError {
    /// Nothing says where it is.
    #[error("no Kubernetes cluster to work for: run in a pod with a service account, or set KUBECONFIG")]
    NotConfigured(#[source] kube::config::InferConfigError),
    /// What says where it is cannot be used.
    #[error("cannot use the configuration of the Kubernetes client")]
    Client(#[from] kube::Error),
}

/// Where the API server is: by the kubeconfig, else by the pod's service account. `HTTPS_PROXY` is for the way to
/// Cloudflare: the API server is reached through a proxy only where the kubeconfig names one. Connections on which nothing
/// comes any more, because something on the way has forgotten them, are given up.
pub async fn config() -> Result<Config, ClusterAccessError> {
    let mut config = Config::infer().await.map_err(ClusterAccessError::NotConfigured)?;
    // kube also takes the proxy of the environment, and asks NO_PROXY about the proxy itself instead of the API server.
    if config.proxy_url.is_some() && !Kubeconfig::read().is_ok_and(|it| names_a_proxy(&it)) {
        config.proxy_url = None;
    }
    let agent = http::HeaderValue::from_static(concat!("kflare/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    config.read_timeout = Some(LONGEST_SILENCE);
    // A connection that was idle for a while has all of that time for its next answer.
    config.reset_reader_on_write = true;
    Ok(config)
}

/// Whether the cluster in use is reached through a proxy of its own.
fn names_a_proxy(kubeconfig: &Kubeconfig) -> bool {
    let context = kubeconfig
        .contexts
        .iter()
        .find(|it| Some(&it.name) == kubeconfig.current_context.as_ref());
    let cluster = context.and_then(|it| it.context.as_ref()).map(|it| &it.cluster);
    let cluster = kubeconfig.clusters.iter().find(|it| Some(&it.name) == cluster);
    let proxy = cluster.and_then(|it| it.cluster.as_ref()?.proxy_url.as_deref());
    proxy.is_some_and(|it| !it.is_empty())
}

/// A client whose requests are counted. Belongs to the runtime it is made in.
pub fn client(config: Config, requests: &RequestCounter) -> Result<Client, ClusterAccessError> {
    let host = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let counting = tower::layer::layer_fn(move |inner| Counting {
        inner,
        requests: requests.clone(),
        host: host.clone(),
    });
    Ok(ClientBuilder::try_from(config)?.with_layer(&counting).build())
}

/// Counts requests to the API server under the name that dashboards for Go operators know.
#[derive(Clone, Debug)]
pub struct RequestCounter(IntCounterVec);

impl RequestCounter {
    /// Registers `rest_client_requests_total` with the labels `code` (HTTP status, or `<error>`), `method` and `host`.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let requests = IntCounterVec::new(
            Opts::new("rest_client_requests_total", "Requests to the Kubernetes API server"),
            &["code", "method", "host"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        Ok(Self(requests))
    }
}

#[derive(Clone)]
struct Counting<S> {
    inner: S,
    requests: RequestCounter,
    host: String,
}

impl<S, B> Service<Request<Body>> for Counting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (requests, host, method) = (self.requests.0.clone(), self.host.clone(), request.method().clone());
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            let status = answer.as_ref().ok().map(Response::status);
            let code = status.as_ref().map_or("<error>", StatusCode::as_str);
            requests.with_label_values(&[code, method.as_str(), &host]).inc();
            answer
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use kube::Api;

    use super::*;

    #[test]
    fn the_proxy_of_a_cluster_counts_and_that_of_another_does_not() {
        let config = |proxy: serde_json::Value| -> Kubeconfig {
            serde_json::from_value(serde_json::json!({
                "current-context": "here",
                "contexts": [{ "name": "here", "context": { "cluster": "one", "user": "me" } }],
                "clusters": [
                    { "name": "other", "cluster": { "server": "https://b", "proxy-url": "http://proxy:3128" } },
                    { "name": "one", "cluster": { "server": "https://a", "proxy-url": proxy } },
                ],
            }))
            .unwrap()
        };
        assert!(names_a_proxy(&config("http://proxy:3128".into())));
        assert!(!names_a_proxy(&config(serde_json::Value::Null)));
        assert!(!names_a_proxy(&config("".into())));
        assert!(!names_a_proxy(&Kubeconfig::default()));
    }

    #[tokio::test]
    async fn requests_are_counted_by_their_outcome() {
        let registry = Registry::new();
        let requests = RequestCounter::register(&registry).unwrap();
        let service = tower::service_fn(|request: Request<Body>| async move {
            if request.uri().path().ends_with("/broken") {
                return Err(std::io::Error::other("connection reset"));
            }
            let body = r#"{"kind":"Status","status":"Failure","code":404,"reason":"NotFound","message":"not found"}"#;
            Ok(Response::builder()
                .status(404)
                .body(Body::from(body.as_bytes().to_vec()))
                .unwrap())
        });
        let counting = Counting {
            inner: service,
            requests: requests.clone(),
            host: "api".to_owned(),
        };
        let api: Api<Namespace> = Api::all(Client::new(counting, "default"));
        assert!(api.get_opt("absent").await.unwrap().is_none());
        assert!(api.get("broken").await.is_err());
        assert_eq!(requests.0.with_label_values(&["404", "GET", "api"]).get(), 1);
        assert_eq!(requests.0.with_label_values(&["<error>", "GET", "api"]).get(), 1);
    }
}
