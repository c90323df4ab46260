//! Applying patches.

use json_patch::PatchOperation;
use kube::core::Status;
use serde_json::Value;

use super::refusal;

/// The patch types this server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchType {
    Merge,
    Json,
    /// Server-side apply. It is treated as a merge patch which creates what is missing: fields have no owners here, and
    /// lists are replaced as a whole (a real server merges `metadata.finalizers` and conditions by their keys).
    Apply,
}

impl PatchType {
    pub(super) fn from_content_type(content_type: &str) -> Result<Self, Box<Status>> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/json-patch+json" => Ok(Self::Json),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            other => Err(refusal::unsupported_media_type(other)),
        }
    }

    pub(super) fn apply(self, current: &Value, body: &Value) -> Result<Value, Box<Status>> {
        let mut patched = current.clone();
        match self {
            Self::Merge | Self::Apply => {
                if !body.is_object() {
                    return Err(refusal::bad_request("a merge patch must be a JSON object"));
                }
                json_patch::merge(&mut patched, body);
            }
            Self::Json => {
                let patch: json_patch::Patch = serde_json::from_value(body.clone())
                    .map_err(|error| refusal::bad_request(format!("error decoding patch: {error}")))?;
                for operation in &patch.0 {
                    // To Kubernetes, what is missing equals null; RFC 6902 has no opinion.
                    let holds = matches!(operation, PatchOperation::Test(test)
                        if test.value.is_null() && patched.pointer(test.path.as_str()).is_none());
                    if !holds {
                        json_patch::patch(&mut patched, std::slice::from_ref(operation))
                            .map_err(|error| refusal::unprocessable_patch(&error.to_string()))?;
                    }
                }
            }
        }
        Ok(patched)
    }
}
