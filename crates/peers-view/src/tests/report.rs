//! `peers report`.

use std::collections::BTreeSet;

use peers_core::bugs::{Author, Ledger, LedgerCommit, PathTouched};
use peers_model::outcome::StopReason;
use peers_model::record::{
    AcceptedReview, AckTarget, CorrectionKind, CorrectionPlanned, Digests, ExitProof, ExitRecord,
    MirrorRestored, OperatorOp, OperatorRecord, Record, TickOutcome,
};
use peers_model::verdict::Verdict;
use peers_model::{RunId, TickNo, Timestamp};
use serde_json::Value;

use super::{World, commit, is_harmless, judged, name, red, rules, squeezed, tree};
use crate::{GitFacts, Lock, Paths, Report, Sourced, report_json, report_markdown};

fn report(world: &World) -> Report {
    Report::read(&mut world.disk(), &world.asked(Lock::Free))
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no `{start}` in {text}"))
}

#[test]
fn the_outcome_comes_first() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let exit = ExitRecord {
        reason: StopReason::Complete,
        detail: String::new(),
        ticks_in_run: 1,
        signal: None,
        head: Some(commit('b')),
        proof: Some(ExitProof { tree: tree('1'), exempt: vec![super::goal("tests-pass")] }),
        in_gates: false,
    };
    world.append(Record::Exit(Box::new(exit)));
    let text = squeezed(&report_markdown(&report(&world)));
    assert!(text.starts_with("# peers report\n\n**Complete**: `stopped 2023-11-14T22:13:24.000Z, complete (exit 0)`\n\nSandbox: **unconfined: peers run without a sandbox**\n"), "{text}");
    assert!(text.contains("Every gate passed in a clean checkout of tree `111111111111`, but for these, which were judged in the work tree only: tests-pass\n"), "{text}");
}

#[test]
fn a_stop_that_wants_somebody_says_so_with_the_next_step() {
    let mut world = World::running();
    world.exit(StopReason::GoalMutation("goals.yaml".into()), "goals.yaml changed");
    let text = squeezed(&report_markdown(&report(&world)));
    assert!(
        text.contains(
            "**Stopped: look before you do anything else**: `stopped 2023-11-14T22:13:22.000Z, goal-mutation:goals.yaml"
        ),
        "{text}"
    );
    assert!(text.contains("\nNext step: `peers run` goes on\n"), "{text}");
    let json: Value = serde_json::from_str(&report_json(&report(&world))).unwrap();
    assert_eq!(json["schema"], "peers.report/1");
    assert_eq!(json["outcome"]["attention"]["level"], "act");
    assert_eq!(json["outcome"]["attention"]["code"], "goal-mutation");
    assert_eq!(json["outcome"]["kind"], "integrity");
}

#[test]
fn gates_have_their_first_red_and_last_green() {
    let mut world = World::running();
    world.gates(0, vec![judged("tests-pass", 'a', Verdict::Pass)]);
    world.tick(1, "claude", |_| {});
    world.gates(1, vec![judged("tests-pass", 'b', red("3 | failed"))]);
    world.tick(2, "codex", |_| {});
    world.gates(2, vec![judged("tests-pass", 'b', red("2 failed"))]);
    let report = report(&world);
    let history = &report.history.value().unwrap().gates[&super::goal("tests-pass")];
    assert_eq!(history.first_red.unwrap().tick, TickNo(1));
    assert_eq!(history.last_red.unwrap().tick, TickNo(2));
    assert_eq!(history.last_green.unwrap().tick, TickNo(0));
    let text = squeezed(&report_markdown(&report));
    assert_eq!(
        line(&text, "| tests-pass"),
        "| tests-pass | fail | `bbbbbbbb` | tick 1 | tick 0 | 1/2/0 | 150ms | `2 failed` |"
    );
    assert_eq!(line(&text, "| lint-clean"), "| lint-clean | unknown | | never | never | 0/0/0 | 0s | |");
}

#[test]
fn the_timeline_has_the_last_fifty_ticks() {
    let mut world = World::running();
    for tick in 1..=60 {
        world.tick(tick, "claude", |_| {});
    }
    let report = report(&world);
    let history = report.history.value().unwrap();
    assert_eq!((history.ticks, history.timeline.len()), (60, 50));
    assert_eq!(history.timeline.front().unwrap().tick, TickNo(11));
    let text = squeezed(&report_markdown(&report));
    assert!(text.contains("60 ticks in 1 run; the last 50, newest first."), "{text}");
    assert!(
        line(&text, "| 60 |")
            .contains("| claude | handoff | 1 commit, `bbbbbbbb` | 3m | 1,500 tokens, $0.50 |")
    );
}

