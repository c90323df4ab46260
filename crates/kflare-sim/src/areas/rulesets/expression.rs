//! Expressions, as far as their form shows whether Cloudflare takes them.
//!
//! The grammar is that of Cloudflare's documentation. Not modelled: the types of fields and the fields themselves beyond the
//! form of their names (`http.`, `ip.`, `cf.` ...), and which fields a phase and a plan allow.

use super::tokens::{Kind, Token, cut};

/// What an expression names that matters elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expression {
    /// The lists, without the `$`.
    pub(super) lists: Vec<String>,
    /// The part that works with a regular expression, in the words of Cloudflare's refusal.
    pub(super) regex: Option<&'static str>,
}

/// Characters of an expression (Cloudflare documents).
pub(super) const MAX_LENGTH: usize = 4096;

/// How deep parentheses may be nested here. Cloudflare's limit is not known.
const MAX_DEPTH: usize = 64;

/// The first parts of field names.
const ROOTS: [&str; 8] = ["cf", "http", "icmp", "ip", "raw", "ssl", "tcp", "udp"];

const FUNCTIONS: [&str; 34] = [
    "all",
    "any",
    "bit_slice",
    "cidr",
    "cidr6",
    "concat",
    "contains",
    "decode_base64",
    "encode_base64",
    "ends_with",
    "has_key",
    "has_value",
    "is_jwt_present",
    "is_jwt_valid",
    "is_timed_hmac_valid_v0",
    "join",
    "len",
    "lookup_json_integer",
    "lookup_json_string",
    "lower",
    "regex_replace",
    "remove_bytes",
    "remove_query_args",
    "sha256",
    "split",
    "starts_with",
    "substring",
    "to_string",
    "upper",
    "url_decode",
    "url_encode",
    "uuidv4",
    "wildcard_replace",
    "is_hmac_valid",
];

/// The logical operators, those that bind least first: by name and by mark.
const LEVELS: [(&str, &str); 3] = [("or", "||"), ("xor", "^^"), ("and", "&&")];

/// Comparisons by name and by mark.
const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "contains", "matches", "wildcard", "in", "==", "!=", "<", "<=", ">", ">=", "~",
    "&",
];

/// Words that are no fields.
const KEYWORDS: [&str; 15] = [
    "and", "or", "xor", "not", "eq", "ne", "lt", "le", "gt", "ge", "contains", "matches", "wildcard", "in", "strict",
];

impl Expression {
    /// Reads an expression; the reason why it is none is in Cloudflare's form.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let tokens = cut(text);
        let mut parser = Parser {
            tokens: &tokens,
            next: 0,
            end: text.len(),
            depth: 0,
            calls: 0,
            found: Self::default(),
        };
        parser
            .logical(0)
            .and_then(|()| parser.finish())
            .map_err(|fault| describe(&fault, text))?;
        Ok(parser.found)
    }
}

