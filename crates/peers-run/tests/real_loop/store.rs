//! The trusted store and its copies in the repository.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use peers_model::record::Record;

use crate::world::{World, sh};

/// A world with one honest tick behind it.
fn lived() -> World {
    let w = World::new();
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff"]]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w
}

#[test]
fn row_60_a_damaged_snapshot_is_made_again_from_the_journal() {
    for damage in ["", "{", "{\"v\": 1, \"at\": 3}", "\u{0}\u{0}\u{0}\u{0}"] {
        let w = lived();
        fs::write(w.store().join("snapshot.json"), damage).unwrap();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        assert_eq!(w.settled().ticks.0, 2, "{damage:?}");
    }
}

#[test]
fn row_60_a_snapshot_that_lies_is_no_state() {
    let w = lived();
    let path = w.store().join("snapshot.json");
    let mut snapshot: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    snapshot["state"]["ticks"] = 40.into();
    snapshot["state"]["spent"]["iterations"] = 0.into();
    fs::write(&path, snapshot.to_string()).unwrap();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let state = w.settled();
    assert_eq!((state.ticks.0, state.spent.iterations), (2, 2));
}

#[test]
fn row_60_a_damaged_journal_is_refused_and_not_repaired() {
    let w = lived();
    let path = w.store().join("journal/000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"tick-started\"", "\"tick_started\"", 1)).unwrap();
    let before = fs::read(&path).unwrap();
    w.run(&[]).refused(3, "000001.jsonl");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn row_61_a_torn_last_line_is_cut_and_kept_aside() {
    let w = lived();
    let path = w.store().join("journal/000001.jsonl");
    let whole = fs::read(&path).unwrap();
    let torn = b"{\"v\":1,\"seq\":99,\"ts\":\"20";
    OpenOptions::new().append(true).open(&path).unwrap().write_all(torn).unwrap();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let seq = whole.split(|b| *b == b'\n').count();
    assert_eq!(fs::read(w.store().join(format!("journal/torn-{seq}"))).unwrap(), torn);
    let told =
        w.records().into_iter().filter_map(|r| if let Record::RunStarted(r) = r { r.torn } else { None });
    assert_eq!(told.collect::<Vec<_>>(), [u64::try_from(torn.len()).unwrap()]);
    assert!(fs::read(&path).unwrap().starts_with(&whole), "what was whole stays");
    assert_eq!(w.settled().ticks.0, 2);
}

#[test]
fn row_61_a_mirror_that_a_peer_edited_is_written_again_with_a_warning() {
    for edit in [
        "echo '{}' >> .peers/log/runs.jsonl",
        "sed -i s/ann/eve/ .peers/log/runs.jsonl",
        "rm .peers/log/runs.jsonl",
    ] {
        let w = World::new();
        w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", &sh(edit), "handoff"]]);
        w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
        assert_eq!(w.restored(), [Some(1)], "{edit}");
        assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("mirror")), "{edit}");
        assert!(w.prompt(2).contains("mirror of the journal"), "{edit}");
        let journal = fs::read(w.store().join("journal/000001.jsonl")).unwrap();
        assert_eq!(fs::read(w.repo().join(".peers/log/runs.jsonl")).unwrap(), journal, "{edit}");
        w.settled();
    }
}

#[test]
fn row_60_a_journal_that_was_lost_or_cut_is_no_new_project() {
    for damage in ["gone", "empty", "cut"] {
        let w = lived();
        let path = w.store().join("journal/000001.jsonl");
        let mirror = fs::read(w.repo().join(".peers/log/runs.jsonl")).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        let left = match damage {
            "gone" => {
                fs::remove_file(&path).unwrap();
                0
            }
            "empty" => {
                fs::write(&path, "").unwrap();
                0
            }
            _ => {
                let two: String = whole.split_inclusive('\n').take(2).collect();
                fs::write(&path, two).unwrap();
                2
            }
        };
        let ran = w.run(&[]);
        ran.refused(3, &format!("the journal ends at record {left}, but snapshot.json knows"));
        ran.refused(3, "copy .peers/log/runs.jsonl to journal/000001.jsonl");
        assert_eq!(fs::read(w.repo().join(".peers/log/runs.jsonl")).unwrap(), mirror, "{damage}");
        // What the message says helps.
        fs::copy(w.repo().join(".peers/log/runs.jsonl"), &path).unwrap();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        assert_eq!(w.settled().ticks.0, 2, "{damage}");
    }
}

