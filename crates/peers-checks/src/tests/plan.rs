//! The checks of a plan: what it says, what was frozen, who checked what off.

use std::collections::BTreeMap;

use peers_model::CommitId;
use peers_model::StepId;
use peers_model::record::{AckTarget, ContractAct, ContractRecord, OperatorOp, OperatorRecord, Record};
use peers_model::step::{CourseAsked, CourseMoved, SealedNote, StepRole, StepWork};
use peers_store::contracts::{self, Frozen};
use peers_store::{Area, Disk as _, layout};
use peers_sys::digest::sha256_hex;

use super::{World, name_of};
use crate::{CheckCx, Outcome, Ran, RanEnd, Reviews, Verdict};

pub(super) const META: &str = "surfaces: [cli]\nacceptance: true\n";

pub(super) fn plan_with(meta: &str, steps: &[&str]) -> String {
    format!("# F\n## Meta\n{meta}## Steps\n{}\n", steps.join("\n"))
}

pub(super) fn plan(steps: &[&str]) -> String {
    plan_with(META, steps)
}

/// `STEP-n`, which touches `src/sn.rs`.
pub(super) fn step(n: u32, mark: &str, sha: Option<&CommitId>) -> String {
    let sha = sha.map(|sha| format!(" ({})", sha.short())).unwrap_or_default();
    format!("- [{mark}] [STEP-{n}] do {n}{sha}\n  - touches: src/s{n}.rs")
}

impl World {
    /// With a plan that was frozen before the first run.
    pub(super) fn frozen(text: &str) -> Self {
        Self::frozen_with(text, BTreeMap::new())
    }

    fn frozen_with(text: &str, files: BTreeMap<String, Vec<u8>>) -> Self {
        let mut world = Self::new();
        world.commit("the plan", &[("PLAN.md", text)]);
        world.base_here();
        world.accept_config("");
        let e2e = text.contains("\ne2e:").then(|| contracts::script("true"));
        let frozen =
            Frozen { plan: text.as_bytes().to_vec(), acceptance: contracts::script("true"), e2e, files };
        let state = frozen.pins().state();
        world.contract(ContractAct::Init, &[], &state);
        contracts::write(&mut world.disk(), &frozen).unwrap();
        world.start_run(Vec::new());
        world
    }

    fn contract(&mut self, contract: ContractAct, change: &[(&str, &str)], state: &str) {
        let change = change.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let act = ContractRecord { contract, reason: "so".into(), change, state: state.to_owned() };
        self.append(Record::Operator(OperatorRecord { op: OperatorOp::Contract(act), by: "ann".into() }));
    }

    pub(super) fn says(&self, check: &str) -> Verdict {
        self.check(check).report.verdict
    }

    /// The kinds of the findings of a check.
    pub(super) fn kinds(&self, check: &str) -> Vec<&'static str> {
        let outcome = self.check(check);
        outcome.report.findings.iter().map(|finding| finding.kind).collect()
    }

    fn runs(&self, check: &str, end: RanEnd) -> Outcome {
        let cx = self.cx().running(Box::new(move |contract| {
            assert!(!contract.script.is_empty());
            let tail = (31..=50).map(|n| format!("line {n}")).collect();
            Ok(Ran { end, tail })
        }));
        crate::run(check, &cx, &[]).unwrap()
    }
}

#[test]
fn row_43_a_plan_is_complete_when_each_step_is_done() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None), &step(2, " ", None)]));
    let rows = [
        (plan(&[&step(1, "x", None), &step(2, " ", None)]), Verdict::Fail),
        (plan(&[&step(1, "x", None), &step(2, "x", None)]), Verdict::Pass),
        (plan(&[&step(1, "PARTIAL", None), &step(2, "PARTIAL", None)]), Verdict::Fail),
        ("# F\n## Meta\nsurfaces: cli\n".to_owned(), Verdict::Fail),
    ];
    for (text, due) in rows {
        world.turn_with("claude", "edit", &[("PLAN.md", &text)]);
        assert_eq!(world.says("plan-complete"), due, "{text}");
    }
    std::fs::remove_file(world.work.join("PLAN.md")).unwrap();
    world.turn("claude", "remove it");
    assert_eq!(world.says("plan-complete"), Verdict::Fail);
}

