//! Tests of `bugs`.

use std::collections::BTreeSet;

use peers_model::bug::Severity;
use peers_model::{BugId, CommitId, PeerName, Timestamp};
use proptest::prelude::*;

use super::*;

/// A history under construction. Defaults: each commit changes `src/a.rs` and is made by a peer.
#[derive(Default)]
struct Log {
    commits: Vec<LedgerCommit>,
    acks: BTreeSet<BugId>,
}

fn author(name: &str) -> Author {
    match name {
        "operator" => Author::Operator,
        "substrate" => Author::Substrate,
        "foreign" => Author::Foreign,
        "?" => Author::Unattributed,
        peer => Author::Peer(PeerName::new(peer).unwrap()),
    }
}

impl Log {
    fn commit(mut self, by: &str, message: &str) -> Self {
        let n = self.commits.len() + 1;
        self.commits.push(LedgerCommit {
            id: CommitId::new(format!("{n:08x}{}", "0".repeat(32))).unwrap(),
            author: author(by),
            time: Timestamp::from_millis(i64::try_from(n).unwrap() * 1000),
            message: message.to_owned(),
            paths: vec![PathTouched::of("src/a.rs")],
            voided: false,
        });
        self
    }

    fn report(self, by: &str, id: &str, severity: &str) -> Self {
        let json = format!("{{\"id\":\"{id}\",\"severity\":\"{severity}\",\"title\":\"{severity} one\"}}");
        self.commit(by, &format!("s\n\n## Bug-Report\n{json}\n\nBug-Report: {id}\nPeer: x\n"))
    }

    fn malformed(self, by: &str, id: &str) -> Self {
        self.commit(by, &format!("s\n\n## Bug-Report\n{{\"id\": \"{id}\", oops\n\nBug-Report: {id}\n"))
    }

    fn resolve(self, by: &str, id: &str, status: &str) -> Self {
        let (status, of) = status
            .split_once(' ')
            .map_or((status, String::new()), |(s, of)| (s, format!(",\"of\":\"{of}\"")));
        let json = format!("{{\"resolves\":\"{id}\",\"status\":\"{status}\"{of}}}");
        self.commit(by, &format!("s\n\n## Bug-Resolution\n{json}\n\nBug-Resolves: {id}\n"))
    }

    fn defer(self, by: &str, id: &str, reason: &str) -> Self {
        let json = format!("{{\"defers\":\"{id}\",\"reason\":\"{reason}\"}}");
        self.commit(by, &format!("s\n\n## Bug-Defer\n{json}\n\nBug-Defer: {id}\n"))
    }

    fn say(self, by: &str, trailer: &str) -> Self {
        self.commit(by, &format!("s\n\n{trailer}\n"))
    }

    fn touching(mut self, paths: &[&str]) -> Self {
        self.commits.last_mut().unwrap().paths = paths.iter().map(|p| PathTouched::of(*p)).collect();
        self
    }

    fn voided(mut self) -> Self {
        self.commits.last_mut().unwrap().voided = true;
        self
    }

    fn ack(mut self, id: &str) -> Self {
        self.acks.insert(BugId::new(id).unwrap());
        self
    }

    fn ledger(&self) -> Ledger {
        Ledger::read(&self.commits, &self.acks)
    }

    /// The only bug.
    fn bug(&self) -> Bug {
        let mut ledger = self.ledger();
        assert_eq!(ledger.bugs.len(), 1, "{:?}", ledger.bugs.keys());
        ledger.bugs.pop_first().unwrap().1
    }

    fn open(&self) -> Option<OpenReason> {
        self.bug().open
    }

    fn tdd(&self) -> Vec<TddDefect> {
        self.ledger().gate_tdd().into_iter().map(|(_, defect)| defect).collect()
    }
}

fn log() -> Log {
    Log::default()
}

const LONG: &str = "the vendor ships the repair next month, tracked there";

