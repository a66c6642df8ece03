//! What is in the way of files, and of references.

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
