//! The v4 envelope: what every JSON answer looks like.

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::paging::Page;

/// One entry of `errors`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// Cloudflare's code.
    pub code: i64,
    /// Cloudflare's text. Never compare it.
    pub message: String,
    /// Causes, where the error only wraps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_chain: Vec<ApiError>,
    /// Where in the request body it is, where Cloudflare says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ErrorSource>,
}

/// The place of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorSource {
    /// A JSON pointer into the request body.
    pub pointer: String,
}

impl ApiError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            error_chain: Vec::new(),
            source: None,
        }
    }

    /// The same error, at a place in the request body.
    pub(crate) fn at(mut self, pointer: &str) -> Self {
        self.source = (!pointer.is_empty()).then(|| ErrorSource {
            pointer: pointer.to_owned(),
        });
        self
    }
}

/// A refused call: the HTTP status and the errors of the envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{status}: {}", .errors.first().map_or("", |error| error.message.as_str()))]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong; at least one entry.
    pub errors: Vec<ApiError>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self {
            status,
            errors: vec![ApiError::new(code, message)],
        }
    }

    /// The code of the first error, the innermost one where it is wrapped.
    pub fn root_code(&self) -> i64 {
        self.errors
            .first()
            .map_or(0, |error| error.error_chain.last().unwrap_or(error).code)
    }

    pub(crate) fn into_reply(self) -> Reply {
        Reply {
            status: self.status,
            body: ReplyBody::Errors(self.errors),
            retry_after: None,
        }
    }
}

/// An answer before it becomes bytes.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: ReplyBody,
    /// Seconds, for the header of the same name.
    pub(crate) retry_after: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum ReplyBody {
    Result {
        result: Value,
        /// None: neither `errors` nor `messages` is a list, both are null.
        messages: Option<Vec<Value>>,
        info: Option<Map<String, Value>>,
    },
    Errors(Vec<ApiError>),
    /// Errors in an envelope that has neither `result` nor `messages`.
    BareErrors(Vec<ApiError>),
    Text {
        content_type: &'static str,
        text: String,
    },
    /// No body at all.
    Empty,
    Bytes {
        content_type: String,
        bytes: Bytes,
    },
}

impl Reply {
    /// A single object. Cloudflare answers creates with 200, not 201 (seen live on every product recorded).
    pub(crate) fn object(result: Value) -> Self {
        Self {
            status: 200,
            body: ReplyBody::Result {
                result,
                messages: Some(Vec::new()),
                info: None,
            },
            retry_after: None,
        }
    }

    /// A success without a body: 204.
    pub(crate) fn no_content() -> Self {
        Self {
            status: 204,
            body: ReplyBody::Empty,
            retry_after: None,
        }
    }

    /// One page of a list that is followed by cursors: `result_info.cursors`.
    pub(crate) fn cursor_page(items: Vec<Value>, cursors: Map<String, Value>) -> Self {
        let mut reply = Self::object(Value::Array(items));
        if let ReplyBody::Result { info, .. } = &mut reply.body {
            *info = Some(Map::from_iter([("cursors".to_owned(), Value::Object(cursors))]));
        }
        reply
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// One page of a list, with `total_pages`.
    pub(crate) fn page(page: &Page, all: usize, items: Vec<Value>) -> Self {
        let body = ReplyBody::Result {
            messages: Some(Vec::new()),
            info: Some(page.info(items.len(), all)),
            result: Value::Array(items),
        };
        Self {
            status: 200,
            body,
            retry_after: None,
        }
    }

    /// A refusal in an envelope that has neither `result` nor `messages` (seen live on D1).
    pub(crate) fn bare_errors(refusal: Refusal) -> Self {
        Self {
            status: refusal.status,
            body: ReplyBody::BareErrors(refusal.errors),
            retry_after: None,
        }
    }

    /// With this `result_info`.
    pub(crate) fn with_info(mut self, given: Map<String, Value>) -> Self {
        if let ReplyBody::Result { info, .. } = &mut self.body {
            *info = Some(given);
        }
        self
    }

    /// Some lists do not count their pages (seen live on D1).
    pub(crate) fn without_total_pages(mut self) -> Self {
        if let ReplyBody::Result { info: Some(info), .. } = &mut self.body {
            info.remove("total_pages");
        }
        self
    }

    /// Some lists have null for `errors` and `messages` (seen live on queues).
    pub(crate) fn with_null_lists(mut self) -> Self {
        if let ReplyBody::Result { messages, .. } = &mut self.body {
            *messages = None;
        }
        self
    }

    pub(crate) fn with_message(mut self, message: Value) -> Self {
        if let ReplyBody::Result { messages, .. } = &mut self.body {
            messages.get_or_insert_default().push(message);
        }
        self
    }

    pub(crate) fn text(content_type: &'static str, text: String) -> Self {
        Self {
            status: 200,
            body: ReplyBody::Text { content_type, text },
            retry_after: None,
        }
    }

    /// Something that is no JSON.
    pub(crate) fn bytes(content_type: String, bytes: Bytes) -> Self {
        Self {
            status: 200,
            body: ReplyBody::Bytes { content_type, bytes },
            retry_after: None,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn encode(self) -> (String, Bytes) {
        // Zones answer bare `application/json` (seen live); DNS records are assumed to do the same.
        const JSON: &str = "application/json";
        let value = match self.body {
            ReplyBody::Text { content_type, text } => return (content_type.to_owned(), Bytes::from(text)),
            ReplyBody::Bytes { content_type, bytes } => return (content_type, bytes),
            ReplyBody::Empty => return (JSON.to_owned(), Bytes::new()),
            ReplyBody::Errors(errors) => {
                // Refusals that point into the body were seen with null here.
                let messages = if errors.iter().any(|error| error.source.is_some()) {
                    Value::Null
                } else {
                    json!([])
                };
                json!({ "success": false, "errors": errors, "messages": messages, "result": null })
            }
            ReplyBody::BareErrors(errors) => json!({ "success": false, "errors": errors }),
            ReplyBody::Result { result, messages, info } => {
                let mut envelope = Map::new();
                envelope.insert("success".into(), Value::Bool(true));
                envelope.insert("errors".into(), messages.as_ref().map(|_| json!([])).into());
                envelope.insert("messages".into(), messages.into());
                envelope.insert("result".into(), result);
                if let Some(info) = info {
                    envelope.insert("result_info".into(), Value::Object(info));
                }
                Value::Object(envelope)
            }
        };
        (JSON.to_owned(), Bytes::from(value.to_string()))
    }
}
