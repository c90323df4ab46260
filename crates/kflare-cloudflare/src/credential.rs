//! One API token, and how it is named without showing it.

use std::fmt;

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::scheduler::BudgetKey;

/// A name for a token that says nothing about it: safe to log, the same for one token within one process (and seed).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialId(String);

impl CredentialId {
    /// Twelve hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of a token and the seed of the process. Never leaves the memory; its first digits are the id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(token: &SecretString, seed: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(token.expose_secret().as_bytes());
        Self(hash.finalize().into())
    }

    pub(crate) fn id(&self) -> CredentialId {
        let first = self.0[..6]
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        CredentialId(format!("{first:012x}"))
    }
}

/// Why a token cannot be used: it does not fit into an `Authorization` header (Cloudflare would answer
/// `400 6003 Invalid request headers`, which names no cause), or verifying it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// There is no token.
    #[error("it is empty")]
    Empty,
    /// A line feed or carriage return, most often at the end of a file that a Secret was made from.
    #[error("character {0} is a line break")]
    LineBreak(usize),
    /// A space or tab.
    #[error("character {0} is white space")]
    WhiteSpace(usize),
    /// A quotation mark.
    #[error("character {0} is a quotation mark")]
    Quote(usize),
    /// Another character that tokens never have.
    #[error("character {0} cannot be part of an API token")]
    Character(usize),
    /// Cloudflare says that it is switched off.
    #[error("it is disabled")]
    Disabled,
    /// Cloudflare says that its time is over.
    #[error("it has expired")]
    Expired,
}

impl TokenFault {
    /// Finds the first character that is not allowed in the `token68` form of RFC 9110. Positions count from 1.
    fn find(token: &str) -> Option<Self> {
        if token.is_empty() {
            return Some(Self::Empty);
        }
        token.chars().enumerate().find_map(|(index, c)| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' | '+' | '/' | '=' => None,
            '\n' | '\r' => Some(Self::LineBreak(index + 1)),
            '"' | '\'' | '`' => Some(Self::Quote(index + 1)),
            c if c.is_whitespace() => Some(Self::WhiteSpace(index + 1)),
            _ => Some(Self::Character(index + 1)),
        })
    }
}

/// A token in use, shared by all clients that use it.
pub(crate) struct Credential {
    pub(crate) id: CredentialId,
    pub(crate) budget: BudgetKey,
    token: SecretString,
}

impl Credential {
    pub(crate) fn new(id: CredentialId, budget: BudgetKey, token: SecretString) -> Self {
        Self { id, budget, token }
    }

    /// The `Authorization` header, marked sensitive.
    pub(crate) fn header(&self) -> Result<HeaderValue, TokenFault> {
        let token = self.token.expose_secret();
        if let Some(fault) = TokenFault::find(token) {
            return Err(fault);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| TokenFault::Character(1))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The token, to remove it from texts that echo it.
    pub(crate) fn token(&self) -> &str {
        self.token.expose_secret()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credential").field(&self.id.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(token: &str) -> Result<HeaderValue, TokenFault> {
        let token = SecretString::from(token);
        Credential::new(Fingerprint::of(&token, 0).id(), BudgetKey::default(), token).header()
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_named_by_its_fault() {
        assert_eq!(header(""), Err(TokenFault::Empty));
        assert_eq!(header("abc\n"), Err(TokenFault::LineBreak(4)));
        assert_eq!(header("\"abc\""), Err(TokenFault::Quote(1)));
        assert_eq!(header("ab c"), Err(TokenFault::WhiteSpace(3)));
        assert_eq!(header("abcé"), Err(TokenFault::Character(4)));
        assert_eq!(header("Bearer abc"), Err(TokenFault::WhiteSpace(7)));
        let value = header("cfut_Ab-._~+/=").unwrap();
        assert_eq!(value, "Bearer cfut_Ab-._~+/=");
        assert!(value.is_sensitive());
    }

    #[test]
    fn the_id_depends_on_token_and_seed_and_hides_the_token() {
        let token = SecretString::from(format!("sim-token-{}", 1));
        let id = Fingerprint::of(&token, 7).id();
        assert_eq!(id, Fingerprint::of(&token, 7).id());
        assert_ne!(id, Fingerprint::of(&token, 8).id());
        assert_ne!(id, Fingerprint::of(&SecretString::from("other"), 7).id());
        assert_eq!(id.as_str().len(), 12);
        let debug = format!("{:?}", Credential::new(id, BudgetKey::default(), token));
        assert!(!debug.contains("sim-token"), "{debug}");
    }
}
