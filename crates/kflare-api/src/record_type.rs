//! The DNS record types that Cloudflare serves.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! record_types {
    ($($variant:ident),+ $(,)?) => {
        /// A DNS record type. Written as in a zone file, in capitals.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "UPPERCASE")]
        #[allow(missing_docs, reason = "the variants are the names of RFCs")]
        pub enum RecordType {
            $($variant),+
        }

        impl RecordType {
            /// Every type, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            const fn variant_name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant)),+
                }
            }
        }
    };
}

record_types!(
    A, Aaaa, Caa, Cert, Cname, Dnskey, Ds, Https, Loc, Mx, Naptr, Ns, Openpgpkey, Ptr, Smimea, Srv, Sshfp, Svcb, Tlsa,
    Txt, Uri,
);

/// A word that names no [`RecordType`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRecordType(pub String);

impl fmt::Display for UnknownRecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a record type that Cloudflare serves", self.0)
    }
}

impl std::error::Error for UnknownRecordType {}

impl RecordType {
    /// Whether the value is given as typed fields (`data`). Cloudflare renders `content` of such records by itself.
    pub const fn is_data(self) -> bool {
        matches!(
            self,
            Self::Caa
                | Self::Cert
                | Self::Dnskey
                | Self::Ds
                | Self::Https
                | Self::Loc
                | Self::Naptr
                | Self::Smimea
                | Self::Srv
                | Self::Sshfp
                | Self::Svcb
                | Self::Tlsa
                | Self::Uri
        )
    }

    /// Whether Cloudflare can proxy records of the type.
    pub const fn is_proxiable(self) -> bool {
        matches!(self, Self::A | Self::Aaaa | Self::Cname)
    }

    /// Whether `content` is a host name, compared without regard to case or a final dot.
    pub const fn is_target(self) -> bool {
        matches!(self, Self::Cname | Self::Mx | Self::Ns | Self::Ptr)
    }

    /// Whether the record has a `priority` beside its value. SRV, HTTPS and SVCB keep theirs in `data`.
    pub const fn has_priority(self) -> bool {
        matches!(self, Self::Mx | Self::Uri)
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.variant_name().to_ascii_uppercase())
    }
}

impl FromStr for RecordType {
    type Err = UnknownRecordType;

    /// Reads a type in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|it| it.variant_name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownRecordType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_reads_and_writes_the_same_word_everywhere() {
        for record_type in RecordType::ALL {
            let word = record_type.to_string();
            assert_eq!(word.parse(), Ok(*record_type));
            assert_eq!(word.to_lowercase().parse(), Ok(*record_type));
            assert_eq!(serde_json::to_value(record_type).unwrap(), serde_json::json!(word));
        }
        assert_eq!("SPF".parse::<RecordType>(), Err(UnknownRecordType("SPF".into())));
    }

    #[test]
    fn twenty_one_types_thirteen_of_them_data() {
        assert_eq!(RecordType::ALL.len(), 21);
        assert_eq!(RecordType::ALL.iter().filter(|it| it.is_data()).count(), 13);
        assert!(RecordType::ALL.is_sorted_by_key(ToString::to_string));
        assert!(
            RecordType::ALL
                .iter()
                .all(|it| !(it.is_data() && (it.is_target() || it.is_proxiable())))
        );
    }
}
