//! The agents' object store when somebody planted something in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::fixture::{Fixture, command, git_in, put, set_mode, tomorrow};
use crate::{GitError, PeerRepo, StoreMended, SyntheticGit};

/// A pack with objects of a scratch repository, as bytes.
fn pack_of(fixture: &Fixture, contents: &[&[u8]]) -> Vec<u8> {
    let scratch = fixture.path("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    git_in(&scratch, fixture.dir.path(), &["init", "-q"]);
    let mut ids = String::new();
    for content in contents {
        put(&scratch.join("content"), content);
        ids.push_str(&git_in(
            &scratch,
            fixture.dir.path(),
            &["hash-object", "-w", "--no-filters", "content"],
        ));
    }
    put(&scratch.join("ids"), ids.as_bytes());
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

/// Plants a pack whose index gives the object `id` this content. Returns the path of the index.
fn plant(fixture: &Fixture, id: &str, content: &[u8]) -> PathBuf {
    plant_with(fixture, id, content, &[])
}

/// An entry of a pack that claims to be a tree of 2^59 bytes.
fn endless() -> Vec<u8> {
    let header = [0xa0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
    // The stream has one byte.
    [&header[..], &[0x78, 0x01, 1, 1, 0, 0xfe, 0xff, b'x', 0, 0x79, 0, 0x79]].concat()
}

/// The same with one more entry in the pack, which the index gives a name that no object has.
fn plant_with(fixture: &Fixture, id: &str, content: &[u8], more: &[u8]) -> PathBuf {
    let mut pack = pack_of(fixture, &[content]);
    let count = 1 + u32::from(!more.is_empty());
    pack.truncate(pack.len() - 20);
    pack.extend_from_slice(more);
    pack[8..12].copy_from_slice(&count.to_be_bytes());
    let sum = sha1(fixture, &pack);
    pack.extend_from_slice(&sum);
    let name: Vec<u8> = (0..20).map(|n| u8::from_str_radix(&id[2 * n..2 * n + 2], 16).unwrap()).collect();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=255_u8 {
        let names = if first == 255 { count } else { u32::from(first >= name[0]) };
        index.extend_from_slice(&names.to_be_bytes());
    }
    index.extend_from_slice(&name);
    index.extend((1..count).flat_map(|_| [0xff; 20]));
    index.extend((0..count).flat_map(|_| [0; 4]));
    index.extend((0..count).flat_map(|_| 12_u32.to_be_bytes()));
    index.extend_from_slice(&pack[pack.len() - 20..]);
    let sum = sha1(fixture, &index);
    index.extend_from_slice(&sum);
    let stem = fixture.work.join(".git/objects/pack").join(format!("pack-{id}"));
    put(&stem.with_extension("pack"), &pack);
    put(&stem.with_extension("idx"), &index);
    stem.with_extension("idx")
}

fn id_of(fixture: &Fixture, name: &str) -> String {
    fixture.git(&["rev-parse", name]).trim().to_owned()
}

fn file_of(id: &str) -> String {
    format!("objects/{}/{}", &id[..2], &id[2..])
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| step()).collect()
}

fn fsck(fixture: &Fixture) {
    fixture.git(&["fsck", "--full", "--strict", "--no-dangling"]);
}

/// Where a pack was moved to, by what is told of it.
fn moved(fixture: &Fixture, told: &str) -> PathBuf {
    let place = told.split(": moved to ").nth(1).unwrap().split(';').next().unwrap();
    fixture.work.join(place)
}

#[test]
fn a_new_pack_that_cannot_be_compared_with_its_content_is_moved_out_and_hides_nothing() {
    for too_large in [false, true] {
        let fixture = Fixture::new();
        let control = fixture.imported();
        let mark = fixture.open().store_mark().unwrap();
        let id = id_of(&fixture, "HEAD:a");
        // The file of its own may be gone: ours takes its place.
        std::fs::remove_file(fixture.work.join(".git").join(file_of(&id))).unwrap();
        // An index may be as large as the objects in the pack can be many.
        let content = if too_large { noise(300_000) } else { b"planted\n".to_vec() };
        let more = if too_large { Vec::new() } else { endless() };
        let index = plant_with(&fixture, &id, &content, &more);
        assert_ne!(fixture.git(&["cat-file", "-s", "HEAD:a"]), "4\n", "git believes it");
        let pack = std::fs::read(index.with_extension("pack")).unwrap();
        if too_large {
            std::fs::File::options().write(true).open(&index).unwrap().set_len(2 << 20).unwrap();
        }
        let (mended, now) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
        assert!(now.is_none() && !index.exists() && !index.with_extension("pack").exists());
        assert_eq!(std::fs::read(moved(&fixture, &mended.packs[0])).unwrap(), pack);
        assert_eq!((mended.restored, mended.packs.len()), (vec![file_of(&id)], 1));
        assert_eq!((mended.stuck.len(), mended.unseen.len()), (0, 0), "{:?}", mended.unseen);
        assert_eq!(fixture.git(&["show", "HEAD:a"]), "one\n");
        fsck(&fixture);
    }
}

#[test]
fn a_pack_that_was_there_before_and_cannot_be_compared_stays_and_is_not_looked_at_again() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let (other, head) = ("1234567890123456789012345678901234567890", fixture.head());
    let index = plant_with(&fixture, other, b"theirs\n", &endless());
    for unseen in [1, 0] {
        let mended = control.mend_packs(&fixture.open()).unwrap();
        assert_eq!((mended.unseen.len(), mended.packs.len()), (unseen, 0), "{mended:?}");
    }
    let mark = fixture.open().store_mark().unwrap();
    let (mended, now) = control.mend_store(&fixture.open(), Some(&mark), &head).unwrap();
    assert_eq!((mended, now.is_some(), index.exists()), (StoreMended::default(), true, true));
}

#[test]
fn what_cannot_be_compared_and_was_planted_while_nobody_looked_is_moved_out_at_the_start() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    assert!(control.mend_packs(&fixture.open()).unwrap().is_untouched());
    let id = id_of(&fixture, "HEAD:a");
    std::fs::remove_file(fixture.work.join(".git").join(file_of(&id))).unwrap();
    plant_with(&fixture, &id, b"planted\n", &endless());
    let mended = control.mend_packs(&fixture.open()).unwrap();
    assert_eq!((mended.packs.len(), mended.restored), (1, vec![file_of(&id)]));
    fsck(&fixture);
}