#[test]
fn what_was_undone_is_listed_with_its_salvage_ref() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    world.append(Record::CorrectionPlanned(CorrectionPlanned {
        tick: TickNo(1),
        kind: CorrectionKind::Revert,
        from: commit('b'),
        to: commit('a'),
        branch: Some("main".into()),
        reason: "a test-only turn after a warning".into(),
    }));
    world.end_tick(1, "claude", |tick| {
        tick.outcome = TickOutcome::Corrected;
        tick.success = false;
        tick.corrected = Some(CorrectionKind::Revert);
        tick.salvage = Some("refs/peers/salvage/00000000000000aa/1-claude".into());
    });
    world.append(Record::MirrorRestored(MirrorRestored {
        tick: Some(TickNo(1)),
        what: "had other content".into(),
    }));
    let text = squeezed(&report_markdown(&report(&world)));
    assert!(text.contains("| 1 | claude | reverted | `bbbbbbbb` | `aaaaaaaa` | `refs/peers/salvage/00000000000000aa/1-claude` | `a test-only turn after a warning` |"), "{text}");
    assert!(text.contains("- the mirror of the journal, 1 time\n"), "{text}");
    assert!(line(&text, "| claude |").contains("| 0 of 1 | 3m | 3m |"), "wasted: {text}");
}

#[test]
fn runs_that_never_ended_are_listed_among_the_ends() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.run = RunId::new("00000000000000bb").unwrap();
    world.start(rules());
    world.exit(StopReason::Drained, "");
    let report = report(&world);
    let exits = &report.history.value().unwrap().exits;
    assert_eq!(exits.len(), 2);
    assert_eq!((exits[0].reason.as_ref(), exits[0].ticks_in_run), (None, 1));
    let text = squeezed(&report_markdown(&report));
    assert!(text.contains("| 00000000000000aa | killed or lost | 1 tick | `it never ended` |"), "{text}");
    assert!(text.contains("| 00000000000000bb | `drained` | 1 tick | |"), "{text}");
}

#[test]
fn what_the_operator_did_is_listed() {
    let mut world = World::running();
    let op =
        OperatorOp::Ack { target: AckTarget::Weakening(TickNo(3)), reason: "the limit was wrong".into() };
    world.append(Record::Operator(OperatorRecord { op, by: "ann".into() }));
    let text = report_markdown(&report(&world));
    assert!(text.contains("`ann`: `acknowledged the weakening of tick 3: the limit was wrong`\n"), "{text}");
}

fn ledger_commit(id: char, author: &str, message: &str, paths: &[&str]) -> LedgerCommit {
    LedgerCommit {
        id: commit(id),
        author: Author::Peer(name(author)),
        time: Timestamp::from_millis(0),
        message: message.to_owned(),
        paths: paths.iter().map(|path| PathTouched::of(*path)).collect(),
        voided: false,
    }
}

#[test]
fn bugs_go_from_found_to_fixed_with_their_commits() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let report_of = |id: &str, severity: &str| {
        format!(
            "r\n\n## Bug-Report\n{{\"id\":\"{id}\",\"severity\":\"{severity}\",\"title\":\"t {id}\"}}\n\nBug-Report: {id}\n"
        )
    };
    let fix = "f\n\n## Bug-Resolution\n{\"resolves\":\"B1\",\"status\":\"fixed\",\"note\":\"n\"}\n\nBug-Resolves: B1\n";
    let commits = [
        ledger_commit('c', "claude", &report_of("B1", "med"), &[]),
        ledger_commit('d', "codex", fix, &["src/a.rs"]),
        ledger_commit('e', "codex", &report_of("B2", "high"), &[]),
    ];
    let mut asked = world.asked(Lock::Free);
    asked.git = Sourced::Fresh(GitFacts {
        head: commit('b'),
        branch: Some("main".into()),
        head_tree: None,
        worktree: None,
        dirty: None,
        excluded: Paths::default(),
        bugs: Sourced::Fresh(Ledger::read(&commits, &BTreeSet::new())),
        scopes: std::collections::BTreeMap::new(),
    });
    let report = Report::read(&mut world.disk(), &asked);
    let text = squeezed(&report_markdown(&report));
    assert!(text.contains("2 reported, 1 open, 1 of them blocking."), "{text}");
    assert_eq!(
        line(&text, "| B1"),
        "| B1 | med | `cccccccc` by claude | fixed `dddddddd` by codex | closed | `t B1` |"
    );
    assert_eq!(line(&text, "| B2"), "| B2 | high | `eeeeeeee` by codex | open | open: unresolved | `t B2` |");
    let status = crate::status_text(&report.view, crate::Colour::Plain);
    assert!(
        status.contains(
            "bugs:      1 open, 1 of them blocking; 2 reported\n  high  B2  -  t B2 (unresolved)\n"
        ),
        "{status}"
    );
}

