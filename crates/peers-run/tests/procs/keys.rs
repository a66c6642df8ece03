//! What the keys of a gate do: `needs`, `serial`, `cwd`, `env`, `cacheable`, `paths`, `tree: copy`, `setup`.

use std::collections::BTreeMap;

use peers_model::goal::TreeChoice;
use peers_model::verdict::{Judged, Place};
use peers_model::{CommitId, GoalId};
use peers_run::env::Policy;
use peers_run::ports::{GateCopy, GateJob};

use crate::stage::Stage;

const PASS: &str = "exit_code == 0";

fn id(text: &str) -> GoalId {
    GoalId::new(text).unwrap()
}

fn words(verdicts: &[Judged]) -> Vec<(&str, &str)> {
    verdicts.iter().map(|j| (j.goal.as_str(), j.verdict.word())).collect()
}

#[test]
fn a_gate_waits_for_what_it_needs_and_is_skipped_when_that_is_red() {
    let mut stage = Stage::new();
    stage.settings = "goals: {parallel: 4}\n".into();
    stage.gate("use", "test -e built", PASS).needs = vec![id("build")];
    stage.gate("build", ": > built", PASS);
    stage.gate("far", ": > ran", PASS).needs = vec![id("near")];
    stage.gate("near", ": > ran", PASS).needs = vec![id("red")];
    stage.gate("red", "exit 1", PASS);
    let verdicts = stage.judge();
    let expected =
        [("use", "pass"), ("build", "pass"), ("far", "skipped"), ("near", "skipped"), ("red", "fail")];
    assert_eq!(words(&verdicts), expected);
    assert_eq!(verdicts[3].verdict.diagnostic(), "needs `red`, which is not green");
    assert_eq!(verdicts[3].attempts, 0);
    assert!(!stage.repo("ran").exists(), "a skipped gate runs nothing");
}

#[test]
fn a_serial_gate_has_the_machine_for_itself() {
    let mut stage = Stage::new();
    stage.settings = "goals: {parallel: 4}\n".into();
    for name in ["a", "b", "c"] {
        let cmd = format!(
            "n=0; : > busy-{name}; while [ $n -lt 200 ]; do n=$((n+1)); [ -e port ] && exit 1; done; rm busy-{name}"
        );
        stage.gate(name, &cmd, PASS);
    }
    let alone = "ls busy-* 2>/dev/null && exit 1; : > port; n=0; while [ $n -lt 2000 ]; do n=$((n+1)); done
                 ls busy-* 2>/dev/null && exit 1; rm port";
    stage.gate("alone", alone, PASS).serial = true;
    stage.gate("d", "[ ! -e port ]", PASS);
    let verdicts = stage.judge();
    assert!(verdicts.iter().all(|j| j.verdict.is_pass()), "{verdicts:?}");
}

#[test]
fn a_gate_starts_in_its_directory_and_judges_files_from_the_top() {
    let mut stage = Stage::new();
    std::fs::create_dir_all(stage.repo("web/app")).unwrap();
    std::os::unix::fs::symlink("web", stage.repo("link")).unwrap();
    stage
        .gate(
            "in",
            "echo '{\"n\": 1}' > out.json; test \"$(basename $(pwd))\" = app",
            "exit_code == 0 and json('web/app/out.json').n == 1",
        )
        .cwd = Some("web/app".into());
    stage.gate("gone", "true", PASS).cwd = Some("nowhere".into());
    stage.gate("linked", "true", PASS).cwd = Some("link/app".into());
    let verdicts = stage.judge();
    assert_eq!(words(&verdicts), [("in", "pass"), ("gone", "fail"), ("linked", "fail")]);
    assert_eq!(verdicts[1].verdict.diagnostic(), "its `cwd` does not exist: nowhere");
}

/// A gate that counts its runs outside of its tree, and how often it has run.
fn counting() -> Stage {
    let mut stage = Stage::new();
    stage.gate("g", "echo x >> ../runs", PASS).cacheable = true;
    stage
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.at("runs")).unwrap().lines().count()
}