#[test]
fn row_44_a_done_step_names_the_commit_that_changed_its_files() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None), &step(2, " ", None)]));
    assert_eq!(world.says("plan-traceable"), Verdict::Pass, "only open steps");
    let made = world.turn_with("claude", "do 1", &[("src/s1.rs", "one\n")]);
    let other = world.turn_with("claude", "do something", &[("src/x.rs", "one\n")]);
    let unknown = CommitId::new("e".repeat(40)).unwrap();
    for (sha, due) in [
        (None, "no-commit"),
        (Some(&unknown), "unknown-commit"),
        (Some(&other), "other-files"),
        (Some(&made), ""),
    ] {
        let text = plan(&[&step(1, "x", sha), &step(2, " ", None)]);
        world.turn_with("codex", "check off", &[("PLAN.md", &text)]);
        let kinds = world.kinds("plan-traceable");
        assert_eq!(kinds, if due.is_empty() { vec![] } else { vec![due] });
    }
    let twice = plan(&[&step(1, "x", Some(&made)), &step(2, "x", Some(&made))]);
    world.turn_with("codex", "check off", &[("PLAN.md", &twice)]);
    assert_eq!(world.kinds("plan-traceable"), ["shared-commit", "other-files"]);
}

#[test]
fn row_45_what_was_frozen_of_a_plan_stays() {
    let original = [step(1, " ", None), step(2, " ", None)];
    let mut world = World::frozen(&plan(&[&original[0], &original[1]]));
    let first = original[0].as_str();
    let rows = [
        (plan(&[&step(1, "x", None), &step(2, "BLOCKED", None), &step(3, " ", None)]), None),
        (plan(&[&format!("{first}\n  - notes: well"), &original[1]]), None),
        (plan(&[first]), Some("missing")),
        (plan(&[&format!("{first}\n\nSTEP-2 is in here")]), Some("missing")),
        (plan(&[&first.replace("src/s1.rs", "src/easy.rs"), &original[1]]), Some("changed")),
        (plan(&[&format!("{first}\n  - trivial_step: true"), &original[1]]), Some("changed")),
        (plan(&[&first.replace("do 1", "do less"), &original[1]]), Some("changed")),
        (plan_with("surfaces: [cli]\nacceptance: echo\n", &[first, &original[1]]), Some("changed")),
    ];
    for (text, due) in rows {
        world.turn_with("claude", "edit", &[("PLAN.md", &text)]);
        assert_eq!(world.kinds("plan-preserved").first().copied(), due, "{text}");
    }
    std::fs::remove_file(world.work.join("PLAN.md")).unwrap();
    std::os::unix::fs::symlink("a.txt", world.work.join("PLAN.md")).unwrap();
    world.turn("claude", "link it");
    assert_eq!(world.says("plan-preserved"), Verdict::Fail);
    assert_eq!(World::running().says("plan-preserved"), Verdict::Fail, "no PLAN.md at all");
}

#[test]
fn row_46_and_47_contracts_are_what_the_store_and_the_journal_say() {
    let world = World::frozen(&plan(&[&step(1, " ", None)]));
    let outcome = world.check("contracts");
    // A disk without `.peers/`: all copies are missing.
    assert_eq!(outcome.report.verdict, Verdict::Fail, "{}", outcome.text(9));
    let kinds: Vec<_> = outcome.report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["tamper:contracts", "tamper:contracts"]);
    let store = |name: &str| world.path("store").join(name);
    let accepted = std::fs::read_to_string(store("accepted.json")).unwrap();
    let error = |what: &str| {
        let outcome = world.check("contracts");
        assert_eq!(outcome.report.verdict, Verdict::Error, "{what}: {}", outcome.text(9));
        assert_eq!(world.check("acceptance").report.verdict, Verdict::Error, "{what}");
    };
    let rewrite = |text: &str| std::fs::write(store("accepted.json"), text).unwrap();
    rewrite(&accepted.replace("\"contracts\"", "\"other\""));
    error("the pin is missing");
    rewrite(&accepted.replace("\"acceptance\"", "\"akzeptanz\""));
    error("the pin is malformed, with an unknown key");
    rewrite(&accepted);
    std::fs::write(store("contracts/acceptance.sh"), "exit 0\n").unwrap();
    error("the frozen script is another one");
    // Both at once, as somebody would who can write the store but not its journal.
    let frozen = Frozen {
        plan: b"x".to_vec(),
        acceptance: contracts::script("exit 0"),
        e2e: None,
        files: BTreeMap::new(),
    };
    contracts::write(&mut world.disk(), &frozen).unwrap();
    error("the pins are not those of the record");
}

#[test]
fn row_46_a_copy_that_was_edited_is_told_and_written_again() {
    let world = World::frozen(&plan(&[&step(1, " ", None)]));
    let root = peers_sys::SafeDir::create_root(world.path("peers")).unwrap();
    let disk = || {
        let store = peers_sys::SafeDir::create_root(world.path("store")).unwrap();
        peers_store::FsDisk::new(store, Some(root.try_clone().unwrap()))
    };
    let check =
        || crate::run("contracts", &CheckCx::open(world.asked(), Some(&mut disk())).unwrap(), &[]).unwrap();
    let frozen = contracts::read(&mut disk()).unwrap().unwrap();
    assert_eq!(contracts::restore_copies(&mut disk(), &frozen).unwrap().len(), 2);
    assert_eq!(check().report.verdict, Verdict::Pass);
    let copy = world.path("peers/contracts/acceptance.sh");
    std::fs::remove_file(&copy).unwrap();
    std::fs::write(&copy, "exit 0\n").unwrap();
    let outcome = check();
    assert_eq!(outcome.report.verdict, Verdict::Fail);
    assert_eq!(outcome.report.findings[0].path, ".peers/contracts/acceptance.sh");
    assert_eq!(contracts::restore_copies(&mut disk(), &frozen).unwrap(), ["contracts/acceptance.sh"]);
    assert_eq!(check().report.verdict, Verdict::Pass);
}

