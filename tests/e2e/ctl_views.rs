//! What the controller shows of loops: the same next step wherever it is asked for.

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, pid_in, send};
use crate::support::{Ended, World, heard, holds, program};

/// A project whose gate stays red, and says why.
fn stuck() -> Fleet {
    let world = World::ready("echo it is broken; false");
    for peer in ["ann", "ben"] {
        let work = format!("- write: {{path: {peer}.txt, append: \"{{{{turn}}}}\\n\"}}");
        world.script(peer, &format!("after: repeat\nturns:\n- - say: I work\n  {work}\n  - handoff: Work\n"));
    }
    let fleet = Fleet::of(world);
    fleet.accept_config("goals: {stuck_halt_gates: [real], stuck_halt_after: 2}\n");
    fleet.ctl(&["start"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(11);
    fleet
}

#[test]
fn every_view_of_a_loop_has_the_same_next_step_and_it_leads_on() {
    let fleet = stuck();
    let data = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    let top = &data["projects"][0]["attention"];
    let (why, action) = (top["why"].as_str().unwrap(), top["action"].as_str().unwrap());
    assert!(why.starts_with("stuck:real: `echo it is broken; false`: it is broken"), "{why}");
    let log = action.strip_prefix("less ").unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("it is broken"), "{log}");
    let edit = format!("peers -C {} goals edit", data["projects"][0]["path"].as_str().unwrap());
    let step = format!(
        "read what it printed (`{action}`) and help or change the goal (`{edit}`), then `peers-ctl start demo`"
    );
    let said = |args: &[&str]| {
        let done = fleet.ctl(args).exits(0);
        done.out + &done.err
    };
    assert!(said(&["list", "--wide"]).contains(action));
    assert!(said(&["dashboard"]).contains(action));
    assert!(said(&["status"]).contains(&format!("\nnext step: {step}\n")));
    assert!(said(&["report", "-o", "-"]).contains(&format!("Next step: {step}\n")));
    let logs = said(&["logs"]);
    assert!(logs.contains(action) && !logs.contains("hint:"), "{logs}");
    assert!(!said(&["events"]).contains(" attention "), "events tell changes and not how things stand");
    let status = fleet.data("peers-ctl.status/1", &["status"], 0);
    let status = &status[0]["status"];
    assert_eq!([&status["attention"]["action"], &status["next_step"]], [action, step.as_str()]);
}

#[test]
fn events_of_a_journal_that_cannot_be_read_are_one_line_and_those_of_the_others_are_told() {
    let fleet = stuck();
    let journal = fleet.store().join("journal/000001.jsonl");
    fleet.another("other");
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    let done = fleet.ctl(&["events"]).exits(7);
    assert_eq!(
        done.out.lines().filter(|line| line.contains(" journal-unreadable ")).count(),
        1,
        "{}",
        done.out
    );
    assert!(done.out.starts_with("demo: ") && done.out.contains("\nother: "), "{}", done.out);
}

#[test]
fn files_that_lead_elsewhere_need_somebody_before_anything_ran() {
    let fleet = Fleet::new();
    let goals = fleet.at(".peers/goals.yaml");
    std::fs::remove_file(&goals).unwrap();
    let pipe = fleet.fifo("pipe");
    std::fs::rename(pipe, &goals).unwrap();
    let data = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    let top = &data["projects"][0]["attention"];
    assert_eq!((&top["level"], &top["code"]), (&"act".into(), &"unreadable-files".into()), "{top}");
    assert!(fleet.ctl(&["status"]).exits(0).out.contains(".peers/goals.yaml"));
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_project_that_can_run() {
    let fleet = Fleet::new();
    fleet.ctl(&["doctor", "demo"]).exits(0).out_has("\n0 errors, ");
    // Without a name it is the only one; each peer is asked through a child of the controller's own.
    let done = fleet.ctl(&["doctor", "--live"]).exits(0);
    assert!(done.out.contains("peer ann") && done.out.matches("it answered in").count() == 2, "{}", done.out);
}

#[test]
fn what_was_asked_for_and_is_not_there_is_an_error() {
    let fleet = Fleet::new();
    fleet.ctl(&["list", "demo", "other*"]).exits(3).err_has("no project fits `other*`");
    for command in [&["list"][..], &["dashboard"], &["list", "--wide"]] {
        fleet.ctl(&[command, &["other*"]].concat()).exits(1).err_has("no project fits `other*`");
        fleet.ctl(&[command, &["--state", "crashed"]].concat()).exits(1);
    }
    // Somebody who waits for one looks at none meanwhile.
    fleet.ctl(&["dashboard", "--live", "--frames", "1", "--state", "crashed"]).exits(0);
    for script in [&["completions", "bash"][..], &["man"]] {
        fleet.ctl(&[&["--json"], script].concat()).exits(2).out_has("has no JSON");
    }
    fleet.ctl(&["dashboard", "--project", "zz"]).exits(3);
    fleet.ctl(&["compare", "demo@zzz"]).exits(3);
    fleet.ctl(&["compare", "demo"]).exits(2);
    let done = fleet.ctl(&["--json", "compare", "demo", "demo", "zz"]).exits(7);
    let document: Value = serde_json::from_str(&done.out).unwrap();
    holds(&document["warnings"][0], &json!({"code": "not-found", "project": "zz"}));
    let none = World::bare();
    none.ctl(&["status"]).exits(1).err_has("hint: `peers-ctl new PATH`");
    let done = none.ctl(&["--json", "list", "--label", "{\n1\n}"]).exits(2);
    let failed: Value = serde_json::from_str(&done.out).unwrap();
    let said = failed["error"]["message"].as_str().unwrap();
    assert!(said.contains("{ 1 }") && said.contains("lower-case letter"), "{said}");
}

#[test]
fn a_tick_or_a_peer_that_is_not_there_is_told_alike_everywhere() {
    let fleet = stuck();
    for args in [&["peek", "demo", "--tick", "999", "--no-follow"][..], &["logs", "demo", "--tick", "999"]] {
        let done = fleet.ctl(args).exits(1);
        assert_eq!(
            done.err, "error: demo has no tick 999\nhint: `peers-ctl replay demo` lists its ticks\n",
            "{args:?}"
        );
    }
    let logs = &["logs", "demo", "--tick", "1", "--peer", "nosuch"];
    for args in [&logs[..], &["review", "--peer", "nosuch"], &["replay", "--peer", "nosuch"]] {
        let done = fleet.ctl(args).exits(1);
        assert!(
            done.err.contains("no peer is called `nosuch`; its peers: ann, ben\n"),
            "{args:?}: {}",
            done.err
        );
    }
    fleet.ctl(&["replay", "--class", "nosuch"]).exits(2).err_has("idle-timeout, absolute-timeout");
    let done = fleet.ctl(&["replay", "--from-tick", "5", "--to-tick", "3"]).exits(2);
    done.err_has("--from-tick 5 is after --to-tick 3");
    fleet.ctl(&["replay", "--from-tick", "1", "--to-tick", "1", "--class", "success"]).exits(0);
}

#[test]
fn a_peek_at_a_loop_that_does_not_run_comes_to_an_end() {
    let fleet = Fleet::hanging();
    fleet.ctl(&["start"]).exits(0);
    heard(&fleet.path("pipe"));
    let run = fleet.row("demo");
    let pid = run["pid"].as_u64().unwrap();
    fleet.ctl(&["peek", "--no-follow"]).exits(0);
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    fleet.ctl(&["wait", "--timeout", "1m"]);
    // Without --no-follow too.
    let done = fleet.ctl(&["peek"]).exits(0);
    done.err_has("was cut off when its run died");
    done.err_has("no loop of demo runs, so nothing follows");
}

#[test]
fn to_go_back_to_a_copy_of_the_registry_says_what_that_changes() {
    let fleet = Fleet::new();
    fleet.another("other");
    fleet.ctl(&["remove", "other"]).exits(0);
    // Copy 1 knows `other`, copy 2 does not know it yet.
    let done = fleet.ctl(&["registry", "restore", "1"]).exits(5);
    done.err_has("comes back: other");
    done.err_has("hint: `peers-ctl registry restore 1 --yes` does it");
    let done = fleet.ctl(&["registry", "restore", "2", "--yes"]).exits(0);
    done.err_has("has logs, and is in no registry any more: other");
    assert!(done.out.starts_with("copy 2, of ") && done.out.contains("is kept as copy 1"), "{}", done.out);
    fleet.ctl(&["registry", "restore", "9", "--yes"]).exits(1);
}

/// What the dashboard says of a project first: code, reason and action.
fn top(fleet: &Fleet, name: &str) -> (String, String, String) {
    let data = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    let rows = data["projects"].as_array().unwrap();
    let top = &rows.iter().find(|row| row["name"] == name).unwrap()["attention"];
    assert_eq!(top["level"], "act", "{top}");
    let text = |key: &str| top[key].as_str().unwrap_or_default().to_owned();
    (text("code"), text("why"), text("action"))
}

#[test]
fn what_every_start_would_refuse_for_needs_somebody() {
    let fleet = Fleet::new();
    for (from, to) in [(".peers", ".peers-away"), (".git", ".git-away")] {
        std::fs::rename(fleet.at(from), fleet.at(to)).unwrap();
        let (code, why, action) = top(&fleet, "demo");
        assert_eq!((code.as_str(), action.as_str()), ("refused", "peers-ctl doctor demo"), "{why}");
        std::fs::rename(fleet.at(to), fleet.at(from)).unwrap();
    }
    fleet.ctl(&["start", "--max-ticks", "1", "--wait"]);
    fleet.write(".git/MERGE_HEAD", &format!("{}\n", fleet.head()));
    let (code, why, _) = top(&fleet, "demo");
    assert!(code == "refused" && why.contains("merge"), "{why}");
    std::fs::remove_file(fleet.at(".git/MERGE_HEAD")).unwrap();
    let head = fleet.head();
    fleet.git(&["update-ref", "-d", "refs/heads/main"]);
    let (code, why, _) = top(&fleet, "demo");
    assert!(code == "refused" && why.contains("`main` names no commit now"), "{why}");
    fleet.git(&["update-ref", "refs/heads/main", &head]);
    fleet.git(&["pack-refs", "--all"]);
    let packed = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    assert_eq!(packed["projects"][0]["attention"]["code"], "max-ticks");
    fleet.write(".peers/config.yaml", &fleet.config("").replace(program().to_str().unwrap(), "/no/agent"));
    fleet.accept(&[]);
    let (code, why, _) = top(&fleet, "demo");
    assert!(code == "refused" && why.contains("/no/agent: not found"), "{why}");
}

#[test]
fn a_journal_that_is_damaged_before_its_snapshot_is_told() {
    let fleet = Fleet::new();
    fleet.ctl(&["start", "--max-ticks", "2", "--wait"]);
    fleet.ctl(&["status"]).exits(0);
    let journal = fleet.store().join("journal/000001.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("\"ann\"", "\"anm\"", 1)).unwrap();
    let (code, why, _) = top(&fleet, "demo");
    assert!(code == "journal-damaged" && why.contains("hash chain"), "{why}");
    assert!(fleet.ctl(&["status"]).exits(3).out.contains("is damaged"));
}

#[test]
fn a_loop_whose_directory_was_moved_runs_and_can_be_stopped() {
    let fleet = Fleet::hanging();
    let dir = fleet.another("other");
    fleet.ctl(&["start", "other"]).exits(0);
    heard(&fleet.path("pipe"));
    let pid = fleet.row("other")["pid"].as_u64().unwrap();
    let away = dir.with_extension("away");
    std::fs::rename(&dir, &away).unwrap();
    assert_eq!(fleet.row("other")["state"], "running");
    let (code, why, action) = top(&fleet, "other");
    assert_eq!((code.as_str(), action.as_str()), ("directory-gone", "peers-ctl stop other"));
    assert!(why.contains(&format!("process {pid}")), "{why}");
    fleet.ctl(&["list", "--wide"]).exits(0).out_has(&pid.to_string()).out_has("running");
    for command in ["status", "doctor"] {
        let done = fleet.ctl(&[command, "other"]).exits(3);
        let said = done.out + &done.err;
        assert!(
            said.contains(&format!("(process {pid})")) && said.contains("`peers-ctl stop other`"),
            "{said}"
        );
    }
    fleet.ctl(&["stop", "other", "--now"]).exits(0);
}

#[test]
fn without_its_store_nobody_says_that_no_loop_runs() {
    let fleet = Fleet::hanging();
    let pid = fleet.start(&[])["pid"].as_u64().unwrap();
    heard(&fleet.path("pipe"));
    let store = fleet.store();
    let away = fleet.path("away");
    std::fs::rename(&store, &away).unwrap();
    let said = fleet.ctl(&["doctor", "demo"]).out;
    assert!(!said.contains("the run lock is free"), "{said}");
    assert!(said.contains(&format!("process {pid}, which was started for it, is alive")), "{said}");
    assert!(said.contains("if the store is lost, restore it from a copy; only to start over"), "{said}");
    if store.exists() {
        std::fs::remove_dir_all(&store).unwrap();
    }
    std::fs::rename(&away, &store).unwrap();
    fleet.ctl(&["stop", "--now"]).exits(0);
}

#[test]
fn one_that_was_killed_for_its_operator_is_nowhere_said_to_have_crashed() {
    let fleet = Fleet::hanging();
    let run = fleet.start(&[]);
    heard(&fleet.path("pipe"));
    assert!(send(pid_in(&run), "STOP"));
    fleet.ctl(&["stop", "--grace", "0s"]).exits(0);
    for args in [&["status"][..], &["report", "-o", "-"]] {
        let said = fleet.ctl(args).exits(0).out;
        assert!(said.contains("its operator had it killed"), "{said}");
        assert!(!said.to_lowercase().contains("crashed"), "{said}");
    }
}

#[test]
fn what_does_the_same_again_can_be_typed() {
    let fleet = Fleet::new();
    fleet.ctl(&["start", "--max-ticks", "1", "--max-usd", "3", "--wait"]);
    let said = fleet.ctl(&["report", "-o", "-"]).exits(0).out;
    assert!(!said.contains("--detached") && !said.contains("--max-usd-since"), "{said}");
    let line = said.lines().find(|line| line.contains(" run ") && line.contains("--max-ticks")).unwrap();
    assert!(line.contains("--max-usd"), "{line}");
    let mut typed = fleet.command(program());
    let done = Ended::of(&typed.args(["run", "--detached", "00000000000000aa"]).output().unwrap());
    done.err_has("`--detached` is for `peers-ctl start`");
}

#[test]
fn peers_that_was_lost_and_laid_down_again_is_nothing_that_somebody_changed() {
    let fleet = Fleet::new();
    fleet.ctl(&["start", "--max-ticks", "1", "--wait"]);
    std::fs::remove_dir_all(fleet.at(".peers")).unwrap();
    fleet.ctl(&["start", "--max-ticks", "1", "--wait"]).exits(3).err_has("init --upgrade");
    fleet.peers(&["init", "--upgrade"]).exits(0);
    fleet.ctl(&["start", "--max-ticks", "1", "--wait"]);
    let data = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    let attention = data["projects"][0]["attention"].to_string();
    assert!(!attention.contains("mirror-changed"), "{attention}");
    assert!(fleet.read(".peers/log/runs.jsonl").contains("run-started"));
}

#[test]
fn a_turn_that_printed_much_is_peeked_at_from_near_its_end() {
    let fleet = Fleet::new();
    fleet.ctl(&["start", "--max-ticks", "1", "--wait"]);
    let first = fleet.data("peers-ctl.list/1", &["list"], 0)[0]["run_id"].clone();
    fleet.ctl(&["start", "--max-ticks", "1", "--wait"]);
    let ran: Vec<String> =
        fleet.records("tick").iter().map(|tick| tick["run_id"].as_str().unwrap().to_owned()).collect();
    assert!(ran.len() == 2 && ran[0] != ran[1], "{ran:?} {first}");
    let peek = |more: &[&str]| {
        fleet.ctl(&[&["--json", "peek", "--tick", "1", "--no-follow"], more].concat()).exits(0)
    };
    let line: Value = serde_json::from_str(peek(&["--last", "1"]).out.lines().next().unwrap()).unwrap();
    assert_eq!(line["run_id"], Value::from(ran[0].as_str()));
    // A hole of any size before the last lines costs nothing.
    let logs = std::fs::read_dir(fleet.at(".peers/log/peers")).unwrap().flatten();
    let log = logs.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("tick-00001") && name.ends_with(".stream.jsonl")
    });
    let log = log.unwrap();
    let text = std::fs::read(&log).unwrap();
    let mut file = std::fs::File::create(&log).unwrap();
    file.set_len(1 << 38).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    std::io::Write::write_all(&mut file, b"\n").unwrap();
    std::io::Write::write_all(&mut file, &text).unwrap();
    drop(file);
    assert_eq!(peek(&["--last", "1"]).out.lines().count(), 1);
}

#[test]
fn one_that_was_moved_is_told_how_to_take_its_store_along() {
    let fleet = Fleet::new();
    let old = fleet.another("other");
    fleet.ctl(&["start", "other", "--max-ticks", "1", "--wait"]);
    let new = fleet.path("moved");
    std::fs::rename(&old, &new).unwrap();
    fleet.ctl(&["remove", "other"]).exits(0);
    let at = new.to_str().unwrap();
    let attach = format!("peers -C {at} store attach {}", old.display());
    fleet.ctl(&["add", at, "--name", "other"]).exits(0).err_has(&format!("`{attach}`")).err_lacks(" init`");
    fleet.peers(&["-C", at, "init"]).exits(5).err_has("store attach").err_lacks("--force");
    fleet.peers(&["-C", at, "store", "attach", old.to_str().unwrap()]).exits(0);
    fleet.ctl(&["status", "other"]).exits(0);
}
