//! What is in the way of files and of references, and where it goes.

use std::collections::BTreeSet;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::fixture::{Fixture, put, set_mode, substrate};
use crate::RefValue;

#[test]
fn every_path_that_is_blocked_is_told_as_it_is() {
    let fixture = Fixture::new();
    let odd: Vec<std::path::PathBuf> = (0..150)
        .map(|n| format!("f{n:03}").into_bytes())
        .chain([b"z\xff".to_vec(), b"\x1b[2J".to_vec(), [b'l'; 255].to_vec()])
        .map(|name| std::ffi::OsString::from_vec(name).into())
        .collect();
    for name in &odd {
        put(&fixture.work.join(name), b"x");
    }
    let one = fixture.commit("one");
    for name in &odd {
        std::fs::remove_file(fixture.work.join(name)).unwrap();
    }
    let two = fixture.commit("two");
    let control = fixture.imported();
    for name in &odd {
        put(&fixture.work.join(name).join("full"), b"x");
    }
    let facts = control.facts();
    let trees = (facts.tree_of(&two).unwrap(), facts.tree_of(&one).unwrap());
    let repo = fixture.open();
    let report = repo.checkout_changed(&control, &trees.0, &trees.1).unwrap();
    let blocked: BTreeSet<&[u8]> = report.blocked.iter().map(Vec::as_slice).collect();
    assert_eq!(blocked, odd.iter().map(|name| name.as_os_str().as_bytes()).collect());
    let names = report.blocked_names();
    assert!(names.len() == 100 && names.iter().all(|name| !name.contains('\x1b')));
    for path in &report.blocked {
        let to = repo.move_aside(path, "tick-1").unwrap().unwrap();
        let note = std::fs::read(fixture.work.join(format!(".git/{to}.path"))).unwrap();
        assert_eq!(note, [&path[..], b"\n"].concat());
        assert_eq!(fixture.read(&format!(".git/{to}/full")), "x");
        assert!(to.starts_with("peers-aside/tick-1-") && to.is_ascii() && to.len() < 60);
    }
    assert!(repo.checkout_changed(&control, &trees.0, &trees.1).unwrap().blocked.is_empty());
}

#[test]
fn what_is_moved_aside_twice_has_two_names() {
    let fixture = Fixture::new();
    let repo = fixture.open();
    let first = repo.move_aside(b"a", "tick-1").unwrap().unwrap();
    assert_eq!(repo.move_aside(b"a", "tick-1").unwrap(), None);
    fixture.write("a", "again\n");
    let second = repo.move_aside(b"a", "tick-1").unwrap().unwrap();
    assert_eq!(fixture.read(&format!(".git/{first}")), "one\n");
    assert_eq!(fixture.read(&format!(".git/{second}")), "again\n");
    assert_eq!(std::fs::read_dir(fixture.work.join(".git/peers-aside")).unwrap().count(), 4);
}

#[test]
fn the_oldest_of_what_was_moved_aside_goes_but_nothing_of_the_last_two_ticks() {
    let fixture = Fixture::new();
    let repo = fixture.open();
    let mut at = Vec::new();
    for tick in [1, 2, 9, 10, 11] {
        repo.forget_aside(tick).unwrap();
        for n in 0..5 {
            fixture.write("x", format!("{n}"));
            at.push((tick, repo.move_aside(b"x", &format!("tick-{tick:05}")).unwrap().unwrap()));
        }
    }
    fixture.write(".git/peers-aside/mine", "x");
    repo.forget_aside(11).unwrap();
    let left: BTreeSet<u64> =
        at.iter().filter(|(_, to)| fixture.exists(&format!(".git/{to}"))).map(|(tick, _)| *tick).collect();
    assert_eq!(left, BTreeSet::from([10, 11]));
    assert!(fixture.exists(".git/peers-aside/mine"));
    for (_, to) in at.iter().filter(|(tick, _)| *tick > 9) {
        assert!(fixture.exists(&format!(".git/{to}")) && fixture.exists(&format!(".git/{to}.path")));
    }
}

