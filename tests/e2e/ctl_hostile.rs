//! Everything that an agent, or whoever can write into a repository, can leave for a controller that only looks:
//! nothing of it is executed, waited for, followed or printed as it is.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, controller, pid_in};
use crate::support::{Ended, World, heard};

/// Escape sequences of seven and of eight bits, what turns text around, what cannot be seen.
const NASTY: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}31m\u{202e}gnp\u{2066}\u{200b}\u{feff}\u{7f}\u{8}\r!";
/// What lies in files that are not ours to show.
const SECRET: &str = "the-secret-of-another-file";

/// `peers-ctl WORDS`, killed with all that it began where it does not end by itself: `None` then.
fn limited(fleet: &Fleet, words: &[String]) -> Option<Ended> {
    let mut command = fleet.command("timeout");
    command.args(["--signal=KILL", "120"]).arg(controller()).args(words);
    let done = Ended::of(&command.output().unwrap());
    done.code.is_some_and(|code| code != 137).then_some(done)
}

/// Every command that only looks, with the forms that are not for programs alone.
fn reads() -> Vec<(Vec<String>, bool)> {
    let mut all: Vec<(Vec<String>, bool)> = Vec::new();
    for (line, json) in [
        ("list", true),
        ("list --wide", true),
        ("list --no-reconcile", true),
        ("status demo", true),
        ("dashboard", true),
        ("dashboard --project demo", true),
        ("events", true),
        ("tail demo --once", true),
        ("logs demo", true),
        ("logs demo --tick 1", true),
        ("logs demo --tick 2 --stderr", true),
        ("report demo -o -", true),
        ("review demo -n 9", true),
        ("compare demo demo", true),
        ("replay demo", true),
        ("replay demo --show-diffs --show-prompts", false),
        ("peek demo --no-follow", true),
        ("doctor demo", true),
        ("registry check", true),
        ("reconcile", true),
        ("wait demo --timeout 1s", true),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        all.push((words.clone(), false));
        if json {
            all.push(([words, vec!["--json".to_owned()]].concat(), true));
        }
    }
    all
}

/// Those of them that look at most files.
fn few(all: Vec<(Vec<String>, bool)>) -> Vec<(Vec<String>, bool)> {
    let wanted = [
        "list --wide",
        "status demo --json",
        "report demo -o -",
        "doctor demo",
        "events",
        "peek demo --no-follow",
    ];
    all.into_iter().filter(|(words, _)| wanted.contains(&words.join(" ").as_str())).collect()
}

fn unfit(text: &str) -> Option<char> {
    let odd = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    text.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || odd(*c))
}

/// Runs these commands, and looks at how they end and what they print.
#[track_caller]
fn all_is_well(fleet: &Fleet, commands: &[(Vec<String>, bool)], what: &str) {
    for (words, json) in commands {
        let told = format!("{what}: peers-ctl {}", words.join(" "));
        let done = limited(fleet, words).unwrap_or_else(|| panic!("{told}: it hangs"));
        let known = [0, 1, 3, 4, 5, 6, 7, 10, 11, 13, 70, 124];
        let code = done.code.unwrap_or_else(|| panic!("{told}: it died\n{}", done.err));
        assert!(known.contains(&code), "{told}: {code}\n{}\n{}", done.out, done.err);
        // A failure of the program itself is none of these.
        assert!(
            !done.err.contains("panicked") && !done.err.contains("this is a bug"),
            "{told}\n{}",
            done.err
        );
        for (stream, text) in [("out", &done.out), ("err", &done.err)] {
            let found = unfit(text);
            assert_eq!(found, None, "{told}: on std{stream}: {:?}", text.escape_debug().to_string());
            assert!(!text.contains(SECRET), "{told}: on std{stream}: {text}");
        }
        if *json {
            let stream = ["events", "tail", "peek"].iter().any(|name| words.iter().any(|word| word == name));
            parses(&done, stream, &told);
        }
    }
}

