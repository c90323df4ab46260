//! The value of a TXT record: bytes, whatever their spelling.
//!
//! Zone files and Cloudflare write TXT as one or more double-quoted strings of at most 255 bytes, with `\"`, `\\` and
//! `\DDD` (a byte in decimal) as escapes. Cloudflare also takes bare text, and returns the one or the other by the age of
//! the record.
//!
//! The first character that is not a space decides how a text is read. A double quote: all of it must be quoted strings,
//! which are joined without anything between them. Anything else: the text is taken as it stands, with quotes and
//! backslashes in it meaning themselves; only final line breaks, as YAML's `|` leaves them, are not part of it.
//!
//! The value is the bytes, so [`write()`] cuts them in one way. Where one string ends and the next begins can mean something
//! all the same (DNS-SD reads each string by itself), so [`strings()`] tells it for a text that says so.

use std::fmt::Write as _;

/// Longest string of a TXT record in bytes (RFC 1035).
const MAX_STRING: usize = 255;

/// Why a text that begins with a double quote is no TXT value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TxtError {
    /// A string has no end.
    #[error("a quoted string has no closing quote")]
    Unterminated,
    /// Text outside the quotes.
    #[error("{0:?} stands outside the quotes: quote all of the text or nothing, and write \\\" for a quote inside")]
    OutsideQuotes(char),
    /// A `\DDD` that is no byte.
    #[error("\\{0} is no escape: a byte is three digits from \\000 to \\255")]
    Escape(String),
}

/// Reads a value in either form.
pub fn parse(text: &str) -> Result<Vec<u8>, TxtError> {
    Ok(match quoted_strings(text)? {
        Some(strings) => strings.concat(),
        None => text.trim_end_matches(['\n', '\r']).as_bytes().to_vec(),
    })
}

/// The strings of a quoted text, each escaped as between quotes and cut where it is longer than 255 bytes. None for bare
/// text, which does not say where its strings end.
pub fn strings(text: &str) -> Result<Option<Vec<String>>, TxtError> {
    let strings = quoted_strings(text)?;
    Ok(strings.map(|strings| strings.iter().flat_map(|it| cut(it)).map(escaped).collect()))
}

/// Writes strings as [`strings()`] gives them.
pub fn write_strings<'a>(strings: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = strings.into_iter().map(|it| format!("\"{it}\"")).collect();
    quoted.join(" ")
}

fn quoted_strings(text: &str) -> Result<Option<Vec<Vec<u8>>>, TxtError> {
    if !text.trim_ascii_start().starts_with('"') {
        return Ok(None);
    }
    let mut strings = Vec::new();
    let mut rest = text.trim_ascii();
    while let Some(next) = rest.chars().next() {
        let inner = rest.strip_prefix('"').ok_or(TxtError::OutsideQuotes(next))?;
        let mut bytes = Vec::new();
        rest = quoted_string(inner, &mut bytes)?.trim_ascii_start();
        strings.push(bytes);
    }
    Ok(Some(strings))
}

/// Reads up to the closing quote, and returns what follows it.
fn quoted_string<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, TxtError> {
    let mut rest = text;
    loop {
        let stop = rest.find(['"', '\\']).ok_or(TxtError::Unterminated)?;
        let (plain, special) = rest.split_at(stop);
        bytes.extend_from_slice(plain.as_bytes());
        let Some(escaped) = special.strip_prefix('\\') else {
            return Ok(&special[1..]);
        };
        let first = escaped.chars().next().ok_or(TxtError::Unterminated)?;
        if first.is_ascii_digit() {
            let digits = escaped.get(..3).unwrap_or(escaped);
            let byte = Some(digits).filter(|it| it.len() == 3).and_then(|it| it.parse().ok());
            bytes.push(byte.ok_or_else(|| TxtError::Escape(digits.to_owned()))?);
            rest = &escaped[3..];
        } else {
            let (character, behind) = escaped.split_at(first.len_utf8());
            bytes.extend_from_slice(character.as_bytes());
            rest = behind;
        }
    }
}

/// Writes a value in the one spelling that kflare uses: quoted strings of at most 255 bytes, joined by a space.
pub fn write(bytes: &[u8]) -> String {
    let strings: Vec<String> = cut(bytes).map(escaped).collect();
    write_strings(strings.iter().map(String::as_str))
}

