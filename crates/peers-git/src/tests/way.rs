//! What is in the way of files, and where it goes; what is in the way of references.

use std::collections::BTreeSet;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::fixture::{Fixture, put};

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
fn a_reference_above_or_below_leaves_no_room_for_one() {
    for (name, other) in [("m", "m/x"), ("w/o/i", "w/o")] {
        for packed in [false, true] {
            let fixture = Fixture::new();
            fixture.git(&["branch", "-m", "main", other]);
            if packed {
                fixture.git(&["pack-refs", "--all"]);
            }
            let found = fixture.open().in_the_way(&format!("refs/heads/{name}")).unwrap();
            assert_eq!(found, Some(format!("refs/heads/{other}")), "{name} {packed}");
        }
    }
    let fixture = Fixture::new();
    fixture.git(&["branch", "a/b"]);
    fixture.git(&["branch", "ma"]);
    std::fs::create_dir_all(fixture.work.join(".git/refs/heads/e/m/p/t/y")).unwrap();
    for name in ["refs/heads/main", "refs/heads/a/c", "refs/heads/m", "refs/heads/main2", "refs/heads/e"] {
        assert_eq!(fixture.open().in_the_way(name).unwrap(), None, "{name}");
    }
}
