//! Addresses that no name may lead to.

use std::net::IpAddr;

use super::super::Cidr;
use super::super::dial::is_own;
use super::super::ranges::is_special;

#[test]
fn special_addresses_are_special_up_to_the_last_one() {
    let special = [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.255",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "::10.0.0.1",
        "100::1",
        "2001::1",
        "2001:1ff:ffff::",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "3fff:fff:ffff::",
        "4000::1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];
    for addr in special {
        assert!(is_special(addr.parse().unwrap()), "{addr}");
    }
}

#[test]
fn public_addresses_next_to_special_ones_are_public() {
    let public = [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2000::1",
        "2001:200::1",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::1",
        "2606:4700::1111",
        "3ffe::1",
    ];
    for addr in public {
        assert!(!is_special(addr.parse().unwrap()), "{addr}");
    }
}

#[test]
fn a_network_counts_an_address_inside_another_one() {
    let network: Cidr = "10.0.0.0/8".parse().unwrap();
    for (addr, inside) in [
        ("10.9.9.9", true),
        ("::ffff:10.9.9.9", true),
        ("64:ff9b::a09:909", true),
        ("11.0.0.0", false),
        ("fd00::1", false),
    ] {
        assert_eq!(network.contains(addr.parse().unwrap()), inside, "{addr}");
    }
    assert!("fd00::/8".parse::<Cidr>().unwrap().contains("fd12::1".parse().unwrap()));
    for text in ["10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "::/129", "/8", "a/8", "10.0.0.0/-1", "10.0.0/8"] {
        assert!(text.parse::<Cidr>().is_err(), "{text}");
    }
}

#[test]
fn an_address_of_this_host_is_its_own() {
    assert!(is_own("127.0.0.1".parse().unwrap()));
    let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
    assert!(!is_own(elsewhere));
}
