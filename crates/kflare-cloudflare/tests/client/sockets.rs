//! The real transport against real sockets, on the real clock.

use std::time::Duration;

use axum::Router;
use axum::routing::any;
use axum_server::tls_rustls::RustlsConfig;
use bytes::Bytes;
use http::HeaderMap;
use kflare_cloudflare::{
    BuildError, MAX_BODY_BYTES, Metrics, Outcome, Pool, PoolOptions, Request, Transport, TransportError,
    TransportErrorKind, TransportOptions, reqwest_transport,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::script::token;

fn transport(options: &TransportOptions) -> Transport {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest_transport(options).unwrap()
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// A server that answers the first connection with these bytes and closes it; with none it stays silent.
async fn raw_server(answer: Option<&'static str>) -> String {
    let (listener, url) = listener().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        match answer {
            Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
            None => std::future::pending::<()>().await,
        }
    });
    url
}

async fn post(transport: Transport, url: &str) -> Result<http::Response<Bytes>, TransportError> {
    transport
        .oneshot(http::Request::post(url).body(Bytes::from_static(b"{}")).unwrap())
        .await
}

#[tokio::test]
async fn a_call_goes_out_and_comes_back() {
    let app = Router::new().fallback(any(|request: http::Request<axum::body::Body>| async move {
        let headers: &HeaderMap = request.headers();
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        axum::Json(json!({"success": true, "result": {
            "uri": request.uri().to_string(), "agent": text("user-agent"), "authorization": text("authorization"),
        }}))
    }));
    let (listener, url) = listener().await;
    tokio::spawn(async move { axum::serve(listener, app).await });
    let options = PoolOptions {
        base_url: url.parse().unwrap(),
        ..PoolOptions::default()
    };
    let pool = Pool::new(
        transport(&TransportOptions::default()),
        options,
        Metrics::unregistered(),
    );
    let client = pool.client("account", token(1).into());
    let request = Request::get("/accounts/{account_id}/r2/buckets/{name}", &["a1", "a/b c"]).query("name", "x&y");
    let result: Value = client.call(request).await.unwrap();
    assert_eq!(result["uri"], "/accounts/a1/r2/buckets/a%2Fb%20c?name=x%26y");
    assert_eq!(result["agent"], concat!("kflare/", env!("CARGO_PKG_VERSION")));
    assert_eq!(result["authorization"], format!("Bearer {}", token(1)));
}

#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let (listener, url) = listener().await;
    drop(listener);
    let url = format!("{url}/zones?name=hush");
    let error = post(transport(&TransportOptions::default()), &url).await.unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::NotSent);
    assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    let shown = error.to_string();
    assert!(
        shown.contains("no connection to Cloudflare") && shown.contains("refused"),
        "{shown}"
    );
    assert!(!shown.contains("127.0.0.1"), "{shown}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_was_not_sent() {
    let error = post(transport(&TransportOptions::default()), "http://name.invalid/")
        .await
        .unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::NotSent);
}

#[tokio::test]
async fn a_connection_cut_before_or_within_the_answer_is_interrupted() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"success\":"] {
        let url = raw_server(Some(answer)).await;
        let error = post(transport(&TransportOptions::default()), &url).await.unwrap_err();
        assert_eq!(error.kind, TransportErrorKind::Interrupted, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read_to_its_end() {
    let app = Router::new().fallback(any(|| async { Bytes::from(vec![b'x'; MAX_BODY_BYTES + 1]) }));
    let (listener, url) = listener().await;
    tokio::spawn(async move { axum::serve(listener, app).await });
    let error = post(transport(&TransportOptions::default()), &url).await.unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::Interrupted);
    assert!(error.to_string().contains("larger than 67108864 bytes"), "{error}");
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let url = raw_server(None).await;
    let options = TransportOptions {
        response_start_timeout: Duration::from_millis(100),
        ..TransportOptions::default()
    };
    let error = post(transport(&options), &url).await.unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::Timeout);
}

#[tokio::test]
async fn the_call_timeout_covers_a_silent_server_and_leaves_the_outcome_open() {
    let url = raw_server(None).await;
    let options = PoolOptions {
        base_url: url.parse().unwrap(),
        call_timeout: Duration::from_millis(100),
        ..PoolOptions::default()
    };
    let pool = Pool::new(
        transport(&TransportOptions::default()),
        options,
        Metrics::unregistered(),
    );
    let error = pool
        .client("account", token(1).into())
        .call::<Value>(Request::post("/zones", &[]))
        .await
        .unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let url = raw_server(Some(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    ))
    .await;
    let response = post(transport(&TransportOptions::default()), &url).await.unwrap();
    assert_eq!(response.status(), 302);
}

/// An HTTPS server with a certificate that only `authority` vouches for.
async fn private_https_server(authority: &CertifiedIssuer<'_, KeyPair>) -> String {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .signed_by(&key, authority)
        .unwrap();
    let config = RustlsConfig::from_pem(certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
        .await
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let app = Router::new().fallback(any(|| async { "secure" }));
    let server = axum_server::from_tcp_rustls(listener, config).unwrap();
    tokio::spawn(server.serve(app.into_make_service()));
    url
}

#[tokio::test]
async fn an_extra_authority_is_trusted_and_without_it_the_fault_is_named() {
    let plain = transport(&TransportOptions::default());
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let url = private_https_server(&authority).await;

    let error = post(plain, &url).await.unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::NotSent);
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");

    let extra_ca_pem = Some(authority.pem().into_bytes());
    let trusting = transport(&TransportOptions {
        extra_ca_pem,
        ..TransportOptions::default()
    });
    assert_eq!(post(trusting, &url).await.unwrap().body(), "secure");
}

#[tokio::test]
async fn a_bad_bundle_of_authorities_is_refused() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let with = |pem: &[u8]| {
        reqwest_transport(&TransportOptions {
            extra_ca_pem: Some(pem.to_vec()),
            ..TransportOptions::default()
        })
    };
    assert!(matches!(with(b"no certificate"), Err(BuildError::NoExtraCa)));
    let bad = b"-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n";
    assert!(matches!(with(bad), Err(BuildError::ExtraCa(_) | BuildError::Client(_))));
}