#[test]
fn row_60_a_run_record_that_counts_more_than_the_journal_is_a_witness_too() {
    let w = lived();
    fs::remove_file(w.store().join("snapshot.json")).unwrap();
    fs::remove_file(w.repo().join(".peers/log/runs.jsonl")).unwrap();
    fs::remove_file(w.store().join("journal/000001.jsonl")).unwrap();
    w.run(&[]).refused(3, "counts 1 ticks where the journal has 0");
}

#[test]
fn row_60_files_of_a_newer_program_stop_the_start() {
    for name in ["project.json", "accepted.json", "commands/1.json"] {
        let w = lived();
        fs::create_dir_all(w.store().join("commands")).unwrap();
        fs::write(w.store().join(name), "{\"v\": 2}").unwrap();
        let ticks = w.ticks().len();
        w.run(&[]).refused(3, "was written by a newer program (version 2)").refused(3, name);
        assert_eq!(w.ticks().len(), ticks, "{name}");
    }
}

#[test]
fn row_60_an_acceptance_that_cannot_be_read_is_accepted_anew() {
    for (name, text) in
        [("accepted.json", Some("{")), ("accepted/goals.yaml", Some("other")), ("accepted/config.yaml", None)]
    {
        let w = lived();
        match text {
            Some(text) => fs::write(w.store().join(name), text).unwrap(),
            None => fs::remove_file(w.store().join(name)).unwrap(),
        }
        w.run(&[]).refused(3, name).refused(3, "peers goals accept");
        w.accept();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        w.settled();
    }
}

/// A world with one tick behind it, whose turns leave long records.
fn talkative() -> World {
    let w = World::new();
    w.gate("head -c 4000 /dev/zero | tr '\\0' x; test -f fixed");
    w.play(
        "idle",
        &[
            &["write: {path: a.py, text: 'a = 1'}", "handoff"],
            &["write: {path: b.py, text: 'b = 1'}", "handoff"],
        ],
    );
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w
}

#[test]
fn row_61_a_full_disk_stops_the_run_and_the_next_one_goes_on() {
    let journal = |w: &World| fs::read_to_string(w.store().join("journal/000001.jsonl")).unwrap();
    // A twin tells how long the records are: all before that of the turn fit, and half of that one.
    let twin = talkative();
    let before = journal(&twin).len();
    twin.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let text = journal(&twin);
    let lines: Vec<&str> = text[before..].split_inclusive('\n').collect();
    let turn = lines.iter().position(|line| line.contains("\"event\":\"tick\"")).unwrap();
    let room = lines[..turn].iter().map(|line| line.len()).sum::<usize>() + lines[turn].len() / 2;

    let w = talkative();
    let run = w.command(&["--max-ticks=1"]);
    let blocks = (journal(&w).len() + room) / 512;
    let mut limited = std::process::Command::new("/bin/sh");
    limited.arg("-c").arg(format!("ulimit -f {blocks}; exec \"$@\"")).arg("sh");
    limited.arg(run.get_program()).args(run.get_args()).env_clear();
    limited.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    World::out(limited).stopped("error:disk-full", 70);
    assert_eq!(w.exit().reason.to_string(), "error:disk-full");
    let newest = w.runs().pop().unwrap();
    assert_eq!((newest.exit_code, newest.ended_at.is_some()), (Some(70), true));
    w.verify_journal();
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
}
