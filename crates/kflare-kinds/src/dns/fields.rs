//! The fields that `data` has for each type, as Cloudflare documents them.

use kflare_api::RecordType;

/// What a field holds, and with it how two spellings compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldKind {
    /// A whole number from 0 to the one given.
    Whole(u32),
    /// A decimal number in a range, both ends included.
    Decimal(f64, f64),
    /// Text whose every byte counts.
    Text,
    /// A word without regard to case, stored in lower case.
    Word,
    /// One of these letters, in any case.
    Letter(&'static [&'static str]),
    /// A host name.
    Host,
    /// Hexadecimal digits.
    Hex,
    /// Base64.
    Base64,
    /// Parameters of HTTPS and SVCB.
    Params,
}

/// What stands in for a field that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Nothing: the field must be given.
    Refused,
    /// Zero.
    Zero,
    /// Empty text.
    Empty,
}

/// A field of `data`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Its name at Cloudflare, in `snake_case`. Specs may write it in camelCase too.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// What stands in for it.
    pub absent: Absent,
}

const fn needed(name: &'static str, kind: FieldKind) -> Field {
    Field {
        name,
        kind,
        absent: Absent::Refused,
    }
}

const fn byte(name: &'static str) -> Field {
    needed(name, FieldKind::Whole(255))
}

const fn word16(name: &'static str) -> Field {
    needed(name, FieldKind::Whole(65_535))
}

const fn or_zero(name: &'static str, kind: FieldKind) -> Field {
    Field {
        name,
        kind,
        absent: Absent::Zero,
    }
}

const fn or_empty(name: &'static str, kind: FieldKind) -> Field {
    Field {
        name,
        kind,
        absent: Absent::Empty,
    }
}

const SERVICE_BINDING: &[Field] = &[
    word16("priority"),
    needed("target", FieldKind::Host),
    or_empty("value", FieldKind::Params),
];
const CERTIFICATE_ASSOCIATION: &[Field] = &[
    byte("usage"),
    byte("selector"),
    byte("matching_type"),
    needed("certificate", FieldKind::Hex),
];
const METRES: FieldKind = FieldKind::Decimal(0.0, 90_000_000.0);
const SECONDS: FieldKind = FieldKind::Decimal(0.0, 59.999);

const CAA: &[Field] = &[
    byte("flags"),
    needed("tag", FieldKind::Word),
    needed("value", FieldKind::Text),
];
const CERT: &[Field] = &[
    word16("type"),
    word16("key_tag"),
    byte("algorithm"),
    needed("certificate", FieldKind::Base64),
];
const DNSKEY: &[Field] = &[
    word16("flags"),
    byte("protocol"),
    byte("algorithm"),
    needed("public_key", FieldKind::Base64),
];
const DS: &[Field] = &[
    word16("key_tag"),
    byte("algorithm"),
    byte("digest_type"),
    needed("digest", FieldKind::Hex),
];
const LOC: &[Field] = &[
    needed("lat_degrees", FieldKind::Whole(90)),
    or_zero("lat_minutes", FieldKind::Whole(59)),
    or_zero("lat_seconds", SECONDS),
    needed("lat_direction", FieldKind::Letter(&["N", "S"])),
    needed("long_degrees", FieldKind::Whole(180)),
    or_zero("long_minutes", FieldKind::Whole(59)),
    or_zero("long_seconds", SECONDS),
    needed("long_direction", FieldKind::Letter(&["E", "W"])),
    or_zero("altitude", FieldKind::Decimal(-100_000.0, 42_849_672.95)),
    or_zero("size", METRES),
    or_zero("precision_horz", METRES),
    or_zero("precision_vert", METRES),
];
const NAPTR: &[Field] = &[
    word16("order"),
    word16("preference"),
    or_empty("flags", FieldKind::Text),
    or_empty("service", FieldKind::Text),
    or_empty("regex", FieldKind::Text),
    needed("replacement", FieldKind::Host),
];
const SRV: &[Field] = &[
    word16("priority"),
    word16("weight"),
    word16("port"),
    needed("target", FieldKind::Host),
];
const SSHFP: &[Field] = &[byte("algorithm"), byte("type"), needed("fingerprint", FieldKind::Hex)];
const URI: &[Field] = &[word16("weight"), needed("target", FieldKind::Text)];

/// The fields of a type in the order of the zone file. Empty for types whose value is `content`.
pub const fn of(record_type: RecordType) -> &'static [Field] {
    match record_type {
        RecordType::Caa => CAA,
        RecordType::Cert => CERT,
        RecordType::Dnskey => DNSKEY,
        RecordType::Ds => DS,
        RecordType::Https | RecordType::Svcb => SERVICE_BINDING,
        RecordType::Loc => LOC,
        RecordType::Naptr => NAPTR,
        RecordType::Smimea | RecordType::Tlsa => CERTIFICATE_ASSOCIATION,
        RecordType::Srv => SRV,
        RecordType::Sshfp => SSHFP,
        RecordType::Uri => URI,
        RecordType::A
        | RecordType::Aaaa
        | RecordType::Cname
        | RecordType::Mx
        | RecordType::Ns
        | RecordType::Openpgpkey
        | RecordType::Ptr
        | RecordType::Txt => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_types_have_fields_and_the_others_have_none() {
        for record_type in RecordType::ALL {
            assert_eq!(record_type.is_data(), !of(*record_type).is_empty(), "{record_type}");
        }
    }
}
