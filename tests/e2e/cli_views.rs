//! `peers status`, `report`, `replay` and `watch`.

use crate::support::World;

#[test]
fn before_the_first_run_status_and_report_say_so() {
    let world = World::ready("true");
    for command in ["status", "report"] {
        world.peers(&[command]).exits(1).err_has("nothing ran yet; start with `peers run`");
    }
    assert!(!world.at(".peers/REPORT.md").exists());
    let world = World::repo();
    world.peers(&["init"]).exits(0);
    world.peers(&["status"]).exits(1).err_has("replace the gate `placeholder-replace-me`");
    world.write(".peers/goals.yaml", &crate::support::goals(&[("real", "true")]));
    assert!(world.peers(&["status"]).exits(1).out.contains("then `peers goals accept`"));
}

#[test]
fn uncommitted_files_are_named_and_those_that_only_the_exclude_file_hides() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write("left.txt", "x");
    world.write("notes/secret.log", "x");
    world.write(".git/info/exclude", "*.log\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "?? left.txt");
    let text = world.peers(&["status"]).exits(0).out;
    assert!(text.contains("work tree: 2 uncommitted paths: ?? left.txt, ?? notes/secret.log\n"), "{text}");
    let hidden = "  ignored only in .git/info/exclude, which does not count here: notes/secret.log\n";
    assert!(text.contains(hidden), "{text}");
    assert!(world.peers(&["report"]).exits(0).out.contains("?? left.txt"));
}

#[test]
fn a_review_of_what_was_changed_since_is_not_shown_as_green() {
    let world = World::ready("true");
    let soft = "  - {id: read, type: soft, reviewer: both, prompt: Read it., review_interval: 1}\n";
    world.write(".peers/goals.yaml", &(crate::support::goals(&[("real", "true")]) + soft));
    world.accept(&[]);
    world.write("src/a.rs", "fn a() {}\n");
    world.commit("Something to read");
    let review = serde_json::json!({"after": "repeat", "turns": [[{"review": {"goal": "read", "pass": true,
        "notes": "Read from the first line to the last.", "checked": ["src/a.rs:1 read"], "handoff": true}}]]});
    world.scripts(&review.to_string());
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
    assert!(world.peers(&["status"]).exits(0).out.contains("  2/2  read"));
    world.write("src/a.rs", "fn b() {}\n");
    world.commit("Changed since");
    let text = world.peers(&["status"]).exits(0).out;
    assert!(
        text.contains("  0/2  read") && text.contains("soft goal waits for reviews: read (0/2)"),
        "{text}"
    );
}

#[test]
fn status_shows_gates_and_peers_and_writes_nothing() {
    let world = World::ready("echo why not; exit 1");
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
    let before = world.git(&["status", "--porcelain", "--ignored"]);
    let done = world.peers(&["status"]).exits(0);
    for words in ["real", "ann", "ben", "max_ticks", "unconfined"] {
        assert!(done.out.contains(words), "{words}: {}", done.out);
    }
    assert!(!done.out.contains('\u{1b}'), "no colour in a pipe");
    let json = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    assert!(json.to_string().contains("\"real\""), "{json}");
    assert_eq!(world.git(&["status", "--porcelain", "--ignored"]), before);
}

#[test]
fn the_report_goes_to_a_file_as_well() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let done = world.peers(&["report"]).exits(0);
    assert!(done.out.starts_with("# peers report"), "{}", done.out);
    assert_eq!(world.read(".peers/REPORT.md"), done.out);
    world.peers(&["report", "--json", "--no-write"]).exits(0).json("peers.report/1");
}

#[test]
fn a_tick_is_replayed_with_its_prompt_and_its_diff() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
    assert!(world.peers(&["replay", "2"]).exits(0).out.contains("ben"));
    world.peers(&["replay", "2", "--diff"]).exits(0).out_has("ben.txt").out_lacks("ann.txt");
    assert!(world.peers(&["replay", "1", "--prompt"]).exits(0).out.contains("Your task"));
    let json = world.peers(&["replay", "1", "--json"]).exits(0).json("peers.replay/1");
    assert_eq!(json["tick"], 1);
    world.peers(&["replay", "3"]).exits(1).err_has("there is no tick 3; the newest is 2");
    world.peers(&["replay", "0"]).exits(2);
}

#[test]
fn watch_decodes_the_journal_line_by_line() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.peers(&["watch", "--once", "--lines", "100"]).exits(0).out_has("max_ticks");
    let json = world.peers(&["watch", "--once", "--lines", "2", "--json"]).exits(0).out;
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line["schema"] == "peers.watch/1"), "{json}");
    assert_eq!(lines[1]["record"]["event"], "exit");
}

#[test]
fn watch_shows_the_messages_of_a_known_peer() {
    let world = World::ready("true");
    world.write(".peers/comms/ann-to-ben/000001-plan.md", "---\nfrom: ann\n---\n\nhello \u{1b}[31mben\n");
    world.write(".peers/comms/ben-to-ann/000001-plan.md", "not for ben\n");
    world.write(".peers/comms/archive/ann-to-ben/000000-old.md", "---\nfrom: ann\n---\n\nlong ago\n");
    let text = world.peers(&["watch", "ben", "--once"]).exits(0).out;
    assert!(text.contains("hello ben") && !text.contains("not for ben"), "{text}");
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(at("archive/ann-to-ben/000000-old.md (delivered)") < at("000001-plan.md (waits)"), "{text}");
    assert!(world.peers(&["watch", "bem", "--once"]).exits(2).err.contains("did you mean `ben`?"));
    world.peers(&["watch", "../x", "--once"]).exits(2);
}

#[test]
fn a_linked_control_directory_is_refused_by_every_view() {
    let world = World::ready("true");
    std::fs::rename(world.at(".peers"), world.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(world.path("elsewhere"), world.at(".peers")).unwrap();
    for args in [&["status"][..], &["info"], &["report"], &["watch", "--once"], &["replay", "1"], &["verify"]]
    {
        world.peers(args).exits(5);
    }
}

#[test]
fn without_the_directory_for_people_what_writes_there_says_so() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    std::fs::remove_dir_all(world.at(".peers")).unwrap();
    for command in [&["report"][..], &["state", "rebuild"]] {
        world.peers(command).exits(3).err_has("there is no .peers directory\nhint: run `peers init`");
    }
}
