//! What may be asked for, and what a policy may say.

use std::net::IpAddr;

use proptest::prelude::*;

use super::super::host::{HostName, split_authority};
use super::super::{Cidr, Denied, Policy, PolicyError, Reason};

const POLICY: &str = r#"{"v": 1, "allow": [
    {"host": "api.a.example"},
    {"host": "xn--bcher-kva.example", "ports": [443, 8443]},
    {"suffix": "c.example"},
    {"host": "db.c.example", "ports": [5432]},
    {"host": "Upper.Example."}
]}"#;

/// The verdict on what stands behind `CONNECT`.
fn judge(policy: &Policy, target: &str) -> Reason {
    let decide = || {
        let (host, port) = split_authority(target)?;
        policy.decide(host, port)
    };
    decide().map_or_else(|denied: Denied| denied.reason(), |_allowed| Reason::Ok)
}

#[test]
fn the_list_decides_by_host_and_port() {
    let policy = Policy::parse(POLICY.as_bytes()).unwrap();
    let table = [
        ("api.a.example:443", Reason::Ok),
        ("API.a.Example:443", Reason::Ok),
        ("api.a.example.:443", Reason::Ok),
        ("api.a.example:80", Reason::Port),
        ("api.a.example:8443", Reason::Port),
        ("a.example:443", Reason::NotListed),
        ("x.api.a.example:443", Reason::NotListed),
        ("api.a.example.evil.example:443", Reason::NotListed),
        ("evilapi.a.example:443", Reason::NotListed),
        ("xn--bcher-kva.example:8443", Reason::Ok),
        ("sub.c.example:443", Reason::Ok),
        ("deep.sub.c.example:443", Reason::Ok),
        ("c.example:443", Reason::NotListed),
        ("evilc.example:443", Reason::NotListed),
        ("db.c.example:5432", Reason::Ok),
        ("db.c.example:443", Reason::Ok),
        ("db.c.example:22", Reason::Port),
        ("upper.example:443", Reason::Ok),
        ("localhost:443", Reason::NotListed),
    ];
    for (target, expected) in table {
        assert_eq!(judge(&policy, target), expected, "{target}");
    }
}

#[test]
fn whatever_a_resolver_may_read_as_an_address_is_an_address() {
    let policy = Policy::parse(POLICY.as_bytes()).unwrap();
    let spellings = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0.0.0.0",
        "0",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0x7f000001",
        "0X7F.1",
        "0x7f.0x0.0x0.0x1",
        "0x",
        "127.0.0.1.",
        "169.254.169.254",
        "1.2.3",
        "999.999.999.999",
        "a.b.1",
        "[::1]",
        "::1",
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "[]",
        "a]",
    ];
    for host in spellings {
        assert_eq!(judge(&policy, &format!("{host}:443")), Reason::IpLiteral, "{host}");
    }
}

#[test]
fn what_is_no_host_and_port_is_malformed() {
    let policy = Policy::parse(POLICY.as_bytes()).unwrap();
    let long = format!("{}.example:443", "a".repeat(64));
    let longer = format!("{}example:443", "a.".repeat(125));
    let targets = [
        "",
        ":443",
        ".:443",
        "..:443",
        "a..example:443",
        ".api.a.example:443",
        "api.a.example..:443",
        "api.a.example",
        "api.a.example:",
        "api.a.example:0",
        "api.a.example:65536",
        "api.a.example:0443",
        "api.a.example:+443",
        "api.a.example:443a",
        "user@api.a.example:443",
        "user:pass@api.a.example:443",
        "api%2ea.example:443",
        "%31%32%37.1:443",
        "[fe80::1%25eth0]:443",
        "api_a.example:443",
        "bücher.example:443",
        "１２７.0.0.1:443",
        "api.a.example/:443",
        "api.a.example#:443",
        "*.c.example:443",
        "a b:443",
        "[::1]",
        &long,
        &longer,
    ];
    for target in targets {
        assert_eq!(judge(&policy, target), Reason::Malformed, "{target}");
    }
}

