//! What stands in the journal, and what does not get there.

use std::fs;

use peers_model::record::{CommitsSeen, PeerSpawned, Record};
use peers_model::{CommitId, TickNo};

use super::{World, at, reset};
use crate::{Author, Authors, Store, StoreError};

#[test]
fn a_line_that_was_changed_is_refused_though_it_can_be_read() {
    let w = World::with(3);
    let text = fs::read_to_string(w.journal()).unwrap();
    fs::write(w.journal(), text.replacen("\"by\":\"op\"", "\"by\":\"eve\"", 1)).unwrap();
    w.refused("journal/000001.jsonl line 2 does not continue the line before it");
}

#[test]
fn a_line_of_a_newer_program_is_refused_though_it_can_be_read() {
    let w = World::with(3);
    let text = fs::read_to_string(w.journal()).unwrap();
    fs::write(w.journal(), text.replacen("{\"v\":1,", "{\"v\":2,", 1)).unwrap();
    w.refused("journal/000001.jsonl line 1 has format 2");
}

#[test]
fn a_record_that_cannot_follow_is_not_written_and_neither_is_what_came_with_it() {
    let w = World::with(2);
    let mut store = Store::open(w.disk()).unwrap().0;
    let (before, state) = (w.files(), store.state().clone());
    let spawned = PeerSpawned { tick: TickNo(1), pid: 1, start_time: 1, boot_id: "b".into() };
    let refused = store.append(at(), None, &[reset(), Record::PeerSpawned(spawned)]);
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert_eq!((w.files(), store.state()), (before, &state));
}

#[test]
fn a_commit_that_appeared_while_gates_ran_is_nobodys_and_stays_so() {
    let commit = |digit: &str| CommitId::new(digit.repeat(40)).unwrap();
    let seen = |commits: &[CommitId], while_gates| {
        let (head, commits) = (commit("f"), commits.to_vec());
        Record::CommitsSeen(CommitsSeen { head, commits, while_gates, weakens: false })
    };
    let mut authors = Authors::default();
    authors.take(&seen(&[commit("a")], true));
    authors.take(&seen(&[commit("a"), commit("b")], false));
    assert_eq!(authors.of(&commit("a")), Some(&Author::Foreign));
    assert_eq!(authors.of(&commit("b")), Some(&Author::Operator));
}
