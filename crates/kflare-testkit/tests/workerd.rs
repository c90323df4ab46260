//! Worker code, run for real: what the simulator holds after kflare has uploaded it is started in `workerd`, Cloudflare's own
//! runtime, and called over loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kflare_api::names;
use kflare_sim::{BindableSeed, Seed};
use kflare_testkit::{
    life::Life,
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, ControllerOptions, NAMESPACE, simulate},
};
use serde_json::{Value, json};

/// How long a Worker may take to become ready, on the virtual clock.
const PATIENCE: Duration = Duration::from_mins(5);

const MAIN: &str = r#"
import note from "./note.txt";
import conf from "./conf.json";
import { twice } from "./lib/twice.js";
import wasm from "./answer.wasm";

export default {
  async fetch(request, env) {
    const key = new URL(request.url).pathname.slice(1);
    await env.CACHE.put(key, "cached " + key);
    const { exports } = await WebAssembly.instantiate(wasm);
    return Response.json({
      text: env.GREETING,
      conf: env.CONF,
      secret: env.API_KEY,
      kv: await env.CACHE.get(key),
      missing: await env.CACHE.get("missing"),
      note, module: conf, twice: twice(21), wasm: exports.answer(),
    });
  },
};
"#;

/// `(module (func (export "answer") (result i32) i32.const 42))`
const ANSWER: &[u8] = &[
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, 7, 10, 1, 6, b'a', b'n', b's', b'w', b'e',
    b'r', 0, 0, 10, 6, 1, 4, 0, 0x41, 42, 0x0b,
];

/// What stands for KV's servers: `workerd` reaches them by HTTP.
const KV: &str = r#"
const values = new Map();
export default {
  async fetch(request) {
    const key = decodeURIComponent(new URL(request.url).pathname.slice(1));
    if (request.method === "PUT") {
      values.set(key, await request.text());
      return new Response();
    }
    return values.has(key) ? new Response(values.get(key)) : new Response(null, { status: 404 });
  },
};
"#;

const NAMESPACE_ID: &str = "0f2ac74b498b48028cb68387c421e279";

fn manifest(kind: &str, name: &str, fields: &Value) -> Value {
    let own = kind == "WorkerScript";
    let mut manifest = json!({
        "apiVersion": if own { names::API_VERSION } else { "v1" }, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
    });
    json_patch::merge(&mut manifest, fields);
    manifest
}

/// Creates resources in an empty world, waits for the Worker, and gives what Cloudflare holds of it then.
fn uploaded(resources: &[Value]) -> Value {
    let (held, _) = simulate(41, |world| async move {
        let user = world.user();
        user.open_account(vec![]);
        let namespace = BindableSeed {
            account: ACCOUNT_ID.to_owned(),
            kind: "kv_namespace".to_owned(),
            id: NAMESPACE_ID.to_owned(),
        };
        let seed = Seed {
            bindable: vec![namespace],
            ..Seed::default()
        };
        world.cloudflare.seed(&seed).unwrap();
        user.connect();
        let life = Life::new("controller");
        let running = world.clone();
        tokio::spawn(async move { running.run_controller(&life, ControllerOptions::default()).await });
        for resource in resources {
            user.create(resource.clone());
        }
        let worker = resources
            .iter()
            .find(|it| it["kind"] == "WorkerScript")
            .expect("a Worker");
        let id = ObjectId::of(worker);
        let ready = world.until(PATIENCE, |_| user.is_ready(&id)).await;
        assert!(ready, "{:?} {}", user.ready(&id), user.message(&id));
        world
            .cloudflare
            .worker(ACCOUNT_ID, worker["spec"]["name"].as_str().unwrap())
    });
    held.expect("stored")
}