fn ids(text: &str) -> Vec<BugId> {
    text.split(' ').map(|t| BugId::new(t).unwrap()).collect()
}

#[test]
fn row_9_the_gate_by_severity_and_status() {
    let gate = |log: Log| log.ledger().gate(Severity::Med);
    assert_eq!(gate(log().report("a", "B", "med")), LedgerVerdict::Fail(ids("B")));
    assert_eq!(gate(log().report("a", "B", "low")), LedgerVerdict::Pass);
    assert_eq!(gate(log().report("a", "B", "med").resolve("a", "B", "fixed")), LedgerVerdict::Pass);
    assert_eq!(gate(log().report("a", "B", "med").defer("a", "B", LONG)), LedgerVerdict::Pass);
    assert_eq!(
        gate(log().report("a", "B", "med").resolve("a", "B", "wontfix")),
        LedgerVerdict::Fail(ids("B"))
    );
    assert_eq!(gate(log()), LedgerVerdict::Pass);
    assert_eq!(log().report("a", "B", "low").ledger().gate(Severity::Low), LedgerVerdict::Fail(ids("B")));
}

#[test]
fn row_10_filing_again_never_lowers_alone() {
    let log = log().report("a", "B", "high").report("a", "B", "low");
    let bug = log.bug();
    assert_eq!(
        (bug.severity, bug.title.as_str()),
        (Severity::High, "low one"),
        "the newest text, the highest severity"
    );
    assert_eq!(log.ledger().blocking_open().len(), 1);
    assert_eq!(log.report("b", "B", "crit").bug().severity, Severity::Crit);
}

#[test]
fn row_11_a_resolution_older_than_the_newest_report_is_ignored() {
    let log = log().report("a", "B", "med").resolve("b", "B", "fixed").report("a", "B", "med");
    assert_eq!(log.open(), Some(OpenReason::Unresolved));
    assert!(log.ledger().warnings.iter().any(|w| w.contains("open again")));
    assert_eq!(log.resolve("b", "B", "fixed").open(), None);
}

#[test]
fn a_malformed_report_stays_open_until_it_is_filed_again() {
    let log = log().malformed("a", "B");
    let bug = log.bug();
    assert_eq!(
        (bug.severity, bug.status, bug.open),
        (Severity::Med, BugStatus::Malformed, Some(OpenReason::Malformed))
    );
    let log = log.resolve("b", "B", "fixed");
    assert_eq!(log.open(), Some(OpenReason::Malformed), "it cannot be closed");
    let log = log.report("a", "B", "low");
    assert_eq!((log.bug().severity, log.open()), (Severity::Low, Some(OpenReason::Unresolved)));
    assert_eq!(log.resolve("b", "B", "fixed").open(), None);
}

#[test]
fn a_report_without_a_usable_id_blocks_under_a_name_of_ours() {
    let log = log().commit("a", "s\n\n## Bug-Report\n{}\n\nBug-Report: my bug\nBug-Report: other bug\n");
    let ledger = log.ledger();
    let names: Vec<&str> = ledger.bugs.keys().map(BugId::as_str).collect();
    assert_eq!(names, ["malformed:00000001", "malformed:00000001.2"]);
    assert_eq!(ledger.blocking_open().len(), 2);
    let log = log.report("a", "malformed:00000001", "info").report("a", "malformed:00000001.2", "info");
    assert!(log.ledger().blocking_open().is_empty());
}

#[test]
fn a_fix_must_change_a_file_outside_the_control_directory() {
    for paths in [&[][..], &[".peers/x"][..]] {
        let log = log().report("a", "B", "med").resolve("b", "B", "fixed").touching(paths);
        assert_eq!(log.open(), Some(OpenReason::Unresolved), "{paths:?}");
        assert_eq!(log.ledger().warnings.len(), 1);
    }
}

