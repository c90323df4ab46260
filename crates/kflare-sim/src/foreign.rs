//! Calls that somebody else makes: without a token, a budget, a fault or a line in the log.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::Caller;
use crate::envelope::{Refusal, ReplyBody};
use crate::exchange::{Message, handle};
use crate::paging::Query;
use crate::route::{self, BASE, Found};
use crate::simulator::Simulator;

/// A call of a modelled route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignCall {
    /// The method, in upper case.
    pub method: String,
    /// Path and query below `/client/v4`, such as `/accounts/{id}/r2/buckets`.
    pub path: String,
    /// The body.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body, where it is not JSON; its content type is among the headers.
    #[serde(skip)]
    pub raw: Option<Vec<u8>>,
    /// Headers that matter to the route, such as `cf-r2-jurisdiction`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl ForeignCall {
    /// A call without body and headers.
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            path: path.into(),
            ..Self::default()
        }
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// With a body that is not JSON.
    #[must_use]
    pub fn raw(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            raw: Some(body.into()),
            ..self
        }
        .header("content-type", content_type)
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    fn header_map(&self) -> HeaderMap {
        let read = |(name, value): (&String, &String)| {
            Some((
                HeaderName::try_from(name).ok()?,
                HeaderValue::try_from(value.as_str()).ok()?,
            ))
        };
        self.headers.iter().filter_map(read).collect()
    }
}

impl Simulator {
    /// Makes a call as somebody else would, who may do everything, and returns the `result` of its answer.
    pub fn foreign_call(&self, call: &ForeignCall) -> Result<Value, Refusal> {
        let (path, query) = match call.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (call.path.as_str(), None),
        };
        let unknown = || Refusal::new(404, 7003, format!("{} {path} is not modelled", call.method));
        let segments = route::segments(&format!("{BASE}{path}")).unwrap_or_default();
        let Found::Route(route, params) = route::find(&call.method, &segments) else {
            return Err(unknown());
        };
        let body = match (&call.raw, &call.body) {
            (Some(raw), _) => Bytes::from(raw.clone()),
            (None, Some(body)) => Bytes::from(body.to_string()),
            (None, None) => Bytes::new(),
        };
        let reply = self.with(|core| {
            let caller = Caller::of_everything(&core.world);
            let message = Message {
                headers: &call.header_map(),
                query: &Query::parse(query),
                body: &body,
            };
            handle(core, &message, route, &params, &caller, None)
        })?;
        match reply.body {
            ReplyBody::Result { result, .. } => Ok(result),
            ReplyBody::Text { text, .. } => Ok(Value::String(text)),
            ReplyBody::Empty | ReplyBody::Bytes { .. } => Ok(Value::Null),
            ReplyBody::Errors(errors) | ReplyBody::BareErrors(errors) => Err(Refusal {
                status: reply.status,
                errors,
            }),
        }
    }

    /// The Workers of an account (by id or name), as lists show them, by name.
    pub fn workers(&self, account: &str) -> Vec<Value> {
        self.with(|core| {
            let id = core.world.find_account(account).unwrap_or_default();
            let scripts = core.world.scripts(&id, None);
            scripts
                .iter()
                .map(|script| crate::areas::workers::shown(script))
                .collect()
        })
    }

    /// Everything that is held of a Worker, code and secret texts included. `None`: there is no such account or Worker.
    pub fn worker(&self, account: &str, name: &str) -> Option<Value> {
        self.with(|core| {
            let id = core.world.find_account(account)?;
            let script = core.world.script(&id, name)?;
            Some(crate::areas::workers::revealed(script))
        })
    }
}
