//! Addresses that merchants give for webhooks, and which of them are on the public internet.

use std::net::{IpAddr, Ipv4Addr};

use railhead::address::is_public;
use railhead::outbound::OutboundClient;
use reqwest::Url;

use crate::inputs::fuzz;

const WORDS: &[&str] = &[
    "https://",
    "http://",
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "017700000001",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
    "169.254.169.254",
    "localhost",
    "localhost.",
    ".internal",
    "10.",
    "192.168.",
    "172.16.",
    "100.64.",
    "a@",
    ":b@",
    ":443",
    ":0",
    ":99999",
    "/",
    "\\",
    "@",
    "#",
    "?",
    "%2e",
    "。",
    "．",
    "xn--",
    "①②⑦",
    "..",
    "::",
    "fe80::1%25eth0",
    "fc00::",
    "2001:db8::",
    "ff02::1",
    "8.8.8.8",
    "[2606:4700::1111]",
];

#[test]
fn addresses() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = OutboundClient::new(&railhead::config::Webhooks::default()).expect("a client");
    fuzz("addresses", WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(ip) = text.trim().parse::<IpAddr>() {
            assert!(!is_public(ip) || !is_inside(ip), "{ip}");
        }
        let Ok(url) = client.read(&text) else { return };
        assert_eq!(url.scheme(), "https");
        assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
        let host = url.host_str().expect("a host").trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(ip) => assert!(is_public(ip) && !is_inside(ip), "{url}"),
            Err(_) => assert!(!is_local(host), "{url}"),
        }
        // As it is kept and sent to, it is the same address, and accepted again.
        assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url));
        assert_eq!(client.read(url.as_str()).as_ref(), Ok(&url));
    });
}

/// What the standard library says of it, and of the address that it wraps or translates to.
fn is_inside(ip: IpAddr) -> bool {
    let is_inside_v4 = |ip: Ipv4Addr| {
        ip.is_loopback()
            || ip.is_private()
            || ip.is_link_local()
            || ip.is_unspecified()
            || ip.is_broadcast()
            || ip.is_multicast()
            || ip.is_documentation()
    };
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_inside_v4(ip),
        IpAddr::V6(ip) => {
            let parts = ip.segments();
            let last = Ipv4Addr::from_bits((u32::from(parts[6]) << 16) | u32::from(parts[7]));
            let is_translated = parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                || (is_translated && is_inside_v4(last))
        }
    }
}

fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost"
        || [".localhost", ".local", ".internal"].iter().any(|end| host.ends_with(end))
}
