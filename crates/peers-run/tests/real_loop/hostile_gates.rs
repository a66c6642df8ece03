//! Gates that run hostile code: the verdict is the documented one, nothing survives, memory stays small.
//!
//! The loop runs them as it runs any gate. Each test asks [`World::dead`] whether a process of the run
//! lives, and [`peak`] how much memory the loop ever had.

use std::fs;

use peers_model::record::Record;
use peers_model::verdict::{Judged, Place};
use serde_json::Value;

use crate::world::{Ran, World, sh};

/// The loop never has more memory than this, KiB. Holds in a debug build too.
const PEAK: u64 = 64 * 1024;

/// A goal entry that is judged by its exit code.
fn entry(id: &str, cmd: &str, more: &str) -> String {
    format!("- {{id: {id}, type: hard, cmd: {}, pass_when: exit_code == 0{more}}}\n", Value::from(cmd))
}

/// A command of a gate that notes how much memory the loop had.
fn note(w: &World) -> String {
    format!("grep VmHWM /proc/$PPID/status > {}", w.path("peak").display())
}

/// Runs a loop of one idle turn with these gates one after the other, and a last one that notes how much
/// memory the loop had.
fn hostile(w: &World, entries: &str) -> Ran {
    w.config("goals: {parallel: 1, trial_s: 0}\n");
    w.goals(&(entries.to_owned() + &entry("zz-peak", &format!("{}; false", note(w)), "")));
    w.run(&["--max-ticks=1", "--no-skeptic"])
}