#[test]
fn row_48_a_contract_passes_when_the_frozen_script_ends_well() {
    let world = World::frozen(&plan(&[&step(1, " ", None)]));
    for (end, due) in [
        (RanEnd::Exit(0), Verdict::Pass),
        (RanEnd::Exit(3), Verdict::Fail),
        (RanEnd::Exit(127), Verdict::Error),
        (RanEnd::Timeout, Verdict::Fail),
    ] {
        let outcome = world.runs("acceptance", end);
        assert_eq!(outcome.report.verdict, due, "{end:?}");
        assert_eq!(outcome.report.notes.len(), if due == Verdict::Pass { 0 } else { 20 });
        // The copies are missing here: told, and no part of the verdict.
        assert!(due == Verdict::Error || !outcome.report.findings.is_empty());
    }
    assert_eq!(world.runs("e2e", RanEnd::Exit(1)).report.verdict, Verdict::Skip);
    let meta = format!("{META}e2e: true\n");
    let world = World::frozen(&plan_with(&meta, &[&step(1, " ", None)]));
    assert_eq!(world.runs("e2e", RanEnd::Exit(1)).report.verdict, Verdict::Fail);
    assert_eq!(world.says("acceptance"), Verdict::Error, "nothing here runs it");
}

#[test]
fn row_51_a_block_counts_as_acknowledged_by_the_record_alone() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None), &step(2, " ", None)]));
    let blocked = |mark: &str| plan(&[&step(1, mark, None), &step(2, "x", None)]);
    world.turn_with("claude", "block", &[("PLAN.md", &blocked("BLOCKED"))]);
    assert_eq!(world.kinds("no-unresolved-blocks"), ["blocked"]);
    world.turn_with("claude", "acknowledge oneself", &[("PLAN.md", &blocked("BLOCKED-ACK"))]);
    assert_eq!(world.kinds("no-unresolved-blocks"), ["unacknowledged"]);
    assert_eq!(world.says("plan-complete"), Verdict::Fail);
    world.contract(ContractAct::AckBlock, &[("step", "STEP-1"), ("text", "do 1")], "s");
    assert_eq!(world.says("no-unresolved-blocks"), Verdict::Pass);
    world.contract(ContractAct::Unblock, &[("step", "STEP-1")], "s");
    assert_eq!(world.says("no-unresolved-blocks"), Verdict::Fail);
    world.contract(ContractAct::AckBlock, &[("step", "STEP-1"), ("text", "do 1")], "s");
    let both = plan(&[&step(1, "BLOCKED-ACK", None), &step(2, "BLOCKED", None)]);
    world.turn_with("claude", "block another", &[("PLAN.md", &both)]);
    assert_eq!(world.kinds("no-unresolved-blocks"), ["blocked"]);
    let reworded = blocked("BLOCKED-ACK").replace("do 1", "do it all");
    world.turn_with("claude", "say something else", &[("PLAN.md", &reworded)]);
    assert_eq!(world.kinds("no-unresolved-blocks"), ["unacknowledged"], "another step");
}

#[test]
fn row_52_each_done_step_adds_tests_of_three_kinds() {
    let happy = "def test_adds():\n    assert add(1, 1) == 2\n";
    let edge = "def test_empty():\n    assert add() == 0\n";
    let sad = "def test_rejects():\n    with pytest.raises(ValueError):\n        add('x')\n";
    let judged = |files: &[(&str, &str)], more: &str, named: bool| {
        let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
        let made = world.turn_with("claude", "do 1", files);
        let done = format!("{}{more}", step(1, "x", named.then_some(&made)));
        world.turn_with("codex", "check off", &[("PLAN.md", &plan(&[&done]))]);
        world.check_with("three-class", &["--delta"]).report
    };
    let file = "tests/test_s1.py";
    let all = format!("{happy}\n{edge}\n{sad}");
    assert_eq!(judged(&[(file, &all)], "", true).verdict, Verdict::Pass);
    let report = judged(&[(file, &format!("{happy}\n{edge}"))], "", true);
    assert!(report.findings[0].message.contains("kind sad"), "{report:?}");
    assert_eq!(judged(&[("src/s1.rs", "fn f() {}\n")], "", true).findings[0].kind, "no-tests");
    let deferred = judged(&[(file, happy)], "", false);
    assert_eq!((deferred.verdict, deferred.notes.len()), (Verdict::Pass, 1));
    assert_eq!(
        judged(&[("README.md", "x\n")], "\n  - pure_documentation: true", true).verdict,
        Verdict::Pass
    );
    // What was there before is not added.
    let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
    world.turn_with("claude", "tests", &[(file, &all)]);
    let made = world.turn_with("claude", "do 1", &[(file, &format!("{all}\n# moved\n"))]);
    world.turn_with("codex", "check off", &[("PLAN.md", &plan(&[&step(1, "x", Some(&made))]))]);
    assert_eq!(world.check_with("three-class", &["--delta"]).report.findings[0].kind, "no-tests");
}