#[test]
fn a_green_answer_outlives_the_process_for_the_same_tree_alone() {
    let mut stage = counting();
    let job = stage.job();
    assert!(!stage.judge_and_keep(job.clone())[0].cached);
    let again = stage.judge_and_keep(job.clone());
    assert!(again[0].cached && again[0].verdict.is_pass() && again[0].attempts == 0, "{again:?}");
    assert_eq!(runs(&stage), 1);
    let mut other = job.clone();
    other.key.head = CommitId::new("c".repeat(40)).unwrap();
    assert!(!stage.judge_and_keep(other)[0].cached, "a commit can change what a gate reads");
    let pristine = GateJob { place: Place::Pristine, dir: Some(stage.repo("")), ..job };
    assert!(!stage.judge_and_keep(pristine)[0].cached, "a proof takes nobody's word");
}

#[test]
fn a_changed_definition_environment_or_tool_makes_a_cacheable_gate_run_again() {
    let mut stage = counting();
    std::fs::create_dir_all(stage.at("tools")).unwrap();
    let tool = stage.at("tools/mytool");
    // By another process: a child that another test forks meanwhile would hold it open for writing.
    let write = |text: &str| {
        let write = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let mut shell = std::process::Command::new("/bin/sh");
        assert!(shell.args(["-c", write, tool.to_str().unwrap(), text]).status().unwrap().success());
    };
    write("#!/bin/sh\n");
    stage.goals.clear();
    stage.gate("g", "mytool", PASS).cacheable = true;
    stage.vars.retain(|(name, _)| name != "PATH");
    stage.vars.push(("PATH".into(), format!("{}:/usr/bin:/bin", stage.at("tools").display())));
    stage.chosen = Policy::passing(&[], &["LEVEL"]);
    let job = stage.job();
    let asked = |stage: &mut Stage, why: &str, cached: bool| {
        assert_eq!(stage.judge_and_keep(job.clone())[0].cached, cached, "{why}");
    };
    asked(&mut stage, "the first time", false);
    asked(&mut stage, "nothing changed", true);
    write("#!/bin/sh\n# newer\n");
    asked(&mut stage, "another tool", false);
    asked(&mut stage, "the same tool", true);
    stage.settings = "goals: {timeout_s: 50, env: [LEVEL]}\n".into();
    asked(&mut stage, "another limit", false);
    stage.vars.push(("LEVEL".into(), "2".into()));
    asked(&mut stage, "another variable", false);
    asked(&mut stage, "the same variable", true);
    stage.goals.clear();
    stage.gate("g", "mytool", "exit_code < 1").cacheable = true;
    asked(&mut stage, "another condition", false);
}

#[test]
fn paths_say_what_a_kept_answer_is_about() {
    let mut stage = counting();
    stage.goals.clear();
    let hard = stage.gate("g", "echo x >> ../runs", PASS);
    hard.cacheable = true;
    hard.paths = vec!["src/**".into()];
    let job = |scope: &str, head: char| {
        let mut job = stage.job();
        job.key.head = CommitId::new(head.to_string().repeat(40)).unwrap();
        job.scopes = BTreeMap::from([(id("g"), scope.to_owned())]);
        job
    };
    let (one, elsewhere, other) = (job("one", 'a'), job("one", 'c'), job("two", 'c'));
    assert!(!stage.judge_and_keep(one)[0].cached);
    assert!(stage.judge_and_keep(elsewhere)[0].cached, "what changed lies elsewhere");
    assert!(!stage.judge_and_keep(other)[0].cached);
}

#[test]
fn a_gate_that_wants_a_copy_of_the_commit_runs_there() {
    let mut stage = Stage::new();
    std::fs::create_dir_all(stage.at("copy")).unwrap();
    stage.gate("copied", "test ! -e .peers && test \"$PEERS_REPO\" = \"$(pwd)\"", PASS).tree =
        TreeChoice::Copy;
    stage.gate("heavy", "test ! -e .peers", PASS).expensive = true;
    stage.gate("here", "test -e .peers", PASS);
    let job = GateJob { copy: Some(GateCopy::made(stage.at("copy"))), ..stage.job() };
    let verdicts = stage.judge_job(job);
    let places: Vec<_> = verdicts.iter().map(|j| (j.verdict.word(), j.place)).collect();
    assert_eq!(places, [("pass", Place::GateTree), ("pass", Place::GateTree), ("pass", Place::Live)]);
    // Without a copy (uncommitted changes) they run where the others do.
    let live = stage.judge();
    assert_eq!(live[0].place, Place::Live);
    assert_eq!(live[0].verdict.word(), "fail");
}

