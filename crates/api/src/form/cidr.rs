//! A range of addresses as people write it: `10.0.0.0/8`, `2001:db8::/32`, or one address alone.
//!
//! An IPv4 address may come in IPv6's form (`::ffff:10.0.0.1`), as it does to who listens on both: it is the same address, and
//! a range that is written so is the same range.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use thiserror::Error;

/// What comes before an IPv4 address in IPv6's form, in bits.
const MAPPED: u8 = 96;

/// A range of addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    first: IpAddr,
    length: u8,
}

/// Why a text is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CidrError {
    /// There is no address before the slash.
    #[error("`{0}` is no range of addresses; write one such as 10.0.0.0/8 or 2001:db8::/32")]
    NoAddress(String),
    /// What is behind the slash is no length.
    #[error("`{text}` has no length from 0 to {longest} behind its slash")]
    NoLength {
        /// What was written.
        text: String,
        /// Of an address of this family.
        longest: u8,
    },
    /// The address is not the first one.
    #[error("`{text}` begins within a range; write {meant} for all of it")]
    NotTheFirst {
        /// What was written.
        text: String,
        /// The range that it lies in.
        meant: Cidr,
    },
}

impl Cidr {
    /// The range that is written there.
    pub fn parse(text: &str) -> Result<Self, CidrError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| CidrError::NoAddress(text.to_owned()))?;
        let longest = longest(address);
        // A sign would be taken as part of the number.
        let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let length = match length {
            None => Some(longest),
            Some(length) => Some(length)
                .filter(is_number)
                .and_then(|it| it.parse().ok()),
        };
        let length: u8 =
            length
                .filter(|length| *length <= longest)
                .ok_or_else(|| CidrError::NoLength {
                    text: text.to_owned(),
                    longest,
                })?;
        let written = Self {
            first: address,
            length,
        };
        let meant = Self {
            first: masked(address, length),
            length,
        };
        if written != meant {
            return Err(CidrError::NotTheFirst {
                text: text.to_owned(),
                meant: meant.canonical(),
            });
        }
        Ok(meant.canonical())
    }

    /// Whether an address lies in it.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.length) == self.first
    }

    /// One in IPv6's form of IPv4 addresses alone is one of IPv4.
    fn canonical(self) -> Self {
        match (self.first.to_canonical(), self.length.checked_sub(MAPPED)) {
            (first @ IpAddr::V4(_), Some(length)) if self.first.is_ipv6() => Self { first, length },
            _ => self,
        }
    }
}

fn longest(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with all bits behind the first so many off.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    // A shift by all bits there are is none at all.
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32)));
            Ipv4Addr::from_bits(address.to_bits() & mask.unwrap_or(0)).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128)));
            Ipv6Addr::from_bits(address.to_bits() & mask.unwrap_or(0)).into()
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        Self::parse(text)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.first, self.length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contains(range: &str, address: &str) -> bool {
        Cidr::parse(range)
            .unwrap()
            .contains(address.parse().unwrap())
    }

    #[test]
    fn an_address_lies_in_a_range_or_does_not() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            // Of the other family there is nothing in it.
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("::/0", "192.0.2.1", false),
            ("::/0", "::ffff:192.0.2.1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("fd00::2", "fd00::2", true),
            ("::ffff:10.0.0.0/104", "10.1.2.3", true),
            ("::ffff:10.0.0.0/104", "11.0.0.1", false),
        ] {
            assert_eq!(contains(range, address), expected, "{range} {address}");
        }
    }

    #[test]
    fn what_is_no_range_is_told_with_what_would_be_right() {
        for (text, expected) in [
            ("", "10.0.0.0/8"),
            ("shop", "10.0.0.0/8"),
            ("10.0.0.0/8/8", "from 0 to 32"),
            ("10.0.0.0/", "from 0 to 32"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("10.1.0.0/8", "10.0.0.0/8"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::ffff:10.1.0.0/104", "10.0.0.0/8"),
            ("fe80::1%eth0/64", "2001:db8::/32"),
            (" 10.0.0.0/8", "10.0.0.0/8"),
        ] {
            let error = Cidr::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn one_address_alone_is_a_range() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:db8::7", "2001:db8::7/128"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ] {
            assert_eq!(Cidr::parse(text).unwrap().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".{0,40}") {
            let _ = Cidr::parse(&text);
        }

        /// By counting bits, one after another.
        #[test]
        fn a_range_has_the_addresses_that_begin_alike(a: u128, flipped in 0_u32..128, length in 0_u8..=128) {
            let range = Cidr { first: masked(Ipv6Addr::from_bits(a).into(), length), length };
            let range = Cidr::parse(&range.to_string()).unwrap();
            let other = Ipv6Addr::from_bits(a ^ (1 << (127 - flipped)));
            prop_assume!(IpAddr::from(other).to_canonical().is_ipv6() && range.first.is_ipv6());
            prop_assert!(range.contains(Ipv6Addr::from_bits(a).into()));
            prop_assert_eq!(range.contains(other.into()), flipped >= u32::from(length));
        }

        #[test]
        fn what_is_shown_is_read_again(a: u32, length in 0_u8..=32) {
            let range = Cidr { first: masked(Ipv4Addr::from_bits(a).into(), length), length };
            prop_assert_eq!(Cidr::parse(&range.to_string()), Ok(range));
            prop_assert!(range.contains(Ipv4Addr::from_bits(a).into()));
            prop_assert!(range.contains(Ipv4Addr::from_bits(a).to_ipv6_mapped().into()));
        }
    }
}