#[test]
fn crit_and_high_need_another_pair_of_eyes() {
    for severity in ["crit", "high"] {
        let log = log().report("a", "B", severity).resolve("b", "B", "fixed");
        assert_eq!(log.open(), Some(OpenReason::AwaitsVerification));
        let log = log.say("b", "Bug-Verified: B");
        assert_eq!(log.open(), Some(OpenReason::AwaitsVerification), "not the fixer's own");
        assert_eq!(log.ledger().gate(Severity::Med), LedgerVerdict::Fail(ids("B")));
        assert_eq!(log.say("a", "Bug-Verified: B").open(), None);
    }
}

#[test]
fn a_verification_counts_only_after_the_fix() {
    let log = log().report("a", "B", "crit").say("a", "Bug-Verified: B").resolve("b", "B", "fixed");
    assert_eq!(log.open(), Some(OpenReason::AwaitsVerification));
    let log = log.say("a", "Bug-Verified: B").resolve("b", "B", "fixed");
    assert_eq!(log.open(), Some(OpenReason::AwaitsVerification), "a newer fix has not been verified");
}

#[test]
fn the_operator_may_verify_and_strangers_may_not() {
    let log = || log().report("a", "B", "crit").resolve("b", "B", "fixed");
    assert_eq!(log().say("operator", "Bug-Verified: B").open(), None);
    for stranger in ["foreign", "substrate"] {
        let ledger = log().say(stranger, "Bug-Verified: B").ledger();
        assert_eq!(ledger.gate(Severity::Med), LedgerVerdict::Fail(ids("B")), "{stranger}");
    }
}

#[test]
fn without_attribution_what_hangs_on_it_is_unjudged() {
    let log = log().report("?", "B", "crit").resolve("?", "B", "fixed");
    assert_eq!(log.ledger().gate(Severity::Med), LedgerVerdict::Fail(ids("B")));
    let log = log.say("?", "Bug-Verified: B");
    assert_eq!(log.ledger().gate(Severity::Med), LedgerVerdict::Unjudged(ids("B")));
    let log = log.report("?", "C", "med");
    assert_eq!(log.ledger().gate(Severity::Med), LedgerVerdict::Fail(ids("C")), "a certain red wins");
}

#[test]
fn an_unknown_fixer_might_be_the_verifier() {
    let log = log().report("a", "B", "crit").resolve("?", "B", "fixed").say("a", "Bug-Verified: B");
    assert_eq!(log.open(), Some(OpenReason::AwaitsVerification));
    assert_eq!(log.ledger().gate(Severity::Med), LedgerVerdict::Unjudged(ids("B")));
}

#[test]
fn deferral_by_severity() {
    let log = |severity| log().report("a", "B", severity).defer("a", "B", LONG);
    assert_eq!(log("crit").ack("B").open(), Some(OpenReason::CritDeferred));
    assert_eq!(log("high").open(), Some(OpenReason::AwaitsOperator));
    assert_eq!(log("high").ack("B").open(), None);
    assert_eq!(log("med").open(), None);
    assert_eq!(log("med").bug().status, BugStatus::Deferred);
}

#[test]
fn a_deferral_needs_a_reason_of_forty_characters() {
    for reason in ["", "later", &"x ".repeat(19)] {
        let log = log().report("a", "B", "med").defer("a", "B", reason);
        assert_eq!(log.open(), Some(OpenReason::Unresolved), "{reason}");
    }
    let exact = "x".repeat(40);
    assert_eq!(log().report("a", "B", "med").defer("a", "B", &exact).open(), None);
}

#[test]
fn other_resolutions_close_with_another_peers_ack() {
    for status in ["wontfix", "invalid"] {
        let log = log().report("a", "B", "high").resolve("b", "B", status);
        assert_eq!(log.open(), Some(OpenReason::AwaitsAck), "{status}");
        assert_eq!(log.say("a", "Bug-Ack: B").open(), None);
    }
    let own = log().report("a", "B", "high").resolve("b", "B", "wontfix").say("b", "Bug-Ack: B");
    assert_eq!(own.open(), Some(OpenReason::AwaitsAck));
}