#[test]
fn what_may_be_the_operators_is_never_forgotten_and_does_not_count() {
    let fixture = Fixture::new();
    let repo = fixture.open();
    let keep = |n: u32, lasting: bool| {
        fixture.write("x", format!("{n}"));
        let label = format!("tick-{n:05}");
        if lasting { repo.keep_aside(b"x", &label) } else { repo.move_aside(b"x", &label) }.unwrap().unwrap()
    };
    let lasting: Vec<String> = (0..15).map(|n| keep(n, true)).collect();
    let few = keep(1, false);
    repo.forget_aside(99).unwrap();
    assert!(fixture.exists(&format!(".git/{few}")), "there are not too many of them");
    (0..20).for_each(|n| drop(keep(n, false)));
    repo.forget_aside(99).unwrap();
    assert!(lasting.iter().all(|to| fixture.exists(&format!(".git/{to}"))));
    assert!(!fixture.exists(&format!(".git/{few}")));
}

#[test]
fn what_is_moved_aside_in_a_linked_work_tree_stays_when_that_is_removed() {
    let fixture = Fixture::new();
    let linked = fixture.path("linked");
    fixture.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let snapshot = crate::GuardSnapshot::take(&crate::PeerRepo::open(&linked).unwrap(), &[]).unwrap();
    fixture.write(".git/refs/heads/large", "x".repeat(70_000));
    let gone = snapshot.clear_unsafe("tick-1").unwrap();
    let repo = crate::PeerRepo::open(&linked).unwrap();
    let mut all = vec![repo.move_aside(b"a", "tick-1").unwrap().unwrap()];
    all.extend(gone[0].kept.clone());
    fixture.write(".git/refs/heads/m/x", format!("{}\n", fixture.head()));
    let way = repo.in_the_way("refs/heads/m").unwrap().unwrap();
    all.extend(repo.make_way(&way, "tick-1", &substrate()).unwrap());
    std::fs::write(linked.join(".git-index"), "").unwrap();
    fixture.git(&["worktree", "remove", "--force", linked.to_str().unwrap()]);
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|to| fixture.exists(&format!(".git/{to}"))), "{all:?}");
}

