//! The words of an expression.

use std::net::IpAddr;

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The first byte.
    pub(super) at: usize,
    /// The number of bytes.
    pub(super) len: usize,
}

/// Kinds of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `(`, `)`, `{`, `}`, `[`, `]`, `,` or `*`.
    Mark(char),
    /// An operator made of marks, such as `==`.
    Operator(&'static str),
    /// A name: a field, a function, an operator.
    Name(String),
    /// `$name`, without the `$`.
    List(String),
    /// A text in quotes.
    Text,
    /// A number, an address, a network, a range, bytes in hexadecimal.
    Literal,
    /// No word, and why; nothing comes after it.
    Bad(&'static str),
}

/// Longest first.
const OPERATORS: [&str; 12] = ["==", "!=", "<=", ">=", "&&", "||", "^^", "<", ">", "~", "!", "&"];

/// Cuts an expression into words, up to the first that is none.
pub(super) fn cut(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        match first(&text[at..]) {
            Ok((kind, len)) => {
                tokens.push(Token { kind, at, len });
                at += len;
            }
            Err(what) => {
                let kind = Kind::Bad(what);
                tokens.push(Token { kind, at, len: 1 });
                break;
            }
        }
    }
    tokens
}

/// The first word of what is left, and its length.
fn first(rest: &str) -> Result<(Kind, usize), &'static str> {
    const NO_END: &str = "missing ending quote";
    if let Some((start, end)) = raw_text(rest) {
        let at = rest[start..].find(&end).ok_or(NO_END)?;
        return Ok((Kind::Text, start + at + end.len()));
    }
    match rest.chars().next() {
        Some('"') => return quoted(rest).map(|len| (Kind::Text, len)).ok_or(NO_END),
        Some('$') => {
            let name: String = rest[1..].chars().take_while(|c| is_name(*c)).collect();
            let len = 1 + name.len();
            return if name.is_empty() {
                Err("expected a list name")
            } else {
                Ok((Kind::List(name), len))
            };
        }
        Some(mark @ ('(' | ')' | '{' | '}' | '[' | ']' | ',' | '*')) => return Ok((Kind::Mark(mark), 1)),
        _ => {}
    }
    if let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) {
        return Ok((Kind::Operator(operator), operator.len()));
    }
    let word: String = rest
        .chars()
        .enumerate()
        .take_while(|(index, c)| is_name(*c) || matches!(c, ':' | '/') || (*index == 0 && *c == '-'))
        .map(|(_, c)| c)
        .collect();
    if is_literal(&word) {
        Ok((Kind::Literal, word.len()))
    } else if word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(is_name) {
        let len = word.len();
        Ok((Kind::Name(word), len))
    } else {
        Err("unrecognised input")
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.')
}

/// The length of a text in quotes, in which `\` quotes; `None` without an end.
fn quoted(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Where the body of a raw text, `r"..."` or `r#"..."#`, starts and what ends it; `None` if it is none.
fn raw_text(rest: &str) -> Option<(usize, String)> {
    let opened = rest.strip_prefix('r')?.trim_start_matches('#');
    let hashes = rest.len() - 1 - opened.len();
    let body = opened.strip_prefix('"')?;
    Some((rest.len() - body.len(), format!("\"{}", "#".repeat(hashes))))
}

fn is_literal(word: &str) -> bool {
    if let Some((from, to)) = word.split_once("..") {
        return is_point(from) && is_point(to);
    }
    is_point(word) || is_network(word) || is_bytes(word)
}

/// A number or an address.
fn is_point(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_hex = digits.strip_prefix("0x").is_some_and(|hex| {
        let all = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        all && !hex.is_empty()
    });
    is_hex || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())) || word.parse::<IpAddr>().is_ok()
}

fn is_network(word: &str) -> bool {
    let Some((address, length)) = word.split_once('/') else {
        return false;
    };
    let max = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= max)
}

/// `61:72:ff`.
fn is_bytes(word: &str) -> bool {
    word.contains(':')
        && word
            .split(':')
            .all(|pair| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