#[test]
fn the_only_reporter_may_take_his_report_back() {
    let log = log().report("a", "B", "high").resolve("a", "B", "invalid").say("a", "Bug-Ack: B");
    assert_eq!(log.open(), None);
    let usurped = self::log().report("a", "B", "high").report("b", "B", "high").resolve("b", "B", "invalid");
    assert_eq!(usurped.say("b", "Bug-Ack: B").open(), Some(OpenReason::AwaitsAck), "others reported it too");
}

#[test]
fn a_duplicate_needs_an_original_that_is_open_or_fixed() {
    let log = |of: &str| {
        log().report("a", "A", "med").report("a", "B", "med").resolve("b", "B", of).say("a", "Bug-Ack: B")
    };
    let open = |log: Log| log.ledger().bugs[&ids("B")[0]].open.clone();
    assert_eq!(open(log("duplicate A")), None);
    assert_eq!(open(log("duplicate A").resolve("b", "A", "fixed")), None);
    assert_eq!(open(log("duplicate A").resolve("b", "A", "wontfix")), Some(OpenReason::NoOriginal));
    for of in ["duplicate", "duplicate B", "duplicate Z", "duplicate not an id"] {
        assert_eq!(open(log(of)), Some(OpenReason::NoOriginal), "{of}");
    }
    let circle = log("duplicate A").resolve("b", "A", "duplicate B").say("a", "Bug-Ack: A");
    assert_eq!(circle.ledger().blocking_open().len(), 2, "two duplicates of each other close nothing");
}

#[test]
fn a_crit_cannot_hide_behind_a_lesser_bug() {
    let log = log().report("a", "A", "low").report("a", "B", "crit").resolve("b", "B", "duplicate A");
    let ledger = log.say("a", "Bug-Ack: B").ledger();
    assert_eq!(ledger.bugs[&ids("B")[0]].open, Some(OpenReason::LesserOriginal));
}

#[test]
fn a_reopened_bug_is_open() {
    let log = log().report("a", "B", "med").resolve("b", "B", "fixed").say("a", "Bug-Reopen: B");
    assert_eq!(log.open(), Some(OpenReason::Unresolved));
    let verified =
        self::log().report("a", "B", "high").resolve("b", "B", "fixed").say("a", "Bug-Verified: B");
    let again = verified.say("a", "Bug-Reopen: B").resolve("b", "B", "fixed");
    assert_eq!(again.open(), Some(OpenReason::AwaitsVerification));
}

#[test]
fn the_substrate_claims_nothing() {
    let log = log().report("substrate", "B", "crit");
    assert!(log.ledger().bugs.is_empty());
    let log = log.report("a", "C", "med").resolve("substrate", "C", "fixed");
    assert_eq!(log.open(), Some(OpenReason::Unresolved));
}

#[test]
fn a_reverted_turn_opens_but_does_not_close() {
    let log = log().report("a", "B", "med").resolve("b", "B", "fixed").voided();
    assert_eq!(log.open(), Some(OpenReason::Unresolved));
    assert_eq!(log.report("b", "C", "crit").voided().ledger().bugs.len(), 2);
}

#[test]
fn row_13_tdd_by_order_and_content() {
    let fixed = |log: Log| log.resolve("b", "B", "fixed");
    let reported = || log().report("a", "B", "med");
    let reproduce = |log: Log, paths: &[&str]| log.say("a", "Bug-Reproduce: B").touching(paths);
    assert_eq!(fixed(reproduce(reported(), &["tests/b.rs"])).tdd(), []);
    assert_eq!(reproduce(fixed(reported()), &["tests/b.rs"]).tdd(), [TddDefect::AfterTheFix]);
    assert_eq!(fixed(reproduce(reported(), &[])).tdd(), [TddDefect::TouchesNoTest]);
    assert_eq!(
        fixed(reproduce(reported(), &["tests/README.md", "docs/a.md"])).tdd(),
        [TddDefect::TouchesNoTest]
    );
    assert_eq!(fixed(reported()).tdd(), [TddDefect::NoReproducer]);
    let legacy =
        log().report("a", "BUG-7", "med").commit("a", "TDD: reproducer for BUG-7").touching(&["a_test.go"]);
    assert_eq!(legacy.resolve("b", "BUG-7", "fixed").tdd(), []);
}

