//! The agents' object store: what is missing in it, what git does to it, what somebody planted.

use std::path::Path;
use std::process::{Command, Stdio};

use super::fixture::{Fixture, command, fifo, git_in, put};
use crate::{GitError, MissingObject, SyntheticGit};

/// A pack with this content, as bytes.
fn pack_of(fixture: &Fixture, content: &[u8]) -> Vec<u8> {
    let scratch = fixture.path("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    git_in(&scratch, fixture.dir.path(), &["init", "-q"]);
    put(&scratch.join("content"), content);
    let id = git_in(&scratch, fixture.dir.path(), &["hash-object", "-w", "--no-filters", "content"]);
    put(&scratch.join("ids"), id.as_bytes());
    let mut pack = command(&scratch, fixture.dir.path(), &["pack-objects", "--stdout", "-q"]);
    pack.stdin(std::fs::File::open(scratch.join("ids")).unwrap()).stderr(Stdio::inherit());
    let done = pack.output().unwrap();
    assert!(done.status.success());
    done.stdout
}

fn sha1(fixture: &Fixture, bytes: &[u8]) -> Vec<u8> {
    let file = fixture.path("to-hash");
    std::fs::write(&file, bytes).unwrap();
    let done = Command::new("sha1sum").arg(&file).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    (0..20).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
}

/// Plants a pack whose index gives the object `id` this content.
fn plant(fixture: &Fixture, id: &str, content: &[u8]) {
    let pack = pack_of(fixture, content);
    let name: Vec<u8> = (0..20).map(|n| u8::from_str_radix(&id[2 * n..2 * n + 2], 16).unwrap()).collect();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    index.extend((0..=255_u8).flat_map(|first| u32::from(first >= name[0]).to_be_bytes()));
    index.extend_from_slice(&name);
    index.extend_from_slice(&[0; 4]);
    index.extend_from_slice(&12_u32.to_be_bytes());
    index.extend_from_slice(&pack[pack.len() - 20..]);
    let sum = sha1(fixture, &index);
    index.extend_from_slice(&sum);
    let stem = fixture.work.join(".git/objects/pack").join(format!("pack-{id}"));
    put(&stem.with_extension("pack"), &pack);
    put(&stem.with_extension("idx"), &index);
}

fn id_of(fixture: &Fixture, name: &str) -> String {
    fixture.git(&["rev-parse", name]).trim().to_owned()
}

fn file_of(id: &str) -> String {
    format!("objects/{}/{}", &id[..2], &id[2..])
}

#[test]
fn what_the_tip_needs_and_is_gone_or_damaged_is_found_and_all_else_is_not_looked_at() {
    let missing = |what: &str, damage: &[u8], known: bool| {
        let fixture = Fixture::new();
        fixture.write("dir/b", "two\n");
        fixture.write("old", "old\n");
        fixture.commit("second");
        fixture.remove("old");
        if known {
            fixture.commit("third");
        }
        let control = fixture.imported();
        let tip = if known { fixture.head() } else { fixture.commit("third") };
        assert_eq!(control.missing_object(&fixture.open(), &tip).unwrap(), None);
        let id = id_of(&fixture, what);
        let file = fixture.work.join(".git").join(file_of(&id));
        std::fs::remove_file(&file).unwrap();
        if !damage.is_empty() {
            put(&file, damage);
        }
        let found = control.missing_object(&fixture.open(), &tip).unwrap();
        (found, id)
    };
    for (what, kind) in
        [("HEAD", "commit"), ("HEAD^{tree}", "tree"), ("HEAD:dir", "tree"), ("HEAD:dir/b", "blob")]
    {
        for damage in [&b""[..], b"garbage", b"\0"] {
            let (found, id) = missing(what, damage, true);
            let MissingObject { what: told, file, known } = found.unwrap();
            assert_eq!((told, known), (format!("{kind} {id}"), true), "{what}");
            assert!(file.ends_with(file_of(&id)), "{what}");
        }
    }
    for what in ["HEAD~1", "HEAD~1:old"] {
        assert_eq!(missing(what, b"", true).0, None, "{what}");
    }
    assert!(!missing("HEAD", b"", false).0.unwrap().known, "our copy has not seen it");
}

#[test]
fn what_git_does_to_its_object_store_is_no_damage() {
    for tidy in [
        &["gc", "-q", "--prune=now"][..],
        &["repack", "-q", "-a", "-d", "--write-midx"],
        &["multi-pack-index", "write"],
        &["commit-graph", "write", "--reachable"],
        &["-c", "pack.indexVersion=1", "repack", "-q", "-a", "-d"],
        &["pack-refs", "--all"],
        &["prune", "--expire=now"],
        &["worktree", "add", "-q", "../beside"],
    ] {
        let fixture = Fixture::new();
        let mut control = fixture.imported();
        fixture.write("b", "two\n");
        fixture.commit("second");
        fixture.git(&["repack", "-q", "-d"]);
        fixture.write("b", "three\n");
        let tip = fixture.commit("third");
        fixture.git(tidy);
        put(&fixture.work.join(".git/objects/pack/tmp_pack_x"), b"of one that was interrupted");
        assert_eq!(control.missing_object(&fixture.open(), &tip).unwrap(), None, "{tidy:?}");
        assert_eq!(control.import(&fixture.open(), None).unwrap().head, tip, "{tidy:?}");
    }
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.work.join(".git/objects/pack/multi-pack-index.d")).unwrap();
    assert_eq!(fixture.imported().missing_object(&fixture.open(), &fixture.head()).unwrap(), None);
}