#[test]
fn a_new_pack_for_which_there_is_no_time_left_is_moved_out_and_what_is_sound_in_it_stays() {
    let fixture = Fixture::new();
    fixture.git(&["repack", "-q", "-a", "-d"]);
    let mut control = fixture.imported();
    control.pack_time = std::time::Duration::ZERO;
    let mark = fixture.open().store_mark().unwrap();
    let packs = || {
        let dir = std::fs::read_dir(fixture.work.join(".git/objects/pack")).unwrap();
        dir.map(|file| file.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = packs();
    fixture.write("b", "two\n");
    // Adding everything would write `a` again, and git would touch the pack that has it.
    fixture.git(&["add", "b"]);
    fixture.git(&["commit", "-q", "-m", "of the turn"]);
    let own = fixture.head();
    fixture.git(&["repack", "-q", "-d"]);
    plant(&fixture, &id_of(&fixture, "HEAD:a"), b"planted\n");
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!((mended.packs.len(), mended.unseen.len()), (2, 1), "{mended:?}");
    assert!(mended.packs[0].contains("there was no time left for it"));
    assert_eq!(packs(), before, "what was there before stays");
    assert_eq!((fixture.head(), fixture.git(&["show", "HEAD:a"]).as_str()), (own, "one\n"));
    fsck(&fixture);
}

#[test]
fn an_index_larger_than_any_of_its_pack_is_made_again_and_the_pack_stays() {
    let fixture = Fixture::new();
    fixture.git(&["repack", "-q", "-a", "-d"]);
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let dir = fixture.work.join(".git/objects/pack");
    let files = || std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path());
    let index = files().find(|path| path.extension().is_some_and(|end| end == "idx")).unwrap();
    set_mode(&index, 0o644);
    std::fs::File::options().write(true).open(&index).unwrap().set_len(2 << 20).unwrap();
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!((mended.restored.len(), mended.packs.len(), mended.unseen.len()), (1, 0, 0), "{mended:?}");
    assert!(files().all(|file| file.metadata().unwrap().len() < 10_000));
    fsck(&fixture);
}

/// The operator's only pack, larger than what is moved without more, written anew after it was looked at.
fn packed_anew(more: impl FnOnce(&Fixture)) -> (Fixture, crate::ControlDir, PathBuf) {
    let fixture = Fixture::new();
    fixture.write("large", noise(100_000));
    fixture.commit("large");
    more(&fixture);
    fixture.git(&["repack", "-q", "-a", "-d"]);
    let mut control = fixture.imported();
    control.clock = tomorrow;
    assert!(control.mend_packs(&fixture.open()).unwrap().is_untouched());
    fixture.write("more", "of the operator\n");
    fixture.commit("more");
    fixture.git(&["repack", "-q", "-a", "-d"]);
    let _imported = control.import(&fixture.open(), None).unwrap();
    control.pack_time = std::time::Duration::ZERO;
    let dir = fixture.work.join(".git/objects/pack");
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|end| end == "pack");
    let pack = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).find(is_pack).unwrap();
    (fixture, control, pack)
}

