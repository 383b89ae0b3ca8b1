//! Tells which IP addresses belong to the public internet. belljar connects to any other address only if the operator
//! named it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// IPv4 networks that are not public: IANA's special-purpose registry (RFC 6890), multicast, and one address of a
/// cloud.
const NOT_PUBLIC_V4: [Ipv4Net; 17] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // Azure's services answer on this address in every virtual machine.
    v4(168, 63, 129, 16, 32),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
    v4(255, 255, 255, 255, 32),
];

/// The only IPv6 block that IANA has allocated for the public internet.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The parts of [`PUBLIC_V6`] that are not public: protocol assignments (with Teredo), documentation, 6to4.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// The NAT64 prefix: networks without IPv4 reach public IPv4 addresses below it (RFC 6052, 2.1).
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// The canonical form of an address: an IPv4 address that is mapped into IPv6 or below the NAT64 prefix becomes plain IPv4.
pub fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(wrapped) if NAT64.contains(&wrapped) => {
            let [.., a, b, c, d] = wrapped.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other,
    }
}

/// The IPv4 addresses for which `address` stands. That is `address` itself, or the address inside an IPv6 address.
///
/// A system or a gateway may unwrap these forms: mapped, compatible (RFC 4291, 2.5.5), translated (RFC 6052, RFC 8215),
/// 6to4 (RFC 3056).
fn embedded_ipv4(address: IpAddr) -> Vec<Ipv4Addr> {
    let v6 = match address {
        IpAddr::V4(v4) => return vec![v4],
        IpAddr::V6(v6) => v6,
    };
    let segments = v6.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => vec![pair(high, low)],
        _ => Vec::new(),
    }
}

/// True if a connection to `address` ends at this machine: loopback, or "this host on this network" (RFC 1122,
/// 3.2.1.3), which systems treat as loopback. Also true for IPv6 addresses that contain one of these.
pub fn is_this_machine(address: IpAddr) -> bool {
    let is_v6_here = matches!(address, IpAddr::V6(v6) if v6.is_loopback() || v6.is_unspecified());
    is_v6_here || embedded_ipv4(address).iter().any(|v4| v4.is_loopback() || matches!(v4.octets(), [0, ..]))
}

/// True if a connection to `asked` can reach a listener on `own`. Either both are the same address, or `asked` is a
/// local address, or `own` is a wildcard address.
pub fn reaches_listener(asked: SocketAddr, own: SocketAddr) -> bool {
    let (asked_ip, own_ip) = (asked.ip().to_canonical(), own.ip().to_canonical());
    asked.port() == own.port()
        && (asked_ip == own_ip
            || is_this_machine(asked_ip)
            || embedded_ipv4(asked_ip).iter().any(|v4| IpAddr::V4(*v4) == own_ip)
            || own_ip.is_unspecified())
}

/// True if `address` belongs to the public internet, in any spelling.
pub fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => PUBLIC_V6.contains(&v6) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&v6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
        assert_eq!(canonical("64:ff9b::7f00:1".parse().unwrap()), "127.0.0.1".parse::<IpAddr>().unwrap());
        assert_eq!(canonical("::ffff:1.2.3.4".parse().unwrap()), "1.2.3.4".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn every_local_address_reaches_a_loopback_listener() {
        let leads = |asked: &str, own: &str| {
            let asked: IpAddr = asked.parse().unwrap();
            reaches_listener(SocketAddr::new(asked, 8600), own.parse().unwrap())
        };
        for here in [
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "0.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:0:0::1",
        ] {
            assert!(leads(here, "127.0.0.1:8600"), "{here}");
            assert!(leads(here, "[::1]:8600"), "{here}");
            assert!(!leads(here, "127.0.0.1:8601"), "{here} at another port");
        }
        for other in ["10.0.0.1", "93.184.216.34", "2606:4700::1111", "fe80::1", "::2:0:0"] {
            assert!(!leads(other, "127.0.0.1:8600"), "{other}");
            assert!(leads(other, "0.0.0.0:8600"), "{other}: it listens on all");
        }
        assert!(leads("10.0.0.1", "10.0.0.1:8600") && leads("::ffff:10.0.0.1", "10.0.0.1:8600"));
        assert!(leads("10.0.0.1", "[::ffff:10.0.0.1]:8600") && !leads("10.0.0.2", "10.0.0.1:8600"));
    }
}
