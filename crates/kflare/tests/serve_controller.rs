//! `kflare controller` as a process, without a cluster that answers.

#![allow(clippy::unwrap_used)] // test support: a surprise ends the test

mod serve;

use std::{fs, net::TcpListener};

use serde_json::json;
use serve::{Process, get};

/// A kubeconfig of an API server that does not answer: the listener takes connections and says nothing.
fn silent_cluster() -> (TcpListener, tempfile::NamedTempFile) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "silent",
        "contexts": [{ "name": "silent", "context": { "cluster": "silent", "user": "nobody" } }],
        "clusters": [{ "name": "silent", "cluster": { "server": format!("http://{}", listener.local_addr().unwrap()) } }],
        "users": [{ "name": "nobody", "user": {} }],
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), config.to_string()).unwrap();
    (listener, file)
}

const FREE_PORTS: [&str; 2] = ["--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0"];

#[test]
fn without_a_cluster_the_start_ends_in_one_line() {
    let (code, lines) = Process::start(&[&["controller"][..], &FREE_PORTS].concat(), &[]).end();
    assert_eq!((code, lines.len()), (Some(1), 1), "{lines:?}");
    assert!(
        lines[0].contains("no Kubernetes cluster") && lines[0].contains("KUBECONFIG"),
        "{lines:?}"
    );
}

#[test]
fn a_bad_value_in_the_environment_ends_the_start_in_one_line_that_names_it() {
    let (code, lines) = Process::start(&["controller"], &[("KFLARE_CONCURRENCY", "zero")]).end();
    assert_eq!((code, lines.len()), (Some(1), 1), "{lines:?}");
    for part in ["--concurrency", "KFLARE_CONCURRENCY", "zero", "1 to 256"] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
}

#[test]
fn an_address_in_use_ends_the_start_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("--health-addr={}", taken.local_addr().unwrap());
    let (code, lines) = Process::start(&["controller", &flag], &[]).end();
    assert_eq!((code, lines.len()), (Some(1), 1), "{lines:?}");
    assert!(
        lines[0].contains("--health-addr") && lines[0].contains("in use"),
        "{lines:?}"
    );
}

#[test]
fn a_silent_api_server_leaves_it_alive_and_not_ready_and_a_signal_ends_it() {
    let (_silent, kubeconfig) = silent_cluster();
    let environment = [
        ("KUBECONFIG", kubeconfig.path().to_str().unwrap()),
        ("KFLARE_API_BUDGET", "50%"),
        ("KFLARE_LEADER_ELECT", "false"),
        ("KFLARE_WATCH_NAMESPACES", "team-a,team-b"),
        ("KFLARE_METRICS_SECURE", "false"),
        ("KFLARE_LOG_FORMAT", "json"),
        ("KFLARE_METRICS_CERT_DIR", ""),
    ];
    let mut controller = Process::start(&[&["controller"][..], &FREE_PORTS].concat(), &environment);
    let hello = controller.line("kflare controller starts");
    assert_eq!(
        (&hello["api_budget"], &hello["namespaces"]),
        (&json!(0.5), &json!("team-a,team-b"))
    );
    assert!(hello.get("lease").is_none(), "{hello}");
    let probes = controller.address_of("probes listen");
    let metrics = controller.address_of("metrics listen");

    let healthz = get(&probes, "/healthz", &[]);
    assert_eq!((healthz.status, healthz.body.as_str()), (200, "ok\n"));
    assert_eq!(get(&probes, "/readyz", &[]).status, 503);
    assert_eq!(get(&probes, "/metrics", &[]).status, 404);

    let scrape = get(&metrics, "/metrics", &[]);
    assert_eq!(scrape.status, 200);
    assert!(
        scrape.head.contains("content-type: text/plain; version=0.0.4"),
        "{}",
        scrape.head
    );
    for series in [
        "kflare_build_info{version=",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
    ] {
        assert!(scrape.body.contains(series), "{}", scrape.body);
    }

    controller.terminate();
    controller.line("stopped");
    assert_eq!(controller.status().code(), Some(0));
}

#[test]
fn metrics_are_protected_unless_told_otherwise() {
    let (_silent, kubeconfig) = silent_cluster();
    let environment = [("KUBECONFIG", kubeconfig.path().to_str().unwrap())];
    let mut controller = Process::start(&[&["controller"][..], &FREE_PORTS].concat(), &environment);
    let address = controller.address_of("metrics listen");
    let port = address.rsplit_once(':').unwrap().1;
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let status = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let client = reqwest::Client::builder()
                .tls_danger_accept_invalid_certs(true)
                .no_proxy()
                .build()
                .unwrap();
            client
                .get(format!("https://127.0.0.1:{port}/metrics"))
                .send()
                .await
                .unwrap()
                .status()
        });
    assert_eq!(status, 401);
    controller.terminate();
    assert_eq!(controller.status().code(), Some(0));
}