/// One document; of a stream one in each line, or none at all.
#[track_caller]
fn parses(done: &Ended, stream: bool, told: &str) {
    let whole = serde_json::from_str::<Value>(&done.out);
    let lines = || stream && done.out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok());
    assert!(whole.is_ok() || lines(), "{told}: {}\n{}", done.out, done.err);
    assert!(done.code == Some(0) || !done.out.is_empty() || done.err.is_empty(), "{told}: {}", done.err);
}

/// A loop that has run three ticks, of which everything there is to say is nasty.
fn ran() -> Fleet {
    let world = World::ready("true");
    let turn = json!([
        {"say": NASTY},
        {"write": {"path": "work.txt", "append": format!("{{{{turn}}}} {NASTY}\n")}},
        {"commit": {"subject": format!("Work {NASTY}"), "body": NASTY}},
        {"emit": {"line": NASTY}}, {"emit": {"stderr": NASTY}}, {"emit": {"hex": "1b 5b 32 4a 9b 33 31 6d ff fe 0a"}},
        {"bug_report": {"id": "b{{turn}}", "severity": "high", "title": NASTY, "description": NASTY, "location": NASTY}},
        {"review": {"goal": "real", "pass": false, "notes": NASTY, "issues": [NASTY], "checked": [NASTY]}},
        {"handoff": {"subject": format!("Done {NASTY}"), "self_review": NASTY, "trailers": {"Peer-Status": "handoff", "Odd": NASTY}}}
    ]);
    let script = json!({"after": "repeat", "turns": [turn]}).to_string();
    world.scripts(&script);
    let fleet = Fleet::of(world);
    fleet.ctl(&["start", "--max-ticks", "3"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]);
    assert_eq!(fleet.records("tick").len(), 3);
    std::fs::write(fleet.path("secret"), format!("{SECRET}\n")).unwrap();
    fleet
}

#[test]
fn what_agents_say_of_anything_is_shown_without_what_moves_a_terminal() {
    let fleet = ran();
    let file = fleet.path("home/config/peers-ctl/projects.json");
    let mut registry = fleet.registry();
    registry["projects"][0]["notes"] = NASTY.into();
    registry["projects"][0]["labels"] = json!({"team": "\u{202e}\u{200b}"});
    registry["projects"][0]["last_request"] = json!({"branch": NASTY});
    registry["projects"][0]["last_exit"]["reason"] = NASTY.into();
    let odd = fleet.path(&format!("odd {}", NASTY.replace('/', "")));
    std::fs::create_dir(&odd).unwrap();
    let mut second = registry["projects"][0].clone();
    second["name"] = "second".into();
    second["path"] = odd.to_str().unwrap().into();
    let mut third = second.clone();
    third["name"] = NASTY.into();
    registry["projects"].as_array_mut().unwrap().extend([second, third]);
    registry[NASTY] = NASTY.into();
    std::fs::write(&file, registry.to_string()).unwrap();
    fleet.write("README.md", &format!("# {NASTY}\n{NASTY}\n"));
    fleet.write(".peers/last-stop-reason.txt", NASTY);
    fleet.write(".peers/HALTED.md", NASTY);
    fleet.write(".peers/state.json", &json!({"v": 1, "peers": {NASTY: NASTY}, "last": NASTY}).to_string());
    for path in files(&fleet.at(".peers/log")) {
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(
            format!("{NASTY}\n{}\n", json!({"type": NASTY, "event": NASTY, "text": NASTY})).as_bytes(),
        );
        std::fs::write(path, text).unwrap();
    }
    let log = fleet.path("home/config/peers-ctl/logs/demo.log");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("{text}{NASTY}\n=== {NASTY} run {NASTY}: peers run {NASTY}\n{NASTY}\n"))
        .unwrap();
    all_is_well(&fleet, &reads(), "escapes");
    for words in [
        &["status", "--all"][..],
        &["doctor", "--all"],
        &["report", "--all", "-o", "-"],
        &["logs", "--all"],
        &["tail", "--all", "--once"],
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        all_is_well(
            &fleet,
            &[(words.clone(), false), ([words, vec!["--json".to_owned()]].concat(), true)],
            "escapes",
        );
    }
}

