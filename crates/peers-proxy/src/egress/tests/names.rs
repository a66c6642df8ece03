//! Resolving and connecting: rebinding, the cache, and the order of attempts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, advance, sleep};

use super::super::dial::{addresses, dial, race, taken_in_turns};
use super::super::host::HostName;
use super::super::{AllowEntry, Denied, Lookup, LookupFuture, Policy, Reason, Resolver};
use super::world::{Names, entry, policy};

fn listed(names: &Arc<Names>) -> Policy {
    let entry = AllowEntry {
        host: Some("a.example".to_owned()),
        private_ok: vec!["10.1.0.0/16".to_owned()],
        ..AllowEntry::default()
    };
    policy(vec![entry]).resolving_with(Resolver::new(names.clone()))
}

async fn ask(policy: &Policy) -> Result<Vec<IpAddr>, Denied> {
    let allowed = policy.decide("a.example", 443).unwrap();
    addresses(policy, &allowed).await
}

#[tokio::test]
async fn one_forbidden_answer_denies_the_request() {
    let table = [
        ("8.8.8.8 1.1.1.1", true),
        ("2606:4700::1111 8.8.8.8", true),
        ("10.1.2.3", true),
        ("8.8.8.8 10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("10.2.0.1", false),
        ("8.8.8.8 169.254.169.254", false),
        ("127.0.0.1 8.8.8.8", false),
        ("8.8.8.8 ::1", false),
        ("::ffff:127.0.0.1", false),
        ("64:ff9b::7f00:1", false),
        ("0.0.0.0", false),
    ];
    for (answer, allowed) in table {
        let names = Names::new(&[("a.example", &[answer])]);
        let result = ask(&listed(&names)).await;
        let reason = result.map_or_else(|denied| denied.reason(), |_addrs| Reason::Ok);
        assert_eq!(reason, if allowed { Reason::Ok } else { Reason::PrivateAddr }, "{answer}");
    }
}

#[tokio::test]
async fn an_ipv4_address_inside_an_ipv6_one_is_connected_to_as_ipv4() {
    let names = Names::new(&[("a.example", &["::ffff:8.8.8.8"])]);
    assert_eq!(ask(&listed(&names)).await.unwrap(), ["8.8.8.8".parse::<IpAddr>().unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_turns_private_is_denied_when_it_is_asked_for_again() {
    let names = Names::new(&[("a.example", &["8.8.8.8", "127.0.0.1"])]);
    let policy = listed(&names);
    let public: Vec<IpAddr> = vec!["8.8.8.8".parse().unwrap()];
    assert_eq!(ask(&policy).await.unwrap(), public);
    advance(Duration::from_secs(59)).await;
    assert_eq!(ask(&policy).await.unwrap(), public, "the answer that was checked is used again");
    assert_eq!(names.asked(), 1);
    advance(Duration::from_secs(2)).await;
    assert_eq!(ask(&policy).await.unwrap_err().reason(), Reason::PrivateAddr);
    assert_eq!(names.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_and_not_kept() {
    let names = Names::new(&[]);
    let policy = listed(&names);
    for _ in 0..2 {
        let denied = ask(&policy).await.unwrap_err();
        assert!(matches!(denied, Denied::Dns { .. }) && !denied.is_timeout());
    }
    assert_eq!(names.asked(), 2);
    let empty = listed(&Names::new(&[("a.example", &[""])]));
    assert_eq!(ask(&empty).await.unwrap_err().reason(), Reason::DnsFail);
}

#[tokio::test(start_paused = true)]
async fn a_name_service_without_an_answer_is_given_up_after_five_seconds() {
    #[derive(Debug)]
    struct Silent;
    impl Lookup for Silent {
        fn lookup<'a>(&'a self, _host: &'a HostName) -> LookupFuture<'a> {
            Box::pin(std::future::pending())
        }
    }
    let policy = policy(vec![entry("a.example", 443)]).resolving_with(Resolver::new(Arc::new(Silent)));
    let began = Instant::now();
    let denied = ask(&policy).await.unwrap_err();
    assert!(denied.is_timeout());
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_bounded() {
    let names = Names::new(&[("a.example", &["8.8.8.8"])]);
    let many: Vec<String> = (0..1024).map(|n| format!("n{n}.example")).collect();
    let one = &["8.8.8.8"][..];
    let all: Vec<(&str, &[&str])> = many.iter().map(|name| (name.as_str(), one)).collect();
    let resolver = Resolver::new(Names::new(&all));
    for name in &many {
        resolver.resolve(&HostName::parse(name).unwrap()).await.unwrap();
    }
    let policy = listed(&names);
    let full = resolver.clone();
    let late = HostName::parse("n0.example").unwrap();
    full.resolve(&late).await.unwrap();
    advance(Duration::from_secs(61)).await;
    assert_eq!(full.resolve(&late).await.unwrap().len(), 1, "old answers make room");
    assert_eq!(ask(&policy).await.unwrap().len(), 1);
}

#[tokio::test]
async fn dial_connects_to_the_address_that_was_checked() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let names = Names::new(&[("a.example", &["127.0.0.1"])]);
    let policy = policy(vec![entry("a.example", port)]).resolving_with(Resolver::new(names));
    let (stream, addr) = dial(&policy, "A.example.", port).await.unwrap();
    assert_eq!((stream.peer_addr().unwrap(), addr), (addr, listener.local_addr().unwrap()));
    drop(listener);
    let denied = dial(&policy, "a.example", port).await.unwrap_err();
    assert_eq!(denied.reason(), Reason::DialFail);
}

#[test]
fn the_families_take_turns() {
    let table = [
        ("::1 ::2 ::3 1.1.1.1 2.2.2.2", "::1 1.1.1.1 ::2 2.2.2.2 ::3"),
        ("1.1.1.1 2.2.2.2 ::1", "1.1.1.1 ::1 2.2.2.2"),
        ("1.1.1.1", "1.1.1.1"),
        ("", ""),
    ];
    for (addrs, expected) in table {
        let addrs: Vec<IpAddr> = addrs.split_whitespace().map(|addr| addr.parse().unwrap()).collect();
        let turns: Vec<String> = taken_in_turns(&addrs).iter().map(ToString::to_string).collect();
        assert_eq!(turns.join(" "), expected);
    }
}

/// Races attempts that end after so many milliseconds, well or not; gives who won, when, and when each began.
async fn raced(attempts: &[(u64, bool)]) -> (io::Result<u16>, u64, Vec<u64>) {
    let began = Instant::now();
    let starts = Mutex::new(Vec::new());
    let addrs = (0..attempts.len()).map(|at| SocketAddr::from(([127, 0, 0, 1], u16::try_from(at).unwrap())));
    let connect = |addr: SocketAddr| {
        starts.lock().unwrap().push(u64::try_from(began.elapsed().as_millis()).unwrap());
        let (ms, well) = attempts[usize::from(addr.port())];
        async move {
            sleep(Duration::from_millis(ms)).await;
            if well { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
        }
    };
    let won = race(addrs.collect(), connect).await.map(|((), addr)| addr.port());
    (won, u64::try_from(began.elapsed().as_millis()).unwrap(), starts.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn attempts_overlap_and_the_first_connection_wins() {
    let (won, ms, starts) = raced(&[(100, true), (1, true)]).await;
    assert_eq!((won.unwrap(), ms, starts), (0, 100, vec![0]), "no second attempt without need");

    let (won, ms, starts) = raced(&[(20_000, true), (40, true), (1, true)]).await;
    assert_eq!((won.unwrap(), ms, starts), (1, 290, vec![0, 250]));

    let (won, ms, starts) = raced(&[(10, false), (20, false), (30, true)]).await;
    assert_eq!((won.unwrap(), ms, starts), (2, 60, vec![0, 10, 30]), "a failure starts the next at once");

    let (won, ms, _) = raced(&[(300, true), (400, true)]).await;
    assert_eq!((won.unwrap(), ms), (0, 300), "the first goes on");
}

#[tokio::test(start_paused = true)]
async fn attempts_end_with_the_last_failure_or_after_ten_seconds() {
    let (won, ms, _) = raced(&[(10, false), (20, false)]).await;
    assert_eq!((won.unwrap_err().kind(), ms), (io::ErrorKind::ConnectionRefused, 30));
    let (won, ms, _) = raced(&[(60_000, true), (60_000, true)]).await;
    assert_eq!((won.unwrap_err().kind(), ms), (io::ErrorKind::TimedOut, 10_000));
    let (won, ms, _) = raced(&[]).await;
    assert_eq!((won.unwrap_err().kind(), ms), (io::ErrorKind::AddrNotAvailable, 0));
}
