//! Tells which IP addresses belong to the public internet. A server may send this program only to those.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// IPv4 networks that are not public: IANA's special-purpose registry (RFC 6890), multicast, and one address of a cloud.
const NOT_PUBLIC_V4: [Ipv4Net; 16] = [
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
];

/// The only IPv6 block that IANA has allocated for the public internet.
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 3);

/// The parts of [`PUBLIC_V6`] that are not public: protocol assignments (with Teredo), documentation, 6to4.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

/// The NAT64 prefix: networks without IPv4 reach public IPv4 addresses below it (RFC 6052, 2.1).
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 96);

/// True if `address` belongs to the public internet, in any spelling.
pub(crate) fn is_public(address: IpAddr) -> bool {
    let plain = match address.to_canonical() {
        IpAddr::V6(wrapped) if NAT64.contains(&wrapped) => {
            let [.., a, b, c, d] = wrapped.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other,
    };
    match plain {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => PUBLIC_V6.contains(&v6) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&v6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The repository's table of addresses, which people wrote from IANA's registries.
    #[test]
    fn the_table_of_addresses_is_followed() {
        let table = include_str!("../../../tests/decisions/addresses.tsv");
        let mut rows = 0;
        for line in table.lines().filter(|line| line.starts_with("name\thttps\tapi.example\tGET\t/\t")) {
            let columns: Vec<_> = line.split('\t').collect();
            let (address, verdict) = (columns[5], columns[6]);
            let Ok(address) = address.parse::<IpAddr>() else { continue };
            if ["allow", "address"].contains(&verdict) {
                assert_eq!(is_public(address), verdict == "allow", "{line}");
                rows += 1;
            }
        }
        assert!(rows > 50, "{rows}");
    }
}
