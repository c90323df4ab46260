//! A transport in memory that answers as told and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use kflare_cloudflare::{Client, Metrics, Pool, PoolOptions, Transport, TransportError, TransportErrorKind};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// A call that reached the transport.
#[derive(Debug, Clone)]
pub struct Call {
    pub at: Instant,
    pub method: Method,
    pub uri: String,
    pub authorization: String,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl Call {
    /// A query parameter.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.uri.split_once('?')?;
        query
            .split('&')
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
            .map(ToOwned::to_owned)
    }
}

/// What the transport does with a call.
pub struct Step {
    after: Duration,
    reply: Result<http::Response<Bytes>, TransportErrorKind>,
}

impl Step {
    pub fn body(status: u16, body: impl Into<Bytes>) -> Self {
        let mut response = http::Response::new(body.into());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Self {
            after: Duration::from_millis(1),
            reply: Ok(response),
        }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::body(status, body.to_string())
    }

    /// A success with this result.
    pub fn ok(result: &Value) -> Self {
        Self::json(
            200,
            &json!({"success": true, "errors": [], "messages": [], "result": result}),
        )
    }

    /// A refusal with this code.
    pub fn refused(status: u16, code: i64) -> Self {
        Self::json(
            status,
            &json!({"success": false, "errors": [{"code": code, "message": format!("refused {code}")}]}),
        )
    }

    pub fn lost(kind: TransportErrorKind) -> Self {
        Self {
            after: Duration::from_millis(1),
            reply: Err(kind),
        }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(response) = &mut self.reply {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        self
    }

    pub fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }
}

/// The calls that reached a scripted transport.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    pub fn all(&self) -> Vec<Call> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn uris(&self) -> Vec<String> {
        self.all().into_iter().map(|call| call.uri).collect()
    }
}

/// A transport that answers the n-th call (from 0) with `script(n, call)`.
pub fn transport(script: impl Fn(usize, &Call) -> Step + Send + Sync + 'static) -> (Transport, Calls) {
    let calls = Calls::default();
    let log = calls.clone();
    let script = Arc::new(script);
    let service = tower::service_fn(move |request: http::Request<Bytes>| {
        let (log, script) = (log.clone(), Arc::clone(&script));
        async move {
            let call = Call {
                at: Instant::now(),
                method: request.method().clone(),
                uri: request.uri().to_string(),
                authorization: request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned(),
                headers: request.headers().clone(),
                body: request.into_body(),
            };
            let step = {
                let mut log = log.0.lock().unwrap();
                let step = script(log.len(), &call);
                log.push(call);
                step
            };
            sleep(step.after).await;
            step.reply.map_err(TransportError::from)
        }
    });
    (Transport::new(service), calls)
}

/// A pool over a scripted transport.
pub fn pool(options: PoolOptions, script: impl Fn(usize, &Call) -> Step + Send + Sync + 'static) -> (Pool, Calls) {
    let (transport, calls) = transport(script);
    let options = PoolOptions {
        base_url: "https://api.example.com/client/v4".parse().unwrap(),
        ..options
    };
    (Pool::new(transport, options, Metrics::unregistered()), calls)
}

/// A client over a scripted transport.
pub fn client(script: impl Fn(usize, &Call) -> Step + Send + Sync + 'static) -> (Client, Calls) {
    let (pool, calls) = pool(PoolOptions::default(), script);
    (pool.client("account", token(1).into()), calls)
}

/// A token that is none.
pub fn token(number: u32) -> String {
    format!("sim-token-{number}")
}