#[test]
fn reviews_are_listed_with_their_notes_and_those_who_object_come_first() {
    let mut world = World::running();
    for (tick, peer, pass, sha) in [
        (1, "claude", true, 'c'),
        (2, "codex", false, 'd'),
        (3, "claude", true, 'e'),
        (4, "codex", true, 'f'),
    ] {
        world.tick(tick, peer, |tick| {
            let notes = format!("said by {peer}");
            tick.reviews =
                vec![AcceptedReview { goal: super::goal("docs-read"), pass, sha: commit(sha), notes }];
        });
    }
    let text = squeezed(&report_markdown(&report(&world)));
    assert!(
        text.contains("4 reviews kept, 1 of them against; 2 differed from what another peer had said last."),
        "{text}"
    );
    let reviews: Vec<&str> = text.lines().filter(|line| line.starts_with("| docs-read |")).skip(1).collect();
    assert_eq!(
        reviews,
        [
            "| docs-read | 2 | codex | **fail**, another said pass | `dddddddd` | `said by codex` |",
            "| docs-read | 4 | codex | pass | `ffffffff` | `said by codex` |",
            "| docs-read | 3 | claude | pass, another said fail | `eeeeeeee` | `said by claude` |",
            "| docs-read | 1 | claude | pass | `cccccccc` | `said by claude` |",
        ]
    );
}

#[test]
fn what_was_accepted_is_listed_with_what_changed_and_its_digests() {
    let mut world = World::running();
    let digests = |c: &str| Digests { goals: c.repeat(64), config: "f".repeat(64) };
    let mut changed = rules();
    changed.gates.remove(1);
    world.append(super::operator(OperatorOp::Accepted {
        old: digests("1"),
        new: digests("2"),
        note: Some("lint is no goal".into()),
        rules: Some(Box::new(changed)),
    }));
    let text = squeezed(&report_markdown(&report(&world)));
    assert!(
        text.contains("| `ann` | `goals changed; 1 gate gone: lint-clean` | `222222222222` | `ffffffffffff` | `lint is no goal` |"),
        "{text}"
    );
}

#[test]
fn wasted_time_and_what_is_needed_to_do_the_same_again_are_told() {
    let mut world = World::new();
    let mut record = super::run_record(&world.run);
    record.argv = vec!["peers".into(), "run".into(), "--branch".into(), "a b".into()];
    world.start(rules());
    peers_store::runs::write(world.store.disk(), &record).unwrap();
    world.tick(1, "claude", |_| {});
    world.tick(2, "codex", |tick| (tick.outcome, tick.success) = (TickOutcome::PeerFailed, false));
    let text = squeezed(&report_markdown(&report(&world)));
    assert!(text.contains("Of 6m that turns took, 3m (50%) were wasted: those turns failed.\n"), "{text}");
    assert!(
        text.contains(
            "| 00000000000000aa | `0.1.0` | `none` | `aaaaaaaa` | `main` | | | `peers run --branch 'a b'` |"
        ),
        "{text}"
    );
    let json: Value = serde_json::from_str(&report_json(&report(&world))).unwrap();
    assert_eq!(json["history"]["value"]["starts"][0]["version"], "0.1.0");
}

