//! A journal that is shorter than what its copies know, and mirrors that differ.

use std::fs;
use std::os::unix::fs::symlink;

use super::{World, at, reset, run};
use crate::{Store, runs, store};

#[test]
fn a_journal_that_ends_before_its_snapshot_is_refused_and_nothing_is_written() {
    let w = World::with(5);
    fs::remove_file(w.mirror()).unwrap();
    w.cut(2);
    w.refused("the journal ends at record 2, but snapshot.json knows 5");
    let error = store::compare_snapshot(&mut w.disk()).unwrap_err().to_string();
    assert!(error.contains("snapshot.json knows 5"), "{error}");
    assert!(store::read_state(&mut w.disk()).is_err(), "no view takes it for a young journal");
}

#[test]
fn a_journal_that_is_gone_or_empty_is_no_new_project_while_a_copy_knows_better() {
    for emptied in [false, true] {
        let w = World::with(5);
        if emptied {
            fs::write(w.journal(), "").unwrap();
        } else {
            fs::remove_dir_all(w.store("journal")).unwrap();
        }
        w.refused("the journal ends at record 0, but snapshot.json knows 5");
        fs::remove_file(w.store("snapshot.json")).unwrap();
        w.refused("the journal ends at record 0, but .peers/log/runs.jsonl knows 5");
        fs::remove_file(w.mirror()).unwrap();
        w.open().unwrap();
    }
}

#[test]
fn the_mirror_is_offered_as_a_copy_when_the_snapshot_vouches_for_it() {
    let w = World::with(5);
    w.cut(2);
    w.refused("copy .peers/log/runs.jsonl to journal/000001.jsonl in the trusted store (`");
    w.refused("`): it holds the records 1 to 5 and agrees with the snapshot");
    let said = w.open().unwrap_err();
    let command = said.split('`').nth(1).unwrap();
    assert!(command.contains(w.journal().to_str().unwrap()), "{command}");
    let copied = std::process::Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(copied.success(), "{command}");
    assert_eq!(w.open().unwrap(), crate::OpenReport::default());
}

#[test]
fn records_that_the_mirror_alone_knows_are_told_and_kept() {
    let w = World::with(5);
    fs::remove_file(w.store("snapshot.json")).unwrap();
    let whole = fs::read(w.mirror()).unwrap();
    w.cut(2);
    let told = w.open().unwrap().mirror.unwrap();
    assert!(told.starts_with("had records 3 to 5 that the journal does not have"), "{told}");
    assert_eq!(fs::read(w.peers("log/runs.jsonl.1.kept")).unwrap(), whole);
}

#[test]
fn a_run_record_that_counts_more_ticks_than_the_journal_forbids_writing() {
    let w = World::with(1);
    runs::write(&mut w.disk(), &run("00000000000000aa", 3)).unwrap();
    w.refused("runs/00000000000000aa.json counts 3 ticks where the journal has 0");
}

#[test]
fn a_snapshot_of_another_journal_forbids_writing() {
    let w = World::with(5);
    let other = World::new();
    let mut store = Store::open(other.disk()).unwrap().0;
    for _ in 0..6 {
        store.append(peers_model::Timestamp::from_millis(7), None, &[reset()]).unwrap();
    }
    fs::copy(other.journal(), w.journal()).unwrap();
    w.refused("record 5 of the journal is not the one that snapshot.json was made from");
}

#[test]
fn a_snapshot_that_is_behind_is_what_a_crash_leaves() {
    let w = World::with(5);
    let mut store = Store::open(w.disk()).unwrap().0;
    store.append(at(), None, &[reset()]).unwrap();
    drop(store);
    fs::remove_file(w.mirror()).unwrap();
    assert_eq!(w.open().unwrap().mirror.as_deref(), Some("was missing"));
}

#[test]
fn a_mirror_that_does_not_continue_the_journal_is_no_witness() {
    let w = World::with(3);
    let other = World::with(9);
    let mut store = Store::open(other.disk()).unwrap().0;
    store.append(at(), None, &[reset()]).unwrap();
    let foreign = fs::read_to_string(other.mirror()).unwrap().replace("\"op\"}", "\"eve\"}");
    fs::write(w.mirror(), foreign).unwrap();
    assert!(w.open().unwrap().mirror.unwrap().starts_with("had another length (kept as"));
}

