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

#[test]
fn a_filter_an_encoding_and_line_ends_are_told_from_an_edit() {
    let fixture = Fixture::new();
    fixture.write("d/big.bin", "pointer");
    fixture.write("d/text", "one\ntwo\n");
    fixture.commit("more");
    assert_eq!(found(&fixture), None);
    fixture.write("d/text", "one\ntwo changed\r\n");
    assert_eq!(found(&fixture), None);
    fixture.write("d/text", "one\r\ntwo\r\n");
    assert_eq!(found(&fixture), Some((Unfollowed::LineEnds, "d/text".to_owned())));
    for (file, line, attribute) in [
        ("d/.gitattributes", "*.bin filter=lfs -text\n", "filter=lfs"),
        ("d/.gitattributes", "*.bin working-tree-encoding=UTF-16\n", "working-tree-encoding=UTF-16"),
        (".git/info/attributes", "*.bin filter=crypt\n", "filter=crypt"),
    ] {
        fixture.write(file, line);
        fixture.write("d/big.bin", "content");
        assert_eq!(
            found(&fixture),
            Some((Unfollowed::Attribute(attribute.to_owned()), "d/big.bin".to_owned()))
        );
    }
    fixture.remove(".git/info/attributes");
    fixture.write("d/.gitattributes", "*.bin filter=lfs\nbig.bin -filter\n");
    fixture.remove("d/text");
    assert_eq!(found(&fixture), None);
}
