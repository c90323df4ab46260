//! Forms with files (`multipart/form-data`, RFC 7578).

use bytes::Bytes;
use http::HeaderValue;

/// A form. Equal parts give equal bytes: the boundary follows from them.
///
/// ```
/// use kflare_cloudflare::Form;
///
/// let form = Form::default()
///     .part("metadata", "application/json", br#"{"main_module":"index.js"}"#.as_slice())
///     .file("index.js", "application/javascript+module", b"export default {}".as_slice());
/// let (content_type, body) = form.encode().expect("names without line breaks");
/// assert_eq!(content_type, "multipart/form-data; boundary=kflare-form-0");
/// assert!(body.ends_with(b"\r\n--kflare-form-0--\r\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Form {
    parts: Vec<Part>,
}

#[derive(Clone)]
struct Part {
    name: String,
    file: FileName,
    content_type: String,
    content: Bytes,
}

/// Whether a part names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileName {
    None,
    /// The same as the part's.
    Same,
}

impl std::fmt::Debug for Part {
    /// Without the content, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part")
            .field("name", &self.name)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

impl Form {
    /// Adds a part.
    #[must_use]
    pub fn part(self, name: &str, content_type: &str, content: impl Into<Bytes>) -> Self {
        self.with(name, FileName::None, content_type, content.into())
    }

    /// Adds a part that is a file of the same name.
    #[must_use]
    pub fn file(self, name: &str, content_type: &str, content: impl Into<Bytes>) -> Self {
        self.with(name, FileName::Same, content_type, content.into())
    }

    fn with(mut self, name: &str, file: FileName, content_type: &str, content: Bytes) -> Self {
        self.parts.push(Part {
            name: name.to_owned(),
            file,
            content_type: content_type.to_owned(),
            content,
        });
        self
    }

    /// The content type and the bytes. `None`: a name or a content type has a control character, which would end the header
    /// that it stands in.
    pub fn encode(&self) -> Option<(HeaderValue, Bytes)> {
        let heads: Vec<String> = self.parts.iter().map(Part::head).collect::<Option<_>>()?;
        let boundary = self.boundary();
        let size: usize = self.parts.iter().map(|part| part.content.len()).sum();
        let mut body = Vec::with_capacity(size + heads.iter().map(|head| head.len() + 32).sum::<usize>() + 32);
        for (part, head) in self.parts.iter().zip(heads) {
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            body.extend_from_slice(&part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}")).ok()?;
        Some((content_type, body.into()))
    }

    /// A boundary that occurs in no part.
    fn boundary(&self) -> String {
        let mut number = 0_u64;
        loop {
            let boundary = format!("kflare-form-{number}");
            if !self.parts.iter().any(|part| holds(&part.content, boundary.as_bytes())) {
                return boundary;
            }
            number += 1;
        }
    }
}

impl Part {
    fn head(&self) -> Option<String> {
        let bad = |text: &str| text.chars().any(char::is_control);
        if bad(&self.name) || bad(&self.content_type) {
            return None;
        }
        let name = self.name.replace('"', "%22");
        let file = match self.file {
            FileName::None => String::new(),
            FileName::Same => format!("; filename=\"{name}\""),
        };
        Some(format!(
            "Content-Disposition: form-data; name=\"{name}\"{file}\r\nContent-Type: {}",
            self.content_type
        ))
    }
}

fn holds(content: &[u8], wanted: &[u8]) -> bool {
    content.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Field case 82.
    #[test]
    fn the_bytes_are_as_cloudflare_documents_them() {
        let form = Form::default()
            .part("metadata", "application/json", b"{}".as_slice())
            .file("in\"dex.js", "application/javascript+module", b"x\n".as_slice());
        let (content_type, body) = form.encode().unwrap();
        assert_eq!(content_type, "multipart/form-data; boundary=kflare-form-0");
        let expected = "--kflare-form-0\r\nContent-Disposition: form-data; name=\"metadata\"\r\nContent-Type: application/json\r\n\
                        \r\n{}\r\n--kflare-form-0\r\nContent-Disposition: form-data; name=\"in%22dex.js\"; \
                        filename=\"in%22dex.js\"\r\nContent-Type: application/javascript+module\r\n\r\nx\n\r\n--kflare-form-0--\r\n";
        assert_eq!(std::str::from_utf8(&body).unwrap(), expected);
        assert_eq!(form.encode().unwrap().1, body);
    }

    #[test]
    fn the_boundary_occurs_in_no_part() {
        let form = Form::default()
            .file("a", "text/plain", b"kflare-form-0 kflare-form-1".as_slice())
            .file("b", "text/plain", b"\r\n--kflare-form-2--".as_slice());
        assert_eq!(form.encode().unwrap().0, "multipart/form-data; boundary=kflare-form-3");
    }

    #[test]
    fn a_name_cannot_end_its_header() {
        assert!(
            Form::default()
                .file("a\r\nX: y", "text/plain", Bytes::new())
                .encode()
                .is_none()
        );
        assert!(
            Form::default()
                .file("a", "text/plain\n", Bytes::new())
                .encode()
                .is_none()
        );
    }

    #[test]
    fn debug_hides_the_content() {
        let form = Form::default().part("metadata", "application/json", b"hush".as_slice());
        assert!(!format!("{form:?}").contains("hush"));
    }
}