#[test]
fn row_14_a_waiver_counts_only_after_the_fix() {
    let waive = |log: Log, reason: &str| {
        log.commit(
            "b",
            &format!("s\n\n{{\"id\":\"B\",\"reason\":\"{reason}\"}}\n\nBug-Reproduce-Waive: B\nPeer: b\n"),
        )
    };
    let fixed = |log: Log| log.resolve("b", "B", "fixed");
    let reported = || log().report("a", "B", "med");
    assert_eq!(waive(fixed(reported()), LONG).tdd(), []);
    assert_eq!(waive(fixed(reported()), "10 letters").tdd(), [TddDefect::NoReproducer]);
    assert_eq!(fixed(waive(reported(), LONG)).tdd(), [TddDefect::WaivedBeforeTheFix]);
    let late = fixed(reported()).say("a", "Bug-Reproduce: B").touching(&["tests/b.rs"]);
    assert_eq!(waive(late, LONG).tdd(), [TddDefect::AfterTheFix], "no waiver beside a reproducer");
}

#[test]
fn row_55_blocking_reports_of_a_range() {
    let what = |log: Log| blocking_reports_in(&log.commits).into_iter().map(|r| r.what).collect::<Vec<_>>();
    assert!(what(log().report("a", "B", "info").report("a", "C", "low")).is_empty());
    assert_eq!(what(log().report("a", "B", "med")), ["B (med)"]);
    assert_eq!(what(log().say("a", "Bug-Report: Weak-Fix: B")), ["the fix of B is flagged"]);
    assert_eq!(what(log().malformed("a", "B")).len(), 1, "what cannot be read blocks");
    assert!(what(log().report("substrate", "B", "crit")).is_empty());
    assert!(blocking_reports(["x", "s\n\nBug-Report: shallow-fix:B"]));
    assert!(!blocking_reports(["x", "s\n\nBug-Ack: B"]));
}

#[test]
fn blocking_bugs_are_listed_worst_first() {
    let log = log()
        .report("a", "A", "med")
        .report("a", "Z", "crit")
        .report("a", "B", "med")
        .report("a", "L", "low");
    let ledger = log.ledger();
    let order: Vec<&str> = ledger.blocking_open().iter().map(|b| b.id.as_str()).collect();
    assert_eq!(order, ["Z", "A", "B"]);
}

#[test]
fn the_text_form_says_what_is_open() {
    let json = "{\"id\":\"B1\",\"severity\":\"high\",\"title\":\"a\\u001b[31m \\u202eb\",\"location\":\"src/x.rs:3\",\"fix_by\":\"b\"}";
    let log = log()
        .commit("a", &format!("s\n\n## Bug-Report\n{json}\n\nBug-Report: B1\n"))
        .report("a", "B2", "low")
        .report("a", "B3", "med")
        .resolve("b", "B3", "fixed");
    assert_eq!(
        log.ledger().summary().to_string(),
        "bug-hunt: 1 blocking open (crit=0 high=1 med=0 low=1 info=0); 3 total reported, 1 fixed, 0 deferred, 0 have reproduce-tests\n  \
         high  B1  00000001  b  src/x.rs:3  a [31m b (unresolved)\n"
    );
}

