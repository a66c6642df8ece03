//! The log: its lines, and those that are left out.

use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use peers_model::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::super::log::Log;
use super::super::{LogLine, Reason, Suppressed, Verdict};
use super::world::run_id;

fn line(conn: u64, reason: Reason) -> LogLine {
    LogLine {
        ts: Timestamp::from_millis(0),
        run: run_id(),
        conn,
        peer: None,
        verdict: reason.verdict(),
        reason,
        host: Some("a.example".to_owned()),
        port: Some(443),
        addr: Some("8.8.8.8".parse().unwrap()),
        sni: None,
        up: 1,
        down: 2,
        ms: 3,
    }
}

#[test]
fn a_line_has_these_fields_in_this_order() {
    let text = serde_json::to_string(&line(7, Reason::NotListed)).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"ts":"1970-01-01T00:00:00.000Z","run":"0123456789abcdef","conn":7,"peer":null,"verdict":"deny","#,
            r#""reason":"not-listed","host":"a.example","port":443,"addr":"8.8.8.8","sni":null,"up":1,"down":2,"ms":3}"#
        )
    );
    assert_eq!(serde_json::from_str::<LogLine>(&text).unwrap(), line(7, Reason::NotListed));
}

#[test]
fn the_reasons_are_these_words() {
    use Reason::{
        DialFail, DnsFail, IpLiteral, Limit, Malformed, Method, NotListed, Ok, Port, PrivateAddr, Quota,
        SniMismatch, SniMissing, Timeout,
    };
    let all = [
        Ok,
        NotListed,
        Port,
        IpLiteral,
        PrivateAddr,
        DnsFail,
        DialFail,
        SniMismatch,
        SniMissing,
        Quota,
        Limit,
        Malformed,
        Method,
        Timeout,
    ];
    let words: Vec<String> =
        all.iter().map(|reason| serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned()).collect();
    assert_eq!(
        words.join(" "),
        "ok not-listed port ip-literal private-addr dns-fail dial-fail sni-mismatch sni-missing quota limit malformed \
         method timeout"
    );
    let of = |verdict| all.iter().filter(|reason| reason.verdict() == verdict).count();
    assert_eq!([of(Verdict::Allow), of(Verdict::Deny), of(Verdict::Error)], [1, 10, 3]);
}

#[test]
fn fifty_denials_in_a_second_are_written_and_the_others_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    let mut log = Log::open(&path, run_id()).unwrap();
    let began = Instant::now();
    let at = |ms| began + Duration::from_millis(ms);
    for conn in 0..120 {
        log.write(&line(conn, Reason::NotListed), at(conn));
    }
    log.write(&line(120, Reason::Ok), at(500));
    log.write(&line(121, Reason::NotListed), at(1100));
    for conn in 122..174 {
        log.write(&line(conn, Reason::DnsFail), at(1200));
    }
    log.flush(Timestamp::from_millis(0));
    log.flush(Timestamp::from_millis(0));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let suppressed: Vec<(usize, u64)> = (0..)
        .zip(text.lines())
        .filter_map(|(at, line)| Some((at, serde_json::from_str::<Suppressed>(line).ok()?.suppressed)))
        .collect();
    assert_eq!(suppressed, [(51, 70), (102, 3)]);
    assert_eq!(lines[50]["conn"], 120, "what is allowed is always written");
    assert_eq!(lines[52]["conn"], 121);
    assert_eq!(lines.len(), 103);
}

#[test]
fn a_long_log_is_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.log");
    // A file with a hole: no such bytes are written.
    let file = std::fs::File::create(&path).unwrap();
    file.write_all_at(b"\n", 64 * 1024 * 1024 - 1).unwrap();
    std::fs::write(dir.path().join("egress.log.1"), "older").unwrap();
    let mut log = Log::open(&path, run_id()).unwrap();
    log.write(&line(1, Reason::Ok), Instant::now());
    assert_eq!(std::fs::metadata(dir.path().join("egress.log.1")).unwrap().len(), 64 * 1024 * 1024);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}