#[test]
fn an_object_store_that_is_unsafe_to_read_is_refused() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    std::fs::create_dir_all(fixture.work.join(".git/objects/pack")).unwrap();
    fifo(&fixture.work.join(".git/objects/pack/x.pack"));
    let found = control.missing_object(&fixture.open(), &fixture.head());
    assert!(matches!(found, Err(GitError::Repo(_))), "{found:?}");
}

#[test]
fn content_that_a_planted_pack_gives_an_object_is_not_brought_in() {
    let fixture = Fixture::new();
    fixture.write("a", "two\n");
    let head = fixture.commit("second");
    let mut control = fixture.control();
    plant(&fixture, &id_of(&fixture, "HEAD:a"), b"planted\n");
    assert_eq!(fixture.git(&["show", "HEAD:a"]), "planted\n", "git believes it");
    assert!(control.import(&fixture.open(), None).is_err());
    assert!(!control.facts().has(&head));
}

#[test]
fn what_is_lent_for_a_proof_has_the_whole_history_and_nothing_that_was_planted() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "-a", "-m", "v", "v1"]);
    fixture.git(&["tag", "light"]);
    fixture.commit("second");
    let head = fixture.commit("third");
    let mut control = fixture.control();
    drop(control.import(&fixture.open(), Some(&head)).unwrap());
    let lent = control.lend(&fixture.open()).unwrap();
    plant(&fixture, &id_of(&fixture, "HEAD:a"), b"planted\n");
    let again = control.lend(&fixture.open()).unwrap();
    assert_eq!(lent, again);
    assert_eq!((lent.shallow.len(), lent.tags.len()), (0, 2));
    let show = |lent: &SyntheticGit, name: &str| {
        let dir = fixture.path(name);
        control.checkout_pristine(&head, &dir, lent).unwrap();
        let git = |args: &[&str]| git_in(&dir, fixture.dir.path(), args);
        assert_eq!(git(&["log", "--format=%s"]), "third\nsecond\nfirst\n");
        assert_eq!(git(&["describe"]).split('-').next(), Some("v1"));
        git(&["show", "HEAD:a"])
    };
    assert_eq!(show(&lent, "proof"), "one\n");
    let theirs = SyntheticGit { objects_dir: fixture.open().objects_dir(), ..lent };
    assert_eq!(show(&theirs, "theirs"), "planted\n", "else nothing was planted");
}

#[test]
fn only_damage_of_our_own_directory_is_a_reason_to_make_it_anew() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let io = |path: &Path, code: i32| GitError::io(path, std::io::Error::from_raw_os_error(code));
    let (ours, theirs) = (control.objects_dir(), fixture.work.clone());
    let (missing, full, too_many, no_dir) = (2, 28, 24, 20);
    for (error, is) in [
        (io(&ours, missing), true),
        (io(&ours, no_dir), true),
        (io(&theirs, missing), false),
        (io(&ours, full), false),
        (io(&ours, too_many), false),
        (GitError::DiskFull { what: "x".into() }, false),
        (GitError::TooLarge { what: "x".into(), cap: "y".into() }, false),
        (GitError::Corrupt { what: "x".into(), detail: "y".into() }, true),
    ] {
        assert_eq!(control.is_damaged_by(&error), is, "{error:?}");
    }
    assert!(control.works().unwrap());
}