#[test]
fn a_large_pack_goes_only_where_all_that_is_in_use_can_be_given_back() {
    let (fixture, control, pack) = packed_anew(|_| {});
    let mended = control.mend_packs(&fixture.open()).unwrap();
    assert_eq!((mended.packs.len(), pack.exists()), (1, false), "there is a copy of everything: {mended:?}");
    fsck(&fixture);
    let many = |fixture: &Fixture| {
        (0..40)
            .for_each(|n| fixture.write(&format!(".git/refs/heads/b{n}"), format!("{}\n", fixture.head())));
    };
    let tagged = |fixture: &Fixture| drop(fixture.git(&["tag", "-a", "-m", "one", "v1"]));
    let both: [&dyn Fn(&Fixture); 2] = [&many, &tagged];
    for more in both {
        let (fixture, control, pack) = packed_anew(more);
        let mended = control.mend_packs(&fixture.open()).unwrap();
        assert_eq!((mended.packs.len(), mended.unseen.len()), (0, 1), "{mended:?}");
        assert!(pack.exists());
        fsck(&fixture);
    }
    let (fixture, control, pack) = packed_anew(|_| {});
    let lost = control.path().join(file_of(&id_of(&fixture, "HEAD~2")));
    std::fs::remove_file(lost).unwrap();
    assert_eq!(control.mend_packs(&fixture.open()).unwrap().packs, [""; 0], "our copy lacks something");
    assert!(pack.exists());
}

#[test]
fn a_pack_that_was_only_touched_and_cannot_be_compared_stays_until_it_hides_something() {
    let fixture = Fixture::new();
    fixture.git(&["repack", "-q", "-a", "-d"]);
    let mut control = fixture.imported();
    control.clock = tomorrow;
    assert!(control.mend_packs(&fixture.open()).unwrap().is_untouched());
    control.pack_time = std::time::Duration::ZERO;
    let dir = fixture.work.join(".git/objects/pack");
    let names = || std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path());
    let pack = names().find(|path| path.extension().is_some_and(|end| end == "pack")).unwrap();
    let before = fixture.open().store_mark().unwrap();
    let touch = || {
        let file = std::fs::File::options().read(true).open(&pack).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    };
    touch();
    let mended = control.mend_packs(&fixture.open()).unwrap();
    assert_eq!((mended.packs.len(), mended.unseen.len()), (0, 1), "at a start: {mended:?}");
    let (mended, _) = control.mend_store(&fixture.open(), Some(&before), &fixture.head()).unwrap();
    assert_eq!((mended.packs.len(), pack.exists()), (0, true), "after a turn: {mended:?}");
    // The same file, and other content for an object in it.
    let at = std::fs::read(&pack).unwrap().len() - 24;
    set_mode(&pack, 0o644);
    let mut bytes = std::fs::read(&pack).unwrap();
    bytes[at] ^= 0xff;
    std::fs::write(&pack, bytes).unwrap();
    let mended = control.mend_packs(&fixture.open()).unwrap();
    assert_eq!((mended.packs.len(), mended.stuck.len(), pack.exists()), (1, 0, false), "{mended:?}");
    fsck(&fixture);
}

