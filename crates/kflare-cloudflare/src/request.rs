//! One call, before it is made.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::Form;

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A call to the Cloudflare API.
///
/// The route is a template; its `{...}` parts are filled in order, each with one percent-encoded segment. Metrics and
/// errors show the template, never the segments. A segment that would change the path (empty, `.`, `..`) or a count
/// that does not match makes the call fail with [`Error::Malformed`](crate::Error::Malformed) before anything is sent:
/// a DELETE with an empty id would otherwise address the collection.
///
/// ```
/// use kflare_cloudflare::Request;
/// use serde_json::json;
///
/// let request = Request::patch("/zones/{zone_id}/dns_records/{id}", &["z1", "a/b"]).json(&json!({"ttl": 1}));
/// assert_eq!(request.path(), "/zones/z1/dns_records/a%2Fb");
/// let request = Request::get("/zones", &[]).query("name", "example.com").query("account.id", "a1");
/// assert_eq!(request.path_and_query(), "/zones?name=example.com&account.id=a1");
/// ```
#[derive(Clone)]
pub struct Request {
    method: Method,
    route: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Bytes>,
    busy_is_429: bool,
    fault: Option<RequestFault>,
}

/// How a request was put together wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The route has a different number of `{...}` parts.
    #[error("the number of path segments does not fit the route")]
    SegmentCount,
    /// A segment is empty, `.` or `..`.
    #[error("a path segment is empty or consists of dots")]
    Segment,
    /// The body cannot be written as JSON.
    #[error("the body cannot be written as JSON")]
    Body,
    /// A header value has characters that headers cannot have.
    #[error("a header value has characters that are not allowed")]
    Header,
    /// The parts do not make a URI.
    #[error("the parts do not make a URI")]
    Uri,
}

impl Request {
    /// A request of any method.
    pub fn new(method: Method, route: &'static str, segments: &[&str]) -> Self {
        let (path, fault) = match fill(route, segments) {
            Ok(path) => (path, None),
            Err(fault) => (String::new(), Some(fault)),
        };
        Self {
            method,
            route,
            path,
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: None,
            busy_is_429: false,
            fault,
        }
    }

    /// A GET.
    pub fn get(route: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::GET, route, segments)
    }

    /// A POST.
    pub fn post(route: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::POST, route, segments)
    }

    /// A PUT.
    pub fn put(route: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::PUT, route, segments)
    }

    /// A PATCH.
    pub fn patch(route: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::PATCH, route, segments)
    }

    /// A DELETE.
    pub fn delete(route: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::DELETE, route, segments)
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a header. `name` is a constant in lower case (`HeaderName::from_static` checks it).
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(_) => self.fault = self.fault.or(Some(RequestFault::Header)),
        }
        self
    }

    /// Sets the body, as JSON.
    #[must_use]
    pub fn json(self, body: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body(HeaderValue::from_static("application/json"), bytes.into()),
            Err(_) => Self {
                fault: self.fault.or(Some(RequestFault::Body)),
                ..self
            },
        }
    }

    /// Sets the body, as a form with files.
    #[must_use]
    pub fn form(self, form: &Form) -> Self {
        match form.encode() {
            Some((content_type, bytes)) => self.body(content_type, bytes),
            None => Self {
                fault: self.fault.or(Some(RequestFault::Header)),
                ..self
            },
        }
    }

    /// Sets the body, ready made (a text file).
    #[must_use]
    pub fn body(mut self, content_type: HeaderValue, body: Bytes) -> Self {
        self.headers.insert(header::CONTENT_TYPE, content_type);
        self.body = Some(body);
        self
    }

    /// A 429 without `retry-after` speaks of what the call is about, which is busy, and not of the credential: it does not
    /// close the gate, and comes back as [`Error::Api`](crate::Error::Api). Writes of list items are refused so while another
    /// one is under way (Cloudflare documents).
    #[must_use]
    pub fn busy_is_429(self) -> Self {
        Self {
            busy_is_429: true,
            ..self
        }
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The template of the path.
    pub fn route(&self) -> &'static str {
        self.route
    }

    /// The path, percent-encoded; empty if the segments did not fit the route.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path and, if there is one, the query, percent-encoded.
    pub fn path_and_query(&self) -> String {
        let mut out = self.path.clone();
        for (index, (name, value)) in self.query.iter().enumerate() {
            out.push(if index == 0 { '?' } else { '&' });
            out.extend(utf8_percent_encode(name, ENCODED));
            out.push('=');
            out.extend(utf8_percent_encode(value, ENCODED));
        }
        out
    }

    pub(crate) fn may_be_busy(&self) -> bool {
        self.busy_is_429
    }

    pub(crate) fn is_get(&self) -> bool {
        self.method == Method::GET
    }

    pub(crate) fn fault(&self) -> Option<RequestFault> {
        self.fault
    }

    /// The request as it goes to the transport.
    pub(crate) fn to_http(
        &self,
        base_url: &str,
        authorization: HeaderValue,
    ) -> Result<http::Request<Bytes>, RequestFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let mut request = http::Request::builder()
            .method(self.method.clone())
            .uri(format!("{base_url}{}", self.path_and_query()))
            .body(self.body.clone().unwrap_or_default())
            .map_err(|_| RequestFault::Uri)?;
        request.headers_mut().extend(self.headers.clone());
        request
            .headers_mut()
            .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(header::AUTHORIZATION, authorization);
        Ok(request)
    }
}

