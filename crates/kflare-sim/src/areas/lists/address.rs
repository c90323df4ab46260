//! Addresses and networks, in the form in which lists keep them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// An address or a network. The form that Cloudflare keeps, seen by the tests of its Terraform provider: host bits are
/// cleared, and a network of one address is that address. IPv4 sorts before IPv6, and networks by their first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Address {
    first: IpAddr,
    bits: u8,
}

/// The text is no address that a list takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address that a list takes")]
pub(crate) struct NoAddress(String);

impl Address {
    /// Reads an address or a network. IPv4 networks have /2 to /32, IPv6 networks /4 to /64 (Cloudflare documents both);
    /// single IPv6 addresses are taken too.
    pub(crate) fn parse(text: &str) -> Result<Self, NoAddress> {
        let refused = || NoAddress(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => {
                let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
                let bits = bits.parse().ok().filter(|_| is_number).ok_or_else(refused)?;
                (address, Some(bits))
            }
        };
        match address.parse().map_err(|_| refused())? {
            IpAddr::V4(first) => match bits.unwrap_or(32) {
                bits @ 2..=32 => {
                    let mask = u32::MAX << (32 - bits);
                    let first = Ipv4Addr::from_bits(first.to_bits() & mask).into();
                    Ok(Self { first, bits })
                }
                _ => Err(refused()),
            },
            IpAddr::V6(first) => match bits.unwrap_or(128) {
                bits @ (4..=64 | 128) => {
                    let mask = u128::MAX << (128 - bits);
                    let first = Ipv6Addr::from_bits(first.to_bits() & mask).into();
                    Ok(Self { first, bits })
                }
                _ => Err(refused()),
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.first.is_ipv4() { 32 } else { 128 };
        match self.bits {
            bits if bits == whole => write!(f, "{}", self.first),
            bits => write!(f, "{}/{bits}", self.first),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = NoAddress;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn forms_that_cloudflare_keeps() {
        for (sent, kept) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1/32", "192.0.2.1"),
            ("192.0.2.1/24", "192.0.2.0/24"),
            ("f::/128", "f::"),
            ("0f::", "f::"),
            ("2001:DB8::1/32", "2001:db8::/32"),
            ("2001:db8:0:0:8::/64", "2001:db8::/64"),
        ] {
            assert_eq!(Address::parse(sent).unwrap().to_string(), kept, "{sent}");
        }
    }

    #[test]
    fn what_a_list_does_not_take() {
        for sent in [
            "",
            "192.0.2",
            "192.0.2.01",
            "192.0.2.0/1",
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2.0/+8",
            "2001:db8::/65",
            "2001:db8::/3",
            "example.com",
            " 192.0.2.1",
        ] {
            assert!(Address::parse(sent).is_err(), "{sent:?}");
        }
    }
}