#[test]
fn a_pack_is_not_deleted_because_its_index_names_nothing_in_it() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let mut pack = pack_of(&fixture, &[b"precious\n", b"as well\n"]);
    *pack.last_mut().unwrap() ^= 1;
    let stem = fixture.work.join(".git/objects/pack/pack-1111111111111111111111111111111111111111");
    put(&stem.with_extension("pack"), &pack);
    put(&stem.with_extension("idx"), &[b"\xfftOc\0\0\0\x02", &[0; 1024 + 40][..]].concat());
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!((mended.restored.len(), mended.removed.len(), mended.packs.len()), (0, 0, 1));
    assert_eq!(std::fs::read(moved(&fixture, &mended.packs[0])).unwrap(), pack);
    fsck(&fixture);
}

#[test]
fn a_new_pack_that_gives_an_object_other_content_is_made_to_tell_the_truth() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let index = plant(&fixture, &id_of(&fixture, "HEAD:a"), b"planted\n");
    assert_eq!(fixture.git(&["show", "HEAD:a"]), "planted\n", "git believes it");
    let (mended, now) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    let name = format!("objects/pack/{}", index.file_name().unwrap().to_str().unwrap());
    assert_eq!(mended, StoreMended { restored: vec![name], ..StoreMended::default() });
    assert!(now.is_none(), "what was seen before is out of date");
    assert_eq!(fixture.git(&["show", "HEAD:a"]), "one\n");
    let planted = fixture.path("scratch/content");
    let planted = fixture.git(&["hash-object", "--no-filters", planted.to_str().unwrap()]);
    assert_eq!(fixture.git(&["cat-file", "-p", planted.trim()]), "planted\n", "under its own name");
    fsck(&fixture);
}

#[test]
fn a_pack_that_hides_the_commit_or_tree_of_head_does_so_no_more() {
    for name in ["HEAD", "HEAD^{tree}"] {
        let fixture = Fixture::new();
        let (control, head) = (fixture.imported(), fixture.head());
        let mark = fixture.open().store_mark().unwrap();
        plant(&fixture, &id_of(&fixture, name), b"no such thing\n");
        let peer = fixture.open();
        let (mended, _) = control.mend_store(&peer, Some(&mark), &head).unwrap();
        assert_eq!((mended.restored.len(), mended.stuck.len()), (1, 0), "{name}: {mended:?}");
        assert_eq!(PeerRepo::open(&fixture.work).unwrap().facts().head().unwrap().commit, head);
        fsck(&fixture);
    }
}

#[test]
fn what_was_planted_while_nobody_looked_is_found_at_the_next_start_and_good_packs_are_remembered() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    fixture.git(&["gc", "-q"]);
    control.clock = tomorrow;
    assert!(control.mend_packs(&fixture.open()).unwrap().is_untouched());
    let list = || std::fs::read_to_string(control.path().join("peers/packs")).unwrap();
    assert_eq!(list().lines().count(), 1);
    plant(&fixture, &id_of(&fixture, "HEAD:a"), b"planted\n");
    let (mended, _) = control.mend_store(&fixture.open(), None, &fixture.head()).unwrap();
    assert_eq!(mended.restored.len(), 1, "{mended:?}");
    assert_eq!(fixture.git(&["show", "HEAD:a"]), "one\n");
    let _mended = control.mend_packs(&fixture.open()).unwrap();
    assert_eq!(list().lines().count(), 2);
    std::fs::remove_dir_all(fixture.work.join(".git/objects/pack")).unwrap();
    let _mended = control.mend_packs(&fixture.open()).unwrap();
    assert_eq!(list(), "", "what is gone is forgotten");
}