#[test]
fn nothing_of_a_planted_git_directory_is_executed() {
    let fleet = ran();
    let canary = fleet.path("canary");
    let trap = format!("echo \"$0 $*\" >> {}\ncat", canary.display());
    let program = fleet.executable("canary.sh", &trap);
    let run = program.display();
    fleet.write(".gitattributes", "* filter=evil diff=evil merge=evil ident\n");
    fleet.write("more.txt", "more\n");
    fleet.commit("Attributes");
    fleet.write("more.txt", "changed\n");
    fleet.write("untracked.txt", "new\n");
    let hooks = "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg \
                 post-commit pre-rebase post-checkout post-merge pre-push reference-transaction post-index-change \
                 fsmonitor-watchman push-to-checkout pre-auto-gc post-rewrite sendemail-validate update";
    for hook in hooks.split_whitespace() {
        let path = fleet.at(&format!(".git/hooks/{hook}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(&program, &path).unwrap();
    }
    let outside = fleet.path("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    let settings = fleet.path("included");
    std::fs::write(&settings, format!("[core]\n\tfsmonitor = {run}\n\tpager = {run}\n")).unwrap();
    let plain = std::fs::read_to_string(fleet.at(".git/config")).unwrap();
    let drivers = format!(
        "[filter \"evil\"]\n\tclean = {run}\n\tsmudge = {run}\n\tprocess = {run}\n\trequired = true\n\
         [diff \"evil\"]\n\ttextconv = {run}\n\tcommand = {run}\n\tcachetextconv = true\n\
         [diff]\n\texternal = {run}\n[merge \"evil\"]\n\tdriver = {run}\n"
    );
    let core = format!(
        "[core]\n\tfsmonitor = {run}\n\teditor = {run}\n\tpager = {run}\n\tsshCommand = {run}\n\taskPass = {run}\n\
         \tgitProxy = {run}\n\talternateRefsCommand = {run}\n[pager]\n\tlog = {run}\n\tdiff = {run}\n\tshow = {run}\n"
    );
    let signs = format!(
        "[gpg]\n\tprogram = {run}\n\tformat = ssh\n[gpg \"ssh\"]\n\tprogram = {run}\n[commit]\n\tgpgSign = true\n\
         [log]\n\tshowSignature = true\n[credential]\n\thelper = {run}\n[trailer \"x\"]\n\tcommand = {run}\n\tifmissing = add\n"
    );
    let aliases =
        ["status", "log", "diff", "show", "rev-parse", "cat-file", "rev-list", "for-each-ref", "config"]
            .map(|name| format!("[alias]\n\t{name} = !{run}\n"))
            .concat();
    let redirected = format!("[core]\n\tworktree = {}\n", outside.display());
    let hooked = format!("[core]\n\thooksPath = {}\n", fleet.at(".git/hooks").display());
    let includes =
        format!("[include]\n\tpath = {0}\n[includeIf \"gitdir:**\"]\n\tpath = {0}\n", settings.display());
    let all = [&drivers, &core, &signs, &aliases, &includes, &hooked].map(String::as_str).concat();
    let corpus = [
        ("drivers", drivers.as_str()),
        ("programs", &core),
        ("signatures", &signs),
        ("aliases", &aliases),
        ("another work tree", &redirected),
        ("hooks elsewhere", &hooked),
        ("includes", &includes),
        ("everything", &all),
        ("an unknown extension", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tunheardOf = true\n"),
        ("no configuration", "[[[[ not a configuration"),
    ];
    let head = fleet.head();
    for (what, more) in corpus {
        std::fs::write(fleet.at(".git/config"), format!("{plain}{more}")).unwrap();
        // One with everything gets every command; the others those that look at most.
        let commands = if what == "everything" || what == "drivers" { reads() } else { few(reads()) };
        all_is_well(&fleet, &commands, what);
        let hit = std::fs::read_to_string(&canary).unwrap_or_default();
        assert_eq!(hit, "", "{what}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{what}");
    }
    std::fs::write(fleet.at(".git/config"), &plain).unwrap();
    assert_eq!(fleet.head(), head);
    // That the trap is one: plain git walks into it.
    std::fs::write(fleet.at(".git/config"), format!("{plain}{all}")).unwrap();
    fleet.command("git").args(["status", "--short"]).output().unwrap();
    fleet.command("git").args(["diff"]).output().unwrap();
    assert!(canary.is_file(), "nothing would have been executed anyway");
}

/// The files below a directory, without git's own.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir()
            && !matches!(entry.file_name().to_str(), Some("git" | "control.git" | "schema" | "objects"))
        {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Everything that a command reads of a project that has run.
fn read_files(fleet: &Fleet) -> Vec<PathBuf> {
    let mut all = files(&fleet.path("home/config/peers-ctl"));
    all.extend(files(&fleet.store()));
    all.extend(files(&fleet.at(".peers")));
    all.extend(
        ["README.md", ".git/HEAD", ".git/config", ".git/index", ".git/info/exclude", ".git/refs/heads/main"]
            .map(|path| fleet.at(path)),
    );
    all.retain(|path| path.exists());
    all
}

/// Puts something in the place of each file, one after the other, and looks.
fn in_place_of_each(kind: &str, put: impl Fn(&Fleet, &Path)) {
    let fleet = ran();
    let all = read_files(&fleet);
    assert!(all.len() > 20, "{all:#?}");
    let kept = fleet.path("kept");
    for path in all {
        let told = format!("{kind} in place of {}", path.strip_prefix(fleet.path("")).unwrap().display());
        // What stands there by now may have been made by a look in between.
        std::fs::rename(&path, &kept).unwrap();
        put(&fleet, &path);
        all_is_well(&fleet, &few(reads()), &told);
        let gone = if path.is_dir() { std::fs::remove_dir(&path) } else { std::fs::remove_file(&path) };
        gone.unwrap_or_else(|e| panic!("{told}: {e}"));
        std::fs::rename(&kept, &path).unwrap();
        let secret = std::fs::read_to_string(fleet.path("secret")).unwrap();
        assert_eq!(secret, format!("{SECRET}\n"), "{told}");
    }
    // Nothing of it was lost.
    assert_eq!(fleet.row("demo")["state"], "stopped");
    fleet.peers(&["state", "check"]).exits(0);
}

#[test]
fn nobody_waits_for_a_pipe_in_place_of_a_file() {
    in_place_of_each("a FIFO", |fleet, path| {
        fleet.fifo(path);
    });
}

#[test]
fn no_link_is_followed_in_place_of_a_file() {
    in_place_of_each("a symlink", |fleet, path| {
        std::os::unix::fs::symlink(fleet.path("secret"), path).unwrap();
    });
}

#[test]
fn no_second_name_of_another_file_is_taken_for_it() {
    in_place_of_each("a hard link", |fleet, path| std::fs::hard_link(fleet.path("secret"), path).unwrap());
}

#[test]
fn every_command_ends_where_all_that_agents_can_write_are_pipes() {
    let fleet = ran();
    for path in
        files(&fleet.at(".peers")).into_iter().chain([fleet.at("README.md"), fleet.at(".git/info/exclude")])
    {
        std::fs::remove_file(&path).unwrap();
        fleet.fifo(&path);
    }
    all_is_well(&fleet, &reads(), "pipes everywhere");
}

#[test]
fn ten_thousand_bad_lines_are_passed_over() {
    use std::fmt::Write as _;
    let fleet = ran();
    let mut bad = String::new();
    for n in 0..10_000 {
        let line = match n % 5 {
            0 => NASTY.to_owned(),
            1 => "{\"v\":1,\"seq\":".to_owned(),
            2 => json!({"v": 1, "seq": n, "event": NASTY}).to_string(),
            3 => "[".repeat(200),
            _ => "null".to_owned(),
        };
        writeln!(bad, "{line}").unwrap();
    }
    for path in files(&fleet.at(".peers/log")) {
        std::fs::write(path, &bad).unwrap();
    }
    all_is_well(&fleet, &reads(), "a mirror of bad lines");
    // The journal of the store itself is damaged.
    let journal = fleet.store().join("journal/000001.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{text}{bad}")).unwrap();
    all_is_well(&fleet, &reads(), "a journal with bad lines");
    std::fs::write(&journal, &bad).unwrap();
    all_is_well(&fleet, &few(reads()), "a journal of bad lines");
    let done = fleet.ctl(&["status", "demo"]);
    assert_eq!(done.code, Some(3), "{}{}", done.out, done.err);
}

#[test]
fn json_that_is_nested_without_an_end_is_no_harm() {
    let fleet = ran();
    let deep = [
        format!("{}\n", "[".repeat(100_000)),
        format!("{}1{}\n", "{\"a\":".repeat(100_000), "}".repeat(100_000)),
    ];
    std::fs::create_dir_all(fleet.store().join("commands")).unwrap();
    let waiting = fleet.store().join("commands/00000000000000000001.json");
    std::fs::write(&waiting, "{}").unwrap();
    let mut all: Vec<PathBuf> = files(&fleet.store());
    all.extend(files(&fleet.path("home/config/peers-ctl")));
    all.extend([fleet.at(".peers/state.json"), fleet.at(".peers/log/runs.jsonl")]);
    all.retain(|path| path.extension().is_none_or(|end| end != "log" && end != "yaml"));
    for path in all {
        let before = std::fs::read(&path).unwrap();
        for text in &deep {
            std::fs::write(&path, text).unwrap();
            all_is_well(&fleet, &few(reads()), &format!("deep JSON in {}", path.display()));
        }
        std::fs::write(&path, before).unwrap();
    }
    std::fs::remove_file(&waiting).unwrap();
    assert_eq!(fleet.row("demo")["state"], "stopped");
}

#[test]
fn what_somebody_wrote_of_a_stop_says_nothing() {
    for planted in ["complete 2026-03-04T21:10:00.000Z\n", "budget:max_usd x\n", "interrupted x\n"] {
        let fleet = Fleet::hanging();
        let started = fleet.start(&[]);
        heard(&fleet.path("pipe"));
        fleet.write(".peers/last-stop-reason.txt", planted);
        assert_eq!(fleet.row("demo")["state"], "running");
        let pid = pid_in(&started);
        fleet.kill(pid);
        fleet.stands("crashed", "killed");
    }
}

type Planting = fn(&Fleet, &Path);

#[test]
fn a_lock_that_cannot_be_looked_at_makes_no_loop_crashed() {
    let fleet = Fleet::hanging();
    fleet.start(&[]);
    heard(&fleet.path("pipe"));
    let (lock, kept) = (fleet.store().join("run.lock"), fleet.path("kept"));
    let kinds: [(&str, Planting); 4] = [
        ("a FIFO", |fleet, path| drop(fleet.fifo(path))),
        ("a symlink", |fleet, path| std::os::unix::fs::symlink(fleet.path("kept"), path).unwrap()),
        ("a hard link", |fleet, path| std::fs::hard_link(fleet.path("kept"), path).unwrap()),
        ("a directory", |_, path| std::fs::create_dir(path).unwrap()),
    ];
    for (kind, put) in kinds {
        std::fs::rename(&lock, &kept).unwrap();
        put(&fleet, &lock);
        for _ in 0..2 {
            let row = fleet.row("demo");
            assert_eq!((&row["state"], &row["outcome"]), (&"unknown".into(), &Value::Null), "{kind}: {row}");
        }
        fleet.ctl(&["stop"]).exits(5);
        assert_ne!(fleet.ctl(&["start"]).code, Some(0), "{kind}");
        let gone = if lock.is_dir() { std::fs::remove_dir(&lock) } else { std::fs::remove_file(&lock) };
        gone.unwrap();
        std::fs::rename(&kept, &lock).unwrap();
        // What is seen again is healed.
        assert_eq!(fleet.row("demo")["state"], "running", "{kind}");
    }
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}