#[test]
fn the_json_form_has_sorted_keys_throughout() {
    let log = log().report("a", "B", "high").resolve("b", "B", "fixed").say("a", "Bug-Verified: B");
    let text = log.ledger().summary().to_json().unwrap();
    let mut levels: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        levels.truncate(depth + 1);
        levels.resize(depth + 1, Vec::new());
        if let Some((key, _)) = line.trim_start().strip_prefix('"').and_then(|l| l.split_once("\":")) {
            let level = levels.last_mut().unwrap();
            assert!(level.last().is_none_or(|last| last.as_str() < key), "{key} after {level:?}");
            level.push(key.to_owned());
        }
    }
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema_version"], 1);
    assert_eq!(value["open_blocking"], 0);
    let report = &value["reports"][0];
    assert_eq!(report["status"], "fixed");
    assert_eq!(report["open"], false);
    assert_eq!(report["resolved_by"], "b");
    assert_eq!(report["verified_by"][0], "a");
    assert_eq!(report["history"][2]["what"], "verified");
    assert_eq!(report["history"][2]["ts"], "1970-01-01T00:00:03.000Z");
}

fn any_claim() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("s\n\n## Bug-Report\n{\"id\":\"B\",\"severity\":\"crit\"}\n\nBug-Report: B\n"),
        Just("s\n\n## Bug-Report\n{\"id\":\"B\",\"severity\":\"low\"}\n\nBug-Report: B\n"),
        Just("s\n\nBug-Report: B\n"),
        Just("s\n\n## Bug-Resolution\n{\"id\":\"B\",\"status\":\"fixed\"}\n\nBug-Resolves: B\n"),
        Just("s\n\n## Bug-Resolution\n{\"id\":\"B\",\"status\":\"invalid\"}\n\nBug-Resolves: B\n"),
        Just(
            "s\n\n## Bug-Resolution\n{\"id\":\"B\",\"status\":\"duplicate\",\"of\":\"A\"}\n\nBug-Resolves: B\n"
        ),
        Just("s\n\n## Bug-Report\n{\"id\":\"A\",\"severity\":\"crit\"}\n\nBug-Report: A\n"),
        Just("s\n\nBug-Ack: B\nBug-Ack: A\n"),
        Just("s\n\nBug-Verified: B\n"),
        Just("s\n\nBug-Reopen: B\n"),
    ]
}

proptest! {
    /// One peer alone, whatever it writes, never closes a crit that another one filed.
    #[test]
    fn nobody_closes_anothers_crit_alone(claims in proptest::collection::vec(any_claim(), 0..25)) {
        let mut log = log().report("a", "B", "crit");
        for claim in claims {
            log = log.commit("b", claim);
        }
        let ledger = log.ledger();
        prop_assert!(ledger.bugs[&ids("B")[0]].open.is_some());
        prop_assert!(matches!(ledger.gate(Severity::Med), LedgerVerdict::Fail(_)));
    }

    #[test]
    fn any_messages_give_a_ledger(messages in proptest::collection::vec("(?s).{0,80}", 0..8)) {
        let mut log = log();
        for message in &messages {
            log = log.commit("a", &format!("{message}\n\nBug-Report: {message}"));
        }
        let ledger = log.ledger();
        prop_assert!(ledger.summary().to_json().is_ok());
        prop_assert_eq!(ledger.summary().total, ledger.bugs.len());
    }
}

#[test]
fn who_brings_in_a_fix_that_nobody_made_in_a_turn_cannot_speak_for_it() {
    let fixed = |by: &str, word: &str| {
        let message = format!("s\n\n{word}: B1\n");
        Log::default().report("ben", "B1", "crit").resolve(by, "B1", "fixed").commit("ann", &message)
    };
    assert_eq!(fixed("foreign", "Bug-Verified").open(), Some(OpenReason::AwaitsVerification));
    assert_eq!(fixed("?", "Bug-Verified").open(), Some(OpenReason::AwaitsVerification));
    assert_eq!(fixed("ben", "Bug-Verified").open(), None);
    let invalid = |by: &str| {
        let log = Log::default().report("ben", "B1", "crit").resolve(by, "B1", "invalid");
        log.commit("ann", "s\n\nBug-Ack: B1\n").open()
    };
    assert_eq!((invalid("foreign"), invalid("cal")), (Some(OpenReason::AwaitsAck), None));
}
