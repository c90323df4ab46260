//! Times as text.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// RFC 3339 with six fractional digits, trailing zeros kept: as zones and DNS records have them.
pub(crate) fn micros(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// RFC 3339 with three fractional digits: as R2 buckets and D1 databases have them.
pub(crate) fn millis(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// RFC 3339 in whole seconds.
pub(crate) fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// The form of the `Date` header.
pub(crate) fn http_date(at: Timestamp) -> String {
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&at)
        .unwrap_or_default()
}
