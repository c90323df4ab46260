//! A simulator on tokio's paused clock, called in process.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kflare_sim::{
    AccountSeed, Area, Grant, Permission, Plan, Seed, SimConfig, Simulator, TokenSeed, VirtualClock, ZoneSeed,
};
use serde_json::{Value, json};
use tower::ServiceExt;

pub const ACCOUNT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub const OTHER_ACCOUNT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
pub const ZONE: &str = "cccccccccccccccccccccccccccccccc";
pub const UNKNOWN: &str = "dddddddddddddddddddddddddddddddd";

/// The value of the token with this name.
pub fn token(name: &str) -> String {
    format!("sim-token-{name}")
}

pub fn grants(permissions: &[(Area, bool)]) -> Vec<Grant> {
    let permission = |(area, write): &(Area, bool)| {
        if *write {
            Permission::write(*area)
        } else {
            Permission::read(*area)
        }
    };
    permissions.iter().map(permission).map(Grant::everywhere).collect()
}

/// What a call came back with.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    /// The result of a success.
    #[track_caller]
    pub fn result(self) -> Value {
        assert!(
            self.status == 200 && self.body["success"] == true,
            "{}: {}",
            self.status,
            self.text
        );
        self.body["result"].clone()
    }

    /// Status and root code of a refusal.
    #[track_caller]
    pub fn refusal(&self) -> (u16, i64) {
        assert_eq!(self.body["success"], false, "{}", self.text);
        let error = &self.body["errors"][0];
        let root = error["error_chain"]
            .as_array()
            .and_then(|chain| chain.last())
            .unwrap_or(error);
        (self.status, root["code"].as_i64().expect("a code"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A caller with one token.
#[derive(Clone)]
pub struct Api {
    pub sim: Simulator,
    pub token: Option<String>,
}

pub fn epoch() -> Timestamp {
    "2026-11-29T12:00:00Z".parse().expect("a time")
}

pub fn config() -> SimConfig {
    SimConfig {
        seed: 7,
        clock: Arc::new(VirtualClock::starting_at(epoch())),
        ..SimConfig::default()
    }
}

/// One account, a token `all` that may do everything, and the zone example.com on the given plan.
pub fn api_on(plan: Plan) -> Api {
    api_with(config(), plan)
}

pub fn api_with(config: SimConfig, plan: Plan) -> Api {
    let sim = Simulator::new(config);
    let everything = grants(&Area::ALL.map(|area| (area, true)));
    sim.seed(&Seed {
        accounts: vec![AccountSeed {
            id: Some(ACCOUNT.into()),
            ..AccountSeed::named("One")
        }],
        tokens: vec![TokenSeed::of_user(&token("all"), everything)],
        zones: vec![ZoneSeed {
            id: Some(ZONE.into()),
            ..ZoneSeed::named("example.com", "One").on(plan)
        }],
        ..Seed::default()
    })
    .expect("a good seed");
    Api {
        sim,
        token: Some(token("all")),
    }
}

impl Api {
    pub fn as_token(&self, name: &str) -> Self {
        Self {
            sim: self.sim.clone(),
            token: Some(token(name)),
        }
    }

    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Request<Body> {
        let mut request = Request::builder().method(method).uri(format!("/client/v4{path}"));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        request.body(body).expect("a request")
    }

    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        answer(
            self.sim
                .router()
                .oneshot(self.request(method, path, body))
                .await
                .expect("infallible"),
        )
        .await
    }

    pub async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = self.request(method, path, body);
        for (name, value) in headers {
            let value = value.parse().expect("a header");
            request.headers_mut().insert(*name, value);
        }
        answer(self.sim.router().oneshot(request).await.expect("infallible")).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub async fn create(&self, body: Value) -> Answer {
        self.send("POST", &format!("/zones/{ZONE}/dns_records"), Some(&body))
            .await
    }

    pub async fn patch(&self, id: &str, body: Value) -> Answer {
        self.send("PATCH", &format!("/zones/{ZONE}/dns_records/{id}"), Some(&body))
            .await
    }

    pub async fn list(&self, query: &str) -> Answer {
        self.get(&format!("/zones/{ZONE}/dns_records{query}")).await
    }

    pub async fn batch(&self, body: Value) -> Answer {
        self.send("POST", &format!("/zones/{ZONE}/dns_records/batch"), Some(&body))
            .await
    }

    /// The number of records in the zone.
    pub fn record_count(&self) -> usize {
        self.sim.records(ZONE).expect("the zone").len()
    }
}

pub async fn answer(response: axum::response::Response) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text,
        body,
    }
}

