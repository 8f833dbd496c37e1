//! Networks, and the classification of internal addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network in CIDR notation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Net {
    first: IpAddr,
    bits: u8,
}

impl Net {
    pub(super) const V4: Self = Self { first: IpAddr::V4(Ipv4Addr::UNSPECIFIED), bits: 0 };
    pub(super) const V6: Self = Self { first: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 };

    pub(super) fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = u32::from(first) ^ u32::from(address);
                differs.checked_shr(32 - u32::from(self.bits)).unwrap_or_default() == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = u128::from(first) ^ u128::from(address);
                differs.checked_shr(128 - u32::from(self.bits)).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Net {
    type Err = ();

    /// Parses `ADDRESS` or `ADDRESS/BITS`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let first: IpAddr = first.parse().map_err(drop)?;
        let max = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(max), str::parse).map_err(drop)?;
        if bits > max { Err(()) } else { Ok(Self { first, bits }) }
    }
}

/// The IPv4 address that an IPv6 address embeds (mapped, NAT64 or 6to4); any other address unchanged.
pub(super) fn embedded_ipv4(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let parts = six.segments();
    let four = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        // The deprecated IPv4-compatible form, which excludes `::` and `::1`.
        [0, 0, 0, 0, 0, 0, high, low] if high > 0 => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        _ => address,
    }
}

/// Whether an address is blocked under every policy: link-local addresses, among them metadata servers, and other known
/// metadata addresses.
pub(super) fn is_always_blocked(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local() || four == Ipv4Addr::new(100, 100, 100, 200),
        IpAddr::V6(six) => six.is_unicast_link_local() || six.segments()[..2] == [0xfd00, 0xec2],
    }
}

/// Whether an address is internal: reachable only from this machine or network, or unroutable.
pub(super) fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [first, second, third, _] = four.octets();
            four.is_loopback()
                || four.is_private()
                || four.is_multicast()
                || first == 0
                || first >= 240
                // Carrier-grade NAT, protocol assignments, benchmarks.
                || (first == 100 && second & 0xc0 == 64)
                || (first == 192 && second == 0 && third == 0)
                || (first == 198 && second & 0xfe == 18)
        }
        IpAddr::V6(six) => {
            six.is_loopback()
                || six.is_unspecified()
                || six.is_multicast()
                || six.is_unique_local()
                // Deprecated site-local addresses.
                || six.segments()[0] & 0xffc0 == 0xfec0
        }
    }
}
