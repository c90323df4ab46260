//! `kflare sim` as a process.

mod serve;

use std::fs;

use serde_json::{Value, json};
use serve::{Process, get};

#[test]
fn it_serves_its_seed_and_goes_on_from_its_state_file() {
    let directory = tempfile::tempdir().unwrap();
    let (seed, state) = (directory.path().join("seed.json"), directory.path().join("state.json"));
    let token = format!("sim-token-{}", 1);
    let seeded = json!({
        "tokens": [{ "value": token }],
        "accounts": [{ "id": "0123456789abcdef0123456789abcdef", "name": "Example" }],
    });
    fs::write(&seed, seeded.to_string()).unwrap();
    let arguments = [
        "sim",
        "--listen=127.0.0.1:0",
        "--log-format=json",
        &format!("--seed-file={}", seed.display()),
        &format!("--state={}", state.display()),
    ];
    for start in ["seeded", "from the state file"] {
        let mut simulator = Process::start(&arguments, &[]);
        let address = simulator.address_of("simulator listens");
        let answer = get(
            &address,
            "/client/v4/user/tokens/verify",
            &[("authorization", &format!("Bearer {token}"))],
        );
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (answer.status, &body["result"]["status"]),
            (200, &json!("active")),
            "{start}: {body}"
        );
        assert!(
            answer.head.contains("content-type: application/json"),
            "{}",
            answer.head
        );
        assert_eq!(get(&address, "/client/v4/user/tokens/verify", &[]).status / 100, 4);
        simulator.terminate();
        assert_eq!(simulator.status().code(), Some(0), "{start}");
        assert!(state.exists());
        // The second start has nothing but the state.
        fs::write(&seed, json!({}).to_string()).unwrap();
    }
}

#[test]
fn what_cannot_be_used_is_said_in_one_line() {
    for (arguments, said) in [
        (
            &["sim", "--seed-file=/nonexistent/seed.json"][..],
            "/nonexistent/seed.json",
        ),
        (&["sim", "--latency=50"], "50ms"),
        (&["sim", "--tls-cert=cert.pem"], "--tls-key"),
    ] {
        let arguments = [arguments, &["--listen=127.0.0.1:0"]].concat();
        let (code, lines) = Process::start(&arguments, &[]).end();
        assert_eq!((code, lines.len()), (Some(1), 1), "{lines:?}");
        assert!(lines[0].contains(said), "{lines:?}");
    }
}