#[test]
fn row_52_tests_of_three_kinds_are_known_in_each_language() {
    for (path, top, tests) in [
        (
            "src/s1.test.js",
            "",
            [
                "test('adds', () => { expect(add(1)).toBe(1); });\n",
                "test('empty', () => { expect(add()).toBe(0); });\n",
                "test('rejects', () => { expect(() => add('x')).toThrow(); });\n",
            ],
        ),
        (
            "src/s1.test.ts",
            "",
            [
                "test('adds', (): void => { expect(add(1)).toBe(1); });\n",
                "test('empty', (): void => { expect(add()).toBe(0); });\n",
                "test('rejects', async () => { await expect(add('x')).rejects.toThrow(); });\n",
            ],
        ),
        (
            "tests/s1.rs",
            "",
            [
                "#[test]\nfn adds() { assert_eq!(add(1), 1); }\n",
                "#[test]\nfn empty() { assert_eq!(add(0), 0); }\n",
                "#[test]\nfn rejects() { add(2).unwrap_err(); }\n",
            ],
        ),
        (
            "s1_test.go",
            "package a\n",
            [
                "func TestAdds(t *testing.T) { if add(1) != 1 { t.Fatal(1) } }\n",
                "func TestEmpty(t *testing.T) { if add(0) != 0 { t.Fatal(0) } }\n",
                "func TestRejects(t *testing.T) { if err := add(2); err == nil { t.Fatal(2) } }\n",
            ],
        ),
    ] {
        for (left_out, due) in [(3, ""), (0, "happy"), (1, "edge"), (2, "sad")] {
            let kept = tests.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, test)| *test);
            let text = format!("{top}{}", kept.collect::<Vec<_>>().concat());
            let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
            let made = world.turn_with("claude", "do 1", &[(path, &text)]);
            world.turn_with("codex", "check off", &[("PLAN.md", &plan(&[&step(1, "x", Some(&made))]))]);
            let report = world.check_with("three-class", &["--delta"]).report;
            let told: Vec<&str> = report.findings.iter().map(|found| found.message.as_str()).collect();
            assert_eq!(told.is_empty(), due.is_empty(), "{path}: {told:?}");
            assert!(told.iter().all(|told| told.ends_with(&format!("kind {due}"))), "{path}: {told:?}");
        }
    }
}

/// A step done by claude, in a world with two open steps.
fn done_by_claude() -> (World, CommitId) {
    let mut world = World::frozen(&plan(&[&step(1, " ", None), &step(2, " ", None)]));
    let made = world.turn_with("claude", "do 1", &[("src/s1.rs", "one\ntwo\nthree\n")]);
    (world, made)
}

fn check_off(world: &mut World, peer: &str, mark: &str, made: &CommitId, message: &str) {
    let text = plan(&[&step(1, mark, Some(made)), &step(2, " ", None)]);
    world.turn_with(peer, message, &[("PLAN.md", &text)]);
}

pub(super) fn blob(world: &World, path: &str) -> String {
    world.git(&["rev-parse", &format!("HEAD:{path}")]).trim().to_owned()
}

#[test]
fn row_53_and_54_a_step_is_checked_off_by_another_peer_whatever_the_commit_claims() {
    // Both share one git identity, and no trailer changes anything.
    for (peer, message, due) in [
        ("codex", "check off", Verdict::Pass),
        ("claude", "check off", Verdict::Fail),
        ("claude", "check off\n\nPeer: codex\n", Verdict::Fail),
        ("claude", "check off\n\nPeer: codex says the prose\n\nPeer: claude\n", Verdict::Fail),
    ] {
        let (mut world, made) = done_by_claude();
        check_off(&mut world, peer, "x", &made, message);
        assert_eq!(world.says("checkoff"), due, "{message}");
    }
    let (world, made) = done_by_claude();
    let text = plan(&[&step(1, "x", Some(&made)), &step(2, " ", None)]);
    world.commit("check off", &[("PLAN.md", &text)]);
    assert_eq!(world.kinds("checkoff"), ["unattributed"], "nobody saw it");
    assert_eq!(world.without_store("checkoff").report.verdict, Verdict::Error);
}

