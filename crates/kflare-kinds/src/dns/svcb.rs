//! The parameters of HTTPS and SVCB records (RFC 9460), which Cloudflare keeps as one text in `data.value`.

use std::{collections::BTreeMap, fmt, net::IpAddr};

/// Why a text is no list of parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// Something that is no key.
    #[error("{0:?} is no parameter: write key=value, separated by spaces")]
    Key(String),
    /// A quote without its partner.
    #[error("the value of {0} has a quote without its partner")]
    Quote(String),
    /// A key that stands there twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// An address hint that is no address of its family.
    #[error("{text:?} in {key} is not an address of that family")]
    Address {
        /// `ipv4hint` or `ipv6hint`.
        key: String,
        /// What stands there.
        text: String,
    },
}

/// Parameters by key. Two texts with the same parameters are equal, whatever their order and quoting; [`fmt::Display`]
/// writes the one spelling that kflare uses: by key, every value in quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(BTreeMap<String, Vec<String>>);

impl Params {
    /// Reads parameters such as `alpn=h2,h3 ipv4hint="192.0.2.1"`. Keys are taken without regard to case; values keep
    /// theirs. The order of values is kept where it means something (`alpn`, the hints), and not in `mandatory`.
    pub fn parse(text: &str) -> Result<Self, ParamsError> {
        let mut params = BTreeMap::new();
        let mut rest = text.trim_ascii();
        while !rest.is_empty() {
            let end = rest
                .find(|it: char| it == '=' || it.is_ascii_whitespace())
                .unwrap_or(rest.len());
            let (key, behind) = rest.split_at(end);
            let plain = !key.is_empty() && key.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
            if !plain {
                return Err(ParamsError::Key(rest.to_owned()));
            }
            let key = key.to_ascii_lowercase();
            let (value, behind) = match behind.strip_prefix('=') {
                Some(value) => split_value(&key, value)?,
                None => ("", behind),
            };
            rest = behind.trim_ascii_start();
            let values = values(&key, value)?;
            if params.insert(key.clone(), values).is_some() {
                return Err(ParamsError::Twice(key));
            }
        }
        Ok(Self(params))
    }
}

/// Splits a value, quoted or not, from what follows it. The quotes go; escapes stay as they are.
fn split_value<'a>(key: &str, text: &'a str) -> Result<(&'a str, &'a str), ParamsError> {
    let unpaired = || ParamsError::Quote(key.to_owned());
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|it: char| it.is_ascii_whitespace()).unwrap_or(text.len());
        let (value, behind) = text.split_at(end);
        let dangling = value.len() - value.trim_end_matches('\\').len();
        let whole = !value.contains('"') && dangling.is_multiple_of(2);
        return if whole { Ok((value, behind)) } else { Err(unpaired()) };
    };
    let mut escaped = false;
    for (at, character) in quoted.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                let behind = &quoted[at + 1..];
                let separate = behind.is_empty() || behind.starts_with(|it: char| it.is_ascii_whitespace());
                return if separate {
                    Ok((&quoted[..at], behind))
                } else {
                    Err(unpaired())
                };
            }
            _ => {}
        }
    }
    Err(unpaired())
}

fn values(key: &str, text: &str) -> Result<Vec<String>, ParamsError> {
    match key {
        _ if text.is_empty() => Ok(Vec::new()),
        "alpn" => Ok(split_list(text)),
        "mandatory" => {
            let mut keys: Vec<String> = split_list(text).iter().map(|it| it.to_ascii_lowercase()).collect();
            keys.sort();
            keys.dedup();
            Ok(keys)
        }
        "ipv4hint" | "ipv6hint" => split_list(text)
            .into_iter()
            .map(|text| match text.parse::<IpAddr>() {
                Ok(address) if address.is_ipv4() == (key == "ipv4hint") => Ok(address.to_string()),
                _ => Err(ParamsError::Address {
                    key: key.to_owned(),
                    text,
                }),
            })
            .collect(),
        _ => Ok(vec![text.to_owned()]),
    }
}

/// Splits at commas, but not at those behind a backslash. Spaces in front of an item are not part of it.
fn split_list(text: &str) -> Vec<String> {
    if text.trim_ascii().is_empty() {
        return Vec::new();
    }
    let mut items = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        if character == ',' && !escaped {
            items.push(String::new());
            continue;
        }
        escaped = character == '\\' && !escaped;
        if let Some(last) = items.last_mut() {
            last.push(character);
        }
    }
    items.iter().map(|it| it.trim_ascii_start().to_owned()).collect()
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, values)) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            if values.is_empty() {
                write!(f, "{space}{key}")?;
            } else {
                write!(f, "{space}{key}=\"{}\"", values.join(","))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        Params::parse(text).unwrap().to_string()
    }

    // Field case 13: HTTPS/SVCB parameters.
    #[test]
    fn order_and_quoting_of_parameters_are_no_difference() {
        let expected = r#"alpn="h2,h3" ipv4hint="192.0.2.1""#;
        for text in [
            "ipv4hint=192.0.2.1 alpn=h2,h3",
            r#"alpn="h2,h3" ipv4hint="192.0.2.1""#,
            r#"  ALPN="h2,h3"   ipv4hint=192.0.2.1 "#,
            r#"alpn="h2, h3" ipv4hint="192.0.2.1""#,
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
        assert_eq!(canonical(""), "");
    }

    #[test]
    fn the_order_of_protocols_and_the_case_of_values_mean_something() {
        assert_ne!(canonical("alpn=h3,h2"), canonical("alpn=h2,h3"));
        assert_eq!(
            canonical("ech=AbC= dohpath=/Q{?dns}"),
            r#"dohpath="/Q{?dns}" ech="AbC=""#
        );
        assert_eq!(
            canonical("mandatory=ipv4hint,alpn"),
            canonical("mandatory=\"alpn,ipv4hint\"")
        );
    }

    #[test]
    fn addresses_have_one_spelling() {
        assert_eq!(canonical("ipv6hint=2001:DB8:0::1"), r#"ipv6hint="2001:db8::1""#);
        assert_eq!(
            Params::parse("ipv4hint=2001:db8::1"),
            Err(ParamsError::Address {
                key: "ipv4hint".into(),
                text: "2001:db8::1".into()
            })
        );
    }

    #[test]
    fn keys_without_a_value_and_escapes_survive() {
        assert_eq!(
            canonical(r#"no-default-alpn key65333="a \"b\"" alpn="a\,b,c""#),
            r#"alpn="a\,b,c" key65333="a \"b\"" no-default-alpn"#
        );
        assert_eq!(canonical("no-default-alpn="), "no-default-alpn");
    }

    #[test]
    fn what_is_no_list_of_parameters_is_named() {
        assert_eq!(Params::parse("=h2"), Err(ParamsError::Key("=h2".into())));
        assert_eq!(Params::parse("alpn=h2 alpn=h3"), Err(ParamsError::Twice("alpn".into())));
        assert_eq!(Params::parse("alpn=\"h2"), Err(ParamsError::Quote("alpn".into())));
        assert_eq!(Params::parse("alpn=h2\""), Err(ParamsError::Quote("alpn".into())));
        assert_eq!(Params::parse("alpn=\"h2\"x"), Err(ParamsError::Quote("alpn".into())));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(text in "[a-z0-9=\", \\\\]{0,40}") {
            if let Ok(params) = Params::parse(&text) {
                prop_assert_eq!(Params::parse(&params.to_string()), Ok(params));
            }
        }
    }
}
