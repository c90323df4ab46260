//! Fingerprints of values: to see whether two are the same without keeping either.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Half of the SHA-256 of a value's JSON, 32 hexadecimal digits. Members of objects are in order, so that equal values have equal
/// fingerprints.
pub fn fingerprint(value: &Value) -> String {
    let hash: [u8; 32] = Sha256::digest(value.to_string().as_bytes()).into();
    format!(
        "{:032x}",
        u128::from_be_bytes(hash.first_chunk().copied().unwrap_or_default())
    )
}