/// The path of `workerd`, installed if need be.
fn workerd() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/test-workerd");
    let output = Command::new(script).output().expect("hack/test-workerd runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

/// The configuration of `workerd` for a stored Worker, its modules beside it in `folder`.
fn configure(folder: &Path, stored: &Value) -> PathBuf {
    let mut code = String::new();
    let modules = stored["modules"].as_array().unwrap();
    for (index, module) in modules.iter().enumerate() {
        let body = &module["body"];
        let bytes = match body["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => STANDARD.decode(body["base64"].as_str().unwrap()).unwrap(),
        };
        let file = format!("module-{index}");
        std::fs::write(folder.join(&file), bytes).unwrap();
        let kind = match module["content_type"].as_str().unwrap() {
            "application/javascript+module" => "esModule",
            "application/javascript" => "commonJsModule",
            "application/wasm" => "wasm",
            "text/plain" => "text",
            "application/octet-stream" => "data",
            "application/json" => "json",
            other => panic!("{other} is no module of workerd"),
        };
        if stored["syntax"]["service_worker"].is_string() {
            writeln!(code, "  serviceWorkerScript = embed \"{file}\",").unwrap();
        } else {
            let opening = if index == 0 { "  modules = [\n" } else { "" };
            writeln!(
                code,
                "{opening}    (name = {}, {kind} = embed \"{file}\"),",
                module["name"]
            )
            .unwrap();
        }
    }
    if stored["syntax"]["modules"].is_string() {
        assert_eq!(
            modules[0]["name"], stored["syntax"]["modules"],
            "workerd runs the first"
        );
        code.push_str("  ],\n");
    }
    let mut bindings = String::new();
    for binding in stored["bindings"].as_array().unwrap() {
        let value = match binding["type"].as_str().unwrap() {
            "plain_text" | "secret_text" => format!("text = {}", binding["text"]),
            "json" => format!("json = {}", Value::String(binding["json"].to_string())),
            "kv_namespace" => "kvNamespace = \"kv\"".to_owned(),
            other => panic!("{other} is no binding of this test"),
        };
        writeln!(bindings, "    (name = {}, {value}),", binding["name"]).unwrap();
    }
    std::fs::write(folder.join("kv.js"), KV).unwrap();
    let date = &stored["compatibility_date"];
    let config = format!(
        "using Workerd = import \"/workerd/workerd.capnp\";\n\
         const config :Workerd.Config = (\n  \
           services = [(name = \"main\", worker = .main), (name = \"kv\", worker = .kv)],\n  \
           sockets = [(name = \"http\", address = \"127.0.0.1:0\", http = (), service = \"main\")],\n);\n\
         const main :Workerd.Worker = (\n{code}  compatibilityDate = {date},\n  bindings = [\n{bindings}  ],\n);\n\
         const kv :Workerd.Worker = (\n  modules = [(name = \"kv.js\", esModule = embed \"kv.js\")],\n  \
           compatibilityDate = \"2026-01-01\",\n);\n"
    );
    let path = folder.join("config.capnp");
    std::fs::write(&path, config).unwrap();
    path
}

/// A running `workerd`; it ends with this.
struct Runtime {
    child: Child,
    port: u16,
}

impl Runtime {
    /// Starts a stored Worker and waits until it listens.
    fn start(folder: &Path, stored: &Value) -> Self {
        let config = configure(folder, stored);
        let mut child = Command::new(workerd())
            .args(["serve", "--control-fd=1"])
            .arg(&config)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("workerd starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
            .find(|event| event["event"] == "listen")
            .and_then(|event| event["port"].as_u64());
        let Some(port) = port else {
            let mut said = String::new();
            drop(child.stderr.take().unwrap().read_to_string(&mut said));
            drop(child.wait());
            panic!("workerd does not listen: {said}");
        };
        let port = u16::try_from(port).unwrap();
        Self { child, port }
    }

    /// The body of the answer to a GET.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: worker\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        assert!(head.contains(" 200 "), "{answer}");
        body.to_owned()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn what_was_uploaded_runs() {
    let code = json!({
        "data": { "index.js": MAIN, "twice.js": "export const twice = n => 2 * n" },
        "binaryData": { "answer.wasm": STANDARD.encode(ANSWER) },
    });
    let key = format!("key-{}", 42);
    let spec = json!({
        "accountRef": { "name": "main" }, "name": "hello", "mainModule": "index.js", "compatibilityDate": "2026-01-01",
        "modules": [
            { "name": "index.js", "type": "esModule", "configMapRef": { "name": "code", "key": "index.js" } },
            { "name": "lib/twice.js", "type": "esModule", "configMapRef": { "name": "code", "key": "twice.js" } },
            { "name": "answer.wasm", "type": "wasm", "configMapRef": { "name": "code", "key": "answer.wasm" } },
            { "name": "note.txt", "type": "text", "content": "a \"note\"" },
            { "name": "conf.json", "type": "json", "content": "{\"from\":\"module\"}" },
        ],
        "bindings": [
            { "name": "GREETING", "plainText": "line one\nline \"two\"" },
            { "name": "CONF", "json": { "deep": [1, { "a": null }] } },
            { "name": "API_KEY", "secretKeyRef": { "name": "keys", "key": "api" } },
            { "name": "CACHE", "kvNamespaceID": NAMESPACE_ID },
        ],
    });
    let stored = uploaded(&[
        manifest("ConfigMap", "code", &code),
        manifest("Secret", "keys", &json!({ "data": { "api": STANDARD.encode(&key) } })),
        manifest("WorkerScript", "hello", &json!({ "spec": spec })),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::start(folder.path(), &stored);
    let answer: Value = serde_json::from_str(&runtime.get("/some")).unwrap();
    let expected = json!({
        "text": "line one\nline \"two\"", "conf": { "deep": [1, { "a": null }] }, "secret": key,
        "kv": "cached some", "missing": null, "note": "a \"note\"", "module": { "from": "module" }, "twice": 42, "wasm": 42,
    });
    assert_eq!(answer, expected);
}

#[test]
fn a_service_worker_runs() {
    let script = "addEventListener('fetch', event => event.respondWith(new Response(GREETING)))";
    let spec = json!({
        "accountRef": { "name": "main" }, "name": "old", "script": script, "format": "serviceWorker",
        "compatibilityDate": "2026-01-01", "bindings": [{ "name": "GREETING", "plainText": "hi" }],
    });
    let stored = uploaded(&[manifest("WorkerScript", "old", &json!({ "spec": spec }))]);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Runtime::start(folder.path(), &stored).get("/"), "hi");
}