#[test]
fn a_pristine_tree_is_set_up_each_time_and_a_copy_when_its_files_change() {
    let mut stage = Stage::new();
    stage.settings = "setup: {commands: [{cmd: 'echo x >> made'}, {cmd: 'test -e made'}]}\n".into();
    for name in ["copy", "clean"] {
        std::fs::create_dir_all(stage.at(name)).unwrap();
    }
    stage.gate("g", "test -e made", PASS).tree = TreeChoice::Copy;
    let made = |stage: &Stage, name: &str| {
        std::fs::read_to_string(stage.at(name).join("made")).unwrap_or_default().lines().count()
    };
    let copied = |setup: &str, fresh| GateJob {
        copy: Some(GateCopy { dir: stage.at("copy"), fresh }),
        setup: Some(setup.into()),
        ..stage.job()
    };
    let jobs = [copied("one", true), copied("one", false), copied("two", false)];
    let verdicts = stage.with(stage.book("argv: [nobody]"), async |mut procs, mut arriving| {
        use peers_run::ports::Procs as _;
        let mut words = Vec::new();
        for job in jobs {
            procs.judge(job);
            words.push(crate::stage::judged(&mut arriving).await[0].verdict.word());
        }
        words
    });
    assert_eq!((verdicts, made(&stage, "copy")), (vec!["pass"; 3], 2));
    let clean = GateJob { place: Place::Pristine, dir: Some(stage.at("clean")), ..stage.job() };
    stage.judge_job(clean.clone());
    stage.judge_job(clean);
    assert_eq!(made(&stage, "clean"), 2);
}

#[test]
fn the_command_of_the_setup_that_runs_is_told_until_it_is_over() {
    use peers_run::ports::Procs as _;
    use peers_run::procs::Live;

    let mut stage = Stage::new();
    stage.settings = "setup: {commands: [{cmd: 'mkfifo held && cat held'}]}\n".into();
    std::fs::create_dir_all(stage.at("clean")).unwrap();
    stage.gate("g", "true", PASS);
    let clean = GateJob { place: Place::Pristine, dir: Some(stage.at("clean")), ..stage.job() };
    let held = stage.at("clean").join("held");
    stage.with(stage.book("argv: [nobody]"), async |mut procs, mut arriving| {
        let progress = procs.progress();
        let told = || match progress.now() {
            Some(Live::Gates(live)) => live.setup,
            _ => None,
        };
        procs.judge(clean);
        crate::stage::until(|| held.exists()).await;
        assert_eq!(told().as_deref(), Some("mkfifo held && cat held"));
        std::fs::write(&held, "").unwrap();
        crate::stage::until(|| told().is_none()).await;
        assert_eq!(words(&crate::stage::judged(&mut arriving).await), [("g", "pass")]);
    });
}

#[test]
fn where_the_setup_fails_every_gate_is_red() {
    let mut stage = Stage::new();
    stage.settings =
        "setup: {commands: [{cmd: 'echo no such package >&2; exit 4'}, {cmd: ': > second'}]}\n".into();
    std::fs::create_dir_all(stage.at("clean")).unwrap();
    stage.gate("g", "true", PASS);
    let clean = GateJob { place: Place::Pristine, dir: Some(stage.at("clean")), ..stage.job() };
    let verdicts = stage.judge_job(clean);
    assert_eq!(verdicts[0].verdict.word(), "fail", "{verdicts:?}");
    let expected = "setup of the checkout failed: `echo no such package >&2; exit 4` ended with exit code 4: no such package";
    assert_eq!(verdicts[0].verdict.diagnostic(), expected);
    assert!(!stage.at("clean/second").exists());
    // The work tree is nobody's to set up.
    assert_eq!(words(&stage.judge()), [("g", "pass")]);
}

#[test]
fn a_setup_at_its_limit_is_red() {
    let mut stage = Stage::new();
    stage.settings = "setup: {commands: [{cmd: 'tail -f /dev/null', timeout_s: 1}]}\n".into();
    std::fs::create_dir_all(stage.at("clean")).unwrap();
    stage.gate("g", "true", PASS);
    let clean = GateJob { place: Place::Pristine, dir: Some(stage.at("clean")), ..stage.job() };
    let verdicts = stage.judge_job(clean);
    assert_eq!(verdicts[0].verdict.word(), "fail", "{verdicts:?}");
    assert!(verdicts[0].verdict.diagnostic().contains("reached its limit of 1s"), "{verdicts:?}");
}
