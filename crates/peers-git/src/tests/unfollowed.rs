//! Files that the operator's git calls unchanged, and that differ from their commit all the same.

use super::Fixture;
use crate::Unfollowed;

fn found(fixture: &Fixture) -> Option<(Unfollowed, String)> {
    let head = fixture.head();
    let changes = fixture.imported().dirty_files(&fixture.work, &head, 100).unwrap();
    fixture.open().unfollowed(&head, &changes)
}

#[test]
fn a_file_that_a_sparse_checkout_left_out_is_told_from_one_that_was_deleted() {
    let fixture = Fixture::new();
    fixture.write("in/x", "x");
    fixture.write("out/y", "y");
    fixture.commit("more");
    fixture.remove("in/x");
    assert_eq!(found(&fixture), None);
    fixture.git(&["checkout", "-q", "in/x"]);
    fixture.git(&["sparse-checkout", "set", "in"]);
    assert_eq!(found(&fixture), Some((Unfollowed::Sparse, "out/y".to_owned())));
}

/// Files as git lays them down by what it is told.
fn check_out_again(fixture: &Fixture, path: &str) {
    fixture.remove(path);
    fixture.git(&["checkout", "-q", "--", path]);
}

#[test]
fn line_ends_that_git_made_are_told_from_an_edit() {
    let fixture = Fixture::new();
    fixture.write("d/text", "one\ntwo\n");
    fixture.commit("more");
    assert_eq!(found(&fixture), None);
    fixture.write("d/text", "one\r\ntwo\r\n");
    assert_eq!(found(&fixture), None, "git calls it changed, too");
    fixture.git(&["config", "core.autocrlf", "true"]);
    check_out_again(&fixture, "d/text");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(found(&fixture), Some((Unfollowed::LineEnds, "d/text".to_owned())));
    fixture.write("d/text", "one\r\ntwo changed\r\n");
    assert_eq!(found(&fixture), None);
}

#[test]
fn a_filter_and_an_encoding_are_told_from_an_edit() {
    for (file, line, attribute) in [
        ("d/.gitattributes", "*.bin filter=lfs -text\n", "filter=lfs"),
        ("d/.gitattributes", "*.bin working-tree-encoding=UTF-16\n", "working-tree-encoding=UTF-16"),
        (".git/info/attributes", "*.bin filter=lfs\n", "filter=lfs"),
    ] {
        let fixture = Fixture::new();
        fixture.write("d/big.bin", "pointer");
        fixture.commit("more");
        fixture.write(file, line);
        fixture.git(&["config", "filter.lfs.smudge", "sed s/pointer/content/"]);
        fixture.git(&["config", "filter.lfs.clean", "sed s/content/pointer/"]);
        assert_eq!(found(&fixture), None);
        check_out_again(&fixture, "d/big.bin");
        let expected = Some((Unfollowed::Attribute(attribute.to_owned()), "d/big.bin".to_owned()));
        assert_eq!(found(&fixture), expected);
        fixture.write("d/big.bin", b"\xff\xfex\0");
        assert_eq!(found(&fixture), None, "{attribute}");
        // Staged is not committed.
        fixture.git(&["-c", "filter.lfs.clean=cat", "add", "d/big.bin"]);
        assert_eq!(found(&fixture), None, "{attribute}");
        check_out_again(&fixture, "d/big.bin");
        fixture.write(file, format!("{line}big.bin -filter -working-tree-encoding\n"));
        assert_eq!(found(&fixture), None, "{attribute}");
    }
}
