//! Addresses that no name may lead to: this host, private networks, and what is not unicast.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// A network, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    net: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Whether `addr` is in the network. An IPv4 address inside an IPv6 one counts as the IPv4 address.
    #[must_use]
    pub fn contains(&self, addr: IpAddr) -> bool {
        // A shift by all bits of the address: the network is everything.
        match (self.net, unwrapped(addr)) {
            (IpAddr::V4(net), IpAddr::V4(addr)) => {
                let differ = net.to_bits() ^ addr.to_bits();
                differ.checked_shr(32_u32.saturating_sub(self.bits.into())).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(addr)) => {
                let differ = net.to_bits() ^ addr.to_bits();
                differ.checked_shr(128_u32.saturating_sub(self.bits.into())).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Self {
        Self { net: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(a: u16, b: u16, bits: u8) -> Self {
        Self { net: IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), bits }
    }
}

/// Not a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a network such as `10.0.0.0/8`")]
pub struct InvalidCidr(String);

impl FromStr for Cidr {
    type Err = InvalidCidr;

    fn from_str(text: &str) -> Result<Self, InvalidCidr> {
        let parse = || {
            let (net, bits) = text.split_once('/')?;
            let net: IpAddr = net.parse().ok()?;
            let most = if net.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| *bits <= most)?;
            Some(Self { net, bits })
        };
        parse().ok_or_else(|| InvalidCidr(text.chars().take(64).collect()))
    }
}

const SPECIAL_V4: [Cidr; 15] = [
    Cidr::v4(0, 0, 0, 0, 8),
    Cidr::v4(10, 0, 0, 0, 8),
    Cidr::v4(100, 64, 0, 0, 10),
    Cidr::v4(127, 0, 0, 0, 8),
    Cidr::v4(169, 254, 0, 0, 16),
    Cidr::v4(172, 16, 0, 0, 12),
    Cidr::v4(192, 0, 0, 0, 24),
    Cidr::v4(192, 0, 2, 0, 24),
    Cidr::v4(192, 88, 99, 0, 24),
    Cidr::v4(192, 168, 0, 0, 16),
    Cidr::v4(198, 18, 0, 0, 15),
    Cidr::v4(198, 51, 100, 0, 24),
    Cidr::v4(203, 0, 113, 0, 24),
    Cidr::v4(224, 0, 0, 0, 4),
    Cidr::v4(240, 0, 0, 0, 4),
];

/// All IPv6 addresses that are in use on the internet. Loopback, private, link-local and multicast ones are outside.
const UNICAST_V6: Cidr = Cidr::v6(0x2000, 0, 3);
const SPECIAL_V6: [Cidr; 4] =
    [Cidr::v6(0x2001, 0, 23), Cidr::v6(0x2001, 0x0db8, 32), Cidr::v6(0x2002, 0, 16), Cidr::v6(0x3fff, 0, 20)];

/// Whether `addr` is private, of this host by its number, or otherwise not a public unicast address.
pub(crate) fn is_special(addr: IpAddr) -> bool {
    let among = |networks: &[Cidr]| networks.iter().any(|network| network.contains(addr));
    match unwrapped(addr) {
        IpAddr::V4(_) => among(&SPECIAL_V4),
        IpAddr::V6(_) => !UNICAST_V6.contains(addr) || among(&SPECIAL_V6),
    }
}

/// The IPv4 address inside `::ffff:0:0/96` (mapped) and `64:ff9b::/96` (translated by a gateway).
fn unwrapped(addr: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = addr else { return addr };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => addr,
    }
}
