//! The two ends of a wire, as HTTP servers: one is the API server to the controller, the other Cloudflare.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, stream};
use kflare_api::names;
use kflare_sim::Simulator;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::point::Plane;
use super::wire::{Severed, Wire};

/// The part of a cluster that belongs to one tenant: a namespace and the cluster-scoped resources of the same name. To a
/// controller that looks through it, it is a whole cluster.
#[derive(Clone)]
pub struct Slice {
    namespace: String,
    /// Plurals of our cluster-scoped kinds.
    cluster_scoped: BTreeSet<String>,
}

impl Slice {
    /// The slice of this namespace.
    pub fn of(namespace: &str) -> Self {
        let crds = kflare_api::crds().into_iter();
        let cluster_scoped = crds.filter(|crd| crd.spec.scope == "Cluster");
        Self {
            namespace: namespace.to_owned(),
            cluster_scoped: cluster_scoped.map(|crd| crd.spec.names.plural).collect(),
        }
    }

    /// Narrows a list or watch of a whole cluster to the slice. Anything else stays as it is.
    fn narrow(&self, uri: &Uri) -> Uri {
        let namespace = &self.namespace;
        let query = uri.query().unwrap_or_default();
        let ours = format!("/apis/{}/", names::API_VERSION);
        let own_name = || format!("{}?fieldSelector=metadata.name%3D{namespace}&{query}", uri.path());
        let narrowed = match uri.path() {
            "/api/v1/secrets" => format!("/api/v1/namespaces/{namespace}/secrets?{query}"),
            "/api/v1/namespaces" => own_name(),
            path => match path.strip_prefix(&ours) {
                Some(plural) if self.cluster_scoped.contains(plural) => own_name(),
                Some(plural) if !plural.contains('/') => format!("{ours}namespaces/{namespace}/{plural}?{query}"),
                _ => return uri.clone(),
            },
        };
        narrowed.parse().unwrap()
    }
}

#[derive(Clone)]
struct Kubernetes {
    wire: Arc<Wire>,
    slice: Slice,
    client: Client,
}

/// Serves a slice of the cluster behind `client`. The client's rights are those of the callers.
pub async fn kubernetes(servers: &mut JoinSet<()>, wire: &Arc<Wire>, slice: Slice, client: Client) -> SocketAddr {
    let end = Kubernetes {
        wire: wire.clone(),
        slice,
        client,
    };
    serve(servers, Router::new().fallback(to_cluster).with_state(end)).await
}

/// Serves a simulator.
pub async fn cloudflare(servers: &mut JoinSet<()>, wire: &Arc<Wire>, simulator: Simulator) -> SocketAddr {
    let end = (wire.clone(), simulator);
    serve(servers, Router::new().fallback(to_simulator).with_state(end)).await
}

async fn serve(servers: &mut JoinSet<()>, router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn to_simulator(State((wire, simulator)): State<(Arc<Wire>, Simulator)>, request: Request) -> Response {
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let deliver = async move {
        match simulator.call(request).await {
            Ok(response) => response,
            Err(reset) => failed(&reset),
        }
    };
    wire.carry(Plane::Cloudflare, &method, &path, deliver).await
}

async fn to_cluster(State(end): State<Kubernetes>, request: Request) -> Response {
    let Kubernetes { wire, slice, client } = end;
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_watch = method == Method::GET && request.uri().query().is_some_and(|it| it.contains("watch=true"));
    if is_watch && !wire.watch_answered() {
        return pending().await;
    }
    let deliver = {
        let wire = wire.clone();
        async move {
            let (mut parts, body) = request.into_parts();
            if parts.method == Method::GET {
                parts.uri = slice.narrow(&parts.uri);
            }
            parts.headers.remove(HOST);
            let body = to_bytes(body, usize::MAX).await.unwrap();
            let request = axum::http::Request::from_parts(parts, kube::client::Body::from(body));
            match client.send(request).await {
                Ok(answer) => answer.map(|body| {
                    if is_watch {
                        severable(&wire, body)
                    } else {
                        Body::new(body)
                    }
                }),
                Err(error) => failed(&error),
            }
        }
    };
    // Events and Leases hold nothing that a crash could tear apart.
    let counts = method != Method::GET && !path.contains("/events") && !path.contains("/leases");
    if counts {
        wire.carry(Plane::Kubernetes, method.as_str(), &path, deliver).await
    } else {
        wire.pass(Plane::Kubernetes, deliver).await
    }
}

fn failed(error: &dyn std::error::Error) -> Response {
    (StatusCode::BAD_GATEWAY, error.to_string()).into_response()
}

/// A body that ends, or goes quiet, when the watches of the wire do.
fn severable(wire: &Wire, body: kube::client::Body) -> Body {
    let frames = Body::new(body).into_data_stream();
    let mut severances = wire.severances();
    severances.mark_unchanged();
    let next = |(mut frames, mut severances): (BodyDataStream, watch::Receiver<Severed>)| async move {
        let frame = tokio::select! {
            biased;
            changed = severances.changed() => {
                // The wire is gone: so is the process at its end.
                changed.ok()?;
                let how = *severances.borrow_and_update();
                match how {
                    Severed::Silent => pending().await,
                    Severed::Cut | Severed::No => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                }
            }
            frame = frames.next() => frame?.map_err(io::Error::other),
        };
        Some((frame, (frames, severances)))
    };
    Body::from_stream(stream::unfold((frames, severances), next))
}
