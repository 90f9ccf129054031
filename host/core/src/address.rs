//! Which network addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is on the public internet: not this machine, not a private, shared,
/// link-local, documentation, benchmark, multicast or reserved network (IANA special-purpose
/// registries), and not an IPv6 form that wraps or translates to one of those.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        // The door of a cloud's host to its guests, with a public number.
        || ip == Ipv4Addr::new(168, 63, 129, 16);
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // IPv4-mapped and NAT64 reach the IPv4 address inside them; 6to4 as well.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, ORCHID, benchmarking, documentation and the local-use NAT64 prefix.
        [0x64, 0xff9b, 1, ..]
        | [0x2001, 0..=0x1ff | 0xdb8, ..]
        | [0x3fff, 0..=0xfff, ..]
        | [0x5f00, ..] => false,
        // Global unicast is 2000::/3; nothing else is routed on the internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_networks_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "5f00::1",
            "::7f00:1",
            "3fff::1",
        ] {
            assert!(!is_public(text.parse().expect("an address")), "{text}");
        }
        for text in [
            "1.1.1.1",
            "100.63.0.1",
            "172.32.0.1",
            "198.20.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(text.parse().expect("an address")), "{text}");
        }
    }
}
