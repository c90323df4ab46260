//! TXT content: a sequence of strings of at most 255 bytes, written bare or quoted.

use crate::config::TxtForm;

const MAX_STRING: usize = 255;
/// The longest text, all strings together. Cloudflare's dashboard names this limit.
const MAX_TEXT: usize = 8192;

/// The value of a TXT record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Txt {
    strings: Vec<Vec<u8>>,
    sent_quoted: bool,
}

impl Txt {
    /// Reads either form. Bare text must not hold quotes; quoted text must be whole.
    pub(crate) fn parse(content: &str) -> Option<Self> {
        let parsed = if content.trim_start().starts_with('"') {
            Self {
                strings: quoted_strings(content.trim())?,
                sent_quoted: true,
            }
        } else {
            if content.is_empty() || content.contains('"') || content.chars().any(char::is_control) {
                return None;
            }
            let strings = content.as_bytes().chunks(MAX_STRING).map(<[u8]>::to_vec).collect();
            Self {
                strings,
                sent_quoted: false,
            }
        };
        (parsed.strings.iter().map(Vec::len).sum::<usize>() <= MAX_TEXT).then_some(parsed)
    }

    /// The text that a resolver's client puts together; two records of one text are identical.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.strings.concat()
    }

    /// The content in the given form.
    pub(crate) fn render(&self, form: TxtForm) -> String {
        let bare = match form {
            TxtForm::Quoted => None,
            TxtForm::AsSent if self.sent_quoted => None,
            TxtForm::Bare | TxtForm::AsSent => self.bare(),
        };
        bare.unwrap_or_else(|| self.quoted())
    }

    /// The text without quotes, where it can be read back as the same.
    fn bare(&self) -> Option<String> {
        let text = String::from_utf8(self.text()).ok()?;
        let stands_alone = !text.is_empty() && !text.contains('"') && !text.chars().any(char::is_control);
        (stands_alone && !text.starts_with(char::is_whitespace)).then_some(text)
    }

    fn quoted(&self) -> String {
        self.strings
            .iter()
            .map(|string| quote(string))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A string in quotes. Bytes that are no printable text are written as `\DDD`.
fn quote(string: &[u8]) -> String {
    let mut quoted = String::with_capacity(string.len() + 2);
    quoted.push('"');
    for chunk in string.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => {
                    quoted.push('\\');
                    quoted.push(c);
                }
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    c.encode_utf8(&mut buffer)
                        .bytes()
                        .for_each(|byte| push_escaped(&mut quoted, byte));
                }
                c => quoted.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_escaped(&mut quoted, *byte));
    }
    quoted.push('"');
    quoted
}

fn push_escaped(text: &mut String, byte: u8) {
    use std::fmt::Write;
    // Writing to a String cannot fail.
    let _ = write!(text, "\\{byte:03}");
}

fn quoted_strings(content: &str) -> Option<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    let mut bytes = content.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte.is_ascii_whitespace() {
            continue;
        }
        if byte != b'"' {
            return None;
        }
        let mut string = Vec::new();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => match bytes.next()? {
                    high @ b'0'..=b'9' => {
                        let digits = [high, bytes.next()?, bytes.next()?];
                        let number = std::str::from_utf8(&digits).ok()?.parse::<u8>().ok()?;
                        string.push(number);
                    }
                    escaped => string.push(escaped),
                },
                other => string.push(other),
            }
        }
        if string.len() > MAX_STRING {
            return None;
        }
        strings.push(string);
    }
    Some(strings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_three_forms() {
        let bare = Txt::parse("token=abc 123").expect("valid");
        let quoted = Txt::parse("\"token=abc 123\"").expect("valid");
        assert_eq!(bare.text(), quoted.text());
        assert_eq!(bare.render(TxtForm::Quoted), "\"token=abc 123\"");
        assert_eq!(quoted.render(TxtForm::Bare), "token=abc 123");
        assert_eq!(bare.render(TxtForm::AsSent), "token=abc 123");
        assert_eq!(quoted.render(TxtForm::AsSent), "\"token=abc 123\"");
    }

    #[test]
    fn several_strings_keep_their_bounds() {
        let txt = Txt::parse(r#""a" "b\"c" "d\\e\059""#).expect("valid");
        assert_eq!(txt.text(), br#"ab"cd\e;"#);
        assert_eq!(txt.render(TxtForm::Quoted), r#""a" "b\"c" "d\\e;""#);
        assert_eq!(
            txt.render(TxtForm::Bare),
            r#""a" "b\"c" "d\\e;""#,
            "quotes cannot stand bare"
        );
        let long = Txt::parse(&"x".repeat(600)).expect("valid");
        assert_eq!(long.render(TxtForm::Quoted).len(), 600 + 6 + 2);
    }

    #[test]
    fn refused() {
        let too_long_a_string = format!("\"{}\"", "x".repeat(256));
        let too_long = "x".repeat(8193);
        for content in [
            "",
            "a\"b",
            "\"a",
            "\"a\" b",
            "\"a\\",
            "\"\\256\"",
            too_long_a_string.as_str(),
            too_long.as_str(),
        ] {
            assert_eq!(Txt::parse(content), None, "{content:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_answered_reads_back_as_the_same_text(
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..255), 1..4),
        ) {
            let txt = Txt { strings, sent_quoted: true };
            for form in [TxtForm::Quoted, TxtForm::Bare, TxtForm::AsSent] {
                let rendered = txt.render(form);
                let back = Txt::parse(&rendered).expect("own form");
                prop_assert_eq!(back.text(), txt.text());
                prop_assert_eq!(back.render(form), rendered);
            }
        }
    }
}
