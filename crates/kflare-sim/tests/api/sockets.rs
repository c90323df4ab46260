//! The simulator on real sockets: plain, TLS, resets, shutdown. Real time, so nothing here waits for a clock.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use kflare_sim::{
    Dropped, Fault, FaultMatch, FaultSpec, ServeOptions, SimConfig, SimError, SimOptions, Simulator, TlsFiles, run,
    serve,
};
use serde_json::json;
use tokio::sync::oneshot;

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn options(bound: oneshot::Sender<SocketAddr>) -> ServeOptions {
    ServeOptions {
        listen: anywhere(),
        tls: None,
        state_file: None,
        bound: Some(bound),
    }
}

/// Sends one request and reads until the connection ends.
fn exchange(stream: &mut (impl Read + Write), path: &str) -> std::io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

async fn fetch(address: SocketAddr, path: &'static str) -> std::io::Result<String> {
    let call = move || exchange(&mut TcpStream::connect(address)?, path);
    tokio::task::spawn_blocking(call).await.expect("no panic")
}

#[tokio::test]
async fn serves_resets_and_saves() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, seed) = (folder.path().join("state.json"), folder.path().join("seed.json"));
    std::fs::write(&seed, json!({ "accounts": [{ "name": "One" }] }).to_string()).expect("written");
    let (bound, address) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let sim_options = SimOptions {
        config: SimConfig::default(),
        seed_file: Some(seed),
        serve: ServeOptions {
            state_file: Some(state.clone()),
            ..options(bound)
        },
    };
    let running = tokio::spawn(run(sim_options, async { drop(stopped.await) }));
    let address = address.await.expect("bound");
    let healthy = fetch(address, "/_sim/healthz").await.expect("an answer");
    assert!(
        healthy.starts_with("HTTP/1.1 200") && healthy.ends_with("{\"status\":\"ok\"}"),
        "{healthy}"
    );
    let refused = fetch(address, "/client/v4/zones").await.expect("an answer");
    assert!(
        refused.starts_with("HTTP/1.1 400") && refused.contains("9106"),
        "{refused}"
    );
    stop.send(()).expect("running");
    running.await.expect("no panic").expect("a clean end");
    let copy = Simulator::new(SimConfig::default());
    assert!(copy.load(&state).expect("a state file"));
    assert_eq!(copy.dump()["accounts"][0]["name"], "One");
}

#[tokio::test]
async fn a_reset_closes_the_connection_without_a_byte() {
    let sim = Simulator::new(SimConfig {
        dropped: Dropped::Reset,
        ..SimConfig::default()
    });
    sim.add_fault(FaultSpec::new(FaultMatch::any(), Fault::DropBefore { dropped: None }).times(1))
        .expect("a good fault");
    let (bound, address) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(serve(sim, options(bound), async { drop(stopped.await) }));
    let address = address.await.expect("bound");
    // Closed either way; whether as an end or as an error is the kernel's choice.
    assert_eq!(fetch(address, "/client/v4/zones").await.unwrap_or_default(), "");
    assert!(
        fetch(address, "/client/v4/zones")
            .await
            .expect("an answer")
            .starts_with("HTTP/1.1 400")
    );
    stop.send(()).expect("running");
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn serves_tls() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Another test of this process may have been first; it installs the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["sim.test".to_owned()]).expect("a certificate");
    let files = TlsFiles {
        cert: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&files.cert, made.cert.pem()).expect("written");
    std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("written");
    let (bound, address) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let sim = Simulator::new(SimConfig::default());
    let tls = ServeOptions {
        tls: Some(files),
        ..options(bound)
    };
    let running = tokio::spawn(serve(sim, tls, async { drop(stopped.await) }));
    let address = address.await.expect("bound");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let text = tokio::task::spawn_blocking(move || {
        let name = "sim.test".try_into().expect("a name");
        let connection = rustls::ClientConnection::new(Arc::new(client), name).expect("a connection");
        let socket = TcpStream::connect(address).expect("connected");
        exchange(&mut rustls::StreamOwned::new(connection, socket), "/_sim/healthz").expect("an answer")
    });
    assert!(text.await.expect("no panic").starts_with("HTTP/1.1 200"));
    stop.send(()).expect("running");
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn what_keeps_it_from_running() {
    let run = |seed_file, serve| {
        let options = SimOptions {
            config: SimConfig::default(),
            seed_file,
            serve,
        };
        run(options, std::future::ready(()))
    };
    let serve = || ServeOptions {
        listen: anywhere(),
        tls: None,
        state_file: None,
        bound: None,
    };
    let missing = std::path::PathBuf::from("no/such/file");
    let taken = std::net::TcpListener::bind(anywhere()).expect("a port");
    let listen = taken.local_addr().expect("an address");
    assert!(matches!(
        run(None, ServeOptions { listen, ..serve() }).await,
        Err(SimError::Serve { .. })
    ));
    assert!(matches!(
        run(Some(missing.clone()), serve()).await,
        Err(SimError::SeedFile { .. })
    ));
    let tls = TlsFiles {
        cert: missing.clone(),
        key: missing,
    };
    assert!(matches!(
        run(
            None,
            ServeOptions {
                tls: Some(tls),
                ..serve()
            }
        )
        .await,
        Err(SimError::Tls { .. })
    ));
    run(None, serve()).await.expect("shut down at once");
}
