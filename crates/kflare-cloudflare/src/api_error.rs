//! A refusal by Cloudflare, and how it is shown.

use std::fmt;

use http::{Method, StatusCode};

use crate::error::Outcome;
use crate::message::Message;
use crate::text;

/// Cloudflare's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status. 200 is possible: Cloudflare sometimes reports a failure with it.
    pub status: u16,
    /// What Cloudflare says, outermost messages. Empty when it gave no reason.
    pub messages: Vec<Message>,
    /// The id under which Cloudflare's support finds the call (`cf-ray`).
    pub ray: Option<String>,
    /// The method of the call.
    pub method: Method,
    /// The route of the call, as a template without ids.
    pub route: &'static str,
}

impl ApiError {
    /// Whether Cloudflare gave this code, at any depth of a chain.
    pub fn has_code(&self, code: i64) -> bool {
        self.messages.iter().any(|message| message.has_code(code))
    }

    /// The innermost messages.
    pub fn deepest(&self) -> Vec<&Message> {
        let mut found = Vec::new();
        for message in &self.messages {
            message.collect_deepest(&mut found);
        }
        found
    }

    /// A 5xx or a 408 may come after the effect, from something in front of the product; any other refusal is the
    /// product's own.
    pub fn outcome(&self) -> Outcome {
        if self.status >= 500 || self.status == StatusCode::REQUEST_TIMEOUT.as_u16() {
            Outcome::unless_get(&self.method)
        } else {
            Outcome::NotApplied
        }
    }

    fn every_message(&self) -> Vec<&Message> {
        let mut all = Vec::new();
        for message in &self.messages {
            message.collect_all(&mut all);
        }
        all
    }
}

impl fmt::Display for ApiError {
    /// `HTTP 400 (code 1004, 9005): Content for A record must be ...; DNS Validation Error (ray 1234)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_TEXTS: usize = 380;
        const MAX_CODES: usize = 6;

        write!(f, "HTTP {}", self.status)?;
        let mut codes: Vec<i64> = Vec::new();
        for code in self.every_message().iter().filter_map(|message| message.code) {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        for (index, code) in codes.iter().take(MAX_CODES).enumerate() {
            write!(f, "{}{code}", if index == 0 { " (code " } else { ", " })?;
        }
        f.write_str(if codes.is_empty() { ": " } else { "): " })?;

        let mut texts: Vec<String> = Vec::new();
        for message in self.deepest().into_iter().chain(self.every_message()) {
            let text = match &message.pointer {
                Some(pointer) if !message.text.is_empty() => format!("{} (at {pointer})", message.text),
                Some(pointer) => format!("at {pointer}"),
                None => message.text.clone(),
            };
            if !text.is_empty() && !texts.contains(&text) {
                texts.push(text);
            }
        }
        if texts.is_empty() {
            let reason = StatusCode::from_u16(self.status)
                .ok()
                .and_then(|status| status.canonical_reason());
            texts.push(reason.map_or_else(
                || "no reason given".to_owned(),
                |reason| format!("{reason}, no reason given"),
            ));
        }
        f.write_str(&text::one_line(&texts.join("; "), MAX_TEXTS))?;
        match &self.ray {
            Some(ray) => write!(f, " (ray {ray})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use serde_json::json;

    fn refusal(status: u16, errors: &serde_json::Value) -> ApiError {
        ApiError {
            status,
            messages: Message::read_all(errors),
            ray: Some("8f0-AMS".to_owned()),
            method: Method::POST,
            route: "/zones/{zone_id}/dns_records",
        }
    }

    #[test]
    fn shows_status_codes_deepest_text_first_and_ray() {
        let error = refusal(
            400,
            &json!([{"code": 1004, "message": "DNS Validation Error", "error_chain":
                [{"code": 9005, "message": "Content for A record\nmust be a valid IPv4 address.", "source": {"pointer": "/content"}}]}]),
        );
        assert_eq!(
            error.to_string(),
            "HTTP 400 (code 1004, 9005): Content for A record must be a valid IPv4 address. (at /content); \
             DNS Validation Error (ray 8f0-AMS)"
        );
        let error = Error::Api(Box::new(error));
        assert!(error.has_code(9005));
        assert_eq!(error.deepest().len(), 1);
        assert_eq!(error.status(), Some(400));
    }

    #[test]
    fn is_bounded_and_never_empty() {
        let long = refusal(
            400,
            &json!([{"code": 1, "message": "x".repeat(5000)}, {"code": 2, "message": "y".repeat(5000)}]),
        );
        assert!(long.to_string().chars().count() <= 500);
        assert!(long.to_string().ends_with("(ray 8f0-AMS)"));
        assert_eq!(
            refusal(503, &json!(null)).to_string(),
            "HTTP 503: Service Unavailable, no reason given (ray 8f0-AMS)"
        );
        assert_eq!(
            refusal(525, &json!(null)).to_string(),
            "HTTP 525: no reason given (ray 8f0-AMS)"
        );
    }

    #[test]
    fn the_outcome_of_a_write_is_unknown_after_5xx_and_408_only() {
        for (status, outcome) in [
            (200, Outcome::NotApplied),
            (302, Outcome::NotApplied),
            (400, Outcome::NotApplied),
            (403, Outcome::NotApplied),
            (408, Outcome::Unknown),
            (429, Outcome::NotApplied),
            (500, Outcome::Unknown),
            (520, Outcome::Unknown),
            (530, Outcome::Unknown),
        ] {
            let error = refusal(status, &json!(null));
            assert_eq!(error.outcome(), outcome, "{status}");
            assert_eq!(
                ApiError {
                    method: Method::GET,
                    ..error
                }
                .outcome(),
                Outcome::NotApplied,
                "GET {status}"
            );
        }
    }
}
