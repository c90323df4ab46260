//! The ways that companies put between kflare and Cloudflare: proxies, certificate authorities of their own, IPv6.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod serve;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use serve::{Process, get};

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";

/// The host that the simulator's certificate is for. It is in no DNS, so only a proxy reaches it.
const HOST: &str = "api.cloudflare.test";

fn token() -> String {
    ["network", "test", "token"].join("-")
}

/// `kflare sim` over TLS, with a certificate that only `authority` vouches for.
struct Cloud {
    _process: Process,
    _files: tempfile::TempDir,
    authority: PathBuf,
    address: SocketAddr,
}

fn cloud() -> Cloud {
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name);
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec![HOST.to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(path("authority.pem"), issuer.pem()).unwrap();
    fs::write(path("certificate.pem"), certificate.pem()).unwrap();
    fs::write(path("key.pem"), key.serialize_pem()).unwrap();
    let seed = json!({
        "tokens": [{ "value": token(), "permissions": everything() }],
        "accounts": [{ "id": ACCOUNT, "name": "Example" }],
        "zones": [{ "name": "example.com", "account": "Example" }],
    });
    fs::write(path("seed.json"), seed.to_string()).unwrap();
    let flag = |flag: &str, file: &str| format!("--{flag}={}", path(file).display());
    let mut process = Process::start(
        &[
            "sim",
            "--listen=127.0.0.1:0",
            "--log-format=json",
            &flag("seed-file", "seed.json"),
            &flag("tls-cert", "certificate.pem"),
            &flag("tls-key", "key.pem"),
        ],
        &[],
    );
    let address = process.address_of("simulator listens").parse().unwrap();
    Cloud {
        authority: path("authority.pem"),
        _process: process,
        _files: files,
        address,
    }
}

fn everything() -> serde_json::Value {
    let areas = [kflare_sim::Area::Account, kflare_sim::Area::Zone, kflare_sim::Area::Dns];
    let grants = areas.map(|area| kflare_sim::Grant::everywhere(kflare_sim::Permission::write(area)));
    serde_json::to_value(grants).unwrap()
}

/// `kflare plan` for the zone that exists, with nothing of the test's own environment.
fn plan(url: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let manifests = format!(
        "apiVersion: kflare.dev/v1alpha1
kind: CloudflareAccount
metadata: {{name: main}}
spec: {{accountID: {ACCOUNT}, tokenSecretRef: {{name: token, namespace: system}}}}
---
apiVersion: kflare.dev/v1alpha1
kind: Zone
metadata: {{name: example, annotations: {{kflare.dev/adoption-policy: adopt}}}}
spec: {{name: example.com, accountRef: {{name: main}}}}
"
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_kflare"))
        .args(["plan", "-f", "-", "--cloudflare-url", url])
        .env_clear()
        .env("CF_API_TOKEN", token())
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let shown = format!(
        "{}{}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
    (status.code(), shown)
}

/// A proxy that tunnels to one address, whatever it is asked for, and notes the first line of every request.
struct Proxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            asked: Arc::default(),
        };
        let asked = proxy.asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let asked = asked.clone();
                std::thread::spawn(move || tunnel(stream, target, &asked));
            }
        });
        proxy
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn tunnel(client: TcpStream, target: SocketAddr, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let mut first = String::new();
    // A connection that says nothing asks for nothing.
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    asked.lock().unwrap().push(first.trim_end().to_owned());
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
    }
    let server = TcpStream::connect(target).unwrap();
    let (mut to_client, mut to_server) = (client, server.try_clone().unwrap());
    to_client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .unwrap();
    let back = std::thread::spawn(move || {
        let mut server = server;
        let _ = std::io::copy(&mut server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut reader, &mut to_server);
    let _ = to_server.shutdown(Shutdown::Write);
    let _ = back.join();
}

// Field case 145. Calls to Cloudflare go through the proxy of the environment, as a tunnel to the API's host and nothing else.
#[test]
fn calls_to_cloudflare_go_through_the_proxy_of_the_environment_and_no_proxy_takes_them_out() {
    let cloud = cloud();
    let proxy = Proxy::start(cloud.address);
    let url = format!("https://{HOST}/client/v4");
    let trust = ("SSL_CERT_FILE", cloud.authority.to_str().unwrap());
    let (code, shown) = plan(&url, &[trust, ("HTTPS_PROXY", &proxy.url)]);
    assert_eq!(code, Some(0), "{shown}");
    let asked = proxy.asked();
    assert!(!asked.is_empty());
    for line in &asked {
        assert_eq!(line, &format!("CONNECT {HOST}:443 HTTP/1.1"));
    }
    // NO_PROXY, by suffix: not through the proxy, and otherwise there is no way to that host.
    for excepted in [".cloudflare.test", HOST, "10.0.0.0/8,.cloudflare.test"] {
        let (code, shown) = plan(&url, &[trust, ("HTTPS_PROXY", &proxy.url), ("NO_PROXY", excepted)]);
        assert_eq!(code, Some(1), "{shown}");
        assert_eq!(proxy.asked(), asked, "{excepted}");
    }
    // By network: straight to the simulator.
    let direct = format!("https://localhost:{}/client/v4", cloud.address.port());
    for excepted in ["localhost", "127.0.0.0/8,localhost"] {
        let (code, shown) = plan(&direct, &[trust, ("HTTPS_PROXY", &proxy.url), ("NO_PROXY", excepted)]);
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(proxy.asked(), asked, "{excepted}");
    }
}

// Field case 145.
#[test]
fn a_proxy_that_is_not_there_is_said_in_clear_words() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, shown) = plan(
        &format!("https://{HOST}/client/v4"),
        &[("HTTPS_PROXY", &format!("http://{closed}"))],
    );
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("no connection to Cloudflare") && shown.contains("refused"),
        "{shown}"
    );
}