#[test]
fn a_pack_of_which_no_index_can_be_made_goes_and_what_is_sound_in_it_stays() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let (one, two) = (noise(300), noise(400)[10..].to_vec());
    let mut pack = pack_of(&fixture, &[&one, &two]);
    let stem = fixture.work.join(".git/objects/pack/pack-1111111111111111111111111111111111111111");
    put(&stem.with_extension("pack"), &pack);
    fixture.git(&["index-pack", stem.with_extension("pack").to_str().unwrap()]);
    let at = pack.len() - 30;
    pack[at] ^= 0xff;
    std::fs::remove_file(stem.with_extension("pack")).unwrap();
    put(&stem.with_extension("pack"), &pack);
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    let told = &mended.packs[0];
    assert!(told.starts_with("objects/pack/pack-1111111111111111111111111111111111111111.pack "), "{told}");
    assert!(told.ends_with("; of the objects in it 1 have files of their own now"), "{told}");
    assert_eq!(std::fs::read(moved(&fixture, told)).unwrap(), pack);
    assert!(!stem.with_extension("pack").exists() && !stem.with_extension("idx").exists());
    let is_there = |content: &[u8]| {
        let id = git2::Oid::hash_object(git2::ObjectType::Blob, content).unwrap().to_string();
        fixture.work.join(".git").join(file_of(&id)).exists()
    };
    assert!(is_there(&one) != is_there(&two), "the damaged one is not taken out");
    fsck(&fixture);
}

#[test]
fn a_broken_pack_with_more_in_it_than_is_taken_out_is_kept_aside() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let (one, two) = (noise(900 << 10), noise(901 << 10)[10..].to_vec());
    let mut pack = pack_of(&fixture, &[&one, &two, &noise(500)[40..]]);
    let stem = fixture.work.join(".git/objects/pack/pack-1111111111111111111111111111111111111111");
    put(&stem.with_extension("pack"), &pack);
    fixture.git(&["index-pack", stem.with_extension("pack").to_str().unwrap()]);
    let at = pack.len() - 24;
    pack[at] ^= 0xff;
    std::fs::remove_file(stem.with_extension("pack")).unwrap();
    put(&stem.with_extension("pack"), &pack);
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!(std::fs::read(moved(&fixture, &mended.packs[0])).unwrap(), pack);
    assert!(!stem.with_extension("pack").exists() && !stem.with_extension("idx").exists());
    let is_there = |content: &[u8]| {
        let id = git2::Oid::hash_object(git2::ObjectType::Blob, content).unwrap().to_string();
        fixture.work.join(".git").join(file_of(&id)).exists()
    };
    assert!(is_there(&one) != is_there(&two), "what fits is taken out");
    fsck(&fixture);
}

/// A file of an object with these bytes as its plain content.
fn plant_loose(fixture: &Fixture, id: &str, plain: &[u8]) {
    let mut bytes = vec![0x78, 0x01];
    let mut blocks = plain.chunks(60_000).peekable();
    while let Some(block) = blocks.next() {
        bytes.push(u8::from(blocks.peek().is_none()));
        let len = u16::try_from(block.len()).unwrap();
        bytes.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
        bytes.extend(block);
    }
    let (a, b) = plain.iter().fold((1, 0), |(a, b): (u32, u32), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    bytes.extend(((b << 16) | a).to_be_bytes());
    let path = fixture.work.join(".git").join(file_of(id));
    drop(std::fs::remove_file(&path));
    put(&path, &bytes);
}

#[test]
fn an_object_that_claims_to_be_too_large_to_be_read_is_compared_with_our_copy() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let id = id_of(&fixture, "HEAD:a");
    for size in ["4", "99999999", "99999999999999"] {
        plant_loose(&fixture, &id, format!("blob {size}\0two\n").as_bytes());
        let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
        assert_eq!(mended.restored, [file_of(&id)], "{size}");
        assert_eq!(fixture.git(&["show", "HEAD:a"]), "one\n");
    }
    fsck(&fixture);
}

#[test]
fn content_of_a_large_object_is_compared_where_there_is_a_copy_and_told_where_there_is_none() {
    let fixture = Fixture::new();
    let mut large = noise(2 << 20);
    fixture.write("large", &large);
    fixture.commit("large");
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let id = id_of(&fixture, "HEAD:large");
    large[1_000_000] ^= 1;
    plant_loose(&fixture, &id, &[format!("blob {}\0", large.len()).as_bytes(), &large[..]].concat());
    fixture.write("new", &large);
    let new = fixture.git(&["hash-object", "-w", "new"]);
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!((mended.restored, mended.unseen), (vec![file_of(&id)], vec![file_of(new.trim())]));
    fsck(&fixture);
}

#[test]
fn tidying_up_is_nobodys_damage_and_looked_at_once() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    control.clock = tomorrow;
    let mark = fixture.open().store_mark().unwrap();
    fixture.git(&["gc", "-q", "--prune=now"]);
    let (mended, now) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!((mended, now.is_some()), (StoreMended::default(), true));
    assert_eq!(std::fs::read_to_string(control.path().join("peers/packs")).unwrap().lines().count(), 1);
}