/// Does something as one to whom the modes of files apply.
#[cfg(target_os = "linux")]
fn as_anyone<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let act = || {
        let mut mine = capabilities(None).unwrap();
        mine.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        set_capabilities(None, mine).unwrap();
        act()
    };
    std::thread::scope(|scope| scope.spawn(act).join().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn what_nobody_may_read_is_opened_up() {
    let fixture = Fixture::new();
    fixture.write(".git/hooks/pre-push", "mine\n");
    fixture.write(".git/refs/heads/a/b", format!("{}\n", fixture.head()));
    let snapshot = crate::GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    let names = ["HEAD", "config", "hooks", "index", "logs", "objects/info", "refs/heads/a"];
    std::fs::create_dir_all(fixture.work.join(".git/objects/info")).unwrap();
    for name in names {
        set_mode(&fixture.work.join(".git").join(name), 0);
    }
    let (changes, gone) = as_anyone(|| {
        let mut gone = snapshot.open_up();
        let changes = snapshot.compare_files().unwrap();
        gone.extend(snapshot.clear_unsafe("tick-1").unwrap());
        assert!(snapshot.can_be_opened());
        (changes.len(), gone)
    });
    let mut opened: Vec<&str> = gone.iter().filter(|one| one.opened).map(|one| one.name.as_str()).collect();
    opened.sort_unstable();
    assert_eq!((changes, opened), (0, names.to_vec()));
    assert_eq!(fixture.read(".git/hooks/pre-push"), "mine\n");
    fixture.commit("git can");
}

#[cfg(target_os = "linux")]
#[test]
fn what_nobody_may_write_to_is_moved_aside_all_the_same() {
    let fixture = Fixture::new();
    let snapshot = crate::GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    fixture.remove(".git/index");
    fixture.write(".git/index/inner", "x");
    fixture.write(".git/refs/heads/shut/x.lock", "");
    for (name, mode) in [("index", 0o500), ("refs/heads/shut", 0o500), ("peers-aside", 0)] {
        std::fs::create_dir_all(fixture.work.join(".git").join(name)).unwrap();
        set_mode(&fixture.work.join(".git").join(name), mode);
    }
    let gone = as_anyone(|| {
        let gone = snapshot.clear_unsafe("tick-1").unwrap();
        assert_eq!(fixture.open().remove_ref_locks(&[]).1, 1);
        gone
    });
    assert_eq!((gone.len(), gone[0].name.as_str()), (1, "index"));
    assert_eq!(fixture.read(&format!(".git/{}/inner", gone[0].kept.as_ref().unwrap())), "x");
    drop(fixture.open());
}

#[test]
fn what_is_in_the_way_of_a_reference_is_found_and_moved_aside() {
    for (name, other, packed) in
        [("m", "m/x", false), ("m", "m/x", true), ("w/o/i", "w/o", false), ("w/o/i", "w/o", true)]
    {
        let fixture = Fixture::new();
        fixture.git(&["branch", "-m", "main", other]);
        fixture.git(&["branch", "plain"]);
        fixture.git(&["tag", "-a", "-m", "t", "t"]);
        if packed {
            fixture.git(&["pack-refs", "--all"]);
        }
        let (repo, tip) = (fixture.open(), fixture.head());
        let full = format!("refs/heads/{name}");
        assert!(repo.create_branch(name, &tip, &substrate()).is_err() || packed);
        let way = repo.in_the_way(&full).unwrap().unwrap();
        let value = RefValue::Direct(tip.to_string());
        assert_eq!(way.refs, [(format!("refs/heads/{other}"), value)], "{name} {packed}");
        let moved = repo.make_way(&way, "tick-1", &substrate()).unwrap();
        assert_eq!(repo.in_the_way(&full).unwrap(), None);
        assert_eq!(fixture.git(&["rev-parse", "HEAD"]).trim(), tip.as_str(), "HEAD was detached");
        let notes: Vec<String> = moved.iter().map(|to| fixture.read(&format!(".git/{to}.path"))).collect();
        assert!(notes.iter().all(|note| note.starts_with(".git/")), "{notes:?}");
        if !packed || name == "m" {
            repo.force_branch(name, &tip, &substrate()).unwrap();
        } else {
            repo.create_branch(name, &tip, &substrate()).unwrap();
        }
        repo.set_head_branch(name, &substrate()).unwrap();
        let all = fixture.git(&["for-each-ref", "--format=%(refname:short)"]);
        assert_eq!(all.lines().collect::<BTreeSet<_>>(), BTreeSet::from([name, "plain", "t"]));
        assert_eq!(fixture.rev("t^{}"), tip);
        assert!(fixture.git(&["reflog", "-1", name]).contains("peers"));
        fixture.git(&["fsck", "--strict"]);
    }
}

#[test]
fn nothing_is_in_the_way_of_a_reference_beside_others_and_of_one_above_empty_directories() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "a/b"]);
    fixture.git(&["branch", "ma"]);
    std::fs::create_dir_all(fixture.work.join(".git/refs/heads/e/m/p/t/y")).unwrap();
    for name in ["refs/heads/main", "refs/heads/a/c", "refs/heads/m", "refs/heads/main2", "refs/heads/e"] {
        assert_eq!(fixture.open().in_the_way(name).unwrap(), None, "{name}");
    }
    fixture.open().create_branch("e", &fixture.head(), &substrate()).unwrap();
}

#[test]
fn files_and_logs_that_are_no_references_are_in_the_way_too() {
    let fixture = Fixture::new();
    let head = fixture.head();
    fixture.write(".git/refs/heads/a", "junk\n");
    fixture.write(".git/logs/refs/heads/b/c", "junk\n");
    for (name, moved) in [("a/b", 1), ("b", 1)] {
        let repo = fixture.open();
        let way = repo.in_the_way(&format!("refs/heads/{name}")).unwrap().unwrap();
        assert_eq!(way.refs, []);
        assert_eq!(repo.make_way(&way, "tick-1", &substrate()).unwrap().len(), moved);
        repo.create_branch(name, &head, &substrate()).unwrap();
    }
}