impl fmt::Debug for Request {
    /// Method, route and path; no query, headers or body, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("route", &self.route)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn fill(route: &str, segments: &[&str]) -> Result<String, RequestFault> {
    let mut path = String::with_capacity(route.len() + 32 * segments.len());
    let mut segments = segments.iter();
    let mut rest = route;
    while let Some((before, after)) = rest.split_once('{') {
        let segment = segments.next().ok_or(RequestFault::SegmentCount)?;
        if matches!(*segment, "" | "." | "..") {
            return Err(RequestFault::Segment);
        }
        path.push_str(before);
        path.extend(utf8_percent_encode(segment, ENCODED));
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    path.push_str(rest);
    if segments.next().is_some() {
        Err(RequestFault::SegmentCount)
    } else {
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded_and_counted() {
        assert_eq!(
            fill("/a/{x}/b/{y}", &["1", "ä b/?#%"]),
            Ok("/a/1/b/%C3%A4%20b%2F%3F%23%25".to_owned())
        );
        assert_eq!(fill("/a", &[]), Ok("/a".to_owned()));
        assert_eq!(fill("/a/{x}", &[]), Err(RequestFault::SegmentCount));
        assert_eq!(fill("/a/{x}", &["1", "2"]), Err(RequestFault::SegmentCount));
        for segment in ["", ".", ".."] {
            assert_eq!(fill("/a/{x}", &[segment]), Err(RequestFault::Segment), "{segment:?}");
        }
    }

    #[test]
    fn query_values_are_encoded() {
        let request = Request::get("/zones", &[]).query("name", "a&b=c d").query("page", 2);
        assert_eq!(request.path_and_query(), "/zones?name=a%26b%3Dc%20d&page=2");
    }

    #[test]
    fn a_json_body_has_its_content_type_and_debug_hides_it() {
        let request = Request::post("/x", &[]).json(&serde_json::json!({"password": "hush"}));
        let http = request
            .to_http("https://h/v4", HeaderValue::from_static("Bearer t"))
            .unwrap();
        assert_eq!(http.uri(), "https://h/v4/x");
        assert_eq!(http.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(http.body(), &Bytes::from_static(br#"{"password":"hush"}"#));
        assert!(!format!("{request:?}").contains("hush"));
    }

    #[test]
    fn a_header_with_a_line_break_is_a_fault() {
        let request = Request::get("/x", &[]).header(HeaderName::from_static("cf-r2-jurisdiction"), "eu\n");
        assert_eq!(request.fault(), Some(RequestFault::Header));
    }
}
