//! What the DNS API refuses, with its codes.
//!
//! Codes and texts were published by users or stand in Cloudflare's documentation, except those marked unproven: there the
//! refusal is known, its code is not.

use crate::config::DnsErrorForm;
use crate::envelope::{ApiError, Refusal};

/// An invalid record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    code: i64,
    message: String,
}

impl Invalid {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(super) fn name() -> Self {
        Self::new(9000, "DNS name is invalid.")
    }

    pub(super) fn kind() -> Self {
        Self::new(9002, "DNS record type is invalid.")
    }

    pub(super) fn not_proxiable() -> Self {
        Self::new(9004, "This record type cannot be proxied.")
    }

    pub(super) fn not_ipv4() -> Self {
        Self::new(9005, "Content for A record must be a valid IPv4 address.")
    }

    pub(super) fn not_ipv6() -> Self {
        Self::new(9006, "Content for AAAA record must be a valid IPv6 address.")
    }

    pub(super) fn cname() -> Self {
        Self::new(9007, "Content for CNAME record is invalid.")
    }

    pub(super) fn mx() -> Self {
        Self::new(9009, "Content for MX record must be a hostname.")
    }

    pub(super) fn ttl(min: u32) -> Self {
        Self::new(
            9021,
            format!("TTL must be between {min} and 86400 seconds, or 1 for Automatic."),
        )
    }

    /// The code for missing data fields is unproven.
    pub(super) fn missing(field: &str) -> Self {
        Self::new(9101, format!("{field} is a required data field."))
    }

    /// 9207 is seen for TXT quoting. Where only the refusal is known it stands in for the unproven code.
    pub(super) fn content(message: impl Into<String>) -> Self {
        Self::new(9207, message)
    }

    pub(super) fn tags(count: usize, quota: usize) -> Self {
        Self::new(
            9300,
            format!("DNS record has {count} tags, exceeding the quota of {quota}."),
        )
    }

    /// The text is unproven.
    pub(super) fn comment(length: usize, limit: usize) -> Self {
        Self::new(
            9313,
            format!("DNS record comment has {length} characters, exceeding the limit of {limit}."),
        )
    }

    pub(super) fn refusal(self, form: DnsErrorForm) -> Refusal {
        let cause = ApiError::new(self.code, self.message);
        let error = match form {
            DnsErrorForm::Direct => cause,
            DnsErrorForm::Chained => ApiError {
                code: 1004,
                message: "DNS Validation Error".into(),
                error_chain: vec![cause],
                source: None,
            },
        };
        Refusal {
            status: 400,
            errors: vec![error],
        }
    }
}

pub(super) fn conflict_with_address() -> Refusal {
    Refusal::new(400, 81053, "An A, AAAA, or CNAME record with that host already exists.")
}

pub(super) fn conflict_with_cname() -> Refusal {
    Refusal::new(400, 81054, "A CNAME record with that host already exists.")
}

pub(super) fn conflict_with_others() -> Refusal {
    Refusal::new(400, 81055, "Non-NS records with that host already exist.")
}

pub(super) fn conflict_with_ns() -> Refusal {
    Refusal::new(400, 81056, "NS records with that host already exist.")
}

pub(super) fn identical() -> Refusal {
    Refusal::new(400, 81058, "An identical record already exists.")
}

pub(super) fn no_record() -> Refusal {
    Refusal::new(404, 81044, "Record does not exist.")
}

pub(super) fn quota() -> Refusal {
    Refusal::new(400, 81045, "Record quota exceeded.")
}

/// The code is unproven.
pub(super) fn read_only() -> Refusal {
    Refusal::new(
        400,
        1046,
        "This record is managed by another Cloudflare product. It cannot be edited.",
    )
}

/// The code is unproven.
pub(super) fn batch_too_large(count: usize, limit: usize) -> Refusal {
    Refusal::new(
        400,
        1004,
        format!("The batch has {count} operations, exceeding the limit of {limit}."),
    )
}
