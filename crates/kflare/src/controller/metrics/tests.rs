//! Who gets metrics, against a scripted API server; and the certificate on a real socket.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::body::{Body, to_bytes};
use http::{Method, Request};
use kube::client::Body as KubeBody;
use prometheus::IntCounter;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

/// An API server that knows two callers: one may read metrics, the other may not.
#[derive(Default)]
struct Cluster {
    reviews: Mutex<Vec<Value>>,
    down: AtomicBool,
    hangs: AtomicBool,
    revoked: Mutex<BTreeSet<String>>,
}

const ALLOWED: &str = "scraper";
const FORBIDDEN: &str = "stranger";

impl Cluster {
    async fn answer(&self, request: Request<KubeBody>) -> Result<http::Response<KubeBody>, std::io::Error> {
        if self.down.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("connection refused"));
        }
        if self.hangs.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let path = request.uri().path().to_owned();
        let bytes = request.into_body().collect_bytes().await.unwrap();
        let mut review: Value = serde_json::from_slice(&bytes).unwrap();
        review["status"] = match path.as_str() {
            "/apis/authentication.k8s.io/v1/tokenreviews" => self.who_is(review["spec"]["token"].as_str().unwrap()),
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                json!({ "allowed": review["spec"]["user"] == ALLOWED })
            }
            other => panic!("{other} is not asked"),
        };
        self.reviews.lock().unwrap().push(review.clone());
        Ok(http::Response::builder()
            .status(201)
            .body(KubeBody::from(serde_json::to_vec(&review).unwrap()))
            .unwrap())
    }

    fn who_is(&self, token: &str) -> Value {
        let user = token
            .strip_prefix("token-of-")
            .filter(|user| !self.revoked.lock().unwrap().contains(*user));
        match user {
            Some(user) => json!({
                "authenticated": true,
                "user": { "username": user, "uid": "u-1", "groups": ["g"], "extra": { "k": ["v"] } }
            }),
            None => json!({ "authenticated": false, "error": "unknown token" }),
        }
    }

    fn count(&self) -> usize {
        self.reviews.lock().unwrap().len()
    }
}

fn protected() -> (Arc<Cluster>, Router) {
    let cluster = Arc::new(Cluster::default());
    let service = tower::service_fn({
        let cluster = cluster.clone();
        move |request| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }
        }
    });
    let registry = Registry::new();
    let counter = IntCounter::new("kflare_test_total", "Something to show").unwrap();
    registry.register(Box::new(counter)).unwrap();
    let reviewer = Reviewer::new(kube::Client::new(service, "default"));
    (cluster, router(registry, Access::Reviewed(reviewer)))
}

async fn call(router: &Router, method: Method, authorization: Option<&str>) -> Response {
    let mut request = Request::builder().method(method).uri("/metrics");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    router
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap()
}

async fn status_for(router: &Router, user: &str) -> StatusCode {
    call(router, Method::GET, Some(&format!("Bearer token-of-{user}")))
        .await
        .status()
}

async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn an_allowed_caller_gets_the_text_format() {
    let (cluster, router) = protected();
    let response = call(&router, Method::GET, Some(&format!("bearer  token-of-{ALLOWED}"))).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/plain; version=0.0.4");
    assert!(text(response).await.contains("kflare_test_total 0"));
    let reviews = cluster.reviews.lock().unwrap();
    let asked = &reviews[1]["spec"];
    assert_eq!(
        asked["nonResourceAttributes"],
        json!({ "path": "/metrics", "verb": "get" })
    );
    assert_eq!((&asked["user"], &asked["uid"]), (&json!(ALLOWED), &json!("u-1")));
    assert_eq!(
        (&asked["groups"], &asked["extra"]),
        (&json!(["g"]), &json!({ "k": ["v"] }))
    );
}

