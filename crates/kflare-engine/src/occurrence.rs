//! What Events tell besides changes of the condition. Users and alerts match on the reasons, so they are API.

use crate::cluster::Severity;

/// Something that happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The reason of the Event.
    pub reason: &'static str,
    /// Its action: what kflare was doing.
    pub(crate) action: &'static str,
    /// Its type.
    pub(crate) severity: Severity,
}

/// Declares occurrences and the list of them. `docs/troubleshooting.md` has an entry for each.
macro_rules! occurrences {
    ($($(#[$doc:meta])* $name:ident = $reason:literal, $action:literal, $severity:ident;)*) => {
        impl Occurrence {
            $(
                $(#[$doc])*
                pub const $name: Self = Self { reason: $reason, action: $action, severity: Severity::$severity };
            )*
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

occurrences! {
    /// An object was created.
    CREATED = "Created", "Create", Normal;
    /// The object of an interrupted create was found.
    RECOVERED = "Recovered", "Create", Normal;
    /// An existing object was taken over.
    ADOPTED = "Adopted", "Adopt", Normal;
    /// The object was changed, because the spec was.
    UPDATED = "Updated", "Update", Normal;
    /// A change made outside kflare was put right.
    DRIFT_CORRECTED = "DriftCorrected", "Update", Normal;
    /// The object is deleted and made anew, because Cloudflare cannot change it in place.
    REPLACING = "Replacing", "Replace", Normal;
    /// The object is gone, and nobody asked for that here.
    REMOTE_OBJECT_GONE = "RemoteObjectGone", "Observe", Warning;
    /// A Secret that the resource yields was written.
    SECRET_WRITTEN = "SecretWritten", "WriteSecret", Normal;
    /// A Secret that the spec no longer names was deleted.
    SECRET_DELETED = "SecretDeleted", "DeleteSecret", Normal;
    /// More goes with the object than the object.
    DELETING_MORE = "DeletingMore", "Delete", Warning;
    /// The object was deleted.
    DELETED = "Deleted", "Delete", Normal;
    /// The resource goes, and what it stood for stays at Cloudflare.
    KEPT = "Kept", "Delete", Normal;
}