/// `Filter parsing error (1:5):`, the line, and a mark below what is wrong.
fn describe(fault: &Fault, text: &str) -> String {
    let before = &text[..fault.at.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let number = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count();
    let line = text[line_start..].lines().next().unwrap_or_default();
    let marks = "^".repeat(fault.len.max(1));
    format!(
        "Filter parsing error ({number}:{}):\n{line}\n{}{marks} {}\n",
        column + 1,
        " ".repeat(column),
        fault.what
    )
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    /// Bytes of the whole text.
    end: usize,
    /// Open parentheses, those of functions included.
    depth: usize,
    /// Open parentheses of functions.
    calls: usize,
    found: Expression,
}

/// Something that is no expression: where it shows, and how.
struct Fault {
    at: usize,
    len: usize,
    what: &'static str,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    /// A fault at the next word.
    fn fault(&self, what: &'static str) -> Fault {
        match self.tokens.get(self.next) {
            None => Fault {
                at: self.end,
                len: 1,
                what,
            },
            Some(token) => Fault {
                at: token.at,
                len: token.len,
                what: if let Kind::Bad(own) = token.kind { own } else { what },
            },
        }
    }

    fn eat(&mut self, wanted: &Kind) -> bool {
        let fits = self.peek() == Some(wanted);
        self.next += usize::from(fits);
        fits
    }

    fn expect(&mut self, mark: char, what: &'static str) -> Result<(), Fault> {
        if self.eat(&Kind::Mark(mark)) {
            Ok(())
        } else {
            Err(self.fault(what))
        }
    }

    /// Takes the next word if it is an operator of one of these names or marks.
    fn eat_operator(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let given = match self.peek()? {
            Kind::Name(name) => name.as_str(),
            Kind::Operator(mark) => mark,
            _ => return None,
        };
        let found = wanted.iter().copied().find(|operator| *operator == given)?;
        self.next += 1;
        Some(found)
    }

    fn finish(&self) -> Result<(), Fault> {
        if self.next == self.tokens.len() {
            Ok(())
        } else {
            Err(self.fault("unrecognised input"))
        }
    }

    fn logical(&mut self, level: usize) -> Result<(), Fault> {
        let Some((name, mark)) = LEVELS.get(level) else {
            return self.negation();
        };
        self.logical(level + 1)?;
        while self.eat_operator(&[name, mark]).is_some() {
            self.logical(level + 1)?;
        }
        Ok(())
    }

    fn negation(&mut self) -> Result<(), Fault> {
        while self.eat_operator(&["not", "!"]).is_some() {}
        if self.eat(&Kind::Mark('(')) {
            self.nested(|parser| parser.logical(0))?;
            return self.expect(')', "expected literal \")\"");
        }
        self.value()?;
        self.comparison()
    }

    fn nested(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault("nested too deeply"));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn value(&mut self) -> Result<(), Fault> {
        match self.peek() {
            // Only arguments of functions are texts and numbers by themselves.
            Some(Kind::Text | Kind::Literal) if self.calls > 0 => {
                self.next += 1;
                return Ok(());
            }
            Some(Kind::Name(name)) if matches!(name.as_str(), "true" | "false") => {
                self.next += 1;
                return Ok(());
            }
            Some(Kind::Name(name))
                if self.tokens.get(self.next + 1).map(|token| &token.kind) == Some(&Kind::Mark('(')) =>
            {
                if !FUNCTIONS.contains(&name.as_str()) {
                    return Err(self.fault("unknown identifier"));
                }
                if name == "regex_replace" {
                    self.found.regex = Some("function regex_replace");
                }
                self.next += 2;
                self.calls += 1;
                self.nested(Self::arguments)?;
                self.calls -= 1;
            }
            Some(Kind::Name(name)) if is_field(name) => self.next += 1,
            Some(Kind::Name(_)) => return Err(self.fault("unknown identifier")),
            _ => return Err(self.fault("expected identifier name")),
        }
        while self.eat(&Kind::Mark('[')) {
            match self.peek() {
                Some(Kind::Text | Kind::Literal | Kind::Mark('*')) => self.next += 1,
                _ => return Err(self.fault("expected quoted utf8 string or positive integer")),
            }
            self.expect(']', "expected literal \"]\"")?;
        }
        Ok(())
    }

    fn arguments(&mut self) -> Result<(), Fault> {
        if self.eat(&Kind::Mark(')')) {
            return Ok(());
        }
        loop {
            self.logical(0)?;
            if self.eat(&Kind::Mark(')')) {
                return Ok(());
            }
            self.expect(',', "expected literal \",\"")?;
        }
    }

    fn comparison(&mut self) -> Result<(), Fault> {
        let operator = if self.eat_operator(&["strict"]).is_some() {
            Some(
                self.eat_operator(&["wildcard"])
                    .ok_or_else(|| self.fault("expected literal \"wildcard\""))?,
            )
        } else {
            self.eat_operator(&COMPARISONS)
        };
        match operator {
            None => Ok(()),
            Some("in") => self.set(),
            Some(operator) => {
                if matches!(operator, "matches" | "~") {
                    self.found.regex = Some("operator Matches");
                }
                match self.peek() {
                    Some(Kind::Text | Kind::Literal) => {}
                    Some(Kind::Name(name)) if matches!(name.as_str(), "true" | "false") => {}
                    _ => return Err(self.fault("expected a value")),
                }
                self.next += 1;
                Ok(())
            }
        }
    }

    fn set(&mut self) -> Result<(), Fault> {
        if let Some(Kind::List(name)) = self.peek() {
            self.found.lists.push(name.clone());
            self.next += 1;
            return Ok(());
        }
        self.expect('{', "expected literal \"{\"")?;
        loop {
            match self.peek() {
                Some(Kind::Text | Kind::Literal) => self.next += 1,
                // The text that Cloudflare was seen to have for a comma.
                Some(Kind::Mark(',')) => {
                    return Err(self.fault("invalid digit found in string while parsing with radix 16"));
                }
                _ => return Err(self.fault("expected a value")),
            }
            if self.eat(&Kind::Mark('}')) {
                return Ok(());
            }
        }
    }
}

/// Whether a name has the form of a field.
fn is_field(name: &str) -> bool {
    let mut parts = name.split('.');
    let is_rooted = parts.next().is_some_and(|root| ROOTS.contains(&root));
    is_rooted
        && !KEYWORDS.contains(&name)
        && (name == "ssl" || name.contains('.'))
        && name.split('.').all(|part| {
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            !part.is_empty() && part.bytes().all(is_plain)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_cloudflare_documents() {
        for text in [
            "true",
            "ip.src eq 192.0.2.1",
            "(ip.src ne 2001:db8::1 and not ssl) or cf.client.bot",
            "ip.src in {192.0.2.0/24 2001:db8::/32 198.51.100.1..198.51.100.9}",
            r#"http.host in {"a.example.com" "b.example.com"} && !(http.request.method == "GET")"#,
            r#"any(http.request.headers["content-type"][*] == "application/json")"#,
            r#"http.request.uri.path wildcard r"/config*" xor http.request.uri.path strict wildcard "/A*""#,
            r##"http.user_agent contains r#"a "quoted" word"#"##,
            r#"lower(http.host) eq "www.example.com" and len(http.request.uri) > 10"#,
            "ip.src.asnum in {64496 64511} and cf.bot_management.score lt 30",
            "ip.src in $office and not ip.src in $cf.open_proxies",
            "raw.http.request.uri.path ne \"/a\\\"b\"\n  and ip.src.country eq \"NL\"",
            "not not cf.client.bot",
            r#"concat("/x", substring(http.request.uri.path, 2, -1))"#,
            "http.request.body.raw contains 61:72:61",
        ] {
            assert!(Expression::parse(text).is_ok(), "{text}: {:?}", Expression::parse(text));
        }
    }

    #[test]
    fn refuses_what_is_no_expression_and_points_to_it() {
        for (text, place, what) in [
            ("URI Path contains /", "1:1", "unknown identifier"),
            ("http.host contains /", "1:20", "unrecognised input"),
            ("foo.bar eq 1", "1:1", "unknown identifier"),
            ("(ip.src eq 192.0.2.1", "1:21", "expected literal \")\""),
            ("ip.src eq 192.0.2.1)", "1:20", "unrecognised input"),
            ("ip.src eq", "1:10", "expected a value"),
            ("ip.src", "", ""),
            ("ip.src eq 192.0.2.1 and", "1:24", "expected identifier name"),
            ("http.host in {\"a\", \"b\"}", "1:18", "radix 16"),
            ("http.host in {}", "1:15", "expected a value"),
            ("http.host eq \"a", "1:14", "missing ending quote"),
            ("http.host in $", "1:14", "list name"),
            ("nothing(http.host)", "1:1", "unknown identifier"),
            (
                "any(cf.bot_management.detection_ids[*] eq 1 cf.client.bot)",
                "1:45",
                "\",\"",
            ),
            ("true\nand http.Host eq \"a\"", "2:5", "unknown identifier"),
            ("http..host eq \"a\"", "1:1", "unknown identifier"),
            ("http.request.headers[a] eq \"a\"", "1:22", "positive integer"),
            ("\"a\" eq http.host", "1:1", "expected identifier name"),
        ] {
            match Expression::parse(text) {
                Ok(_) => assert_eq!(what, "", "{text}"),
                Err(reason) => {
                    assert!(
                        reason.starts_with(&format!("Filter parsing error ({place})")) && reason.contains(what),
                        "{text}: {reason}"
                    );
                }
            }
        }
        assert!(Expression::parse(&"(".repeat(4000)).is_err());
    }

    #[test]
    fn names_lists_and_regular_expressions() {
        let found = Expression::parse("ip.src in $a or (ip.src in $b and http.host matches \"x\")").unwrap();
        assert_eq!(found.lists, ["a", "b"]);
        assert_eq!(found.regex, Some("operator Matches"));
        let found = Expression::parse("http.host eq \"$c\"").unwrap();
        assert_eq!(found, Expression::default());
        let found = Expression::parse(r#"regex_replace(http.host, "a", "b")"#).unwrap();
        assert_eq!(found.regex, Some("function regex_replace"));
    }
}