// Field case 145. kube 5.0 takes HTTPS_PROXY for the API server as well, and compares NO_PROXY with the proxy.
#[test]
fn the_api_server_is_not_asked_through_the_proxy_for_cloudflare() {
    let api_server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = api_server.local_addr().unwrap();
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{ "name": "here", "context": { "cluster": "here", "user": "nobody" } }],
        "clusters": [{ "name": "here", "cluster": { "server": format!("http://{address}") } }],
        "users": [{ "name": "nobody", "user": {} }],
    });
    fs::write(kubeconfig.path(), config.to_string()).unwrap();
    for no_proxy in ["", "127.0.0.1", "kubernetes.default.svc,10.0.0.0/8,.svc"] {
        let proxy = Proxy::start(address);
        let environment = [
            ("KUBECONFIG", kubeconfig.path().to_str().unwrap()),
            ("HTTPS_PROXY", proxy.url.as_str()),
            ("NO_PROXY", no_proxy),
            ("KFLARE_LOG_FORMAT", "json"),
        ];
        let arguments = ["controller", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0"];
        let mut controller = Process::start(&arguments, &environment);
        let probes = controller.address_of("probes listen");
        // The request line that reaches the server is that of a direct request.
        let (sender, first) = mpsc::channel();
        let listener = api_server.try_clone().unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            let _ = sender.send(line);
        });
        let line = first.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(line.contains(" /api"), "{line}");
        assert_eq!(proxy.asked(), Vec::<String>::new(), "NO_PROXY={no_proxy}");
        assert_eq!(
            get(&probes, "/healthz", &[]).status,
            200,
            "the probes do not depend on it"
        );
        controller.terminate();
        let (code, log) = controller.end();
        assert_eq!(code, Some(0), "{log:?}");
    }
}

// Field case 146. The authority of an inspecting proxy, mounted as a file.
#[test]
fn a_private_authority_is_trusted_by_ssl_cert_file_and_named_as_the_fault_without_it() {
    let cloud = cloud();
    let url = format!("https://localhost:{}/client/v4", cloud.address.port());
    let (code, shown) = plan(&url, &[("SSL_CERT_FILE", cloud.authority.to_str().unwrap())]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = plan(&url, &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("UnknownIssuer"), "{shown}");
}

// Field case 147. Everything that listens does so on IPv6 as well, and addresses are written with their brackets.
#[test]
fn everything_listens_on_ipv6_and_is_reached_there() {
    let base: kflare_cloudflare::BaseUrl = "http://[fd00::5]:8787/client/v4/".parse().unwrap();
    assert_eq!(base.as_str(), "http://[fd00::5]:8787/client/v4");
    if let Err(error) = TcpListener::bind("[::1]:0") {
        println!("NOT TESTED: this machine has no IPv6 ({error}), so nothing can listen on [::1]");
        return;
    }
    let mut simulator = Process::start(&["sim", "--listen=[::1]:0", "--log-format=json"], &[]);
    let address: SocketAddr = simulator.address_of("simulator listens").parse().unwrap();
    assert!(address.is_ipv6(), "{address}");
    let refused = get(&address.to_string(), "/client/v4/zones", &[]);
    assert!(
        refused.status / 100 == 4 && refused.body.contains("\"success\":false"),
        "{}",
        refused.body
    );
    // And the client goes there.
    let (code, shown) = plan(&format!("http://{address}/client/v4"), &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("Invalid API Token"), "{shown}");

    let api_server = TcpListener::bind("[::1]:0").unwrap();
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{ "name": "here", "context": { "cluster": "here", "user": "nobody" } }],
        "clusters": [{ "name": "here", "cluster": { "server": format!("http://{}", api_server.local_addr().unwrap()) } }],
        "users": [{ "name": "nobody", "user": {} }],
    });
    fs::write(kubeconfig.path(), config.to_string()).unwrap();
    let environment = [
        ("KUBECONFIG", kubeconfig.path().to_str().unwrap()),
        ("KFLARE_LOG_FORMAT", "json"),
        ("KFLARE_METRICS_SECURE", "false"),
    ];
    // No host: every address of both families.
    let mut controller = Process::start(&["controller", "--metrics-addr=:0", "--health-addr=:0"], &environment);
    for (listens, path) in [("probes listen", "/healthz"), ("metrics listen", "/metrics")] {
        let address: SocketAddr = controller.address_of(listens).parse().unwrap();
        for host in ["[::1]", "127.0.0.1"] {
            let answer = get(&format!("{host}:{}", address.port()), path, &[]);
            assert_eq!(answer.status, 200, "{host}{path}: {}", answer.head);
        }
    }
    controller.terminate();
    assert_eq!(controller.status().code(), Some(0));
}