#[test]
fn row_55_lines_of_who_checks_off_need_a_review_of_another() {
    for (reviewer, path, due) in [
        ("claude", "src/s1.rs", Verdict::Pass),
        ("codex", "src/s1.rs", Verdict::Fail),
        ("claude", "src/x.rs", Verdict::Fail),
    ] {
        let (mut world, made) = done_by_claude();
        // The file is of both.
        world.turn_with("codex", "more", &[("src/s1.rs", "one\ntwo\nthree\nfour\n"), ("src/x.rs", "x\n")]);
        let message = format!("review\n\nPeers-Review: {path}@{}\n", blob(&world, path));
        world.turn(reviewer, &message);
        check_off(&mut world, "codex", "x", &made, "check off");
        assert_eq!(world.says("checkoff"), due, "{reviewer} {path}");
    }
}

#[test]
fn row_56_a_wrong_checkoff_can_be_redone_by_the_other_peer() {
    let (mut world, made) = done_by_claude();
    check_off(&mut world, "claude", "x", &made, "check off oneself");
    assert_eq!(world.kinds("checkoff"), ["unsigned"]);
    check_off(&mut world, "codex", " ", &made, "uncheck");
    check_off(&mut world, "codex", "x", &made, "check off");
    assert_eq!(world.says("checkoff"), Verdict::Pass);
}

#[test]
fn row_57_every_way_to_done_is_a_checkoff() {
    let (mut world, made) = done_by_claude();
    check_off(&mut world, "claude", "PARTIAL", &made, "half");
    check_off(&mut world, "claude", "x", &made, "whole");
    assert_eq!(world.kinds("checkoff"), ["unsigned"]);
    // A step that is born done.
    let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
    let made = world.turn_with("claude", "do 2", &[("src/s2.rs", "one\n")]);
    let text = plan(&[&step(1, " ", None), &step(2, "x", Some(&made))]);
    world.turn_with("claude", "add it", &[("PLAN.md", &text)]);
    assert_eq!(world.kinds("checkoff"), ["unsigned"]);
    // One whose plan was unreadable in between belongs to who made it readable.
    let (mut world, made) = done_by_claude();
    world.turn_with("codex", "break", &[("PLAN.md", "nothing\n")]);
    check_off(&mut world, "claude", "x", &made, "mend and check off");
    assert_eq!(world.kinds("checkoff"), ["unsigned"]);
}

#[test]
fn a_step_without_files_or_without_lines_needs_another_peer_too() {
    let nothing = "- [MARK] [STEP-1] think\n  - trivial_step: true";
    let mut world = World::frozen(&plan(&[&nothing.replace("MARK", " ")]));
    let made = world.turn("claude", "think");
    let done = plan(&[&nothing.replace("MARK", "x").replace("think", &format!("think ({})", made.short()))]);
    world.turn_with("claude", "check off\n\nPeers-Review: PLAN.md#STEP-1\n", &[("PLAN.md", &done)]);
    assert_eq!(world.kinds("checkoff"), ["unreviewed"]);
    world.turn("codex", "review\n\nPeers-Review: PLAN.md#STEP-1\n");
    assert_eq!(world.says("checkoff"), Verdict::Pass);
    // No line was added.
    for (peer, due) in [("codex", Verdict::Pass), ("claude", Verdict::Fail)] {
        let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
        let made = world.turn_with("claude", "nothing there", &[("src/s1.rs", "")]);
        let text = plan(&[&step(1, "x", Some(&made))]);
        world.turn_with(peer, "check off", &[("PLAN.md", &text)]);
        assert_eq!(world.says("checkoff"), due, "{peer}");
    }
}

