//! Names of records and of the hosts they point at.

/// The longest name without its final dot.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A name as the API answers it: whole, lower case, punycode, without a final dot. `sent` is relative to the zone, or `@`,
/// or whole; one that ends in the zone's name counts as whole.
pub(crate) fn absolute(sent: &str, zone: &str) -> Option<String> {
    let name = sent.trim();
    if name == "@" {
        return Some(zone.to_owned());
    }
    let name = normalise(name)?;
    let whole = if is_within(&name, zone) {
        name
    } else {
        format!("{name}.{zone}")
    };
    is_valid(&whole).then_some(whole)
}

/// Whether `name` is `zone` or lies below it, label by label.
fn is_within(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A host name that a record points at, normalised: lower case, punycode, one final dot stripped.
pub(crate) fn host(sent: &str) -> Option<String> {
    let name = normalise(sent.trim())?;
    let host_like = name.split('.').all(|label| label.bytes().all(is_host_byte));
    let is_address = name.parse::<std::net::Ipv4Addr>().is_ok();
    (is_valid(&name) && host_like && !is_address).then_some(name)
}

/// The name of a zone: a host of at least two labels.
pub(crate) fn zone(sent: &str) -> Option<String> {
    let name = host(sent)?;
    let labels_fit = name
        .split('.')
        .all(|label| !label.contains('_') && !label.starts_with('-'));
    (name.contains('.') && labels_fit).then_some(name)
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'*'
}

fn normalise(sent: &str) -> Option<String> {
    let name = sent.strip_suffix('.').unwrap_or(sent);
    if name.is_empty()
        || name
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\\' | '/'))
    {
        return None;
    }
    if name.is_ascii() {
        return Some(name.to_ascii_lowercase());
    }
    idna::domain_to_ascii(name).ok()
}

fn is_valid(name: &str) -> bool {
    name.len() <= MAX_NAME && name.split('.').all(|label| (1..=MAX_LABEL).contains(&label.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_name_means_one_thing() {
        for sent in [
            "www",
            "WWW",
            "www.example.com",
            "www.example.com.",
            "Www.Example.Com",
            " www ",
        ] {
            assert_eq!(
                absolute(sent, "example.com").as_deref(),
                Some("www.example.com"),
                "{sent}"
            );
        }
        for sent in ["@", "example.com", "example.com.", "EXAMPLE.com"] {
            assert_eq!(absolute(sent, "example.com").as_deref(), Some("example.com"), "{sent}");
        }
        assert_eq!(
            absolute("myexample.com", "example.com").as_deref(),
            Some("myexample.com.example.com")
        );
        assert_eq!(absolute("*", "example.com").as_deref(), Some("*.example.com"));
        assert_eq!(
            absolute("bücher", "example.com").as_deref(),
            Some("xn--bcher-kva.example.com")
        );
        assert_eq!(
            absolute("_sip._tcp", "example.com").as_deref(),
            Some("_sip._tcp.example.com")
        );
    }

    #[test]
    fn names_that_are_none() {
        let long_label = "a".repeat(64);
        let long_name = ["a".repeat(60), "b".repeat(60), "c".repeat(60), "d".repeat(60)].join(".");
        for sent in [
            "",
            ".",
            "a..b",
            "a b",
            "a\"b",
            "a\nb",
            long_label.as_str(),
            long_name.as_str(),
        ] {
            assert_eq!(absolute(sent, "example.com"), None, "{sent:?}");
        }
    }

    #[test]
    fn hosts_lose_one_final_dot_and_their_case() {
        assert_eq!(host("Target.Example.NET.").as_deref(), Some("target.example.net"));
        for sent in ["", ".", "a..", "192.0.2.1", "a b", "http://a"] {
            assert_eq!(host(sent), None, "{sent:?}");
        }
        assert_eq!(zone("Example.COM.").as_deref(), Some("example.com"));
        assert_eq!(zone("com"), None);
        assert_eq!(zone("a_b.com"), None);
    }
}
