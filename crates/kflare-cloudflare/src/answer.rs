//! Reading Cloudflare's envelope.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api_error::ApiError;
use crate::error::{DecodeError, DecodeFault, Error, Outcome};
use crate::message::Message;
use crate::text;

/// A successful answer, with the result still unread.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Option<Box<RawValue>>,
    pub(crate) result_info: Option<Value>,
    pub(crate) status: StatusCode,
    pub(crate) date: Option<Timestamp>,
}

/// The call that is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) route: &'static str,
}

/// Every member may be missing or null: some products leave out `result`, some `messages`, one even `errors`.
#[derive(Deserialize)]
struct Envelope {
    success: Option<Value>,
    result: Option<Box<RawValue>>,
    result_info: Option<Value>,
    errors: Option<Value>,
}

/// How much of a body without an envelope is shown, in characters.
const MAX_WORDS: usize = 160;

/// Reads an answer. Any 2xx is a success unless the envelope says otherwise; an empty body is one with a null result.
/// `secret` is removed from whatever text an error takes from the answer.
pub(crate) fn read(asked: Asked<'_>, secret: &str, response: http::Response<Bytes>) -> Result<Answer, Error> {
    let (head, body) = response.into_parts();
    let date = date(&head.headers);
    let parsed = if body.trim_ascii().is_empty() || body.trim_ascii() == b"null" {
        Ok(Envelope {
            success: None,
            result: None,
            result_info: None,
            errors: None,
        })
    } else {
        serde_json::from_slice::<Envelope>(&body)
    };
    if !head.status.is_success() {
        let messages = match parsed {
            Ok(envelope) => Message::read_all(&envelope.errors.unwrap_or_default()),
            Err(_) => words_of(&body),
        };
        return Err(refusal(asked, secret, head.status, &head.headers, messages));
    }
    match parsed {
        Ok(Envelope {
            success: Some(Value::Bool(false)),
            errors,
            ..
        }) => {
            let messages = Message::read_all(&errors.unwrap_or_default());
            Err(refusal(asked, secret, head.status, &head.headers, messages))
        }
        Ok(Envelope {
            result, result_info, ..
        }) => Ok(Answer {
            result,
            result_info,
            status: head.status,
            date,
        }),
        Err(error) => Err(decode_error(asked, head.status, DecodeError::from_json(&error))),
    }
}

/// The error for a successful answer that could not be read.
pub(crate) fn decode_error(asked: Asked<'_>, status: StatusCode, source: DecodeError) -> Error {
    Error::Decode {
        outcome: Outcome::unless_get(asked.method),
        status: status.as_u16(),
        route: asked.route,
        source,
    }
}

impl Answer {
    /// The result as text; `null` when there is none.
    pub(crate) fn result_text(&self) -> &str {
        self.result.as_deref().map_or("null", RawValue::get)
    }
}

fn refusal(
    asked: Asked<'_>,
    secret: &str,
    status: StatusCode,
    headers: &HeaderMap,
    mut messages: Vec<Message>,
) -> Error {
    if !secret.is_empty() {
        for message in &mut messages {
            message.redact(secret);
        }
    }
    Error::Api(Box::new(ApiError {
        status: status.as_u16(),
        messages,
        ray: ray(headers),
        method: asked.method.clone(),
        route: asked.route,
    }))
}

/// What a body that is no JSON object says: an HTML page of a proxy, a bare text. JSON of another shape says nothing,
/// because it may echo the request.
fn words_of(body: &[u8]) -> Vec<Message> {
    if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() || looks_like_json(body) {
        return Vec::new();
    }
    let words = text::first_words(body, MAX_WORDS);
    if words.is_empty() {
        return Vec::new();
    }
    vec![Message {
        code: None,
        text: words,
        pointer: None,
        chain: Vec::new(),
    }]
}