pub fn names(list: &Value) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| item["name"].as_str().expect("a name").to_owned())
        .collect()
}

pub fn id_of(record: &Value) -> String {
    record["id"].as_str().expect("an id").to_owned()
}

pub fn address(name: &str, content: &str) -> Value {
    json!({ "type": "A", "name": name, "content": content, "ttl": 300 })
}

pub fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

/// One valid body of each type.
pub fn bodies() -> Vec<Value> {
    vec![
        json!({ "type": "A", "name": "a", "content": "192.0.2.1", "ttl": 300 }),
        json!({ "type": "AAAA", "name": "aaaa", "content": "2001:DB8:0:0:8000:0:0:0", "ttl": 300 }),
        json!({ "type": "CAA", "name": "caa", "ttl": 300, "data": { "flags": 0, "tag": "issue", "value": "ca.example.net" } }),
        json!({ "type": "CERT", "name": "cert", "ttl": 300, "data": { "type": 9, "key_tag": 1, "algorithm": 1, "certificate": "Zm9v" } }),
        json!({ "type": "CNAME", "name": "CName", "content": "Target.Example.NET.", "ttl": 300 }),
        json!({ "type": "DNSKEY", "name": "dnskey", "ttl": 300, "data": { "flags": 257, "protocol": 3, "algorithm": 13, "public_key": "Zm9v" } }),
        json!({ "type": "DS", "name": "ds", "ttl": 300, "data": { "key_tag": 3600, "algorithm": 13, "digest_type": 2, "digest": "abcdef" } }),
        json!({ "type": "HTTPS", "name": "https", "ttl": 300, "data": { "priority": 1, "target": ".", "value": "ipv4hint=192.0.2.1 alpn=\"h2,h3\"" } }),
        json!({ "type": "LOC", "name": "loc", "ttl": 300, "data": { "lat_degrees": 37, "lat_minutes": 46, "lat_seconds": 46, "lat_direction": "N", "long_degrees": 122, "long_minutes": 23, "long_seconds": 35, "long_direction": "W", "altitude": 0, "size": 100, "precision_horz": 0, "precision_vert": 0 } }),
        json!({ "type": "MX", "name": "@", "content": "Mail.Example.NET.", "priority": 10, "ttl": 300 }),
        json!({ "type": "NAPTR", "name": "naptr", "ttl": 300, "data": { "order": 100, "preference": 10, "flags": "s", "service": "SIP+D2U", "regex": "", "replacement": "_sip._udp.example.com" } }),
        json!({ "type": "NS", "name": "sub", "content": "ns1.example.net.", "ttl": 300 }),
        json!({ "type": "OPENPGPKEY", "name": "openpgpkey", "content": "Zm9v YmFy", "ttl": 300 }),
        json!({ "type": "PTR", "name": "ptr", "content": "Host.Example.NET.", "ttl": 300 }),
        json!({ "type": "SMIMEA", "name": "smimea", "ttl": 300, "data": { "usage": 3, "selector": 0, "matching_type": 1, "certificate": "abcdef" } }),
        json!({ "type": "SRV", "name": "_xmpp._tcp", "ttl": 300, "data": { "priority": 5, "weight": 0, "port": 5222, "target": "Talk.Example.NET." } }),
        json!({ "type": "SSHFP", "name": "sshfp", "ttl": 300, "data": { "algorithm": 4, "type": 2, "fingerprint": "abcdef" } }),
        json!({ "type": "SVCB", "name": "svcb", "ttl": 300, "data": { "priority": 1, "target": "foo.", "value": "alpn=\"h2\"" } }),
        json!({ "type": "TLSA", "name": "tlsa", "ttl": 300, "data": { "usage": 3, "selector": 1, "matching_type": 1, "certificate": "abcdef" } }),
        json!({ "type": "TXT", "name": "txt", "content": "MiXeD text", "ttl": 300 }),
        json!({ "type": "URI", "name": "_ftp._tcp", "priority": 10, "ttl": 300, "data": { "weight": 1, "target": "ftp://ftp.example.net/" } }),
    ]
}