#[test]
fn records_that_somebody_made_up_in_the_mirror_cost_a_warning() {
    let checkpoint = serde_json::json!({"event": "checkpoint", "state": {}});
    let follows = serde_json::json!({"event": "operator", "op": "budget-reset", "by": "eve"});
    for (seq, record, alone) in
        [(9_000_000, &checkpoint, true), (4, &checkpoint, false), (4, &follows, false)]
    {
        let w = World::with(3);
        let truth = fs::read(w.mirror()).unwrap();
        let forged = super::after(&truth, seq, record);
        fs::write(w.mirror(), if alone { forged } else { [&truth[..], &forged].concat() }).unwrap();
        store::read(&mut w.disk()).unwrap();
        let told = w.open().unwrap().mirror.unwrap();
        let says = format!("had records {seq} to {seq} that the journal does not have (kept as");
        assert!(told.starts_with(&says), "{told}");
        assert_eq!(fs::read(w.mirror()).unwrap(), truth);
        assert_eq!(w.open().unwrap().mirror, None);
    }
}

#[test]
fn a_tail_that_the_snapshot_knows_is_missed_whatever_the_mirror_says() {
    let follows = serde_json::json!({"event": "operator", "op": "budget-reset", "by": "eve"});
    for forged in [false, true] {
        let w = World::with(5);
        w.cut(2);
        let kept = fs::read(w.journal()).unwrap();
        if forged {
            fs::write(w.mirror(), [&kept[..], &super::after(&kept, 3, &follows)].concat()).unwrap();
        } else {
            fs::write(w.mirror(), &kept).unwrap();
        }
        w.refused("the journal ends at record 2, but snapshot.json knows 5");
    }
}

#[test]
fn a_mirror_that_cannot_be_written_stops_nobody() {
    let w = World::with(2);
    let mut store = Store::open(w.disk()).unwrap().0;
    fs::remove_file(w.mirror()).unwrap();
    fs::create_dir(w.mirror()).unwrap();
    store.append(at(), None, &[reset()]).unwrap();
    assert_eq!(store.check_mirror().unwrap(), None);
    fs::remove_dir(w.mirror()).unwrap();
    assert_eq!(store.check_mirror().unwrap().as_deref(), Some("was missing"));
    assert_eq!(fs::read(w.mirror()).unwrap(), fs::read(w.journal()).unwrap());
}

#[test]
fn what_stands_in_place_of_the_mirror_is_kept_when_the_store_is_opened() {
    let w = World::with(2);
    fs::remove_file(w.mirror()).unwrap();
    symlink("nowhere", w.mirror()).unwrap();
    assert!(w.open().unwrap().mirror.unwrap().contains("kept as"));
    assert!(w.peers("log/runs.jsonl.1.kept").is_symlink());
    assert_eq!(fs::read(w.mirror()).unwrap(), fs::read(w.journal()).unwrap());
}

#[test]
fn a_segment_that_is_no_plain_file_is_named_and_refused() {
    for kind in ["link", "dangling", "directory", "fifo", "hard link"] {
        let w = World::with(2);
        let aside = w.dir.path().join("aside");
        fs::rename(w.journal(), &aside).unwrap();
        match kind {
            "link" => symlink(&aside, w.journal()).unwrap(),
            "dangling" => symlink("nowhere", w.journal()).unwrap(),
            "directory" => fs::create_dir(w.journal()).unwrap(),
            "hard link" => fs::hard_link(&aside, w.journal()).unwrap(),
            _ => super::fifo(&w.journal()),
        }
        let Err(error) = Store::open(w.disk()) else { panic!("{kind}") };
        assert_eq!(error.disk().map(|d| d.kind), Some(crate::DiskErrorKind::Unsafe), "{kind}: {error}");
        assert!(error.to_string().contains("journal/000001.jsonl"), "{kind}: {error}");
    }
}

#[test]
fn segments_have_exact_names_and_no_gaps() {
    for (name, says) in [
        ("000000.jsonl", "journal/000000.jsonl is not the name of a segment"),
        ("2.jsonl", "journal/2.jsonl is not the name of a segment"),
        ("x.jsonl", "journal/x.jsonl is not the name of a segment"),
        ("000003.jsonl", "journal/000002.jsonl is missing, but another segment follows"),
    ] {
        let w = World::with(2);
        fs::write(w.store("journal").join(name), "").unwrap();
        w.refused(says);
    }
    let w = World::with(2);
    fs::write(w.store("journal/torn-4"), "kept").unwrap();
    w.open().unwrap();
}