#[test]
fn an_index_of_the_old_form_stays_as_it_is() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    fixture.git(&["-c", "pack.indexVersion=1", "repack", "-q", "-a", "-d"]);
    assert_eq!(control.mend_packs(&fixture.open()).unwrap(), StoreMended::default());
}

#[test]
fn an_object_that_is_written_back_is_read_again_and_a_pack_in_its_way_is_mended() {
    let fixture = Fixture::new();
    let (control, head) = (fixture.imported(), fixture.head());
    // Large, and there before we first looked: not read for its own sake.
    plant(&fixture, &id_of(&fixture, "HEAD^{tree}"), &noise(100_000));
    assert!(control.mend_packs(&fixture.open()).unwrap().is_untouched());
    let (mended, _) = control.mend_store(&fixture.open(), None, &head).unwrap();
    assert_eq!((mended.restored.len(), mended.stuck.len()), (2, 0), "{mended:?}");
    assert_eq!(fixture.git(&["show", "HEAD:a"]), "one\n");
    fsck(&fixture);
}

#[test]
fn junk_beyond_what_is_remembered_does_not_hide_what_was_removed() {
    let fixture = Fixture::new();
    fixture.write("old", "precious\n");
    fixture.commit("old");
    let control = fixture.imported();
    let mark = fixture.open().store_mark().unwrap();
    let id = id_of(&fixture, "HEAD:old");
    std::fs::remove_file(fixture.work.join(".git").join(file_of(&id))).unwrap();
    for n in 0..400 {
        put(&fixture.work.join(format!(".git/objects/{:02x}/{n:038x}", n % 256)), b"");
    }
    let (mended, _) = control.mend_store(&fixture.open(), Some(&mark), &fixture.head()).unwrap();
    assert_eq!(mended.restored, [file_of(&id)]);
    assert!(mended.removed.len() > 200, "counted apart: {}", mended.removed.len());
    assert_eq!(mended.unseen.len(), 1, "{:?}", mended.unseen);
    assert_eq!(fixture.git(&["show", "HEAD:old"]), "precious\n");
}

#[test]
fn nobody_is_charged_with_history_that_a_shallow_clone_never_had() {
    let fixture = Fixture::new();
    fixture.commit("second");
    let shallow = fixture.path("shallow");
    let url = format!("file://{}", fixture.work.display());
    fixture.git(&["clone", "-q", "--depth", "1", &url, shallow.to_str().unwrap()]);
    let peer = PeerRepo::open(&shallow).unwrap();
    let mut control = fixture.control();
    drop(control.import(&peer, Some(&fixture.head())).unwrap());
    assert!(control.mend_store(&peer, None, &fixture.head()).unwrap().0.lost.is_empty());
}

#[test]
fn what_comes_before_our_copy_is_missed_when_it_was_there_and_told_once() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let second = fixture.commit("second");
    let mut control = fixture.control();
    drop(control.import(&fixture.open(), Some(&second)).unwrap());
    let lost =
        |control: &crate::ControlDir| control.mend_store(&fixture.open(), None, &second).unwrap().0.lost;
    assert!(lost(&control).is_empty());
    std::fs::remove_file(fixture.work.join(".git").join(file_of(first.as_str()))).unwrap();
    assert_eq!(lost(&control), [file_of(first.as_str())]);
    assert!(lost(&control).is_empty(), "once");
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
    let theirs = SyntheticGit::over_peer(&fixture.open()).unwrap();
    assert_eq!(show(&theirs, "theirs"), "planted\n", "else nothing was planted");
}

#[test]
fn a_history_that_cannot_be_read_is_lent_as_far_as_it_is_here() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let head = fixture.commit("second");
    let mut control = fixture.control();
    drop(control.import(&fixture.open(), Some(&head)).unwrap());
    std::fs::remove_file(fixture.work.join(".git").join(file_of(first.as_str()))).unwrap();
    let lent = control.lend(&fixture.open()).unwrap();
    assert_eq!(lent.shallow, std::slice::from_ref(&head));
    control.checkout_pristine(&head, &fixture.path("proof"), &lent).unwrap();
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
