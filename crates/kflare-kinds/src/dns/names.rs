//! Names of zones, records and target hosts, in lower-case Punycode without a final dot.

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

/// Longest name in text form, without the final dot (RFC 1035).
const MAX_NAME: usize = 253;
/// Longest label (RFC 1035).
const MAX_LABEL: usize = 63;

/// Why a text is no name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing is left of it.
    #[error("the name is empty: write @ for the zone itself")]
    Empty,
    /// Two dots in a row, or one in front.
    #[error("{name:?} has an empty label: take the surplus dot out")]
    EmptyLabel {
        /// The name.
        name: String,
    },
    /// A character that names cannot have.
    #[error("{name:?} contains {character:?}, which a name cannot have")]
    Character {
        /// The name.
        name: String,
        /// The first such character.
        character: char,
    },
    /// A label over 63 bytes.
    #[error("the label {label:?} has {length} characters: 63 is the limit")]
    LabelTooLong {
        /// The label, in Punycode.
        label: String,
        /// Its length.
        length: usize,
    },
    /// A name over 253 bytes.
    #[error("the name {name:?} has {length} characters: 253 is the limit, with the name of the zone")]
    NameTooLong {
        /// The full name, in Punycode.
        name: String,
        /// Its length.
        length: usize,
    },
    /// A star that is not a wildcard.
    #[error("{name:?}: a star must be the whole first label, as in *.example.com")]
    Star {
        /// The name.
        name: String,
    },
    /// Unicode that IDNA does not allow.
    #[error("{name:?} is not a valid internationalised name")]
    Unicode {
        /// The name.
        name: String,
        /// What IDNA says.
        source: idna::Errors,
    },
    /// A zone of one label.
    #[error("{name:?} is no domain that can be a zone: write it with its top-level domain, as in example.com")]
    TopLevel {
        /// The name.
        name: String,
    },
    /// An absolute name of another zone.
    #[error("{name:?} ends in a dot and is not in the zone {zone}: leave the dot out, or name a host of the zone")]
    OutsideZone {
        /// The name.
        name: String,
        /// The zone.
        zone: String,
    },
}

/// The name of a zone as Cloudflare stores it.
pub fn zone_name(spec: &str) -> Result<String, NameError> {
    let name = without_final_dot(to_ascii(spec)?);
    let is_odd = |it: &char| !it.is_ascii_alphanumeric() && !"-.".contains(*it);
    if let Some(character) = name.chars().find(is_odd) {
        return Err(NameError::Character { name, character });
    }
    check(&name)?;
    if !name.contains('.') {
        return Err(NameError::TopLevel { name });
    }
    Ok(name)
}

/// The full name of a record, from what the user wrote and the name of its zone.
///
/// `@` is the zone itself. A name that ends in the zone's name, label by label, is full already; any other is relative,
/// unless a final dot says that it is absolute.
pub fn full_name(spec_name: &str, zone: &str) -> Result<String, NameError> {
    let zone = zone_name(zone)?;
    if spec_name == "@" {
        return Ok(zone);
    }
    let written = to_ascii(spec_name)?;
    let absolute = written.ends_with('.');
    let written = without_final_dot(written);
    if written.is_empty() {
        return Err(NameError::Empty);
    }
    let name = if in_zone(&written, &zone) {
        written
    } else if absolute {
        return Err(NameError::OutsideZone {
            name: format!("{written}."),
            zone,
        });
    } else {
        format!("{written}.{zone}")
    };
    let behind_the_first = name.strip_prefix("*.").unwrap_or(&name);
    if behind_the_first.contains('*') {
        return Err(NameError::Star { name });
    }
    check(&name)?;
    Ok(name)
}

