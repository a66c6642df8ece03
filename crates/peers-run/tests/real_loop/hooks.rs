//! The operator's hooks: when they run, what they are told, and that they change no verdict.

use peers_model::config::Hook;
use peers_model::record::{HookFailed, Record};
use peers_sys::signal::Signal;
use serde_json::{Value, json};

use crate::world::{FIX, World};

const KINDS: [&str; 6] = ["pre_turn", "post_turn", "pre_gate", "post_gate", "converge", "halt"];

/// One command of a hook, run by a shell.
fn shell(script: &str) -> Value {
    json!({"cmd": ["/bin/sh", "-c", script]})
}

/// The same commands for each of the six.
fn every_hook(commands: &Value) -> Value {
    KINDS.iter().map(|kind| ((*kind).to_owned(), commands.clone())).collect()
}

impl World {
    /// A configuration without a skeptic, with these hooks.
    fn hooks(&self, hooks: &Value) {
        self.config(&format!("skeptic: {{enabled: false}}\nhooks: {hooks}\n"));
    }

    /// What the hooks were told by [`World::listening`], in their order.
    fn heard(&self) -> Vec<Value> {
        let text = self.noted("heard");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    /// A hook that keeps what it is told, and sees whether another one runs beside it.
    fn listening(&self) -> Value {
        let (lock, heard) = (self.path("lock"), self.path("heard"));
        let script = format!(
            "mkdir {0} || echo '\"beside\"' >> {1}; cat >> {1}; rmdir {0}",
            lock.display(),
            heard.display()
        );
        json!([shell(&script)])
    }
}

#[test]
fn hooks_run_one_after_the_other_around_turns_and_gates_and_at_the_end() {
    let w = World::new();
    w.hooks(&every_hook(&w.listening()));
    w.play("idle", &[&["handoff: Nothing yet"], FIX]);
    w.run(&[]).stopped("complete", 0);
    let heard = w.heard();
    let order: Vec<&str> = heard.iter().map(|event| event["hook"].as_str().unwrap_or("beside")).collect();
    let expected = [
        // Red at the start, a turn, red still in its own look, and green after the second turn.
        "pre_gate",
        "post_gate",
        "pre_turn",
        "pre_gate",
        "post_gate",
        "post_turn",
        "pre_turn",
        "pre_gate",
        "post_gate",
        "post_turn",
        "pre_gate",
        "post_gate",
        "converge",
    ];
    assert_eq!(order, expected, "{heard:#?}");
    for event in &heard {
        assert_eq!((&event["schema"], &event["run_id"]), (&json!("peers.hook/1"), &heard[0]["run_id"]));
    }
    let turn = heard.iter().find(|event| event["hook"] == "post_turn").unwrap();
    assert_eq!((&turn["tick"], &turn["peer"], &turn["success"]), (&json!(1), &json!("ann"), &json!(true)));
    assert_eq!(turn["commits"], json!(w.tick(1).commits));
    assert_eq!((&turn["outcome"], &turn["gates"]), (&json!("handoff"), &json!({"tests": "fail"})));
    let proof = heard.iter().rfind(|event| event["hook"] == "pre_gate").unwrap();
    assert_eq!((&proof["place"], &proof["gates"]), (&json!("pristine"), &json!(["tests"])));
    let red = heard.iter().find(|event| event["hook"] == "post_gate").unwrap();
    assert_eq!(
        (&red["verdicts"][0]["id"], &red["verdicts"][0]["verdict"]),
        (&json!("tests"), &json!("fail"))
    );
    let end = heard.last().unwrap();
    assert_eq!((&end["reason"], &end["exit_code"]), (&json!("complete"), &json!(0)));
    assert_eq!(end["proof"]["tree"], json!(w.exit().proof.unwrap().tree));
    w.settled();
}

#[test]
fn halt_runs_for_every_other_stop_once_the_exit_is_recorded() {
    let w = World::new();
    let journal = w.store().join("journal");
    let look =
        format!("cat >> {}; grep -q '\"event\":\"exit\"' {}/*", w.path("heard").display(), journal.display());
    w.hooks(&json!({"halt": [shell(&look)], "converge": [shell("touch never")]}));
    let ran = w.run(&["--max-ticks=1"]);
    ran.stopped("max_ticks", 0);
    assert!(!ran.stderr.contains("hook `halt`"), "the exit was there: {}", ran.stderr);
    assert_eq!(w.heard()[0]["reason"], "max_ticks");
    assert!(!w.repo().join("never").exists());
    w.settled();
}

#[test]
fn a_hook_that_fails_hangs_or_is_not_there_is_told_and_changes_nothing() {
    let plain = World::new();
    plain.hooks(&json!({}));
    plain.play("idle", &[FIX]);
    plain.run(&[]).stopped("complete", 0);
    let w = World::new();
    let orphan = w.path("orphan");
    let hang =
        format!("sh -c 'echo $$ > {}; exec tail -f /dev/null' & exec tail -f /dev/null", orphan.display());
    w.hooks(&json!({
        "pre_turn": [shell("echo to-be-kept; exit 3"), {"cmd": ["./no-such-program"]}],
        "post_turn": [{"cmd": ["/bin/sh", "-c", hang], "timeout_s": 1}],
        "pre_gate": [shell("kill -9 $$")],
        "post_gate": [shell("exit 1")],
        "converge": [shell("exit 70")],
    }));
    w.play("idle", &[FIX]);
    let ran = w.run(&[]);
    ran.stopped("complete", 0);
    for told in [
        "hook `pre_turn`: `/bin/sh` ended with exit code 3; its output is in .peers/log/hooks/tick-00001-pre_turn.log",
        "hook `pre_turn`: `./no-such-program` could not be started",
        "hook `post_turn`: `/bin/sh` was ended at its limit of 1s",
        "hook `pre_gate`: `/bin/sh` died of signal 9",
        "hook `post_gate`: `/bin/sh` ended with exit code 1",
        "hook `converge`: `/bin/sh` ended with exit code 70",
    ] {
        assert!(ran.stderr.contains(told), "`{told}` is not in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("to-be-kept"), "never shown raw: {}", ran.stderr);
    let recorded = |r| if let Record::HookFailed(failed) = r { Some(failed) } else { None };
    let recorded: Vec<HookFailed> = w.records().into_iter().filter_map(recorded).collect();
    for hook in [Hook::PreTurn, Hook::PostTurn, Hook::PreGate, Hook::PostGate, Hook::Converge] {
        let of: Vec<&HookFailed> = recorded.iter().filter(|failed| failed.hook == hook).collect();
        assert!(of.iter().all(|failed| ran.stderr.contains(&failed.words())), "{of:?}");
        let mut ticks: Vec<u64> = of.iter().map(|failed| failed.tick.0).collect();
        ticks.dedup();
        // One in each tick, and one at the end for what failed again in a tick that has one.
        assert!(!of.is_empty() && of.len() <= ticks.len() + 1, "{of:?}");
        let times: u32 = of.iter().map(|failed| failed.times).sum();
        let told = ran.stderr.matches(&format!("hook `{}`: ", hook.word())).count();
        assert_eq!(usize::try_from(times).unwrap(), told, "{of:?}");
    }
    assert!(w.get(".peers/log/hooks/tick-00001-pre_turn.log").contains("to-be-kept\n"));
    let pid = w.noted("orphan");
    assert!(!std::fs::exists(format!("/proc/{}", pid.trim())).unwrap(), "ended with all that it started");
    let outcome = |w: &World| {
        let tick = w.tick(1);
        (tick.outcome, tick.success, tick.commits.len(), tick.gates, w.ticks().len(), w.exit().reason)
    };
    assert_eq!(outcome(&w), outcome(&plain));
    assert!(w.tick(1).warnings_emitted.is_empty(), "no prompt hears of it");
    w.settled();
}

#[test]
fn what_hooks_commit_or_edit_around_a_turn_is_no_peers() {
    let w = World::new();
    let commit = |name: &str| {
        shell(&format!(
            "test -f {name} && exit 0; echo x > {name}; git add {name}; \
             git -c user.name=ann -c user.email=ann@peers.local commit -qm 'handoff' -m 'Peer: ann'"
        ))
    };
    w.hooks(&json!({"pre_turn": [commit("before.py")], "post_turn": [commit("after.py")]}));
    w.play("repeat", &[&["write: {path: own.txt, append: 'x\n'}", "handoff: Own work"]]);
    let ran = w.run(&["--max-ticks=2"]);
    ran.stopped("max_ticks", 0);
    assert!(ran.stderr.contains("while a hook ran: that counts as yours"), "{}", ran.stderr);
    for tick in [1, 2] {
        let tick = w.tick(tick);
        assert_eq!((tick.commits.len(), tick.foreign.len()), (1, 0), "{tick:?}");
    }
    let seen: Vec<_> = w
        .records()
        .into_iter()
        .filter_map(|record| if let Record::CommitsSeen(seen) = record { Some(seen) } else { None })
        .collect();
    assert_eq!(seen.iter().map(|seen| seen.commits.len()).sum::<usize>(), 2);
    assert!(seen.iter().all(|seen| !seen.while_gates), "the operator's: {seen:?}");
    w.settled();
}

#[test]
fn gates_do_not_run_at_a_tree_that_a_hook_has_moved() {
    let w = World::new();
    w.hooks(&json!({"pre_gate": [shell("test -f fixed || echo yes > fixed")]}));
    let ran = w.run(&["--max-ticks=1"]);
    ran.stopped("max_ticks", 0);
    assert!(ran.stderr.contains("the work tree changed while gates ran (by a hook)"), "{}", ran.stderr);
    let first = w.records().into_iter().find_map(|record| {
        if let Record::Gates(gates) = record { Some(gates.verdicts[0].verdict.word()) } else { None }
    });
    assert_eq!((first, w.gate_runs("tests")), (Some("pass"), 1), "judged as it is now, and once");
}

#[test]
fn a_signal_ends_a_hook_before_a_turn_and_the_peer_never_starts() {
    let w = World::new();
    let here = w.fifo("here");
    let hang = format!(
        "echo $$ > {0}; echo here > {1}; exec tail -f /dev/null",
        w.path("pid").display(),
        w.path("here").display()
    );
    let heard = format!("cat >> {}", w.path("heard").display());
    w.hooks(&json!({
        "pre_turn": [shell(&hang), shell("touch second")],
        "halt": [shell(&heard)],
    }));
    w.play("idle", &[FIX]);
    let live = w.start(&[]);
    here.told();
    live.signal(Signal::Term);
    let ran = live.end();
    ran.stopped("interrupted", 143);
    assert!(
        ran.stderr.contains("hook `pre_turn`: `/bin/sh` was ended, since the loop stops"),
        "{}",
        ran.stderr
    );
    assert!(!std::fs::exists(format!("/proc/{}", w.noted("pid").trim())).unwrap());
    assert!(w.ticks().is_empty() && !w.repo().join("fixed").exists() && !w.repo().join("second").exists());
    assert_eq!(w.heard()[0]["exit_code"], 143);
    w.settled();
}

#[test]
fn a_hook_gets_what_a_gate_gets_and_its_name_and_no_secret() {
    let w = World::new();
    let out = w.path("env");
    w.hooks(
        &json!({"pre_turn": [shell(&format!("env > {0}; pwd >> {0}; echo $PEERS_TOKEN", out.display()))]}),
    );
    let mut command = w.command(&["--max-ticks=1"]);
    command.env("PEERS_TOKEN", "hunter2-hunter2");
    World::out(command).stopped("max_ticks", 0);
    let env = w.noted("env");
    for line in ["PEERS_HOOK=pre_turn", "PEERS_ITERATION=1", "PEERS_PEER_NAME=ann"] {
        assert!(env.lines().any(|found| found == line), "{line}: {env}");
    }
    assert!(env.contains(&format!("PEERS_RUN_ID={}", w.runs()[0].run_id)), "{env}");
    assert_eq!(env.lines().last(), Some(w.repo().canonicalize().unwrap().to_str().unwrap()));
    assert!(!env.contains("hunter2"), "{env}");
}

#[test]
fn a_hook_that_a_peer_adds_to_the_configuration_never_runs() {
    let w = World::new();
    w.hooks(&json!({}));
    let planted = w.path("planted");
    let hook = format!(
        "hooks: {}",
        json!({"post_turn": [{"cmd": ["touch", planted]}], "halt": [{"cmd": ["touch", planted]}]})
    );
    let edit = format!("sed -i 's|^hooks:.*|{hook}|' .peers/config.yaml");
    w.play("idle", &[&[&crate::world::sh(&edit), "handoff"]]);
    w.run(&[]).stopped("goal-mutation:config.yaml", 5);
    assert!(w.get(".peers/config.yaml").contains("planted"));
    assert!(!planted.exists());
}