/// Cuts into strings of the greatest length; no bytes are one empty string.
fn cut(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let empty = bytes.is_empty().then_some(bytes);
    bytes.chunks(MAX_STRING).chain(empty)
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(text, "\\{byte:03}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Field case 1: TXT quotes added or not added by the API.
    #[test]
    fn quoted_and_bare_text_are_the_same_value() {
        for text in [
            "token=abc 123",
            "\"token=abc 123\"",
            " \"token=abc 123\" ",
            "\"token=\" \"abc 123\"",
            "\"token=\"\"abc 123\"",
        ] {
            assert_eq!(parse(text).unwrap(), b"token=abc 123", "{text}");
        }
        assert_eq!(write(b"token=abc 123"), "\"token=abc 123\"");
    }

    // Field case 7. The careless fix lower-cases everything and breaks TXT.
    #[test]
    fn the_case_of_text_is_kept() {
        assert_eq!(write(&parse("MiXeD").unwrap()), "\"MiXeD\"");
    }

    #[test]
    fn escapes_mean_bytes_inside_quotes_and_themselves_outside() {
        assert_eq!(
            parse(r#""say \"hi\" \\ \065\255 \;""#).unwrap(),
            b"say \"hi\" \\ A\xff ;"
        );
        assert_eq!(parse(r"v=DKIM1\; k=rsa \065").unwrap(), br"v=DKIM1\; k=rsa \065");
        assert_eq!(parse(r#"{"json": true}"#).unwrap(), br#"{"json": true}"#);
        assert_eq!(parse("one line\n").unwrap(), b"one line");
        assert_eq!(parse("").unwrap(), b"");
        assert_eq!(parse("\"\"").unwrap(), b"");
        assert_eq!(parse("\"é\"").unwrap(), "é".as_bytes());
    }

    #[test]
    fn a_mix_of_quoted_and_bare_text_is_refused_not_guessed() {
        assert_eq!(parse(r#""abc" def"#), Err(TxtError::OutsideQuotes('d')));
        assert_eq!(parse(r#""abc"#), Err(TxtError::Unterminated));
        assert_eq!(parse(r#""abc\"#), Err(TxtError::Unterminated));
        assert_eq!(parse(r#""\256""#), Err(TxtError::Escape("256".into())));
        assert_eq!(parse(r#""\12""#), Err(TxtError::Escape("12\"".into())));
        assert_eq!(parse("\"\\1é\""), Err(TxtError::Escape("1é".into())));
    }

    #[test]
    fn long_text_is_cut_into_strings_of_255_bytes() {
        let long = "x".repeat(600);
        let written = write(long.as_bytes());
        let lengths: Vec<usize> = written.split(' ').map(|it| it.len() - 2).collect();
        assert_eq!(lengths, [255, 255, 90]);
        assert_eq!(write(b""), "\"\"");
        assert_eq!(write("é\n".as_bytes()), r#""\195\169\010""#);
    }

    #[test]
    fn quoted_text_tells_where_its_strings_end() {
        let told = |text: &str| strings(text).unwrap();
        assert_eq!(told("bare text"), None);
        assert_eq!(told("\"one\""), Some(vec!["one".to_owned()]));
        assert_eq!(
            told(r#""txtvers=1"  "say \"hi\"" """#),
            Some(vec!["txtvers=1".to_owned(), r#"say \"hi\""#.to_owned(), String::new()])
        );
        let long = format!("\"a\" \"{}\"", "x".repeat(300));
        let lengths: Vec<usize> = told(&long).unwrap().iter().map(String::len).collect();
        assert_eq!(lengths, [1, 255, 45]);
        assert_eq!(write_strings(["a", "", r"\195"]), r#""a" "" "\195""#);
    }

    proptest! {
        #[test]
        fn strings_that_are_written_read_back(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..=MAX_STRING), 1..4)
        ) {
            let texts: Vec<String> = parts.iter().map(|it| escaped(it)).collect();
            let written = write_strings(texts.iter().map(String::as_str));
            prop_assert_eq!(parse(&written).unwrap(), parts.concat());
            prop_assert_eq!(strings(&written).unwrap(), Some(texts));
        }

        #[test]
        fn what_is_written_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            prop_assert_eq!(parse(&write(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\"\\\\0-9aé ]{0,30}") {
            let _ = parse(&text);
        }
    }
}
