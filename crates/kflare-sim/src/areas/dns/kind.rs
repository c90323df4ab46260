//! The 21 record types.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)] // the variants are the types' own names
pub enum RecordType {
    A,
    Aaaa,
    Caa,
    Cert,
    Cname,
    Dnskey,
    Ds,
    Https,
    Loc,
    Mx,
    Naptr,
    Ns,
    Openpgpkey,
    Ptr,
    Smimea,
    Srv,
    Sshfp,
    Svcb,
    Tlsa,
    Txt,
    Uri,
}

impl RecordType {
    /// Every type.
    pub const ALL: [Self; 21] = [
        Self::A,
        Self::Aaaa,
        Self::Caa,
        Self::Cert,
        Self::Cname,
        Self::Dnskey,
        Self::Ds,
        Self::Https,
        Self::Loc,
        Self::Mx,
        Self::Naptr,
        Self::Ns,
        Self::Openpgpkey,
        Self::Ptr,
        Self::Smimea,
        Self::Srv,
        Self::Sshfp,
        Self::Svcb,
        Self::Tlsa,
        Self::Txt,
        Self::Uri,
    ];

    /// The name of the type in upper case.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Caa => "CAA",
            Self::Cert => "CERT",
            Self::Cname => "CNAME",
            Self::Dnskey => "DNSKEY",
            Self::Ds => "DS",
            Self::Https => "HTTPS",
            Self::Loc => "LOC",
            Self::Mx => "MX",
            Self::Naptr => "NAPTR",
            Self::Ns => "NS",
            Self::Openpgpkey => "OPENPGPKEY",
            Self::Ptr => "PTR",
            Self::Smimea => "SMIMEA",
            Self::Srv => "SRV",
            Self::Sshfp => "SSHFP",
            Self::Svcb => "SVCB",
            Self::Tlsa => "TLSA",
            Self::Txt => "TXT",
            Self::Uri => "URI",
        }
    }

    /// The type of this name, in any case.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// Whether Cloudflare can stand in front of such a record.
    pub(crate) fn proxiable(self) -> bool {
        matches!(self, Self::A | Self::Aaaa | Self::Cname)
    }

    /// Whether the value is in `data`, and `content` is written by the server.
    pub(crate) fn has_data(self) -> bool {
        !super::data::fields(self).is_empty()
    }

    /// Whether `priority` is a field of the record itself. SRV, HTTPS, SVCB and NAPTR keep theirs in `data`.
    pub(crate) fn has_priority(self) -> bool {
        matches!(self, Self::Mx | Self::Uri)
    }

    /// Whether the record is an address or an alias: of those, an alias tolerates no other.
    pub(crate) fn is_address(self) -> bool {
        matches!(self, Self::A | Self::Aaaa)
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
