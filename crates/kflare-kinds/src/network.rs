//! IP addresses and networks in the form that Cloudflare keeps.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// An address or a network, in canonical form: no host bits, a network of one address is that address, IPv6 as RFC 5952 writes
/// it. Seen in what Cloudflare's lists give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

/// The text is neither an address nor a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither an IP address nor a network such as 192.0.2.0/24 or 2001:db8::/32")]
pub struct NoNetwork;

impl Network {
    /// Whether it is a single address.
    pub fn is_address(self) -> bool {
        self.bits == whole(self.first)
    }

    /// How many leading bits are fixed.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Whether it is IPv4.
    pub fn is_ipv4(self) -> bool {
        self.first.is_ipv4()
    }
}

/// The bits of an address.
fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NoNetwork)?;
        let bits = match bits {
            None => whole(address),
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().map_err(|_| NoNetwork)?,
            Some(_) => return Err(NoNetwork),
        };
        let host = u32::from(whole(address)).checked_sub(bits.into()).ok_or(NoNetwork)?;
        let first = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(host).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(host).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Ok(Self { first, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_address() {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}/{}", self.first, self.bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> Option<String> {
        text.parse::<Network>().ok().map(|network| network.to_string())
    }

    #[test]
    fn two_spellings_of_one_thing_become_one() {
        for (spelling, form) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1/32", "192.0.2.1"),
            ("192.0.2.1/24", "192.0.2.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("f::/128", "f::"),
            ("0f::", "f::"),
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(canonical(spelling).as_deref(), Some(form), "{spelling}");
        }
        for none in [
            "",
            "192.0.2",
            "192.0.2.01",
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2.0/+8",
            "::/129",
            "a.example",
            " ::",
        ] {
            assert_eq!(canonical(none), None, "{none:?}");
        }
    }

    proptest! {
        /// The form is its own form, and any address of the network with its length leads to it.
        #[test]
        fn every_ipv4_network_has_one_form(address: u32, bits in 0_u8..=32, host: u32) {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            let inside = (address & mask) | (host & !mask);
            let one = canonical(&format!("{}/{bits}", Ipv4Addr::from_bits(address))).unwrap();
            let other = canonical(&format!("{}/{bits}", Ipv4Addr::from_bits(inside))).unwrap();
            prop_assert_eq!(&one, &other);
            prop_assert_eq!(canonical(&one), Some(one.clone()));
        }

        #[test]
        fn every_ipv6_network_has_one_form(address: u128, bits in 0_u8..=128, host: u128, upper: bool) {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            let inside = Ipv6Addr::from_bits((address & mask) | (host & !mask));
            let one = canonical(&format!("{}/{bits}", Ipv6Addr::from_bits(address))).unwrap();
            // Without the abbreviations, and in either case.
            let segments: Vec<String> = inside.segments().iter().map(|segment| format!("{segment:04x}")).collect();
            let long = segments.join(":");
            let long = if upper { long.to_uppercase() } else { long };
            prop_assert_eq!(canonical(&format!("{long}/{bits}")), Some(one.clone()));
            prop_assert_eq!(canonical(&one), Some(one.clone()));
        }
    }
}