#[tokio::test]
async fn nobody_else_gets_anything() {
    let (cluster, router) = protected();
    for authorization in [
        None,
        Some("Basic dXNlcg=="),
        Some("Bearer "),
        Some("Bearer"),
        Some("Bearer nonsense"),
    ] {
        let response = call(&router, Method::GET, authorization).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{authorization:?}");
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
        assert!(!text(response).await.contains("kflare_test_total"));
    }
    assert_eq!(cluster.count(), 1, "only what looks like a token is passed on");
    let long = format!("Bearer {}", "x".repeat(20_000));
    assert_eq!(
        call(&router, Method::GET, Some(&long)).await.status(),
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(cluster.count(), 1);
    let refused = call(&router, Method::GET, Some(&format!("Bearer token-of-{FORBIDDEN}"))).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(!text(refused).await.contains("kflare_test_total"));
    assert_eq!(
        call(&router, Method::HEAD, None).await.status(),
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        call(&router, Method::POST, None).await.status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}

#[tokio::test(start_paused = true)]
async fn an_allowed_token_is_trusted_for_one_minute_and_no_other() {
    let (cluster, router) = protected();
    assert_eq!(status_for(&router, ALLOWED).await, StatusCode::OK);
    assert_eq!(cluster.count(), 2);
    cluster.revoked.lock().unwrap().insert(ALLOWED.to_owned());
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(status_for(&router, ALLOWED).await, StatusCode::OK);
    assert_eq!(cluster.count(), 2);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(status_for(&router, ALLOWED).await, StatusCode::UNAUTHORIZED);
    for calls in 1..=3 {
        assert_eq!(status_for(&router, FORBIDDEN).await, StatusCode::FORBIDDEN);
        assert_eq!(cluster.count(), 3 + 2 * calls);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_cluster_lets_nobody_in() {
    let (cluster, router) = protected();
    cluster.down.store(true, Ordering::Relaxed);
    let response = call(&router, Method::GET, Some(&format!("Bearer token-of-{ALLOWED}"))).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!text(response).await.contains("connection refused"));
    cluster.down.store(false, Ordering::Relaxed);
    cluster.hangs.store(true, Ordering::Relaxed);
    assert_eq!(status_for(&router, ALLOWED).await, StatusCode::SERVICE_UNAVAILABLE);
    cluster.hangs.store(false, Ordering::Relaxed);
    assert_eq!(status_for(&router, ALLOWED).await, StatusCode::OK);
}

#[tokio::test]
async fn without_protection_everybody_may() {
    let router = router(Registry::new(), Access::Everybody);
    assert_eq!(call(&router, Method::GET, None).await.status(), StatusCode::OK);
}

mod certificates {
    use std::{fs, path::Path};

    use super::*;

    /// A new certificate for localhost in `directory`, as PEM.
    fn renew(directory: &Path) -> String {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(directory.join("tls.crt"), made.cert.pem()).unwrap();
        fs::write(directory.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.pem()
    }

    /// Serves on a free port; gives the port.
    fn serve(certificate: &Served) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = axum_server::from_tcp_rustls(listener, certificate.config()).unwrap();
        tokio::spawn(server.serve(router(Registry::new(), Access::Everybody).into_make_service()));
        port
    }

    /// Whether a client that trusts nothing but `pem` gets an answer.
    async fn trusted_by(pem: &str, port: u16) -> bool {
        let only = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .tls_certs_only([only])
            .no_proxy()
            .build()
            .unwrap();
        client
            .get(format!("https://localhost:{port}/metrics"))
            .send()
            .await
            .is_ok()
    }

    fn install_provider() {
        // Another test of this process may have done so.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }

    #[tokio::test]
    async fn a_renewed_certificate_is_served_and_a_broken_one_is_not() {
        install_provider();
        let directory = tempfile::tempdir().unwrap();
        let first = renew(directory.path());
        let registry = Registry::new();
        let served = Served::from_directory(directory.path(), &registry).unwrap();
        let config = served.config();
        let port = serve(&served);
        assert!(trusted_by(&first, port).await);

        tokio::time::pause();
        tokio::spawn(served.keep_fresh());
        let before = config.get_inner();
        let second = renew(directory.path());
        while Arc::ptr_eq(&before, &config.get_inner()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::resume();
        assert!(trusted_by(&second, port).await);
        assert!(!trusted_by(&first, port).await);

        let failures = || {
            let families = registry.gather();
            let family = families
                .iter()
                .find(|it| it.name() == "certwatcher_read_certificate_errors_total")
                .unwrap();
            family.get_metric()[0].get_counter().get_value()
        };
        assert!(failures() < 0.5);
        tokio::time::pause();
        let other_key = rcgen::KeyPair::generate().unwrap();
        fs::write(directory.path().join("tls.key"), other_key.serialize_pem()).unwrap();
        while failures() < 0.5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::resume();
        assert!(trusted_by(&second, port).await);
    }

    #[tokio::test]
    async fn a_self_signed_certificate_is_for_the_names_of_the_process() {
        install_provider();
        let served = Served::self_signed(&["localhost".to_owned(), "kflare-0".to_owned()]).unwrap();
        let port = serve(&served);
        let curious = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .tls_info(true)
            .no_proxy();
        let answer = curious
            .build()
            .unwrap()
            .get(format!("https://localhost:{port}/metrics"))
            .send()
            .await
            .unwrap();
        assert_eq!(
            (answer.status(), answer.version()),
            (StatusCode::OK, http::Version::HTTP_11)
        );
        let shown = answer
            .extensions()
            .get::<reqwest::tls::TlsInfo>()
            .unwrap()
            .peer_certificate()
            .unwrap();
        let only = reqwest::Certificate::from_der(shown).unwrap();
        let here = ([127, 0, 0, 1], port).into();
        let strict = reqwest::Client::builder()
            .tls_certs_only([only])
            .resolve("kflare-0", here)
            .resolve("kflare-1", here)
            .no_proxy()
            .build()
            .unwrap();
        for (name, named) in [("localhost", true), ("kflare-0", true), ("kflare-1", false)] {
            let answer = strict.get(format!("https://{name}:{port}/metrics")).send().await;
            assert_eq!(answer.is_ok(), named, "{name}");
        }
    }

    #[test]
    fn a_directory_without_a_certificate_ends_the_start_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let error = Served::from_directory(directory.path(), &Registry::new())
            .err()
            .unwrap();
        let text = format!("{:#}", anyhow::Error::from(error));
        assert!(
            text.contains("tls.crt") && text.contains("--metrics-cert-dir"),
            "{text}"
        );
        fs::write(directory.path().join("tls.crt"), "nonsense").unwrap();
        fs::write(directory.path().join("tls.key"), "nonsense").unwrap();
        assert!(Served::from_directory(directory.path(), &Registry::new()).is_err());
    }
}
