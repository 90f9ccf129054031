//! Where a request comes from.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// The caller's address: the connection's, unless that is a trusted proxy; then the nearest
/// address in `X-Forwarded-For` that is not one.
#[must_use]
pub fn address(connected: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let connected = connected.to_canonical();
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|network| network.contains(ip));
    if !is_trusted(&connected) {
        return connected;
    }
    let forwarded = headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok());
    let hops: Vec<&str> = forwarded.flat_map(|value| value.split(',')).map(str::trim).collect();
    let mut nearest = connected;
    for hop in hops.into_iter().rev() {
        // What cannot be read was not written by a proxy of ours.
        let Ok(ip) = hop.parse::<IpAddr>() else { break };
        nearest = ip.to_canonical();
        if !is_trusted(&nearest) {
            break;
        }
    }
    nearest
}

/// Who shares a budget without a key: an address, or the network of 64 bits that one line to the
/// internet gets in IPv6.
#[must_use]
pub fn household(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_one_network_of_ipv6_share_a_household() {
        let of = |text: &str| household(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:198.51.100.7"), "198.51.100.7");
    }

    fn from(connected: &str, forwarded: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().expect("a header value"));
        let trusted = ["10.0.0.0/8".parse().expect("a network")];
        address(connected.parse().expect("an address"), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(from("203.0.113.9", "1.1.1.1"), "203.0.113.9");
        assert_eq!(from("10.0.0.1", "1.1.1.1"), "1.1.1.1");
        assert_eq!(from("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2"), "1.1.1.1");
        assert_eq!(from("10.0.0.1", "nonsense"), "10.0.0.1");
        assert_eq!(from("::ffff:10.0.0.1", "::ffff:1.1.1.1"), "1.1.1.1");
        assert_eq!(from("10.0.0.1", ""), "10.0.0.1");
    }
}
