//! The parts of a Worker's code.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::multipart::Part;

/// One part of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Module {
    /// What `main_module` and other modules call it.
    pub(crate) name: String,
    pub(crate) content_type: String,
    #[serde(with = "body")]
    pub(crate) body: Bytes,
}

impl Module {
    /// A part of an upload. Its name is that of the part; the official SDKs give every part the name `files` and write the
    /// module's name where the file's belongs.
    pub(super) fn from_part(part: &Part) -> Self {
        let is_list = matches!(part.name.as_str(), "files" | "files[]");
        let name = part.file_name.as_ref().filter(|_| is_list).unwrap_or(&part.name);
        Self {
            name: name.clone(),
            content_type: part
                .content_type
                .clone()
                .unwrap_or_else(|| "application/octet-stream".to_owned()),
            body: part.body.clone(),
        }
    }

    pub(super) fn to_part(&self) -> Part {
        Part {
            name: self.name.clone(),
            file_name: Some(self.name.clone()),
            content_type: Some(self.content_type.clone()),
            body: self.body.clone(),
        }
    }

    /// Whether it is an ES module.
    pub(super) fn is_es_module(&self) -> bool {
        matches!(
            self.essence(),
            "application/javascript+module" | "text/javascript+module"
        )
    }

    /// Whether it can be the main module.
    pub(super) fn is_entry(&self) -> bool {
        self.is_es_module() || self.essence() == "text/x-python"
    }

    /// Whether Cloudflare documents its content type.
    pub(super) fn has_known_type(&self) -> bool {
        const KNOWN: [&str; 10] = [
            "application/javascript+module",
            "text/javascript+module",
            "application/javascript",
            "text/javascript",
            "application/wasm",
            "text/plain",
            "application/octet-stream",
            "application/json",
            "text/x-python",
            "application/source-map",
        ];
        KNOWN.contains(&self.essence())
    }

    /// The content type without parameters.
    fn essence(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// The text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }
}

/// Text as it stands, anything else in base64.
mod body {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Form {
        Text(String),
        Base64(String),
    }

    pub(super) fn serialize<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match std::str::from_utf8(body) {
            Ok(text) => Form::Text(text.to_owned()),
            Err(_) => Form::Base64(STANDARD.encode(body)),
        };
        form.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Ok(text.into()),
            Form::Base64(text) => STANDARD.decode(text).map(Bytes::from).map_err(D::Error::custom),
        }
    }
}