/// A host that a record points to: CNAME, MX, NS, PTR, SRV, HTTPS, SVCB, NAPTR. A lone dot, which says that there is no
/// such host, stays.
pub fn host_target(text: &str) -> Result<String, NameError> {
    if text == "." {
        return Ok(text.to_owned());
    }
    let name = without_final_dot(to_ascii(text)?);
    check(&name)?;
    Ok(name)
}

/// Whether `name` is the zone itself or a name under it. Compares whole labels: `myexample.com` is not in `example.com`.
/// Both in canonical form.
pub fn in_zone(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone)
        .is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

fn to_ascii(text: &str) -> Result<String, NameError> {
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase());
    }
    Uts46::new()
        .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map(std::borrow::Cow::into_owned)
        .map_err(|source| NameError::Unicode {
            name: text.to_owned(),
            source,
        })
}

fn without_final_dot(mut name: String) -> String {
    if name.ends_with('.') {
        name.pop();
    }
    name
}

fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    let banned = |it: &char| it.is_ascii_whitespace() || it.is_ascii_control() || r#"\"@();"#.contains(*it);
    if let Some(character) = name.chars().find(banned) {
        return Err(NameError::Character {
            name: name.to_owned(),
            character,
        });
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(NameError::EmptyLabel { name: name.to_owned() });
        }
        if label.len() > MAX_LABEL {
            return Err(NameError::LabelTooLong {
                label: label.to_owned(),
                length: label.len(),
            });
        }
    }
    if name.len() > MAX_NAME {
        return Err(NameError::NameTooLong {
            name: name.to_owned(),
            length: name.len(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Field case 5: record name relative, full, with dot, or @.
    #[test]
    fn every_way_to_write_a_name_means_the_same_record() {
        for (written, full) in [
            ("www", "www.example.com"),
            ("www.example.com", "www.example.com"),
            ("www.example.com.", "www.example.com"),
            ("@", "example.com"),
            ("example.com", "example.com"),
            ("example.com.", "example.com"),
            ("a.b", "a.b.example.com"),
            ("com", "com.example.com"),
        ] {
            assert_eq!(full_name(written, "example.com").unwrap(), full, "{written}");
        }
    }

    // Field case 7: upper and lower case.
    #[test]
    fn capitals_in_names_and_targets_are_no_difference() {
        assert_eq!(full_name("WWW", "Example.COM.").unwrap(), "www.example.com");
        assert_eq!(full_name("WWW.Example.Com", "example.com").unwrap(), "www.example.com");
        assert_eq!(host_target("Target.Example.NET").unwrap(), "target.example.net");
        assert_eq!(zone_name("EXAMPLE.com.").unwrap(), "example.com");
    }

    // Field case 4: trailing dot on a target.
    #[test]
    fn one_final_dot_of_a_target_goes_and_a_lone_dot_stays() {
        assert_eq!(
            host_target("_x1.validations.example.net.").unwrap(),
            "_x1.validations.example.net"
        );
        assert_eq!(host_target(".").unwrap(), ".");
        assert!(matches!(
            host_target("example.net..").unwrap_err(),
            NameError::EmptyLabel { .. }
        ));
    }

    // Field case 26: which zone does a host belong to.
    #[test]
    fn a_suffix_that_is_not_a_whole_label_does_not_make_a_full_name() {
        assert!(!in_zone("test.myexample.com", "example.com"));
        assert!(in_zone("example.com", "example.com") && in_zone("a.example.com", "example.com"));
        assert_eq!(
            full_name("myexample.com", "example.com").unwrap(),
            "myexample.com.example.com"
        );
        let outside = full_name("test.myexample.com.", "example.com").unwrap_err();
        assert_eq!(
            outside.to_string(),
            "\"test.myexample.com.\" ends in a dot and is not in the zone example.com: leave the dot out, or name a \
             host of the zone"
        );
    }

    // Field case 22: wildcard names.
    #[test]
    fn a_star_is_a_wildcard_as_the_whole_first_label_only() {
        assert_eq!(full_name("*", "example.com").unwrap(), "*.example.com");
        assert_eq!(full_name("*.dev", "example.com").unwrap(), "*.dev.example.com");
        assert_eq!(full_name("*.example.com.", "example.com").unwrap(), "*.example.com");
        for wrong in ["a.*", "a*", "*a", "*.*", "**", "_own.*.example.com"] {
            let error = full_name(wrong, "example.com").unwrap_err();
            assert!(matches!(error, NameError::Star { .. }), "{wrong}: {error}");
        }
        assert!(zone_name("*.example.com").is_err());
    }

    // Field case 21: the zone apex is a name like any other.
    #[test]
    fn a_name_under_the_apex_never_falls_out_of_the_zone() {
        assert_eq!(full_name("_own", "example.com").unwrap(), "_own.example.com");
        assert_eq!(
            full_name("_own.@", "example.com").unwrap_err().to_string(),
            "\"_own.@.example.com\" contains '@', which a name cannot have"
        );
    }

    #[test]
    fn unicode_becomes_punycode_with_underscores_kept() {
        assert_eq!(full_name("Bücher", "example.com").unwrap(), "xn--bcher-kva.example.com");
        assert_eq!(
            full_name("BÜCHER.example.com", "example.com").unwrap(),
            "xn--bcher-kva.example.com"
        );
        assert_eq!(
            full_name("_dmarc", "bücher.example").unwrap(),
            "_dmarc.xn--bcher-kva.example"
        );
        assert_eq!(
            full_name("_dmarc.bücher.example", "xn--bcher-kva.example").unwrap(),
            "_dmarc.xn--bcher-kva.example"
        );
        assert_eq!(zone_name("例え。テスト").unwrap(), "xn--r8jz45g.xn--zckzah");
        assert!(matches!(
            zone_name("\u{200d}a.example").unwrap_err(),
            NameError::Unicode { .. }
        ));
    }

    #[test]
    fn what_is_no_name_is_named() {
        let label = "a".repeat(64);
        assert!(matches!(
            full_name(&label, "example.com").unwrap_err(),
            NameError::LabelTooLong { length: 64, .. }
        ));
        assert!(full_name(&label[1..], "example.com").is_ok());
        let long = [&label[1..]; 4].join(".");
        assert!(matches!(
            full_name(&long, "example.com").unwrap_err(),
            NameError::NameTooLong { length: 267, .. }
        ));
        for empty in ["", "."] {
            assert!(
                matches!(full_name(empty, "example.com").unwrap_err(), NameError::Empty),
                "{empty:?}"
            );
        }
        assert!(matches!(
            full_name("a..b", "example.com").unwrap_err(),
            NameError::EmptyLabel { .. }
        ));
        assert!(matches!(
            full_name(".a", "example.com").unwrap_err(),
            NameError::EmptyLabel { .. }
        ));
        assert!(matches!(
            host_target("10 mail.example.net").unwrap_err(),
            NameError::Character { character: ' ', .. }
        ));
        assert!(matches!(host_target("").unwrap_err(), NameError::Empty));
        // 63 bytes of Unicode are more than 63 of Punycode.
        assert!(matches!(
            full_name(&"ü".repeat(63), "example.com").unwrap_err(),
            NameError::LabelTooLong { .. }
        ));
    }

    proptest! {
        #[test]
        fn a_full_name_means_itself(label in "[a-zA-Z0-9_üé-]{1,20}", zone in "[a-z]{1,10}\\.[a-z]{2,5}") {
            if let Ok(full) = full_name(&label, &zone) {
                prop_assert!(in_zone(&full, &zone));
                prop_assert_eq!(full_name(&full, &zone).unwrap(), full.clone());
                prop_assert_eq!(full_name(&format!("{}.", full.to_uppercase()), &zone).unwrap(), full);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}") {
            let _ = (full_name(&text, "example.com"), zone_name(&text), host_target(&text));
        }
    }
}