fn looks_like_json(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// The `cf-ray` header, if it is of the known form (hexadecimal digits, a dash, an airport).
pub(crate) fn ray(headers: &HeaderMap) -> Option<String> {
    let ray = headers.get("cf-ray")?.to_str().ok()?;
    (ray.len() <= 40 && ray.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')).then(|| ray.to_owned())
}

/// The `Date` header.
pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(headers.get(header::DATE)?.to_str().ok()?)
}

/// An HTTP date, such as `Sun, 29 Nov 2026 15:14:00 GMT`.
pub(crate) fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

impl Answer {
    /// Reads the result as `T`.
    pub(crate) fn decode<T: serde::de::DeserializeOwned>(&self, asked: Asked<'_>) -> Result<T, Error> {
        serde_json::from_str(self.result_text())
            .map_err(|error| decode_error(asked, self.status, DecodeError::from_json(&error)))
    }

    /// Reads the result as the rows of a list: an array, or the array under `field`. Null and a missing field are an
    /// empty list.
    pub(crate) fn rows(&self, asked: Asked<'_>, field: Option<&str>) -> Result<Vec<Box<RawValue>>, Error> {
        let Some(field) = field else {
            return Ok(self.decode::<Option<Vec<Box<RawValue>>>>(asked)?.unwrap_or_default());
        };
        let object: Option<std::collections::BTreeMap<String, Box<RawValue>>> = self.decode(asked)?;
        let Some(rows) = object.unwrap_or_default().remove(field) else {
            return Ok(Vec::new());
        };
        let rows: Option<Vec<Box<RawValue>>> = serde_json::from_str(rows.get())
            .map_err(|error| decode_error(asked, self.status, DecodeError::from_json(&error)))?;
        Ok(rows.unwrap_or_default())
    }
}

/// Whether another try of a GET may well give a readable answer.
pub(crate) fn is_cut_off(error: &Error) -> bool {
    matches!(
        error,
        Error::Decode {
            source: DecodeError {
                fault: DecodeFault::Syntax,
                ..
            },
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked<'static> = Asked {
        method: &Method::POST,
        route: "/x",
    };

    fn answer(status: u16, body: &str) -> Result<Answer, Error> {
        let response = http::Response::builder()
            .status(status)
            .header("cf-ray", "8f0-AMS")
            .header("date", "Sun, 29 Nov 2026 15:14:00 GMT")
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        read(ASKED, "sim-token", response)
    }

    #[test]
    fn envelopes_seen_live_are_successes() {
        for (status, body, result) in [
            (
                200,
                r#"{"result":{"id":"1"},"success":true,"errors":null,"messages":null}"#,
                r#"{"id":"1"}"#,
            ),
            (
                200,
                r#"{"success":true,"errors":[],"messages":[{"message":"Successful request"}],"result":null}"#,
                "null",
            ),
            (201, r#"{"result":7}"#, "7"),
            (204, "", "null"),
            (202, " \n", "null"),
            (200, "null", "null"),
        ] {
            let answer = answer(status, body).unwrap();
            assert_eq!(answer.result_text(), result, "{body}");
            assert_eq!(
                answer.date.map(|date| date.to_string()).as_deref(),
                Some("2026-11-29T15:14:00Z")
            );
        }
    }

    #[test]
    fn refusals_are_read_whatever_their_envelope() {
        for (status, body, shown) in [
            (
                400,
                r#"{"success":false,"errors":[{"code":7400,"message":"bad"}]}"#,
                "HTTP 400 (code 7400): bad",
            ),
            (
                200,
                r#"{"success":false,"errors":[{"code":10003,"message":"none"}]}"#,
                "HTTP 200 (code 10003): none",
            ),
            (
                400,
                r#"{"success":false,"_e":null,"_i":{"password":"hush"}}"#,
                "HTTP 400: Bad Request, no reason given",
            ),
            (
                400,
                r#"{"success":false,"_i":{"password":"hush"}"#,
                "HTTP 400: Bad Request, no reason given",
            ),
            (429, "null", "HTTP 429: Too Many Requests, no reason given"),
            (
                502,
                "<html><title>502</title><h1>Bad\ngateway</h1>",
                "HTTP 502: 502 Bad gateway",
            ),
            (403, "error code: 1010", "HTTP 403: error code: 1010"),
            (
                403,
                "you sent Bearer sim-token!",
                "HTTP 403: you sent Bearer [redacted]!",
            ),
            (302, "", "HTTP 302: Found, no reason given"),
        ] {
            let error = answer(status, body).unwrap_err();
            assert!(matches!(error, Error::Api(_)));
            assert_eq!(error.to_string(), format!("{shown} (ray 8f0-AMS)"), "{body}");
        }
    }

    #[test]
    fn a_success_that_cannot_be_read_has_an_unknown_outcome_unless_it_is_a_get() {
        for body in [r#"{"success":true,"resu"#, "<html>a login page</html>", "[1]"] {
            let error = answer(200, body).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Decode {
                        outcome: Outcome::Unknown,
                        ..
                    }
                ),
                "{error:?}"
            );
        }
        let response = http::Response::new(Bytes::from_static(b"{"));
        let error = read(
            Asked {
                method: &Method::GET,
                route: "/x",
            },
            "",
            response,
        )
        .unwrap_err();
        assert!(matches!(
            error,
            Error::Decode {
                outcome: Outcome::NotApplied,
                ..
            }
        ));
        assert!(is_cut_off(&error));
    }

    #[test]
    fn rows_come_from_the_result_or_from_a_field_of_it() {
        let rows = |body: &str, field| answer(200, body).unwrap().rows(ASKED, field).map(|rows| rows.len());
        assert_eq!(rows(r#"{"result":[1,2]}"#, None).unwrap(), 2);
        assert_eq!(rows(r#"{"result":null}"#, None).unwrap(), 0);
        assert_eq!(rows(r#"{"result":{"items":[1]}}"#, Some("items")).unwrap(), 1);
        assert_eq!(rows(r#"{"result":{"items":null}}"#, Some("items")).unwrap(), 0);
        assert_eq!(rows(r#"{"result":{}}"#, Some("items")).unwrap(), 0);
        assert!(rows(r#"{"result":{"a":1}}"#, None).is_err());
    }

    #[test]
    fn odd_rays_and_dates_are_ignored() {
        let mut headers = HeaderMap::new();
        headers.insert("cf-ray", "a b".parse().unwrap());
        headers.insert("date", "yesterday".parse().unwrap());
        assert_eq!(ray(&headers), None);
        assert_eq!(date(&headers), None);
    }
}
