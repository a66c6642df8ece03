//! The trusted store and its copies in the repository.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use peers_model::record::Record;

use crate::world::{World, files, sh};

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
fn row_60_a_snapshot_of_a_newer_program_is_left_alone() {
    let w = lived();
    fs::write(w.store().join("snapshot.json"), "{\"v\": 999}").unwrap();
    let before = files(&w.store());
    w.run(&[]).refused(3, "newer program");
    let mut after = files(&w.store());
    let lock = w.store().join("run.lock");
    after.insert(lock.clone(), before[&lock].clone());
    assert_eq!(after, before, "but for the lock nothing was written");
}

#[test]
fn row_60_a_journal_of_a_newer_program_is_left_alone() {
    let w = lived();
    let path = w.store().join("journal/000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("{\"v\":1,", "{\"v\":999,", 1)).unwrap();
    let before = fs::read(&path).unwrap();
    w.run(&[]).refused(3, "use the newer program");
    assert_eq!(fs::read(&path).unwrap(), before);
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
fn row_60_the_projection_of_the_state_is_written_and_never_read() {
    let w = lived();
    let path = w.repo().join(".peers/state.json");
    let honest = fs::read_to_string(&path).unwrap();
    let edited = honest.replacen("\"iteration\": 1", "\"iteration\": 77", 1);
    assert_ne!(edited, honest);
    for text in
        [Some(edited.as_str()), Some("{\"schema_version\": 2, \"iteration\": 9, \"turn_index\": 1}"), None]
    {
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let ticks = w.ticks().len();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        assert_eq!(w.settled().ticks.0, u64::try_from(ticks).unwrap() + 1);
        let now: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (now["iteration"].as_u64(), now["schema_version"].as_u64()),
            (Some(w.settled().ticks.0), Some(3))
        );
    }
}

#[test]
fn row_60_a_project_without_its_store_is_refused_with_the_ways_on() {
    let w = lived();
    fs::remove_dir_all(w.store()).unwrap();
    let before = files(&w.repo().join(".peers"));
    w.run(&[]).refused(5, "peers store attach");
    assert_eq!(files(&w.repo().join(".peers")), before);
    assert!(!w.store().exists(), "none is made by the way");
}

#[test]
fn row_60_a_copy_of_the_project_elsewhere_is_refused() {
    let w = lived();
    let moved = w.path("moved");
    fs::rename(w.repo(), &moved).unwrap();
    w.run_in(&moved, &[]).refused(5, "peers store attach");
    fs::rename(&moved, w.repo()).unwrap();
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
fn row_61_a_mirror_that_was_edited_between_runs_is_written_again() {
    for edit in ["cut", "same length", "gone"] {
        let w = lived();
        let mirror = w.repo().join(".peers/log/runs.jsonl");
        let text = fs::read_to_string(&mirror).unwrap();
        match edit {
            "cut" => fs::write(&mirror, &text[..100]).unwrap(),
            "gone" => fs::remove_file(&mirror).unwrap(),
            _ => fs::write(&mirror, text.replace("ann", "eve")).unwrap(),
        }
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        let restored: Vec<_> = w
            .records()
            .into_iter()
            .filter_map(|r| if let Record::MirrorRestored(r) = r { Some(r) } else { None })
            .collect();
        assert_eq!((restored.len(), restored[0].tick), (1, None), "{edit}");
        assert_eq!(
            fs::read(&mirror).unwrap(),
            fs::read(w.store().join("journal/000001.jsonl")).unwrap(),
            "{edit}"
        );
        w.settled();
    }
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
        let restored: Vec<_> = w
            .records()
            .into_iter()
            .filter_map(|r| if let Record::MirrorRestored(r) = r { r.tick } else { None })
            .collect();
        assert_eq!(restored.iter().map(|t| t.0).collect::<Vec<_>>(), [1], "{edit}");
        assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("mirror")), "{edit}");
        assert!(w.prompt(2).contains("mirror of the journal"), "{edit}");
        let journal = fs::read(w.store().join("journal/000001.jsonl")).unwrap();
        assert_eq!(fs::read(w.repo().join(".peers/log/runs.jsonl")).unwrap(), journal, "{edit}");
        w.settled();
    }
}