#[test]
fn row_59_a_review_counts_for_the_lines_it_read_and_for_nothing_else() {
    let text = "one\nmark\nthree\n";
    let reviewed =
        |world: &World| Reviews::read(&world.cx()).unwrap().is_reviewed("src/a.rs", 2..=2).unwrap();
    let world = |peer: &str, claim: &dyn Fn(&str) -> String| {
        let mut world = World::running();
        world.turn_with("claude", "write", &[("src/a.rs", text), ("src/a.rs.bak", text)]);
        let claim = claim(&blob(&world, "src/a.rs"));
        world.turn(peer, &format!("review\n\nPeers-Review: {claim}\n"));
        world
    };
    assert!(reviewed(&world("codex", &|blob| format!("src/a.rs@{blob}"))));
    assert!(reviewed(&world("codex", &|blob| format!("src/a.rs@{}#L2-3", &blob[..8]))));
    for (peer, claim) in [
        ("claude", "src/a.rs@BLOB"),
        ("codex", "src/a.rs@BLOB#L3"),
        ("codex", "src/b.rs@BLOB"),
        ("codex", "src/a@BLOB"),
        ("codex", "src/a.rs.bak@BLOB"),
        ("codex", "src/a.rs@0123456789"),
        ("codex", "src/a.rs"),
    ] {
        let world = world(peer, &|blob| claim.replace("BLOB", blob));
        assert!(!reviewed(&world), "{peer} {claim}");
    }
    // Unattributed, and of another branch.
    let mut nobody = World::running();
    nobody.turn_with("claude", "write", &[("src/a.rs", text)]);
    let trailer = format!("review\n\nPeers-Review: src/a.rs@{}\n", blob(&nobody, "src/a.rs"));
    nobody.commit(&trailer, &[]);
    assert!(!reviewed(&nobody));
    let mut aside = World::running();
    aside.turn_with("claude", "write", &[("src/a.rs", text)]);
    aside.turn("codex", &trailer);
    aside.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert!(!reviewed(&aside));
    // Older than the line, and a line that its author changed since.
    for later in ["one\nMARK\nthree\n", "one\nmark!\nthree\n"] {
        let mut world = world("codex", &|blob| format!("src/a.rs@{blob}"));
        world.turn_with("claude", "change", &[("src/a.rs", later)]);
        assert!(!reviewed(&world), "{later}");
    }
    // Lines that move stay reviewed.
    let mut world = world("codex", &|blob| format!("src/a.rs@{blob}"));
    world.turn_with("claude", "above", &[("src/a.rs", &format!("zero\n{text}"))]);
    let reviews = Reviews::read(&world.cx()).unwrap().is_reviewed("src/a.rs", 3..=3).unwrap();
    assert!(reviews);
}

#[test]
fn row_58_a_commit_that_is_not_reachable_signs_nothing() {
    let (mut world, made) = done_by_claude();
    check_off(&mut world, "codex", "x", &made, "check off");
    let dangling = world.head();
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let text = plan(&[&step(1, "x", Some(&made)), &step(2, " ", None)]);
    let message = format!("check off, see {dangling}\n\nPeer: codex\n");
    world.turn_with("claude", &message, &[("PLAN.md", &text)]);
    assert_eq!(world.kinds("checkoff"), ["unsigned"]);
}

#[test]
fn row_60_a_delivery_tells_of_each_step() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None), &step(2, " ", None)]));
    let made = world.turn_with("claude", "do 1", &[("src/s1.rs", "one\n")]);
    check_off(&mut world, "codex", "x", &made, "check off");
    assert_eq!(world.says("delivery"), Verdict::Fail, "no file");
    let section = |n: u32, commit: &str| {
        format!(
            "## [STEP-{n}] do\n- **Commit:** {commit}\n- **Tests:** some\n- **Justification:** it is right\n"
        )
    };
    let whole = format!("{}{}", section(1, made.as_str()), section(2, "PENDING"));
    for (text, due) in [
        (whole.clone(), None),
        (section(1, made.as_str()), Some("missing-step")),
        (whole.replace("- **Tests:** some\n", ""), Some("missing-field")),
        (whole.replace("it is right", ""), Some("blank")),
        (whole.replace(made.as_str(), "PENDING"), Some("other-commit")),
        (whole.replace(made.as_str(), &"e".repeat(40)), Some("other-commit")),
    ] {
        world.turn_with("claude", "deliver", &[("DELIVERY.md", &text)]);
        assert_eq!(world.kinds("delivery").first().copied(), due, "{text}");
    }
}

/// What is done about STEP-1 in one turn: its role, its words, whether anything is changed.
type Deed<'a> = (&'a str, StepRole, u32);

impl World {
    /// A turn about STEP-1 in which notes of so many words are sealed.
    fn at_step(&mut self, (peer, role, words): Deed<'_>, (base, head): (&CommitId, &CommitId)) {
        let step = StepId::new(1).unwrap();
        let work = StepWork { step, role, base: base.clone(), head: Some(head.clone()) };
        self.begin_tick_with(peer, |started| {
            started.course = Some(Box::new(CourseAsked { work: Some(work), ..CourseAsked::default() }));
        });
        let note = role.part().map(|part| {
            let text = "word ".repeat(usize::try_from(words).unwrap());
            let file = format!("STEP-1/{}-{peer}-{}.md", self.tick, part.word());
            let path = format!("{}/{file}", layout::store::NOTES);
            self.disk().publish(Area::Store, &path, text.as_bytes(), true).unwrap();
            let (base, head, sha256) = (base.clone(), head.clone(), sha256_hex(text.as_bytes()));
            SealedNote { step, part, base, head, words, sha256, file }
        });
        self.end_tick(peer, Vec::new(), |tick| {
            tick.course = Some(Box::new(CourseMoved { note, ..CourseMoved::default() }));
        });
    }
}