#[test]
fn a_policy_with_a_mistake_is_refused_and_says_what_to_write() {
    let table = [
        (r#"{"host": "^api\\.a\\.example$"}"#, r#"write {"host": "api.a.example"}"#),
        (r#"{"host": ".*\\.a\\.example$"}"#, r#"write {"suffix": "a.example"}"#),
        (r#"{"host": "*.a.example"}"#, r#"write {"suffix": "a.example"}"#),
        (r#"{"suffix": "*.a.example"}"#, r#"write {"suffix": "a.example"}"#),
        (r#"{"host": "(a|b).example"}"#, "is not a host name"),
        (r#"{"host": "10.0.0.1"}"#, "is an IP address; give a host name"),
        (r#"{"suffix": "com"}"#, "anybody can own a name below `com`"),
        (r#"{"suffix": "co.uk"}"#, "anybody can own"),
        (r#"{"suffix": "github.io"}"#, "anybody can own"),
        (r#"{"suffix": "s3.amazonaws.com"}"#, "anybody can own"),
        (r#"{"suffix": "SENTRY.io."}"#, "anybody can own"),
        (r#"{"host": "a.example", "suffix": "b.example"}"#, "either `host` or `suffix`"),
        ("{}", "either `host` or `suffix`"),
        (r#"{"host": "a.example", "ports": []}"#, "`ports` holds at least one port"),
        (r#"{"host": "a.example", "ports": [0]}"#, "`ports` holds at least one port"),
        (r#"{"host": "a.example", "private_ok": ["10.0.0.0/33"]}"#, "`10.0.0.0/33` is not a network"),
        (r#"{"host": "a.example", "port": 443}"#, "unknown field `port`"),
    ];
    for (entry, expected) in table {
        let text = format!(r#"{{"v": 1, "allow": [{{"host": "first.example"}}, {entry}]}}"#);
        let error = Policy::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{entry}: {error}");
        assert!(error.contains("entry 2") || error.contains("line"), "{entry}: {error}");
    }
    let newer = Policy::parse(br#"{"v": 2, "allow": []}"#).unwrap_err();
    assert!(matches!(newer, PolicyError::Version(2)));
    for fine in ["chatgpt.com", "a.co.uk", "example.co", "internal.corp.example"] {
        Policy::parse(format!(r#"{{"v": 1, "allow": [{{"suffix": "{fine}"}}]}}"#).as_bytes()).unwrap();
    }
}

#[test]
fn an_empty_list_allows_nothing() {
    let policy = Policy::parse(br#"{"v": 1, "allow": []}"#).unwrap();
    assert_eq!(judge(&policy, "api.anthropic.com:443"), Reason::NotListed);
}

#[test]
fn a_policy_file_that_is_not_the_accepted_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.json");
    std::fs::write(&path, POLICY).unwrap();
    let digest = peers_sys::digest::sha256_hex(POLICY.as_bytes());
    let policy = Policy::read(&path, Some(&digest)).unwrap();
    assert_eq!(judge(&policy, "api.a.example:443"), Reason::Ok);
    std::fs::write(&path, POLICY.replace("api.a", "api.b")).unwrap();
    assert!(matches!(Policy::read(&path, Some(&digest)), Err(PolicyError::Changed { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(Policy::read(&path, None), Err(PolicyError::Read(_))));
}

#[test]
fn a_denial_says_what_to_do() {
    let policy = Policy::parse(POLICY.as_bytes()).unwrap();
    let denied = policy.decide("pypi.org", 443).unwrap_err();
    assert_eq!(denied.to_string(), "`pypi.org` is not on the allow-list");
    assert!(denied.hint().contains("add `pypi.org` to `peers.allow`"), "{}", denied.hint());
    let denied = policy.decide(&"x".repeat(5000), 443).unwrap_err();
    assert!(denied.to_string().len() < 400);
}

proptest! {
    #[test]
    fn no_host_name_is_an_address(text in "[0-9a-fxX.:\\[\\]]{1,20}") {
        if let Ok(name) = HostName::parse(&text) {
            prop_assert!(name.as_str().parse::<IpAddr>().is_err());
        }
    }

    #[test]
    fn a_host_name_reads_as_itself(text in ".{0,80}") {
        if let Ok(name) = HostName::parse(&text) {
            prop_assert_eq!(HostName::parse(name.as_str()).unwrap(), name);
        }
    }

    #[test]
    fn a_network_holds_what_shares_its_leading_bits(net: u32, addr: u32, bits in 0_u8..=32) {
        let cidr: Cidr = format!("{}/{bits}", std::net::Ipv4Addr::from(net)).parse().unwrap();
        let same = (0..bits).all(|bit| (net ^ addr) & (1 << (31 - bit)) == 0);
        prop_assert_eq!(cidr.contains(std::net::Ipv4Addr::from(addr).into()), same);
        let mapped = std::net::Ipv4Addr::from(addr).to_ipv6_mapped();
        prop_assert_eq!(cidr.contains(mapped.into()), same);
    }
}
