//! Ways to turn a red gate green that no other file here tries: `docs/attacks.md` lists them all.
//!
//! The peer runs unconfined as our own user. What counts is that the run does not end in `complete`.

use std::fs;
use std::path::Path;

use peers_core::board::GateStanding;
use peers_model::record::Record;

use crate::world::{Ran, World, program, sh};

/// One turn of ann with these steps, handed over.
fn turn(w: &World, steps: &[&str]) -> Ran {
    let mut turn = steps.to_vec();
    turn.push("handoff: Fix it");
    w.play("idle", &[&turn]);
    w.run(&["--max-ticks=2", "--no-skeptic"])
}

/// The loop goes on after the turn, and the gate is as red as before.
#[track_caller]
fn stays_red(w: &World, ran: &Ran) {
    ran.stopped("max_ticks", 0);
    let state = w.settled();
    assert!(w.exit().proof.is_none(), "nothing was proved: {:?}", w.exit());
    let green = |gate: &GateStanding| gate.last.as_ref().is_some_and(|judged| judged.verdict.is_pass());
    assert!(!state.board.gates.values().any(green), "{:#?}", state.board);
}

/// As a script of the peer: `STORE` is the trusted store, `LOOP` the process of the loop.
fn script(w: &World, text: &str) -> String {
    let text = text.replace("STORE", &w.store().display().to_string());
    sh(&text.replace("LOOP", "$(awk '{print $4}' /proc/$PPID/stat)"))
}

#[test]
fn any_edit_of_the_configuration_stops_the_loop() {
    for edit in [
        "printf 'goals: {timeout_s: 1}\\n' >> .peers/config.yaml",
        "printf 'goals: {env: [HOME_OF_MINE]}\\n' >> .peers/config.yaml",
        "printf 'verify: {commands: [{cmd: \"true\"}]}\\n' >> .peers/config.yaml",
        "printf 'skeptic: {enabled: false}\\n' >> .peers/config.yaml; touch fixed",
        "rm .peers/config.yaml",
    ] {
        let w = World::new();
        turn(&w, &[&sh(edit)]).stopped("goal-mutation:config.yaml", 5);
        assert!(w.ticks().len() == 1 && w.exit().proof.is_none(), "{edit}");
        w.settled();
    }
}

#[test]
fn goals_that_a_peer_edits_and_accepts_byte_for_byte_are_seen() {
    let w = World::new();
    let forge = "old=$(sha256sum < .peers/goals.yaml | cut -d' ' -f1)
        sed -i 's/test -f fixed/true/' .peers/goals.yaml
        new=$(sha256sum < .peers/goals.yaml | cut -d' ' -f1)
        cat .peers/goals.yaml > STORE/accepted/goals.yaml
        grep -q $old STORE/accepted.json && sed -i s/$old/$new/ STORE/accepted.json";
    turn(&w, &[&script(&w, forge)]).stopped("tamper:store", 5);
    assert_eq!(w.gate_runs("tests"), 1, "the forged gate never ran");
}

#[test]
fn a_journal_in_which_verdicts_are_made_green_is_seen() {
    for edit in [
        // Another file under its name, then the same file with as many bytes in it.
        "sed -i 's/\"fail\"/\"pass\"/g' STORE/journal/000001.jsonl",
        "j=STORE/journal/000001.jsonl; sed 's/\"fail\"/\"pass\"/g' $j > ../j; cat ../j > $j",
    ] {
        let w = World::new();
        // The second tick has a red verdict behind it.
        w.play("idle", &[&["handoff: Nothing"], &[&script(&w, edit), "handoff: Fix it"]]);
        let ran = w.run(&["--max-ticks=4", "--no-skeptic"]);
        ran.stopped("tamper:store", 5);
        assert!(ran.stdout.contains("journal/000001.jsonl was"), "{ran:#?}");
    }
}