#[test]
fn row_61_a_done_step_has_notes_of_two_peers_and_the_review_was_sealed_before_the_others_were_shown() {
    use StepRole::{Compare, Implement, Review};
    let rows: &[(&[Deed<'_>], &[&str])] = &[
        (&[], &["no-notes"]),
        (&[("claude", Implement, 20)], &["no-review"]),
        (&[("claude", Implement, 19), ("codex", Review, 20)], &["short"]),
        (&[("claude", Implement, 20), ("codex", Review, 19)], &["no-review"]),
        (&[("claude", Implement, 20), ("codex", Review, 20)], &[]),
        (&[("claude", Implement, 20), ("claude", Review, 20)], &["no-review"]),
        // It had seen the notes of the author before it handed in its own.
        (&[("claude", Implement, 20), ("codex", Compare, 0), ("codex", Review, 20)], &["no-review"]),
        (&[("claude", Implement, 20), ("codex", Review, 20), ("codex", Compare, 0)], &[]),
        // What was read of an earlier version says nothing of this one.
        (&[("claude", Implement, 20), ("codex", Review, 20), ("claude", Implement, 20)], &["no-review"]),
    ];
    for (deeds, due) in rows {
        let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
        let base = world.head();
        let made = world.turn_with("claude", "do 1", &[("src/s1.rs", "one\n")]);
        for deed in *deeds {
            world.at_step(*deed, (&base, &made));
        }
        assert_eq!(world.kinds("blind-review"), [""; 0], "no step is done");
        // Notes in the repository are nobody's.
        let note = "word ".repeat(30);
        let files = [("IMPLEMENTATION_NOTES.md", note.as_str()), ("REVIEW_NOTES.md", note.as_str())];
        world.turn_with("codex", "notes", &files);
        world.turn_with("codex", "check off", &[("PLAN.md", &plan(&[&step(1, "x", Some(&made))]))]);
        assert_eq!(world.kinds("blind-review"), *due, "{deeds:?}");
        assert!(world.check("blind-review").report.summary.contains("not blind"));
    }
}

#[test]
fn row_61_the_commit_of_a_step_is_one_of_those_that_were_reviewed_and_the_store_is_as_it_was() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
    let base = world.head();
    let made = world.turn_with("claude", "do 1", &[("src/s1.rs", "one\n")]);
    world.at_step(("claude", StepRole::Implement, 20), (&base, &made));
    world.at_step(("codex", StepRole::Review, 20), (&base, &made));
    let later = world.turn_with("claude", "and more", &[("src/s1.rs", "two\n")]);
    world.turn_with("codex", "check off", &[("PLAN.md", &plan(&[&step(1, "x", Some(&later))]))]);
    assert_eq!(world.kinds("blind-review"), ["other-range"]);
    world.turn_with("codex", "correct", &[("PLAN.md", &plan(&[&step(1, "x", Some(&made))]))]);
    assert_eq!(world.says("blind-review"), Verdict::Pass);
    for (text, due) in [
        ("- [BLIND-REVIEW-MISMATCH] it never ends\n", Verdict::Fail),
        ("no [BLIND-REVIEW-MISMATCH] was needed\n", Verdict::Pass),
    ] {
        world.turn_with("codex", "concern", &[("CONCERNS.md", text)]);
        assert_eq!(world.says("blind-review"), due, "{text}");
    }
    // Who has not filed it cannot settle it by taking it out; put back and taken out by who filed it, it is settled.
    for (who, text, due) in [
        ("codex", "[BLIND-REVIEW-MISMATCH] it never ends\n", &["mismatch"][..]),
        ("claude", "none\n", &["erased"]),
        ("codex", "[BLIND-REVIEW-MISMATCH] it never ends\n", &["mismatch"]),
        ("codex", "none\n", &[]),
    ] {
        world.turn_with(who, "concern", &[("CONCERNS.md", text)]);
        assert_eq!(world.kinds("blind-review"), due, "{who} {text}");
    }
    let tick = world.tick;
    let forged = (1..=tick).map(|tick| format!("{}/STEP-1/{tick}-codex-review.md", layout::store::NOTES));
    for path in forged {
        if world.disk().len(Area::Store, &path).unwrap().is_some() {
            world.disk().publish(Area::Store, &path, b"other words", true).unwrap();
        }
    }
    assert_eq!(world.says("blind-review"), Verdict::Error);
}

#[test]
fn row_64_concerns_are_there_and_each_is_resolved() {
    let concern = |id: &str, tick: u32, status: &str| {
        format!("## Concern {id} — slow\nraised-tick: {tick}\nstatus: {status}\n")
    };
    let mut world = World::running();
    assert_eq!(world.says("concerns"), Verdict::Fail, "no file");
    world.turn_with("codex", "raise", &[("CONCERNS.md", "")]);
    assert_eq!(world.says("concerns"), Verdict::Fail, "empty");
    for (status, kind) in
        [("open", "open"), ("done", "malformed"), ("[USER-ACK] (reason: slow is fine)", "unacknowledged")]
    {
        let text = format!("{}{}", concern("C1", 1, status), concern("C2", 2, status));
        world.turn_with("codex", "say", &[("CONCERNS.md", &text)]);
        assert_eq!(world.kinds("concerns"), [kind, kind], "{status}");
    }
    let silent = "## Concern C1 — slow\nraised-tick: 1\n";
    world.turn_with("codex", "say", &[("CONCERNS.md", silent)]);
    assert_eq!(world.kinds("concerns"), ["malformed"]);
    let fix = world.turn_with("claude", "fix", &[("src/a.rs", "fast\n")]);
    let addressed = format!("addressed (commit: {})", fix.short());
    let text =
        |second: &str, tick: u32| format!("{}{}", concern("C1", 1, &addressed), concern("C2", tick, second));
    world.turn_with("codex", "resolve", &[("CONCERNS.md", &text("[USER-ACK] (reason: slow is fine)", 2))]);
    assert_eq!(world.kinds("concerns"), ["unacknowledged"]);
    let op = OperatorOp::Ack { target: AckTarget::Concern("C2".into()), reason: "yes".into() };
    world.append(Record::Operator(OperatorRecord { op, by: "ann".into() }));
    assert_eq!(world.says("concerns"), Verdict::Pass);
    world.turn_with("codex", "resolve", &[("CONCERNS.md", &text(&addressed, 1))]);
    assert_eq!(world.says("concerns"), Verdict::Warn, "all in one tick");
    // Who fixed it says that it is fixed.
    let mut world = World::running();
    world.turn_with("codex", "raise", &[("CONCERNS.md", &concern("C1", 1, "open"))]);
    let fix = world.turn_with("claude", "fix", &[("src/a.rs", "fast\n")]);
    let text = concern("C1", 1, &format!("addressed (commit: {})", fix.short()));
    world.turn_with("claude", "resolve", &[("CONCERNS.md", &text)]);
    assert_eq!(world.kinds("concerns"), ["self-resolved"]);
}

#[test]
fn row_65_each_peer_audits_itself_in_its_own_words() {
    let section = |peer: &str, weakest: &str, own: &str| {
        format!(
            "## {peer}\n### Weakest part\n{weakest}\n### Likely uncaught bug\nthe {own} loop may run once too often\n\
             ### Skipped or shortcut\nno {own} test with a full disk was written\n\n"
        )
    };
    let weak = |own: &str| format!("the parser of {own} lines that nobody tried");
    let honest = |peer: &str| section(peer, &weak(peer), peer);
    let world = |first: &str, second: &str| {
        let mut world = World::running();
        world.accept_config("");
        world.turn_with("claude", "code", &[("src/a.rs", "x\n")]);
        world.turn_with("claude", "audit", &[("HONESTY_AUDIT.md", first)]);
        world.turn_with("codex", "audit", &[("HONESTY_AUDIT.md", &format!("{first}{second}"))]);
        world
    };
    let (one, two) = (honest("claude"), honest("codex"));
    assert_eq!(world(&one, &two).says("honesty-audit"), Verdict::Pass);
    assert_eq!(world(&one.replace("## claude\n", "## Claude\n"), &two).says("honesty-audit"), Verdict::Pass);
    for (first, second, kind) in [
        (one.clone(), String::new(), "missing-peer"),
        (one.clone(), two.replace("### Weakest part\n", ""), "part"),
        (one.clone(), section("codex", "none", "codex"), "part"),
        (String::new(), format!("{one}{two}"), "foreign"),
        (one.clone(), one.replace("## claude\n", "## codex\n"), "copied"),
    ] {
        let world = world(&first, &second);
        assert_eq!(world.kinds("honesty-audit").first().copied(), Some(kind), "{second}");
    }
    assert_eq!(world("", "").says("honesty-audit"), Verdict::Fail, "an empty file");
    let mut three = world(&one, &two);
    let all = format!("{one}{two}{}", honest("gemini"));
    three.turn_with("gemini", "audit", &[("HONESTY_AUDIT.md", &all)]);
    assert_eq!(three.says("honesty-audit"), Verdict::Pass);
    three.turn_with("codex", "more code", &[("src/a.rs", "y\n")]);
    assert_eq!(three.kinds("honesty-audit"), ["outdated"]);
}

#[test]
fn row_75_a_further_auditor_is_asked_where_the_plan_names_one() {
    let world = World::frozen(&plan(&[&step(1, " ", None)]));
    assert_eq!(world.says("honesty-audit-extra"), Verdict::Skip);
    let meta = format!("{META}honesty_audit_peer: gemini\n");
    let world = World::frozen(&plan_with(&meta, &[&step(1, " ", None)]));
    assert_eq!(name_of("gemini").as_str(), "gemini");
    assert_eq!(world.says("honesty-audit-extra"), Verdict::Warn);
    assert_eq!(world.check_with("honesty-audit-extra", &["--strict"]).exit_code(), 1);
}
