//! What a loop kept of the history is worth what reading all of it would say, and no more.

use peers_model::CommitId;
use peers_store::history::{Claiming, History};

use super::World;
use crate::{Verdict, history};

fn report(id: &str) -> String {
    format!(
        "r\n\n## Bug-Report\n{{\"id\":\"{id}\",\"severity\":\"med\",\"title\":\"t\"}}\n\nBug-Report: {id}\n"
    )
}

fn read(world: &World, kept: Option<History>) -> History {
    let cx = world.cx();
    history::read(&cx.facts().unwrap(), cx.base(), cx.head(), kept).unwrap()
}

/// Something that happens in a repository.
type Act = fn(&mut World);

#[test]
fn whatever_happened_since_a_kept_history_leads_to_what_all_of_it_says() {
    let acts: [(&str, Act); 6] = [
        ("nothing", |_| {}),
        ("two commits", |world| {
            world.commit("work on bug-b", &[("b.txt", "b\n")]);
            world.commit(&report("B2"), &[]);
        }),
        ("a merge", |world| {
            world.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
            world.commit(&report("B3"), &[("side.txt", "s\n")]);
            world.git(&["checkout", "-q", "main"]);
            world.commit(&report("B4"), &[]);
            world.git(&["merge", "-q", "-m", "bug-merge", "side"]);
            world.commit(&report("B5"), &[]);
        }),
        ("a reset", |world| drop(world.git(&["reset", "-q", "--hard", "HEAD~1"]))),
        ("a commit amended", |world| {
            drop(world.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "other"]));
        }),
        ("another base", World::base_here),
    ];
    for (what, act) in acts {
        let mut world = World::new();
        world.commit("work", &[("a.txt", "a\n")]);
        world.commit(&report("B1"), &[("src/a.rs", "a\n")]);
        let kept = read(&world, None);
        assert_eq!((kept.commits, kept.claiming.len()), (2, 1), "{what}");
        act(&mut world);
        assert_eq!(read(&world, Some(kept)), read(&world, None), "{what}");
    }
}

#[test]
fn the_ledger_goes_by_what_is_kept_and_by_nothing_that_is_damaged_or_of_elsewhere() {
    let mut world = World::running();
    world.turn("claude", &report("B1"));
    let whole = read(&world, None);
    let bugs = |world: &World| world.check("bug-ledger").report.counts["total"];
    let invented = Claiming { message: report("B9"), ..whole.claiming.first().unwrap().clone() };
    let mut other = History { claiming: vec![invented.clone(), invented], ..whole.clone() };
    other.write(&mut world.disk()).unwrap();
    world.turn("codex", &report("B2"));
    assert_eq!(bugs(&world), 2, "B9 of what was kept, and B2 that is new");
    other.head = CommitId::new("f".repeat(40)).unwrap();
    other.write(&mut world.disk()).unwrap();
    assert_eq!(bugs(&world), 2, "B1 and B2 of the commits");
    other.claiming.clear();
    other.write(&mut world.disk()).unwrap();
    assert_eq!(bugs(&world), 2);
    for damaged in ["", "{", "{\"v\":2,\"history\":null}"] {
        std::fs::write(world.path("store/ledger.json"), damaged).unwrap();
        assert_eq!((bugs(&world), world.check("bug-ledger").report.verdict), (2, Verdict::Fail), "{damaged}");
    }
}