/// How much memory the loop had at most, KiB.
fn peak(w: &World) -> u64 {
    w.noted("peak").chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// The first verdict on a gate.
fn verdict(w: &World, id: &str) -> Judged {
    let gates = |r| if let Record::Gates(gates) = r { Some(gates.verdicts) } else { None };
    let all = w.records().into_iter().filter_map(gates).flatten();
    all.into_iter().find(|judged| judged.goal.as_str() == id).unwrap_or_else(|| panic!("no verdict on {id}"))
}

/// Runs one gate; it is judged so, the loop ends as usual, and nothing is left of it.
fn judged(cmd: &str, more: &str, word: &str) -> (World, Judged) {
    let w = World::new();
    hostile(&w, &entry("hostile", cmd, more)).stopped("max_ticks", 0);
    let judged = verdict(&w, "hostile");
    assert_eq!(judged.verdict.word(), word, "{judged:?}");
    let peak = peak(&w);
    assert!(peak < PEAK, "{peak} KiB");
    w.settled();
    (w, judged)
}

#[test]
fn a_daemon_that_forked_twice_and_closed_all_its_descriptors_is_ended() {
    let cmd =
        "mkfifo ../never; (setsid sh -c 'exec 0<&- 1>&- 2>&-; (read x < ../never) & echo $! > ../daemon' &)
        while [ ! -s ../daemon ]; do :; done; kill -0 $(cat ../daemon)";
    let (w, judged) = judged(cmd, "", "pass");
    assert_eq!(judged.leaked, 1, "{judged:?}");
    assert!(!fs::exists(format!("/proc/{}", w.noted("daemon"))).unwrap());
}

#[test]
fn three_hundred_megabytes_on_both_streams_cost_neither_verdict_nor_memory() {
    let cmd = "head -c 150000000 /dev/zero | tr '\\0' x & head -c 150000000 /dev/zero | tr '\\0' y >&2 & wait; exit 7";
    let (w, judged) = judged(cmd, "", "fail");
    assert!(judged.verdict.diagnostic().contains("exit_code=7; stdout-tail='xxx"), "{judged:?}");
    let log = fs::metadata(w.repo().join(".peers/log/gates/tick-00000-hostile.log")).unwrap().len();
    assert!((64 << 20..65 << 20).contains(&log), "{log} bytes of log");
}

#[test]
fn a_gate_that_deletes_the_work_tree_stops_the_loop() {
    let w = World::new();
    let cmd = format!("cp -a \"$PWD\" ../saved; rm -rf \"$PWD\"; {}", note(&w));
    let ran = hostile(&w, &entry("hostile", &cmd, ""));
    let reasons = ["tamper:peer-dir", "tamper:git"];
    let told = reasons.iter().any(|reason| ran.last_line() == format!("Stopped: {reason}"));
    assert!(told && ran.code == 5, "{ran:#?}");
    assert!(w.ticks().is_empty() && !w.repo().exists(), "nothing is made in its place");
    assert!(peak(&w) < PEAK, "{} KiB", peak(&w));
    w.dead();
}

#[test]
fn a_gate_that_deletes_its_clean_checkout_is_judged_by_its_exit_and_spoils_no_other() {
    let w = World::new();
    let gone = "test -f fixed && case $PWD in */pristine/*) rm -rf \"$PWD\";; esac";
    let report = "echo '{\"n\": 1}' > report.json; case $PWD in */pristine/*) rm -rf \"$PWD\";; esac";
    let report = format!(
        "- {{id: b-report, type: hard, cmd: {}, pass_when: \"json('report.json').n == 1\"}}\n",
        Value::from(report)
    );
    w.put(".gitignore", ".peers/\nreport.json\n");
    w.commit("Ignore the report");
    let other = format!("{}; test -f fixed && test -f readme.txt", note(&w));
    w.goals(&(entry("a-gone", gone, "") + &report + &entry("c-other", &other, "")));
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    let proofs =
        w.records().into_iter().filter_map(|r| if let Record::Proof(p) = r { Some(p) } else { None });
    let proof: Vec<Judged> = proofs.flat_map(|p| p.verdicts).collect();
    let words: Vec<(&str, &str)> = proof.iter().map(|j| (j.goal.as_str(), j.verdict.word())).collect();
    assert_eq!(words, [("a-gone", "pass"), ("b-report", "fail"), ("c-other", "pass")], "{proof:?}");
    assert!(proof.iter().all(|j| j.place == Place::Pristine));
    assert!(peak(&w) < PEAK, "{} KiB", peak(&w));
    w.settled();
}

#[test]
fn a_gate_that_makes_itself_green_by_an_edit_proves_nothing() {
    let w = World::new();
    w.gate(&format!("{}; test -f fixed || {{ echo yes > fixed; exit 1; }}", note(&w)));
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("max_ticks", 0);
    assert!(w.has("fixed") && w.exit().proof.is_none());
    assert!(peak(&w) < PEAK, "{} KiB", peak(&w));
    w.settled();
}

#[test]
fn a_gate_that_writes_into_the_descriptors_of_the_loop_stops_it() {
    let w = World::new();
    // A pipe that nobody reads any more must not end it half-way.
    let cmd = "trap '' PIPE; for fd in /proc/$PPID/fd/*; do echo forged >> $fd; done 2>/dev/null; exit 0";
    let ran = hostile(&w, &entry("hostile", cmd, ""));
    assert_eq!((ran.last_line(), ran.code), ("Stopped: tamper:store", 5), "{ran:#?}");
    assert!(w.ticks().is_empty(), "nobody built on it");
    // What it wrote is kept aside, and the next run goes on.
    w.gate("test -f fixed");
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn a_hostile_gate_in_a_turn_of_hostile_gates_changes_no_other_verdict() {
    let w = World::new();
    let entries = [
        entry("a-flood", "yes & wait", ", timeout_s: 1"),
        entry("b-green", "test -f readme.txt", ""),
        entry("c-kills", "kill -9 0; exit 0", ""),
        entry("d-green", "test -f readme.txt", ""),
        entry("e-stops", "(setsid sh -c 'kill -STOP $$' &); kill -STOP $$", ", timeout_s: 1"),
        entry("f-red", "test -f fixed", ""),
    ];
    w.play("idle", &[&[&sh("true"), "handoff"]]);
    hostile(&w, &entries.concat()).stopped("max_ticks", 0);
    let words: Vec<String> = ["a-flood", "b-green", "c-kills", "d-green", "e-stops", "f-red"]
        .into_iter()
        .map(|id| verdict(&w, id).verdict.word().to_owned())
        .collect();
    assert_eq!(words, ["timeout", "pass", "fail", "pass", "timeout", "fail"]);
    w.settled();
}
