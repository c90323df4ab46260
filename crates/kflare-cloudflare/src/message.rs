//! One entry of the `errors` array of Cloudflare's envelope.

use serde_json::Value;

/// What Cloudflare says went wrong.
///
/// Cloudflare nests: `1004 DNS Validation Error` carries the real reason (`9005 Content for A record must be a valid
/// IPv4 address`) in its `error_chain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Cloudflare's number for the error. Some products send none, or 0, which counts as none.
    pub code: Option<i64>,
    /// The text, on one line.
    pub text: String,
    /// Which part of the request is meant, as a JSON pointer or a property path.
    pub pointer: Option<String>,
    /// The causes, as nested by Cloudflare.
    pub chain: Vec<Message>,
}

/// The longest text kept of one message, in characters.
const MAX_TEXT: usize = 400;
/// How deep a chain is followed. Two levels are the most that was seen live.
const MAX_DEPTH: usize = 8;

impl Message {
    /// Reads an `errors` value. Anything that is not as documented is skipped, never an error.
    pub(crate) fn read_all(errors: &Value) -> Vec<Self> {
        Self::read_level(errors, MAX_DEPTH)
    }

    fn read_level(errors: &Value, depth: usize) -> Vec<Self> {
        let (Some(entries), Some(deeper)) = (errors.as_array(), depth.checked_sub(1)) else {
            return Vec::new();
        };
        entries
            .iter()
            .filter_map(|entry| Self::read_one(entry, deeper))
            .collect()
    }

    fn read_one(entry: &Value, depth: usize) -> Option<Self> {
        let text = match entry {
            Value::String(text) => text.as_str(),
            Value::Object(_) => entry.get("message").and_then(Value::as_str).unwrap_or_default(),
            _ => return None,
        };
        let code = entry.get("code").and_then(|code| match code {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        });
        Some(Self {
            code: code.filter(|&code| code != 0),
            text: crate::text::one_line(text, MAX_TEXT),
            pointer: entry
                .pointer("/source/pointer")
                .and_then(Value::as_str)
                .map(|pointer| crate::text::one_line(pointer, MAX_TEXT)),
            chain: entry
                .get("error_chain")
                .map_or_else(Vec::new, |chain| Self::read_level(chain, depth)),
        })
    }

    /// Whether this message or one in its chain has `code`.
    pub fn has_code(&self, code: i64) -> bool {
        self.code == Some(code) || self.chain.iter().any(|inner| inner.has_code(code))
    }

    /// Appends the ends of all chains below this message, or the message itself when it has no chain.
    pub(crate) fn collect_deepest<'a>(&'a self, into: &mut Vec<&'a Self>) {
        if self.chain.is_empty() {
            into.push(self);
        }
        for inner in &self.chain {
            inner.collect_deepest(into);
        }
    }

    /// Appends this message and everything below it, outermost first.
    pub(crate) fn collect_all<'a>(&'a self, into: &mut Vec<&'a Self>) {
        into.push(self);
        for inner in &self.chain {
            inner.collect_all(into);
        }
    }

    /// Replaces `secret` wherever Cloudflare echoed it.
    pub(crate) fn redact(&mut self, secret: &str) {
        for text in [Some(&mut self.text), self.pointer.as_mut()].into_iter().flatten() {
            if text.contains(secret) {
                *text = text.replace(secret, "[redacted]");
            }
        }
        for inner in &mut self.chain {
            inner.redact(secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_products_send() {
        let read = Message::read_all(&json!([
            {"code": 1004, "message": "DNS Validation\nError", "error_chain": [{"code": 9005, "message": "bad A"}]},
            {"message": "no code", "source": {"pointer": "/rules/0"}},
            {"code": 0, "message": "zero"},
            {"code": "10013", "message": null},
            "bare text",
            7,
        ]));
        assert_eq!(read.len(), 5);
        assert_eq!(read[0].text, "DNS Validation Error");
        assert_eq!(read[0].chain[0].code, Some(9005));
        assert!(read[0].has_code(9005) && read[0].has_code(1004) && !read[0].has_code(1));
        assert_eq!(read[1].pointer.as_deref(), Some("/rules/0"));
        assert_eq!((read[1].code, read[2].code, read[3].code), (None, None, Some(10013)));
        assert_eq!(read[4].text, "bare text");
        assert!(Message::read_all(&Value::Null).is_empty());
    }

    #[test]
    fn a_chain_without_end_is_cut() {
        let mut entry = json!({"code": 1, "message": "end"});
        for _ in 0..100 {
            entry = json!({"code": 2, "message": "link", "error_chain": [entry]});
        }
        let read = Message::read_all(&json!([entry]));
        let mut all = Vec::new();
        read[0].collect_all(&mut all);
        assert_eq!(all.len(), MAX_DEPTH);
    }

    #[test]
    fn an_echoed_secret_is_replaced_at_every_level() {
        let secret = ["sim", "token", "1"].join("-");
        let mut read = Message::read_all(&json!([
            {"message": "outer", "error_chain": [{"message": format!("bad {secret}!"), "source": {"pointer": secret}}]}
        ]));
        read[0].redact(&secret);
        assert_eq!(read[0].chain[0].text, "bad [redacted]!");
        assert_eq!(read[0].chain[0].pointer.as_deref(), Some("[redacted]"));
    }
}
