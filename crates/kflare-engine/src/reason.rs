//! Reasons of the `Ready` condition. Users and dashboards match on them, so they are API.

use std::{borrow::Cow, fmt};

use serde::Serialize;

/// A CamelCase reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Reason(Cow<'static, str>);

/// Declares reasons, and the list of them: in an `impl` or in a module. `docs/troubleshooting.md` has an entry for each.
#[macro_export]
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: $crate::Reason = $crate::Reason::declared($text);)*
        /// All of these.
        pub const ALL: &'static [$crate::Reason] = &[$($crate::Reason::declared($text)),*];
    };
}

impl Reason {
    reasons! {
        /// Cloudflare has what the spec asks for.
        SYNCED = "Synced";
        /// The credential works and reaches the account.
        VALIDATED = "Validated";
        /// The token Secret, or a Secret that the spec reads, does not exist.
        SECRET_NOT_FOUND = "SecretNotFound";
        /// The token Secret lacks the key.
        TOKEN_KEY_MISSING = "TokenKeyMissing";
        /// A Secret that the spec reads lacks the key.
        SECRET_KEY_MISSING = "SecretKeyMissing";
        /// A ConfigMap that the spec reads does not exist.
        CONFIG_MAP_NOT_FOUND = "ConfigMapNotFound";
        /// A ConfigMap that the spec reads lacks the key.
        CONFIG_MAP_KEY_MISSING = "ConfigMapKeyMissing";
        /// The token is not valid.
        INVALID_TOKEN = "InvalidToken";
        /// The account does not allow the resource's namespace.
        NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed";
        /// An object of that identity exists and the user has not asked to adopt it.
        ALREADY_EXISTS = "AlreadyExists";
        /// Another resource manages the object.
        ALREADY_CLAIMED = "AlreadyClaimed";
        /// Adoption was asked for and there is nothing to adopt.
        NOTHING_TO_ADOPT = "NothingToAdopt";
        /// `adopt-if-matching` found differences.
        ADOPTION_BLOCKED = "AdoptionBlocked";
        /// Cloudflare or another product of it manages the object.
        READ_ONLY = "ReadOnly";
        /// Others depend on it, so it cannot be deleted yet.
        IN_USE = "InUse";
        /// Being deleted, while a create that had no answer may still take effect.
        AWAITING_CREATE = "AwaitingCreate";
        /// Observe mode: the object differs, and nothing is written.
        OBSERVING = "Observing";
        /// The resource is paused.
        PAUSED = "Paused";
        /// Cloudflare refused; final until something changes.
        TERMINAL_ERROR = "TerminalError";
        /// The spec cannot be carried out as it stands.
        INVALID_SPEC = "InvalidSpec";
        /// Somebody else keeps changing a field back.
        CONTESTED = "Contested";
        /// Cloudflare could not be reached or failed; retried.
        API_ERROR = "APIError";
        /// Cloudflare's rate limit is exhausted; continues by itself.
        RATE_LIMITED = "RateLimited";
        /// Cloudflare has accepted a change and is carrying it out.
        UPDATING = "Updating";
        /// A defect in kflare.
        INTERNAL_ERROR = "InternalError";
        /// A Secret of the name to write to exists and is somebody else's.
        SECRET_CONFLICT = "SecretConflict";
        /// Created, with fields still to be set.
        CREATED = "Created";
    }
}

impl Reason {
    /// A reason of a list: what [`reasons!`](crate::reasons) makes.
    pub const fn declared(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// `<Parent>NotFound`.
    pub fn parent_not_found(parent: &str) -> Self {
        Self(Cow::Owned(format!("{parent}NotFound")))
    }

    /// `<Parent>NotReady`.
    pub fn parent_not_ready(parent: &str) -> Self {
        Self(Cow::Owned(format!("{parent}NotReady")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