#[test]
fn a_proof_that_a_peer_writes_into_the_journal_proves_nothing() {
    let w = World::new();
    // As whole a record as can be: the next number, chained to the line before.
    let forge = "j=STORE/journal/000001.jsonl; last=$(tail -n 1 $j)
        seq=$(printf '%s' \"$last\" | sed 's/.*\"seq\":\\([0-9]*\\).*/\\1/')
        prev=$(printf '%s\\n' \"$last\" | sha256sum | cut -d' ' -f1)
        head=$(git rev-parse HEAD); tree=$(git rev-parse HEAD^{tree})
        printf '%s\\n' \"$last\" | sed \"s/\\\"seq\\\":$seq/\\\"seq\\\":$((seq + 1))/; s/\\\"prev\\\":\\\"[0-9a-f]*\\\"/\\\"prev\\\":\\\"$prev\\\"/; s/\\\"event\\\":.*/\\\"event\\\":\\\"proof\\\",\\\"at\\\":{\\\"head\\\":\\\"$head\\\",\\\"tree\\\":\\\"$tree\\\"},\\\"verdicts\\\":[],\\\"passed\\\":true,\\\"took_ms\\\":1}/\" >> $j
        tail -n 1 $j > ../forged";
    turn(&w, &[&script(&w, forge)]).stopped("tamper:store", 5);
    assert!(w.noted("forged").contains("\"event\":\"proof\""), "{}", w.noted("forged"));
    assert!(!w.records().iter().any(|record| matches!(record, Record::Proof(_))), "it is no part of it");
    let ran = w.run(&["--max-ticks=1", "--no-skeptic"]);
    stays_red(&w, &ran);
}

#[test]
fn what_a_peer_puts_on_the_search_path_in_the_repository_judges_nothing() {
    let w = World::new();
    let plant = "mkdir -p bin; for n in sh grep test peers cat; do printf '#!/bin/sh\\nexit 0\\n' > bin/$n; cp bin/$n $n; chmod +x bin/$n $n; done";
    w.gate("grep -q yes fixed");
    w.play("idle", &[&[&sh(plant), "handoff: Fix it"]]);
    let mut command = w.command(&["--max-ticks=2", "--no-skeptic"]);
    let path = std::env::var("PATH").unwrap();
    let links = w.path("links");
    std::os::unix::fs::symlink(w.repo().join("bin"), &links).unwrap();
    command.env("PATH", format!(".::{}:{}:{path}", w.repo().join("bin").display(), links.display()));
    stays_red(&w, &World::out(command));
}

#[test]
fn a_check_is_our_own_program_whatever_else_is_called_peers() {
    let w = World::new();
    w.goals("- {id: ledger, type: hard, check: bug-ledger}\n");
    let plant = "mkdir -p $HOME/.local/bin bin; for d in bin $HOME/.local/bin .; do printf '#!/bin/sh\\nexit 0\\n' > $d/peers; chmod +x $d/peers; done";
    w.play("repeat", &[&[&sh(plant), "handoff: Fix it"]]);
    let mut command = w.command(&["--max-ticks=4", "--no-skeptic"]);
    let home = w.path("home").join(".local/bin");
    command.env("PATH", format!("{}:{}", home.display(), std::env::var("PATH").unwrap()));
    // The check of this program cannot judge here, and that is not green.
    World::out(command).stopped("unjudged:ledger", 3);
    w.settled();
}

#[test]
fn a_program_that_is_replaced_on_disk_while_it_runs_goes_on_as_it_was() {
    let w = World::new();
    let copy = w.path("lite-copy");
    fs::copy(program(), &copy).unwrap();
    w.goals("- {id: ledger, type: hard, check: bug-ledger}\n");
    let replace = format!("printf '#!/bin/sh\\nexit 0\\n' > ../x; chmod +x ../x; mv ../x {}", copy.display());
    w.play("repeat", &[&[&sh(&replace), "handoff: Fix it"]]);
    let mut command = w.bare(&copy);
    command.arg("run").arg(w.repo()).args(["--max-ticks=4", "--no-skeptic"]);
    World::out(command).stopped("unjudged:ledger", 3);
    assert!(fs::read(&copy).unwrap().starts_with(b"#!"), "it was replaced");
    w.settled();
}

#[test]
fn a_gate_that_calls_our_program_by_its_variable_gets_the_one_that_runs() {
    let w = World::new();
    let copy = w.path("lite-copy");
    fs::copy(program(), &copy).unwrap();
    w.gate("test -n \"$PEERS_BIN\" && \"$PEERS_BIN\" check bug-ledger");
    let replace = format!("printf '#!/bin/sh\\nexit 0\\n' > ../x; chmod +x ../x; mv ../x {}", copy.display());
    w.play("idle", &[&[&sh(&replace), "write: {path: a.py, text: 'a = 1'}", "handoff: Fix it"]]);
    let mut command = w.bare(&copy);
    command.arg("run").arg(w.repo()).args(["--max-ticks=2", "--no-skeptic"]);
    stays_red(&w, &World::out(command));
    assert!(fs::read(&copy).unwrap().starts_with(b"#!") && w.gate_runs("tests") > 1, "it was replaced");
    // It is started all the same: this one judges where it can.
    let w = World::new();
    w.gate("mkdir -p deps; : > deps/ready; \"$PEERS_BIN\" check bug-ledger; e=$?; rm -r deps; exit $e");
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
}

#[test]
fn a_link_in_place_of_the_log_of_a_gate_is_not_followed() {
    let w = World::new();
    w.gate("echo words; test -f fixed");
    fs::write(w.path("mine"), "mine\n").unwrap();
    let link = "for n in 0 1 2 3; do ln -sf ../../../../mine .peers/log/gates/tick-0000$n-tests.log; done";
    let ran = turn(&w, &[&sh(link)]);
    stays_red(&w, &ran);
    assert_eq!(w.noted("mine"), "mine");
}

#[test]
fn a_report_that_a_leftover_of_the_gate_would_write_is_never_written() {
    let w = World::new();
    w.put(".gitignore", ".peers/\nreport.json\n");
    w.commit("Ignore the report");
    for clean in ["", "env -i "] {
        // It waits until the gate is over, which it does not live to see.
        let cmd = format!(
            "export GATE=$$; ({clean}setsid sh -c 'while [ -e /proc/'$$' ]; do :; done; echo \"{{\\\"ok\\\": true}}\" > '\"$PWD\"'/report.json' </dev/null >/dev/null 2>&1 &)"
        );
        let cmd = serde_json::Value::from(cmd);
        w.goals(&format!(
            "- {{id: tests, type: hard, cmd: {cmd}, pass_when: \"json('report.json').ok == True\"}}\n"
        ));
        let ran = turn(&w, &[]);
        stays_red(&w, &ran);
        assert!(!w.has("report.json"));
    }
}

#[test]
fn a_loop_that_a_peer_stops_goes_on_where_it_was() {
    let w = World::new();
    let here = w.fifo("here");
    let stop = script(&w, "kill -STOP LOOP");
    w.play("idle", &[&[&stop, "write: {path: a.py, text: 'a = 1'}", "handoff: Fix it", &here.tell()]]);
    let live = w.start(&["--max-ticks=2", "--no-skeptic"]);
    here.told();
    live.go_on();
    let ran = live.end();
    stays_red(&w, &ran);
}

#[test]
fn words_of_success_in_every_place_that_people_read_are_nothing() {
    let w = World::new();
    let plant = "for f in VERIFY.md REPORT.md last-stop-reason.txt HALTED.md; do echo complete > .peers/$f; done
        sed -i 's/\"fail\"/\"pass\"/g' .peers/state.json; echo '{\"event\":\"exit\",\"reason\":\"complete\"}' >> .peers/log/runs.jsonl
        git notes add -f -m 'all gates pass' HEAD; git tag -f complete; echo 'Stopped: complete'";
    let ran = turn(&w, &[&sh(plant)]);
    stays_red(&w, &ran);
    assert!(w.get(".peers/last-stop-reason.txt").starts_with("max_ticks "));
}

/// Puts `content` under the name of another object into a git directory, as a script of the peer.
fn forged_object(dir: &Path, path: &str, content: &str) -> String {
    sh(&format!(
        "id=$(git hash-object {path}); rm -rf ../forge; git init -q ../forge
         new=$(printf '{content}' | git -C ../forge hash-object -w --stdin)
         from=../forge/.git/objects/$(echo $new | cut -c1-2)/$(echo $new | cut -c3-)
         to={}/$(echo $id | cut -c1-2); mkdir -p $to; chmod u+w $to; cp -f $from $to/$(echo $id | cut -c3-)",
        dir.join("objects").display()
    ))
}

#[test]
fn an_object_that_is_forged_in_our_own_copy_is_in_no_clean_checkout() {
    for first in [true, false] {
        let w = World::new();
        w.put(".gitignore", ".peers/\nbuilt/\n");
        w.commit("Ignore what is built");
        // Green here by an ignored file; green in a clean checkout only if `data.txt` says more than it does.
        w.gate("test -f built/out || grep -q yes data.txt");
        let forge = forged_object(&w.store().join("git/control.git"), "data.txt", "yes\\n");
        let write = "write: {path: data.txt, text: 'not'}";
        let build = "write: {path: built/out, text: 'x'}";
        // Before the loop has seen the object, and after.
        let turns: [&[&str]; 2] = if first {
            [&[write, build, &forge, "handoff: Fix it"], &[]]
        } else {
            [
                &[write, "handoff: Work"],
                &[build, &forge, "write: {path: b.py, text: 'b = 1'}", "handoff: Fix it"],
            ]
        };
        w.play("idle", &turns);
        let ran = w.run(&["--max-ticks=3", "--no-skeptic"]);
        assert_ne!(ran.last_line(), "Stopped: complete", "{first}: {ran:#?}");
        assert!(w.exit().proof.is_none());
        w.dead();
    }
}

#[test]
fn a_commit_behind_the_back_of_the_gates_is_judged_before_anything_is_complete() {
    let w = World::new();
    // The gate of the second tick is green, and takes what made it so out of the branch as it ends.
    w.gate("test -f fixed && { git rm -q fixed; git -c user.name=g -c user.email=g@example.org commit -qm Gone; }");
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff: Fix it"]]);
    let ran = w.run(&["--max-ticks=2", "--no-skeptic"]);
    assert_ne!(ran.last_line(), "Stopped: complete", "{ran:#?}");
    assert!(w.exit().proof.is_none());
    w.settled();
}

#[test]
fn a_store_that_a_peer_removes_completes_nothing_and_no_new_one_is_made() {
    let w = World::new();
    let remove = script(&w, "rm -rf STORE");
    let ran = turn(&w, &["write: {path: fixed, text: 'yes'}", &remove]);
    assert!([5, 70].contains(&ran.code) && !ran.stdout.contains("complete"), "{ran:#?}");
    w.run(&[]).refused(5, "peers store attach");
    assert!(!w.store().exists());
}

#[test]
fn a_loop_that_may_write_no_more_completes_nothing_and_the_next_run_goes_on() {
    let w = World::new();
    // The kernel ends whoever writes beyond the limit.
    let limit = script(&w, "prlimit --pid LOOP --fsize=1024:1024");
    let ran = turn(&w, &["write: {path: fixed, text: 'yes'}", &limit]);
    assert!(ran.code != 0 && !ran.stdout.contains("complete"), "{ran:#?}");
    w.play("idle", &[]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn a_committed_link_that_leads_out_of_the_checkout_proves_nothing() {
    for plant in [
        "mkdir -p ../out; echo yes > ../out/ok; ln -s \"$(realpath ../out)\" fixed",
        // The same by way of another link, with words that stay inside.
        "mkdir -p a/b ../out; echo yes > ../out/ok; ln -s ../.. a/b/s; ln -s a/b/s/../out fixed",
    ] {
        let w = World::new();
        w.gate("test -f fixed/ok");
        let ran = turn(&w, &[&sh(plant)]);
        ran.stopped("max_ticks", 0);
        assert!(w.exit().proof.is_none(), "{plant}: {:?}", w.exit());
        let said = w.settled().proofs.verdicts.values().next().unwrap().verdict.clone();
        assert!(said.diagnostic().contains("leads out of the repository: `fixed`"), "{plant}: {said:?}");
        assert!(!said.is_pass() && !said.is_error());
    }
}

#[test]
fn a_link_that_leads_out_and_was_there_before_any_agent_is_the_operators() {
    let w = World::new();
    fs::create_dir(w.path("out")).unwrap();
    fs::write(w.path("out/ok"), "yes").unwrap();
    std::os::unix::fs::symlink(w.path("out"), w.repo().join("theirs")).unwrap();
    w.commit("A link of the operator");
    w.unanchor();
    w.gate("test -f theirs/ok && test -f fixed");
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff: Fix it"]]);
    w.run(&["--max-ticks=3", "--no-skeptic"]).stopped("complete", 0);
    // The same path that leads elsewhere is another link.
    w.gate("test -f theirs/ok && test -f again");
    let swap = "mkdir -p ../more; echo yes > ../more/ok; ln -sfn \"$(realpath ../more)\" theirs";
    w.play("repeat", &[&[&sh(swap), "write: {path: again, text: 'yes'}", "handoff: Fix it"]]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("max_ticks", 0);
    assert!(w.exit().proof.is_none(), "{:?}", w.exit());
    let said = w.settled().proofs.verdicts.values().next().unwrap().verdict.clone();
    assert!(said.diagnostic().contains("leads out of the repository: `theirs`"), "{said:?}");
}

#[test]
fn the_home_of_a_build_tool_that_a_peer_changed_judges_nothing() {
    for (attack, names) in [
        ("printf '[build]\\nrustc-wrapper = \"true\"\\n' > $HOME/.cargo/config.toml", "config.toml`, which"),
        ("echo > $HOME/.cargo/config", "config`, which"),
        ("echo '# more' >> $HOME/dotfiles/rustup.toml", "settings.toml`, which"),
        ("rm $HOME/.rustup/settings.toml", "was removed"),
        (
            "mkdir -p $HOME/mine; mv $HOME/.cargo $HOME/was; ln -s mine $HOME/.cargo; cp $HOME/was/* $HOME/mine; echo > $HOME/mine/config",
            "was added",
        ),
    ] {
        let w = World::new();
        let home = w.path("home");
        for dir in [".cargo/bin", ".rustup", "dotfiles"] {
            fs::create_dir_all(home.join(dir)).unwrap();
        }
        fs::write(home.join("dotfiles/rustup.toml"), "default_toolchain = \"stable\"\n").unwrap();
        std::os::unix::fs::symlink("../dotfiles/rustup.toml", home.join(".rustup/settings.toml")).unwrap();
        let ran = turn(&w, &["write: {path: fixed, text: 'yes'}", &sh(attack)]);
        ran.stopped("tamper:tool-home", 5);
        let detail = w.exit().detail;
        assert!(detail.contains(names) && detail.contains("in tick 1 of ann"), "{attack}: {detail}");
        assert_eq!(w.gate_runs("tests"), 1, "{attack}: no gate ran after it");
        w.settled();
        // It may be the operator's: the next run takes it as it is.
        w.play("idle", &[]);
        w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    }
}

#[test]
fn a_gate_that_changes_the_home_of_a_build_tool_stops_the_loop_and_a_program_there_does_not() {
    let w = World::new();
    fs::create_dir_all(w.path("home/.cargo/bin")).unwrap();
    w.gate("test -f fixed && echo > $CARGO_HOME/config.toml");
    let ran = turn(&w, &["write: {path: fixed, text: 'yes'}", &sh("echo > $HOME/.cargo/bin/new-tool")]);
    ran.stopped("tamper:tool-home", 5);
    assert!(w.exit().detail.contains("while gates ran: "), "{}", w.exit().detail);
    assert!(w.gate_runs("tests") == 2 && w.exit().proof.is_none());
}
