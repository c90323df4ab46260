//! Identifiers that follow from the seed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A source of identifiers: the n-th one of a seed is always the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IdSource {
    seed: u64,
    drawn: u64,
}

impl IdSource {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// 32 lower-case hex digits, as accounts, zones and records have.
    pub(crate) fn hex32(&mut self) -> String {
        let digest = self.draw();
        hex(&digest[..16])
    }

    /// A UUID of version 4, in lower case, as tunnels and D1 databases have.
    pub(crate) fn uuid(&mut self) -> String {
        let mut bytes = self.draw();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let text = hex(&bytes[..16]);
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &text[part]).join("-")
    }

    /// Goes on with identifiers that were never drawn before, also not by a process that ended without saving what it drew:
    /// Cloudflare gives no identifier twice. They follow from `moment`.
    pub(crate) fn renew(&mut self, moment: Timestamp) {
        let digest = stable(&format!("ids/{}/{}/{}", self.seed, self.drawn, moment.as_nanosecond()));
        self.seed = digest[..8].iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    }

    fn draw(&mut self) -> [u8; 32] {
        let digest = Sha256::new()
            .chain_update(self.seed.to_be_bytes())
            .chain_update(self.drawn.to_be_bytes())
            .finalize();
        self.drawn += 1;
        digest.into()
    }
}

/// The ray id of the n-th call: 16 hex digits and the name of a data centre.
pub(crate) fn ray(seed: u64, sequence: u64) -> String {
    let digest = stable(&format!("ray/{seed}/{sequence}"));
    format!("{}-SIM", hex(&digest[..8]))
}

/// A hash of `text` that is the same in every run and build.
pub(crate) fn stable(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Whether `text` has the form of an id: 32 lower-case hex digits.
pub(crate) fn is_hex32(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether `text` has the form of a UUID in lower case.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
        })
}
