//! `multipart/form-data` (RFC 7578), as far as uploads and downloads of Workers need it.

use std::fmt::Write as _;

use bytes::Bytes;

/// One part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) body: Bytes,
}

/// The parts of a body, in their order. `None`: it is no complete form.
pub(super) fn parse(content_type: &str, body: &[u8]) -> Option<Vec<Part>> {
    let delimiter = format!("--{}", parameter(content_type, "boundary")?).into_bytes();
    let inner = [b"\r\n".as_slice(), &delimiter].concat();
    // What stands before the first delimiter does not count.
    let mut rest = if body.starts_with(&delimiter) {
        &body[delimiter.len()..]
    } else {
        &body[find(body, &inner)? + inner.len()..]
    };
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        let line = find(rest, b"\r\n")?;
        if !rest[..line].iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return None;
        }
        rest = &rest[line..];
        let end = find(rest, b"\r\n\r\n")?;
        let head = std::str::from_utf8(rest.get(2..end).unwrap_or_default()).ok()?;
        let content = &rest[end + 4..];
        let length = find(content, &inner)?;
        parts.push(part(head, &content[..length])?);
        rest = &content[length + inner.len()..];
    }
}

fn part(head: &str, body: &[u8]) -> Option<Part> {
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(known, _)| known.trim().eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    };
    let disposition = header("content-disposition")?;
    Some(Part {
        name: parameter(disposition, "name")?,
        file_name: parameter(disposition, "filename"),
        content_type: header("content-type").map(str::to_owned),
        body: Bytes::copy_from_slice(body),
    })
}

/// A parameter of a header: a word, or text in quotes with what browsers escape in it.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => after
                .split_once(';')
                .map_or((after.trim(), ""), |(value, _)| (value.trim(), &after[value.len()..])),
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"));
        }
        rest = after.trim_start().strip_prefix(';')?;
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// A form of these parts, and its content type.
pub(super) fn write(boundary: &str, parts: &[Part]) -> (String, Bytes) {
    let mut body = Vec::new();
    for part in parts {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", part.name);
        // Writing to a String cannot fail.
        if let Some(name) = &part.file_name {
            let _ = write!(head, "; filename=\"{name}\"");
        }
        if let Some(content_type) = &part.content_type {
            let _ = write!(head, "\r\nContent-Type: {content_type}");
        }
        head.push_str("\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&part.body);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, file_name: Option<&str>, content_type: Option<&str>, body: &[u8]) -> Part {
        Part {
            name: name.to_owned(),
            file_name: file_name.map(str::to_owned),
            content_type: content_type.map(str::to_owned),
            body: Bytes::copy_from_slice(body),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let parts = [
            part("metadata", Some("blob"), Some("application/json"), b"{}"),
            part("a.wasm", None, Some("application/wasm"), b"\0\r\n--b\r\n\xff"),
            part("empty", None, None, b""),
        ];
        let (content_type, body) = write("boundary-1", &parts);
        assert_eq!(parse(&content_type, &body).as_deref(), Some(&parts[..]));
    }

    #[test]
    fn other_spellings_are_read() {
        let body = b"preamble\r\n--x y  \r\ncontent-disposition: form-data; filename=f.js; name=\"a;b%22\"\r\n\r\nhi\r\n--x y--";
        let parts = parse("multipart/form-data; charset=utf-8; boundary=\"x y\"", body);
        assert_eq!(parts, Some(vec![part("a;b\"", Some("f.js"), None, b"hi")]));
    }

    #[test]
    fn what_is_incomplete_is_no_form() {
        let (content_type, body) = write("b", &[part("a", None, None, b"text")]);
        assert_eq!(parse("multipart/form-data", &body), None);
        assert_eq!(parse(&content_type, &body[..body.len() - 6]), None);
        assert_eq!(parse("multipart/form-data; boundary=other", &body), None);
        assert_eq!(parse(&content_type, b""), None);
    }
}