#[test]
fn several_loops_are_one_document_with_a_table_of_them_on_top() {
    use super::hostile::EVIL;
    use crate::{Found, LoopRow, ReportEntry, ReportHead, reports_json, reports_markdown};
    let first = super::hostile::world();
    let mut second = World::running();
    second.tick(1, "claude", |_| {});
    second.exit(StopReason::Complete, "");
    let read = |world: &World, name: &str| {
        let mut asked = super::row::asked(world, Lock::Free);
        (asked.listed.name, asked.bugs) = (name.into(), Sourced::Unreadable(EVIL.into()));
        (LoopRow::read(&mut world.disk(), &asked), report(world))
    };
    let (one, two) = (read(&first, EVIL), read(&second, "search"));
    let (there, not) = (Found::Present(EVIL.into()), Found::Unsafe);
    let entries = [
        ReportEntry { row: &one.0, report: &one.1, notes: EVIL, readme: &there, log: &not },
        ReportEntry { row: &two.0, report: &two.1, notes: "", readme: &Found::Missing, log: &there },
    ];
    let head = ReportHead {
        generated_at: Timestamp::from_millis(0),
        config_dir: EVIL.into(),
        scope: "all".into(),
        warnings: Vec::new(),
    };
    let text = reports_markdown(&head, &entries);
    assert!(is_harmless(&text));
    let squeezed = squeezed(&text);
    assert!(
        squeezed.starts_with("# peers-ctl report\n\nMade 1970-01-01T00:00:00.000Z, of `all`, from `E X"),
        "{squeezed}"
    );
    assert!(line(&squeezed, "| `search` |").starts_with("| `search` | done | stopped (converged) | 1 | ? | 2023-11-14T22:13:23.000Z | missing | present: `E X"), "{squeezed}");
    let headings: Vec<&str> = squeezed.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings.len(), 3, "warnings and two projects: {headings:?}");
    assert!(
        squeezed.contains("\n## `search`\n\n**done**: `complete`\n") && squeezed.contains("\n### Timeline\n"),
        "{squeezed}"
    );
    let outside: String = text.lines().flat_map(|line| line.split('`').step_by(2)).collect();
    for mark in ["</td>", "[a](b)", "!"] {
        assert!(!outside.contains(mark), "{mark} in {outside}");
    }
    let json = reports_json(&head, &entries);
    assert!(is_harmless(&json));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "peers-ctl.report/1");
    assert_eq!(value["data"]["projects"][0]["notes"], EVIL);
    assert_eq!(value["data"]["projects"][1]["report"]["outcome"]["kind"], "converged");
    assert_eq!(value["data"]["projects"][1]["controller_log"]["kind"], "present");
}

#[test]
fn an_empty_project_has_a_report_too() {
    let world = World::new();
    let report = report(&world);
    assert_eq!(report.history, Sourced::Missing);
    let text = squeezed(&report_markdown(&report));
    assert!(text.contains("**No run yet**") && !text.contains("Timeline"), "{text}");
    assert!(is_harmless(&report_json(&report)));
}

#[test]
fn a_cap_that_was_raised_while_the_loop_ran_is_named_with_who_did_it() {
    use peers_model::record::{Cap, CapSet};
    let raise = |world: &mut World, value: u64| {
        let caps = vec![CapSet { cap: Cap::MaxIterations, value }];
        world.alone(super::operator(OperatorOp::BudgetSet { caps, until: None }));
    };
    let mut world = World::new();
    raise(&mut world, 20);
    world.start(super::rules());
    let said = |world: &World| [world.text(), report_markdown(&report(world))];
    for text in said(&world) {
        assert!(text.contains("max_iterations 20 by "), "{text}");
        assert!(!text.contains("since the run began"), "{text}");
    }
    raise(&mut world, 55);
    for text in said(&world) {
        assert!(text.contains("max_iterations 55 by ") && text.contains(", since the run began"), "{text}");
    }
}

#[test]
fn every_cap_that_was_raised_has_a_line_of_its_own() {
    use peers_model::record::{Cap, CapSet};
    let mut world = World::running();
    let raised = [
        (Cap::MaxRuntimeS, 3600, "max_runtime_s 1h until "),
        (Cap::MaxIterations, 301, "max_iterations 301 until "),
        (Cap::MaxTokens, 5_000_001, "max_tokens 5,000,001 until "),
        (Cap::MaxUsd, 26_000_000, "max_usd $26.00 until "),
    ];
    let caps = raised.iter().map(|(cap, value, _)| CapSet { cap: *cap, value: *value }).collect();
    let until = Some(peers_model::Timestamp::from_millis(world.now + 86_400_000));
    world.alone(super::operator(OperatorOp::BudgetSet { caps, until }));
    let report = report_markdown(&report(&world));
    assert!(report.contains("Set over the configuration:\n\n- `max_"), "{report}");
    let status = world.text();
    for (_, _, words) in raised {
        for (text, begins) in [(&status, "  set over the configuration: "), (&report, "- `")] {
            let line = text.lines().find(|line| line.starts_with(&format!("{begins}{words}")));
            assert!(
                line.is_some_and(|line| line.trim_end_matches('`').ends_with(", since the run began")),
                "{words}: {text}"
            );
        }
    }
}

#[test]
fn a_cap_that_was_set_for_a_time_is_not_named_after_it_though_no_loop_runs() {
    use peers_model::record::{Cap, CapSet};
    let mut world = World::running();
    let caps = vec![CapSet { cap: Cap::MaxIterations, value: 55 }];
    // A view is looked at two minutes after the last record.
    let until = Some(peers_model::Timestamp::from_millis(world.now + 60_000));
    world.alone(super::operator(OperatorOp::BudgetSet { caps, until }));
    world.exit(peers_model::outcome::StopReason::MaxTicks, "");
    let text = world.text();
    assert!(text.contains("max_ticks") && !text.contains("max_iterations 55"), "{text}");
}
