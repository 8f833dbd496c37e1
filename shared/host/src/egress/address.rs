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

/// The addresses that packets to an address may reach: those that an IPv6 address embeds for a translator or a tunnel, or
/// else the address itself.
///
/// Not recognized: a translator's prefix that only its own network knows (RFC 6052). Such a network must block internal
/// addresses at the translator.
pub(super) fn reached(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let embedded = match address {
        IpAddr::V4(_) => Vec::new(),
        IpAddr::V6(six) => embedded_ipv4(six),
    };
    let itself = embedded.is_empty().then_some(address);
    embedded.into_iter().map(IpAddr::V4).chain(itself)
}

fn embedded_ipv4(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let four = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let octets = address.octets();
    match address.segments() {
        // This machine.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Vec::new(),
        // Compatible; mapped; translated (SIIT); NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => vec![four(high, low)],
        // NAT64 for local use: the network chooses where the address begins, and skips the ninth octet (RFC 6052).
        [0x64, 0xff9b, 1, ..] => {
            let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
            vec![at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), at([12, 13, 14, 15])]
        }
        // 6to4.
        [0x2002, high, low, ..] => vec![four(high, low)],
        // Teredo: the server, and the client, whose bits are inverted.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            vec![four(high, low), four(!client_high, !client_low)]
        }
        // ISATAP, under any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => vec![four(high, low)],
        _ => Vec::new(),
    }
}

/// Whether an address is blocked under every policy: link-local addresses, among them metadata servers, and other known
/// metadata addresses.
pub(super) fn is_always_blocked(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            // Alibaba, Azure.
            let metadata = [[100, 100, 100, 200], [168, 63, 129, 16]];
            four.is_link_local() || metadata.contains(&four.octets())
        }
        // Amazon, Google.
        IpAddr::V6(six) => {
            six.is_unicast_link_local()
                || [[0xfd00, 0xec2], [0xfd20, 0xce]].contains(&[six.segments()[0], six.segments()[1]])
        }
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
